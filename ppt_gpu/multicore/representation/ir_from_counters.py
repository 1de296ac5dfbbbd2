"""From counters of a CPU run to the intermediate representation (Blem, section 5.2, S-core side).

Iterations of the outer loop become threads, each SIMD register or unrolled step its own. What the counters do not say
is assumed, and every assumption stands in the notes.
"""

from __future__ import annotations

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.ir import Amount, Ir

LINE = 64  # B of a cache line where only misses tell of the footprint
#: operations of a program of which nothing but their number is known: what neither loads, stores nor branches
_REST = "int_add"


def ir_of_counters(counters: Counters, name: str) -> Ir:
    """The representation of a run. Raises PptError where the counters do not say what cannot be assumed."""
    notes: list[str] = []
    counts = operation_counts(counters, notes)
    width = max(1, round(counters.get("simd_width", 1.0)))
    threads = _iterations(counters) * width * counters.get("unroll", 1.0)
    element = counters.get("element", 4.0)
    operations = {each: Amount(count * width, count) for each, count in counts.items()}
    if width > 1:
        notes.append(f"every operation is taken to work on {width} elements")
    return Ir(
        name=name,
        origin=f"counters of a CPU run, {counters.path}",
        threads=threads,
        width=width,
        operations=operations,
        ilp=_ilp(counters, notes),
        footprint=_footprint(counters, notes),
        element=element,
        strides=_strides(counters, notes),
        inner_loops=counters.get("inner_loops"),
        mispredicted=_mispredicted(counters),
        parallel=counters.get("parallel_fraction", 1.0),
        notes=tuple(notes),
    )


def _iterations(counters: Counters) -> float:
    if counters.get("outer_iterations") > 0:
        return counters.get("outer_iterations")
    message = "the counters do not say 'outer_iterations': iterations that could run side by side, the threads of a GPU"
    raise PptError(message, path=counters.path, hint="add the line, or --counter outer_iterations=100000")


def operation_counts(counters: Counters, notes: list[str]) -> dict[str, float]:
    """Operations by class: measured, or from what perf counts, the rest taken as integer additions."""
    measured = {name: count for name, count in counters.operations.items() if count > 0}
    if measured:
        return measured
    total = counters.get("uops") or counters.get("instructions")
    if not total > 0:
        message = "the counters name no operations: neither op.*, 'uops' nor 'instructions'"
        raise PptError(
            message, path=counters.path, hint="perf stat -e instructions,... or lines such as op.fp_add,1200000"
        )
    known = {
        "load": counters.get("loads"),
        "store": counters.get("stores"),
        "branch": counters.get("branches"),
        "fp_add": counters.get("fp_operations") / 2,
        "fp_mul": counters.get("fp_operations") / 2,
    }
    found = {name: count for name, count in known.items() if count > 0}
    if "fp_add" in found:
        notes.append("floating-point operations are taken as half additions, half multiplications")
    rest = total - sum(found.values())
    if rest > 0:
        found[_REST] = rest
        notes.append(f"{rest:.4g} of {total:.4g} operations of unknown kind are taken as integer additions")
    return found


def _footprint(counters: Counters, notes: list[str]) -> float:
    if "footprint" in counters.values:
        return counters.get("footprint")
    for name in ("l3_misses", "l2_misses", "l1_misses"):
        if name in counters.values:
            found = counters.get(name) * LINE
            notes.append(
                f"no footprint: taken as {name} x {LINE} B = {found:.4g} B, which data used twice make too large"
            )
            return found
    message = "the counters say neither 'footprint' nor misses of a cache: how much data the run touches is unknown"
    raise PptError(message, path=counters.path, hint="add the line, or --counter 'footprint=8 MiB'")


def _strides(counters: Counters, notes: list[str]) -> dict[str, float]:
    """Shares by distance: from strides, or SIMD accesses as distance 1 and all others irregular (section 5.2.2)."""
    if counters.strides:
        total = sum(counters.strides.values())
        return {name: share / total for name, share in counters.strides.items()}
    if "simd_share" in counters.values:
        share = counters.get("simd_share")
        return {name: part for name, part in (("1", share), ("irregular", 1 - share)) if part > 0}
    notes.append("neither simd_share nor stride_*: no access is taken to be coalesced")
    return {"irregular": 1.0}


def _ilp(counters: Counters, notes: list[str]) -> dict[int, float]:
    found: dict[int, float] = {}
    if "ilp_window2" in counters.values:
        found[2] = counters.get("ilp_window2")
    if "ilp" in counters.values:
        found[128] = counters.get("ilp")
    if not found:
        notes.append("no ilp: taken as 1 on a GPU (Table 5.1)")
    return found


def _mispredicted(counters: Counters) -> float | None:
    branches = counters.get("branches") or counters.operations.get("branch", 0.0)
    if "branch_misses" not in counters.values or not branches:
        return None
    return min(1.0, counters.get("branch_misses") / branches)
