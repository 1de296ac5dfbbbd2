"""The registry of metrics: every number that leaves the program has a tag, a unit, a definition and a source."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.report.result.result import Metric


@dataclass(frozen=True)
class Definition:
    tag: str
    name: str
    unit: str
    text: str
    source: str


SIMULATION = "simulation of one SM"
FUNCTIONAL = "functional execution of the PTX"
HARDWARE = "hardware file"

_DEFINITIONS = (
    Definition(
        "kernel.time", "Run time", "s",
        "Time of one launch: kernel.cycles / gpu.clock + kernel.launch_overhead. Host copies are not in it.",
        SIMULATION + ", extrapolated to the grid",
    ),
    Definition(
        "kernel.cycles", "Cycles", "cycles",
        "SM clock cycles from the start of the first block to the end of the last, launch overhead excluded.",
        SIMULATION + ", extrapolated to the grid",
    ),
    Definition("kernel.launch_overhead", "Launch overhead", "s", "Time to start a kernel.", HARDWARE + " [host]"),
    Definition(
        "kernel.thread_instructions", "Thread instructions", "instructions",
        "PTX instructions executed by all threads of the grid; lanes whose guard predicate is false do not count. "
        "Scaled from the executed blocks, unless every block was run.",
        FUNCTIONAL,
    ),
    Definition(
        "kernel.warp_instructions", "Warp instructions", "instructions",
        "Machine operations issued by all warps of the grid, after the expansion of PTX to machine operations. "
        "Scaled from the simulated blocks.",
        SIMULATION,
    ),
    Definition(
        "kernel.registers", "Registers per thread", "registers",
        "32-bit registers a thread occupies: given by the workload, else an estimate of what ptxas would use.",
        "workload, or machine/registers.py",
    ),
    Definition("kernel.shared", "Shared memory per block", "B", "Static plus dynamic shared memory.", "PTX, workload"),
    Definition("gpu.clock", "SM clock", "Hz", "The clock that kernel.cycles count.", HARDWARE + " [sm]"),
    Definition("grid.blocks", "Blocks", "blocks", "Thread blocks in the grid.", "workload"),
    Definition("grid.active_sms", "Active SMs", "SMs", "SMs that receive at least one block.", "even spreading"),
    Definition(
        "sm.ipc", "IPC of an SM", "instructions/cycle",
        "Warp instructions issued per cycle by the simulated SM while it has blocks.",
        SIMULATION,
    ),
    Definition(
        "occupancy.blocks_per_sm", "Resident blocks", "blocks/SM",
        "Blocks that fit on an SM at the same time (the grid may have fewer).",
        "NVIDIA occupancy rules (SPEC 13)",
    ),
    Definition("occupancy.warps_per_sm", "Resident warps", "warps/SM", "Warps of resident blocks.", "occupancy rules"),
    Definition(
        "occupancy.fraction", "Occupancy", "ratio", "Resident warps / the most an SM can hold.", "occupancy rules"
    ),
    Definition(
        "occupancy.limiter", "Occupancy limiter", "", "The resource that admits no further block.", "occupancy rules"
    ),
    Definition(
        "limiter", "Limiter", "",
        "What limits the kernel: the resource whose bound is at least 75 % of the predicted cycles, "
        "else the stall reason with most warp cycles.",
        "bounds and warp cycles by reason",
    ),
    Definition(
        "limiter.kind", "Kind of limit", "",
        "The limiter's kind: memory bandwidth or latency, load/store, block launches, synchronisation, arithmetic.",
        "limiter",
    ),
    Definition(
        "kernel.expected_error", "Expected error", "ratio",
        "Mean error of predictions for launches measured on real GPUs that were limited in the same way, all kernels "
        "alike, of the same generation of GPUs where enough kernels were measured; or that there is no evidence.",
        "validation/evidence.json",
    ),
    Definition(
        "memory.l1_hit_rate", "L1 hit rate", "ratio", "Sectors found in the L1 / sectors looked up in it.", SIMULATION
    ),
    Definition(
        "memory.l2_hit_rate", "L2 hit rate", "ratio", "Sectors found in the L2 / sectors that reached it.", SIMULATION
    ),
    Definition(
        "memory.l2_bytes", "L2 traffic", "B", "Bytes between the SMs and the L2, both ways, whole grid.", SIMULATION
    ),
    Definition(
        "memory.dram_read_bytes", "DRAM reads", "B", "Bytes read from DRAM, whole grid.", SIMULATION
    ),
    Definition(
        "memory.dram_write_bytes", "DRAM writes", "B", "Bytes written back to DRAM, whole grid.", SIMULATION
    ),
    Definition(
        "memory.dram_throughput", "DRAM throughput", "B/s",
        "(memory.dram_read_bytes + memory.dram_write_bytes) / time of the kernel's cycles.",
        SIMULATION,
    ),
    Definition(
        "shared.passes_per_access", "Shared-memory passes", "passes/access",
        "Cycles of the banks per warp access to shared memory. Without conflicts 1 for words of 4 B, up to 2 for "
        "8 B and 4 for 16 B; twice that on Turing, whose L1 delivers 64 B a cycle.",
        SIMULATION,
    ),
    Definition(
        "roofline.flops", "Floating-point operations", "FLOP",
        "Of all threads: fp32, fp64, halves and tensor cores; an fma counts two.",
        FUNCTIONAL,
    ),
    Definition(
        "roofline.intensity", "Arithmetic intensity", "FLOP/B", "roofline.flops / DRAM bytes.", "Williams et al."
    ),
    Definition(
        "roofline.attainable", "Roofline", "FLOP/s", "min(peak, DRAM bandwidth x intensity).", "Williams et al."
    ),
    Definition("roofline.achieved", "Achieved", "FLOP/s", "roofline.flops / time of the kernel's cycles.", SIMULATION),
    Definition(
        "little.bytes_in_flight", "Bytes in flight for full DRAM bandwidth", "B",
        "DRAM latency x peak DRAM bandwidth, whole chip (Little's law).",
        "Little's law",
    ),
    Definition(
        "blocks.surveyed", "Surveyed blocks", "blocks",
        "Blocks of the grid that were run to see whether blocks differ: landmarks of the grid and one block a stratum.",
        FUNCTIONAL,
    ),
    Definition(
        "blocks.warp_instructions", "Work of a block", "instructions",
        "Mean PTX instructions executed by the warps of a block of the grid, from one block a stratum.",
        FUNCTIONAL,
    ),
    Definition(
        "blocks.variation", "Variation of the blocks", "ratio",
        "Coefficient of variation of the blocks' warp instructions: standard deviation / mean.",
        FUNCTIONAL,
    ),
    Definition(
        "blocks.memory_variation", "Variation of the blocks' memory", "ratio",
        "Coefficient of variation of the 32-byte sectors that the blocks ask for.",
        FUNCTIONAL,
    ),
    Definition(
        "blocks.kinds", "Kinds of blocks", "kinds",
        "Clusters of the surveyed blocks by warp instructions, longest warp and memory sectors.",
        "k-means on GPUMech's kind of features (SPEC 3.3)",
    ),
    Definition(
        "blocks.shares", "Shares of the kinds", "", "Share of the grid's blocks that each kind has.", "k-means"
    ),
    Definition(
        "blocks.sampling_error", "Sampling error", "ratio",
        "Relative standard error of blocks.warp_instructions; 0 when every block was run.",
        "successive differences of strata (Wolter)",
    ),
    Definition(
        "sim.blocks", "Simulated blocks", "blocks", "Blocks executed functionally and simulated on one SM.", SIMULATION
    ),
    Definition(
        "sim.extrapolation", "Extrapolation", "ratio",
        "Blocks of the busiest SM / blocks simulated on it; of blocks that differ, their work.",
        SIMULATION,
    ),
    Definition(
        "sim.warp_instructions", "Simulated warp instructions", "instructions",
        "Machine operations that the SM simulation issued.",
        SIMULATION,
    ),
    Definition(
        "sim.wall", "Time to predict", "s",
        "Wall-clock time of the host from reading the workload to the result, compilation included.",
        "host clock",
    ),
)  # fmt: skip

REGISTRY: dict[str, Definition] = {definition.tag: definition for definition in _DEFINITIONS}


def metric(tag: str, value: float | int | str) -> Metric:
    """A metric with the registry's name, unit, definition and source. KeyError for an unregistered tag."""
    known = REGISTRY[tag]
    return Metric(tag, known.name, known.unit, value, known.text, known.source)


def definition(tag: str) -> Definition:
    """The registry's entry. Raises PptError with the nearest tag."""
    if tag not in REGISTRY:
        raise PptError(f"unknown metric '{tag}'", hint=did_you_mean(tag, REGISTRY) or "`explain` lists them all")
    return REGISTRY[tag]
