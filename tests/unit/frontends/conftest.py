"""Each test has a cache of its own, and may have compilers that are shell scripts."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ppt_gpu.frontends import cuda_source, tools

#: answers like nvcc 12.3; counts its compilations in the file `calls`, "compiles" to the PTX beside it
NVCC = """\
#!/bin/sh
here=$(dirname "$0")
case "$1" in
  --version) echo "Cuda compilation tools, release 12.3, V12.3.1"; exit 0;;
  --list-gpu-arch) echo compute_70; echo compute_80; echo compute_90; exit 0;;
esac
echo "$@" >> "$here/calls"
while [ $# -gt 1 ]; do [ "$1" = -o ] && made="$2"; shift; done
if grep -q BROKEN "$1"; then
  echo "$1(3): error: identifier \\"BROKEN\\" is undefined" >&2
  echo "1 error detected in the compilation of \\"$1\\"." >&2
  exit 2
fi
cp "$here/made.ptx" "$made"
"""

PTXAS = """\
#!/bin/sh
here=$(dirname "$0")
case "$1" in
  --version) echo "Cuda compilation tools, release 12.3, V12.3.1"; exit 0;;
  --help) echo "Allowed values: 'compute_70','compute_80','compute_90','compute_90a'"; exit 0;;
esac
echo "$@" >> "$here/calls"
cat >&2 "$here/said"
exit $(cat "$here/code" 2>/dev/null || echo 0)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "cache"))
    tools._described.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def no_compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a compiler: no PATH, no toolkit, no wheels."""
    monkeypatch.setattr(tools, "wheel_files", lambda *patterns: [])
    monkeypatch.setattr(cuda_source, "wheel_files", lambda *patterns: [])
    cuda_source.find_nvrtc.cache_clear()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield
    cuda_source.find_nvrtc.cache_clear()  # later tests find the real one


@pytest.fixture
def install(tmp_path: Path, no_compilers: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Puts a script on PATH; returns the folder it stands in."""

    def put(name: str, text: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod((folder / name).stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return folder

    return put
