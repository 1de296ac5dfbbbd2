"""Compiles every CUDA file here to PTX beside it, without what says nothing: `python validation/held_out/make.py`."""

import re
import subprocess
from pathlib import Path

for source in sorted(Path(__file__).parent.glob("*/*.cu")):
    made = source.with_suffix(".ptx")
    subprocess.run(["nvcc", "-ptx", "-arch=compute_75", "-o", str(made), str(source)], check=True)
    text = re.sub(r"^\s*//.*\n|^\s*\n", "", made.read_text(), flags=re.MULTILINE)
    made.write_text(text.replace("\t", " "))
