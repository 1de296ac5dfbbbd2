"""Small programs whose cycles can be counted by hand, in both loops; errors; the result's numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from benchmarks.loop_programs import Entry, loop_program
from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import fetched, machine_of
from ppt_gpu.sm.program.program import (
    CODE_IN_L2,
    CODE_IN_SM,
    COLD,
    FORCED_DRAM,
    FORCED_L1,
    FORCED_L2,
    KIND_CONSTANT,
    WARM,
    Program,
)
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu, Op, Pipe

LATENCY = {"fp32": 6, "int32": 4, "branch": 9, "barrier": 5, "sfu": 20}


def tiny(**changes: Any) -> Gpu:
    """One scheduler, one unit of every kind, round numbers. `changes`: table__field=value."""
    gpu = load_gpu("k40")
    pipes = {name: Pipe(name, 32, "scheduler", 1, 1) for name in ("math", "lsu")}
    ops = {name: Op(name, "lsu" if "." in name else "math", LATENCY.get(name, 1), 1) for name in gpu.isa.ops}
    changes = {
        "sm__schedulers": 1,
        "sm__issue_width": 1,
        "sm__policy": "lrr",
        "l1__caches_global": True,
        "l1__latency": 30,
        "l1__size": 16384,
        "l1__write": "write-through",
        "l2__latency": 200,
        "dram__latency": 400,
        "shared__latency": 25,
        "host__block_launch": 50,
        "memory__constant_latency": 12,
        "memory__queue": 8,
        "memory__transactions_per_cycle": 1.0,
        "memory__requests_per_cycle": 0.0,
        "dram__turnaround": 0.0,
    } | changes
    isa = dataclasses.replace(gpu.isa, ops=ops)
    gpu = dataclasses.replace(gpu, pipes=pipes, isa=isa)
    for key, value in changes.items():
        table, field = key.split("__")
        gpu = dataclasses.replace(gpu, **{table: dataclasses.replace(getattr(gpu, table), **{field: value})})
    return gpu


def run(gpu: Gpu, body: tuple[Entry, ...], warps: int = 1, blocks: int = 1, resident: int = 1, **more: Any) -> SmResult:
    """Both loops on one pass through `body`; they must agree."""
    names = ("active_sms", "l2_dirty", "max_cycles", "policy", "code_at")
    options = {key: more.pop(key) for key in names if key in more}
    program = dataclasses.replace(loop_program(gpu, body, 1, blocks, warps, reuse=True), **more)
    return both(program, gpu, resident, **options)


def both(program: Program, gpu: Gpu, resident: int = 1, active_sms: int = 1, **options: Any) -> SmResult:
    plain, fast = (
        simulate(program, gpu, resident_blocks=resident, active_sms=active_sms, reference=reference, **options)
        for reference in (True, False)
    )
    assert plain.cycles == fast.cycles and (plain.op_stall == fast.op_stall).all()
    return fast


def reasons(result: SmResult) -> dict[str, int]:
    return {name: int(value) for name, value in zip(STALL_REASONS, result.warp_cycles, strict=True) if value}


def test_dependent_chain_takes_its_latencies() -> None:
    result = run(tiny(), (("fp32", (0,), 0),) * 10)
    assert result.cycles == 60
    assert reasons(result) == {"selected": 10, "wait": 45, "drain": 5}


def test_independent_entries_issue_every_cycle() -> None:
    result = run(tiny(), (("fp32", (), -1),) * 10)
    assert result.cycles == 9 + 6


def test_two_entries_of_a_warp_issue_together_on_two_units() -> None:
    gpu = tiny(sm__issue_width=2)
    gpu = dataclasses.replace(gpu, pipes=gpu.pipes | {"math": Pipe("math", 64, "scheduler", 2, 1)})
    result = run(gpu, (("fp32", (), -1),) * 10)
    assert result.cycles == 4 + 6
    assert reasons(result)["selected"] == 5 and result.issued == 10


def test_busy_unit_is_math_pipe_throttle_and_the_other_warp_not_selected() -> None:
    gpu = tiny()
    program = loop_program(gpu, (("fp32", (), -1),), 1, 1, 3)
    result = both(dataclasses.replace(program, op_ii=np.array([4], np.int32)), gpu)
    # issues in cycles 0, 4, 8; before them the unit is busy, but in cycles 0 and 4 it was somebody else's turn
    assert result.cycles == 8 + 6
    assert reasons(result) == {"selected": 3, "not_selected": 3, "math_pipe_throttle": 9, "drain": 27}


def test_branch_holds_back_the_next_entry() -> None:
    result = run(tiny(), (("branch", (), -1), ("fp32", (), -1)))
    assert result.cycles == 9 + 6
    assert reasons(result)["branch_resolving"] == 8


FOUR_LINES = (("fp32", (), -1), ("int32", (), -1), ("sfu", (), -1), ("fp32", (), -1))


def code(lines: int) -> Gpu:
    """An instruction cache of one set, in which every operation has a line of its own."""
    return tiny(code__size=8 * lines, code__line=8, code__ways=lines)


def test_a_warp_waits_for_each_line_of_its_code() -> None:
    result = run(code(4), FOUR_LINES)
    # three lines from DRAM, 400 - 30 each, the second and third a cycle after the issue; the last entry has the first
    assert reasons(result) == {"selected": 4, "no_instruction": 3 * 370, "drain": 18}
    assert result.cycles == 370 + 371 + 371 + 20


def test_code_that_a_launch_finds_is_not_fetched_from_dram() -> None:
    assert reasons(run(code(4), FOUR_LINES, code_at=CODE_IN_L2))["no_instruction"] == 3 * 170
    assert "no_instruction" not in reasons(run(code(4), FOUR_LINES, code_at=CODE_IN_SM))


def test_code_larger_than_the_cache_comes_from_the_l2_again() -> None:
    result = run(code(2), FOUR_LINES)  # the least recent of two lines, the first, made room for the third
    assert reasons(result)["no_instruction"] == 3 * 370 + 170


def test_warps_share_a_line_that_is_on_its_way() -> None:
    result = run(code(4), (("fp32", (), -1),), warps=3)
    assert reasons(result)["no_instruction"] == 3 * 370
    assert result.cycles == 370 + 2 + 6


def test_a_line_comes_while_warps_wait_at_a_barrier() -> None:
    result = run(code(4), (("barrier", (), -1), ("fp32", (), -1)), warps=2)
    # arrivals in cycles 370 and 371; the first one's look-up brings the line from 371 on
    assert result.cycles == 371 + 370 + 1 + 6
    assert reasons(result)["barrier"] == 5 + 4


def test_the_first_constant_comes_from_dram() -> None:
    body = (("load.constant", (), 0), ("load.constant", (), 1), ("fp32", (0, 1), -1))
    assert run(tiny(), body).cycles == 1 + 12 + 6
    assert run(tiny(memory__constant_cold=True), body).cycles == 370 + 6


def test_what_is_fetched_begins_a_line() -> None:
    """24 B are three instructions: the third is the last of its line, also where a branch leads back to the first."""
    gpu = tiny(code__line=24, code__size=240)
    body = tuple((name, (), -1) for name in ("int32", "fp32", "sfu", "branch"))
    program = loop_program(gpu, body, 2, 1, 1)
    expected = [True, False, False, True, True, False, False, True]
    assert fetched(program, machine_of(program, gpu, 1, None, 0.0, None)).tolist() == expected
    assert not fetched(program, machine_of(program, tiny(), 1, None, 0.0, None)).any()


def test_constants_that_are_queued_pass_the_load_store_unit_one_by_one() -> None:
    gpu = tiny(memory__constant_queued=True, sm__schedulers=4)
    result = run(gpu, (("load.constant", (), 0), ("fp32", (0,), -1)), warps=4)
    assert result.cycles == 3 + 12 + 6


@pytest.mark.parametrize(
    ("reads", "cycles"),
    [
        (((0,), (0,)), 30 + 12),  # the second waits for the line that the first asks for
        (((0,), (1,)), 10 + 30 + 12),  # the cache behind sends a line every ten cycles
        (((0, 1), (0,)), 10 + 30 + 12),
        (((0,), (2,), (0,)), 20 + 30 + 12),  # the third finds its line replaced
        (((0,), (1,), (0,)), 10 + 30 + 12),
    ],
)
def test_constants_that_do_not_fit_come_by_lines(reads: tuple[tuple[int, ...], ...], cycles: int) -> None:
    gpu = tiny(constants__size=128, constants__ways=1, constants__miss=30, constants__fill=10.0)
    body = (*(("load.constant", (), slot) for slot in range(len(reads))), ("fp32", tuple(range(len(reads))), -1))
    plain = loop_program(gpu, body, 1, 1, 1)
    lines = [line for read in reads for line in read]
    program = dataclasses.replace(
        plain,
        op_latency=np.where(plain.op_kind == KIND_CONSTANT, 12, plain.op_latency),
        op_looked_up=plain.op_kind == KIND_CONSTANT,
        constant_start=np.array([0, len(lines)], np.int64),
        constant_line=np.array(lines, np.int32),
        constant_last=np.concatenate([np.arange(len(read)) == len(read) - 1 for read in reads]),
    )
    assert both(plain, gpu).cycles == len(reads) - 1 + 12 + 6
    assert both(program, gpu).cycles == cycles + 6
    shared = dataclasses.replace(gpu, constants=dataclasses.replace(gpu.constants, caches=2))
    behind = both(program, shared, active_sms=4).cycles - both(program, shared, active_sms=2).cycles
    assert behind == cycles - (30 + 12)  # two SMs ask each cache, so a line takes it twenty cycles
    with pytest.raises(PptError, match="does not match"):
        both(dataclasses.replace(program, constant_start=np.array([0, len(lines) - 1], np.int64)), gpu)


def test_barrier_waits_for_the_last_warp() -> None:
    result = run(tiny(), (("barrier", (), -1), ("fp32", (), -1)), warps=4)
    # arrivals in cycles 0 to 3, released at 3 + 5, issues in 8 to 11
    assert result.cycles == 11 + 6
    assert reasons(result)["barrier"] == 7 + 6 + 5 + 4


def test_exited_warps_do_not_count_at_a_barrier() -> None:
    gpu = tiny()
    program = loop_program(gpu, (("barrier", (), -1), ("fp32", (), -1)), 1, 1, 2)
    one_without = dataclasses.replace(
        program, path_start=np.array([0, 2, 3]), entry_op=np.array([0, 1, 1], np.int32),
        entry_wait=np.zeros(3, np.uint64), entry_slot=np.full(3, -1, np.int8), warp_path=np.array([0, 1], np.int32),
    )  # fmt: skip
    assert both(one_without, gpu).cycles == 1 + 5 + 6  # released by the exit in cycle 1


@pytest.mark.parametrize(
    ("line", "cycles"), [(FORCED_L1, 30), (FORCED_L2, 200), (FORCED_DRAM, 400)], ids=["L1", "L2", "DRAM"]
)
def test_unloaded_load_to_use_latencies(line: int, cycles: int) -> None:
    result = run(tiny(), (("load.global", (), 0), ("fp32", (0,), -1)), tx_line=np.array([line], np.int32))
    assert result.cycles == cycles + 6
    assert reasons(result)["long_scoreboard"] == cycles - 1


def test_second_load_of_a_line_hits_the_l1_and_one_in_flight_merges() -> None:
    twice: tuple[Entry, ...] = (("load.global", (), 0), ("load.global", (), 1), ("load.global", (0,), 2))
    result = run(tiny(), twice, tx_line=np.zeros(3, np.int32))
    assert result.cycles == 400 + 30
    assert (result.l1_accesses, result.l1_hits) == (12, 8)  # sectors
    assert result.dram_read_bytes == 128


def test_warm_line_is_an_l2_hit_once() -> None:
    result = run(tiny(l1__size=0), (("load.global", (), 0),), line_warm=np.full(1, WARM, np.uint8))
    assert result.cycles == 200 and result.dram_read_bytes == 0 and result.l2_hits == 4


def test_line_that_another_sm_is_fetching_takes_as_long_as_from_dram_and_none_of_its_bandwidth() -> None:
    gpu = tiny(l1__size=0, dram__bandwidth=745e6)  # a byte a cycle
    body: tuple[Entry, ...] = (("load.global", (), 0),) * 3
    lines = {"tx_line": np.array([0, 1, 0], np.int32), "line_warm": np.full(2, WARM, np.uint8)}
    lines |= {"line_coming": np.full(2, WARM, np.uint8)}
    late = run(gpu, body, **lines)
    assert 400 <= late.cycles <= 400 + 8  # the third load waits for what the first one asked for
    assert (late.dram_read_bytes, late.l2_accesses, late.l2_hits) == (0, 12, 12)
    fetched = run(gpu, body, **lines | {"line_warm": np.array([COLD, WARM], np.uint8)})
    assert fetched.dram_read_bytes == 128
    assert fetched.cycles > 400 + 100  # whoever fetches line 1 waits behind line 0, and so does this SM


def test_mshrs_bound_the_loads_in_flight() -> None:
    body: tuple[Entry, ...] = (("load.global", (), 0),) * 6
    lines = {"tx_line": np.full(6, FORCED_DRAM, np.int32)}
    assert run(tiny(l1__mshrs=6), body, **lines).cycles < 420
    assert run(tiny(l1__mshrs=2), body, **lines).cycles == pytest.approx(3 * 400, rel=0.02)


def test_perfect_memory_returns_misses_after_the_l1_latency() -> None:
    gpu = dataclasses.replace(tiny(), perfect_memory=True)
    result = run(gpu, (("load.global", (), 0), ("store.global", (0,), -1)))
    assert result.cycles == 30 + 1 and result.l2_accesses == 0  # the store holds the load/store unit for a cycle


@pytest.mark.parametrize("latency", [63, 64, 65, 4031, 4032, 4050, 4095, 4096, 4097, 8191, 8192])
@pytest.mark.parametrize("lead", [0, 1, 30, 63])
def test_waits_of_any_length_end_on_time(latency: int, lead: int) -> None:
    gpu = tiny(dram__latency=latency, l2__latency=1)
    body: tuple[Entry, ...] = (*((("int32", (), -1),) * lead), ("load.global", (), 0), ("fp32", (0,), -1))
    assert run(gpu, body).cycles == lead + latency + LATENCY["fp32"]


def test_a_perfect_miss_takes_longer_than_a_hit() -> None:
    body: tuple[Entry, ...] = (("load.global", (), 0), ("fp32", (0,), -1))
    perfect = (dataclasses.replace(tiny(memory__miss_latency=extra), perfect_memory=True) for extra in (0, 4))
    fast, slow = (run(gpu, body).cycles for gpu in perfect)
    assert slow == fast + 4


def test_requests_leave_the_sm_one_after_another() -> None:
    body: tuple[Entry, ...] = (("load.global", (), 0), ("fp32", (0,), -1))
    free = run(tiny(l1__sector=32), body).cycles
    assert run(tiny(l1__sector=32, memory__requests_per_cycle=0.5), body).cycles == free + 3 * 2  # four sectors
    assert run(tiny(l1__sector=128, memory__requests_per_cycle=0.5), body).cycles == free  # one request


def test_data_of_pending_sectors_come_back_through_the_same_port() -> None:
    body: tuple[Entry, ...] = (*((("load.global", (), 0),) * 8), ("fp32", (0,), -1))
    one_line = {"l1__sector": 32, "l1__mshr_merges": 99, "memory__queue": 99}
    program = loop_program(tiny(**one_line), body, 1, 1, 1)
    program = dataclasses.replace(program, tx_line=np.zeros_like(program.tx_line))
    free, slow = (both(program, tiny(**one_line, memory__requests_per_cycle=rate)).cycles for rate in (0.0, 0.05))
    assert slow >= free + 20 * 31 - 400  # 32 sectors, 20 cycles each; the first ones come while the miss is waited for


@pytest.mark.parametrize(("perfect", "cycles"), [(False, 200), (True, 34)])
def test_a_block_ends_when_its_stores_are_acknowledged(perfect: bool, cycles: int) -> None:
    body: tuple[Entry, ...] = (("store.global", (), -1),)
    gpu = dataclasses.replace(tiny(memory__miss_latency=4), perfect_memory=perfect)
    acknowledged = dataclasses.replace(gpu, memory=dataclasses.replace(gpu.memory, store_ack=True))
    assert run(gpu, body).block_end[0] == 1
    assert cycles <= run(acknowledged, body).block_end[0] <= cycles + 2


def test_full_queue_throttles() -> None:
    body: tuple[Entry, ...] = (("load.shared", (), -1),) * 6
    result = run(tiny(memory__queue=1), body, access_cycles=np.full(6, 10, np.int32))
    assert result.cycles == 5 * 10 + 9 + 25
    assert result.shared_passes == 60 and result.shared_accesses == 6
    assert reasons(result)["mio_throttle"] == 5 * 9


def test_stores_use_dram_when_the_l2_is_full() -> None:
    gpu = tiny(l2__size=128 * 8, l2__ways=8)
    program = loop_program(gpu, (("store.global", (), -1),) * 20, 1, 1, 1)
    result = both(program, gpu)
    assert result.dram_write_bytes == (20 - 8) * 128 and result.dram_read_bytes == 0


@pytest.mark.parametrize(("sectors", "bursts"), [(0b0001, 1), (0b1001, 1), (0b0111, 2), (0b1111, 2)])
def test_dram_moves_whole_bursts(sectors: int, bursts: int) -> None:
    """Each missing sector is asked for alone; the dirty sectors of a line are written together."""
    gpu = tiny(dram__burst=64, l2__size=128 * 8, l2__ways=8)
    stores = loop_program(gpu, (("store.global", (), -1),) * 20, 1, 1, 1)
    stores = dataclasses.replace(stores, tx_sectors=np.full_like(stores.tx_sectors, sectors))
    assert both(stores, gpu).dram_write_bytes == (20 - 8) * 64 * bursts
    loads = loop_program(gpu, (("load.global", (), -1),) * 20, 1, 1, 1)
    loads = dataclasses.replace(loads, tx_sectors=np.full_like(loads.tx_sectors, sectors))
    read, as_sectors = both(loads, gpu), both(loads, tiny(l2__size=128 * 8, l2__ways=8))
    assert read.dram_read_bytes == 2 * as_sectors.dram_read_bytes > 0


def test_slices_that_camp_make_the_l2_slower() -> None:
    gpu = tiny(l2__bandwidth=4.0)
    program = loop_program(gpu, (("load.global", (), -1),) * 40, 1, 1, 1)
    program = dataclasses.replace(program, line_warm=np.full_like(program.line_warm, WARM))
    even, uneven = both(program, gpu), both(dataclasses.replace(program, l2_camping=1.5), gpu)
    assert uneven.cycles - gpu.l2.latency == pytest.approx(1.5 * (even.cycles - gpu.l2.latency), rel=0.05)


def test_dram_that_opens_rows_for_little_is_slower() -> None:
    gpu = tiny(dram__bandwidth=2e9)
    program = loop_program(gpu, (("load.global", (), -1),) * 40, 1, 1, 1)
    open_rows, opens = both(program, gpu), both(dataclasses.replace(program, dram_rows=2.0), gpu)
    assert opens.cycles - gpu.dram.latency == pytest.approx(2.0 * (open_rows.cycles - gpu.dram.latency), rel=0.05)
    assert opens.dram_read_bytes == open_rows.dram_read_bytes


def test_dirty_share_of_ways_never_used() -> None:
    gpu = tiny()
    program = loop_program(gpu, (("load.global", (), -1),) * 20, 1, 1, 1)
    assert both(program, gpu).dram_write_bytes == 0
    assert both(program, gpu, l2_dirty=0.5).dram_write_bytes == 20 * 128 // 2


def test_updates_of_one_address_follow_one_another() -> None:
    gpu = tiny(memory__atomics_per_cycle=0.5)
    body: tuple[Entry, ...] = (("atomic.global", (), 0), ("fp32", (0,), -1))
    forced = {"tx_line": np.array([FORCED_L2], np.int32), "access_atomic": np.array([32], np.int32)}
    assert run(gpu, body, **forced).cycles == 200 + 31 * 2 + 6


def test_constant_and_shared_are_short_scoreboard() -> None:
    result = run(tiny(), (("load.constant", (), 0), ("load.shared", (), 1), ("fp32", (0, 1), -1)))
    assert result.cycles == 1 + 25 + 6
    assert reasons(result)["short_scoreboard"] == 24


def test_a_finished_block_is_replaced_after_the_launch_delay() -> None:
    result = run(tiny(), (("fp32", (), -1),), blocks=3, resident=2)
    assert result.block_start.tolist() == [0, 0, 6 + 50]
    assert result.block_end.tolist() == [6, 7, 62]
    assert result.cycles == 62


def test_pipes_of_the_sm_are_shared_by_its_schedulers() -> None:
    gpu = tiny(sm__schedulers=4)
    shared = dataclasses.replace(gpu, pipes=gpu.pipes | {"math": Pipe("math", 32, "sm", 1, 1)})
    body: tuple[Entry, ...] = (("fp32", (), -1),) * 8
    assert run(gpu, body, warps=4).cycles == 7 + 6
    assert run(shared, body, warps=4).cycles == 31 + 6


def test_counts() -> None:
    gpu = tiny()
    result = run(gpu, (("fp32", (), -1), ("load.shared", (), -1), ("fp32", (), -1)), warps=2, blocks=3, resident=3)
    assert result.op_issued.tolist() == [12, 6] and result.issued == 18
    assert result.pipe_busy.tolist() == [6, 12]  # lsu, math
    assert result.op_stall.sum() == result.warp_cycles.sum() == 2 * (result.block_end - result.block_start).sum()


def test_budget() -> None:
    with pytest.raises(BudgetError, match="more than 30 cycles"):
        run(tiny(), (("fp32", (0,), 0),) * 10, max_cycles=30)
    assert run(tiny(), (("fp32", (0,), 0),) * 5, max_cycles=30).cycles == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "gtoo"}, "unknown scheduler policy 'gtoo'\n  hint: did you mean 'gto'?"),
        ({"resident_blocks": 0}, "0 resident blocks; at least 1"),
        ({"resident_blocks": 80}, "80 resident warps on 1 schedulers"),
        ({"active_sms": 16}, "16 active SMs; k40 has 15"),
        ({"l2_dirty": 9.0}, "l2_dirty is 9.0; expected 0 to 8"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    program = loop_program(tiny(), (("fp32", (), -1),), 1, 1, 1)
    with pytest.raises(PptError) as caught:
        simulate(program, tiny(), **({"resident_blocks": 1, "active_sms": 1} | options))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"warp_access": np.array([0, 2])}, "warp 0 has 2 memory entries, its path has 1 memory operations"),
        ({"tx_line": np.array([7], np.int32)}, "program: tx_line leaves its range [-3, 1)"),
        ({"op_pipe": np.array([9], np.int32)}, "program: op_pipe leaves its range [0, 2)"),
    ],
)
def test_inconsistent_program(change: dict[str, Any], message: str) -> None:
    program = dataclasses.replace(loop_program(tiny(), (("load.global", (), -1),), 1, 1, 1), **change)
    with pytest.raises(PptError) as caught:
        simulate(program, tiny(), resident_blocks=1, active_sms=1)
    assert message in str(caught.value)
