"""The set of a line, against the same with Python's integers, one line at a time."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.loop_programs import STREAMING, loop_program
from ppt_gpu.sm.program.fill import INDEXES
from ppt_gpu.sm.program.machine import even_sets, set_index
from ppt_gpu.spec import load_gpu

ADDRESSES = np.random.default_rng(7).integers(0, 1 << 64, 200, np.uint64)


def plain(address: int, line: int, sets: int, index: str) -> int:
    number = address // line
    if index == "linear":
        return number % sets
    if index == "fermi":  # bits of an address of a line of 128 B
        folded = [address // line * 128 >> bit & 1 for bit in (13, 14, 15, 17, 19)]
        return (number % 64 ^ sum(bit << place for place, bit in enumerate(folded))) % sets
    if sets & (sets - 1):
        return ((number * 0x9E3779B97F4A7C15 % (1 << 64)) >> 32) % sets
    bits, folded = max(sets.bit_length() - 1, 1), 0
    while number:
        folded ^= number % (1 << bits)
        number >>= bits
    return folded % sets


@pytest.mark.parametrize("line", [32, 96, 128])
@pytest.mark.parametrize("sets", [1, 2, 32, 48, 64, 1024, 4096])
@pytest.mark.parametrize("index", INDEXES)
def test_set_of_every_line(line: int, sets: int, index: str) -> None:
    program = loop_program(load_gpu("k40"), STREAMING, 1, 1, 1)
    program = replace(program, line_address=ADDRESSES, line_bytes=line)
    expected = [plain(address, line, sets, index) for address in ADDRESSES.tolist()]
    assert set_index(program, sets, INDEXES.index(index)).tolist() == expected


@pytest.mark.parametrize("slices", [0, 1, 7])
def test_sets_of_the_l2_are_filled_evenly_in_each_slice(slices: int) -> None:
    program = replace(loop_program(load_gpu("k40"), STREAMING, 1, 1, 1), line_address=ADDRESSES)
    slice_of = np.random.default_rng(3).integers(0, max(slices, 1), len(ADDRESSES), np.int32)
    at = even_sets(program, 6, slice_of if slices else None)
    for number in range(max(slices, 1)):
        mine = at[slice_of == number]
        for first in range(0, len(mine) - 5, 6):
            assert sorted(mine[first : first + 6].tolist()) == [0, 1, 2, 3, 4, 5]
        begins = mine[::6].tolist()
        assert len(set(begins)) > 1  # so that lines a regular distance apart do not all meet in one set
    parts = [even_sets(program, 6, slice_of if slices else None, slice(k, k + 64)) for k in range(0, 200, 64)]
    assert np.concatenate(parts).tolist() == at.tolist()


def test_a_chain_as_large_as_the_l2_finds_all_of_it() -> None:
    """Each set has as many lines as ways, also where neither is a power of two."""
    program = replace(loop_program(load_gpu("k40"), STREAMING, 1, 1, 1), line_address=ADDRESSES)
    assert np.bincount(even_sets(program, 25), minlength=25).tolist() == [8] * 25


def test_no_cache() -> None:
    program = loop_program(load_gpu("k40"), STREAMING, 1, 1, 1)
    assert not set_index(program, 0, True).any()
    assert not even_sets(program, 0).any()
