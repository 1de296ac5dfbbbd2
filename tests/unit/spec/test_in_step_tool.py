"""The experiment behind `l2.in_step` of the A100: SMs that read one set in step at slices of an L2."""

from dataclasses import replace

import pytest

from ppt_gpu.spec import load_gpu


@pytest.fixture
def tool(hardware_tool):
    return hardware_tool("in_step")


def chip(tool, name: str):
    return next(chip for chip in tool.CHIPS if chip.name == name)


def test_the_a100_has_what_is_simulated(tool) -> None:
    a100 = chip(tool, "A100")
    share = tool.rate(a100, own=False)[0] / tool.rate(a100, own=True)[0]
    assert share == pytest.approx(load_gpu("a100").l2.in_step, abs=0.01)


def test_one_slice_is_never_idle_in_step(tool) -> None:
    one = replace(chip(tool, "A100"), slices=1, slice_bytes=64.0)
    assert tool.rate(one, own=False)[0] == pytest.approx(64 * 1.41 * 2, rel=0.01)


def test_coalesced_reads_take_the_slices_once(tool) -> None:
    plain, merged = chip(tool, "H100 PCIe"), chip(tool, "H100 PCIe, 4 as one")
    (slow, one), (fast, several) = tool.rate(plain, own=False), tool.rate(merged, own=False)
    assert one == pytest.approx(1.0, abs=0.01) and 3.0 < several <= 4.0
    assert slow < tool.rate(plain, own=True)[0] < fast
