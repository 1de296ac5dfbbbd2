"""Which SMs have the code of a kernel in their instruction cache, and what of it is in the L2, when a launch begins.

The block scheduler goes on with the SM after the one that it served last, so small launches in a row run on different
SMs. An SM keeps the code of the last kernel that it ran; constants, of which parameters come first, stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ppt_gpu.sm.program.program import CODE_BEFORE, CODE_BEHIND, CODE_COLD, CODE_IN_L2, CODE_IN_SM


@dataclass
class CodeHistory:
    """The launches so far on a chip of `sms` SMs."""

    sms: int
    last: dict[int, str] = field(default_factory=dict)  # SM: the last kernel that it ran
    kernels: set[str] = field(default_factory=set)
    following: int = 0  # the SM that gets the next block

    def launch(self, kernel: str, blocks: int) -> tuple[int, int]:
        """CODE_* of the instructions and of the constants that the worst off of its SMs finds; then it has run."""
        used = [(self.following + index) % self.sms for index in range(min(blocks, self.sms))]
        below = CODE_IN_L2 if kernel in self.kernels else CODE_COLD
        code = CODE_IN_SM if all(self.last.get(sm) == kernel for sm in used) else below
        below = CODE_IN_L2 if self.kernels else CODE_COLD
        constants = CODE_IN_SM if all(sm in self.last for sm in used) else below
        self.last.update(dict.fromkeys(used, kernel))
        self.kernels.add(kernel)
        self.following = (self.following + blocks) % self.sms
        return code, constants

    def beside(self, names: Sequence[str], kernel: str) -> int:
        """CODE_BEFORE, CODE_BEHIND: which neighbours of a kernel have run, of the kernels of its module in order."""
        at, found = names.index(kernel), 0
        if at > 0 and names[at - 1] in self.kernels:
            found |= CODE_BEFORE
        if at + 1 < len(names) and names[at + 1] in self.kernels:
            found |= CODE_BEHIND
        return found
