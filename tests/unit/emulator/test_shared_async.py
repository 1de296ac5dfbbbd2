"""Warnings about reads of what an asynchronous copy may not have written yet: where they must and must not come."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from jit_kernels import Case, integer, pointer, text_case

from ppt_gpu.emulator.jit import async_copies
from ppt_gpu.emulator.jit.async_copies import Note
from ppt_gpu.emulator.run import run as run_module
from ppt_gpu.ptx import load_module
from ppt_gpu.workload.workload import Buffer

#: r1 thread, r4 its own word in s, r5 that of the thread 32 away, d2 the thread's word in global memory, p1 thread 0
HEAD = (
    ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; xor.b32 %r5, %r3, 128; add.u32 %r5, %r5, %r2;"
    "cvt.u64.u32 %d2, %r3; add.u64 %d2, %d1, %d2; setp.eq.u32 %p1, %r1, 0; mov.u32 %r6, m;\n"
)
COPY, READ, FAR = "cp.async.ca.shared.global [%r4], [%d2], 4;", "ld.shared.u32 %r9, [%r4];", "ld.shared.u32 %r9, [%r5];"
COMMIT, WAIT, BAR = "cp.async.commit_group;", "cp.async.wait_group 0;", "bar.sync 0;"
INIT = f"@%p1 mbarrier.init.shared.b64 [%r6], 1; {BAR}"
BULK = ("@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 256;"
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], 256, [%r6];")  # fmt: skip
MEET = "W: mbarrier.try_wait.parity.shared.b64 %p3, [%r6], 0; @!%p3 bra W;"
TELL = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];"


def warned(body, threads=64, blocks=2):
    text = (
        ".shared .align 16 .b8 s[512];\n.shared .align 8 .b8 m[16];\n"
        f".visible .entry k(.param .u64 p)\n{{\n{HEAD}{body}\nret;\n}}"
    )
    case = text_case(text, (blocks,), (threads,), [pointer("a")], [Buffer("a", "u32", 256, "iota")])
    _, trace = case.run()
    return [text for text in trace.warnings if "asynchronously" in text]


RIGHT = {
    "own copies": f"{COPY}{COMMIT}{WAIT}{READ}",
    "wait_all": f"{COPY} cp.async.wait_all; {READ}",
    "of others": f"{COPY}{COMMIT}{WAIT}{BAR}{FAR}",
    "the last group may be pending": f"{COPY}{COMMIT} cp.async.ca.shared.global [%r4+256], [%d2], 4; {COMMIT}"
                                     f"cp.async.wait_group 1; {BAR}{FAR}",
    "one warp's wait": f"{COPY}{COMMIT}{WAIT} bar.sync 1, 64; {FAR}",
    "read before the copy": f"st.shared.u32 [%r4], 1; {READ}{BAR}{COPY}{COMMIT}{WAIT}",
    "no lane copies": f"setp.gt.u32 %p2, %r1, 99; @%p2 {COPY}{COMMIT} st.shared.u32 [%r4], 1; {READ}{WAIT}",
    "bulk": f"{INIT}{BULK}{MEET}{FAR}",
    "bulk, one waits for all": f"{INIT}{BULK} @!%p1 bra J; {MEET} J: {BAR}{FAR}",
    "told an mbarrier": f"@%p1 mbarrier.init.shared.b64 [%r6], 64; {BAR}{COPY}{TELL}{MEET}{FAR}",
}  # fmt: skip
WRONG = {
    "no wait": (f"{COPY}{COMMIT}{READ}{WAIT}", "of the same warp", "no wait for the copy between"),
    "no commit": (f"{COPY}{WAIT}{READ}", "of the same warp", "no wait for the copy between"),
    "no wait for others": (f"{COPY}{COMMIT}{BAR}{FAR}{WAIT}", "of warp 1", "no wait for the copy and barrier"),
    "no barrier": (f"{COPY}{COMMIT}{WAIT}{FAR}", "of warp 1", "no wait for the copy and barrier"),
    "barrier before the wait": (f"{COPY}{COMMIT}{BAR}{WAIT}{FAR}", "of warp 1", "no wait for the copy and barrier"),
    "wrong group": (f"{COPY}{COMMIT} cp.async.ca.shared.global [%r4+256], [%d2], 4; {COMMIT} cp.async.wait_group 1;"
                    "ld.shared.u32 %r9, [%r4+256];", "of the same warp", "no wait for the copy between"),
    "bulk": (f"{INIT}{BULK}{BAR}{FAR}", "of the same warp", "no wait for the copy between"),
    "bulk, another mbarrier": (f"{INIT} @%p1 mbarrier.init.shared.b64 [%r6+8], 0; {BULK} mbarrier.test_wait.parity."
                               f"shared.b64 %p3, [%r6+8], 1; {BAR}{FAR}", "of", "no wait for the copy"),
    "told, nobody waits": (f"@%p1 mbarrier.init.shared.b64 [%r6], 64; {BAR}{COPY}{TELL}{BAR}{FAR}", "of warp 1",
                           "no wait for the copy and barrier"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_reads_behind_a_wait(name):
    assert warned(RIGHT[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_reads_too_early(name):
    body, *parts = WRONG[name]
    (text,) = warned(body)
    assert text.startswith("test.ptx:9: 'ld.shared.u32' of warp 0 reads byte ") and "on line 9" in text
    assert all(part in text for part in parts), text


def test_only_as_many_copies_as_there_is_room_for(monkeypatch):
    """What is not noted is not looked at; what is, still is."""
    many = "".join(f"cp.async.ca.shared.global [%r4+{4 * k}], [%d2], 4;" for k in range(9))
    body = f"{many}{COMMIT}{READ}{WAIT}"
    for room, count in ((64, 1), (2, 1), (0, 0)):
        monkeypatch.setattr(async_copies, "MOST", room)
        assert len(warned(body)) == count


@pytest.mark.parametrize("waits", [False, True])
def test_many_turns_of_a_pipeline(waits):
    """Three stages in turns; without the wait of one of its groups each load is too early."""
    body = f"""mov.u32 %r7, 0; {COPY}{COMMIT} cp.async.ca.shared.global [%r4+256], [%d2], 4; {COMMIT}
    L: {"cp.async.wait_group 1;" if waits else ""} {BAR} and.b32 %r8, %r7, 1; shl.b32 %r8, %r8, 8;
    add.u32 %r10, %r5, %r8; ld.shared.u32 %r9, [%r10]; {BAR}
    add.u32 %r11, %r4, %r8; cp.async.ca.shared.global [%r11], [%d2], 4; {COMMIT}
    add.u32 %r7, %r7, 1; setp.lt.u32 %p4, %r7, 20; @%p4 bra L; cp.async.wait_all;"""
    assert len(warned(body)) == (0 if waits else 1)


def test_random_kernels_against_dictionaries():
    """Two warps with copies, commits, waits, barriers and reads in any order: found is what a slow search finds."""
    rng, some = np.random.default_rng(4), 0
    for _ in range(40):
        steps = rng.choice(["copy", "copy", "commit", "wait0", "wait1", "all", "bar", "own", "far"], 14).tolist()
        text = {"copy": COPY, "commit": COMMIT, "wait0": WAIT, "wait1": "cp.async.wait_group 1;",
                "all": "cp.async.wait_all;", "bar": BAR, "own": READ, "far": FAR}  # fmt: skip
        found = warned("\n".join(text[step] for step in steps))
        lines = sorted(int(each.split(":")[1]) - 9 for each in found)
        assert lines == slow(steps), steps
        some += len(lines)
    assert some > 30


def slow(steps):
    """Steps of reads that are too early, where both warps do the same: each reads its own words, or the other's."""
    done = {}  # copy -> step of the wait that completes it
    groups, pending = [[]], set()
    for at, step in enumerate(steps):
        if step == "copy":
            groups[-1].append(at)
            pending.add(at)
        elif step == "commit":
            groups.append([])
        elif step in ("wait0", "wait1", "all"):
            over = groups[:-1] if step == "wait0" else groups[:-2] if step == "wait1" else groups
            for copy in pending & {c for group in over for c in group}:
                done[copy] = at
                pending.discard(copy)
    barriers = [sum(step == "bar" for step in steps[:at]) for at in range(len(steps))]
    found = []
    for at, step in enumerate(steps):
        for copy in [k for k, each in enumerate(steps) if each == "copy"]:
            finished = done.get(copy)
            early = finished is None or finished > at
            behind = finished is None or barriers[finished] >= barriers[at]
            if (step == "own" and copy < at and early) or (step == "far" and barriers[copy] <= barriers[at] and behind):
                found.append(at)
                break
    return found


def notes_of(case):
    kept = []
    with patch.object(run_module, "with_shared_warnings", lambda trace, *more: kept.append(more[3].copy()) or trace):
        case.run()
    return kept[0]


def test_notes_of_lanes():
    """In the order of issue: instruction, lanes, block, bytes and places."""
    text = f".shared .align 16 .b8 s[512];\n.visible .entry k(.param .u64 p)\n{{\n{HEAD}@%p1 {COPY} {COPY}\nret;\n}}"
    case = text_case(text.replace("mov.u32 %r6, m;", ""), (2,), (64,), [pointer("a")], [Buffer("a", "u32", 256)])
    notes = notes_of(case)
    assert notes[:, Note.WARP].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert notes[:, Note.CTAID_X].tolist() == [0] * 4 + [1] * 4
    assert (notes[:, Note.PC] >> 32 & 0xFFFFFFFF).tolist() == 2 * [1, 0xFFFFFFFF, 0, 0xFFFFFFFF]
    assert set(notes[:, Note.BYTES].tolist()) == {4} and set(notes[:, Note.BARRIER].tolist()) == {0}
    places = np.ascontiguousarray(notes[:, Note.PLACES :]).view(np.int32)
    assert places[3].tolist() == [4 * (32 + lane) for lane in range(32)]


def test_notes_of_bulk_copies():
    """Each of one lane, with the mbarrier that is told; they are waited for."""
    module = load_module(Path(__file__).parents[2] / "data" / "matrix" / "bulk.ptx")
    buffers = [Buffer("in", "s32", 2560), Buffer("out", "s32", 2560), Buffer("sum", "s32", 512)]
    arguments = [pointer("in"), pointer("out"), pointer("sum"), integer(5)]
    case = Case(module, "rounds", (1,), (64,), arguments, buffers)
    assert not [text for text in case.run()[1].warnings if "asynchronously" in text]
    notes = notes_of(case)
    copied = notes[notes[:, Note.BYTES] > 0]
    assert len(copied) == 5 and set(copied[:, Note.BYTES].tolist()) == {2048} and (copied[:, Note.BARRIER] > 0).all()
    assert set((copied[:, Note.PC] >> 32).tolist()) == {1}
