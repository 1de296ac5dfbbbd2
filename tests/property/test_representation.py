"""The representation: its text form round-trips, translations keep what they must, ILP as MICA measures it."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.loops import window_cycles_plain

from ppt_gpu.multicore.base.core_file import list_cores, load_core
from ppt_gpu.multicore.base.operations import CLASSES
from ppt_gpu.multicore.core_models.s_core import predict
from ppt_gpu.multicore.representation.ir import Amount, Ir
from ppt_gpu.multicore.representation.ir_from_trace import window_cycles
from ppt_gpu.multicore.representation.ir_text import parse_ir, write_ir
from ppt_gpu.multicore.representation.ir_to_m import m_inputs_of_ir
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.spec import load_gpu

CORES = {name: load_core(name) for name in list_cores()}
GPUS = {name: load_gpu(name) for name in ("fx580", "gtx660ti")}
AMOUNT = st.floats(0, 1e12)
SHARE = st.floats(0, 1)


@st.composite
def representations(draw: st.DrawFn) -> Ir:
    width = draw(st.sampled_from([1, 4, 8, 32]))
    operations = {}
    for name in draw(st.sets(st.sampled_from(sorted(CLASSES)), min_size=1)):
        groups = draw(AMOUNT)
        operations[name] = Amount(groups * width * draw(SHARE), groups)
    parts = draw(st.lists(st.floats(0.01, 1), min_size=1, max_size=3))
    names = draw(st.permutations(["0", "1", "irregular", "17"]))
    footprint = draw(st.floats(0, 1e12))
    return Ir(
        name=draw(st.text(max_size=20)),
        origin=draw(st.text(max_size=20)),
        threads=draw(st.floats(1, 1e9)),
        width=width,
        operations=operations,
        ilp={window: 1 + (window - 1) * draw(SHARE) for window in draw(st.sets(st.sampled_from([1, 2, 8, 100])))},
        footprint=footprint,
        element=draw(st.floats(1, 16)),
        strides={name: part / sum(parts) for name, part in zip(names, parts, strict=False)},
        scratch=footprint * draw(SHARE),
        inner_loops=draw(st.floats(0, 1e4)),
        group_threads=draw(st.integers(0, 1024)),
        mispredicted=draw(st.none() | SHARE),
        parallel=draw(SHARE),
        notes=tuple(draw(st.lists(st.text(max_size=20), max_size=2))),
    )


@given(representations())
def test_the_text_form_round_trips(ir: Ir) -> None:
    assert parse_ir(write_ir(ir)) == ir


@settings(max_examples=40, deadline=None)
@given(representations(), st.sampled_from(sorted(CORES)))
def test_every_representation_has_a_time_on_every_core(ir: Ir, core: str) -> None:
    assume(sum(amount.groups for amount in ir.operations.values()) >= 1)
    found = predict(s_inputs_of_ir(ir, CORES[core]), CORES[core])
    assert np.isfinite(found.time) and found.time > 0


@settings(max_examples=40, deadline=None)
@given(representations(), st.sampled_from(sorted(GPUS)))
def test_what_a_warp_does_is_what_its_threads_do(ir: Ir, gpu: str) -> None:
    """Operations of all warps, as groups of 32, are those of the source's groups."""
    groups = sum(amount.groups for amount in ir.operations.values()) * ir.width / 32
    assume(groups >= 1)
    found = m_inputs_of_ir(ir, GPUS[gpu])
    own = sum(count for name, count in found.n_i.items() if name != "sync" or name in ir.operations)
    if "sync" in found.n_i and "sync" in ir.operations:
        own -= ir.inner_loops
    warps = max(1.0, ir.threads / 32)
    assert np.isclose(own * warps, groups, rtol=1e-6, atol=1e-6 * max(groups, 1) + ir.inner_loops * warps * 1e-9)
    assert found.N_off_chip <= found.N_mem


@settings(deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 5), min_size=1, max_size=60), st.randoms())
def test_the_compiled_window_is_the_plain_one(window: int, path: list[int], random: object) -> None:
    dependences = [[producer for producer in range(6) if random.random() < 0.3] for _ in range(6)]  # type: ignore[attr-defined]
    start = np.cumsum([0, *(len(each) for each in dependences)]).astype(np.int64)
    edges = np.array([producer for each in dependences for producer in each], np.int32)
    order = np.array(path, np.int32)
    plain = window_cycles_plain(order, start, edges, window)
    assert window_cycles(order, start, edges, np.zeros(6, np.int64), np.zeros(window, np.int64)) == plain


def test_a_window_of_two_sees_two_minus_the_dependent_share() -> None:
    """As Blem's Eq 4.7 means it: 2.0, 1.75, 1.5, 1.25, 1.0 operations a cycle for 0 to all dependent neighbours."""
    random = np.random.default_rng(1)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        count = 20_000
        depends = random.random(count) < share
        start = np.concatenate([[0], np.cumsum(depends)]).astype(np.int64)
        edges = np.array([at - 1 for at in range(count) if depends[at]], np.int32)
        edges = edges[edges >= 0] if not depends[0] else np.maximum(edges, 0)
        order = np.arange(count, dtype=np.int32)
        cycles = window_cycles(order, start, edges, np.zeros(count, np.int64), np.zeros(2, np.int64))
        assert abs(count / cycles - (2 - share)) < 0.02
