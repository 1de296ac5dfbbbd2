"""What the SM simulator runs: machine operations and memory transactions in flat arrays, ready for the compiled loop.

Lowered from a trace (`ppt_gpu.sm.lowering.lower.lower_trace`) or a task list (`lower_tasklist`) for one GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

#: memory behaviour of a transaction when the caches are not looked up (task lists with given hit rates)
FORCED_L1, FORCED_L2, FORCED_DRAM = -1, -2, -3
#: where a launch finds the code of its kernel: nowhere, in the L2, in the SM
CODE_COLD, CODE_IN_L2, CODE_IN_SM = range(3)
#: beside that: the kernel before it in the module, or that behind it, has run, so a line that both share is in the L2
CODE_WHERE, CODE_BEFORE, CODE_BEHIND = 3, 4, 8


@dataclass(frozen=True)
class Program:
    """O static machine operations, E entries over all P paths, W warps, M memory entries, T transactions, L lines.

    An entry waits for `wait` (bit s: scoreboard slot s must be complete) and announces its completion in `slot`.
    A slot is free again once an entry has waited for it; that same entry may announce in it. Slots are never shared.
    Barriers, branches and stores announce nothing.

    Memory entries belong to operations of kind LOAD, STORE, ATOMIC and SHARED, one per execution; CONSTANT has none.
    An entry without transactions (no active lane, or a generic access that went to shared memory) holds the
    load/store pipe for `access_cycles` and completes like a hit.
    """

    # static operations
    op_name: tuple[str, ...]  # [O]
    op_pipe: NDArray[np.int32]  # [O] pipe index
    op_latency: NDArray[np.int32]  # [O] cycles
    op_ii: NDArray[np.int32]  # [O] cycles
    op_kind: NDArray[np.int8]  # [O] ppt_gpu.sm.program.program.KIND_*
    op_pc: NDArray[np.int32]  # [O] source instruction (PTX index or task number), for hot spots
    op_class: NDArray[np.int32]  # [O] index into TASK_CLASSES
    # paths
    path_start: NDArray[np.int64]  # [P+1]
    entry_op: NDArray[np.int32]  # [E]
    entry_wait: NDArray[np.uint64]  # [E]
    entry_slot: NDArray[np.int8]  # [E] -1: nobody waits
    # warps: in block order
    warp_path: NDArray[np.int32]  # [W]
    warp_access: NDArray[np.int64]  # [W+1] first memory entry of the warp in the arrays below
    block_warp: NDArray[np.int64]  # [B+1] first warp of each block, blocks in launch order
    # memory entries, one per executed memory operation, in stream order
    access_start: NDArray[np.int64]  # [M+1] into the transactions
    access_cycles: NDArray[np.int32]  # [M] cycles in the load/store pipe: bank-conflict passes or transactions
    # transactions (global, local): dense line ids
    tx_line: NDArray[np.int32]  # [T] line id, or FORCED_*
    tx_sectors: NDArray[np.uint8]  # [T] sector mask within the line
    # lines
    line_address: NDArray[np.uint64]  # [L]
    # [L] masks of the sectors that the first touch finds in the L2, as the host or another SM brought them: COLD, WARM,
    # or some
    line_warm: NDArray[np.uint8]
    thread_instructions: int = 0
    code_first: int = 0  # instructions of the module that stand before the kernel's
    # At level grid, where it is known which slices serve which addresses: [N] addresses of the lines that host copies
    # and earlier launches left in the L2, the one used last at the end, whether the program names them or not, and
    # masks of their sectors that have to be written back. Empty: there are the lines of `line_warm`, all clean.
    left_address: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    left_written: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    # [L] masks of those of them that another SM is fetching right then. Empty: none
    line_coming: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    # [L] lines that others use so often that the L2 keeps them: their warm sectors stay warm. Empty: none
    line_kept: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # [M] lanes of the warp that update the same address, largest over the addresses: 1 without conflicts. Empty: all 1.
    # For shared memory `access_cycles` already contains this serialisation.
    access_atomic: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    # [O] register operands that a collector unit reads, operand_bits for each bank of the registers of warp 0: how many
    # distinct ones. From bit RESULT_AT on the bank of the result + 1, 0: none. Empty: all read one of bank 0.
    op_operands: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # Events: phases of mbarriers and of named barriers of one block, complete when all who count have arrived. Empty:
    # the program has none. Operations [O] with EVENT_* are of KIND_BARRIER or loads.
    op_event: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    # [O] loads that the copy engine does (bulk copies into shared memory); empty: none
    op_copies: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # [O] atomics of which nobody wants a result back; empty: none
    op_posted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    event_start: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # [W+1] per warp into the next
    # [V] the event of each execution of such an operation, in stream order; -1: none
    event_of: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    event_count: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # [N] who count
    # Constants that registers choose, where the SM's cache does not hold all of them: [O] operations that read them,
    # [W+1] the first line that each warp reads, in stream order, and [Q] these lines, whether each is the last of its
    # read. Empty: none
    op_looked_up: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    constant_start: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    constant_line: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    constant_last: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # The L2 slice of one SM holds `l2_share_factor` times L2 / active SMs: the mean number of SMs that use a line
    # (harmonic, over the lines), because a line that k SMs read is stored once.
    l2_share_factor: float = 1.0
    l2_camping: float = 1.0  # how many times as long the L2 takes for a sector, because slices get uneven shares
    l2_reads: float = 1.0  # how many times as long for one that is read, as SMs ask for it together (`in_step`)
    l2_in_part: float = 0.0  # of the sectors that stores write, the share of which they do not write all bytes
    dram_rows: float = 1.0  # how many times as long DRAM takes for a sector, because it opens rows for few of them
    # how many times as long as its updates of one address an atomic keeps the SM's server: as those of others meet it
    atomic_share: float = 1.0
    line_bytes: int = 128  # what one line id stands for
    sector_bytes: int = 32  # what one bit of `tx_sectors` stands for
    # Where earlier launches are known: the share of the lines that is in the L2 from them when the launch comes to it,
    # and how many sectors of a line of the L2 were written, in the mean, when the launch began.
    l2_found: float = 0.0
    l2_dirty: float = 0.0
    # Of an L2 with a limit for dirty lines: how many were dirty when the launch began and can be (0: no limit), which
    # share of its lines the launch makes dirty, and which was dirty and pushed out before it came to them.
    l2_dirty_lines: int = 0
    l2_dirty_most: int = 0
    l2_made_dirty: float = 0.0
    l2_lost_dirty: float = 0.0
    # How many SMs write a sector that this SM writes (harmonic mean): the L2 writes it back once.
    l2_writers: float = 1.0
    unheard: str = ""  # why warps pass mbarriers and named barriers without waiting for others; empty: they do not

    @cached_property
    def issues(self) -> NDArray[np.int64]:
        """As `op_issues` says."""
        warps = np.bincount(self.warp_path, minlength=len(self.path_start) - 1)
        weight = np.repeat(warps, np.diff(self.path_start))
        first, last = int(self.path_start[0]), int(self.path_start[-1])
        counts = np.bincount(self.entry_op[first:last], weights=weight, minlength=len(self.op_name))
        found = counts.astype(np.int64)
        found.flags.writeable = False
        return found


#: of a line: this SM fetches it; the host or another SM brought it
COLD, WARM = 0, 0xFF
#: in `op_operands`
RESULT_AT = 32


def operand_bits(banks: int) -> int:
    """Of each bank in `op_operands`: all stand before RESULT_AT."""
    return min(4, RESULT_AT // banks)


KIND_COMPUTE, KIND_BRANCH, KIND_BARRIER, KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED, KIND_CONSTANT = range(8)
#: bits of `op_event`: it counts for its event, the warp waits for its event; it counts when its result is there, not
#: at issue (loads always do)
EVENT_COUNTS, EVENT_WAITS, EVENT_LATE = 1, 2, 4
#: operations that have a memory entry each time they are executed
RECORDED = (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED)


def events_of(program: Program) -> NDArray[np.int64]:
    """[O] EVENT_* of every operation, 0 for none."""
    return program.op_event.astype(np.int64) if len(program.op_event) else np.zeros(len(program.op_name), np.int64)


def copies_of(program: Program) -> NDArray[np.bool_]:
    """[O] loads that the copy engine does."""
    return program.op_copies if len(program.op_copies) else np.zeros(len(program.op_name), np.bool_)


def looked_up_by(program: Program) -> NDArray[np.bool_]:
    """[O] reads of constants that are looked for in the SM's cache of them."""
    return program.op_looked_up if len(program.op_looked_up) else np.zeros(len(program.op_name), np.bool_)


def posted_by(program: Program) -> NDArray[np.bool_]:
    """[O] atomics of which nobody wants a result back."""
    return program.op_posted if len(program.op_posted) else np.zeros(len(program.op_name), np.bool_)


def holds_warps(program: Program) -> NDArray[np.bool_]:
    """[O] operations at which warps wait for others: barriers, and waits for events."""
    event = events_of(program)
    return (program.op_kind == KIND_BARRIER) & ((event == 0) | (event & EVENT_WAITS != 0))


def op_issues(program: Program) -> NDArray[np.int64]:
    """Issues of every static operation [O]: all entries of all warps issue exactly once. Not to be changed."""
    return program.issues
