"""What a matrix instruction computes: its shape, element types, layouts and options, read from the opcode.

Covers mma, mma.sp and wmma.mma (PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate Instructions") and wgmma.mma_async.
Combinations that the ISA does not have raise ValueError with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ppt_gpu.emulator.forms import matrix_layout as layouts
from ppt_gpu.emulator.forms.matrix_layout import Fragment

#: element type -> bits in a register; the 6- and 4-bit floats of .kind::f8f6f4 fill bytes
ELEMENT_BITS: dict[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8,
}  # fmt: skip
NARROW_FLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
#: why tcgen05 is not executed
TENSOR_MEMORY = "it needs tensor memory and its allocation, which are not modelled"
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
#: multiplicand type -> shapes of mma.sync and of wmma.mma
_HALVES = ("m16n8k8", "m16n8k16")
_BYTES, _NIBBLES = ("m8n8k16", "m16n8k16", "m16n8k32"), ("m8n8k32", "m16n8k32", "m16n8k64")
_BITS, _EIGHTS = ("m8n8k128", "m16n8k128", "m16n8k256"), ("m16n8k16", "m16n8k32")
MMA_SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m8n8k4", *_HALVES), "bf16": _HALVES, "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    "s8": _BYTES, "u8": _BYTES, "s4": _NIBBLES, "u4": _NIBBLES, "b1": _BITS,
    **dict.fromkeys(("e4m3", "e5m2"), _EIGHTS), **dict.fromkeys(("e3m2", "e2m3", "e2m1"), ("m16n8k32",)),
}  # fmt: skip
SPARSE_SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n8k16", "m16n8k32"), "bf16": ("m16n8k16", "m16n8k32"), "tf32": ("m16n8k8", "m16n8k16"),
    **dict.fromkeys(("s8", "u8"), ("m16n8k32", "m16n8k64")), **dict.fromkeys(("s4", "u4"), ("m16n8k64", "m16n8k128")),
    **dict.fromkeys(NARROW_FLOATS, ("m16n8k64",)),
}  # fmt: skip
_SIXTEENS = ("m16n16k16", "m8n32k16", "m32n8k16")
WMMA_SHAPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _SIXTEENS), "tf32": ("m16n16k8",), "f64": ("m8n8k4",),
    "s4": ("m8n8k32",), "u4": ("m8n8k32",), "b1": ("m8n8k128",),
}  # fmt: skip


@dataclass(frozen=True)
class Product:
    """D = A B + C. Everything that the arithmetic needs; hashable, so that a helper function is made once each."""

    m: int
    n: int
    k: int
    a: str  # element types
    b: str
    c: str
    d: str
    saturate: bool = False
    bits: str = ""  # "xor" or "and" of one-bit products
    sparse: bool = False
    selector: int = 0  # of the lanes that hold the metadata
    a_layout: str = "row"  # of m8n8k4.f16
    b_layout: str = "col"

    @property
    def quad(self) -> bool:
        """m8n8k4.f16: four products at once."""
        return self.a == "f16" and (self.m, self.k) == (8, 4)

    @property
    def kind(self) -> str:
        """What is summed: "f32", "f64", "s32" or "b1" (counts of set bits, 32 at a time)."""
        if self.a in ("f64", "b1"):
            return self.a
        return "s32" if self.a in ("s8", "u8", "s4", "u4") else "f32"

    @property
    def steps(self) -> int:
        """Products summed for an element of D; the bits of a 32-bit word count as one."""
        return self.k // (32 if self.a == "b1" else 2 if self.sparse else 1)

    @property
    def depth(self) -> int:
        """Rows of the dense B."""
        return self.k // 32 if self.a == "b1" else self.k

    def fragment_a(self) -> Fragment:
        if self.quad:
            return layouts.quad_a(self.a_layout)
        return layouts.fragment_a(self.m, self.steps, _operand_bits(self.a))

    def fragment_b(self) -> Fragment:
        if self.quad:
            return layouts.quad_b(self.b_layout)
        return layouts.fragment_b(self.n, self.depth, _operand_bits(self.b))

    def fragment_c(self, kind: str) -> Fragment:
        return (
            layouts.quad_c(ELEMENT_BITS[kind]) if self.quad else layouts.fragment_c(self.m, self.n, ELEMENT_BITS[kind])
        )

    @property
    def selectors(self) -> int:
        """How many values the selector may have: the metadata of each lie in 4, 2 or 1 of four neighbouring lanes."""
        narrow = self.a in ("s8", "u8", "s4", "u4", *NARROW_FLOATS)
        chunks = self.k // self.chunk[0]
        return 4 // (chunks // 8 * 2 if narrow else chunks // 4)

    @property
    def chunk(self) -> tuple[int, int]:
        """(places in a sparse chunk of A that one index of the metadata counts in, elements each index brings)."""
        if self.a == "tf32":
            return 2, 1
        return (8, 2) if self.a in ("s4", "u4") else (4, 1)


def _operand_bits(kind: str) -> int:
    return 32 if kind == "b1" else ELEMENT_BITS[kind]


def shape_of(modifiers: tuple[str, ...]) -> tuple[int, int, int]:
    """(m, n, k) of the first modifier that is a shape. ValueError without one."""
    for modifier in modifiers:
        found = _SHAPE.fullmatch(modifier)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    raise ValueError("a shape such as m16n8k16 is missing")


@lru_cache(maxsize=4096)
def product_of(opcode: str, selector: int = 0) -> Product:
    """The product of an mma.sync, mma.sp or wmma.mma opcode. ValueError for a combination that the ISA lacks."""
    base, *modifiers = opcode.split(".")
    known = tuple(modifiers)
    if any(word.startswith(("block_scale", "kind::mx")) for word in known):
        raise ValueError("block-scaled products are not executed: they would need the scale vectors of A and B")
    m, n, k = shape_of(known)
    types = [word for word in known if word in ELEMENT_BITS]
    sparse = any(word == "sp" or word.startswith("sp::") for word in known)
    shapes = WMMA_SHAPES if base == "wmma" else SPARSE_SHAPES if sparse else MMA_SHAPES
    if len(types) == 2 and base == "wmma":  # wmma.mma.….f32.f16: D and C, the multiplicands are f16
        types = [types[0], "f16", "f16", types[1]]
    if len(types) == 2 and base == "mma":
        types = [types[0], "f16", "f16", types[1]]
    if len(types) == 1 and types[0] == "f64":
        types *= 4
    if len(types) != 4:
        raise ValueError("it needs the types of D, A, B and C")
    d, a, b, c = types
    shape = f"m{m}n{n}k{k}"
    if shape not in shapes.get(a, ()):
        raise ValueError(f"there is no {shape} for {a}")
    if _family(a) != _family(b):
        raise ValueError(f"{a} cannot be multiplied by {b}")
    allowed = {"f64": ("f64",), "i8": ("s32",), "i4": ("s32",), "b1": ("s32",)}.get(_family(a), ("f16", "f32"))
    if a in ("bf16", "tf32"):
        allowed = ("f32",)
    if c not in allowed or d not in allowed:
        raise ValueError(f"{a} cannot be summed in {d if d not in allowed else c}")
    order = [word for word in known if word in ("row", "col")]
    product = Product(
        m, n, k, a, b, c, d,
        saturate="satfinite" in known,
        bits=("and" if "and" in known else "xor") if a == "b1" else "",
        sparse=sparse,
        selector=selector,
        a_layout=order[0] if order and (m, k, a) == (8, 4, "f16") else "row",
        b_layout=order[1] if len(order) > 1 and (m, k, a) == (8, 4, "f16") else "col",
    )  # fmt: skip
    if sparse and not 0 <= selector < product.selectors:
        raise ValueError(f"the sparsity selector of this shape is below {product.selectors}, not {selector}")
    return product


def _family(kind: str) -> str:
    if kind in NARROW_FLOATS:
        return "f8"
    return {"s8": "i8", "u8": "i8", "s4": "i4", "u4": "i4"}.get(kind, kind)


def format_of(kind: str) -> str:
    """The float format that an element type is read as.

    e2m1 stands in bits 2 to 5 of its byte, which reads as e2m3 (PTX ISA 9.0, "Packing formats of A and B").
    """
    return "e2m3" if kind == "e2m1" else kind
