"""The GPU as the SM loops see it: integers only, one SM's slice of the chip, times of servers in 1/65536 cycle.

Both implementations (`reference`, `core`) read this and nothing else of the GPU, so they cannot differ by rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.policies import POLICIES
from ppt_gpu.sm.accesses.banks import bank_rule
from ppt_gpu.sm.program.fill import FERMI, FILL_FROM, HASH, INDEXES, fill_slices
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.program import (
    CODE_BEFORE,
    CODE_BEHIND,
    CODE_COLD,
    CODE_IN_L2,
    CODE_IN_SM,
    CODE_WHERE,
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    RECORDED,
    RESULT_AT,
    Program,
    copies_of,
    operand_bits,
)
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu

FRACTION = 16  # bits behind the binary point in server times
ONE = 1 << FRACTION  # a cycle
MOST_DIRTY = 8  # sectors that one may push out: those of a line
NEVER = 1 << 60
#: of the result of an operation that has started, on a chip whose L2 has not answered yet
UNKNOWN = NEVER - 1
EVERY_LINE = slice(None)
TURN, TURN_MASK = 0x9E3779B1, 0x7FFFFFFF  # which set begins a turn: any but a regular order

#: cycles of its share of DRAM that an SM can have left over for later: SMs are out of step by about a block
DRAM_AHEAD = 2000
#: cycles that are added to the time in which DRAM has worked, so that the first reads of a launch find it idle
DRAM_QUIET = 1000

#: cycles that data of a missed sector take to the miss queue, to the port to the registers and into these
WRITTEN = 3
#: instructions that a fetch brings, where warps have buffers
FETCHED = 2
#: kinds whose results pass the banks of registers by: constants are there when the load/store unit is done with them
NO_WRITE = (KIND_CONSTANT,)
#: a result that comes so many cycles after its instruction has started, or later, holds up no reads of its bank
LATE_RESULT = 1024
#: and one that comes so much later, or after even more, no other result
FAR_RESULT = 512

#: with pipelines in the L1: cycles from the look-up of a sector that nobody holds up to its way out, and from its
#: return to where its result is written, one after another
RETURN = 3

LRR, GTO, GTO_LAUNCH, GTO_BLOCK = range(len(POLICIES))
WRITES = ("write-through", "write-evict", "write-back")
WRITE_THROUGH, WRITE_EVICT, WRITE_BACK = range(3)

#: which reason a dependent shows while it waits for a producer; the larger wins when two complete together
WAIT_FIXED, WAIT_SHORT, WAIT_LONG = range(3)
_SHORT_CLASSES = ("sfu", "shuffle")
_LONG_CLASSES = ("fence",)

COUNTERS = (
    "l1_accesses",
    "l1_hits",
    "l2_accesses",
    "l2_hits",
    "dram_read_bytes",
    "dram_write_bytes",
    "l2_read_bytes",
    "l2_write_bytes",
    "shared_passes",
    "shared_accesses",
)
(
    L1_ACCESSES, L1_HITS, L2_ACCESSES, L2_HITS, DRAM_READ, DRAM_WRITE, L2_READ, L2_WRITE,
    SHARED_PASSES, SHARED_ACCESSES,
) = range(len(COUNTERS))  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """One SM and its share of L2 and DRAM. `*_cost` are in 1/65536 cycle, latencies in cycles, caches in lines."""

    schedulers: int
    width: int
    policy: int
    pipe_units: tuple[int, ...]
    pipe_shared: tuple[bool, ...]  # True: units stand in the SM, False: in each scheduler
    pipe_queue: tuple[int, ...]  # a scheduler's places before the SM's one unit; 0: they wait at the scheduler
    block_launch: int
    ramp: int  # cycles from the first block of a slot to that of the next
    queue: int
    tx_cost: int  # per transaction in the load/store unit
    shared_latency: int
    constant_latency: int
    atomic_cost: int  # per update of the same address
    atomic_busy: int  # for which it keeps the server of all atomics
    l1_sets: int  # 0: no L1
    l1_ways: int
    l1_fifo: bool
    l1_write: int
    l1_allocate: bool  # stores allocate
    l1_global: bool
    l1_index: int  # an index of INDEXES
    l1_reserves: bool  # lines that are on their way are not replaced
    l1_latency: int
    l1_group: int  # mask bits that one L1 sector covers
    l1_banks: int  # of sectors, each with a pipeline; 0: no such pipelines
    miss_queue: int  # places for what leaves these banks
    mshrs: int
    merges: int
    l2_sets: int
    l2_ways: int
    l2_fifo: bool
    l2_back: bool
    l2_allocate: bool
    l2_latency: int
    l2_cost: int  # per sector that is read
    l2_write_cost: int  # per sector that is written
    l2_near: int  # ways that the part of the L2 next to the SM has
    l2_far: int  # cycles that a hit in another part takes longer
    icnt_cost: int  # per sector
    dram_cost: int  # per burst, which brings one missing sector or takes `dram_group` dirty ones of a line
    dram_group: int  # sectors
    dram_latency: int
    dram_turn: int  # per burst, if everything else went in the other direction
    dram_work: int  # per burst, of all of DRAM that an SM or a chip uses
    dram_loaded: int  # cycles that a read takes longer when reads use all of DRAM
    dram_ahead: int  # by which an SM may be ahead of its share of DRAM, having used less before
    dram_left: int  # of that, what it has when the run starts
    dirty: int  # 1/65536: share of the sectors, found in ways never used by this SM, that are written back
    perfect: bool
    sector_bytes: int
    request_cost: int  # per request that leaves the SM, and per answer that enters it; 0: no limit
    request_queue: int
    miss_latency: int  # of a miss under perfect memory, on top of l1_latency
    store_ack: bool  # a block ends only when its stores have been acknowledged
    store_latency: int  # without: cycles from the issue of a store until its warp may end
    warp_launch: int  # cycles from the start of a warp of a block to that of the next
    turned: bool  # block slots begin at other schedulers in turn (program.slot_rotation)
    code_sets: int  # of the instruction cache; 0: instructions are always there
    code_ways: int
    code_line: int  # B
    code_bytes: int  # B of an instruction
    code_at: int  # CODE_*, at the start
    code_shared: int  # CODE_BEFORE, CODE_BEHIND
    code_l2: int  # cycles that an instruction line takes from the L2, and from DRAM
    code_dram: int
    constant_queued: bool  # constant reads pass the load/store unit
    constant_miss: int  # cycles that the first constant read takes; 0: as all others
    constant_late: int  # that the first ones take longer under perfect memory, with collector units
    constant_sets: int  # of the cache of constants that registers choose; 0: they are always there
    constant_ways: int
    constant_fill: int  # per line that comes from the cache behind
    constant_behind: int  # cycles from when that begins until the line is there
    collectors: tuple[int, ...]  # units of each scheduler, or pipe; empty: there are none, and issue is start
    collectors_shared: bool  # they are those of pipes
    collector_steps: int  # that they make in a cycle
    collector_order: tuple[int, ...]  # pipes, in the order in which their instructions are taken in
    collector_banks: int  # of registers, of a scheduler or of all
    fetches: int  # in a cycle, where there are collectors
    results: int  # of units that compute, in a cycle; 0: any number
    one_result: bool  # a unit has results in different cycles
    no_result: int  # cycles that an operation without a result takes to where its result would be

    @property
    def begins(self) -> int:
        """The cycle in which the first blocks come. With collector units blocks come and go at the end of a cycle."""
        return int(bool(self.collectors))

    @property
    def to_unit(self) -> int:
        """Cycles from the issue of an instruction that reads registers, and that nobody holds up, to its start.

        It is taken in, read for and handed over in different steps, and starts in the cycle after that.
        """
        return 2 + 2 // self.collector_steps

    @property
    def memory_lag(self) -> int:
        """Cycles that an SM is ahead of its memory: of the issue of an operation, as the memory sees it, at its start;
        with pipelines in the L1, of that of a request which nobody holds up when it leaves."""
        if self.miss_queue:
            return self.l1_latency + RETURN
        return self.to_unit if self.collectors else 0

    @property
    def l1_stages(self) -> int:
        """Of a pipeline before a bank of the L1. Before it an operation passes to the load/store unit, and into it."""
        return max(1, self.l1_latency - self.to_unit - 1)

    @property
    def shared_stages(self) -> int:
        """Of the pipeline of shared memory; behind it the result is written."""
        return max(1, self.shared_latency - self.to_unit - 2)


def machine_of(
    program: Program,
    gpu: Gpu,
    active_sms: int,
    policy: str | None,
    l2_dirty: float,
    l1_bytes: int | None,
    code_at: int = CODE_COLD,
    constants_at: int = CODE_COLD,
    out_of_step: bool = False,
    share: float | None = None,
) -> Machine:
    """`gpu` as seen by one of `active_sms` SMs, `share` of whose L2 and DRAM it has. PptError when a value makes no
    sense."""
    line, sector = program.line_bytes, program.sector_bytes
    name = gpu.sm.policy if policy is None else policy
    if name not in POLICIES:
        raise PptError(f"unknown scheduler policy '{name}'", hint=did_you_mean(name, POLICIES))
    if not 1 <= active_sms <= max(gpu.sm.count, 1):
        raise PptError(f"{active_sms} active SMs; {gpu.name} has {gpu.sm.count}")
    share = 1.0 / active_sms if share is None else share
    if not 1.0 / active_sms <= share <= 1.0:
        raise PptError(f"the share of one of {active_sms} SMs is {share}; expected 1/{active_sms} to 1")
    if not 0.0 <= l2_dirty <= MOST_DIRTY:
        raise PptError(f"l2_dirty is {l2_dirty}; expected 0 to {MOST_DIRTY}")
    for key, value in (("memory.queue", gpu.memory.queue), ("l1.mshrs", gpu.l1.mshrs), ("l1.ways", gpu.l1.ways)):
        if value < 1:
            raise PptError(f"{key} is {value}; expected at least 1")
    l1_size = gpu.l1.size if l1_bytes is None else l1_bytes
    l1_sets, l1_ways = _geometry(l1_size, l1_size // (gpu.l1.sets * line) if gpu.l1.sets else gpu.l1.ways, line)
    l2_slice = int(gpu.l2.size * min(program.l2_share_factor * share, 1.0))
    l2_sets, l2_ways = _geometry(max(l2_slice, line), gpu.l2.ways, line)
    l2 = gpu.l2_way(active_sms) * share
    dram = gpu.dram_bytes_per_cycle * gpu.dram.efficiency * share
    dram_cost = _cost(max(sector, gpu.dram.burst) * program.dram_rows, dram)
    ahead = DRAM_AHEAD * ONE if gpu.dram.loaded_latency and active_sms > 1 else 0
    there = gpu.perfect_memory and not gpu.collectors.units  # lines of the code are
    code_sets, code_ways = _geometry(0 if there else gpu.code.size, gpu.code.ways, gpu.code.line)
    from_l2, from_dram = (max(cache.latency - gpu.l1.latency, 1) for cache in (gpu.l2, gpu.dram))
    constant_miss = {CODE_COLD: from_dram, CODE_IN_L2: from_l2, CODE_IN_SM: 0}[constants_at]
    if gpu.collectors.units:  # fetched in the cycle in which it comes; data take WRITTEN more until they are written
        from_l2, from_dram = (1 if gpu.perfect_memory else max(way - WRITTEN, 1) for way in (from_l2, from_dram))
        constant_miss += gpu.memory.constant_latency if constant_miss else 0
    constant_sets, constant_ways = _constant_sets(gpu)
    late = gpu.perfect_memory and gpu.collectors.units and gpu.memory.constant_cold and constants_at != CODE_IN_SM
    if gpu.collectors.units and name == "gto_block":
        raise PptError(f"policy '{name}' is not simulated with collector units", hint=f"{gpu.name} has [collectors]")
    return Machine(
        schedulers=gpu.sm.schedulers,
        width=gpu.sm.issue_width,
        policy=POLICIES.index(name),
        pipe_units=tuple(gpu.pipes[name].units for name in pipe_order(gpu)),
        pipe_shared=tuple(gpu.pipes[name].scope == "sm" for name in pipe_order(gpu)),
        pipe_queue=tuple(gpu.pipes[name].queue for name in pipe_order(gpu)),
        block_launch=gpu.host.block_launch,
        ramp=round(gpu.start_ramp(active_sms)),
        queue=gpu.memory.queue,
        tx_cost=_cost(1, gpu.memory.transactions_per_cycle),
        shared_latency=max(1, gpu.shared.latency - (bank_rule(gpu).cycles - 1)),  # its first pass is in the latency
        constant_latency=gpu.memory.constant_latency,
        atomic_cost=_cost(1, gpu.memory.atomics_per_cycle),
        atomic_busy=_cost(program.atomic_share, gpu.memory.atomics_per_cycle),
        l1_sets=l1_sets,
        l1_ways=l1_ways,
        l1_fifo=gpu.l1.replacement == "fifo",
        l1_write=WRITES.index(gpu.l1.write),
        l1_allocate=gpu.l1.write_allocate,
        l1_global=gpu.l1.caches_global,
        l1_index=INDEXES.index(gpu.l1.index),
        l1_reserves=gpu.l1.reserves,
        l1_latency=gpu.l1.latency,
        l1_group=max(1, min(gpu.l1.sector, line) // sector),
        l1_banks=gpu.l1.sector_banks if _has_pipelines(gpu, l1_sets) else 0,
        miss_queue=gpu.l1.miss_queue if _has_pipelines(gpu, l1_sets) else 0,
        mshrs=gpu.l1.mshrs,
        merges=max(1, gpu.l1.mshr_merges),
        l2_sets=l2_sets,
        l2_ways=l2_ways,
        l2_fifo=gpu.l2.replacement == "fifo",
        l2_back=gpu.l2.write == "write-back",
        l2_allocate=gpu.l2.write_allocate,
        l2_latency=gpu.l2.latency,
        l2_cost=_cost(sector * program.l2_camping * program.l2_reads, l2),
        l2_write_cost=gpu.l2.partitions * _cost(sector * program.l2_camping * write_factor(program, gpu), l2),
        l2_near=max(1, l2_ways // gpu.l2.partitions),
        l2_far=gpu.l2.far_latency if gpu.l2.partitions > 1 else 0,
        icnt_cost=_cost(sector, gpu.interconnect.bandwidth),
        dram_cost=dram_cost,
        dram_group=max(1, gpu.dram.burst // sector),
        dram_latency=gpu.dram.latency,
        dram_turn=round(gpu.dram.turnaround * dram_cost),
        dram_work=dram_cost,
        dram_loaded=gpu.dram.loaded_latency,
        dram_ahead=ahead,
        dram_left=ahead if out_of_step else 0,
        dirty=round(l2_dirty * ONE),
        perfect=gpu.perfect_memory,
        sector_bytes=sector,
        request_cost=0 if gpu.memory.requests_per_cycle == 0 else _cost(1, gpu.memory.requests_per_cycle),
        request_queue=gpu.memory.request_queue,
        miss_latency=gpu.memory.miss_latency,
        store_ack=gpu.memory.store_ack,
        store_latency=gpu.memory.store_latency,
        warp_launch=gpu.host.warp_launch,
        turned=gpu.sm.turned,
        code_sets=code_sets,
        code_ways=code_ways,
        code_line=gpu.code.line,
        code_bytes=gpu.code.instruction,
        code_at=code_at & CODE_WHERE,
        code_shared=code_at & ~CODE_WHERE if gpu.collectors.units else 0,
        code_l2=from_l2,
        code_dram=from_dram,
        constant_queued=gpu.memory.constant_queued,
        constant_miss=constant_miss if gpu.memory.constant_cold and not gpu.perfect_memory else 0,
        constant_late=gpu.memory.miss_latency if late else 0,
        constant_sets=constant_sets,
        constant_ways=constant_ways,
        constant_fill=constant_fill(gpu, active_sms),
        constant_behind=gpu.constants.miss,
        collectors=_collectors(gpu),
        collectors_shared=gpu.collectors.scope == "sm",
        collector_steps=gpu.collectors.steps,
        collector_order=_order(gpu),
        collector_banks=gpu.collectors.banks,
        fetches=gpu.collectors.fetches,
        results=gpu.collectors.results,
        one_result=gpu.collectors.one_result,
        no_result=_no_result(gpu),
    )


def _no_result(gpu: Gpu) -> int:
    """Cycles of the fastest operation on integers; 1 where the ISA names none."""
    return gpu.isa.op("int32").latency if "int32" in gpu.isa.ops else 1


def _has_pipelines(gpu: Gpu, l1_sets: int) -> bool:
    """Whether sectors wait in pipelines before the banks of the L1; a launch may leave it no room."""
    return bool(gpu.l1.miss_queue and gpu.collectors.units and l1_sets)


def _collectors(gpu: Gpu) -> tuple[int, ...]:
    """Units of each scheduler, or of each pipe."""
    units = gpu.collectors.units
    if not units or gpu.collectors.scope == "scheduler":
        return (units,) * gpu.sm.schedulers if units else ()
    return tuple(gpu.pipes[name].collectors or units for name in pipe_order(gpu))


def _order(gpu: Gpu) -> tuple[int, ...]:
    """The pipes that the file names, then the others."""
    names = pipe_order(gpu)
    first = [names.index(name) for name in gpu.collectors.order]
    return (*first, *(pipe for pipe in range(len(names)) if pipe not in first))


def _cost(amount: float, rate: float) -> int:
    """Service time of `amount` at `rate` a cycle, rounded to 1/65536 cycle."""
    if not rate > 0:
        raise PptError(f"a rate of {rate} a cycle would never serve anything")
    return round(amount / rate * ONE)


def _constant_sets(gpu: Gpu) -> tuple[int, int]:
    """(sets, ways) of the cache of constants, where it is simulated."""
    elsewhere = gpu.perfect_memory or gpu.memory.constant_queued or gpu.collectors.units
    return _geometry(0 if elsewhere else gpu.constants.size, gpu.constants.ways, gpu.constants.line)


def constant_fill(gpu: Gpu, active_sms: int) -> int:
    """1/65536 cycles of a line from the cache behind that of constants, while all active SMs that share it ask it."""
    return round(gpu.constants.fill * max(1.0, active_sms / gpu.constants.caches) * ONE)


def _geometry(size: int, ways: int, line: int) -> tuple[int, int]:
    """(sets, ways) of a cache of `size` bytes; (0, 0) when not even one line fits."""
    lines = size // line
    if lines < 1:
        return 0, 0
    ways = max(1, min(ways, lines))
    return max(1, lines // ways), ways


def write_factor(program: Program, gpu: Gpu) -> float:
    """How many times as long the L2 takes for a sector that is written: some are written in part."""
    return 1.0 + (gpu.l2.partial_write - 1.0) * program.l2_in_part


def set_index(program: Program, sets: int, index: int, lines: slice = EVERY_LINE) -> NDArray[np.int32]:
    """Set of every line [L] in the L1, or of `lines` only; `index` is one of INDEXES.

    Hashed sets that are a power of two: the line's number folded by xor, which, as those of GPUs do, spreads neighbours
    evenly.
    """
    if sets == 0:
        return np.zeros(len(program.line_address[lines]), np.int32)
    number = _line_numbers(program, lines)
    if index == FERMI:
        number = fermi_place(number) % np.uint64(sets)
    elif index == HASH and sets & (sets - 1) == 0:
        shift = max(sets.bit_length() - 1, 1)
        while shift < 64:  # each turn folds twice as many parts
            number ^= number >> np.uint64(shift)
            shift *= 2
        number &= np.uint64(sets - 1)
    elif index == HASH:  # 32 bits remain, which are divided much faster than 64
        number *= np.uint64(0x9E3779B97F4A7C15)
        number >>= np.uint64(32)
        folded = number.astype(np.uint32)
        folded -= folded // np.uint32(sets) * np.uint32(sets)  # NumPy divides by a number faster than it takes a rest
        return folded.view(np.int32)
    elif sets & (sets - 1) == 0:
        number &= np.uint64(sets - 1)
    else:
        number -= number // np.uint64(sets) * np.uint64(sets)
    return number.astype(np.int32)


def fermi_place(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Set of lines of 128 B, by their numbers, in an L1 of 64 sets; of 32 sets: without its highest bit.

    Bits 13, 14, 15, 17 and 19 of the address are folded into the five above the line, as Nugteren et al. found it on
    Fermi ("A Detailed GPU Cache Model Based on Reuse Distance Theory", HPCA 2014).
    """
    one, two, three = (number >> np.uint64(bit) & np.uint64(mask) for bit, mask in ((6, 7), (7, 8), (8, 16)))
    return (number ^ (one | two | three)) & np.uint64(63)


def even_sets(
    program: Program, sets: int, slice_of: NDArray[np.int32] | None = None, lines: slice = EVERY_LINE
) -> NDArray[np.int32]:
    """Set of every line [L], or of `lines` only, in the L2 that one SM sees, or in its slice of the chip's.

    An L2's hash spreads lines over all its sets evenly (gpu-latency: a random chain finds all of 93 MB in an L40's 96).
    So do turns in the order in which the program first names the lines, each turn with another set first.
    """
    count = len(program.line_address)
    if sets == 0:
        return np.zeros(len(range(count)[lines]), np.int32)
    if slice_of is None:
        place = np.arange(*lines.indices(count), dtype=np.int64)
    elif count >= FILL_FROM:
        found = np.empty(count, np.int32)
        fill_slices(found, slice_of, np.zeros(int(slice_of.max()) + 1, np.int64), sets, TURN, TURN_MASK)
        return found[lines]
    else:
        order = np.argsort(slice_of, kind="stable")
        _, first, length = np.unique(slice_of[order], return_index=True, return_counts=True)
        place = np.empty(count, np.int64)
        place[order] = np.arange(count) - np.repeat(first, length)
        place = place[lines]
    turn = place // sets
    place -= turn * sets
    turn *= TURN
    turn &= TURN_MASK
    turn -= turn // sets * sets  # NumPy divides by a number faster than it takes a rest
    place += turn
    place -= (place >= sets) * np.int64(sets)
    return place.astype(np.int32)


def _line_numbers(program: Program, lines: slice) -> NDArray[np.uint64]:
    """Of `lines`, a new array."""
    address, size = program.line_address[lines].astype(np.uint64, copy=False), program.line_bytes
    if size & (size - 1) == 0:
        return address >> np.uint64(size.bit_length() - 1)
    return address // np.uint64(size)


def instruction_lines(program: Program, machine: Machine) -> NDArray[np.int64]:
    """The line of the code in which each operation [O] stands; all 0 without an instruction cache."""
    return _lines_of(program.op_pc.astype(np.int64), program, machine)


def lines_behind(program: Program, machine: Machine) -> NDArray[np.int64]:
    """The line in which the instruction behind each operation [O] stands; all 0 without an instruction cache."""
    return _lines_of(program.op_pc.astype(np.int64) + 1, program, machine)


def lines_in_l2(program: Program, machine: Machine) -> set[int]:
    """The lines of the code that the L2 has at the start.

    A line is looked up for the first of the instructions that a fetch brings, so one of which the kernel before has
    only its last instruction mostly is not.
    """
    if machine.code_sets == 0:
        return set()
    lines, behind = instruction_lines(program, machine), lines_behind(program, machine)
    if machine.code_at != CODE_COLD:
        return {*lines.tolist(), *behind.tolist()}
    found = set[int]()
    line, inside = divmod(program.code_first * machine.code_bytes, machine.code_line)
    if machine.code_shared & CODE_BEFORE and inside > machine.code_bytes:
        found.add(line)
    if machine.code_shared & CODE_BEHIND and len(behind):
        found.add(int(behind.max()))
    return found


def _lines_of(pc: NDArray[np.int64], program: Program, machine: Machine) -> NDArray[np.int64]:
    """With collector units lines begin where those of the module do."""
    if machine.code_sets == 0:
        return np.zeros(len(pc), np.int64)
    first = program.code_first if machine.collectors else 0
    return (pc + first) * machine.code_bytes // machine.code_line


def fetched(program: Program, machine: Machine) -> NDArray[np.bool_]:
    """[E] whether an entry is fetched: the first of a warp, and each in another line than the one before it."""
    begins = np.zeros(len(program.entry_op), np.bool_)
    if machine.code_sets and len(begins):
        line = instruction_lines(program, machine)[program.entry_op]
        begins[1:] = line[1:] != line[:-1]
        begins[program.path_start[:-1][np.diff(program.path_start) > 0]] = True
    return begins


def queued_kinds(machine: Machine) -> tuple[int, ...]:
    """Kinds of operations that pass the load/store queue."""
    always = (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED)
    return (*always, KIND_CONSTANT) if machine.constant_queued else always


def producer_class(program: Program) -> NDArray[np.int64]:
    """WAIT_* of every operation [O]: what a dependent of it is said to wait for."""
    kind = program.op_kind
    short = (kind == KIND_SHARED) | (kind == KIND_CONSTANT) | _of_class(program, _SHORT_CLASSES)
    long = (kind == KIND_LOAD) | (kind == KIND_ATOMIC) | _of_class(program, _LONG_CLASSES)
    return np.where(long, WAIT_LONG, np.where(short, WAIT_SHORT, WAIT_FIXED)).astype(np.int64)


def event_reasons(program: Program) -> NDArray[np.int64]:
    """What a wait of each operation [O] for an event is called, index into STALL_REASONS: that for a named barrier as
    that for the block's, that for an mbarrier as other waits for a scoreboard of memory."""
    named = _of_class(program, ("barrier",))
    return np.where(named, STALL_REASONS.index("barrier"), STALL_REASONS.index("long_scoreboard")).astype(np.int64)


def uses_l1(program: Program, machine: Machine) -> NDArray[np.bool_]:
    """Operations [O] whose global or local accesses look into the L1. Local memory does, the copy engine never."""
    return (is_local(program) | machine.l1_global) & (machine.l1_sets > 0) & ~copies_of(program)


def keeps_stores(program: Program, machine: Machine) -> NDArray[np.bool_]:
    """Operations [O] whose stores stay in an L1 that is not write-back: of local memory, under write-evict."""
    return is_local(program) & uses_l1(program, machine) & (machine.l1_write == WRITE_EVICT)


def is_local(program: Program) -> NDArray[np.bool_]:
    """Operations [O] on local memory."""
    return np.array([name.endswith(".local") for name in TASK_CLASSES])[program.op_class]


def operands_of(program: Program) -> NDArray[np.int64]:
    """[O] as Program.op_operands, also of programs that do not say; results that take no turn of their bank are out."""
    found = program.op_operands if len(program.op_operands) else np.ones(len(program.op_name), np.int64)
    return np.where(np.isin(program.op_kind, NO_WRITE), found & ((1 << RESULT_AT) - 1), found)


def in_banks(operands: int, warp: int, banks: int) -> int:
    """The operands of Program.op_operands for the warp in slot `warp`, which has its registers in other banks."""
    bits = operand_bits(banks)
    most = (1 << bits) - 1
    return sum((operands >> bits * bank & most) << bits * ((bank + warp) % banks) for bank in range(banks))


def through_unit(program: Program, machine: Machine) -> NDArray[np.int64]:
    """[O] cycles from issue to completion of operations that compute, with collector units. Branches and barriers pass
    their unit as others do: what they hold up is told otherwise."""
    without = (program.op_kind == KIND_BRANCH) | (program.op_kind == KIND_BARRIER)
    return np.maximum(program.op_latency, np.where(without, machine.no_result, 0)).astype(np.int64)


def passages(program: Program, machine: Machine) -> NDArray[np.int64]:
    """[O] cycles from the start of an operation to its result, if that can get in the way of others; 0: it cannot."""
    kind, passage = program.op_kind, through_unit(program, machine)
    computes = ~np.isin(kind, (*RECORDED, KIND_CONSTANT))
    limited = machine.one_result or machine.results > 0
    return np.where(computes & (passage < FAR_RESULT) & limited, passage, 0)


def result_bank(operands: int, warp: int, banks: int) -> int:
    """The bank of the result, -1 without one."""
    return ((operands >> RESULT_AT) - 1 + warp) % banks if operands >> RESULT_AT else -1


def _of_class(program: Program, names: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([name in names for name in TASK_CLASSES])[program.op_class]
