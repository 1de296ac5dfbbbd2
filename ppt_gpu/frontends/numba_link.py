"""What a numba-cuda kernel calls and its PTX lacks, and numba's linker would add.

Functions of numba's in CUDA C++ (half precision) are compiled here; the barrier of a grid, which is in CUDA's device
runtime, is written in PTX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ppt_gpu.emulator.host.host_calls import HOST_CALLS
from ppt_gpu.frontends.cuda_source import compile_functions

_EXTERN = re.compile(r"^\s*\.extern\s+\.func\s+(?:\([^()]*\)\s*)?([\w$]+)", re.MULTILINE)
_HEAD = re.compile(r"^\s*\.(?:version|target|address_size)\b.*$", re.MULTILINE)
_GRID = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")
#: Every block adds to a word, all together 2^31: its highest bit changes when the last one has come, as it does in the
#: barrier of cooperative_groups.h.
_GRID_BARRIER = """
.global .align 4 .u32 cudaCGBarrier;
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    st.param.b64 [handle], 1;
    ret;
}
.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p; .reg .b32 %r<8>;
    bar.sync 0;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
    setp.ne.u32 %p, %r1, 0;
    @%p bra together;
    mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %nctaid.z;
    mul.lo.u32 %r1, %r1, %r2; mul.lo.u32 %r1, %r1, %r3;
    sub.u32 %r4, 0x80000001, %r1;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
    setp.eq.u32 %p, %r1, 0;
    selp.b32 %r4, %r4, 1, %p;
    membar.gl;
    atom.global.add.u32 %r5, [cudaCGBarrier], %r4;
again:
    ld.volatile.global.u32 %r6, [cudaCGBarrier];
    xor.b32 %r7, %r5, %r6;
    setp.ge.s32 %p, %r7, 0;
    @%p bra again;
    membar.gl;
together:
    bar.sync 0;
    st.param.b32 [error], 0;
    ret;
}
"""


def linked(text: str, sources: Callable[[], Sequence[tuple[str, str]]], capability: tuple[int, int]) -> str:
    """The PTX with the functions that it calls. `sources` are (name, CUDA C++) of those that numba has.

    PptError when they do not compile, or no CUDA compiler is there.
    """
    missing = {name for name in _EXTERN.findall(text) if name not in HOST_CALLS}
    if missing.intersection(_GRID):
        text += _GRID_BARRIER
    if missing.difference(_GRID):
        for name, source in sources():
            text += "\n" + _HEAD.sub("", compile_functions(source, name, capability))
    return text


def sources_of(
    function: Any, signature: Any, capability: tuple[int, int], options: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """(name, CUDA C++) of what a function of this signature calls: what numba's compile_all gives to NVRTC.

    numba itself would ask the driver whether it can load what NVRTC makes.
    """
    from numba import cuda

    compile_all = getattr(cuda, "compile_all", None)
    found: list[tuple[str, str]] = []

    def take(source: str | bytes, name: str, *_: Any, **__: Any) -> tuple[str, str]:
        found.append((name, source.decode() if isinstance(source, bytes) else source))
        return "", ""

    if compile_all is not None:  # else numba has no functions in CUDA C++ yet
        with _instead_of_nvrtc(take):
            compile_all(function, signature, cc=capability, device=False, abi="numba", output="ptx", **options)
    return found


@contextmanager
def _instead_of_nvrtc(compiler: Callable[..., tuple[str, str]]) -> Iterator[None]:
    from numba.cuda.cudadrv import nvrtc

    own = nvrtc.compile
    nvrtc.compile = compiler
    try:
        yield
    finally:
        nvrtc.compile = own
