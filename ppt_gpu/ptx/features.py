"""PTX instructions that need hardware which older GPUs lack: matrix units, asynchronous copies, clusters.

From the "Target ISA Notes" of each instruction in the PTX ISA. What every GPU can do one way or another (halves on
Kepler by conversion, say) is not here: it is timed as what the compiler would make of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ppt_gpu.common.errors import LackError
from ppt_gpu.ptx.module import Instruction, Module

Capability = tuple[int, int]
#: leading part of the opcode -> least compute capability, and what it needs there; the longest part decides
_NEEDS: dict[str, tuple[Capability, str]] = {
    "mma": ((7, 0), "tensor cores"),
    "wmma": ((7, 0), "tensor cores"),
    "wgmma": ((9, 0), "tensor cores that warp groups share"),
    "tcgen05": ((10, 0), "tensor memory"),
    "ldmatrix": ((7, 5), "loads of matrix fragments"),
    "movmatrix": ((7, 5), "transposition of matrix fragments"),
    "stmatrix": ((9, 0), "stores of matrix fragments"),
    "cp.async": ((8, 0), "asynchronous copies"),
    "cp.async.bulk": ((9, 0), "bulk copies"),
    "cp.reduce": ((9, 0), "bulk reductions"),
    "mbarrier": ((8, 0), "barriers in shared memory"),
    "redux": ((8, 0), "reductions over a warp"),
    "setmaxnreg": ((9, 0), "registers that move between warps"),
    "barrier.cluster": ((9, 0), "clusters of blocks"),
    "mapa": ((9, 0), "clusters of blocks"),
}
#: base opcode -> the capability from which GPUs do not have it any more
_GONE: dict[str, Capability] = {"wgmma": (10, 0), "tcgen05": (12, 0)}
#: shapes of mma that later tensor cores brought
_SHAPES = {
    "m16n8k8": (7, 5), "m8n8k16": (7, 5), "m8n8k32": (7, 5), "m8n8k128": (7, 5), "m16n8k4": (8, 0), "m16n8k16": (8, 0),
    "m16n8k32": (8, 0), "m16n8k64": (8, 0), "m16n8k128": (8, 0), "m16n8k256": (8, 0),
}  # fmt: skip
#: the capability from which blocks come in clusters
CLUSTERS: Capability = (9, 0)
_BASES = frozenset(name.partition(".")[0] for name in _NEEDS)


def needs(instruction: Instruction) -> tuple[Capability, str] | None:
    """Least compute capability for `instruction`, and what it needs there; None when every GPU has it."""
    if instruction.base not in _BASES:
        return None
    name = instruction.opcode
    while name not in _NEEDS:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    least, what = _NEEDS[name]
    if instruction.base == "mma":
        shape = next((part for part in instruction.modifiers if part in _SHAPES), "")
        least = _SHAPES.get(shape, least)
        what = f"tensor cores for {shape}" if shape else what
    return least, what


def require(instructions: Iterable[Instruction], module: Module, capability: Capability, gpu: str) -> None:
    """Raise LackError for the first instruction that GPU `gpu`, of this compute capability, does not have."""
    for each in instructions:
        found = needs(each)
        gone = _GONE.get(each.base) if found else None
        if found and (found[0] > capability or (gone is not None and gone <= capability)):
            least, what = found
            until = f", but before {gone[0]}.{gone[1]}" if gone else ""
            lack = _lack(f"'{each.opcode}' needs {what}", capability, gpu, least, until)
            raise LackError(lack.message, path=module.path, line=each.line, column=each.column, hint=lack.hint)


def require_clusters(blocks: int, capability: Capability, gpu: str) -> None:
    """Raise LackError for clusters of several blocks on a GPU, of this compute capability, that has none."""
    if blocks > 1 and capability < CLUSTERS:
        raise _lack(f"a launch in clusters of {blocks} blocks needs clusters", capability, gpu, CLUSTERS)


def _lack(what: str, capability: Capability, gpu: str, least: Capability, until: str = "") -> LackError:
    own = f"{gpu} (compute capability {capability[0]}.{capability[1]})"
    hint = f"it takes a GPU of compute capability {least[0]}.{least[1]} or later{until}"
    return LackError(f"{what}, which {own} lacks", hint=hint)
