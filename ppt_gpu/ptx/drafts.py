"""Frozen dataclasses made quickly, for the kinds of object that a module has most of.

The generated `__init__` of a frozen dataclass goes through `object.__setattr__` for every field. A draft is a mutable
class with the same slots, which plain assignments fill; giving it the frozen class afterwards makes it the real thing:

>>> address = MemDraft(None, 16, ())
>>> address.__class__ = Mem
>>> address
Mem(base=None, offset=16, indices=())
"""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Any

from ppt_gpu.ptx.module import Instruction, Mem


def _draft_of(frozen: type) -> Any:
    """A mutable class with the slots of the dataclass `frozen`. Every field has to be given, in order."""
    return make_dataclass(f"{frozen.__name__}Draft", [(field.name, Any) for field in fields(frozen)], slots=True)


InstructionDraft = _draft_of(Instruction)
MemDraft = _draft_of(Mem)
