"""The addresses of memory instructions in a kernel trace: read from its three forms, placed in memory spaces.

A line ends, for an instruction with addresses, with the bytes of a lane, the form, and: 0, the address of each active
lane; 1, the first lane's address and the distance from lane to lane; 2, the first lane's address and the distance of
each further active lane from the one before.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.launch.layout import local_address
from ppt_gpu.sass.registers import data_bytes
from ppt_gpu.spec.gpu import MEMORY_SPACES

GLOBAL, SHARED, LOCAL = (MEMORY_SPACES.index(name) for name in ("global", "shared", "local"))
#: B of the windows through which generic addresses see shared and local memory
WINDOW = 1 << 24
LISTED, STRIDED, CHAINED = range(3)
_SPACE = {"LDG": GLOBAL, "STG": GLOBAL, "ATOMG": GLOBAL, "RED": GLOBAL, "REDG": GLOBAL, "LDGSTS": GLOBAL, "LDS": SHARED,
          "STS": SHARED, "ATOMS": SHARED, "LDSM": SHARED, "STSM": SHARED, "LDL": LOCAL, "STL": LOCAL}  # fmt: skip
GENERIC = ("LD", "ST", "ATOM")
ACCESSING = (*_SPACE, *GENERIC)


class Accesses:
    """All accesses of a trace, in the order in which they are added."""

    def __init__(self, shared_base: int, local_base: int) -> None:
        self.windows = ((shared_base, SHARED), (local_base, LOCAL))
        self.base, self.pattern, self.space = array("Q"), array("i"), array("b")
        self.size = array("i")  # B of a lane
        self.warp = array("q")  # of the grid: linear block * warps of a block + warp
        self.offsets: list[tuple[int, ...]] = []  # [N] 32 distances from the lowest active lane
        self.masks: list[int] = []
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._strided: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.base)

    def add(self, opcode: str, warp: int, mask: int, words: list[str]) -> None:
        """One access; words: what stands behind the bytes of a lane, form first. ValueError when it is not of the form.

        An immediate may follow the addresses.
        """
        head = opcode.partition(".")[0]
        base, pattern, space = 0, -1, _SPACE.get(head, GLOBAL)
        if mask:
            form, base = int(words[0]), int(words[1], 16)
            if form not in (LISTED, STRIDED, CHAINED):
                raise ValueError(f"unknown address form {form}")
            expected = 3 if form == STRIDED else 1 + mask.bit_count()
            if not expected <= len(words) <= expected + 1:
                raise ValueError(f"{len(words)} words of addresses, not {expected}")
            if form == STRIDED:
                pattern = self._stride(mask, int(words[2]))
            else:
                pattern = self._pattern(mask, _distances(mask, form, words))
            if head in GENERIC:
                base, pattern, space = self._resolve(base, pattern)
            elif head in ("LDSM", "STSM"):
                pattern = self._rows(opcode, pattern)
            elif space == SHARED and self.windows[0][0] and base >= self.windows[0][0]:
                base -= self.windows[0][0]
        else:
            pattern = self._pattern(0, (0,) * 32)
        self.base.append(base)
        self.pattern.append(pattern)
        self.space.append(space)
        self.size.append(data_bytes(opcode))
        self.warp.append(warp)

    def _stride(self, mask: int, stride: int) -> int:
        key = (mask, stride)
        if key not in self._strided:
            lowest = (mask & -mask).bit_length() - 1
            distances = tuple(stride * (lane - lowest) if mask >> lane & 1 else 0 for lane in range(32))
            self._strided[key] = self._pattern(mask, distances)
        return self._strided[key]

    def _pattern(self, mask: int, distances: tuple[int, ...]) -> int:
        known = self._known.setdefault((mask, distances), len(self.masks))
        if known == len(self.masks):
            self.masks.append(mask)
            self.offsets.append(distances)
        return known

    def _resolve(self, base: int, pattern: int) -> tuple[int, int, int]:
        """A generic access in the space of its lowest lane, with the lanes in that space."""
        for start, space in self.windows:
            if start and start <= base < start + WINDOW:
                kept = [
                    lane
                    for lane in self._active(pattern)
                    if start <= base + self.offsets[pattern][lane] < start + WINDOW
                ]
                return base - start, self._only(pattern, kept), space
        windows = [start for start, _ in self.windows if start]
        kept = [
            lane
            for lane in self._active(pattern)
            if not any(start <= base + self.offsets[pattern][lane] < start + WINDOW for start in windows)
        ]
        return base, self._only(pattern, kept), GLOBAL

    def _rows(self, opcode: str, pattern: int) -> int:
        """The lanes that give the addresses of an LDSM's rows: eight for each matrix."""
        last = opcode.rpartition(".")[2]
        rows = 8 * int(last) if last in ("2", "4") else 8
        return self._only(pattern, [lane for lane in self._active(pattern) if lane < rows])

    def _active(self, pattern: int) -> list[int]:
        return [lane for lane in range(32) if self.masks[pattern] >> lane & 1]

    def _only(self, pattern: int, lanes: list[int]) -> int:
        mask = sum(1 << lane for lane in lanes)
        if mask == self.masks[pattern] or not mask:
            return pattern
        kept = tuple(each if mask >> lane & 1 else 0 for lane, each in enumerate(self.offsets[pattern]))
        return self._pattern(mask, kept)

    def place_local(self) -> int:
        """Give every warp its frame of local memory, interleaved as by the hardware; traces have threads' offsets.

        Returns the bytes of a frame.
        """
        local = np.flatnonzero(np.array(self.space, np.int8) == LOCAL)
        active = [k for k in local.tolist() if self.masks[self.pattern[k]]]
        if not active:
            return 0
        reach = [
            (self.base[k] + min(self.offsets[self.pattern[k]]), self.base[k] + max(self.offsets[self.pattern[k]]))
            for k in active
        ]
        lowest = min(low for low, _ in reach)
        frame = -(-(max(high for _, high in reach) + 16 - lowest) // 16) * 16
        for k in active:
            old, size = self.pattern[k], self.size[k]
            mask, offsets = self.masks[old], self.offsets[old]
            first = (mask & -mask).bit_length() - 1
            at = tuple(32 * offsets[lane] + (lane - first) * size if mask >> lane & 1 else 0 for lane in range(32))
            self.base[k] = local_address(self.warp[k], frame, self.base[k] - lowest, first, size)
            self.pattern[k] = self._pattern(mask, at)
        return 32 * frame

    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8], NDArray, NDArray]:
        """base, pattern, space; offsets and masks of the patterns."""
        offsets = np.array(self.offsets, np.int64).reshape(-1, 32)
        return (
            np.array(self.base, np.uint64), np.array(self.pattern, np.int32), np.array(self.space, np.uint8), offsets,
            np.array(self.masks, np.uint32),
        )  # fmt: skip


def _distances(mask: int, form: int, words: list[str]) -> tuple[int, ...]:
    """The distance of each active lane from the lowest one."""
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    if form == LISTED:
        addresses = [int(word, 16) for word in words[1 : 1 + len(lanes)]]
    else:
        addresses = [0]
        for word in words[2 : 1 + len(lanes)]:
            addresses.append(addresses[-1] + int(word))
    found = [0] * 32
    for lane, address in zip(lanes, addresses, strict=True):
        found[lane] = address - addresses[0]
    return tuple(found)
