"""Kernels that copy behind a thread's back, multiply in groups or form clusters: their traces, put together.

Each cluster runs by itself, the last one first, on memory that holds something else: the trace of all of them is, array
for array, that of one run of the whole grid. And it is that of a run that computes nothing else.
"""

import dataclasses

import numpy as np
import pytest
from equal_fields import assert_equal

from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.analysis.data_dependence import steered_by_memory
from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace_parts import join_blocks
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.inputs import open_workload
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.validate.coverage import table  # noqa: F401  (registers the cases)
from ppt_gpu.validate.coverage.case import CASES
from ppt_gpu.validate.coverage.run import called
from ppt_gpu.workload.block_cluster import cluster_of, whole_clusters
from ppt_gpu.workload.budget import Budget

NAMES = (
    *("hopper/cluster_sums", "hopper/bulk_copy", "hopper/elected", "hopper/stored_matrix", "hopper/grid_dependency"),
    *("library/multistage", "library/specialised", "tensor/async_copies", "tensor/async_zero_fill"),
    *("triton_matmul/matmul", "triton_matmul_hopper/matmul_hopper", "triton_attention/attention"),
)


def of_corpus(name):
    """(prepared, contents) of a case of the corpus."""
    case = next(case for case in CASES if case.name == name)
    data = case.make()
    call = called(case, data)
    return prepare(call.workload), {**call.contents, **data.variables}


def of_levels(name):
    """(prepared, contents) of a product of validation/levels, small."""
    opened = open_workload(data_dir("validation") / "levels" / name)
    launch = dataclasses.replace(opened.launches[0], grid=(3, 2, 1))
    return prepare(dataclasses.replace(opened, launches=(launch,))), {}


@pytest.mark.parametrize(
    "make, name", [*((of_corpus, name) for name in NAMES), (of_levels, "bulk.toml"), (of_levels, "cp_async.toml")]
)
def test_clusters_put_together_are_the_grid(make, name):
    prepared, contents = make(name)
    module, launch = prepared.module, prepared.workload.launches[0]
    kernel = link(module.kernels[launch.kernel], module)
    assert not steered_by_memory(kernel)
    memory = device_memory(module, prepared.workload, contents, Budget())
    expected = run(kernel, module, launch, memory, range(launch.blocks))
    assert_equal(run(kernel, module, launch, memory, range(launch.blocks), results=False), expected)
    for buffer in prepared.workload.buffers:
        raw = memory.bytes_of(buffer.name)
        raw[:] = np.random.default_rng(5).integers(0, 256, len(raw), dtype=np.uint8)
    place = {}
    for block in reversed(range(launch.blocks)):
        blocks = [] if block in place else whole_clusters([block], launch.grid, cluster_of(kernel, launch))
        trace = run(kernel, module, launch, memory, blocks) if blocks else None
        place |= {one: (trace, at) for at, one in enumerate(blocks)}
    assert_equal(join_blocks([place[block] for block in range(launch.blocks)]), expected)


def test_blocks_of_a_cluster_run_once(monkeypatch):
    """Who asks for one block of a cluster finds the others known."""
    from ppt_gpu.emulator.run import run as module_of_run

    prepared, contents = of_corpus("hopper/cluster_sums")
    one = Traces(prepared.module, prepared.workload, contents, Budget()).launch(0)
    ran = []
    real = module_of_run.run

    def counted(kernel, module, launch, memory, blocks, **options):
        ran.append(list(blocks))
        return real(kernel, module, launch, memory, blocks, **options)

    monkeypatch.setattr(module_of_run, "run", counted)
    cluster = whole_clusters([0], one.launch.grid, cluster_of(one.kernel, one.launch))
    assert len(cluster) > 1
    for block in cluster:
        assert one.run([block]).blocks.tolist() == [block]
    one.touched(cluster)
    assert ran == [cluster]
