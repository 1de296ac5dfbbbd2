"""Where launches in a row find the code of their kernel."""

from __future__ import annotations

from ppt_gpu.scale.history.code_history import CodeHistory
from ppt_gpu.sm.program.program import CODE_COLD, CODE_IN_L2, CODE_IN_SM


def test_a_kernel_that_fills_the_chip_finds_its_code_again() -> None:
    history = CodeHistory(4)
    assert history.launch("a", 9) == (CODE_COLD, CODE_COLD)
    assert history.launch("a", 4) == (CODE_IN_SM, CODE_IN_SM)


def test_small_launches_run_on_one_sm_after_another() -> None:
    history = CodeHistory(2)
    assert history.launch("a", 1) == (CODE_COLD, CODE_COLD)
    assert history.launch("a", 1) == (CODE_IN_L2, CODE_IN_L2)  # on the second SM
    assert history.launch("a", 1) == (CODE_IN_SM, CODE_IN_SM)  # on the first one again


def test_another_kernel_takes_the_place_of_the_code_but_finds_constants() -> None:
    history = CodeHistory(2)
    history.launch("a", 2)
    assert history.launch("b", 2) == (CODE_COLD, CODE_IN_SM)
    assert history.launch("a", 2) == (CODE_IN_L2, CODE_IN_SM)
