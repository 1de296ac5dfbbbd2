"""What a bulk instruction does, read from opcode and operands.

cp.async.bulk, cp.reduce.async.bulk, st.bulk, tensormap, and clusterlaunchcontrol.try_cancel, whose answer is 16 bytes.

Both engines read the operands of each lane, in the order of `BulkForm.operands`, and let `bulk_copy.perform` do it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.ptx.module import Imm, Instruction, Mem, Operand, Special, items_of
from ppt_gpu.ptx.table import SCALAR_TYPES

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@dataclass(frozen=True)
class BulkForm:
    """`operands`: (role, operand); addresses are generic where `generic` names the role, else of their space.

    Roles: "to", "from", "map", "x0" to "x4", "size", "barrier", "blocks", "field", "value",
    "cluster" (the number of its blocks: all of them are meant).
    """

    action: str  # "copy", "zero", "tensor load", "tensor store", "replace", "copy map", "nothing"
    operands: tuple[tuple[str, Operand], ...]
    to_space: str = "shared"
    from_space: str = "global"
    signals: bool = False  # an mbarrier is told the bytes
    multicast: bool = False
    reduction: str = ""
    kind: str = ""  # element type of a reduction
    field: str = ""  # of tensormap.replace


def check_reduction(reduction: str, kind: str) -> None:
    """ValueError for a reduction that the element type does not have."""
    if reduction in ("inc", "dec", "and", "or", "xor") and "f" in kind:
        raise ValueError(f"there is no reduction .{reduction} of .{kind}")


def bulk_form(i: Instruction) -> BulkForm:
    """The form of a bulk instruction. ValueError for one that is not executed."""
    words = i.modifiers
    if i.base == "tensormap":
        return _map_form(i)
    if i.base == "st":
        if i.operands[2] != Imm(0):
            raise ValueError("st.bulk stores zeros only")
        return BulkForm("zero", (("to", i.operands[0]), ("size", i.operands[1])))
    if i.base == "clusterlaunchcontrol":  # in a run all blocks have been launched: none can be cancelled any more
        answer: list[tuple[str, Operand]] = [("to", i.operands[0]), ("size", Imm(16)), ("barrier", i.operands[1])]
        everywhere = "multicast::cluster::all" in words
        answer += [("cluster", Special("cluster_nctarank"))] if everywhere else []
        return BulkForm("zero", tuple(answer), signals=True, multicast=everywhere)
    if any(word.startswith(("im2col", "tile::gather4", "tile::scatter4")) for word in words):
        raise ValueError("only boxes are copied, not im2col, gather4 or scatter4")
    if "prefetch" in words:
        return BulkForm("nothing", ())
    if "cp_mask" in words:
        raise ValueError("copies with a byte mask")
    operands = list(i.operands)
    if any(word.startswith("L2::cache_hint") for word in words):
        operands.pop()
    blocks = [("blocks", operands.pop())] if "multicast::cluster" in words else []
    signals = any(word.startswith("mbarrier::complete_tx") for word in words)
    spaces = [word.partition("::")[0] for word in words if word.partition("::")[0] in ("shared", "global")]
    to_space, from_space = spaces[0], spaces[-1]
    more = {
        "to_space": to_space, "from_space": from_space, "signals": signals, "multicast": bool(blocks),
        "reduction": next((w for w in words if w in REDUCTIONS), "") if "reduce" in words else "",
        "kind": next((w for w in words if w in SCALAR_TYPES), ""),
    }  # fmt: skip
    if "tensor" not in words:
        check_reduction(str(more["reduction"]), str(more["kind"]))
        found = [("to", operands[0]), ("from", operands[1]), ("size", operands[2])]
        found += [("barrier", operands[3])] if signals else []
        return BulkForm("copy", (*found, *blocks), **more)  # type: ignore[arg-type]
    loads = to_space == "shared"
    map_at, near = (1, 0) if loads else (0, 1)
    place = operands[map_at]
    if not isinstance(place, Mem):
        raise ValueError("a tensor map and coordinates are expected")
    found = [("map", Mem(place.base, place.offset)), ("to" if loads else "from", operands[near])]
    flat = [item for index in place.indices for item in items_of(index)]
    found += [(f"x{axis}", index) for axis, index in enumerate(flat)]
    found += [("barrier", operands[2])] if signals else []
    return BulkForm("tensor load" if loads else "tensor store", (*found, *blocks), **more)  # type: ignore[arg-type]


def query_axis(words: tuple[str, ...]) -> int:
    """The first axis that clusterlaunchcontrol.query_cancel.get_first_ctaid asks for."""
    return next((axis for axis, name in enumerate("xyz") if f"get_first_ctaid::{name}" in words), 0)


def _map_form(i: Instruction) -> BulkForm:
    words = i.modifiers
    if words[0] == "cp_fenceproxy":
        return BulkForm("copy map", (("to", i.operands[0]), ("from", i.operands[1])), "global", "shared")
    if words[:2] != ("replace", "tile"):
        raise ValueError("this form of it")
    space = "shared" if any(word.startswith("shared") for word in words) else "global"
    ordinal: Operand = i.operands[1] if len(i.operands) > 2 else Imm(0)
    operands = (("to", i.operands[0]), ("field", ordinal), ("value", i.operands[-1]))
    return BulkForm("replace", operands, to_space=space, field=words[2])
