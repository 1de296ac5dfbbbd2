"""The PTX instruction table: each base opcode's operand counts, the operands it writes, and its operation family.

Source: the instruction chapters of NVIDIA's PTX ISA manual (versions 1.4 to 9.0).
"""

from __future__ import annotations

from typing import NamedTuple

#: how the first operand is used; every other operand is read. A memory operand is always read.
FIRST, UPDATE, NONE = "first", "update", "none"  # written, read and written, no destination


#: base opcode of instructions that are timed as a class only (`ppt_gpu.ptx.assume`); no text can have it
ASSUMED = "?assumed"
#: base opcode of machine instructions without addresses (`ppt_gpu.sass.machine`); no text can have it
SASS = "?sass"


class Row(NamedTuple):
    """`least`..`most` operands. `family` and `name` choose the machine operation, see `operations.operation_of`."""

    least: int
    most: int
    destination: str
    family: str
    name: str = ""


#: (base opcodes, row)
_GROUPS: tuple[tuple[str, Row], ...] = (
    # arithmetic: "float name/integer name"
    ("add sub addc subc", Row(3, 3, FIRST, "typed", "add/add")),
    ("mul mul24", Row(3, 3, FIRST, "typed", "mul/mul")),
    ("mad mad24 madc", Row(4, 4, FIRST, "typed", "fma/mad")),
    ("fma", Row(4, 4, FIRST, "typed", "fma/mad")),
    ("div", Row(3, 3, FIRST, "typed", "div/div")),
    ("rem", Row(3, 3, FIRST, "typed", "div/div")),
    ("min max", Row(3, 4, FIRST, "typed", "minmax/minmax")),
    ("neg", Row(2, 2, FIRST, "typed", "misc/add")),
    ("abs", Row(2, 2, FIRST, "typed", "misc/misc")),
    ("copysign", Row(3, 3, FIRST, "typed", "misc/misc")),
    ("testp", Row(2, 2, FIRST, "typed", "misc/misc")),
    ("sad", Row(4, 4, FIRST, "typed", "misc/misc")),
    ("dp4a dp2a", Row(4, 4, FIRST, "typed", "mad/mad")),
    ("rcp", Row(2, 2, FIRST, "sfu", "rcp")),
    ("sqrt", Row(2, 2, FIRST, "sfu", "sqrt")),
    ("rsqrt", Row(2, 2, FIRST, "sfu", "rsqrt")),
    ("sin", Row(2, 2, FIRST, "sfu", "sin")),
    ("cos", Row(2, 2, FIRST, "sfu", "cos")),
    ("ex2", Row(2, 2, FIRST, "sfu", "ex2")),
    ("lg2", Row(2, 2, FIRST, "sfu", "lg2")),
    ("tanh", Row(2, 2, FIRST, "sfu", "tanh")),
    # comparison, selection, logic, bits, moves
    ("setp", Row(3, 4, FIRST, "typed", "setp/setp")),
    ("set", Row(3, 4, FIRST, "typed", "setp/setp")),
    ("selp slct", Row(4, 4, FIRST, "typed", "selp/selp")),
    ("and or xor", Row(3, 3, FIRST, "typed", "logic/logic")),
    ("not cnot", Row(2, 2, FIRST, "typed", "logic/logic")),
    ("lop3", Row(5, 6, FIRST, "typed", "logic/logic")),
    ("shl shr", Row(3, 3, FIRST, "typed", "shift/shift")),
    ("shf", Row(4, 4, FIRST, "typed", "shift/shift")),
    ("popc clz brev", Row(2, 2, FIRST, "typed", "popc/popc")),
    ("bfind", Row(2, 2, FIRST, "typed", "popc/popc")),
    ("bfe fns", Row(4, 4, FIRST, "typed", "misc/misc")),
    ("bfi", Row(5, 5, FIRST, "typed", "misc/misc")),
    ("prmt", Row(4, 4, FIRST, "typed", "misc/misc")),
    ("bmsk szext", Row(3, 3, FIRST, "typed", "misc/misc")),
    ("mov", Row(2, 2, FIRST, "mov")),
    ("cvt", Row(2, 4, FIRST, "cvt")),
    ("cvta", Row(2, 2, FIRST, "fixed", "int32.add64")),
    ("isspacep", Row(2, 2, FIRST, "fixed", "int32.setp")),
    ("mapa", Row(3, 3, FIRST, "fixed", "int32.misc")),
    ("getctarank", Row(2, 2, FIRST, "fixed", "int32.misc")),
    ("createpolicy", Row(1, 4, FIRST, "fixed", "int32.misc")),
    ("alloca", Row(2, 3, FIRST, "fixed", "int32.add64")),
    ("stacksave", Row(1, 1, FIRST, "fixed", "int32.mov64")),
    ("stackrestore", Row(1, 1, NONE, "fixed", "int32.mov64")),
    # video: scalar and packed
    ("vadd vsub vabsdiff vmin vmax vshl vshr vset", Row(3, 4, FIRST, "fixed", "int32.misc")),
    ("vmad", Row(4, 4, FIRST, "fixed", "int32.mad")),
    ("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2", Row(4, 4, FIRST, "fixed", "int32.misc")),
    ("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4", Row(4, 4, FIRST, "fixed", "int32.misc")),
    # control
    ("bra", Row(1, 1, NONE, "fixed", "branch")),
    ("brx", Row(2, 3, NONE, "fixed", "branch")),
    ("call", Row(3, 4, FIRST, "fixed", "branch")),
    ("ret exit trap", Row(0, 0, NONE, "fixed", "branch.ret")),
    ("brkpt", Row(0, 0, NONE, "fixed", "branch.misc")),
    ("nanosleep pmevent setmaxnreg", Row(1, 1, NONE, "fixed", "branch.misc")),
    # synchronisation
    ("bar barrier", Row(0, 4, NONE, "barrier")),
    ("membar", Row(0, 0, NONE, "fence")),
    ("fence", Row(0, 4, NONE, "fence")),
    ("mbarrier", Row(1, 5, FIRST, "fixed", "fence.mbarrier")),
    ("griddepcontrol", Row(0, 0, NONE, "fixed", "fence.grid")),
    ("clusterlaunchcontrol", Row(1, 3, FIRST, "fixed", "fence.cluster")),
    ("tensormap", Row(2, 4, NONE, "fixed", "fence.tensormap")),
    # warp
    ("shfl", Row(4, 5, FIRST, "fixed", "shuffle.shfl")),
    ("vote", Row(2, 3, FIRST, "fixed", "shuffle.vote")),
    ("activemask", Row(1, 1, FIRST, "fixed", "shuffle.vote")),
    ("elect", Row(2, 2, FIRST, "fixed", "shuffle.vote")),
    ("match", Row(3, 3, FIRST, "fixed", "shuffle.match")),
    ("redux", Row(3, 3, FIRST, "fixed", "shuffle.redux")),
    # memory
    ("ld ldu", Row(2, 3, FIRST, "load")),
    ("st", Row(2, 4, NONE, "store")),
    ("atom", Row(3, 5, FIRST, "atomic")),
    ("red", Row(2, 4, NONE, "atomic")),
    ("multimem", Row(2, 3, FIRST, "multimem")),
    ("cp", Row(0, 8, NONE, "copy")),
    ("prefetch prefetchu", Row(1, 2, NONE, "fixed", "fence.prefetch")),
    ("discard applypriority", Row(2, 2, NONE, "fixed", "fence.prefetch")),
    # texture and surface
    ("tex", Row(2, 5, FIRST, "fixed", "load.texture")),
    ("tld4", Row(2, 4, FIRST, "fixed", "load.texture")),
    ("txq", Row(2, 3, FIRST, "fixed", "load.texture")),
    ("suq", Row(2, 2, FIRST, "fixed", "load.texture")),
    ("istypep", Row(2, 2, FIRST, "fixed", "int32.setp")),
    ("suld", Row(2, 2, FIRST, "fixed", "load.texture")),
    ("sust", Row(2, 2, NONE, "fixed", "store.texture")),
    ("sured", Row(2, 2, NONE, "fixed", "atomic.texture")),
    # matrix
    ("mma", Row(4, 11, FIRST, "wmma")),
    ("wmma", Row(2, 4, FIRST, "wmma")),
    ("wgmma", Row(0, 10, UPDATE, "wgmma")),
    ("tcgen05", Row(0, 10, FIRST, "tcgen05")),
    ("ldmatrix", Row(2, 2, FIRST, "fixed", "load.shared.matrix")),
    ("stmatrix", Row(2, 2, NONE, "fixed", "store.shared.matrix")),
    ("movmatrix", Row(2, 2, FIRST, "fixed", "tensor.movmatrix")),
    (f"{ASSUMED} {SASS}", Row(0, 256, FIRST, ASSUMED)),
)

TABLE: dict[str, Row] = {base: row for bases, row in _GROUPS for base in bases.split()}
_NOT_PURE = frozenset(("alloca", "stacksave", "stackrestore", "istypep"))
#: base opcodes of instructions that do nothing but compute their results
PURE = frozenset(
    base
    for base, row in TABLE.items()
    if row.family in ("typed", "sfu", "mov", "cvt") or (row.family == "fixed" and row.name.startswith("int32."))
).difference(_NOT_PURE)

#: forms whose first operand is no destination, although the base opcode usually has one, by opcode prefix
NO_DESTINATION: tuple[str, ...] = (
    "tcgen05.dealloc",
    "tcgen05.wait",
    "tcgen05.fence",
    "tcgen05.relinquish_alloc_permit",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "wmma.store",
)
#: forms with a destination, although the base opcode usually has none, by opcode prefix
WITH_DESTINATION: tuple[str, ...] = ("bar.red", "barrier.red", "barrier.cta.red", "bar.cta.red")

#: modifiers that are data types; a modifier that looks like one but is not listed is an error
_TYPES = (
    "pred b1 b4 b8 u8 s8 b16 u16 s16 f16 f16x2 bf16 bf16x2 b32 u32 s32 f32 f32x2 tf32 "
    "b64 u64 s64 f64 b128 u4 s4 u2 s2 u16x2 s16x2 u8x4 s8x4 b1024"
)
SCALAR_TYPES: frozenset[str] = frozenset(_TYPES.split())
