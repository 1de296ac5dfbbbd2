"""translate: a kernel as an editable task list, from running it, from a trace of its machine code, or from its code."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path

from ppt_gpu.commands.opened import open_from
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.frontends.disassemble import open_code
from ppt_gpu.inputs import CODE, extents, files_of, must_exist, registers_option
from ppt_gpu.sass.static_list import Shape, chosen_function, static_list
from ppt_gpu.task_lists import translate
from ppt_gpu.tasklist.text import write_tasklist


def run(arguments: argparse.Namespace) -> str:
    if arguments.workload.endswith(CODE):
        check_outputs([arguments.output], lambda: [arguments.workload])
        text = _of_code(arguments)
    elif arguments.trip:
        raise PptError("--trip is for machine code, .sass and .cubin files")
    else:
        workload = open_from(arguments)
        check_outputs([arguments.output], lambda: files_of(workload))
        text = translate(workload, assume=arguments.assume)
    return json.dumps({"schema": 1, "tasklist": text}, indent=2) + "\n" if arguments.json else text


def _of_code(arguments: argparse.Namespace) -> str:
    """One way through disassembled code."""
    path = Path(arguments.workload)
    given = {"--arg": arguments.arg, "--assume": arguments.assume, "--nvcc-option": arguments.nvcc_option,
             "--cluster": arguments.cluster}  # fmt: skip
    useless = [name for name, value in given.items() if value]
    if useless:
        raise PptError(f"{', '.join(useless)}: machine code is not run", path=path)
    must_exist(path)
    code = open_code(path)
    if arguments.block is None:
        raise PptError("machine code does not say how large its blocks are", path=path, hint="such as --block 256")
    found = chosen_function(code, arguments.kernel or "")
    return write_tasklist(static_list(code, found, _trips(arguments.trip), _shape(arguments)))


def _shape(arguments: argparse.Namespace) -> Shape:
    registers, word = registers_option(arguments.registers)
    if word:
        raise PptError(f"--registers {word}: give a number, or nothing: the code names its registers")
    block, grid = extents("--block", arguments.block), extents("--grid", arguments.grid or ())
    return Shape(prod(block), grid, registers, arguments.dynamic_shared)


def _trips(texts: Sequence[str]) -> dict[str, int]:
    """ "LABEL=N" texts as label -> N."""
    found: dict[str, int] = {}
    for text in texts:
        label, _, count = text.partition("=")
        if not label or not count.isdecimal() or int(count) < 1:
            raise PptError(f"--trip {text}: expected a label and a positive number", hint="such as --trip .L_x_2=64")
        found[label] = int(count)
    return found
