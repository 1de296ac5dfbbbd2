"""The errors of a functional run: what went wrong, in which block and thread, on which line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.errors import BudgetError, PptError, WaitingError
from ppt_gpu.common.units import format_count
from ppt_gpu.emulator.memory.memory import in_window
from ppt_gpu.emulator.memory.warp_context import Fault, Slot, barrier_text
from ppt_gpu.emulator.run.launch_state import Resident, Tables
from ppt_gpu.ptx.instructions import access_kind, is_call
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.workload.workload import Launch

if TYPE_CHECKING:
    from ppt_gpu.emulator.jit.compiler.compile import Engine


def block_text(launch: Launch, linear: int) -> str:
    """(x, y, z) of a linear block id."""
    x, y, _ = launch.grid
    return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"


def thread_text(launch: Launch, block: int, thread: int) -> str:
    """Where an error happened: block and thread by their coordinates, from linear numbers."""
    x, y, _ = launch.block
    place = f"({thread % x}, {thread // x % y}, {thread // (x * y)})"
    return f"block {block_text(launch, block)}, thread {place}"


def line_of(engine: Engine, point: int) -> int | None:
    """The PTX line of a resume point: of a segment's first instruction, or of the barrier or call before it."""
    flow, code = engine.flow, engine.kernel.instructions
    index = flow.start[point] if point < flow.segments else flow.start[point - flow.segments + 1] - 1
    return code[index].line if index < len(code) else None


def budget_error(tables: Tables, path: str, block: int, warp: int, resident: Resident, limit: int) -> BudgetError:
    """The instruction budget is used up."""
    from ppt_gpu.emulator.run.schedule import State

    ended = int(resident.state[State.POSITION])
    raised = "raise the budget: --max-instructions N, or Budget(instructions=N)"
    if ended > 0:
        each = format_count(limit // ended)
        hint = f"the {ended} blocks before it ran about {each} each: give blocks less work, or {raised}"
    else:
        hint = f"does a thread wait for another block, which runs later? Otherwise run fewer blocks, or {raised}"
    return BudgetError(
        f"kernel '{short_name(tables.engine.kernel.name)}' used up its instruction budget of {format_count(limit)} "
        f"warp instructions in block {block_text(tables.launch, block)}",
        path=path,
        line=line_of(tables.engine, int(resident.rows[warp, Slot.RESUME])),
        hint=hint,
    )


def deadlock_error(tables: Tables, path: str, block: int, resident: Resident) -> PptError:
    """Warps wait at barriers that the others never reach."""
    from ppt_gpu.emulator.run.schedule import WAITING

    waiting = next(row for row in resident.rows if row[Slot.STATUS] == WAITING)
    place = barrier_text(int(waiting[Slot.BARRIER]))
    return PptError(
        f"block {block_text(tables.launch, block)} of kernel '{short_name(tables.engine.kernel.name)}' waits for ever: "
        f"warp {waiting[Slot.WARP]} stands at {place}, which not all expected warps reach",
        path=path,
        line=line_of(tables.engine, int(waiting[Slot.RESUME])),
    )


def stuck_error(kernel: str, path: str, launch: Launch, block: int, line: int | None, blocks: int) -> WaitingError:
    """Every warp of the block waits for a value in memory, and nothing that runs will write it."""
    others = f"none of the {blocks} blocks that run writes" if blocks > 1 else "only another block could write"
    return WaitingError(
        f"block {block_text(launch, block)} of kernel '{short_name(kernel)}' waits for ever: it reads memory again "
        f"and again for a value that {others}",
        path=path,
        line=line,
        hint="a block that waits for other blocks needs them among those that run: simulate more blocks, or the "
        "whole grid; and the GPU must hold them all at once",
    )


def cluster_error(kernel: str, path: str, launch: Launch, block: int, line: int | None) -> PptError:
    """A warp waits at the barrier of its cluster, where some threads never arrive."""
    where = f"block {block_text(launch, block)} of kernel '{short_name(kernel)}'"
    message = f"{where} waits for ever at the barrier of its cluster"
    return PptError(message, path=path, line=line, hint="every thread of every block of the cluster has to arrive")


def fault_error(tables: Tables, path: str, block: int, resident: Resident, warp: int) -> PptError:
    """What compiled code noted in the warp's row."""
    row, engine = resident.rows[warp], tables.engine
    code, pc, lane = Fault(int(row[Slot.FAULT])), int(row[Slot.FAULT_PC]), int(row[Slot.FAULT_LANE])
    address = int(row[Slot.FAULT_ADDRESS]) & 0xFFFFFFFFFFFFFFFF
    instruction = engine.kernel.instructions[pc]
    where = thread_text(tables.launch, block, 32 * warp + lane)
    place = _place(tables, address)
    kind = {"load": "reads", "store": "writes"}.get(access_kind(instruction) or "", "accesses")
    hint: str | None = None
    if code == Fault.BOUNDS:
        text = f"'{instruction.opcode}' {kind} out of bounds, {where}: {place}"
    elif code == Fault.ALIGNMENT:
        text = f"'{instruction.opcode}' is misaligned, {where}: {place}"
    elif code == Fault.SPACE:
        text = f"'{instruction.opcode}' does not work there, {where}: {place}"
        hint = "parameters are read only, and atomics work in global and shared memory"
    elif code == Fault.TEXTURE:
        text = f"'{instruction.opcode}' has a handle that is no texture or surface, {where}"
        hint = "give it as an argument such as texture(data, width=64), or name it in [textures] of the workload"
    elif code == Fault.SURFACE:
        text = f"'{instruction.opcode}' is outside of its surface, {where}"
        hint = "x counts bytes; .clamp and .zero allow what .trap does not"
    elif code == Fault.OPERANDS:
        text = f"'{instruction.opcode}' cannot work with its operands, {where}"
        hint = "sizes are multiples of 16 bytes; tensor maps come from tensormap(...) or tensormap.replace, as tiles"
    elif code == Fault.BARRIER:
        text = f"'{instruction.opcode}' names a barrier that there is not, {where}"
        hint = "a block has 16, 0 to 15"
    elif code == Fault.PARTIAL:
        text = f"'{instruction.opcode}' needs all 32 lanes of the warp, some did not execute it, {where}"
    elif code == Fault.TRAP:
        text = f"'{instruction.opcode}' was reached, {where}"
        hint = "an assertion of the kernel failed, or its author took this place to be unreachable"
    elif code == Fault.TARGET:
        what = "calls an address that is no function it can call" if is_call(instruction) else ""
        text = f"'{instruction.opcode}' {what or 'has an index outside of its list'}, {where}"
    elif code == Fault.STACK:
        text, hint = stack_text(tables, instruction, where)
    elif is_call(instruction):
        text, hint = call_text(engine.unsupported[pc], where)
    else:
        text = f"'{instruction.opcode}' is not executed yet: {engine.unsupported[pc]}, {where}"
        hint = (
            f"--assume {instruction.opcode.partition('.')[0]}=CLASS times it as fp32, int32, tensor, ... without "
            "executing it; or describe the work as a task list"
        )
    return PptError(text, path=path, line=instruction.line, column=instruction.column, hint=hint)


def stack_text(tables: Tables, instruction: Instruction, where: str) -> tuple[str, str]:
    """(message, hint) for a stack that is too small."""
    return stack_message(
        tables.engine.kernel.function_name(instruction.index), instruction, _stack_bytes(tables), where
    )


def stack_message(function: str, instruction: Instruction, room: int, where: str) -> tuple[str, str]:
    """(message, hint) for a call or alloca of `function` that needs more stack than there is."""
    what = "calls deeper" if is_call(instruction) else "allocates more"
    text = f"'{function}' {what} than its stack of {room} bytes a thread allows, {where}"
    return text, "does the recursion end? Otherwise give it more: Budget(stack=BYTES)"


def _stack_bytes(tables: Tables) -> int:
    return tables.layout.local_bytes - tables.engine.kernel.frame_bytes


def call_text(reason: str, where: str) -> tuple[str, str]:
    """(message, hint) for a call of something that cannot be called."""
    return f"cannot call: {reason}, {where}", "link the PTX with what it calls, or compile it as one file"


def _place(tables: Tables, address: int) -> str:
    places = tables.layout
    space, offset = in_window(address)
    if space == "shared":
        return f"address {offset:#x} of shared memory, which has {places.shared_bytes} bytes"
    if space == "local":
        return f"address {offset:#x} of local memory, which has {places.local_bytes} bytes a thread"
    if space == "param":
        return f"byte {offset} of the parameters, which have {len(tables.parameters) - 16} bytes"
    return f"address {address:#x} is {tables.memory.nearest_buffer(address)}"
