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


def note(compiler: str, chosen: str, capability: tuple[int, int]) -> str | None:
    """What to tell when `chosen` is not the GPU's own architecture."""
    own = of_capability(capability)
    return None if chosen == own else f"compiled for sm_{chosen}: {compiler} does not know sm_{own}, the GPU's own"
