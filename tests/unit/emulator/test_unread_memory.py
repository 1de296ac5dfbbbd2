"""Kernels that memory does not steer leave the same trace whatever buffers hold: nothing is generated for them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from equal_fields import assert_equal

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.data_dependence import steered_by_memory
from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.prepare import Prepared, prepare
from ppt_gpu.inputs import open_workload
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.validate.coverage import cases
from ppt_gpu.validate.coverage.run import BUDGET, called
from ppt_gpu.workload.fill import fill
from ppt_gpu.workload.reader import sample_names
from ppt_gpu.workload.workload import Buffer, Launch, Workload

MOST = 5  # blocks that are run


def separable_launches() -> Iterator[tuple[str, Prepared, Kernel, Launch, Mapping[str, Any]]]:
    """Of the samples and of the corpus: those whose traces are taken apart into blocks."""
    for name in sample_names():
        prepared = prepare(open_workload(name))
        for launch in prepared.workload.launches:
            yield from _if_separable(name, prepared, launch, {})
    for case in cases():
        data = case.make()
        call = called(case, data)
        prepared = prepare(call.workload)
        contents = {**call.contents, **data.variables}
        yield from _if_separable(case.name, prepared, prepared.workload.launches[0], contents)


def _if_separable(
    name: str, prepared: Prepared, launch: Launch, contents: Mapping[str, Any]
) -> Iterator[tuple[str, Prepared, Kernel, Launch, Mapping[str, Any]]]:
    kernel = link(prepared.module.kernels[launch.kernel], prepared.module)
    if not steered_by_memory(kernel):
        yield name, prepared, kernel, launch, contents


@pytest.mark.slow
def test_traces_are_those_on_memory_that_is_filled() -> None:
    seen = 0
    for name, prepared, kernel, launch, contents in separable_launches():
        blocks = np.unique(np.linspace(0, launch.blocks - 1, MOST).astype(int)).tolist()
        traces = [
            run(kernel, prepared.module, launch, memory, blocks, budget=BUDGET)
            for unread in (False, True)
            for memory in (device_memory(prepared.module, prepared.workload, contents, BUDGET, unread),)
        ]
        assert_equal(*traces, about=name)
        seen += 1
    assert seen > 70


def test_nothing_is_generated_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = []
    monkeypatch.setattr("ppt_gpu.emulator.memory.memory.fill", lambda raw, buffer, _: filled.append(buffer.name))
    prepared = prepare(open_workload("vecadd"))
    Traces(prepared.module, prepared.workload, {}, BUDGET).launch(0).run([0])
    assert not filled


def _memory(buffer: Buffer, contents: Mapping[str, Any], unread: bool) -> Any:
    prepared = prepare(open_workload("vecadd"))
    workload = Workload("w", "", "k.ptx", (), buffers=(buffer,))
    return device_memory(prepared.module, workload, contents, BUDGET, unread)


@pytest.mark.parametrize(
    "buffer",
    [
        Buffer("b", "u8", 4, "random", low=0, high=300),
        Buffer("b", "f32", 4, "random", low=2, high=1),
        Buffer("b", "u8", 4, "const:256"),
        Buffer("b", "f32", 4, "konst:1"),
        Buffer("b", "f32", 4, "npy:none.npy"),
    ],
)
def test_what_is_wrong_with_a_buffer_is_said_all_the_same(buffer: Buffer, tmp_path) -> None:
    with pytest.raises(PptError) as filled:
        fill(np.zeros(16, np.uint8), buffer, tmp_path.parent)
    with pytest.raises(PptError) as unread:
        _memory(buffer, {}, True)
    assert filled.value.message.split(" is ")[0][:20] == unread.value.message[:20]


def test_arrays_of_the_wrong_size_are_refused_all_the_same() -> None:
    with pytest.raises(PptError, match="have 8 bytes, the buffer has 16"):
        _memory(Buffer("b", "f32", 4), {"b": np.zeros(2, "f4")}, True)
