"""The instruction table: operations, memory, roles."""

from dataclasses import replace
from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.instructions import (
    access_bytes,
    access_kind,
    form,
    is_barrier,
    is_branch,
    is_call,
    is_exit,
    is_memory,
    is_traced,
    memory_space,
    operation,
    vector_length,
)
from ppt_gpu.ptx.module import Imm, Instruction, Mem, Reg
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.ptx.table import TABLE
from ppt_gpu.spec.gpu import COMPUTE_CLASSES, MEMORY_ACCESSES
from ppt_gpu.tasklist.expand import machine_operations

ANY = Instruction(0, "ret", (), None, (), (), 1, 1)
DATA = Path(__file__).parents[2] / "data" / "ptx"

#: base opcodes found in a corpus of 1172 files from public suites and modern front ends
CORPUS = """
add mov ld wmma setp bra st mul fma cvt selp shl and sub shr bar cvta shfl mad not or cp xor vote barrier div
neg ret atom min tex rsqrt abs max clz bmsk popc call rcp membar sqrt ex2 rem nanosleep brev redux bfi
mbarrier trap red sin cos bfind prmt exit lg2 madc sust vabsdiff4 addc activemask copysign match subc suld
fence mma wgmma tcgen05 elect lop3 mapa ldmatrix stmatrix prefetch setmaxnreg dp4a isspacep brx
"""


def of(opcode: str) -> Instruction:
    return replace(ANY, opcode=opcode)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("add.f32", "fp32.add"),
        ("sub.ftz.f32", "fp32.add"),
        ("mul.rn.f64", "fp64.mul"),
        ("fma.rn.f16x2", "fp16.fma"),
        ("fma.rn.bf16", "fp16.fma"),
        ("mad.rn.f32", "fp32.fma"),
        ("min.f32", "fp32.minmax"),
        ("setp.lt.and.f32", "fp32.setp"),
        ("set.lt.u32.f32", "fp32.setp"),
        ("set.lt.f32.s32", "int32.setp"),
        ("selp.f32", "fp32.selp"),
        ("selp.b64", "int32.selp64"),
        ("neg.f32", "fp32.misc"),
        ("add.s32", "int32.add"),
        ("add.s64", "int32.add64"),
        ("neg.s32", "int32.add"),
        ("mul.lo.s32", "int32.mul"),
        ("mul.wide.s32", "int32.mulwide"),
        ("mul.hi.u32", "int32.mulhi"),
        ("mul.lo.s64", "int32.mul64"),
        ("mad.wide.u32", "int32.madwide"),
        ("mad.lo.s32", "int32.mad"),
        ("div.u32", "int32.div"),
        ("rem.s64", "int32.div64"),
        ("div.rn.f32", "fp32.div"),
        ("div.rn.f64", "fp64.div"),
        ("and.b64", "int32.logic64"),
        ("and.pred", "int32.logic"),
        ("lop3.b32", "int32.logic"),
        ("shl.b64", "int32.shift64"),
        ("setp.eq.s64", "int32.setp64"),
        ("mov.u32", "int32.mov"),
        ("mov.f64", "int32.mov64"),
        ("mov.pred", "int32.mov"),
        ("cvt.rn.f32.s32", "fp32.cvt"),
        ("cvt.f64.f32", "fp64.cvt"),
        ("cvt.rzi.s32.f64", "fp64.cvt"),
        ("cvt.u64.u32", "int32.cvt64"),
        ("cvt.s32.s8", "int32.cvt"),
        ("cvt.rn.f16.f32", "fp32.cvt"),
        ("popc.b32", "int32.popc"),
        ("bfe.u32", "int32.misc"),
        ("prmt.b32", "int32.misc"),
        ("rcp.rn.f32", "sfu.rcp"),
        ("rcp.rn.f64", "fp64.rcp"),
        ("sqrt.approx.ftz.f32", "sfu.sqrt"),
        ("rsqrt.approx.f64", "fp64.rsqrt"),
        ("ex2.approx.f32", "sfu.ex2"),
        ("bra.uni", "branch"),
        ("brx.idx", "branch"),
        ("call.uni", "branch"),
        ("ret", "branch.ret"),
        ("trap", "branch.ret"),
        ("bar.sync", "barrier"),
        ("membar.gl", "fence"),
        ("membar.cta", "fence.cta"),
        ("fence.acq_rel.cta", "fence.cta"),
        ("fence.acq_rel.gpu", "fence"),
        ("fence.proxy.async", "fence"),
        ("fence.proxy.async.shared::cta", "fence.cta"),
        ("fence.mbarrier_init.release.cluster", "fence.async"),
        ("mbarrier.arrive.shared.b64", "fence.mbarrier"),
        ("fence.acq_rel.gpu", "fence"),
        ("shfl.sync.bfly.b32", "shuffle.shfl"),
        ("vote.sync.ballot.b32", "shuffle.vote"),
        ("activemask.b32", "shuffle.vote"),
        ("redux.sync.add.s32", "shuffle.redux"),
        ("match.any.sync.b32", "shuffle.match"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor.mma.f16.m16n8k16"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "tensor.mma.f16acc.m16n8k16"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "tensor.mma.f8.m16n8k32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "tensor.mma.f64.m8n8k4"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "tensor.mma.f16.m16n8k16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "tensor.mma.f16.m16n16k16"),
        ("wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16", "tensor.wgmma.n96"),
        ("wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16", "tensor.wgmma.n64"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "load.shared"),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32", "store.global"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "load.shared.matrix"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tensor.tcgen05"),
        ("ld.global.nc.v4.f32", "load.global"),
        ("ld.shared::cta.f32", "load.shared"),
        ("ld.const.f32", "load.constant"),
        ("ld.param.u64", "load.param"),
        ("ld.f32", "load.generic"),
        ("st.local.b32", "store.local"),
        ("atom.shared.add.u32", "atomic.shared"),
        ("red.global.add.f32", "atomic.global"),
        ("tex.2d.v4.f32.f32", "load.texture"),
        ("cp.async.ca.shared.global", "load.global"),
        ("cp.async.bulk.global.shared::cta.bulk_group", "store.global"),
        ("cp.async.commit_group", "fence.async"),
    ],
)
def test_operation(opcode: str, expected: str) -> None:
    assert operation(of(opcode)) == expected


def test_all_corpus_opcodes_are_known() -> None:
    assert set(CORPUS.split()) <= set(TABLE)


def test_operations_belong_to_a_class() -> None:
    """Of every instruction of every fixture; texture, parameter and generic are spaces that later stages resolve."""
    for path in DATA.glob("*.ptx"):
        for kernel in load_module(path).kernels.values():
            for instruction in kernel.instructions:
                head, _, rest = operation(instruction).partition(".")
                assert head in COMPUTE_CLASSES or (head in MEMORY_ACCESSES and rest)


@pytest.mark.parametrize(
    ("opcode", "kind", "space", "size", "traced"),
    [
        ("ld.global.f32", "load", "global", 4, True),
        ("ld.global.v4.f32", "load", "global", 16, True),
        ("ld.const.u8", "load", "constant", 1, False),
        ("ld.param.v2.b64", "load", "param", 16, False),
        ("st.shared.v2.b16", "store", "shared", 4, True),
        ("ld.b128", "load", "generic", 16, True),
        ("atom.global.cas.b64", "atomic", "global", 8, True),
        ("red.shared.add.f32", "atomic", "shared", 4, True),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "load", "shared", 16, True),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", "load", "global", 16, True),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32", "store", "global", 32, True),
        ("add.f32", None, None, 0, False),
    ],
)
def test_memory(opcode: str, kind: str | None, space: str | None, size: int, traced: bool) -> None:
    instruction = of(opcode)
    assert (access_kind(instruction), memory_space(instruction)) == (kind, space)
    assert (access_bytes(instruction), is_traced(instruction)) == (size, traced)
    assert is_memory(instruction) == (kind is not None)


def test_copy_size_is_an_operand() -> None:
    copy = replace(of("cp.async.cg.shared.global"), operands=(Mem(Reg(0)), Mem(Reg(1)), Imm(16)))
    assert access_bytes(copy) == 16
    assert vector_length(of("ld.global.v4.f32")) == 4


def test_control() -> None:
    assert is_branch(of("bra")) and is_branch(of("brx.idx")) and not is_branch(of("call"))
    assert is_exit(of("trap")) and is_call(of("call.uni")) and not is_exit(of("bra"))
    assert is_barrier(of("bar.sync")) and is_barrier(of("barrier.sync.aligned")) and is_barrier(of("bar.red.popc.u32"))
    assert not is_barrier(of("bar.warp.sync")) and not is_barrier(of("bar.arrive"))
    assert not is_barrier(of("barrier.cluster.wait"))


@pytest.mark.parametrize(
    ("opcode", "message", "hint"),
    [
        ("fmaa.rn.f32", "unknown instruction 'fmaa'", "did you mean 'fma'?"),
        ("add.s33", "unknown type '.s33'", "did you mean 'add.s32'?"),
        ("add", "a data type is missing", "write the opcode in full"),
        ("cp.sync", "expected cp.async", "write the opcode in full"),
    ],
)
def test_unknown(opcode: str, message: str, hint: str) -> None:
    with pytest.raises(PptError, match=message) as error:
        form(opcode)
    assert error.value.hint == hint


class Expanding:
    """Stands for an ISA: only `expansion` is asked."""

    def __init__(self, answer: tuple[str, ...] | None) -> None:
        self.answer = answer

    def expansion(self, opcode: str) -> tuple[str, ...] | None:
        assert opcode == "div.rn.f32"
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, ("fp32.div",)), ((), ()), (("sfu.rcp", "fp32.fma"), ("sfu.rcp", "fp32.fma"))],
)
def test_machine_operations(answer: tuple[str, ...] | None, expected: tuple[str, ...]) -> None:
    assert machine_operations(of("div.rn.f32"), Expanding(answer)) == expected  # type: ignore[arg-type]
