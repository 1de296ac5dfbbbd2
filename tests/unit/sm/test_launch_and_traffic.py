"""How blocks and warps start and end, and how reads and writes share DRAM: cycles that can be counted by hand."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.loop_programs import Entry, loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.whole_chip import simulate_chip
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu, Op, Pipe

ONE: tuple[Entry, ...] = (("fp32", (), -1),)  # takes 6 cycles
STORE: tuple[Entry, ...] = (("store.global", (), -1),)


def simple(**host: float) -> Gpu:
    """One scheduler, one unit of every kind; an instruction takes 6 cycles, blocks follow one another after 10."""
    gpu = load_gpu("k40")
    return dataclasses.replace(
        gpu,
        pipes={name: Pipe(name, 32, "scheduler", 1, 1) for name in ("math", "lsu")},
        isa=dataclasses.replace(
            gpu.isa, ops={name: Op(name, "lsu" if "." in name else "math", 6, 1) for name in gpu.isa.ops}
        ),
        sm=dataclasses.replace(gpu.sm, schedulers=1, issue_width=1, policy="lrr"),
        host=dataclasses.replace(gpu.host, **{"block_launch": 10, **host}),  # type: ignore[arg-type]
        memory=dataclasses.replace(gpu.memory, requests_per_cycle=0.0),
    )


def run(
    gpu: Gpu, body: tuple[Entry, ...], *, warps: int = 1, blocks: int = 1, slots: int = 1, sms: int = 1
) -> SmResult:
    program = loop_program(gpu, body, 1, blocks, warps, reuse=True)
    found = [
        simulate(program, gpu, resident_blocks=slots, active_sms=sms, reference=reference)
        for reference in (True, False)
    ]
    assert list(found[0].block_end) == list(found[1].block_end) and (found[0].op_stall == found[1].op_stall).all()
    return found[1]


def test_warps_of_a_block_start_one_after_another() -> None:
    result = run(simple(warp_launch=7), ONE, warps=4)
    assert result.cycles == 3 * 7 + 6
    assert run(simple(), ONE, warps=4).cycles == 3 + 6


def test_slots_take_their_first_blocks_as_the_chip_starts_them() -> None:
    gpu = simple(blocks_per_cycle=0.5)
    result = run(gpu, ONE, blocks=4, slots=3, sms=5)
    # 5 SMs, a block every other cycle: slots begin at 0, 10 and 20; the first is free again at 6 + 10
    assert list(result.block_start) == [0, 10, 16, 20] and list(result.block_end) == [6, 16, 22, 26]


def test_a_whole_chip_starts_blocks_one_after_another() -> None:
    gpu = simple(blocks_per_cycle=0.5, block_launch=100)
    gpu = dataclasses.replace(gpu, sm=dataclasses.replace(gpu.sm, count=3))
    program = loop_program(gpu, ONE, 1, 8, 1, reuse=True)
    for reference in (True, False):
        found = simulate_chip(program, gpu, resident_blocks=2, reference=reference)
        # six slots, one every other cycle; the first is free again at 6 + 100
        assert list(found.block_start) == [0, 2, 4, 6, 8, 10, 106, 108]


def test_a_store_keeps_its_warp() -> None:
    gpu = simple()
    slow = dataclasses.replace(gpu, memory=dataclasses.replace(gpu.memory, store_latency=90))
    assert [int(run(chip, STORE).block_end[0]) for chip in (gpu, slow)] == [1, 90]


@pytest.mark.parametrize("turnaround", [0.0, 0.5])
def test_reads_among_writes_take_dram_longer(turnaround: float) -> None:
    gpu = simple()
    dram = dataclasses.replace(gpu.dram, turnaround=turnaround, bandwidth=gpu.sm.clock, efficiency=1.0, latency=100)
    l2 = dataclasses.replace(gpu.l2, size=128, write="write-through", write_allocate=False)
    gpu = dataclasses.replace(gpu, dram=dram, l2=l2)
    body: tuple[Entry, ...] = (("store.global", (), -1), ("load.global", (), 0)) * 40
    program = loop_program(gpu, body, 1, 1, 1)
    found = [simulate(program, gpu, resident_blocks=1, active_sms=1, reference=plain) for plain in (True, False)]
    assert found[0].cycles == found[1].cycles
    moved = found[1].dram_read_bytes + found[1].dram_write_bytes  # at 1 B a cycle, as many of either
    assert found[1].dram_read_bytes == found[1].dram_write_bytes
    assert found[1].cycles == pytest.approx(moved * (1 + turnaround / 2), rel=0.03)


@pytest.mark.parametrize("turnaround", [0.0, 0.5])
def test_reads_among_writes_take_the_channels_of_a_chip_longer(turnaround: float) -> None:
    gpu = simple()
    dram = dataclasses.replace(gpu.dram, turnaround=turnaround, bandwidth=gpu.sm.clock, efficiency=1.0, latency=100)
    gpu = dataclasses.replace(
        gpu,
        dram=dataclasses.replace(dram, channels=2),
        l2=dataclasses.replace(gpu.l2, size=256, slices=2, interleave=128, write="write-through", write_allocate=False),
        sm=dataclasses.replace(gpu.sm, count=1),
    )
    body: tuple[Entry, ...] = (*(("store.global", (), -1),) * 2, *(("load.global", (), 0),) * 2) * 20
    program = loop_program(gpu, body, 1, 1, 1)
    found = [simulate_chip(program, gpu, resident_blocks=1, reference=plain) for plain in (True, False)]
    assert found[0].cycles == found[1].cycles
    moved = found[1].dram_read_bytes + found[1].dram_write_bytes
    assert found[1].dram_read_bytes == found[1].dram_write_bytes
    assert found[1].cycles == pytest.approx(moved * (1 + turnaround / 2), rel=0.05)
