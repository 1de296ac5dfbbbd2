"""All of GPGPU-Sim's QV100, cycle by cycle: its SMs, two crossbars, and slices of an L2 in which everything hits.

Written from what the simulator does, in the simulator's own order of things, with its SM (simulator_sm): nothing of
`ppt_gpu.sm` is used but the polynomial by which addresses choose slices. What DRAM does is left out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from simulator_sm import ANSWERS, L1, RESPONSES, Issued, Sm, Step

from ppt_gpu.sm.l2_sharing.slice_hash import polynomial_slice

SMS, CHANNELS, SLICES = 80, 32, 64
ROP = 160  # cycles from the crossbar to the queue of a slice
QUEUE, BUFFER = 64, 512  # places of a slice's queues, of a crossbar's buffers


@dataclass(frozen=True)
class Packet:
    """A sector that an SM asks for or writes, or the answer."""

    sm: int
    access: Issued
    sector: int


@dataclass
class Crossbar:
    """Packets of inputs to outputs, which take one a cycle, one output after another, of the inputs in turn.

    An input whose packet has been taken may give the one behind it to an output that comes later in the same cycle.
    """

    inputs: int
    outputs: int
    first: int  # number of the first input among all, SMs before slices, by which the turn goes
    waiting: list[deque[tuple[int, Packet]]] = field(init=False)  # with their outputs
    there: list[deque[Packet]] = field(init=False)
    turn: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = [deque() for _ in range(self.inputs)]
        self.there = [deque() for _ in range(self.outputs)]
        self.turn = [0] * self.outputs

    def advance(self) -> None:
        wanted: dict[int, set[int]] = {}
        for number, queue in enumerate(self.waiting):
            if queue:
                wanted.setdefault(queue[0][0], set()).add(number)
        for output in range(self.outputs):
            if output not in wanted or len(self.there[output]) >= BUFFER:
                continue
            turn = self.turn[output] - self.first
            taken = min(wanted[output], key=lambda number: (number - turn) % (SMS + SLICES))
            self.there[output].append(self.waiting[taken].popleft()[1])
            self.turn[output] = (taken + self.first + 1) % (SMS + SLICES)
            if self.waiting[taken]:
                wanted.setdefault(self.waiting[taken][0][0], set()).add(taken)

    @property
    def busy(self) -> bool:
        return any(map(len, self.waiting)) or any(map(len, self.there))


class ChipSm(Sm):
    """An SM whose requests go to the crossbar."""

    def __init__(self, number: int, chip: Chip) -> None:
        super().__init__([[[]]], 1, 1 << 15)
        self.number, self.chip = number, chip
        self.queue = deque[Packet]()

    def send(self, one: Issued, sector: int) -> None:
        packet = Packet(self.number, one, sector)
        self.chip.requests.waiting[self.number].append((self.chip.slice_of(sector), packet))

    def receive(self) -> None:
        """An answer on its way to the load/store unit."""
        if self.queue and len(self.answers) < RESPONSES:
            packet = self.queue.popleft()
            self.answers.append((packet.access, packet.sector))
        there = self.chip.replies.there[self.number]
        if there and len(self.queue) < ANSWERS:
            self.queue.append(there.popleft())


@dataclass
class Slice:
    """Of the L2; an access a cycle."""

    coming: deque[tuple[int, Packet]] = field(default_factory=deque)  # with the cycle in which each is there
    queue: deque[Packet] = field(default_factory=deque)
    answers: deque[Packet] = field(default_factory=deque)

    def step(self, there: deque[Packet], cycle: int) -> None:
        if there and len(self.queue) + 4 <= QUEUE:
            self.coming.append((cycle + ROP, there.popleft()))
        if self.queue and len(self.answers) < QUEUE:
            self.answers.append(self.queue.popleft())
        if self.coming and self.coming[0][0] <= cycle and len(self.queue) < QUEUE:
            self.queue.append(self.coming.popleft()[1])

    @property
    def busy(self) -> bool:
        return bool(self.coming or self.queue or self.answers)


class Chip:
    """Launches run one after another; SMs keep whose turn it is, the L2 everything."""

    def __init__(self) -> None:
        self.requests, self.replies = Crossbar(SMS, SLICES, 0), Crossbar(SLICES, SMS, SMS)
        self.sms = [ChipSm(number, self) for number in range(SMS)]
        self.slices = [Slice() for _ in range(SLICES)]
        self.last, self.cycle = SMS - 1, 0  # the SM that got the last block
        self._slice_of: dict[int, int] = {}

    def slice_of(self, sector: int) -> int:
        chunk = sector * 32 >> 8
        if chunk not in self._slice_of:
            found = polynomial_slice(np.array([chunk], np.uint64), SLICES, CHANNELS)
            self._slice_of[chunk] = int(found[0])
        return self._slice_of[chunk]

    def run(self, paths: list[list[list[Step]]], resident: int, l1_size: int) -> int:
        """The cycles of a launch, of the paths of the warps of its blocks."""
        begun, left = self.cycle, deque(paths)
        for sm in self.sms:
            sm.begin(left, max(map(len, paths)), resident)
            sm.l1 = L1(l1_size)
        busy = [False] * SMS
        while any(busy) or left or self._below():
            for sm in self.sms:
                sm.receive()
            for number, part in enumerate(self.slices):
                if part.answers and len(self.replies.waiting[number]) < BUFFER:
                    packet = part.answers.popleft()
                    self.replies.waiting[number].append((packet.sm, packet))
            for number, part in enumerate(self.slices):
                part.step(self.requests.there[number], self.cycle)
            self.requests.advance()
            self.replies.advance()
            for number, sm in enumerate(self.sms):
                if busy[number]:
                    sm.cycle = self.cycle
                    sm.step()
            self.cycle += 1
            self._launch(busy, left)
        return self.cycle - begun

    def _launch(self, busy: list[bool], left: deque[list[list[Step]]]) -> None:
        """An SM gets a block a cycle; the one behind the SM that got the last block begins."""
        for number in [(self.last + step) % SMS for step in range(1, SMS + 1)]:
            if busy[number] or left:
                before = len(left)
                busy[number] = self.sms[number].launch()
                if len(left) < before:
                    self.last = number

    def _below(self) -> bool:
        """Something is on its way below the SMs."""
        return any(part.busy for part in self.slices) or self.requests.busy or self.replies.busy
