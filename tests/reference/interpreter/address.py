"""Addresses in the interpreter: conversion between state spaces, tests of them, blocks of a cluster."""

from __future__ import annotations

import numpy as np

from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, WINDOWS, in_window
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.ptx.operations import space_of
from reference.interpreter.block import LANES
from reference.interpreter.warp import Execute, Warp, truncate, type_of, unsupported, width_of

_OFFSET = (1 << CLUSTER_SHIFT) - 1
_RANK = 0xFF << CLUSTER_SHIFT


def convert_address(warp: Warp, ins: Instruction) -> None:
    """cvta: an address of a space to a generic one, or back (.to)."""
    space, width = space_of(ins.modifiers), width_of(type_of(ins))
    window = np.uint64(WINDOWS.get(space, 0))
    if window and width != 64:
        raise unsupported(ins, "32-bit generic addresses")
    address = warp.read(ins.operands[1], width)
    result = address - window if "to" in ins.modifiers else address + window
    warp.write(ins.operands[0], truncate(result.view(np.int64), width))


def is_space(warp: Warp, ins: Instruction) -> None:
    """isspacep: everything outside of the windows for const, local and shared is global, parameters too."""
    space, cluster = space_of(ins.modifiers), "shared::cluster" in ins.modifiers
    found = [_lies_in(warp, int(a), space, cluster) for a in warp.read(ins.operands[1], 64)]
    warp.write(ins.operands[0], np.array(found, np.uint64))


def _lies_in(warp: Warp, address: int, space: str, cluster: bool) -> bool:
    window = in_window(address)[0]
    const = warp.launched.memory.base <= address < warp.launched.memory.const_end
    if space == "shared":
        rank = (address & _RANK) >> CLUSTER_SHIFT
        return window == "shared" and (cluster or rank in (0, warp.block.rank + 1))
    if space in WINDOWS:
        return window == space
    return const if space == "constant" else not const and window not in ("shared", "local")


def map_address(warp: Warp, ins: Instruction) -> None:
    """mapa: the address of the same shared byte in block `rank` of the cluster."""
    width = width_of(type_of(ins))
    addresses, ranks = warp.read(ins.operands[1], width), warp.read(ins.operands[2], 32)
    mapped = [int(a) & ~_RANK | (int(r) + 1) << CLUSTER_SHIFT for a, r in zip(addresses, ranks, strict=True)]
    warp.write(ins.operands[0], np.array([m & ((1 << width) - 1) for m in mapped], np.uint64))


def rank_of(warp: Warp, ins: Instruction) -> None:
    """getctarank: the rank of the block in whose shared memory an address lies."""
    tags = (warp.read(ins.operands[1], width_of(type_of(ins))).astype(np.int64) >> CLUSTER_SHIFT) & 0xFF
    warp.write(ins.operands[0], truncate(np.where(tags == 0, warp.block.rank, tags - 1), 32))


def policy(warp: Warp, ins: Instruction) -> None:
    """createpolicy: a hint to the caches, whose bits have no meaning here and are 0."""
    warp.write(ins.operands[0], np.zeros(LANES, np.uint64))


ADDRESS: dict[str, Execute] = {
    "cvta": convert_address,
    "isspacep": is_space,
    "mapa": map_address,
    "getctarank": rank_of,
    "createpolicy": policy,
}
