"""What is found of all memory entries of a program at once is what going through its warps one by one finds."""

from unittest import mock

from hypothesis import HealthCheck, given, settings
from sm_random import programs

from ppt_gpu.bounds import least_latency
from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.bounds.work import cold_excess
from ppt_gpu.sm.program.program import RECORDED, Program

RELAXED = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@RELAXED
@given(programs)
def test_the_operation_of_every_entry(program: Program) -> None:
    plain = [
        op
        for path in program.warp_path.tolist()
        for op in program.entry_op[program.path_start[path] : program.path_start[path + 1]].tolist()
        if program.op_kind[op] in RECORDED
    ]
    for long in (0, 1 << 30):
        with mock.patch.object(least_latency, "LONG", long):
            assert entry_ops(program).tolist() == plain


@RELAXED
@given(programs)
def test_bytes_that_only_the_first_half_of_the_blocks_touches_first(program: Program) -> None:
    blocks = len(program.block_warp) - 1
    seen: set[int] = set()
    fresh = []
    for warps in zip(program.block_warp[:-1], program.block_warp[1:], strict=True):
        first, last = (program.access_start[program.warp_access[warp]] for warp in warps)
        lines = {line for line in program.tx_line[first:last].tolist() if line >= 0}
        fresh.append(len(lines - seen))
        seen |= lines
    half = blocks // 2
    expected = (sum(fresh[:half]) - sum(fresh[blocks - half :])) * program.line_bytes
    assert cold_excess(program, blocks) == max(expected, 0)
