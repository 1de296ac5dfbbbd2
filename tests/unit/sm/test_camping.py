"""Slices of the L2 that get more than their share of the requests: in which order SMs ask, and how long it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.sm.accesses.access import Accesses
from ppt_gpu.sm.l2_sharing.camping import Requests, beyond_l1, camping, few_lines, in_order, joined, may_camp
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.spec.gpu import Gpu

SMS = 4


def chip(**changes: object) -> Gpu:
    gpu = make_gpu()
    known = {"slices": 12, "interleave": 256, "slice_index": "linear", "waiting": 768}
    return replace(gpu, l2=replace(gpu.l2, bandwidth=200.0, slice_bandwidth=32.0, **(known | changes)))


def requests(address: np.ndarray) -> Requests:
    """[SMs, n] one sector each."""
    sm = np.repeat(np.arange(len(address)), address.shape[1])
    return loads(address.ravel(), sm)


def loads(address: np.ndarray, sm: np.ndarray) -> Requests:
    """[T] loads of one sector, in one wave."""
    nothing = np.zeros(len(sm), np.int64)
    return Requests(address.astype(np.uint64), np.ones(len(sm), np.uint8), sm, nothing, nothing == 0)


def test_addresses_one_after_another_do_not_camp() -> None:
    address = (np.arange(SMS)[:, None] * 4096 + np.arange(4096)) * 32
    assert camping(requests(address), chip(), 32) == pytest.approx(1.0, abs=0.02)


def test_a_stride_of_the_interleaving_times_the_slices_stays_on_one() -> None:
    """One slice of 32 B a cycle serves what 200 B a cycle could bring."""
    address = np.arange(SMS * 512).reshape(SMS, 512) * 256 * 12
    assert camping(requests(address), chip(), 32) == pytest.approx(200 / 32)
    four = camping(requests(address // 4), chip(), 32)
    assert four == pytest.approx(200 / 32 / 4, rel=0.01)  # four slices; windows do not end with a turn of all of them


@pytest.mark.parametrize(("run", "expected"), [(8, 1.0), (16_384, 200 / 32)])
def test_queues_even_out_short_runs_on_one_slice(run: int, expected: float) -> None:
    """All SMs ask one slice `run` times, then the next."""
    address = np.tile(np.arange(16_384) // run % 12 * 256, (SMS, 1))
    assert camping(requests(address), chip(), 32) == pytest.approx(expected, rel=0.01)


def test_sms_on_different_slices_do_not_camp() -> None:
    address = np.tile(np.arange(12)[:, None] * 256, (1, 512))
    assert camping(requests(address), chip(), 32) == 1.0
    assert camping(requests(address[:1].repeat(12, axis=0)), chip(), 32) == pytest.approx(200 / 32)
    assert camping(joined(requests(address[:6]), requests(address[6:])), chip(), 32) == 1.0


def test_hashed_and_unknown_slices_do_not_camp() -> None:
    assert may_camp(chip())
    for changes in ({"slice_index": "hash"}, {"waiting": 0}, {"slices": 1}):
        assert not may_camp(chip(**changes))
    assert not may_camp(replace(chip(), perfect_memory=True))


def test_resident_blocks_ask_in_turn_warp_by_warp() -> None:
    """Blocks 0, 1, 2 of two warps with two accesses each; two are resident. Block 3 runs on another SM."""
    address = np.arange(16, dtype=np.uint64)
    found = Accesses(np.arange(17), np.ones(16, np.int32), np.ones(16, np.int32), address, np.full(16, 0b11, np.uint8))
    load = np.arange(16) % 4 < 2
    asked = in_order(found, load, np.arange(0, 17, 4), np.array([0, 0, 0, 1]), 2, 2)
    assert asked.address.tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]
    assert asked.sm.tolist() == [0] * 12 + [1] * 4 and set(asked.sectors.tolist()) == {0b11}
    assert asked.wave.tolist() == [0] * 8 + [1] * 4 + [0] * 4 and (asked.load == (asked.address % 4 < 2)).all()


def test_what_the_l1_of_an_sm_holds_is_no_request() -> None:
    """A line is in the L1 of the SM that read it, until four others have come; stores go on, and make no room."""
    gpu = chip()
    gpu = replace(gpu, l1=replace(gpu.l1, size=4 * 128, sector=128, write="write-through", caches_global=True))
    lines = np.array([0, 0, 1, 2, 3, 0, 4, 5, 6, 1, 0, 0])
    sm = np.array([0] * 11 + [1])
    left = beyond_l1(loads(lines * 128, sm), gpu, 128, 32)
    assert (left.address // 128).tolist() == [0, 1, 2, 3, 4, 5, 6, 1, 0, 0]
    assert set(left.sectors.tolist()) == {0b1111}  # whole sectors of the L1
    stores = replace(loads(np.zeros(3), np.zeros(3, np.int64)), load=np.array([True, False, True]))
    assert len(beyond_l1(stores, gpu, 128, 32).sm) == 2
    assert len(beyond_l1(stores, replace(gpu, l1=replace(gpu.l1, write="write-evict")), 128, 32).sm) == 3
    assert len(beyond_l1(stores, replace(gpu, l1=replace(gpu.l1, caches_global=False)), 128, 32).sm) == 3


def test_sms_get_out_of_step_the_longer_their_blocks_run() -> None:
    """All ask one slice after another: at the beginning of a wave together, later on several at a time."""
    address = np.tile(np.arange(1 << 17) // 512 % 12 * 256, (SMS, 1))
    long = requests(address)
    short = replace(long, wave=np.tile(np.arange(1 << 17) // 4096, SMS))
    assert camping(short, chip(), 32) > 1.5 * camping(long, chip(), 32) > 1.5


KERNEL = code(("ld.global.f32", [0], [1]))


@pytest.mark.parametrize(
    ("stride", "index", "expected"), [(3072, "linear", 200 / 32), (256, "linear", 1), (3072, "hash", 1)]
)
def test_lowering_asks_all_other_sms(stride: int, index: str, expected: float) -> None:
    gpu = chip(slice_index=index)

    def trace(ids: list[int]) -> object:
        lines = [([0], [(stride * block, UNIT, 0)]) for block in ids]
        return make_trace(KERNEL, lines, blocks=ids)  # type: ignore[arg-type]

    def lowered(others: list[int]) -> float:
        neighbours = global_accesses(KERNEL, trace(others))  # type: ignore[arg-type]
        program = lower_trace(
            KERNEL, trace([0, SMS]), gpu, launch=make_launch(32, 64), active_sms=SMS, neighbours=neighbours, resident=2
        )  # type: ignore[arg-type]  # fmt: skip
        return program.l2_camping

    assert lowered([1, 2, 3, 5, 6, 7]) == pytest.approx(expected)
    assert lowered([1, 5]) == 1.0  # too few SMs are known


@pytest.mark.parametrize("index", ["linear", "hash"])
def test_few_lines_of_all_sms_keep_their_slices_busy(index: str) -> None:
    """Two lines of one chunk are one slice's, if others use them; what an SM has for itself is spread evenly."""
    gpu, address = chip(slice_index=index), np.array([0, 128], np.uint64)

    def slower(sectors: list[float], users: list[float]) -> float:
        of_lines = np.array(sectors), np.array(users)
        return few_lines(address, *of_lines, gpu, 128, 32, SMS)

    assert slower([500.0, 500.0], [4.0, 4.0]) == pytest.approx(200 / 32)
    assert slower([500.0, 500.0], [1.0, 1.0]) == 1.0
    half = slower([500.0, 500.0], [4.0, 1.0])
    assert half == pytest.approx((1 / 2 + 1 / 2 / 12) * 200 / 32)
    assert slower([0.0, 0.0], [4.0, 4.0]) == 1.0
    gpu = replace(gpu, perfect_memory=True)
    assert slower([500.0, 500.0], [4.0, 4.0]) == 1.0
