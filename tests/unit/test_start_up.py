"""Start-up stays light: commands that compute nothing must not import the compilers and table libraries."""

import subprocess
import sys

import pytest

HEAVY = ("numba", "llvmlite", "networkx", "rich", "numpy", "simpy")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["gpus"], ["explain"], ["predict", "--help"], ["port", "--help"]], ids=" ".join
)
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from ppt_gpu.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("HEAVY []"), done.stdout[-300:]
