"""Whatever stands in a file of counters: counters, or an error for the user; never another exception."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.port.port import Settings, counters_to_core, counters_to_gpu
from ppt_gpu.multicore.port.sensitivity import sensitivities
from ppt_gpu.multicore.representation.counter_files import read_counters
from ppt_gpu.multicore.representation.counters import COUNTERS
from ppt_gpu.multicore.representation.perf_stat import EVENTS
from ppt_gpu.spec import load_gpu

NAMES = st.sampled_from(
    [*COUNTERS, "op.fp_add", "op.load", "op.branch", "stride_1", "stride_irregular", "x", "counter"]
)
NUMBERS = st.one_of(
    st.floats(allow_nan=True).map(repr),
    st.integers(-3, 10**6).map(str),
    st.sampled_from(["0.5", "8 MiB", "3 ms", "-", ""]),
)
CSV = st.builds("{},{}{}".format, NAMES, NUMBERS, st.sampled_from(["", ",", ",%", ",kB", ",,,"]))
EVENT = st.sampled_from([*EVENTS, "cs", "r01", "cpu/instructions/"])
PERF = st.one_of(
    st.builds("{},,{},1,100.00,,".format, NUMBERS, EVENT),
    st.builds("   {}      {}:u     #  0.5 of it".format, NUMBERS, EVENT),
    st.sampled_from(
        [" Performance counter stats for 'x':", "", "  0.5 seconds time elapsed", "<not counted>,,cycles,0,0,,"]
    ),
)
TEXT = st.lists(st.one_of(CSV, PERF, st.text(max_size=12)), max_size=12).map("\n".join)
CORES = [load_core(name) for name in ("atom", "sandybridge")]
GPU = load_gpu("gtx660ti")


@settings(deadline=None, max_examples=150)
@given(TEXT)
def test_any_text(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.csv"
        path.write_text(text, encoding="utf-8", newline="")
        with contextlib.suppress(PptError):
            read_counters(path)


#: in range, each for itself; together they may still contradict each other
VALUES = {
    name: {"share": st.floats(0, 1), "number": st.floats(1, 1e4), "bytes": st.floats(1, 1e15)}.get(
        kind.dimension, st.floats(0, 1e18) | st.floats(0, 1e3)
    )
    for name, kind in COUNTERS.items()
    if kind.dimension != "time"
}


@settings(deadline=None, max_examples=100)
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_any_numbers(values: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.csv"
        path.write_text("counter,value\n" + "".join(f"{name},{value!r}\n" for name, value in values.items()))
        with contextlib.suppress(PptError):
            counters = read_counters(path, ["outer_iterations=1000", "instructions=1e18", "ilp_window2=1.5"])
            for core in CORES:
                assert all(each.reach >= 0 for each in sensitivities(counters_to_core(counters, core, "x", Settings())))
            found = counters_to_gpu(counters, GPU, "x", lambda block: 2048 // block, Settings())
            assert found.time > 0
