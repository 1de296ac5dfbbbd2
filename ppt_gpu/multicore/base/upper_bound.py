"""The upper-bound core model (Blem, chapter 3): one set of equations for single- and many-threaded cores.

All arguments may be arrays that broadcast. Latencies count core cycles, clocks Hz, bandwidths B/s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.values import Values, require


@dataclass(frozen=True)
class CorePerformance:
    """Equations 3.1 to 3.3 with their terms."""

    access_time: NDArray[np.float64]  # t, cycles a load or store waits on average
    utilisation: NDArray[np.float64]  # eta, share of time in which the threads keep the core busy
    performance: NDArray[np.float64]  # P_C, instructions/s


def access_time(m_l1: Values, m_l2: Values, t_l1: Values, t_l2: Values, t_mem: Values) -> NDArray[np.float64]:
    """Equation 3.3: (1-m1) t1 + m1 (1-m2) t2 + m1 m2 t_mem, in cycles. `m_l2` is local: misses per L2 access."""
    return np.asarray((1 - m_l1) * t_l1 + m_l1 * (1 - m_l2) * t_l2 + m_l1 * m_l2 * t_mem)


def utilisation(threads: Values, t: Values, loads: Values, cpi: Values) -> NDArray[np.float64]:
    """Equation 3.2: min(1, T / (1 + t r_ls / CPI)). `loads` is r_ls, loads and stores per instruction."""
    return np.asarray(np.minimum(1.0, threads / (1.0 + t * loads / cpi)))


def core_performance(clock: Values, cpi: Values, threads: Values, loads: Values, t: Values) -> CorePerformance:
    """Equation 3.1: P_C = eta clock / CPI, with `t` from `access_time`.

    Raises PptError for a clock, CPI or thread count that is not positive and for loads not from 0 to 1.
    """
    cpi = require("CPI_exe", cpi, above=0)
    clock = require("the clock in Hz", clock, above=0)
    threads = require("the threads of a core", threads, above=0)
    loads = require("the loads and stores per instruction", loads, least=0, most=1)
    eta = utilisation(threads, t, loads, cpi)
    return CorePerformance(np.asarray(t), eta, np.asarray(eta * clock / cpi))


def latency_limit(clock: Values, threads: Values, loads: Values, t: Values) -> NDArray[np.float64]:
    """The limit of P_C for CPI -> 0 (section 3.1.2): T clock / (t r_ls), instructions/s."""
    return np.asarray(threads * clock / (t * loads))


def bandwidth_bound(bandwidth: Values, line: Values, loads: Values, m_l1: Values, m_l2: Values) -> NDArray[np.float64]:
    """Equation 3.4: P_B = BW / (b r_ls m1 m2), instructions/s; infinite where nothing goes to memory."""
    traffic = np.asarray(line * loads * m_l1 * m_l2, dtype=float)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(traffic > 0, bandwidth / np.where(traffic > 0, traffic, 1.0), np.inf))
