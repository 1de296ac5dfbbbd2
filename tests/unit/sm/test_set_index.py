"""The set of a line, against the same with Python's integers, one line at a time."""

from dataclasses import replace

import numpy as np
import pytest

from ppt_gpu.sm.bench_programs import STREAMING, loop_program
from ppt_gpu.sm.core_machine import set_index
from ppt_gpu.spec import load_gpu

ADDRESSES = np.random.default_rng(7).integers(0, 1 << 64, 200, np.uint64)


def plain(address: int, line: int, sets: int, hashed: bool, sampled: bool) -> int:
    number = address // line
    if not hashed:
        return number % sets
    if sampled or sets & (sets - 1):
        return ((number * 0x9E3779B97F4A7C15 % (1 << 64)) >> 32) % sets
    bits, folded = max(sets.bit_length() - 1, 1), 0
    while number:
        folded ^= number % (1 << bits)
        number >>= bits
    return folded % sets


@pytest.mark.parametrize("line", [32, 96, 128])
@pytest.mark.parametrize("sets", [1, 2, 32, 48, 64, 1024, 4096])
@pytest.mark.parametrize(("hashed", "sampled"), [(False, False), (True, False), (True, True)])
def test_set_of_every_line(line: int, sets: int, hashed: bool, sampled: bool) -> None:
    program = loop_program(load_gpu("k40"), STREAMING, 1, 1, 1)
    program = replace(program, line_address=ADDRESSES, line_bytes=line)
    expected = [plain(address, line, sets, hashed, sampled) for address in ADDRESSES.tolist()]
    assert set_index(program, sets, hashed, sampled).tolist() == expected


def test_no_cache() -> None:
    program = loop_program(load_gpu("k40"), STREAMING, 1, 1, 1)
    assert not set_index(program, 0, True).any()
