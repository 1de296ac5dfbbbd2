"""The instructions of a kernel trace: warp by warp, as the `Trace` of a kernel made of the instructions that ran.

    #BEGIN_TB
    thread block = 0,0,0
    warp = 0
    insts = 2
    0010 ffffffff 1 R2 LDG.E.64 1 R4 8 1 0x7f0000000000 8
    0020 ffffffff 0 EXIT 0 0
    #END_TB

Predicates and uniform registers are not in a trace, so nothing waits for them.

The lines of a kernel trace that are instructions: what tells instructions apart, and the accesses of each.

A line is [block x y z, warp (before version 3)] [source line] PC mask results [registers] opcode sources [registers]
bytes [addresses] [immediate].
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_parts import executions, renumber
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Instruction, Module
from ppt_gpu.sass.accesses import ACCESSING, GLOBAL, Accesses
from ppt_gpu.sass.machine import instruction, machine_kernel, machine_module
from ppt_gpu.sass.trace_header import GROUPED, TraceHeader, TraceLines, read_header
from ppt_gpu.workload.workload import Range

_WARP = 32


class Instructions:
    """The instructions that have been read so far. skip: words before the PC."""

    def __init__(self, lines: TraceLines, accesses: Accesses, skip: int) -> None:
        self.lines, self.accesses, self.skip = lines, accesses, skip
        self.instructions: list[Instruction] = []
        self.listing: list[str] = []
        self.numbers: dict[tuple[str, ...], int] = {}  # what tells an instruction apart -> its number
        self.seen: dict[str, tuple[int, int]] = {}  # line without addresses -> instruction, lanes

    def read(self, line: str, warp: int) -> tuple[int, int]:
        """Number and active lanes of the instruction on `line`; its access, if it has one, is added."""
        words = line.split()
        try:
            return self._parsed(line, words, warp)
        except (ValueError, IndexError) as error:
            if line.strip().startswith(("#", "warp", "insts", "thread")):
                raise self.lines.bad("the warp has fewer instructions than 'insts' says: lines are missing") from None
            what = f" ({error})" if isinstance(error, ValueError) else ""
            raise self.lines.bad(f"not an instruction of a trace: '{line[:60]}'{what}") from None

    def _parsed(self, line: str, words: list[str], warp: int) -> tuple[int, int]:
        at = self.skip
        pc, mask = int(words[at], 16), int(words[at + 1], 16)
        results, at = _registers(words, at + 2)
        opcode = words[at]
        sources, at = _registers(words, at + 1)
        size = int(words[at])
        rest = words[at + 1 :]
        lanes = mask.bit_count()
        if mask >> _WARP:
            raise ValueError("a mask of more than 32 lanes")
        head = opcode.partition(".")[0]
        transfers = size > 0 and head in ACCESSING
        if not transfers and head in ACCESSING and mask:
            raise ValueError("no addresses")
        wait = _open_groups(head, rest)
        key = (words[self.skip], *words[self.skip + 2 : at], str(transfers), str(wait))
        number = self.numbers.get(key)
        if number is None:
            number = self._new(key, pc, opcode, results, sources, transfers, wait)
        if transfers:
            self.accesses.add(opcode, warp, mask, rest)
        elif len(rest) <= 1:
            self.seen[line] = (number, lanes)
        return number, lanes

    def _new(
        self,
        key: tuple[str, ...],
        pc: int,
        opcode: str,
        results: list[int],
        sources: list[int],
        transfers: bool,
        wait: int | None,
    ) -> int:
        number = len(self.instructions)
        try:
            made = instruction(number, opcode, results, sources, transfers=transfers, wait=wait)
        except PptError as error:
            raise self.lines.bad(error.message, error.hint) from None
        self.numbers[key] = number
        self.instructions.append(made)
        names = ", ".join("RZ" if each == 255 else f"R{each}" for each in (*results, *sources))
        self.listing.append(f"{pc:04x} {opcode} {names}".rstrip())
        return number


def _registers(words: list[str], at: int) -> tuple[list[int], int]:
    """The registers listed from words[at], which counts them, and the place behind them."""
    end = at + 1 + int(words[at])
    names = words[at + 1 : end]
    if len(names) != end - at - 1 or not all(name[:1] == "R" for name in names):
        raise ValueError("registers are missing")
    return [int(name[1:]) for name in names], end


def _open_groups(head: str, rest: list[str]) -> int | None:
    """How many groups of asynchronous copies a DEPBAR lets stand open; None for other instructions."""
    if head != "DEPBAR":
        return None
    return int(rest[-1], 0) if rest else 0


_ACCESS = 25  # B of an access
#: lines of blocks that later versions of the tracer add
_CLUSTER = ("cluster id", "cluster cta", "cluster rank")
#: B without an access that tell two buffers apart: cudaMalloc aligns to 256 B, and large buffers to pages of 2 MiB
APART = 1 << 16


def with_accessed(
    ranges: tuple[Range, ...],
    base: NDArray[np.uint64],
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
    sizes: NDArray[np.int64],
) -> tuple[Range, ...]:
    """`ranges` by address, and a buffer for each further stretch of global memory that the accesses touch.

    sizes: bytes that a lane of each access moves.
    """
    chosen = (space == GLOBAL) & (masks[pattern] != 0) if len(masks) else np.zeros(0, np.bool_)
    first = (
        base[chosen].astype(np.int64) + offsets.min(axis=1)[pattern[chosen]] if len(masks) else np.zeros(0, np.int64)
    )
    last = base[chosen].astype(np.int64) + offsets.max(axis=1)[pattern[chosen]] if len(masks) else first
    last = last + sizes[chosen]
    found = sorted(ranges, key=lambda area: area.start)
    for area in found:
        outside = (first < area.start) | (first >= area.start + area.bytes)
        first, last = first[outside], last[outside]
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order]) if len(order) else last
    cuts = np.flatnonzero(first[1:] - last[:-1] > APART) + 1
    for number, part in enumerate(np.split(np.arange(len(first)), cuts)):
        if len(part):
            start = int(first[part[0]]) // 256 * 256
            found.append(Range(f"memory{number}", start, int(last[part[-1]]) - start, False))
    return tuple(found)


@dataclass(frozen=True)
class MachineTrace:
    """What ran, and its instructions as a module of one kernel. Blocks stand in ascending order."""

    header: TraceHeader
    module: Module
    kernel: LinkedKernel
    trace: Trace
    local_frame: int  # bytes of local memory of a warp


def read_machine_trace(path: str, ranges: tuple[Range, ...] = (), limit: int = 4 << 30) -> MachineTrace:
    """The kernel trace in `path`. ranges: what the host copied before the launch. limit: B of arrays.

    Raises PptError with the line of the first thing that is wrong; BudgetError when it is larger than `limit`.
    """
    lines = TraceLines(path)
    source = iter(lines)
    return _Body(read_header(lines, source), lines, source, limit).read(ranges)


class _Warp(NamedTuple):
    path: int
    first: int  # access
    end: int
    threads: int  # thread instructions


class _Body:
    def __init__(self, header: TraceHeader, lines: TraceLines, source: Iterator[str], limit: int) -> None:
        self.header, self.lines, self.source, self.limit = header, lines, source, limit
        threads = header.block[0] * header.block[1] * header.block[2]
        self.warps = -(-threads // _WARP)
        self.accesses = Accesses(header.shared_base, header.local_base)
        self.code = Instructions(lines, self.accesses, (4 if header.version < GROUPED else 0) + header.lines)
        self.paths: dict[bytes, int] = {}
        self.order: list[bytes] = []
        self.bytes = 0  # of paths
        self.blocks: dict[int, list[_Warp]] = {}
        self.threads: dict[int, NDArray[np.int64]] = {}  # of each instruction, by block
        self.executed, self.lanes = array("i"), array("b")  # of the block that is being read

    def read(self, ranges: tuple[Range, ...]) -> MachineTrace:
        for line in self.source:
            text = line.strip()
            if text == "#BEGIN_TB":
                self._block()
            elif text.startswith("-"):
                raise self.lines.bad("a second header: two traces in one file?")
            elif text and not text.startswith("#"):
                hint = "give the output of post-traces-processing (*.traceg), not of the tracer itself (*.trace)"
                raise self.lines.bad("expected #BEGIN_TB", hint)
        if not self.blocks:
            raise self.lines.bad("the trace has no thread block: is it cut?")
        frame = self.accesses.place_local()
        kernel = machine_kernel(self.header.kernel, self.code.instructions)
        module = machine_module(self.header.path, self.header.arch, kernel, self.code.listing)
        return MachineTrace(self.header, module, kernel, self._trace(ranges), frame)

    def _block(self) -> None:
        block, warps = -1, {}
        for line in self.source:
            text = line.strip()
            if not text or text.startswith(_CLUSTER):
                continue
            if text == "#END_TB":
                break
            key, equals, value = (part.strip() for part in text.partition("="))
            if key == "thread block" and equals and block < 0:
                block = self._linear(value)
            elif key == "warp" and equals and block >= 0:
                warp = self._number(value, self.warps, "warps of a block of this launch: %d")
                if warp in warps:
                    raise self.lines.bad(f"warp {warp} stands here a second time")
                warps[warp] = self._stream(block * self.warps + warp)
            else:
                raise self.lines.bad(f"expected '{'warp' if block >= 0 else 'thread block'} = ...', not '{text[:40]}'")
        else:
            raise self.lines.bad("the trace ends within a thread block: it is cut")
        if block < 0:
            raise self.lines.bad("#END_TB before 'thread block = x,y,z'")
        nothing = _Warp(self._path(array("i")), len(self.accesses), len(self.accesses), 0)
        self.blocks[block] = [warps.get(warp, nothing) for warp in range(self.warps)]
        executed, lanes = np.frombuffer(self.executed, np.int32), np.frombuffer(self.lanes, np.int8)
        self.threads[block] = np.bincount(executed, lanes, len(self.code.instructions)).astype(np.int64)
        self.executed, self.lanes = array("i"), array("b")

    def _linear(self, text: str) -> int:
        try:
            x, y, z = (int(part) for part in text.split(","))
        except ValueError:
            raise self.lines.bad(f"thread block = {text}: expected three numbers, such as 0,0,0") from None
        grid = self.header.grid
        if not (0 <= x < grid[0] and 0 <= y < grid[1] and 0 <= z < grid[2]):
            raise self.lines.bad(f"thread block {text} is outside of the grid {grid[0]},{grid[1]},{grid[2]}")
        block = x + grid[0] * (y + grid[1] * z)
        if block in self.blocks:
            raise self.lines.bad(f"thread block {text} stands here a second time")
        return block

    def _number(self, text: str, limit: int, rule: str = "") -> int:
        if not text.isdecimal() or int(text) >= limit:
            hint = rule % limit if rule else None
            raise self.lines.bad(f"'{text}' is not a number below {limit}", hint)
        return int(text)

    def _stream(self, warp: int) -> _Warp:
        """The instructions of one warp, which is number `warp` of the grid."""
        key, _, value = (next(self.source, "").strip() or next(self.source, "").strip()).partition("=")
        if key.strip() != "insts":
            raise self.lines.bad("expected 'insts = ...' behind 'warp = ...'")
        count = self._number(value.strip(), 1 << 40)
        path, lanes = array("i"), array("b")
        first = len(self.accesses)
        for _ in range(count):
            line = next(self.source, None)
            if line is None:
                raise self.lines.bad(f"the trace ends after {len(path)} of {count} instructions of a warp: it is cut")
            found = self.code.seen.get(line) or self.code.read(line, warp)
            path.append(found[0])
            lanes.append(found[1])
        self.executed.extend(path)
        self.lanes.extend(lanes)
        number = self._path(path)
        used = _ACCESS * len(self.accesses) + self.bytes + 8 * len(self.code.instructions) * len(self.blocks)
        if used > self.limit:
            hint = "--max-trace raises the limit"
            raise BudgetError(f"the trace is larger than {self.limit:,} bytes", path=self.lines.path, hint=hint)
        return _Warp(number, first, len(self.accesses), sum(lanes))

    def _path(self, path: array[int]) -> int:
        key = path.tobytes()
        if key not in self.paths:
            self.paths[key] = len(self.order)
            self.order.append(key)
            self.bytes += len(key)
        return self.paths[key]

    def _trace(self, ranges: tuple[Range, ...]) -> Trace:
        count = len(self.code.instructions)
        rows = [warp for block in sorted(self.blocks) for warp in self.blocks[block]]
        path = np.array([warp.path for warp in rows], np.int32)
        path, used = renumber(path, len(self.order))
        streams = [np.frombuffer(self.order[number], np.int32) for number in used.tolist()]
        path_start = np.concatenate(([0], np.cumsum([len(each) for each in streams], dtype=np.int64)))
        path_pc = np.concatenate((np.zeros(0, np.int32), *streams))
        base, pattern, space, offsets, masks = self.accesses.arrays()
        index = np.concatenate((np.zeros(0, np.int64), *(np.arange(warp.first, warp.end) for warp in rows)))
        pattern, kept = renumber(pattern[index], len(masks))
        sizes = np.array(self.accesses.size, np.int64)[index]
        threads = np.zeros((len(self.blocks), count), np.int64)
        for row, block in enumerate(sorted(self.blocks)):
            threads[row, : len(self.threads[block])] = self.threads[block]
        blocks = np.array(sorted(self.blocks), np.int64)
        return Trace(
            blocks=blocks,
            path_start=path_start,
            path_pc=path_pc,
            warp_path=path,
            warp_block=np.repeat(np.arange(len(blocks), dtype=np.int32), self.warps),
            warp_threads=np.array([warp.threads for warp in rows], np.int64),
            access_start=np.concatenate(([0], np.cumsum([warp.end - warp.first for warp in rows], dtype=np.int64))),
            access_base=base[index],
            access_pattern=pattern,
            access_space=space[index],
            pattern_offset=offsets[kept],
            pattern_mask=masks[kept],
            pc_executed=executions(path_start, path_pc, path, count),
            pc_threads=threads.sum(axis=0),
            ranges=with_accessed(ranges, base[index], pattern, space[index], offsets[kept], masks[kept], sizes),
            block_threads=threads,
        )
