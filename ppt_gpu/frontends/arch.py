"""Which architecture to compile for: the GPU's own where the compiler knows it, else the nearest that works."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: compiled for when no GPU is named: `translate` and `check` of a CUDA file
DEFAULT_CAPABILITY = (8, 0)


def number(arch: str) -> int:
    """80 for "80", "sm_80", "compute_80" and "80a"."""
    found = re.search(r"(\d+)", arch)
    return int(found[1]) if found else 0


def of_capability(capability: tuple[int, int]) -> str:
    """ "80" for (8, 0)."""
    return f"{capability[0]}{capability[1]}"


def choose(capability: tuple[int, int], known: Sequence[str]) -> str:
    """The architecture ("80") to compile for a GPU of `capability`, out of those a compiler knows.

    Its own if known; else the highest below it, whose PTX it runs too; else, for a GPU older than all, the lowest.
    Variants such as "90a" are chosen only where a PTX file or an option asks for them.
    """
    own = of_capability(capability)
    plain = sorted({number(arch) for arch in known if arch.isdigit()})
    if not plain or own in known:
        return own
    below = [arch for arch in plain if arch < int(own)]
    return str(below[-1] if below else plain[0])


def threads_of_sm(capability: int) -> int:
    """Threads that an SM of compute capability 75 (7.5) holds, from 3.0 on (CUDA C++ Programming Guide)."""
    return {75: 1024, 86: 1536, 87: 1536, 88: 1536, 89: 1536, 120: 1536, 121: 1536}.get(capability, 2048)


def choose_for_registers(capability: tuple[int, int], known: Sequence[str]) -> str:
    """The architecture to assemble for where registers are asked for: ptxas gives as many as leave an SM full.

    The GPU's own if known; else the nearest with as many threads an SM; else as `choose` says.
    """
    own = of_capability(capability)
    alike = [n for arch in known if arch.isdigit() and threads_of_sm(n := number(arch)) == threads_of_sm(int(own))]
    if own in known or not alike:
        return choose(capability, known)
    return str(min(alike, key=lambda n: (abs(n - int(own)), n)))


def note(compiler: str, chosen: str, capability: tuple[int, int]) -> str | None:
    """What to tell when `chosen` is not the GPU's own architecture."""
    own = of_capability(capability)
    return None if chosen == own else f"compiled for sm_{chosen}: {compiler} does not know sm_{own}, the GPU's own"
