"""PTX to task list: the flattened list is the executed stream, with its dependencies and addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import is_traced, operation
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.ptx.parsing.parser import load_module, parse_module
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.tasklist.expand import machine_operations
from ppt_gpu.tasklist.flat import addresses, buffer_bases, flatten, producers
from ppt_gpu.tasklist.model import Loop, Stride, TaskList, Transactions, walk
from ppt_gpu.tasklist.text import parse_tasklist, write_tasklist
from ppt_gpu.translation.blocks import sample_blocks
from ppt_gpu.translation.translate import translate
from ppt_gpu.workload.reader import bind_workload, load_workload
from ppt_gpu.workload.workload import Argument, Buffer, Launch

SAMPLES = sorted(path.stem for path in data_dir("tasklists").glob("*.toml") if "ptx" in path.read_text())


@dataclass(frozen=True)
class Case:
    kernel: Kernel
    module: Module
    launch: Launch
    trace: Trace

    def path(self, warp: int) -> list[int]:
        at = int(self.trace.warp_path[warp])
        return self.trace.path_pc[self.trace.path_start[at] : self.trace.path_start[at + 1]].tolist()


@cache
def sample(name: str) -> Case:
    workload = load_workload(data_dir("tasklists") / f"{name}.toml")
    module = load_module(workload.ptx_path)
    workload = bind_workload(workload, module)
    launch = workload.launches[0]
    folder = Path(workload.path).parent
    memory = DeviceMemory.build(module, workload.buffers, workload.symbols, directory=folder)
    kernel = module.kernels[launch.kernel]
    return Case(kernel, module, launch, run(kernel, module, launch, memory, sample_blocks(launch.grid, 8)))


def small(
    body: str,
    buffers: dict[str, Buffer],
    *,
    threads: int = 32,
    grid: tuple[int, int, int] = (1, 1, 1),
    blocks: Sequence[int] = (0,),
) -> Case:
    """A kernel whose parameters are pointers to `buffers`; registers %r, %rd, %f, %p with numbers below 20."""
    params = ", ".join(f".param .u64 {name}" for name in buffers)
    text = (
        f".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k({params})\n{{\n"
        ".reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.reg .f32 %f<20>;\n.reg .pred %p<20>;\n" + body + "\nret;\n}\n"
    )
    module = parse_module(text, "k.ptx")
    launch = Launch("k", grid, (threads, 1, 1), tuple(Argument("u64", buffer=name) for name in buffers))
    memory = DeviceMemory.build(module, list(buffers.values()))
    kernel = module.kernels["k"]
    return Case(kernel, module, launch, run(kernel, module, launch, memory, blocks))


def translated(case: Case, **options: object) -> TaskList:
    return translate(case.kernel, case.module, case.trace, case.launch, **options)  # type: ignore[arg-type]


def chosen_warp(case: Case) -> int:
    """A warp on the most common path, with the most common patterns on it; found by counting."""
    paths = case.trace.warp_path.tolist()
    best = max(sorted(set(paths)), key=paths.count)
    warps = [warp for warp, path in enumerate(paths) if path == best]
    lanes = [case.trace.access_pattern[list(warp_accesses(case, warp))].tolist() for warp in warps]
    return max(warps, key=lambda warp: lanes.count(lanes[warps.index(warp)]))


def warp_accesses(case: Case, warp: int) -> range:
    return range(int(case.trace.access_start[warp]), int(case.trace.access_start[warp + 1]))


@pytest.mark.parametrize("name", SAMPLES)
def test_flattening_gives_the_executed_operations(name: str) -> None:
    case = sample(name)
    flat = flatten(translated(case))
    expected = [
        operation(case.kernel.instructions[pc]).replace(".param", ".constant") for pc in case.path(chosen_warp(case))
    ]
    assert [flat.tasks[i].op for i in flat.path] == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_the_text_keeps_everything(name: str) -> None:
    tasklist = translated(sample(name))
    text = write_tasklist(tasklist)
    assert parse_tasklist(text, "x.tl") == tasklist
    assert write_tasklist(parse_tasklist(text, "x.tl")) == text


@pytest.mark.parametrize("name", SAMPLES)
def test_dependencies_are_the_last_writers(name: str) -> None:
    """Each task waits for the last writer of everything it reads; whatever else it names wrote such a register too."""
    case = sample(name)
    flat = flatten(translated(case))
    start, producer = producers(flat)
    last: dict[int, list[int]] = {}
    for e, pc in enumerate(case.path(chosen_warp(case))):
        instruction = case.kernel.instructions[pc]
        found = set(producer[start[e] : start[e + 1]].tolist())
        writers = {last[r][-1] for r in instruction.reads if r in last}
        assert writers <= found, f"line {instruction.line}"
        assert found <= {w for r in instruction.reads for w in last.get(r, [])}, f"line {instruction.line}"
        for register in instruction.writes:
            last.setdefault(register, []).append(e)


@pytest.mark.parametrize("name", SAMPLES)
def test_strides_give_the_recorded_addresses(name: str) -> None:
    """Of every warp that took the path, in every block that ran, relative to the buffers."""
    case = sample(name)
    trace, tasklist = case.trace, translated(case)
    flat = flatten(tasklist)
    bases = buffer_bases(tasklist)
    starts = {r.name: r.start for r in trace.ranges}
    doubts = {int(c.split()[1].rstrip(":")): c for c in tasklist.comments if c.startswith("Task ")}
    own = case.trace.access_pattern[list(warp_accesses(case, chosen_warp(case)))]
    warps_per_block = len(trace.warp_path) // len(trace.blocks)
    # constant accesses have a memory entry in the list, but none in the trace
    traced = np.flatnonzero([not flat.tasks[i].op.endswith(".constant") for i in flat.access_task])
    compared = 0
    for warp in np.flatnonzero(trace.warp_path == trace.warp_path[chosen_warp(case)]).tolist():
        found = addresses(flat, warp % warps_per_block, int(trace.blocks[trace.warp_block[warp]]))
        assert len(traced) == len(warp_accesses(case, warp))
        for k, a, lanes_of_task in zip(traced.tolist(), warp_accesses(case, warp), own, strict=True):
            task = flat.tasks[flat.access_task[k]]
            assert task.memory is not None
            doubt = doubts.get(task.number, "")
            if not isinstance(task.memory.pattern, Stride) or "varies" in doubt:
                continue
            if trace.access_pattern[a] != lanes_of_task:
                assert "other lanes" in doubt
                continue
            buffer = task.memory.pattern.buffer
            mask = int(trace.pattern_mask[trace.access_pattern[a]])
            lanes = [lane for lane in range(32) if mask >> lane & 1]
            recorded = int(trace.access_base[a]) + trace.pattern_offset[trace.access_pattern[a], lanes]
            shift = bases[buffer] - starts[buffer] if buffer else 0
            assert (found[k, : task.active] == recorded + shift).all(), f"task {task.number}, warp {warp}"
            compared += 1
    # two warps a row of threads: no one step leads from each warp to the next, which the list says of every access
    assert compared > 0 or (name == "jacobi" and len(doubts) == len({flat.access_task[k] for k in traced.tolist()}))


def test_saxpy_as_people_will_read_it() -> None:
    text = write_tasklist(translated(sample("saxpy")))
    assert "buffer x 16 MiB copied" in text
    assert "repeat 51 {" in text  # 2^22 elements for 320 * 256 threads: one in five makes a 52nd iteration
    assert "17 load.global after 16 bytes 4 stride 4 buffer x step 327680  # ld.global.f32 %f2, [%rd6];" in text


@pytest.mark.parametrize("name", SAMPLES)
def test_buffers_lie_as_in_the_run(name: str) -> None:
    """Relative to each other, and within the first 2^32 bytes: the cache sets of a prediction depend on it."""
    case = sample(name)
    found = list(buffer_bases(translated(case)).values())
    assert [base % 2**32 for base in found] == [area.start % 2**32 for area in case.trace.ranges if area.bytes]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sgemm", ["block 0,65536", "block 64,0", "block 64,65536"]),  # rows of a, columns of b, tiles of c
        ("stencil7", ["block 128,8192"] * 40),
        ("transpose_tiled", ["block 128,262144"] * 4 + ["block 262144,128"] * 4),
        ("vecadd", []),  # the blocks continue
    ],
)
def test_steps_along_each_axis_of_the_grid(name: str, expected: list[str]) -> None:
    tasklist = translated(sample(name))
    text = write_tasklist(tasklist)
    assert re.findall(r"block \S+(?=.*  #)", text) == expected
    assert tasklist.grid == sample(name).launch.grid[: 2 if expected else 1]
    assert not [c for c in tasklist.comments if "varies" in c or "No two" in c]


PLACED = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r3, %ctaid.z;
mul.lo.u32 %r4, %r2, BY;
mad.lo.u32 %r5, %r3, BZ, %r4;
mad.lo.u32 %r6, %r1, 4, %r5;
cvt.u64.u32 %rd2, %r6;
add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
"""


@pytest.mark.parametrize(
    ("by", "bz", "blocks", "expected", "doubt"),
    [
        (100, 1000, range(24), (4, 100, 1000), ""),
        (12, 1000, range(24), (4, 12, 1000), ""),  # y continues x, z does not
        (12, 48, range(24), 4, ""),  # one step for the block number
        (100, 1000, [0, 1, 3, 12], (4, 100, 1000), ""),
        (100, 1000, [0, 1, 3], (4, 100, 400), "No two blocks along z"),
        (100, 1000, [0, 1], 4, "No two blocks along y"),
        (100, 1000, [5], None, "No two blocks along x"),  # taken to continue where the threads end
        (100, 1000, [0, 1, 15], 4, "varies"),
    ],
)
def test_block_steps_of_a_three_dimensional_grid(
    by: int, bz: int, blocks: Sequence[int], expected: int | tuple[int, ...] | None, doubt: str
) -> None:
    """A grid of 3 x 4 x 2 blocks, one address a block."""
    body = PLACED.replace("BY", str(by)).replace("BZ", str(bz))
    case = small(body, {"p": Buffer("p", "f32", 4096)}, grid=(3, 4, 2), blocks=blocks)
    tasklist = translated(case)
    pattern = next(task.memory.pattern for task, _ in walk(tasklist.body) if task.op == "load.global" and task.memory)
    assert isinstance(pattern, Stride) and tasklist.grid == (3, 4, 2)
    assert pattern.block == expected
    assert bool(doubt) == bool(tasklist.comments[1:])
    assert doubt in " ".join(tasklist.comments)
    if not doubt:
        flat = flatten(tasklist)
        found = [int(addresses(flat, 0, block)[-1, 0]) for block in range(24)]
        at = [4 * (b % 3) + by * (b // 3 % 4) + bz * (b // 12) for b in range(24)]
        assert [own - found[0] for own in found] == at


def test_rows_of_a_two_dimensional_block() -> None:
    """16 x 16 threads: a warp covers two rows of a matrix of 1024 floats."""
    loads = [task for task, _ in walk(translated(sample("sgemm")).body) if task.op == "load.global"]
    patterns = [task.memory.pattern for task in loads if task.memory]
    assert [(p.lane, p.width, p.row) for p in patterns if isinstance(p, Stride)] == [(4, 16, 4096)] * 2


@pytest.mark.parametrize("gpu", ["k40", "v100"])
@pytest.mark.parametrize("name", ["saxpy", "sgemm", "reduction"])
def test_with_an_isa_the_machine_operations_follow_each_other(name: str, gpu: str) -> None:
    case, isa = sample(name), load_gpu(gpu).isa
    flat = flatten(translated(case, isa=isa))
    expected, first = [], []
    for pc in case.path(chosen_warp(case)):
        names = machine_operations(case.kernel.instructions[pc], isa)
        first += [place == 0 for place in range(len(names))]
        expected += [op.replace(".param", ".constant") for op in names]
    assert [flat.tasks[i].op for i in flat.path] == expected
    start, producer = producers(flat)
    for e in range(1, len(expected)):
        if not first[e]:
            assert producer[start[e] : start[e + 1]].tolist() == [e - 1]


CHASE = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, 0;
loop:
ld.global.u64 %rd2, [%rd1];
ld.param.u64 %rd3, [p];
add.s64 %rd1, %rd3, %rd2;
add.s32 %r1, %r1, 1;
setp.lt.s32 %p1, %r1, 4;
@%p1 bra loop;
"""


def test_irregular_addresses_become_transactions_and_say_so() -> None:
    """A chain of offsets without a pattern: 0 -> 72 -> 8 -> 200 -> ..."""
    case = small(CHASE, {"p": Buffer("p", "u64", 64, "iota")})
    case.trace.access_base[:] = case.trace.access_base[0] + np.array([0, 72, 8, 200], np.uint64)
    tasklist = translated(case)
    load = next(task for task, _ in walk(tasklist.body) if task.op == "load.global")
    assert load.memory is not None and load.memory.pattern == Transactions(1)  # one 32 B sector: all lanes together
    assert load.deps == tuple(sorted({1, *load.deps}))
    assert [c for c in tasklist.comments if "irregular" in c]
    loops = [item for item in tasklist.body if isinstance(item, Loop)]
    assert [loop.count for loop in loops] == [4]
    carried = next(task for task, _ in walk(tasklist.body) if task.op == "int32.add64")
    assert carried.number in load.deps  # the address comes from the iteration before


PREDICATED = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
mov.f32 %f1, 0f00000000;
setp.lt.u32 %p1, %r1, 8;
setp.gt.u32 %p2, %r1, 99;
@%p1 ld.global.f32 %f1, [%rd3];
@%p2 ld.global.f32 %f2, [%rd3];
add.f32 %f3, %f1, %f1;
st.global.f32 [%rd3], %f3;
"""


def test_predicated_accesses() -> None:
    case = small(PREDICATED, {"p": Buffer("p", "f32", 64)})
    tasks = [task for task, _ in walk(translated(case).body)]
    some, none = tasks[7], tasks[8]
    assert (some.op, some.active) == ("load.global", 8)
    assert none.op == "int32.off" and none.memory is None  # no lane is on: an issue slot
    assert set(tasks[9].deps) == {5, 8}  # the load may leave the move's value


GENERIC = """
.shared .align 4 .b8 tile[256];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
mov.u64 %rd3, tile;
cvta.shared.u64 %rd4, %rd3;
add.s64 %rd5, %rd4, %rd2;
st.f32 [%rd5], 0f3F800000;
bar.warp.sync -1;
bar.sync 0;
add.s64 %rd6, %rd1, %rd2;
ld.f32 %f1, [%rd6];
"""


def test_generic_accesses_go_where_they_went_and_warp_barriers_are_none() -> None:
    case = small(GENERIC, {"p": Buffer("p", "f32", 64)}, threads=64)
    tasklist = translated(case)
    assert tasklist.shared == 256
    ops = [task.op for task, _ in walk(tasklist.body)]
    assert [op for op in ops if op.startswith(("store", "load.g"))] == ["store.shared", "load.global"]
    assert ops.count("barrier") == 1


def test_divergence_is_a_serial_stream_and_warps_can_be_chosen() -> None:
    body = """
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 32;
@%p1 bra low;
mul.lo.u32 %r2, %r1, 3;
bra done;
low:
add.u32 %r2, %r1, 5;
add.u32 %r2, %r2, 5;
done:
xor.b32 %r3, %r2, 1;
"""
    case = small(body, {}, threads=96)
    common = flatten(translated(case))
    assert [common.tasks[i].op for i in common.path].count("int32.mul") == 1
    other = flatten(translated(case, warp=0))
    assert [other.tasks[i].op for i in other.path].count("int32.mul") == 0


def test_bad_requests() -> None:
    case = sample("vecadd")
    with pytest.raises(PptError, match="no warp 999"):
        translated(case, warp=999)
    with pytest.raises(BudgetError, match="the budget is 5"):
        translated(case, max_tasks=5)
    with pytest.raises(PptError, match="not one of this kernel"):
        translate(small("", {}).kernel, case.module, case.trace, case.launch)


def test_the_trace_matches_the_instructions() -> None:
    """What the tests above rest on: one access for each traced instruction of the path."""
    for name in SAMPLES:
        case = sample(name)
        warp = chosen_warp(case)
        pcs = [pc for pc in case.path(warp) if is_traced(case.kernel.instructions[pc])]
        accesses = list(warp_accesses(case, warp))
        assert len(pcs) == len(accesses)
        spaces = {MEMORY_SPACES[s] for s in case.trace.access_space[accesses]}
        assert spaces <= {"global", "shared", "local"}
