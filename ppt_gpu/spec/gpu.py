"""The description of a GPU: immutable, in base units, the one thing every stage reads.

Built from `hardware/gpus/*.toml` by `ppt_gpu.spec.load_gpu`; the TOML keys are the field names below.
Cycles are SM clock cycles. "Load-to-use" latency: from issue of a load to issue of a dependent instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

#: Task classes: what a machine operation is, independent of the GPU. Operation names are "class" or "class.variant"
#: ("fp32.fma", "int32.mul", "load.global"); an ISA that does not list a variant uses the entry of its class.
COMPUTE_CLASSES = ("fp32", "fp64", "fp16", "int32", "sfu", "tensor", "branch", "barrier", "shuffle", "fence")
MEMORY_ACCESSES = ("load", "store", "atomic")
MEMORY_SPACES = ("global", "shared", "local", "constant")
MEMORY_CLASSES = tuple(f"{access}.{space}" for access in MEMORY_ACCESSES for space in MEMORY_SPACES)
TASK_CLASSES = COMPUTE_CLASSES + MEMORY_CLASSES


@dataclass(frozen=True)
class Pipe:
    """One kind of execution unit. `units` of them stand in each scheduler (sub-core) or in the whole SM."""

    name: str
    lanes: int  # lanes per SM, all units together
    scope: str  # "scheduler" or "sm"
    units: int  # independent units in one scope; each accepts a warp instruction every `ii` cycles
    ii: int  # initiation interval of a full-rate warp instruction, cycles
    collectors: int = 0  # operand collector units of its own where all schedulers share them; 0: collectors.units
    #: instructions of each scheduler that can wait before the one unit of the SM, which serves them as they came;
    #: 0: they wait at their schedulers
    queue: int = 0


@dataclass(frozen=True)
class Op:
    """Timing of a machine operation. For memory operations `latency` is unused: the memory system decides."""

    name: str
    pipe: str
    latency: int  # cycles from issue to the issue of a dependent operation
    ii: int  # cycles the pipe's unit is busy
    source: str = ""


@dataclass(frozen=True)
class Isa:
    """How PTX becomes timed machine operations on one compute capability."""

    name: str  # "sm_35"
    ops: Mapping[str, Op]
    #: PTX opcode ("div.rn.f32") or its leading part ("div.rn", "cvta") -> machine operation names; () is free.
    expand: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scheduled: bool = False  # what runs is machine code that a compiler makes of PTX (ppt_gpu.machine), not PTX itself
    #: patterns of PTX instructions that become one piece of machine code ("mul.wide+add.64") -> machine operations
    fuse: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: machine instructions that no PTX names (ppt_gpu.machine.selection.implicit_moves: "stack", "special") -> machine
    #: operations
    unnamed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: 32-bit registers and threads of an SM as the compiler takes it (ppt_gpu.machine.registers); 0: not
    #: known
    sm_registers: int = 0
    sm_threads: int = 0

    def op(self, name: str) -> Op:
        """The timing of `name`, or of its longest listed prefix ("int32.mul" -> "int32"). KeyError if none."""
        while name not in self.ops:
            head, dot, _ = name.rpartition(".")
            if not dot:
                raise KeyError(name)
            name = head
        return self.ops[name]

    def expansion(self, opcode: str) -> tuple[str, ...] | None:
        """Machine operation names for a PTX opcode, by longest dotted prefix; None: one operation, its own."""
        while opcode not in self.expand:
            opcode, dot, _ = opcode.rpartition(".")
            if not dot:
                return None
        return self.expand[opcode]


@dataclass(frozen=True)
class Sm:
    """One streaming multiprocessor, and how many there are. TOML table [sm]."""

    count: int
    clock: float  # Hz
    schedulers: int
    issue_width: int  # instructions of one warp a scheduler may issue in a cycle: 2 = dual issue
    policy: str  # "lrr", "gto", "gto_launch" or "gto_block"
    max_warps: int
    max_blocks: int
    max_threads_per_block: int
    registers: int  # 32-bit registers
    register_unit: int  # allocation granularity, registers
    register_granularity: str  # "warp" or "block"
    max_registers_per_thread: int
    warp_granularity: int  # warps are allocated in multiples of this (sub-partitions)
    registers_per_block: int = 0  # that a block may have; 0: all of the SM
    turned: bool = False  # block slots begin at other schedulers in turn where they would all begin at the same ones
    warp_size: ClassVar[int] = 32  # of all GPUs that run PTX


@dataclass(frozen=True)
class SharedMemory:
    """TOML table [shared]."""

    size: int  # B per SM
    per_block: int  # B, largest a block may use (opt-in limit)
    unit: int  # B, allocation granularity
    reserved: int  # B added to every block
    banks: int
    bank_width: int  # B
    latency: int  # cycles, load-to-use without conflicts
    carveouts: tuple[int, ...] = ()  # B, selectable shared sizes of a unified L1; () = fixed
    atomics_share: bool = False  # atomics on the same word of a bank are one access, as loads of it are
    paired: bool = True  # from 7.0 on: wide words that pairs of lanes share are delivered to both at once
    first_word: bool = False  # of what a lane asks for, banks see the first word: wide accesses are one of all lanes
    counts_lanes: bool = False  # lanes that add one to the same word, and do not ask for it, are counted: one access


@dataclass(frozen=True)
class Cache:
    """What both cache levels have."""

    size: int  # B; 0 = absent
    line: int  # B
    sector: int  # B; equal to `line` when not sectored
    ways: int
    latency: int  # cycles, load-to-use of a hit
    bandwidth: float  # B per SM cycle: [l1] of one SM, [l2] of the whole chip
    mshrs: int  # outstanding lines (per SM for [l1], whole chip for [l2])
    mshr_merges: int  # requests merged in one MSHR, the first included
    write: str  # "write-back", "write-through" or "write-evict": of global memory; local memory is then write-back
    write_allocate: bool
    replacement: str  # "lru" or "fifo"
    index: str  # "linear", "hash" or, of the L1, "fermi"


@dataclass(frozen=True)
class L1Cache(Cache):
    """The L1 of an SM. TOML table [l1]."""

    caches_global: bool = True  # global loads use it
    banked: bool = False  # its data lie in the banks of shared memory, so lanes that load may conflict
    sms: int = 1  # SMs that share the path to its data and to shared memory, one pass a cycle: those of a TPC
    tag_sets: int = 0  # sets of tags, of which each looks up one line a cycle; 0: lines never meet in one
    sector_banks: int = 0  # banks of sectors, each of which looks up one in a cycle, in order; 0: no such banks
    reserves: bool = False  # a line keeps its place until its data are there; a miss waits while all others do
    sets: int = 0  # sets that it keeps whatever its size is, so that its ways grow with that; 0: `ways` stays
    miss_queue: int = 0  # places for what leaves its banks, which have pipelines then; 0: they have none
    unified: int = 0  # B shared with shared memory: size = unified - carve-out; 0 = separate


@dataclass(frozen=True)
class L2Cache(Cache):
    """The L2 of the chip. TOML table [l2]."""

    partitions: int = 1  # parts that keep copies of what their SMs read; a line belongs to one, copies are written too
    far_latency: int = 0  # cycles that a hit takes longer when its own part holds it no more
    partial_write: float = 1.0  # times as long as for a whole sector that it takes to write one in part
    in_step: float = 1.0  # times `bandwidth` it gives for reads that all SMs make of the same lines at the same time
    dirty_share: float = 0.0  # share of its lines that can be dirty; 0: all, and they are replaced as others are
    atomic_units: int = 0  # parts by address that each update words; 0: lines do not wait for one another
    # level grid only:
    slices: int = 1  # parts by address, each with its share of size and bandwidth
    slice_bandwidth: float = 0.0  # B per SM cycle of a slice; 0: its share of `bandwidth`, that of the way to all
    interleave: int = 256  # B of neighbouring addresses in one slice
    waiting: int = 0  # sectors of all SMs that can wait before the slices; 0: they get even shares at any time
    slice_index: str = "linear"  # of a chunk's number: "linear" in turn, "hash" by xor, "polynomial" modulo one


@dataclass(frozen=True)
class Dram:
    """TOML table [dram]."""

    size: int  # B
    bandwidth: float  # B/s, peak
    efficiency: float  # share of the peak that streaming reads reach
    latency: int  # cycles, load-to-use of an unloaded L2 miss
    burst: int = 0  # B that an access takes at least: a missing sector, or the written ones of a line; 0: a sector
    channels: int = 1  # level grid: each has its share of the bandwidth, and the L2 slices next to one another
    turnaround: float = 0.0  # by which share a sector takes longer when all others go in the other direction
    loaded_latency: int = 0  # cycles that a read takes longer when reads alone use all of the bandwidth
    rows_per_ns: float = 0.0  # rows that all channels together can open in a nanosecond; 0: as many as are needed
    row_bytes: int = 2048  # B of consecutive addresses that a row of a channel holds


@dataclass(frozen=True)
class Interconnect:
    """SM to L2 and back. TOML table [interconnect]."""

    bandwidth: float  # B per SM cycle that one SM can receive; requests and write data use the same width outward
    crossbar: bool = False  # SMs send packets of a sector in their order, one a cycle; each L2 slice takes one a cycle
    router: bool = False  # a packet has all of a request, in flits of a sector; answers come through another crossbar
    port: int = 0  # flits that can wait in an SM before the crossbar; 0: any number
    answers: int = 0  # sectors that wait for the way back beyond which an L2 slice takes no request; 0: any number
    queue: int = 0  # sectors in the queue before an L2 slice beyond which it does not, either; only with `answers`
    stops_after: int = 0  # cycles until it does not


@dataclass(frozen=True)
class MemoryPipe:
    """The SM's load/store front end. TOML table [memory]."""

    coalescing: str  # "half_warp_1.0", "half_warp_1.2", "line", "sector", "segment"; see ppt_gpu.sm.accesses.coalesce
    queue: int  # memory instructions waiting in the load/store unit
    transactions_per_cycle: float  # L1 tag look-ups (lines or sectors as coalesced) a cycle
    constant_latency: int  # cycles, constant-cache hit
    atomics_per_cycle: float = 1.0  # same-address atomic operations a cycle at the L2
    float_atomics_per_cycle: float = 0.0  # additions of floats by lanes of a warp that name one word; 0: as all others
    requests_per_cycle: float = 0.0  # requests (L1 sectors) that leave the SM, and answers that enter it; 0: no limit
    request_queue: int = 16  # requests that may wait to leave before the load/store unit stops
    miss_latency: int = 0  # cycles that a miss adds to l1.latency when memory is perfect
    atomics_apart: bool = False  # an atomic's transactions are single sectors, updates of one word in different ones
    atomics_wait: bool = False  # a warp does nothing else until its atomics are done, those of shared memory too
    highest_first: bool = False  # transactions of an access go in that order of their addresses; else as lanes do
    heap: int = 0  # address of the first buffer, others stand right behind; 0: anywhere, on multiples of 512
    local_layout: str = "warp"  # of local memory lies together: all of a "warp", or a word of all threads of the "chip"
    constant_queued: bool = False  # constant reads pass the load/store unit, one cycle each
    constant_cold: bool = False  # the first constant read of an SM comes from below the constant cache
    store_ack: bool = False  # a block ends only when its stores have been acknowledged
    store_latency: int = 0  # cycles from the issue of a store until its warp may end; not with store_ack


@dataclass(frozen=True)
class CodeCache:
    """Instruction fetch of an SM. TOML table [code]."""

    size: int = 0  # B of the instruction cache; 0: nothing misses
    line: int = 128  # B
    ways: int = 4
    instruction: int = 8  # B of a PTX instruction


@dataclass(frozen=True)
class ConstantCache:
    """The cache, in each SM, of constants that registers choose. TOML table [constants]."""

    size: int = 0  # B; 0: nothing misses
    line: int = 64  # B
    ways: int = 4
    miss: int = 0  # cycles that a read which misses takes longer than one that hits
    fill: float = 0.0  # cycles that the cache behind takes for a line
    caches: int = 1  # behind those of all SMs, each of as many


@dataclass(frozen=True)
class Collectors:
    """What an instruction passes between its issue and its unit. TOML table [collectors]."""

    #: collector units of a scheduler, or with scope "sm" of each pipe that has no number of its own; 0: an instruction
    #: goes from its issue to its unit
    units: int = 0
    scope: str = "scheduler"  # or "sm": the schedulers share collector units, places before and behind them, and banks
    steps: int = 1  # that they make in a cycle
    banks: int = 4  # of the registers of a scheduler, or of all, each read once a step
    fetches: int = 1  # in a cycle, of two instructions for a warp whose buffer is empty
    order: tuple[str, ...] = ()  # pipes in the order in which their instructions are taken in; the others follow
    results: int = 0  # of units that compute that an SM takes in a cycle; 0: any number
    one_result: bool = False  # a unit that computes has the results of two instructions in different cycles


@dataclass(frozen=True)
class Host:
    """What the host side adds. TOML table [host]."""

    launch_overhead: float  # s
    block_launch: int  # cycles to start a block on a free slot
    link_bandwidth: float  # B/s pinned, each direction
    pageable_bandwidth: float  # B/s
    copy_latency: float  # s
    warp_launch: int = 0  # cycles from the start of a warp of a block to that of the next
    blocks_per_cycle: float = 0.0  # blocks that the whole chip can start in a cycle; 0: no limit
    launch_gap: float = 0.0  # s from the end of a kernel to the start of the next one in its stream
    graph_gap: float = 0.0  # the same between kernels of a graph that depend on one another


@dataclass(frozen=True)
class Source:
    """Where a number comes from."""

    path: str  # dotted TOML path, "sm.clock"
    text: str  # value as written
    source: str  # "" when the file gives none
    file: str
    line: int


class LaterSources(Mapping[str, Source]):
    """Sources by path, which `find` tells when somebody first asks for one: few predictions do."""

    def __init__(self, find: Callable[[], Mapping[str, Source]]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> dict[str, Source]:
        return dict(self._find())

    def __getitem__(self, path: str) -> Source:
        return self._found[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(self._found)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._found,)


@dataclass(frozen=True)
class Gpu:
    """A GPU. `pipes` and `isa` already include every override of the GPU's own file."""

    name: str
    chip: str  # "GK110B"
    compute_capability: tuple[int, int]  # decides coalescing, occupancy rules and the ISA file
    sm: Sm
    pipes: Mapping[str, Pipe]
    isa: Isa
    shared: SharedMemory
    l1: L1Cache
    l2: L2Cache
    dram: Dram
    interconnect: Interconnect
    memory: MemoryPipe
    host: Host
    code: CodeCache = field(default_factory=CodeCache)
    constants: ConstantCache = field(default_factory=ConstantCache)
    collectors: Collectors = field(default_factory=Collectors)
    perfect_memory: bool = False  # every L1 miss returns at once (a mode of validation)
    notes: str = ""  # what to know of the file; not inherited
    title: str = ""  # "Tesla K40"; not inherited
    sources: Mapping[str, Source] = field(default_factory=dict)

    def start_ramp(self, active_sms: int) -> float:
        """Cycles from the first block of a slot to that of the SM's next one, while `active_sms` SMs fill up."""
        return active_sms / self.host.blocks_per_cycle if self.host.blocks_per_cycle else 0.0

    def l2_way(self, active_sms: int) -> float:
        """B per SM cycle that `active_sms` SMs together get through to the L2 when all of them always want to.

        Through a crossbar a packet that waits for its slice holds up those of its SM behind it: SMs are like customers
        of a closed network, who queue at one slice after another, all alike (W. J. Gordon and G. F. Newell, Closed
        Queuing Systems with Exponential Servers, Operations Research 15, 1967). Of M slices n of them keep a share of
        n / (n + M - 1) busy.
        """
        sms = max(active_sms, 1)
        return self.l2.bandwidth * sms / (sms + self.l2.slices - 1) if self.interconnect.crossbar else self.l2.bandwidth

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Peak DRAM bandwidth of the chip in bytes per SM cycle."""
        return self.dram.bandwidth / self.sm.clock
