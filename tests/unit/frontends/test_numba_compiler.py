"""numba-cuda without its compiler: what is missing, in one message."""

import sys
from types import SimpleNamespace

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends import numba_kernel


def test_a_compiler_that_is_not_found_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba-cuda looks for it when it is first asked, and then raises an error of yet another package."""

    def absent() -> None:
        raise RuntimeError('Failure finding "libnvrtc.so.13"\nsearched: everywhere')

    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.nvvm", SimpleNamespace(get_supported_ccs=absent))
    with pytest.raises(PptError, match="does not find its compiler: Failure finding") as caught:
        numba_kernel._known()
    assert "ppt_gpu[numba]" in str(caught.value.hint)


def test_what_the_compiler_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(get_supported_ccs=lambda: ((8, 0), (9, 0)))
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.nvvm", known)
    assert numba_kernel._known() == ("80", "90")
