"""printf against the C library, and the heap of malloc against a plain model."""

import ctypes
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.host.printf import format_text
from ppt_gpu.emulator.memory.device_heap import HEADER, allocate, release


def printed(pattern, *values):
    """The text for arguments given as (struct code, value), laid out as the caller does; "s" is a string."""
    data, strings = bytearray(), {}
    for code, value in values:
        if code == "s":
            strings[len(strings) + 1] = value
            code, value = "Q", len(strings)
        raw = struct.pack("<" + code, value)
        data += bytes(-len(data) % len(raw)) + raw
    return format_text(pattern, lambda at, size: int.from_bytes(data[at : at + size], "little"), strings.get)


def in_c(pattern, value):
    """What the C library prints."""
    room = ctypes.create_string_buffer(200)
    argument = ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int(value)
    ctypes.CDLL(None).snprintf(room, ctypes.c_size_t(200), pattern.encode(), argument)
    return room.value.decode()


@pytest.mark.parametrize("flags", ["", "-", "+", " ", "0", "#", "+0", "-#", "0#"])
@pytest.mark.parametrize("width", ["", "12"])
@pytest.mark.parametrize("precision", ["", ".0", ".5"])
def test_numbers_as_c_prints_them(flags, width, precision):
    form = f"%{flags}{width}{precision}"
    for value in (0, 7, -123456):
        assert printed(form + "d", ("i", value)) == (in_c(form + "d", value), 1)
    for value in (0, 0x1F, -1):
        for kind in "uxX":
            assert printed(form + kind, ("i", value)) == (in_c(form + kind, value), 1)
    for value in (0.0, -0.0, -1.5, 3.14159e10, 2.5e-7, float("inf"), float("-inf")):
        for kind in "feEgGa":
            assert printed(form + kind, ("d", value)) == (in_c(form + kind, value), 1)


def test_arguments_lie_one_behind_the_other():
    values = (("i", -1), ("q", -(1 << 40)), ("i", ord("x")), ("s", "word"), ("d", 0.5), ("i", 6), ("I", 9))
    assert printed("%d|%lld|%c|%.2s|%g|%*u|%%", *values) == ("-1|-1099511627776|x|wo|0.5|     9|%", 7)
    assert printed("%a %a %.1a", ("d", 1.0), ("d", -0.15625), ("d", 1.96875)) == ("0x1p+0 -0x1.4p-3 0x2.0p+0", 3)


def test_what_printf_does_not_know():
    with pytest.raises(PptError, match="unknown conversion '%y'"):
        printed("%y")
    with pytest.raises(PptError, match="asks for more than 10000 characters"):
        printed("%999999d", ("i", 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=80))
def test_blocks_of_the_heap_never_overlap(steps):
    heap, base, live = np.zeros(4096, np.uint8), 1 << 20, {}
    for give, number in steps:
        if give:
            pointer = allocate(heap, base, number)
            if not pointer:
                continue
            assert pointer % HEADER == 0 and base < pointer and pointer + number <= base + len(heap)
            assert all(pointer + number <= p or p + n <= pointer for p, n in live.items())
            live[pointer] = number
            heap[pointer - base : pointer - base + number] = 0xAB
        elif live:
            pointer = sorted(live)[number % len(live)]
            del live[pointer]
            release(heap, base, pointer)
    for pointer in live:
        release(heap, base, pointer)
    assert allocate(heap, base, 4096 - 2 * HEADER)  # all of it is one block again


def test_bad_pointers_and_damage():
    heap = np.zeros(1024, np.uint8)
    first = allocate(heap, 0, 100)
    release(heap, 0, 0)
    for wrong in (first + 16, 8, 1 << 30):
        with pytest.raises(PptError, match="which malloc did not give"):
            release(heap, 0, wrong)
    release(heap, 0, first)
    with pytest.raises(PptError, match="free already"):
        release(heap, 0, first)
    assert allocate(heap, 0, 2000) == 0
    allocate(heap, 0, 100)
    heap[:] = 0xFF
    heap[:16] = 0
    with pytest.raises(PptError, match="the heap is damaged"):
        allocate(heap, 0, 16)
