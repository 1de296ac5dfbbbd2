"""Lowering: a functional trace becomes a Program for one GPU.

The stages are `lower_code` (PTX to machine operations), `scoreboard` (who waits for whom), `accesses.access` (addresses
to transactions and bank passes), `lowering.inter_sm_effects` (what other SMs do meanwhile) and `lowering.program`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW, WINDOW_BYTES
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.accesses.access import geometry, lower_accesses
from ppt_gpu.sm.accesses.scoreboard import SLOTS, schedule
from ppt_gpu.sm.accesses.shapes import LOCAL
from ppt_gpu.sm.accesses.sharing import Users
from ppt_gpu.sm.l2_sharing.camping import has_slices
from ppt_gpu.sm.l2_sharing.l2_residency import Uses, found_left
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.sm.l2_sharing.partial_sectors import written_in_part
from ppt_gpu.sm.lowering.code import Code, lower_code, of_ptx
from ppt_gpu.sm.lowering.global_memory import atomics_of, by_one_lane
from ppt_gpu.sm.lowering.inter_sm_effects import Own, TurnOf, among_others, nobody_else
from ppt_gpu.sm.lowering.match import Entries, match_accesses
from ppt_gpu.sm.lowering.program import assemble
from ppt_gpu.sm.lowering.tasks import lower_tasklist
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Launch

__all__ = ["lower_tasklist", "lower_trace", "pipe_order"]

#: B of local memory in which each lane of a warp has a word
WORDS = 128


def lower_trace(
    kernel: Kernel,
    trace: Trace,
    gpu: Gpu,
    *,
    launch: Launch,
    active_sms: int,
    neighbours: GlobalAccesses | None = None,
    neighbour_sm: NDArray[np.int64] | None = None,
    neighbour_stands_for: NDArray[np.float64] | None = None,
    left: LeftLines | None = None,
    alone: bool = True,
    resident: int = 1,
    turn_of: TurnOf | None = None,
    own: GlobalAccesses | None = None,
    local_frame: int = 0,
) -> Program:
    """The Program of the trace's blocks on one SM of `gpu`.

    active_sms: SMs that run blocks at the same time. neighbours: what the blocks that a sample of the other SMs run
    meanwhile access; neighbour_sm [blocks of neighbours]: on which SM, by default the block number modulo active_sms;
    neighbour_stands_for [blocks of neighbours]: for how many SMs that SM stands, by default the same for all.
    left: the lines that earlier launches left in the L2; None: host copies came just before this launch. With `alone`,
    they are told from those that the launch pushes out before it comes to them: the SM that is simulated does not see
    what the others do; without, the blocks are the whole grid, which is simulated on all SMs.
    resident: blocks that an SM runs at a time: who comes when to a line that several ask for (`moments`), and slices of
    the L2 that get uneven shares (`camping`), which are looked for when the neighbours are all other SMs.
    turn_of: of blocks of the grid, how many the SM of each begins before it; by default the number modulo active_sms is
    the SM's.
    own: what the trace's blocks access, as `neighbours` has it, where the trace is one of other code.
    local_frame: bytes of local memory of a warp; 0: none, or not known. There are as many frames as warps that can be
    resident: a block has that of an earlier one, as if slots became free in the order of the blocks.

    Raises PptError when the trace does not belong to the kernel or launch, or the ISA lacks an operation.
    """
    per_block = -(-launch.threads_per_block // gpu.sm.warp_size)
    if trace.warps != per_block * len(trace.blocks):
        raise PptError(f"the trace has {trace.warps} warps, not {per_block} in each of {len(trace.blocks)} blocks")
    code = lower_code(kernel, trace, gpu, 0 if gpu.collectors.units else per_block)
    shape = geometry(gpu, active_sms)
    plan = schedule(code.static, trace.path_start, trace.path_pc, gpu.sm.issue_width, SLOTS)
    entries = match_accesses(trace, code.traced, code.memory_operations)
    variant, pattern, base = _variants(code, trace, entries)
    slots = resident if alone else resident * active_sms
    base = _in_frames(code, trace, entries, variant, base, per_block * local_frame, slots)
    pattern, offsets, masks = by_one_lane(code, entries.pc, pattern, trace.pattern_offset, trace.pattern_mask)
    found = lower_accesses(shape, code.variants, variant, pattern, base, offsets, masks)
    if gpu.memory.local_layout == "chip" and local_frame:
        room, apart = resident * gpu.sm.count, gpu.sm.count if alone else 1
        found = replace(found, address=_word_by_word(found.address, local_frame, per_block, room, apart))
    line, address = dense_ids(found.address)
    atomics = atomics_of(code, variant, pattern, base, offsets, masks)[0]
    mine = Own(kernel, trace, code, plan, entries, variant, found, line, address, atomics, resident)
    if neighbours is None or active_sms < 2:
        others = nobody_else(mine, shape)
    else:
        accesses = own or global_accesses(kernel, trace)
        turns = turn_of or partial(_every_one, active_sms)
        others = among_others(
            mine, gpu, shape, active_sms, accesses, neighbours, neighbour_sm, neighbour_stands_for, turns
        )
    if left is None:
        left = LeftLines.copied(trace.ranges, gpu.l2.size // shape.line, shape.line)
    copied, made_dirty, lost_dirty = _copied(mine, others.users, left, alone, active_sms, launch.blocks, shape.line)
    ops = replace(code.ops, pc=of_ptx(kernel, code.ops.pc))  # hot spots are told by the lines of the PTX
    program = assemble(
        ops,
        plan,
        shape,
        found,
        line=line,
        address=address,
        copied=copied,
        users=others.users,
        shared=others.shared,
        kept=others.kept,
        warp_path=trace.warp_path.astype(np.int32),
        warp_access=entries.start,
        warps_per_block=per_block,
        thread_instructions=trace.thread_instructions,
        l2_found=float(copied.mean()) if len(copied) else 0.0,
        l2_dirty=left.dirty,
        l2_dirty_lines=left.dirty_lines,
        l2_dirty_most=left.dirty_capacity,
        l2_made_dirty=made_dirty,
        l2_lost_dirty=lost_dirty,
        l2_camping=others.camping,
        l2_reads=others.reads,
        l2_in_part=written_in_part(shape.sector, code.variants, variant, pattern, base, offsets, masks),
        dram_rows=others.dram_rows,
        atomic_share=others.atomic_share,
    )
    program = replace(program, unheard=code.unheard, op_copies=code.op_copies, op_posted=code.op_posted)
    if (reads := code.constants) is not None:
        program = replace(
            program,
            op_looked_up=reads.of,
            constant_start=reads.start,
            constant_line=reads.line,
            constant_last=reads.last,
        )
    if not alone and has_slices(gpu):
        program = replace(program, left_address=left.address[::-1].copy(), left_written=left.written[::-1].copy())
    events = code.events
    if events is None:
        return program
    return replace(
        program, op_event=code.op_event, event_start=events.start, event_of=events.of, event_count=events.count
    )


def _every_one(active_sms: int, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """`turn_of` where the SMs get blocks in turn."""
    return blocks // active_sms


def _copied(
    own: Own, users: Users, left: LeftLines, alone: bool, active_sms: int, grid: int, line: int
) -> tuple[NDArray[np.bool_], float, float]:
    """[L] lines that host copies or earlier launches left in the L2, and shares of the lines as `found_left` has them.

    left, alone: as in `lower_trace`; line: B.
    """
    if not alone:
        return left.places(own.address) < len(left.address), 0.0, 0.0
    writes = (~own.code.variants.load | own.code.variants.atomic)[own.variant]
    uses = Uses(own.line, own.found.start, writes, own.entries.start, own.trace.blocks, own.resident)
    return found_left(left, uses, own.address, users.line, own.trace.ranges, active_sms, grid, line)


def _in_frames(
    code: Code,
    trace: Trace,
    entries: Entries,
    variant: NDArray[np.int32],
    base: NDArray[np.int64],
    frames: int,
    slots: int,
) -> NDArray[np.int64]:
    """Base addresses, those in local memory as of the block's slot; in the trace each block has `frames` bytes."""
    local = (variant >= 0) & (code.variants.space[variant] == LOCAL)
    if not (frames and local.any()):
        return base
    count = len(trace.blocks)
    moved = (trace.blocks - np.arange(count) % slots) * frames
    of_entry = np.repeat(moved[trace.warp_block], np.diff(entries.start))
    return np.where(local, base - of_entry, base)


def _word_by_word(address: NDArray[np.uint64], frame: int, warps: int, room: int, apart: int) -> NDArray[np.uint64]:
    """Lines of local memory, which has frame after frame, as of a chip that keeps each word of all threads together.

    frame: B of a warp; warps of a block; room: blocks that the chip holds; apart: by how many places in that the next
    slot of the frames lies. GPGPU-Sim, `shader_core_ctx::translate_local_memaddr`.
    """
    local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW_BYTES)
    if not local.any() or frame * warps * room > WINDOW_BYTES:
        return address
    warp, within = np.divmod(address[local].astype(np.int64) - LOCAL_WINDOW, frame)
    (slot, own), (word, part) = np.divmod(warp, warps), np.divmod(within, WORDS)
    found = address.copy()
    found[local] = LOCAL_WINDOW + ((word * room + slot * apart) * warps + own) * WORDS + part
    return found


def _variants(
    code: Code, trace: Trace, entries: Entries
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Of each memory entry: what kind of access it is, its pattern, its base address."""
    recorded = entries.access >= 0
    if len(trace.access_base) == 0:
        space = pattern = np.zeros(len(recorded), np.int32)
        base = np.zeros(len(recorded), np.int64)
    elif np.array_equal(entries.access, np.arange(len(trace.access_base))):  # each once: nothing to gather
        space = trace.access_space.astype(np.int32)
        pattern, base = trace.access_pattern, trace.access_base.astype(np.int64)
    else:
        space = trace.access_space[entries.access].astype(np.int32)
        pattern = trace.access_pattern[entries.access]
        base = trace.access_base[entries.access].astype(np.int64)
    return np.where(recorded, code.variant_of[entries.pc, space], -1).astype(np.int32), pattern, base
