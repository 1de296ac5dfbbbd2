"""The memory that compiled code, the scheduler and Python share: one row of 64-bit slots a warp.

The row holds what the warp needs to run and resume: its masks, its divergence stack, its place in the kernel and the
cursors of the trace buffers. Compiled code reaches everything through a pointer to its row.
"""

from __future__ import annotations

from enum import IntEnum

#: all lanes of a warp
FULL_MASK = 0xFFFFFFFF


class Slot(IntEnum):
    """A 64-bit slot of a warp's row."""

    RESUME = 0  # resume point to continue at
    MASK = 1  # lanes that execute now
    LIVE = 2  # lanes that have not exited
    RPC = 3  # resume point where the executing lanes join their stack entry, -1 for none
    DEPTH = 4  # entries on the divergence stack
    STACK = 5  # pointer to the stack: four 32-bit words an entry (resume point, mask, rpc, frame offset)
    FRAME = 6  # pointer to the registers
    FUEL = 7  # instructions left in this turn; below 0: give the others a turn
    COUNT = 8  # warp instructions executed since the block began: what %clock reads
    # memory
    SHARED = 9  # pointer
    SHARED_BYTES = 10  # with what the system reserves
    LOCAL = 11  # pointer to lane 0's local memory
    LOCAL_BYTES = 12  # per thread
    LOCAL_TRACE = 13  # trace address of offset 0, see launch.layout.local_address
    PARAM = 14  # pointer
    PARAM_BYTES = 15
    SITES = 16  # pointer to the range caches, four slots a static access
    RANGES = 17  # pointer to [starts, ends] of the objects in memory, interleaved
    RANGE_COUNT = 18
    HOST = 19  # host address of virtual address 0 of the arena
    SYMBOLS = 20  # pointer to the addresses of the symbols that the kernel names
    GUARDED = 21  # pointer to the thread counts of guarded instructions
    GUARDED_SUM = 22  # threads counted there by this warp since the block began
    # trace buffers (`ppt_gpu.emulator.trace.trace_buffers`): the warp's own
    PATH = 23  # next free byte of the path buffer
    PATH_END = 24  # 0: the run's patterns need more room
    RECORD = 25  # next free header of an access
    RECORD_END = 26
    # faults
    FAULT = 27  # a Fault, 0 for none
    FAULT_PC = 28
    FAULT_LANE = 29
    FAULT_ADDRESS = 30
    NOTES = 31  # pointer to a word an instruction: Flag bits
    # barrier at which the warp waits
    BARRIER = 32  # number
    BARRIER_WARPS = 33  # warps that it takes, 0 for all of the block
    BARRIER_KIND = 34  # 0 wait, 1 arrive only, BARRIER_OF_WARP
    BARRIER_VALUE = 35  # of barrier.red: this warp's contribution (popc, or lanes true)
    BARRIER_THREADS = 36  # lanes that contributed
    BARRIER_RESULT = 37  # sum of the contributions of the warps that met
    BARRIER_RESULT_THREADS = 38
    # special registers
    TID = 39  # pointer to tid.x, tid.y, tid.z of the 32 lanes, 32-bit
    NTID_X = 40
    NTID_Y = 41
    NTID_Z = 42
    CTAID_X = 43
    CTAID_Y = 44
    CTAID_Z = 45
    NCTAID_X = 46
    NCTAID_Y = 47
    NCTAID_Z = 48
    WARP = 49  # warp in block
    WARPS = 50  # warps of the block
    STATUS = 51  # kept by the scheduler
    DYNAMIC_SHARED = 52
    SPIN = 53  # turns in a row that ended out of fuel while divergent
    PATTERNS = 54  # pointer to the control block of the run's patterns (`ppt_gpu.emulator.trace.pattern_store`)
    LOWEST = 55  # the least DEPTH since SPIN began: so many entries of the stack wait as long
    UNIFORM = 56  # pointer to the values of uniform registers (`ppt_gpu.emulator.analysis.constant_offsets`)
    # control
    FRAME_OFFSET = 57  # of the running function's frame in the threads' local memory
    STACK_ROOM = 58  # entries that the divergence stack has room for
    ARRIVED = 59  # lanes that wait, apart from others of their warp, at a barrier
    WAITS = 60  # turns in a row that ended in a loop that only waits
    HOST_CALL = 61  # instruction of the call that the host has to do
    BASES = 62  # with twice the host address of an access's header: that of its base address
    COPIES = 63  # pointer to the control block of `ppt_gpu.emulator.jit.async_copies`

    # addresses of several spaces
    CONST_END = 96  # end of the `.const` variables, which lie first in the arena
    CLUSTER_SHARED = 97  # pointer to the shared memory of the cluster's block 0
    CLUSTER_STRIDE = 98  # B from the shared memory of one block of the cluster to the next
    CLUSTER_BLOCKS = 99  # blocks of the cluster
    CLUSTER_RANK = 100  # of this block
    TEXTURES = 101  # pointer to the texture table
    TEXTURE_COUNT = 102
    CLUSTER_ARRIVED = 104  # lanes that have arrived at the cluster's barrier in this phase
    CLUSTER_X = 105  # blocks of a cluster along each axis
    CLUSTER_Y = 106
    CLUSTER_Z = 107
    CLUSTER_CTAID_X = 108  # of the block in its cluster
    CLUSTER_CTAID_Y = 109
    CLUSTER_CTAID_Z = 110
    CLUSTER_EXPLICIT = 111  # 1: the launch or the kernel says so
    USER_SHARED = 112  # B of shared memory but for what the system reserves
    RESERVED_SHARED = 113  # where that begins
    ARENA = 103  # pointer to the first byte of device memory


SLOTS = 128  # slots a row; 1 KiB


class Exit(IntEnum):
    """Why the compiled code of a warp returned."""

    DONE = 0  # every lane has exited
    BARRIER = 1
    FULL = 2  # a trace buffer has no room for the next basic block
    TURN = 3  # out of fuel
    FAULT = 4
    HOST = 5  # the host has to do a call
    SYNC = 6  # some lanes wait at a barrier for others of their warp


#: Slot.BARRIER of warps that wait for the other blocks of their cluster
BARRIER_OF_CLUSTER = 16
#: Slot.BARRIER of the warps of the first warpgroup that wait for each other around a wgmma, of the second one more
BARRIER_OF_GROUP = 32
#: numbers that barriers may have
BARRIERS = BARRIER_OF_GROUP + 16
#: Slot.BARRIER_KIND of lanes that wait for others of their warp only
BARRIER_OF_WARP = 2


def barrier_text(number: int) -> str:
    """What a message calls a barrier of the block."""
    return f"barrier {number}" if number < BARRIER_OF_GROUP else "the wgmma.fence or wait_group of its warpgroup"


class Fault(IntEnum):
    NONE = 0
    BOUNDS = 1  # address outside of every buffer, or of the shared, local or param space
    ALIGNMENT = 2
    UNSUPPORTED = 3  # an instruction that is not executed yet
    TRAP = 4
    OPERANDS = 21  # a bulk copy or tensor map with operands that it cannot work with
    PARTIAL = 20  # an instruction of the whole warp, executed by some of its lanes
    SPACE = 10  # a store to parameters, an atomic on parameters or local memory
    TEXTURE = 11  # a handle that is no texture or surface
    SURFACE = 12  # outside of a surface, with .trap
    TARGET = 6  # brx.idx with an index outside of its list, a call of an address that is no function
    STACK = 7  # recursion or alloca beyond the stack
    BARRIER = 22  # a barrier that there is not


class Flag(IntEnum):
    """Bits of the notes of an instruction: things that work here but not on every GPU."""

    DIVERGENT_BARRIER = 1
    DIVERGENT_SYNC = 2  # shfl/vote/... .sync names live lanes that do not take part
