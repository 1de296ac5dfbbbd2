"""Machine code kept between predictions: in memory for the process, and in the store on disk.

What is kept is what making it adds to a kernel: pickled, with a checksum in front. Reading it makes objects of the
classes of `ppt_gpu.ptx.module` and of nothing else, whatever stands in the file.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ppt_gpu.common.threads import COMPILING
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.identity import digest, module_digest, sources_digest
from ppt_gpu.machine.code import MachineCode, MachineKernel, Template, machine_code
from ppt_gpu.ptx import module as objects
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.module import Instruction, Kernel, Module, Register
from ppt_gpu.spec.gpu import Isa

SUFFIX = ".code"
MOST = 64  # kernels in memory
#: folders of the package whose sources make machine code out of PTX
SOURCES = ("ptx", "spec", "tasklist", "machine")
_CHECKSUM = 32  # B
#: by folder of the store, group and name
_recent: OrderedDict[tuple[Path | None, str, str], MachineCode] = OrderedDict()


@dataclass(frozen=True)
class _Added:
    """What machine code adds to its kernel."""

    registers: tuple[Register, ...]
    instructions: tuple[Instruction, ...]
    origin: tuple[int, ...]
    joined: dict[int, tuple[str, ...]]
    templates: tuple[tuple[tuple[int, ...], list[bool], list[int], list[list[int]]], ...]  # the fields of each
    live: int


def kept_machine_code(kernel: Kernel, module: Module, registers: int, isa: Isa, store: Store) -> MachineCode:
    """`machine_code` of a linked kernel of `module`, made once for each number of registers and each ISA."""
    group = digest("machine code", module_digest(module), kernel.name)
    pipes = {name: op.pipe for name, op in isa.ops.items()}
    tables = [sorted(table.items()) for table in (isa.expand, isa.fuse, isa.unnamed, pipes)]  # all it reads of an ISA
    name = digest(sources_digest(*SOURCES), registers, tables)[:32]
    with COMPILING:
        return _found(kernel, registers, isa, store, group, name)


def _found(kernel: Kernel, registers: int, isa: Isa, store: Store, group: str, name: str) -> MachineCode:
    place = (store.folder, group, name)
    found = _recent.get(place)
    if found is None:
        added = store.read(group, name + SUFFIX, _decode)
        if added is None:
            found = machine_code(kernel, registers, isa)
            store.write(group, name + SUFFIX, _encode(_added(kernel, found)))
        else:
            found = _restored(kernel, added)
    _recent[place] = found
    _recent.move_to_end(place)
    if len(_recent) > MOST:
        _recent.popitem(last=False)
    return found


def forget() -> None:
    """Let go of what this process keeps in memory."""
    _recent.clear()


def _added(kernel: Kernel, code: MachineCode) -> _Added:
    made, own = code.kernel, len(kernel.instructions)
    return _Added(
        made.registers[len(kernel.registers) :],
        made.instructions[own:],
        made.origin[own:],
        dict(made.joined),
        tuple((each.blocks, each.arms.tolist(), each.code.tolist(), each.access.tolist()) for each in code.templates),
        code.live,
    )


def _restored(kernel: Kernel, added: _Added) -> MachineCode:
    fields = {name: getattr(kernel, name) for name in Kernel.__dataclass_fields__}
    made = MachineKernel(**fields, origin=(*range(len(kernel.instructions)), *added.origin))
    made = replace(
        made,
        instructions=(*kernel.instructions, *added.instructions),
        registers=(*kernel.registers, *added.registers),
        joined=added.joined,
    )
    templates = tuple(
        Template(blocks, np.array(arms, np.bool_), np.array(code, np.int32), np.array(access, np.int64))
        for blocks, arms, code, access in added.templates
    )
    return MachineCode(made, control_flow(kernel), templates, added.live)


def _encode(added: _Added) -> bytes:
    data = pickle.dumps(tuple(vars(added).values()), protocol=5)
    return sha256(data).digest() + data


def _decode(data: bytes, path: str) -> _Added:
    """ValueError when these are not the bytes that `_encode` made."""
    content = data[_CHECKSUM:]
    if sha256(content).digest() != data[:_CHECKSUM]:
        raise ValueError(f"{path}: the checksum is wrong")
    try:
        return _Added(*_Reader(io.BytesIO(content)).load())
    except (pickle.UnpicklingError, TypeError, AttributeError, EOFError, IndexError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from None


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = getattr(objects, name, None) if module == objects.__name__ else None
        if not (isinstance(found, type) and found.__module__ == objects.__name__):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of machine code")
        return found
