"""The table of machine operations: names from an instruction table or a task list, timings from the GPU's ISA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.sm.program.program import (
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_COMPUTE,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
)
from ppt_gpu.spec.gpu import MEMORY_CLASSES, TASK_CLASSES, Gpu, Op
from ppt_gpu.tasklist.model import class_of

#: classes whose operations read no register operands but addresses
NO_OPERANDS = ("load.", "branch", "barrier", "fence")
_KINDS = {"load": KIND_LOAD, "store": KIND_STORE, "atomic": KIND_ATOMIC}


@dataclass(frozen=True)
class OpTable:
    """I instructions, O operations. `start` [I+1]: the operations of instruction i are start[i] .. start[i+1]-1."""

    start: NDArray[np.int32]
    name: tuple[str, ...]
    pipe: NDArray[np.int32]
    latency: NDArray[np.int32]
    ii: NDArray[np.int32]
    kind: NDArray[np.int8]
    pc: NDArray[np.int32]
    task_class: NDArray[np.int32]
    operands: NDArray[np.int64]  # as Program.op_operands
    atomics_wait: bool = False  # nothing issues before an atomic is done

    @property
    def recorded(self) -> NDArray[np.bool_]:
        """[O] operations with a memory entry per execution."""
        return np.isin(self.kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED))

    @property
    def fixed(self) -> NDArray[np.int32]:
        """[O] cycles from issue to completion, -1 where the memory system or other warps decide."""
        return np.where(self.kind == KIND_COMPUTE, self.latency, -1).astype(np.int32)

    @property
    def value(self) -> NDArray[np.bool_]:
        """[O] operations that something may wait for: not branches, barriers and stores."""
        store = np.array([c.startswith("store.") for c in TASK_CLASSES])[self.task_class]
        return ~(store | (self.kind == KIND_BRANCH) | (self.kind == KIND_BARRIER))

    @property
    def fence(self) -> NDArray[np.bool_]:
        """[O] fences, and atomics where they wait: the next entry waits for their completion. Not what has events."""
        fence = np.array([c == "fence" or (self.atomics_wait and c.startswith("atomic.")) for c in TASK_CLASSES])
        return fence[self.task_class] & (self.kind != KIND_BARRIER)


def pipe_order(gpu: Gpu) -> tuple[str, ...]:
    """The names of the pipes in the order of `Program.op_pipe`."""
    return tuple(sorted(gpu.pipes))


def kind_of(task_class: str) -> int:
    """KIND_* of a task class."""
    if task_class not in MEMORY_CLASSES:
        return {"branch": KIND_BRANCH, "barrier": KIND_BARRIER}.get(task_class, KIND_COMPUTE)
    access, space = task_class.split(".")
    if space == "shared":
        return KIND_SHARED
    return KIND_CONSTANT if space == "constant" else _KINDS[access]


def in_space(op: str, space: str) -> str:
    """A memory operation's name moved to another space: "load.global.v4" -> "load.shared.v4"."""
    access, _, *rest = op.split(".")
    return ".".join((access, space, *rest))


def build_ops(
    chains: Sequence[Sequence[str]],
    gpu: Gpu,
    *,
    operands: Sequence[int] | None = None,
    kinds: dict[int, int] | None = None,
    numbers: Sequence[int] | None = None,
    unit: str = "instruction",
) -> OpTable:
    """The table for the operation names of each instruction.

    operands: what Program.op_operands says of each instruction; by default one of its class.
    kinds: KIND_* of whole instructions, by position, where it is not that of the operation's class.
    numbers: what `pc` says instead of the position; unit: what messages call it.

    Raises PptError for an operation of no task class, without timing in the ISA, or on a pipe that the GPU lacks.
    """
    pipes = {name: i for i, name in enumerate(pipe_order(gpu))}
    rows: list[tuple[str, int, int, int, int, int, int, int]] = []
    for place, chain in enumerate(chains):
        pc = place if numbers is None else numbers[place]
        for name in chain:
            op, task_class = _timing(name, gpu, pipes, f"{unit} {pc}")
            kind = (kinds or {}).get(place, kind_of(task_class))
            latency = _latency(op, kind, gpu)
            read = int(not task_class.startswith(NO_OPERANDS)) if operands is None else operands[place]
            rows.append((name, pipes[op.pipe], latency, op.ii, kind, pc, TASK_CLASSES.index(task_class), read))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 8
    return OpTable(
        start=np.cumsum([0, *(len(chain) for chain in chains)], dtype=np.int32),
        name=tuple(str(name) for name in columns[0]),
        pipe=np.array(columns[1], np.int32),
        latency=np.array(columns[2], np.int32),
        ii=np.array(columns[3], np.int32),
        kind=np.array(columns[4], np.int8),
        pc=np.array(columns[5], np.int32),
        task_class=np.array(columns[6], np.int32),
        operands=np.array(columns[7], np.int64),
        atomics_wait=gpu.memory.atomics_wait,
    )


def _latency(op: Op, kind: int, gpu: Gpu) -> int:
    """Cycles; shared and constant memory have theirs in the GPU's own tables."""
    if kind == KIND_SHARED:
        return gpu.shared.latency
    return gpu.memory.constant_latency if kind == KIND_CONSTANT else op.latency


def _timing(name: str, gpu: Gpu, pipes: dict[str, int], where: str) -> tuple[Op, str]:
    try:
        task_class = class_of(name)
    except ValueError:
        hint = did_you_mean(name, TASK_CLASSES)
        raise PptError(f"{where}: operation '{name}' belongs to no task class", hint=hint) from None
    try:
        op = gpu.isa.op(name)
    except KeyError:
        hint = did_you_mean(name, gpu.isa.ops)
        raise PptError(f"{where}: no timing for operation '{name}' in ISA {gpu.isa.name}", hint=hint) from None
    if op.pipe not in pipes:
        hint = did_you_mean(op.pipe, pipes)
        raise PptError(f"{where}: operation '{name}' runs on pipe '{op.pipe}', which {gpu.name} lacks", hint=hint)
    return op, task_class
