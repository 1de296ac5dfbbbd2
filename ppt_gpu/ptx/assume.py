"""Instructions that a user wants timed as a class of work without being executed: `--assume tcgen05.mma=tensor`.

The parser gives such an instruction the opcode "?assumed.CLASS", which no text can have, so that every later stage sees
what it is; its registers still carry the dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.ptx.instructions import Form, form
from ppt_gpu.ptx.table import ASSUMED, FIRST

#: what an instruction without addresses can be timed as: the compute classes of a GPU's operations
CLASSES = ("fp32", "fp64", "fp16", "int32", "sfu", "tensor", "shuffle", "branch", "fence")


def read_assumptions(texts: Iterable[str]) -> dict[str, str]:
    """ "OPCODE=CLASS" texts as opcode -> operation. OPCODE also stands for every longer one ("tcgen05.mma").

    The operation may be one of an ISA file, such as "tensor.mma". Raises PptError.
    """
    found: dict[str, str] = {}
    for text in texts:
        opcode, equals, operation = (part.strip() for part in text.partition("="))
        hint = "such as tcgen05.mma=tensor"
        if not equals or not opcode or not operation:
            raise PptError(f"--assume {text}: expected an opcode, '=' and a class", hint=hint)
        if operation.partition(".")[0] not in CLASSES:
            near = did_you_mean(operation, CLASSES)
            raise PptError(f"--assume {text}: '{operation}' is no class of work without addresses", hint=near)
        if opcode.partition(".")[0] in ("bra", "brx", "call", "ret", "exit", "bar", "barrier"):
            raise PptError(f"--assume {text}: without '{opcode}' it is not known what runs next")
        found[opcode] = operation
    return found


def assumed_form(opcode: str, assumptions: Mapping[str, str]) -> Form:
    """`form(opcode)`, or that of the longest assumption about it."""
    head = opcode
    while head not in assumptions:
        head, dot, _ = head.rpartition(".")
        if not dot:
            return form(opcode)
    try:
        destination = form(opcode).destination
    except PptError:
        destination = FIRST
    return replace(form(f"{ASSUMED}.{assumptions[head]}"), destination=destination)
