"""From the intermediate representation to the inputs of the S-core model (Blem, section 5.2, M-core to S-core).

Threads become iterations of an outer loop, as many side by side as SIMD lanes; lanes that are masked off cost what they
cost on a GPU. Accesses of neighbouring elements become SIMD loads and stores, one element for all threads one load, and
all others one scalar access a thread. A cache misses once a line on what of the footprint exceeds it.
"""

from __future__ import annotations

from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.operations import LOADS, MEMORY, STORES
from ppt_gpu.multicore.core_models.s_inputs import USUAL_ILP, USUAL_ILP_W2, SInputs
from ppt_gpu.multicore.representation.ir import Amount, Ir

#: share of the branches that a CPU mispredicts (section 5.3.2)
MISPREDICTED = 0.03
#: operations that each iteration of the outer loop adds: a counter and a branch
LOOP = ("int_add", "branch")


def chunks(amount: Amount, lanes: int) -> float:
    """Executions of SIMD instructions with so many lanes. Active lanes of a group are taken to lie side by side."""
    return amount.groups * max(1.0, amount.active / lanes)


def misses(footprint: float, size: float, line: float) -> float:
    """Misses of a cache of `size` B: one for every line of what exceeds it (section 5.2.2)."""
    return max(footprint - size, 0.0) / line


def s_inputs_of_ir(ir: Ir, core: SCore, *, own_ilp: bool = False, on_chip: float | None = None) -> SInputs:
    """The inputs of `ir` on `core`.

    own_ilp: out of order, the ILP of the representation in the core's window instead of the mean. on_chip: C_on-chip of
    Eq 5.1 in B instead of the scratch memory of one group.
    """
    notes = [*ir.notes, *_masked(ir, core)]
    side_by_side = ir.strides.get("1", 0.0)
    uniform = ir.strides.get("0", 0.0)
    counts: dict[str, float] = {}
    for name, amount in ir.operations.items():
        together = chunks(amount, core.lanes(name))
        if name in MEMORY and core.lanes(name) > 1:
            regular = 0.0 if name == "atomic" else side_by_side + uniform
            together = together * regular + amount.threads * (1 - regular)
        counts[name] = together
    iterations = ir.threads / core.lanes("fp_add")
    for name in LOOP:
        counts[name] = counts.get(name, 0.0) + iterations
    footprint = footprint_on_cpu(ir, on_chip)
    level = [misses(footprint, each.size, core.line) for each in core.levels]
    rate = MISPREDICTED if ir.mispredicted is None else ir.mispredicted
    if ir.mispredicted is None:
        notes.append(f"{MISPREDICTED:.0%} of the branches are taken to be mispredicted (section 5.3.2)")
    ilp, pairs = _parallelism(ir, core, own_ilp, notes)
    return SInputs(
        n_i=counts,
        name=ir.name,
        f_inf=ir.parallel,
        ILP=ilp,
        ILP_w2=pairs,
        N_mL1=level[0],
        N_mL2=level[1],
        N_mL3=level[2] if core.l3 else 0.0,
        N_mDTLB=misses(footprint, core.dtlb_entries * core.page_bytes, core.page_bytes),
        N_mbr=rate * counts["branch"],
        simd_memory=_simd_share(ir, core, counts),
        notes=tuple(notes),
    )


def _masked(ir: Ir, core: SCore) -> list[str]:
    """How many lanes are masked off, and what that can cost at most, where it is many."""
    whole, lanes = ir.count(*ir.operations), core.lanes("fp_add")
    idle = 1 - whole.active / ir.width
    if idle < 0.05 or lanes == 1 or ir.width == 1:
        return []
    most = min(whole.threads, whole.groups * max(1.0, ir.width / lanes)) / chunks(whole, lanes)
    text = f"{idle:.0%} of the lanes are masked off"
    return [f"{text}; where the others do not lie side by side, up to {most:.2g} times the work"]


def footprint_on_cpu(ir: Ir, on_chip: float | None = None) -> float:
    """Eq 5.1: F_CPU = F_off-chip + C_on-chip, B."""
    return ir.footprint - ir.scratch + (ir.scratch if on_chip is None else on_chip)


def _simd_share(ir: Ir, core: SCore, counts: dict[str, float]) -> float:
    """Share of the loads and stores that move SIMD registers."""
    if core.lanes("load") == 1:
        return 0.0
    names = [name for name in counts if name in LOADS or name in STORES]
    total = sum(counts[name] for name in names)
    simd = sum(chunks(ir.operations[name], core.lanes(name)) for name in names if name not in ("atomic", *MEMORY))
    simd += ir.strides.get("1", 0.0) * sum(
        chunks(ir.operations[name], core.lanes(name)) for name in names if name in ("load", "store")
    )
    return min(1.0, simd / total) if total else 0.0


def _parallelism(ir: Ir, core: SCore, own_ilp: bool, notes: list[str]) -> tuple[float, float]:
    """(ILP in the core's window, ILP in a window of 2)."""
    pairs = ir.ilp_in(2)
    if pairs is None and not core.out_of_order:
        pairs = USUAL_ILP_W2
        notes.append(f"the representation has no ILP: taken as {USUAL_ILP_W2} in a window of 2")
    own = ir.ilp_in(core.window)
    ilp = own if own_ilp and own is not None else USUAL_ILP
    if core.out_of_order and ilp == USUAL_ILP:
        notes.append(f"ILP is taken as {USUAL_ILP} (section 5.2.1)")
    return max(1.0, ilp), min(2.0, pairs or 1.0)
