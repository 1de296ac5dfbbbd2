"""Special registers in compiled code; `interpreter.special` says what each reads as."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.emulator.jit.emit import SPECIAL_READERS, Emitter
from ppt_gpu.emulator.launch.layout import RESERVED, RESERVED_AT, RESERVED_PLACES
from ppt_gpu.emulator.llvm.text import const, lanes, vec
from ppt_gpu.emulator.memory.memory import GRID_WORKSPACE
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.ptx.specials import VECTORS, ZEROS

Reader = Callable[[Emitter], tuple[str, str]]


def _uniform(slot: Slot) -> Reader:
    """A 32-bit value that all lanes share."""

    def read(e: Emitter) -> tuple[str, str]:
        return "i32", e.splat("i32", e.op(f"trunc i64 {e.field('%w', slot)} to i32"))

    return read


def _thread(axis: int) -> Reader:
    def read(e: Emitter) -> tuple[str, str]:
        at = e.offset_pointer(e.field("%w", Slot.TID, "ptr"), axis * 128)
        return "i32", e.op(f"load {vec('i32')}, ptr {at}, align 64")

    return read


def _constant(text: str) -> Reader:
    return lambda e: ("i32", text)


def _lane_mask(low: Callable[[int], int]) -> Reader:
    values = [low(lane) & 0xFFFFFFFF for lane in range(32)]
    items = ", ".join(f"i32 {v - (1 << 32) if v >> 31 else v}" for v in values)
    return _constant(f"<{items}>")


def _count(e: Emitter) -> str:
    """Warp instructions executed before this one: a clock that advances by one an instruction."""
    return e.i64("add", "%count" + e.segment, e.position)


def _clock64(e: Emitter) -> tuple[str, str]:
    return "i64", e.splat("i64", _count(e))


def _clock(e: Emitter) -> tuple[str, str]:
    return "i32", e.splat("i32", e.op(f"trunc i64 {_count(e)} to i32"))


def _clock_high(e: Emitter) -> tuple[str, str]:
    return "i32", e.splat("i32", e.op(f"trunc i64 {e.i64('lshr', _count(e), 32)} to i32"))


def _reserved(away: int) -> Reader:
    """A place in the shared memory that the system reserves."""

    def read(e: Emitter) -> tuple[str, str]:
        place = e.op(f"trunc i64 {e.field('%w', Slot.RESERVED_SHARED)} to i32")
        return "i32", e.splat("i32", e.i32("add", place, away))

    return read


def _workspace(shift: int) -> Reader:
    """Half of the address of the workspace of a grid_group."""

    def read(e: Emitter) -> tuple[str, str]:
        half = e.i64("lshr", e.symbol(GRID_WORKSPACE), shift)
        return "i32", e.splat("i32", e.op(f"trunc i64 {half} to i32"))

    return read


def _flag(slot: Slot) -> Reader:
    """A predicate that all lanes share."""
    return lambda e: ("i1", e.splat("i1", e.op(f"trunc i64 {e.field('%w', slot)} to i1")))


def _clusters(blocks: Slot, axis: int) -> Reader:
    """Blocks along an axis, counted in clusters."""

    def read(e: Emitter) -> tuple[str, str]:
        number = e.i64("udiv", e.field("%w", blocks), e.field("%w", Slot(Slot.CLUSTER_X + axis)))
        return "i32", e.splat("i32", e.op(f"trunc i64 {number} to i32"))

    return read


def _register_all() -> None:
    for axis, name in enumerate("xyz"):
        SPECIAL_READERS[f"tid.{name}"] = _thread(axis)
        SPECIAL_READERS[f"ntid.{name}"] = _uniform(Slot(Slot.NTID_X + axis))
        SPECIAL_READERS[f"ctaid.{name}"] = _uniform(Slot(Slot.CTAID_X + axis))
        SPECIAL_READERS[f"nctaid.{name}"] = _uniform(Slot(Slot.NCTAID_X + axis))
        SPECIAL_READERS[f"cluster_nctaid.{name}"] = _uniform(Slot(Slot.CLUSTER_X + axis))
        SPECIAL_READERS[f"cluster_ctaid.{name}"] = _uniform(Slot(Slot.CLUSTER_CTAID_X + axis))
        SPECIAL_READERS[f"clusterid.{name}"] = _clusters(Slot(Slot.CTAID_X + axis), axis)
        SPECIAL_READERS[f"nclusterid.{name}"] = _clusters(Slot(Slot.NCTAID_X + axis), axis)
    zero = _constant("zeroinitializer")
    one = _constant(const("i32", 1))
    for name in ("smid", "gridid", *(f"{vector}.w" for vector in VECTORS), *ZEROS):
        SPECIAL_READERS[name] = zero
    SPECIAL_READERS["nsmid"] = one
    SPECIAL_READERS["envreg1"], SPECIAL_READERS["envreg2"] = _workspace(32), _workspace(0)
    SPECIAL_READERS["cluster_ctarank"] = _uniform(Slot.CLUSTER_RANK)
    SPECIAL_READERS["cluster_nctarank"] = _uniform(Slot.CLUSTER_BLOCKS)
    SPECIAL_READERS["is_explicit_cluster"] = _flag(Slot.CLUSTER_EXPLICIT)
    SPECIAL_READERS["laneid"] = _constant(lanes("i32", 1))
    SPECIAL_READERS["warpid"] = _uniform(Slot.WARP)
    SPECIAL_READERS["nwarpid"] = _uniform(Slot.WARPS)
    SPECIAL_READERS["dynamic_smem_size"] = _uniform(Slot.DYNAMIC_SHARED)
    SPECIAL_READERS["total_smem_size"] = _uniform(Slot.USER_SHARED)
    for name, away in RESERVED_PLACES.items():
        SPECIAL_READERS[RESERVED_AT + name] = _reserved(away)
    SPECIAL_READERS[RESERVED_AT + "cap"] = _constant(const("i32", RESERVED))
    SPECIAL_READERS["aggr_smem_size"] = _uniform(Slot.SHARED_BYTES)
    SPECIAL_READERS["lanemask_eq"] = _lane_mask(lambda lane: 1 << lane)
    SPECIAL_READERS["lanemask_lt"] = _lane_mask(lambda lane: (1 << lane) - 1)
    SPECIAL_READERS["lanemask_le"] = _lane_mask(lambda lane: (2 << lane) - 1)
    SPECIAL_READERS["lanemask_gt"] = _lane_mask(lambda lane: ~((2 << lane) - 1))
    SPECIAL_READERS["lanemask_ge"] = _lane_mask(lambda lane: ~((1 << lane) - 1))
    for name in ("clock64", "globaltimer"):
        SPECIAL_READERS[name] = _clock64
    for name in ("clock", "globaltimer_lo"):
        SPECIAL_READERS[name] = _clock
    for name in ("clock_hi", "globaltimer_hi"):
        SPECIAL_READERS[name] = _clock_high
    for name in [name for name in SPECIAL_READERS if name.endswith(".x")]:
        SPECIAL_READERS[name.removesuffix(".x")] = SPECIAL_READERS[name]  # PTX 1.x: the vector reads as its x


_register_all()
