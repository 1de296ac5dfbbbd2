"""The committed ISA files are what hardware/tools/make_isa.py makes of the reference tables."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TABLES = ROOT.parent / "shared" / "reference" / "hardware"


@pytest.mark.skipif(
    not (TABLES / "ptx_to_sass.csv").is_file(), reason="the reference tables are not beside the checkout"
)
def test_committed_files_are_reproduced(tmp_path: Path) -> None:
    tools = ROOT / "hardware" / "tools"
    code = f"import sys; sys.path.insert(0, {str(tools)!r}); from pathlib import Path; import make_isa;"
    code += f"make_isa.main(Path({str(TABLES)!r}), Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)
    made = sorted(tmp_path.glob("*.toml"))
    assert len(made) >= 16
    for path in made:
        assert path.read_text() == (ROOT / "hardware" / "isa" / path.name).read_text(), path.name
