"""The Markov chain model of a multithreaded core (Chen and Aamodt, HPCA 2009; as GPUMech, paper 000, compares it).

A thread that issues is suspended with probability p, a suspended one wakes in a cycle with probability 1 / M. The state
of N threads is how many are suspended; while one is active, one instruction issues. (GPUMech's section VIII describes
one thread; the chain of N follows from it.)
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.gpumech.interval import Profile


def transitions(threads: int, suspend: float, suspended: float) -> NDArray[np.float64]:
    """[N+1, N+1] probabilities from state to state. suspended: cycles M that a thread is suspended, at least 1."""
    wake = 1.0 / suspended
    chain = np.zeros((threads + 1, threads + 1))
    for state in range(threads + 1):
        for woken in range(state + 1):
            chance = comb(state, woken) * wake**woken * (1.0 - wake) ** (state - woken)
            if state < threads:
                chain[state, state - woken + 1] += suspend * chance
                chain[state, state - woken] += (1.0 - suspend) * chance
            else:
                chain[state, state - woken] += chance
    return chain


def markov_ipc(threads: int, suspend: float, suspended: float) -> float:
    """Instructions per cycle: the probability that not all N threads are suspended, in the stationary state."""
    if suspend <= 0.0:
        return 1.0
    chain = transitions(threads, min(suspend, 1.0), max(suspended, 1.0))
    # pi (chain - 1) = 0 and sum(pi) = 1; one equation of the first is redundant.
    system = (chain - np.eye(threads + 1)).T
    system[0] = 1.0
    stationary = np.linalg.solve(system, np.eye(threads + 1)[0])
    return float(np.clip(stationary[:-1].sum(), 0.0, 1.0))


def markov_rates(profile: Profile) -> tuple[float, float]:
    """p and M of a warp: stalls by instructions, and their mean length in cycles (0, 1 when it never stalls)."""
    stalls = profile.stall[profile.stall > 0]
    if not len(stalls) or not profile.instructions:
        return 0.0, 1.0
    return len(stalls) / profile.instructions, max(float(stalls.mean()), 1.0)
