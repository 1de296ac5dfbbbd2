"""Which instructions of a disassembled kernel count, when its size is held against an expansion of PTX.

Counted is what can run without leaving the fast path: from the kernel's first instruction along branches and calls, but
not into subroutines for rare operands (those of the compiler with "slowpath" in their name, and "mediumpath", which
double-precision square roots of subnormal numbers and of none take) nor into the blocks that call them, nor to where a
warp goes when it comes to a shuffle with lanes apart (BRA.DIV). Other subroutines of the compiler (64-bit division)
count at each call, since an expansion has them in line; functions of the program count once. NOPs, and what nothing
leads to (the branch to itself behind the last EXIT, and padding), do not count.
"""

from __future__ import annotations

from collections import Counter

from ppt_gpu.sass.disassembly import SassFunction, SassInstruction

_CALLS = ("CALL", "CAL", "JCAL")
#: after them nothing follows, unless they are conditional
_ENDS = ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL", "BRK", "CONT", "SYNC", "RTT")
#: they name a place where control may go on later
_AHEAD = ("BSSY", "SSY", "PBK", "PCNT", "PRET")
_INDIRECT = ("BRX", "BRXU", "JMX", "JMXU")
#: of the compiler's own, in CUDA 11 to 13
_COMPILER = "$__cuda_"
_SLOW = ("slowpath", "mediumpath")
#: taken only by warps whose lanes are apart where the compiler expects them together
_APART = "BRA.DIV"


def counted(function: SassFunction, others: dict[str, SassFunction] | None = None) -> Counter[str]:
    """How often each whole opcode counts. others: the functions of the program that it may call, by name."""
    return _Walk(function, others or {}).run()


def fast_places(function: SassFunction) -> set[int]:
    """Positions of the instructions that can run without a slow path, those of subroutines too."""
    walk = _Walk(function, {})
    found: set[int] = set()
    waiting, seen = [0], {0}
    while waiting:
        called: list[str] = []
        found.update(walk.reached(waiting.pop(), called))
        new = {function.labels[name] for name in called if name in function.labels} - seen
        seen |= new
        waiting += new
    return found


class _Walk:
    def __init__(self, function: SassFunction, others: dict[str, SassFunction]) -> None:
        self.function, self.others = function, others
        self.code = function.instructions
        named = (place for name, place in function.labels.items() if not name.startswith("0x"))
        behind = (place + 1 for place, each in enumerate(self.code) if each.head in (*_ENDS, *_CALLS))
        targets = (place for each in self.code for place in self._targets(each))
        self.ends = sorted({*named, *behind, *targets, len(self.code)})

    def _targets(self, each: SassInstruction) -> list[int]:
        """Where control may go on within the function after `each`, but for what comes next and for calls."""
        if each.head == "RET" or each.head not in (*_ENDS, *_AHEAD) or each.opcode.startswith(_APART):
            return []
        place = self.function.labels.get(each.target)
        return [] if place is None else [place]

    def run(self) -> Counter[str]:
        total: Counter[str] = Counter()
        called: list[str] = []
        for place in self.reached(0, called):
            total[self.code[place].opcode] += 1
        seen: set[str] = set()
        while called:
            name = called.pop()
            own = _COMPILER in name
            if not own and name in seen:
                continue
            seen.add(name)
            if name in self.function.labels:
                for place in self.reached(self.function.labels[name], called if not own else []):
                    total[self.code[place].opcode] += 1
            elif name in self.others:
                total += counted(self.others[name], {k: v for k, v in self.others.items() if k not in seen})
        del total["NOP"]
        return total

    def reached(self, first: int, called: list[str]) -> list[int]:
        """Places that count, from `first` on; the names of subroutines called there are added to `called`."""
        found: set[int] = set()
        waiting = [first]
        while waiting:
            start = waiting.pop()
            if start in found or start >= len(self.code):
                continue
            end = next(end for end in self.ends if end > start)
            block = self.code[start:end]
            last = block[-1]
            if last.head in _CALLS and _COMPILER in last.target and any(path in last.target for path in _SLOW):
                continue
            found.update(range(start, end))
            if last.head in _CALLS:
                called.append(last.target)
            waiting += self._after(block, end)
        return sorted(found)

    def _after(self, block: tuple[SassInstruction, ...], end: int) -> list[int]:
        labels, last = self.function.labels, block[-1]
        places = [place for each in block for place in self._targets(each)]
        if last.head in _INDIRECT:
            inner = {name: place for name, place in labels.items() if name.startswith(".L_")}
            listed = [place for name, place in inner.items() if name in last.operands]
            places += listed or inner.values()
        if last.head not in _ENDS or last.conditional:
            places.append(end)
        return places
