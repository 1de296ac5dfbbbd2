"""mma, mma.sp and wmma.mma: fragments from registers to memory, one helper function, fragments back."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.matrix_form import TENSOR_MEMORY, Product, product_of
from ppt_gpu.emulator.forms.matrix_layout import Fragment
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.matrix.matrix_code import key_of, row_bytes
from ppt_gpu.emulator.llvm.text import vec
from ppt_gpu.emulator.memory.warp_context import Fault
from ppt_gpu.ptx.module import Imm, Instruction, Operand, items_of


@emits("mma")
def emit_mma(e: Emitter, i: Instruction) -> None:
    """D = A B + C, with the metadata and the selector of a sparse A behind C."""
    product = form_of(i)
    d, a, b, c, *rest = i.operands
    need_whole_warp(e)
    parts = ((a, product.fragment_a()), (b, product.fragment_b()), (c, product.fragment_c(product.c)))
    rows = e.wide(sum(row_bytes(fragment) for _, fragment in parts) + 128)
    at = 0
    for operand, fragment in parts:
        at = put_registers(e, items_of(operand)[: fragment.registers], fragment.width, rows, at)
    if product.sparse:
        put_registers(e, rest[:1], 32, rows, at)
    e.helper(key_of(product), "void", ("ptr", rows))
    take_registers(e, items_of(d), product.fragment_c(product.d), rows)


@emits("tcgen05")
def emit_tensor_memory(e: Emitter, i: Instruction) -> None:
    """Refused where a thread reaches it; parsed and timed as tensor work."""
    raise Unsupported(TENSOR_MEMORY)


def form_of(i: Instruction) -> Product:
    """The product of an instruction; Unsupported with the reason otherwise."""
    selector = i.operands[5] if len(i.operands) > 5 else None
    try:
        return product_of(i.opcode, int(selector.value) if isinstance(selector, Imm) else 0)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None


def put_registers(e: Emitter, operands: Sequence[Operand], width: int, rows: str, at: int) -> int:
    """Store registers one after another at `rows` + `at` bytes. Returns the offset behind them."""
    for operand in operands:
        e.do(f"store {vec(f'i{width}')} {e.read(operand, f'b{width}')}, ptr {e.offset_pointer(rows, at)}, align 8")
        at += 4 * width
    return at


def take_registers(e: Emitter, operands: Sequence[Operand], fragment: Fragment, rows: str) -> None:
    """Write the registers of a fragment from `rows`; those beyond the fragment repeat it."""
    kind = f"i{fragment.width}"
    values = []
    for r in range(min(fragment.registers, len(operands))):
        values.append(e.op(f"load {vec(kind)}, ptr {e.offset_pointer(rows, 4 * fragment.width * r)}, align 8"))
    for r, operand in enumerate(operands):
        e.write(operand, f"b{fragment.width}", values[r % fragment.registers])


def need_whole_warp(e: Emitter) -> None:
    """A fault unless all 32 lanes execute, or none."""
    some = e.i32("icmp ne", e.exec, 0)
    part = e.op(f"and i1 {some}, {e.i32('icmp ne', e.exec, -1)}")
    e.fault(Fault.PARTIAL, e.op(f"select i1 {part}, i32 {e.exec}, i32 0"))
