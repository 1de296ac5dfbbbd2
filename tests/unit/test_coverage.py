"""Every kernel of the corpus leaves what its reference says; what is not executed yet says why."""

from collections.abc import Callable

import numpy as np
import pytest
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.validate import validate
from ppt_gpu.validate.coverage import cases
from ppt_gpu.validate.coverage.case import Case, corpus
from ppt_gpu.validate.coverage.run import BUDGET, Outcome, called, execute
from ppt_gpu.validate.coverage.table import rows, to_text

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_are_those_of_the_reference(case: Case) -> None:
    wrong, _ = execute(case)
    assert not wrong


def test_every_file_is_used_and_says_what_made_it() -> None:
    files = {path.stem: path for path in corpus().glob("*.ptx")}
    assert {case.module for case in CASES} == set(files)
    for path in files.values():
        assert path.read_text().startswith("// Made from ")


def test_every_kernel_is_a_case() -> None:
    from ppt_gpu.ptx.linking.mangling import matching
    from ppt_gpu.ptx.parsing.parser import load_module

    for path in corpus().glob("*.ptx"):
        module = load_module(path)
        covered = {matching(case.kernel, module.kernels)[0] for case in CASES if case.module == path.stem}
        assert covered == set(module.kernels)


def test_a_wrong_result_is_seen() -> None:
    case = CASES[0]
    assert case.differs(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])) == (
        "1 of 3 elements differ, first [2]: 4.0 instead of 3.0"
    )
    assert case.differs(np.array([np.nan, 2.0]), np.array([np.nan, 2.0])) is None
    assert case.differs(np.array([np.nan]), np.array([2.0])) is not None


def test_the_table_counts_forms_and_names_what_failed() -> None:
    from collections import Counter

    good, bad = CASES[:2]
    refusal = "'tex.1d' is not executed yet: 'tex', block (0)"
    outcomes = [
        Outcome(good, Counter({"add.s32": 3, "ld.global.f32": 1}), frozenset({"add.s32"}), "", ""),
        Outcome(bad, Counter({"add.f32": 1, "tex.1d": 2}), frozenset(), refusal, "no"),
    ]
    by_name = {row.opcode: row for row in rows(outcomes)}
    assert by_name["add"].parsed == {"add.s32", "add.f32"} and by_name["add"].executed == {"add.s32"}
    assert by_name["add"].timed == {"add.s32"} and by_name["add"].reason == f"only in {bad.name}, which failed"
    assert by_name["tex"].reason == "'tex.1d' is not executed yet: 'tex'"
    assert by_name["ld"].reason == "no warp comes there: ld.global.f32"
    assert f"not executed: {bad.name}" in to_text(outcomes)


def test_the_command_takes_cases_and_json() -> None:
    import json

    document = json.loads(validate("coverage", ["warp/votes"], as_json=True))
    assert document["cases"] == [{"case": "warp/votes", "execution": "right", "timing": "predicted"}]
    vote = next(row for row in document["opcodes"] if row["opcode"] == "vote")
    assert vote["executed"] == vote["parsed"] == vote["timed"]
    with pytest.raises(PptError, match="no case of 'coverage'"):
        validate("coverage", ["nothing of the kind"])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_interpreter_leaves_the_same_memory(case: Case) -> None:
    compiled, plain = (_memory_after(case, engine) for engine in (run, interpret))
    assert (compiled.data == plain.data).all()


def _memory_after(case: Case, engine: Callable[..., object]) -> DeviceMemory:
    data = case.make()
    call = called(case, data)
    prepared = prepare(call.workload)
    memory = device_memory(prepared.module, prepared.workload, {**call.contents, **data.variables}, BUDGET)
    launch = prepared.workload.launches[0]
    engine(prepared.module.kernels[launch.kernel], prepared.module, launch, memory, range(launch.blocks))
    return memory
