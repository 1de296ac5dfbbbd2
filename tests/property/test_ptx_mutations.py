"""Damaged PTX: the parser and what follows it answer with a module or a PptError, nothing else."""

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.instructions import access_bytes, operation
from ppt_gpu.ptx.linking.liveness import estimate_registers
from ppt_gpu.ptx.parsing.parser import parse_module

DATA = Path(__file__).parents[1] / "data" / "ptx"
TEXTS = [(DATA / f"{name}.ptx").read_text() for name in ("traps", "traps", "hopper", "calls", "control", "memory")]
TOKEN = re.compile(r"\w+|\s+|.")
PIECES = [*';{}[](),|!@.%+-_x0\n\0"é:<>', "", "//", "/*", "::", "9" * 30, "0f3F80", ".reg", "ret;", "%r1", "}\n}"]


def check(text: str) -> None:
    try:
        module = parse_module(text)
    except PptError as error:
        assert error.line is not None and error.column is not None and error.line >= 1 and error.column >= 1
        assert str(error).startswith("<ptx>:")
        return
    for kernel in [*module.kernels.values(), *module.functions.values()]:
        flow = control_flow(kernel)
        assert all(0 <= block <= len(flow.block_start) for block in flow.ipdom)
        assert 0 <= estimate_registers(kernel) <= 255
        for instruction in kernel.instructions:
            assert operation(instruction)
            assert access_bytes(instruction) >= 0
            assert max((*instruction.reads, *instruction.writes), default=0) < max(1, len(kernel.registers))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_characters(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS), label="text")
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.sampled_from([0, 1, 1, 2, 9]))
        text = text[:start] + data.draw(st.sampled_from(PIECES)) + text[start + length :] + "\n"
    check(text)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_tokens(data: st.DataObject) -> None:
    tokens = TOKEN.findall(data.draw(st.sampled_from(TEXTS), label="text"))
    place = st.integers(0, len(tokens) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        first, second = data.draw(place), data.draw(place)
        change = data.draw(st.sampled_from(["swap", "copy", "repeat", "drop"]))
        if change == "swap":
            tokens[first], tokens[second] = tokens[second], tokens[first]
        elif change == "copy":
            tokens[first] = tokens[second]
        else:
            tokens[first] = tokens[first] * 2 if change == "repeat" else ""
    check("".join(tokens))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_lines(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(TEXTS), label="text").split("\n")
    place = st.integers(0, len(lines) - 1)
    first, second = sorted((data.draw(place), data.draw(place)))
    change = data.draw(st.sampled_from(["swap", "move", "drop", "cut"]))
    if change == "swap":
        lines[first], lines[second] = lines[second], lines[first]
    elif change == "move":
        lines.insert(first, lines[second])
    elif change == "drop":
        del lines[first:second]
    else:
        lines = lines[:second]
    check("\n".join(lines))
