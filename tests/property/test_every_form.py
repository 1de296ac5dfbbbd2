"""Every form of an instruction, some dozens in a kernel: both engines agree, and so do traces without results.

Both are held here, as the helper functions that these kernels call are compiled once for all tests of a process.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import test_trace_without_results as without_results
from random_arithmetic import arithmetic_rows
from random_ptx import ROW, ROW_PLACES, TABLE, instance, kernel_text
from test_exec_agree import assert_same, inputs

_RESULT = {"p": "b32", "h": "b16", "e": "b16", "r": "b32", "d": "b64", "f": "f32", "g": "f64"}
CHUNK = 80
#: rows of a kernel that is not taken apart any more where memory steers it
LEAST = 10
#: neighbours in the table differ by a type or a modifier: one of four rows is looked at by default, and the others
#: with `-m slow`
EVERY = 4


def rows_of_kernels():
    """The rows of each kernel, for parametrize."""
    for first in range(EVERY):
        table = TABLE[first::EVERY]
        for start in range(0, len(table), CHUNK):
            rows = table[start : start + CHUNK]
            yield pytest.param(rows, id=rows[0][0].split()[0], marks=[pytest.mark.slow] * (first > 0))


ROWS = list(rows_of_kernels())


def every_form(chunk):
    """(kernel, places): the instructions of some rows, each followed by a store of its result."""
    lines, places = [], []
    for number, row in enumerate(chunk):
        text, destination = instance(row)
        at, kind, register = ROW + 8 * number, _RESULT[destination], f"%{destination}0"
        lines.append(text)
        if destination == "p":
            lines.append(f"selp.b32 %i, 1, 0, {register};")
            register = "%i"
        lines.append(f"st.global.{kind} [%to+{at}], {register};")
        places.append((text, kind, at))
    return kernel_text(lines, 8 * CHUNK), [*places, *ROW_PLACES]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("seeds", [(1,), pytest.param(range(2, 12), marks=pytest.mark.slow)], ids=["once", "often"])
def test_both_engines_agree(rows, seeds):
    text, places = every_form(rows)
    for seed in seeds:
        assert_same(text, inputs(seed), places, 8 * CHUNK)


def traces_agree(rows):
    """Those of the rows as one kernel; where memory steers that, those of its halves."""
    text = kernel_text([instance(row)[0] for row in rows])
    if not without_results.assert_same(without_results.of_threads(text)) and len(rows) > LEAST:
        half = len(rows) // 2
        traces_agree(rows[:half])
        traces_agree(rows[half:])


@pytest.mark.parametrize("rows", ROWS)
def test_traces_without_results(rows):
    """Each instruction once, some of its results used by nobody."""
    traces_agree(rows)


def test_every_arithmetic_form_is_ptx():
    """NVIDIA's assembler takes each of them: no test of something that does not exist."""
    if shutil.which("ptxas") is None:
        pytest.skip("ptxas is not installed")
    text = kernel_text([instance(row)[0] for row in arithmetic_rows()])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forms.ptx")
        path.write_text(text)
        command = ["ptxas", "-arch=sm_100a", "-O0", str(path), "-o", str(path.with_suffix(".cubin"))]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Unsupported .version" in found.stderr or "is not defined for option 'gpu-name'" in found.stderr:
            pytest.skip("ptxas is older than PTX 9.0")
        assert found.returncode == 0, found.stderr
