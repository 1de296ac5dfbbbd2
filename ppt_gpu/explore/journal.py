"""The journal of a study: each finished row appended at once, with a checksum, so that a killed study goes on.

A line is sixteen hexadecimal digits of SHA-256 and a JSON document. The first names the study: what was asked and by
which version of the program. A line that was cut short is dropped, and its row computed again. While one process
writes the journal, no other can.

What a study depends on, as a digest: equal digests, equal results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.files import write_all
from ppt_gpu.emulator.trace.identity import digest, prediction_digest
from ppt_gpu.explore.space import Space
from ppt_gpu.frontends.includes import included_text
from ppt_gpu.inputs import CUDA, named_files
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.load import fingerprint
from ppt_gpu.workload.workload import Workload


def study_identity(workload: Workload, gpu: str, space: Space, fixed: Iterable[str], *more: Any) -> str:
    """Of the workload with its files, the GPU, the configurations, `more` plain values, and this program."""
    asked = (
        [(parameter.key, parameter.values) for parameter in space.parameters],
        [(key, expression.text) for key, expression in space.follow],
        [condition.text for condition in space.conditions],
    )
    program = prediction_digest("explore")
    return digest(program, workload_identity(workload), fingerprint(load_gpu(gpu)), asked, list(fixed), more)


def workload_identity(workload: Workload) -> str:
    """Of a workload, its kernel file and the files that fill its buffers."""
    described = {key: value for key, value in asdict(workload).items() if key != "line"}
    return digest(described, [_content(path) for path in named_files(workload)], _included(workload))


def _included(workload: Workload) -> str | None:
    """Of a CUDA file, its text with what it includes; None where that cannot be known."""
    if Path(workload.ptx_path).suffix not in CUDA:
        return None
    return included_text(Path(workload.ptx_path), workload.compiler_options)


def _content(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None


VERSION = 1
SUFFIX = ".journal"


class Journal:
    """Rows by number, in a file that grows with each of them."""

    def __init__(self, path: Path, study: str) -> None:
        """Open or begin the journal of `study`, a digest. PptError where it is of another one, in use, or cannot be."""
        self.path = path
        self.rows: dict[int, Any] = {}
        try:
            if path.exists() and not path.is_file():
                raise PptError("cannot write: this is no regular file", path=path)
            self._file: BinaryIO = open(path, "ab+", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise PptError(f"cannot write: {error.strerror}", path=path) from None
        try:
            self._lock()
            self._read(study)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, number: int, row: Any) -> None:
        """Note a finished row: it is on the disk when this returns."""
        self.rows[number] = row
        self._append({"row": number, "found": row})

    def remove(self) -> None:
        """The study is finished and its result is written."""
        self.path.unlink(missing_ok=True)

    def _append(self, document: dict[str, Any]) -> None:
        try:
            write_all(self._file.fileno(), _line(document))
            os.fsync(self._file.fileno())
        except OSError as error:
            raise PptError(f"cannot write: {error.strerror}", path=self.path) from None

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PptError("another run is writing this journal", path=self.path) from None

    def _read(self, study: str) -> None:
        self._file.seek(0)
        data = self._file.read()
        head = {"journal": VERSION, "study": study}
        if _line(head).startswith(data):  # empty, or its beginning cut short
            os.ftruncate(self._file.fileno(), 0)
            self._append(head)
            return
        lines = data.split(b"\n")
        first = _document(lines[0])
        if first != head:
            message = "the journal is of another run: other inputs, or another version of this program"
            hint = "remove it, or write the result to another file"
            raise PptError(message if first else "this file is no journal", path=self.path, hint=hint)
        if lines[-1]:  # cut short: later lines must not stand behind it
            os.ftruncate(self._file.fileno(), len(data) - len(lines[-1]))
        documents = [document for line in lines[1:-1] if (document := _document(line)) is not None]
        self.rows = {document["row"]: document["found"] for document in documents}


def _line(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return sha256(text).hexdigest()[:16].encode() + b" " + text + b"\n"


def _document(line: bytes) -> dict[str, Any] | None:
    """The document of a line; None for one that is damaged."""
    checksum, _, text = line.partition(b" ")
    if sha256(text).hexdigest()[:16].encode() != checksum:
        return None
    found: dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass"))
    return found
