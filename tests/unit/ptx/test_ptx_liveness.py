"""The register estimate: by hand, and against what ptxas reports."""

import csv
import itertools
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.linking.liveness import estimate_registers, live_out, members, most_live, needed_before
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.ptx.parsing.parser import load_module, parse_module

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT.parent / "shared" / "reference" / "gpgpusim"
DECLARED = ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f64 %d<9>; .reg .b16 %h<9>;"


def kernel_of(body: str, directives: str = "") -> Kernel:
    text = f".version 8.0\n.target sm_80\n.entry k(.param .u64 a) {directives} {{ {DECLARED}\n{body}\nret; }}"
    return parse_module(text).kernels["k"]


@given(st.sets(st.integers(0, 300)))
def test_members_of_a_bit_set(registers: set[int]) -> None:
    assert list(members(sum(1 << register for register in registers))) == sorted(registers)


def test_widths() -> None:
    both = "add.s32 %r3, %r1, %r2; st.global.b32 [0], %r3;"
    assert most_live(kernel_of(f"mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; {both}")) == 2
    assert most_live(kernel_of("mov.u64 %rd1, %clock64; st.global.u64 [0], %rd1;")) == 2
    assert most_live(kernel_of("setp.eq.s32 %p1, 1, 2; @%p1 bra L; L:")) == 0
    assert most_live(kernel_of("mov.u16 %h1, %h2; st.global.u16 [0], %h1;")) == 1


def test_constants_are_free() -> None:
    load = "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, 7; st.global.u32 [%rd2], %r1;"
    assert most_live(kernel_of(load)) == 0
    changed = load.replace("st.global", "@%p1 mov.u32 %r1, 8; st.global")
    assert most_live(kernel_of(changed)) == 1  # two values: a real register


def test_live_around_a_loop() -> None:
    body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; L: add.s32 %r2, %r2, %r1; @%p1 bra L; st.global.u32 [0], %r2;"
    kernel = kernel_of(body)
    names = [register.name for register in kernel.registers]
    flow = control_flow(kernel)
    alive = [{names[r] for r in range(len(names)) if bits >> r & 1} for bits in live_out(kernel, flow)]
    assert alive == [{"%r1", "%r2", "%p1"}, {"%r1", "%r2", "%p1"}, set()]


def test_guarded_write_does_not_end_a_value() -> None:
    kernel = kernel_of("@%p1 mov.u32 %r1, %tid.x; st.global.u32 [0], %r1;")
    assert most_live(kernel) == 1
    used = control_flow(kernel)
    assert live_out(kernel, used) == [0]


def needed(body: str, live: tuple[str, ...] = ()) -> set[str]:
    kernel = kernel_of(body)
    names = [register.name for register in kernel.registers]
    return {names[r] for r in needed_before(kernel.instructions, sum(1 << names.index(each) for each in live))}


def test_what_a_guard_writes_and_alone_reads_begins_there() -> None:
    both = "@%p1 mov.u32 %r1, %tid.x; @%p1 st.global.u32 [0], %r1;"
    assert needed(both) == {"%p1"} and most_live(kernel_of(both)) == 1
    assert needed(both.replace("@%p1 st", "@!%p1 st")) == {"%p1", "%r1"}
    assert needed(both.replace("@%p1 st", "st")) == {"%p1", "%r1"}
    assert needed(both, ("%r1",)) == {"%p1", "%r1"}


def test_two_writes_under_opposite_guards_begin_a_value() -> None:
    either = "@%p1 mov.u32 %r1, %tid.x; @!%p1 mov.u32 %r1, %tid.y;"
    assert needed(either, ("%r1",)) == {"%p1"}
    assert needed(either.replace("@!%p1", "@!%p2"), ("%r1",)) == {"%p1", "%p2", "%r1"}


def test_a_guard_that_changes_between_says_nothing() -> None:
    text = "@%p1 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [0], %r1;"
    assert needed(text) == {"%p1", "%r1", "%r2"}


def ways(guards: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=guards))


@given(
    st.lists(st.tuples(st.sampled_from(("", "@%p1 ", "@!%p1 ", "@%p2 ")), st.integers(0, 8)), max_size=7), st.booleans()
)
def test_what_a_lane_can_read_is_needed(code: list[tuple[str, int]], last: bool) -> None:
    """Against every way that a lane can go: guards hold or do not, after each comparison anew."""
    steps = [
        "mov.u32 %r1, %r2;", "mov.u32 %r2, %r1;", "mov.u32 %r1, 1;", "mov.u32 %r2, 1;", "add.u32 %r1, %r1, %r2;",
        "st.global.u32 [0], %r1;", "st.global.u32 [0], %r2;", "setp.eq.u32 %p1, 0, 0;", "setp.eq.u32 %p2, %r1, 0;",
    ]  # fmt: skip
    text = " ".join(guard + steps[step] for guard, step in code) + "mov.u32 %r2, %r1;" * last
    kernel = kernel_of(text)
    names = [register.name for register in kernel.registers]
    found: set[str] = set()
    for way in ways(2 + len(code)):
        holds = {"%p1": way[0], "%p2": way[1]}
        written: set[str] = set()
        for number, instruction in enumerate(kernel.instructions):
            guard = instruction.guard
            if guard is not None:
                found |= {names[guard.reg]} - written
                if holds[names[guard.reg]] == guard.negated:
                    continue
            found |= {names[r] for r in instruction.reads} - written
            for register in instruction.writes:
                written.add(names[register])
                if names[register] in holds:
                    holds[names[register]] = way[2 + number]
    assert found <= needed(text)


def many(count: int) -> str:
    loads = " ".join(f"ld.global.u32 %r{i}, [{i * 4}];" for i in range(count))
    return loads + " ".join(f"st.global.u32 [{i * 4}], %r{i};" for i in range(count))


def test_estimate() -> None:
    assert estimate_registers(kernel_of("")) == 8
    assert estimate_registers(kernel_of(many(30))) == 32
    assert estimate_registers(kernel_of(many(31))) == 40
    assert estimate_registers(kernel_of(many(31), ".maxnreg 20")) == 20
    function = ".func f { ret; }"
    text = f".version 8.0\n.target sm_80\n{function}\n.entry k {{ call f; ret; }}"
    assert estimate_registers(parse_module(text).kernels["k"]) == 24


def compare(rows: list[tuple[str, int, Kernel]]) -> list[float]:
    """Prints estimate and truth; the relative errors."""
    errors = []
    for name, registers, kernel in rows:
        estimate = estimate_registers(kernel)
        errors.append(estimate / registers - 1)
        print(f"{name:50} ptxas {registers:3} estimate {estimate:3} {errors[-1]:+.0%}")
    print(f"mean absolute error {statistics.mean(map(abs, errors)):.0%} over {len(errors)} kernels")
    return errors


def test_against_ptxas() -> None:
    with (ROOT / "tests/data/ptx/registers.csv").open() as file:
        rows = [
            (row["kernel"], int(row["registers"]), load_module(ROOT / row["file"]).kernels[row["kernel"]])
            for row in csv.DictReader(file)
        ]
    errors = compare(rows)
    # not in PTX: the registers of the subroutines of f64 division and square root, nor those that ptxas takes to
    # keep a whole local array in flight
    hidden = ("_Z5nbodyPKdPdi", "_Z11local_arrayPiPKii")
    large = [error for error, row in zip(errors, rows, strict=True) if row[1] > 32 and row[0] not in hidden]
    assert len(large) >= 5
    assert max(map(abs, large)) < 0.3, "where occupancy depends on it, within 30 %"
    assert all(-0.75 < error < 0.5 for error in errors)


def test_against_the_reference_launches() -> None:
    if not REFERENCE.is_dir():
        pytest.skip("../shared/reference/gpgpusim is not here")
    folder = {"SM7_QV100": "ptx70", "SM2_GTX480": "ptx35"}
    kernels = {
        (path.parent.name, name): kernel
        for path in sorted(REFERENCE.glob("ptx*/*.ptx"))
        for name, kernel in load_module(path).kernels.items()
    }
    seen = {}
    with (REFERENCE / "launches.csv").open() as file:
        for row in csv.DictReader(file):
            key = (folder.get(row["config"], ""), row["kernel"])
            if key in kernels:
                seen[key] = int(row["regs"])
    assert len(seen) >= 40
    errors = compare([(" ".join(key), registers, kernels[key]) for key, registers in sorted(seen.items())])
    assert statistics.median(map(abs, errors)) < 0.4
