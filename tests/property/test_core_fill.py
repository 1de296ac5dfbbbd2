"""Records of lines, accesses and transactions: written in one compiled pass as NumPy writes them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.loop_programs import STREAMING, loop_program
from ppt_gpu.sm.chip import staged_l1_state
from ppt_gpu.sm.l2_sharing.camping import slice_of_lines
from ppt_gpu.sm.loop import memory as core_memory
from ppt_gpu.sm.loop.memory import LINE_WORDS, LINES, MemoryArrays
from ppt_gpu.sm.program import machine as core_machine
from ppt_gpu.sm.program.machine import even_sets, machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu


def random_program(gpu: Gpu, random: np.random.Generator, seed: int) -> Program:
    program = loop_program(gpu, STREAMING, 8, 4, 2)
    lines, accesses = len(program.line_address), len(program.access_cycles)
    return dataclasses.replace(
        program,
        line_address=np.sort(random.integers(0, 1 << 40, lines).astype(np.uint64)) * np.uint64(128),
        line_warm=random.integers(0, 16, lines).astype(np.uint8),
        line_coming=random.integers(0, 16, lines).astype(np.uint8) if seed % 2 else np.zeros(0, np.uint8),
        access_cycles=random.integers(1, 1 << 20, accesses).astype(np.int32),
        access_atomic=random.integers(0, 32, accesses).astype(np.int32) if seed % 3 else np.zeros(0, np.int32),
        tx_line=random.integers(-3, lines, len(program.tx_line)).astype(np.int32),
        tx_sectors=random.integers(1, 16, len(program.tx_line)).astype(np.uint8),
        line_bytes=96 if seed % 5 == 0 else 128,
    )


@pytest.mark.parametrize("seed", range(24))
def test_the_same_records(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, gpu = np.random.default_rng(seed), load_gpu("v100")
    program = random_program(gpu, random, seed)
    machine = dataclasses.replace(
        machine_of(program, gpu, 8, None, 0.0, None),
        l1_sets=int(random.choice([0, 1, 2, 24, 32, 48, 64, 1000])),
        l2_sets=int(random.choice([0, 1, 7, 25, 64, 193])),
        l1_index=int(random.integers(3)),
    )
    lines = len(program.line_address)
    sets = random.integers(0, 9, lines).astype(np.int32) if seed % 4 == 0 else None
    found = []
    for fill_from in (0, 1 << 40):
        monkeypatch.setattr(core_memory, "FILL_FROM", fill_from)
        found.append(MemoryArrays(program, machine, sets))
    compiled, plain = found
    assert (compiled.access == plain.access).all()
    assert (compiled.tx == plain.tx).all()
    records = (each.mem[int(each.mem[LINES]) :][: lines * LINE_WORDS].tolist() for each in found)
    assert next(records) == next(records)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_on_a_chip(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, gpu = np.random.default_rng(seed), load_gpu(("k40", "v100")[seed % 2])
    gpu = dataclasses.replace(gpu, l2=dataclasses.replace(gpu.l2, slices=int(random.choice([1, 3, 16]))))
    program = random_program(gpu, random, seed)
    machine = machine_of(program, gpu, 8, None, 0.0, None)
    machine = dataclasses.replace(machine, l1_sets=int(random.choice([0, 1, 24, 64])))
    slice_of = slice_of_lines(program.line_address, gpu, program.line_bytes)
    found = []
    for fill_from in (0, 1 << 40):
        for module in (core_machine, staged_l1_state):
            monkeypatch.setattr(module, "FILL_FROM", fill_from)
        sets = even_sets(program, 7, slice_of), even_sets(program, 7, slice_of, slice(3, 40))
        found.append([each.tolist() for each in (*sets, staged_l1_state.transactions(program, machine))])
    assert found[0] == found[1]
