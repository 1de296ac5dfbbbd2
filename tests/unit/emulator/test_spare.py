"""Memory that arrays leave behind serves later ones, as long as it is not in use."""

import numpy as np
import pytest

from ppt_gpu.emulator.trace import buffer_pool as spare


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch):
    monkeypatch.setattr(spare, "_waiting", [])


def test_memory_waits_until_its_last_view_is_gone():
    array = spare.empty(1 << 20, np.int64)
    assert array.shape == (1 << 20,) and array.dtype == np.int64 and array.flags.writeable
    address, view = array.ctypes.data, array.reshape(2, -1)[1:].view(np.uint32)
    view[:] = 7
    del array
    assert spare.waiting_bytes() == 0
    other = spare.empty(1 << 20, np.int64)
    assert other.ctypes.data != address and (view == 7).all()
    del view
    assert spare.waiting_bytes() == 8 << 20
    again = spare.empty(3 << 20, np.uint16)
    assert again.ctypes.data == address and again.shape == (3 << 20,) and spare.waiting_bytes() == 0


def test_the_smallest_that_fits_and_is_not_far_too_large():
    arrays = {size: spare.empty(size << 20, np.uint8) for size in (64, 8, 16)}
    assert all(array.ctypes.data % spare.PAGE == 0 for array in arrays.values())
    places = {size: array.ctypes.data for size, array in arrays.items()}
    arrays.clear()
    found = spare.empty(7 << 20, np.uint8)
    assert found.ctypes.data == places[8]
    larger = spare.empty(7 << 20, np.uint8)
    assert larger.ctypes.data == places[16]
    none = spare.empty(7 << 20, np.uint8)
    assert none.ctypes.data != places[64] and spare.waiting_bytes() == 64 << 20


def test_small_arrays_come_from_the_allocator():
    array = spare.empty(spare.LEAST - 1, np.uint8)
    assert array.base is None
    assert spare.empty(0, np.int64).shape == (0,)


def test_no_more_waits_than_is_allowed(monkeypatch):
    monkeypatch.setattr(spare, "MOST", 20 << 20)
    first, second = spare.empty(8 << 20, np.uint8), spare.empty(16 << 20, np.uint8)
    place = second.ctypes.data
    del first, second
    assert spare.waiting_bytes() == 16 << 20 and spare.empty(16 << 20, np.uint8).ctypes.data == place
