"""The four topologies of a chip of many cores, CPU-like and GPU-like: who runs when, and how fast (Blem, table 2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.values import Values

#: what the light cores are: single-threaded (S-cores) or many-threaded (M-cores)
ORGANISATIONS = ("cpu", "gpu")
TOPOLOGIES = ("symmetric", "asymmetric", "dynamic", "composed")
#: other names in the literature
ALIASES = {"fused": "composed"}


def topology_named(name: str) -> str:
    """One of TOPOLOGIES. Raises PptError with the nearest name."""
    found = ALIASES.get(name, name)
    if found not in TOPOLOGIES:
        raise PptError(f"unknown topology '{name}'", hint=did_you_mean(name, (*TOPOLOGIES, *ALIASES)))
    return found


def organisation_named(name: str) -> str:
    """One of ORGANISATIONS. Raises PptError with the nearest name."""
    if name not in ORGANISATIONS:
        raise PptError(f"unknown organisation '{name}'", hint=did_you_mean(name, ORGANISATIONS))
    return name


def performance(
    topology: str,
    cores: Values,
    *,
    light_alone: Values,
    light: Values,
    heavy: Values = np.nan,
    light_bound: Values = np.inf,
    heavy_bound: Values = np.inf,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(P_1, P_inf) in instructions/s of a chip with `cores` light cores, and one heavy core unless it is symmetric.

    `light_alone` is P_C of a light core with one thread, `light` with all its threads (the same for S-cores), `heavy`
    that of the heavy core. The bounds are P_B of equation 3.4 for code on a light and on a heavy core; infinite ones
    leave the minimum out, as chapters 4 and 5 do.
    """
    topology = topology_named(topology)
    together = np.asarray(cores * np.asarray(light))
    if topology == "asymmetric":
        together = together + heavy
    alone, bound = (light_alone, light_bound) if topology == "symmetric" else (heavy, heavy_bound)
    return np.asarray(np.minimum(alone, bound)), np.asarray(np.minimum(together, light_bound))
