"""Trace files: the traces of one or more launches with what they belong to, compressed, checksummed (docs/trace.md).

    0    8 bytes  b"PPTTRACE"
    8    u32      version of the format
    12   u32      bytes of the header, H
    16   u32      CRC-32 of the header
    20   H bytes  header: a JSON object, UTF-8
    20+H          the sections that the header lists, one after another, to the end of the file

All integers are little-endian. A reader takes files of its own version only.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_check import check_features, check_globals, check_trace
from ppt_gpu.emulator.trace.trace_pack import Damaged, Rows, pack, unpack
from ppt_gpu.emulator.trace.trace_parts import executions
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Range

MAGIC = b"PPTTRACE"
VERSION = 2
PREFIX = struct.Struct("<8sIII")
LARGEST_HEADER = 1 << 26  # B

Content = Trace | GlobalAccesses | BlockFeatures


@dataclass(frozen=True)
class Record:
    """A trace, and the launch that it belongs to."""

    launch: int  # number in the workload
    kernel: str
    grid: tuple[int, int, int]
    threads: int  # of a block
    instructions: int  # of the kernel
    identity: str  # digest of PTX, launch and memory layout: `ppt_gpu.emulator.trace.identity`
    separable: bool  # blocks may be taken one by one
    content: Content


#: section name -> (type, coding) in the order of the file; `rows` needs what stands before it
TRACE_SECTIONS: dict[str, tuple[str, str]] = {
    "blocks": ("int64", "delta"),
    "path_start": ("int64", "delta"),
    "path_pc": ("int32", "delta"),
    "warp_path": ("int32", "delta"),
    "warp_threads": ("int64", "delta"),
    "access_start": ("int64", "delta"),
    "access_base": ("uint64", "rows"),
    "access_pattern": ("int32", "rows"),
    "access_space": ("uint8", "rows"),
    "pattern_offset": ("int64", "delta"),
    "pattern_mask": ("uint32", "delta"),
    "pc_threads": ("int64", "plain"),
    "block_threads": ("int64", "plain"),
}
GLOBAL_SECTIONS: dict[str, tuple[str, str]] = {
    "blocks": ("int64", "delta"),
    "start": ("int64", "delta"),
    "pc": ("int32", "rows"),
    "base": ("uint64", "rows"),
    "pattern": ("int32", "rows"),
    "pattern_offset": ("int64", "delta"),
    "pattern_mask": ("uint32", "delta"),
}
FEATURE_SECTIONS: dict[str, tuple[str, str]] = {field.name: ("int64", "delta") for field in fields(BlockFeatures)}
_SECTIONS = {"trace": TRACE_SECTIONS, "global": GLOBAL_SECTIONS, "features": FEATURE_SECTIONS}
_KINDS = {Trace: "trace", GlobalAccesses: "global", BlockFeatures: "features"}


def class_of(content: Content) -> type[Content]:
    """The class in `Content`: Trace for every kind of trace."""
    return next(kind for kind in _KINDS if isinstance(content, kind))


def write_traces(records: Sequence[Record]) -> bytes:
    """The bytes of a trace file."""
    entries, parts = [], []
    for record in records:
        kind = _KINDS[class_of(record.content)]
        sections = []
        for name, (_, coding) in _SECTIONS[kind].items():
            values = getattr(record.content, name)
            if values is None:
                continue
            width, data = pack(values, coding, _rows(coding, kind, vars(record.content)))
            parts.append(data)
            sections.append({
                "name": name, "count": int(values.size), "width": width, "bytes": len(data), "crc32": zlib.crc32(data),
            })  # fmt: skip
        entry: dict[str, Any] = {name: value for name, value in vars(record).items() if name != "content"}
        entry |= {"kind": kind, "sections": sections}
        if isinstance(record.content, Trace):
            entry["ranges"] = [[r.name, r.start, r.bytes, r.copied] for r in record.content.ranges]
            entry["warnings"] = list(record.content.warnings)
            entry["printed"] = record.content.printed
        entries.append(entry)
    header = json.dumps({"records": entries}, separators=(",", ":"), ensure_ascii=True).encode()
    return b"".join((PREFIX.pack(MAGIC, VERSION, len(header), zlib.crc32(header)), header, *parts))


def _rows(coding: str, kind: str, arrays: dict[str, Any]) -> Rows | None:
    if coding != "rows":
        return None
    if kind == "trace":
        return Rows.of(arrays["warp_path"], arrays["access_start"])
    return Rows.of(np.zeros(len(arrays["blocks"]), np.int32), arrays["start"])


def read_traces(data: bytes, path: str, limit: int = Budget().trace) -> list[Record]:
    """The records of a trace file. PptError with the place in `path` for whatever is wrong with it.

    BudgetError when a record needs more than `limit` bytes of memory.
    """
    header, at = _read_header(data, path)
    records = []
    entries = header.get("records")
    if not isinstance(entries, list):
        raise _error(path, PREFIX.size, "the header lists no records")
    for number, entry in enumerate(entries):
        reader = _RecordReader(data, path, entry, number, limit)
        records.append(reader.read(at))
        at = reader.end
    if at != len(data):
        raise _error(path, at, f"{len(data) - at} bytes after the last section")
    return records


def _read_header(data: bytes, path: str) -> tuple[dict[str, Any], int]:
    if not data.startswith(MAGIC):
        raise _error(path, 0, "not a trace file", f"a trace file begins with {MAGIC.decode()}")
    if len(data) < PREFIX.size:
        raise _error(path, len(data), f"the file ends in its prefix of {PREFIX.size} bytes", _CUT)
    _, version, length, checksum = PREFIX.unpack_from(data)
    if version != VERSION:
        text = "newer" if version > VERSION else "older"
        hint = "update ppt_gpu, or record the trace again" if version > VERSION else "record the trace again"
        raise _error(path, 8, f"format version {version} is {text} than {VERSION}, which this program reads", hint)
    end = PREFIX.size + length
    if length > LARGEST_HEADER:
        raise _error(path, 12, f"a header of {length} bytes; expected at most {LARGEST_HEADER}")
    if end > len(data):
        raise _error(path, len(data), f"the file ends in its header of {length} bytes", _CUT)
    raw = data[PREFIX.size : end]
    if zlib.crc32(raw) != checksum:
        raise _error(path, PREFIX.size, "the header does not match its checksum", _DAMAGED)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _error(path, PREFIX.size, "the header is no JSON object")
    return header, end


#: stands in a record until its content is read
_NOTHING = GlobalAccesses(
    blocks=np.zeros(0, np.int64),
    start=np.zeros(1, np.int64),
    pc=np.zeros(0, np.int32),
    base=np.zeros(0, np.uint64),
    pattern=np.zeros(0, np.int32),
    pattern_offset=np.zeros((0, 32), np.int64),
    pattern_mask=np.zeros(0, np.uint32),
)
_CUT = "the file was cut short: copy or record it again"
_DAMAGED = "the file is damaged: copy or record it again"


def _error(path: str, offset: int, text: str, hint: str | None = None) -> PptError:
    return PptError(f"byte {offset}: {text}", path=path, hint=hint)


class _RecordReader:
    """Reads one record. `end` is the offset after it."""

    def __init__(self, data: bytes, path: str, entry: Any, number: int, limit: int) -> None:
        self.data, self.path, self.number, self.left = data, path, number, limit
        self.entry = entry if isinstance(entry, dict) else {}
        self.end = 0

    def read(self, at: int) -> Record:
        kind = self._value("kind", str)
        if kind not in _SECTIONS:
            raise self._bad("kind")
        grid = self._value("grid", list)
        if len(grid) != 3 or not all(type(extent) is int and 1 <= extent < 1 << 32 for extent in grid):
            raise self._bad("grid")
        record = Record(
            launch=self._number("launch", 0, 1 << 32),
            kernel=self._value("kernel", str),
            grid=(grid[0], grid[1], grid[2]),
            threads=self._number("threads", 1, 1 << 12),
            instructions=self._number("instructions", 1, 1 << 31),
            identity=self._value("identity", str),
            separable=self._value("separable", bool),
            content=_NOTHING,
        )
        begin = at
        try:
            arrays = self._arrays(kind, at)
            content = self._content(kind, record, arrays)
        except Damaged as error:
            raise _error(self.path, begin, f"record {self.number}: {error}", _DAMAGED) from None
        return Record(**{**vars(record), "content": content})

    def _content(self, kind: str, record: Record, arrays: dict[str, NDArray[Any]]) -> Content:
        """What the arrays are, once it is known to be sound. Raises Damaged."""
        if kind == "trace":
            trace = _trace(self, record, arrays)
            check_trace(trace, record.grid, record.separable)
            return trace
        if kind == "features":
            features = BlockFeatures(**arrays)
            check_features(features, record.grid, record.threads)
            return features
        found = GlobalAccesses(**arrays)
        check_globals(found, record.grid, record.instructions)
        return found

    def _arrays(self, kind: str, at: int) -> dict[str, NDArray[Any]]:
        sections = self._value("sections", list)
        arrays: dict[str, NDArray[Any]] = {}
        expected = [name for name in _SECTIONS[kind] if name != "block_threads"]
        names = [str(section.get("name")) if isinstance(section, dict) else "" for section in sections]
        if [name for name in names if name != "block_threads"] != expected or names.count("block_threads") > 1:
            raise Damaged(f"sections {names}, expected {', '.join(expected)}")
        for name, section in zip(names, sections, strict=True):
            dtype, coding = _SECTIONS[kind][name]
            sizes = [section.get(key) for key in ("count", "bytes", "crc32")]
            if not all(type(size) is int and 0 <= size < 1 << 48 for size in sizes):
                raise Damaged(f"section '{name}' has no valid count, bytes and crc32")
            count, size, checksum = sizes
            self._charge(8 * count)
            if at + size > len(self.data):
                raise _error(self.path, len(self.data), f"the file ends in section '{name}' of {size} bytes", _CUT)
            part = self.data[at : at + size]
            if zlib.crc32(part) != checksum:
                raise _error(self.path, at, f"section '{name}' does not match its checksum", _DAMAGED)
            rows = self._checked_rows(coding, kind, arrays, count)
            try:
                arrays[name] = unpack(part, str(section.get("width")), count, coding, dtype, rows)
            except Damaged as error:
                raise _error(self.path, at, f"section '{name}': {error}", _DAMAGED) from None
            at += size
        self.end = at
        if "pattern_offset" in arrays:
            _shape(arrays, "pattern_offset", 32)
        return arrays

    def _charge(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise BudgetError(
                f"the traces of record {self.number} need more memory than the trace budget",
                path=self.path,
                hint="raise the budget: --max-trace SIZE, or Budget(trace=BYTES)",
            )

    def _checked_rows(self, coding: str, kind: str, arrays: dict[str, NDArray[Any]], count: int) -> Rows | None:
        """The row structure, once what it is made of is known to be sound."""
        if coding != "rows":
            return None
        start = arrays["access_start" if kind == "trace" else "start"]
        rows = arrays["warp_path" if kind == "trace" else "blocks"]
        if len(start) != len(rows) + 1 or start[0] != 0 or start[-1] != count or (np.diff(start) < 0).any():
            raise Damaged("the starts of the accesses do not rise from 0 to their number")
        return _rows(coding, kind, arrays)

    def _value(self, name: str, kind: type) -> Any:
        value = self.entry.get(name)
        if type(value) is not kind:
            raise self._bad(name)
        return value

    def _number(self, name: str, least: int, above: int) -> int:
        value = self._value(name, int)
        if not least <= value < above:
            raise self._bad(name)
        return int(value)

    def _bad(self, name: str) -> PptError:
        return _error(self.path, PREFIX.size, f"record {self.number} has no valid '{name}' in the header", _DAMAGED)

    def ranges(self) -> tuple[Range, ...]:
        found = []
        for row in self._value("ranges", list):
            kinds = [type(value) for value in row] if isinstance(row, list) else []
            if kinds != [str, int, int, bool] or not (0 <= row[1] < 1 << 47 and 0 <= row[2] < 1 << 47):
                raise self._bad("ranges")
            found.append(Range(*row))
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        texts = self._value("warnings", list)
        if not all(isinstance(text, str) for text in texts):
            raise self._bad("warnings")
        return tuple(texts)

    def printed(self) -> str:
        return str(self._value("printed", str))


def _shape(arrays: dict[str, NDArray[Any]], name: str, columns: int) -> None:
    if arrays[name].size % columns:
        raise Damaged(f"section '{name}' is no whole number of rows of {columns}")
    arrays[name] = arrays[name].reshape(-1, columns)


def _trace(reader: _RecordReader, record: Record, arrays: dict[str, NDArray[Any]]) -> Trace:
    """The trace with what follows from its sections."""
    blocks, path_start, path_pc = arrays["blocks"], arrays["path_start"], arrays["path_pc"]
    warp_path = arrays["warp_path"]
    per_block = -(-record.threads // 32)
    if "block_threads" in arrays:
        _shape(arrays, "block_threads", record.instructions)
    if len(arrays["pc_threads"]) != record.instructions:  # before arrays are made that long
        raise Damaged(f"{len(arrays['pc_threads'])} thread counts, the kernel has {record.instructions} instructions")
    if len(warp_path) != per_block * len(blocks):
        raise Damaged(f"{len(warp_path)} warps, expected {per_block} in each of {len(blocks)} blocks")
    if len(path_start) < 1 or path_start[0] != 0 or path_start[-1] != len(path_pc) or (np.diff(path_start) < 0).any():
        raise Damaged("the starts of the paths do not rise from 0 to the number of instructions")
    if len(path_pc) and not (int(path_pc.min()) >= 0 and int(path_pc.max()) < record.instructions):
        raise Damaged(f"an instruction outside of the kernel, which has {record.instructions}")
    if len(warp_path) and not (int(warp_path.min()) >= 0 and int(warp_path.max()) < len(path_start) - 1):
        raise Damaged("a warp without a path")
    return Trace(
        **arrays,
        warp_block=np.repeat(np.arange(len(blocks), dtype=np.int32), per_block),
        pc_executed=executions(path_start, path_pc, warp_path, record.instructions),
        ranges=reader.ranges(),
        warnings=reader.warnings(),
        printed=reader.printed(),
    )
