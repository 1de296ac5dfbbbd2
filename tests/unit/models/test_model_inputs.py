"""What models read, from a kernel and from a task list; and how a model answers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply, _producers
from ppt_gpu.models.registry import find_model
from ppt_gpu.pipeline import open_workload, simulated_sms, workload_traces
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.budget import Budget


@pytest.fixture(scope="module")
def inputs() -> ModelInputs:
    gpu = load_gpu("k40", ())
    traces, sequence = workload_traces(open_workload("vecadd"), gpu, {}, Budget(), (), False, None)
    sm = next(simulated_sms(open_workload("vecadd"), traces, sequence, gpu, None, True))
    return model_inputs(sm, plan(sm.launch.blocks, sm.occupancy, gpu))


def test_counts_agree_with_the_trace(inputs: ModelInputs) -> None:
    trace = inputs.need_trace()
    assert tuple(trace.blocks) == inputs.blocks
    assert inputs.resident_warps == inputs.resident_blocks * inputs.warps_per_block
    assert sum(inputs.class_counts.values()) == pytest.approx(inputs.warp_instructions)
    assert inputs.op_issues.sum() == inputs.instructions
    loads = inputs.class_counts["load.global"]
    assert loads == 2 and inputs.class_counts["store.global"] == 1
    memory = inputs.entry_memory[inputs.entry_memory >= 0]
    per_path = np.diff(inputs.program.warp_access)
    assert per_path[0] == (inputs.entry_memory[: inputs.program.path_start[1]] >= 0).sum()
    assert memory[0] == 0


def producers_reference(program: Program) -> list[list[int]]:
    """For every entry the entries that it waits for, in plain Python."""
    found: list[list[int]] = []
    for first, last in zip(program.path_start[:-1], program.path_start[1:], strict=True):
        owner: dict[int, int] = {}
        for entry in range(first, last):
            slots = [slot for slot in range(64) if int(program.entry_wait[entry]) >> slot & 1]
            found.append([owner.pop(slot) for slot in slots if slot in owner])
            if program.entry_slot[entry] >= 0:
                owner[int(program.entry_slot[entry])] = entry
    return found


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.tuples(st.integers(0, 15), st.integers(-1, 3)), max_size=8), min_size=1, max_size=3))
def test_producers_agree_with_the_reference(inputs: ModelInputs, paths: list[list[tuple[int, int]]]) -> None:
    entries = [entry for path in paths for entry in path]
    program = replace(
        inputs.program,
        path_start=np.cumsum([0, *map(len, paths)]),
        entry_op=np.zeros(len(entries), np.int32),
        entry_wait=np.array([wait for wait, _ in entries], np.uint64),
        entry_slot=np.array([slot for _, slot in entries], np.int8),
    )
    start, producer = _producers(program)
    assert [producer[a:b].tolist() for a, b in pairwise(start)] == producers_reference(program)


def test_a_task_list_says_what_it_lacks(inputs: ModelInputs) -> None:
    bare = replace(inputs, kernel=None, trace=None)
    with pytest.raises(DoesNotApply, match="task list"):
        bare.need_trace()
    with pytest.raises(DoesNotApply, match="PTX"):
        bare.need_kernel()


class Half(Model):
    name, title, source = "half", "Half of it", "nowhere"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        steps = Steps()
        whole = steps.given("whole", 10.0, "all of it", unit="cycles")
        if options.literal:
            raise DoesNotApply("nothing is printed")
        cycles = steps("T", "{whole} / 2", whole / 2, number="(1)", unit="cycles")
        return answer(self, inputs, cycles, "nothing", steps.all)


def test_a_model_prints_equation_numbers_and_result(inputs: ModelInputs) -> None:
    found = Half().analyze(inputs)
    assert found.value("T") == 5 and found.applies
    assert found.time == pytest.approx(5 / inputs.gpu.sm.clock)
    lines = Half().report(found)
    assert lines[0] == "Half of it (nowhere)"
    assert lines[1] == "whole = 10 cycles  (all of it)"
    assert lines[2] == "(1) T = whole / 2 = 10 / 2 = 5 cycles"
    refused = Half().analyze(inputs, Options(literal=True))
    assert not refused.applies and Half().report(refused)[1] == "does not apply: nothing is printed"


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_no_answer_that_is_no_number(wrong: float) -> None:
    with pytest.raises(ValueError):
        Estimate("half", cycles=wrong)
    if wrong != -1.0:
        with pytest.raises(ValueError):
            Steps().given("x", wrong)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(PptError, match="unknown model 'gpumesh'"):
        find_model("gpumesh")
