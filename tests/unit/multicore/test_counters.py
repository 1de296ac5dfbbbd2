"""Counters of a CPU run: CSV, both forms of perf stat, and the rules between them."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.multicore.representation.counter_files import read_counters
from ppt_gpu.multicore.representation.ir_from_counters import ir_of_counters

EXAMPLES = Path(__file__).parents[3] / "examples" / "counters"
MORE = ["outer_iterations=64000", "unroll=4", "simd_width=4", "footprint=8192 kB"]


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.csv"
    path.write_text(text)
    return path


def test_units_and_shares(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        "# a comment\ncounter,value,unit\ninstructions,1_000_000\nfootprint,8,MiB\ntime,1.5 ms\nsimd_share,25,%\n"
        "op.load,40,%\nop.fp_add,60 %\nparallel_fraction,0.9\n",
    )
    found = read_counters(path, ["unroll=2"])
    assert found.get("footprint") == 8 << 20
    assert found.get("time") == pytest.approx(1.5e-3)
    assert (found.get("simd_share"), found.get("unroll")) == (0.25, 2)
    assert found.operations == {"load": pytest.approx(4e5), "fp_add": pytest.approx(6e5)}


@pytest.mark.parametrize("name", ["saxpy.perf.txt", "saxpy.perf.csv"])
def test_both_forms_of_perf_stat_say_the_same(name: str) -> None:
    found = read_counters(EXAMPLES / name)
    assert {key: found.get(key) for key in found.values if key != "time"} == {
        "instructions": 2.6e6, "cycles": 3.611e6, "branches": 64000, "branch_misses": 8, "loads": 512000,
        "stores": 256000, "l1_accesses": 768000, "l1_misses": 130000, "l2_misses": 182000, "l3_accesses": 182000,
        "l3_misses": 59088,
    }  # fmt: skip
    assert "dTLB-load-misses <not supported>" in found.ignored
    assert found.get("time") == (pytest.approx(1.3237e-3) if name.endswith(".txt") else 0)


def test_events_of_hybrid_cores_and_separate_loads_and_stores(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text(
        "5000;;cpu_core/instructions/u;1000;100.00;;\n"
        "300;;LLC-loads;1000;100.00;;\n"
        "100;;LLC-stores;1000;100.00;;\n"
        "700;;cache-references;1000;100.00;;\n"
    )
    found = read_counters(path)
    assert (found.get("instructions"), found.get("l3_accesses")) == (5000, 700)
    assert found.ignored == ["LLC-loads", "LLC-stores"]


def test_the_csv_and_perf_samples_make_nearly_the_same_program() -> None:
    whole = ir_of_counters(read_counters(EXAMPLES / "saxpy.csv"), "saxpy")
    perf = ir_of_counters(read_counters(EXAMPLES / "saxpy.perf.txt", MORE), "saxpy")
    assert whole.threads == perf.threads == 1_024_000
    assert whole.count(*whole.operations).groups == pytest.approx(perf.count(*perf.operations).groups)
    assert whole.footprint == perf.footprint
    assert whole.strides == {"1": 1.0} and perf.strides == {"irregular": 1.0}
    assert any("1.768e+06 of 2.6e+06 operations" in note for note in perf.notes)


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("l1_accesses,100\nl1_misses,200\n", 2, "l1_misses is 200, more than the 100 of l1_accesses (line 1)", None),
        ("branches,10\nbranch_misses,20\n", 2, "branch_misses is 20, more than the 10 of branches (line 1)", None),
        ("simd_share,1.7\n", 1, "simd_share: 1.7 is more than 1; 'simd_share' is a share", None),
        ("simd_share,170 %\n", 1, "simd_share: 170 % is more than 1", None),
        ("instuctions,12\n", 1, "unknown counter 'instuctions'", "did you mean 'instructions'?"),
        ("op.fp_ad,12\n", 1, "unknown counter 'op.fp_ad'", "did you mean 'op.fp_add'?"),
        ("instructions,12,MB\n", 1, 'instructions: "12 MB" measures bytes; expected a count', None),
        ("footprint,3 ms\n", 1, 'footprint: "3 ms" measures time, not bytes', None),
        ("time,3\n", 1, 'time: "3" is not a number with a unit', None),
        ("instructions,many\n", 1, 'instructions: "many" is not a number; expected a count', None),
        ("instructions,-3\n", 1, "instructions: -3 is out of range; expected 0 to 1e+18", None),
        ("instructions,nan\n", 1, "instructions:", None),
        ("instructions,5\ninstructions,6\n", 2, "'instructions' stands in line 1 already", None),
        (
            "instructions,5\nl1_mis",
            2,
            "'l1_mis' is no line of the form counter,value[,unit] (the file ends there",
            None,
        ),
        ("instructions,5\nl1_misses\n", 2, "'l1_misses' is no line of the form counter,value[,unit]", None),
        ("op.load,50 %\nop.store,30 %\nuops,100\n", 2, "the shares of op.* sum to 0.8, expected 1", None),
        ("op.load,50 %\nop.store,50 %\n", 1, "op.* in per cent needs 'uops' or 'instructions'", None),
        ("op.load,50 %\nop.store,30\nuops,100\n", 2, "op.store is a count where op.load is in per cent", None),
        ("op.load,50\nop.store,30\nuops,100\n", 3, "uops is 100, but op.* sum to 80", None),
        ("stride_1,0.5\nstride_irregular,0.1\n", 2, "the shares of stride_* sum to 0.6, expected 1", None),
        ("ilp_window2,2.5\n", 1, "ilp_window2 is 2.5; a window of 2 gives 1 to 2", None),
        ("ilp,1.2\nilp_window2,1.9\n", 2, "ilp_window2 is more than ilp", None),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, line: int, message: str, hint: str | None) -> None:
    path = csv(tmp_path, text)
    with pytest.raises(InputErrors) as caught:
        read_counters(path)
    (error,) = caught.value.errors
    assert (error.path, error.line) == (str(path), line)
    assert message in error.message
    assert error.hint == hint


def test_prefetches_are_no_contradiction(tmp_path: Path) -> None:
    """Table 5.4: saxpy has 130000 misses of the L1 and 182000 of the L2."""
    assert read_counters(csv(tmp_path, "l1_misses,130000\nl2_misses,182000\n")).get("l2_misses") == 182000


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (" Performance counter stats for 'x':\n\n   12   instructions\n", 3, "ends before 'seconds time elapsed'"),
        ("5,,instructions,10,100.00,,\n7,,cyc", 2, "has 3 fields, perf stat -x writes at least 5: cut off?"),
        ("5,,instrutions,10,100.00,,\n", 1, "unknown event 'instrutions'"),
        ("5,,r00c0,10,100.00,,\n", 1, "unknown event 'r00c0'"),
        ("1.2.3,,instructions,10,100.00,,\n", 1, "'1.2.3' is not a number"),
        (
            " Performance counter stats for 'x':\n\n  garbage\n\n  0.5 seconds time elapsed\n", 3,
            "'garbage' is no line of perf stat",
        ),
        ("5,,branches,9,100.00,,\n9,,branch-misses,9,100.00,,\n", 2, "branch_misses is 9, more than the 5 of branches"),
    ],
)  # fmt: skip
def test_bad_perf(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(text)
    with pytest.raises(InputErrors) as caught:
        read_counters(path)
    (error,) = caught.value.errors
    assert error.line == line and message in error.message


@pytest.mark.parametrize(
    "line", ["     1.000123,2600000,,instructions:u,1008213,83.33,,", "CPU0,2600000,,instructions,1008213,100.00,,"]
)
def test_perf_by_interval_or_cpu_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "perf.csv"
    path.write_text(line + "\n")
    with pytest.raises(PptError, match=r"output by interval, CPU or core \(-I, -A, --per-core\) is not read"):
        read_counters(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instructions,100\nfootprint,1 MB\n", "do not say 'outer_iterations'"),
        ("outer_iterations,5\nfootprint,1 MB\n", "the counters name no operations"),
        ("outer_iterations,5\ninstructions,100\n", "say neither 'footprint' nor misses"),
    ],
)
def test_what_a_translation_cannot_do_without(tmp_path: Path, text: str, message: str) -> None:
    counters = read_counters(csv(tmp_path, text))
    with pytest.raises(PptError, match=message):
        ir_of_counters(counters, "run")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PptError, match="cannot read: No such file"):
        read_counters(tmp_path / "none.csv")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PptError, match="cannot read: it is not text"):
        read_counters(tmp_path / "bytes")
    with pytest.raises(PptError, match="no counters"):
        read_counters(csv(tmp_path, "\n# nothing\n"))
    with pytest.raises(PptError, match="expected NAME=VALUE"):
        read_counters(EXAMPLES / "saxpy.csv", ["unroll"])
