"""How expected errors are derived from measured launches, and the file that is shipped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import ppt_gpu
from ppt_gpu.report.result.expected_error import ANY, KERNELS, Group, expected_error, expected_text, read_groups
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon import measured, measured_cases, published
from ppt_gpu.validate.silicon.evidence import Launch, cases, document, groups, launches, path, read_launches
from ppt_gpu.validate.silicon.measured import Predicted, predictions
from ppt_gpu.validate.silicon.measured_cases import Case


def launch(
    kernel: str, error: float, gpu: str = "v100", limiter: str = "arithmetic", chosen: str = "", case: str = ""
) -> Launch:
    return Launch("set", gpu, kernel, case, limiter, 100.0, 100.0 * (1 + error), chosen)


def group(found: list[Group], generation: str = ANY, limiter: str = ANY) -> Group:
    return next(one for one in found if (one.generation, one.limiter) == (generation, limiter))


def test_kernels_count_alike_however_many_launches_they_have() -> None:
    found = [launch("often", 0.1) for _ in range(500)] + [launch("once", -0.5)]
    one = group(groups(found))
    assert (one.mean, one.kernels, one.launches, one.worst) == (0.3, 2, 501, 0.5)


def test_so_do_the_gpus_of_a_kernel() -> None:
    found = [launch("k", 0.1) for _ in range(9)] + [launch("k", 0.3, gpu="k20")]
    one = group(groups(found))
    assert one.mean == 0.2 and one.kernels == 1 and one.gpus == ("k20", "v100")
    assert one.generations == ("Kepler", "Volta")


def test_launches_are_in_the_groups_of_their_limit_and_generation() -> None:
    found = groups([launch("a", 0.1), launch("a", 0.2, limiter="load/store"), launch("a", 0.4, gpu="k40")])
    keys = {(one.generation, one.limiter): one.launches for one in found}
    assert keys == {
        ("Volta", "arithmetic"): 1, ("Volta", "load/store"): 1, ("Volta", ANY): 2, ("Kepler", "arithmetic"): 1,
        ("Kepler", ANY): 1, (ANY, "arithmetic"): 2, (ANY, "load/store"): 1, (ANY, ANY): 3,
    }  # fmt: skip


def test_few_kernels_bound_no_share() -> None:
    kernels = [launch(f"k{number}", number / 100) for number in range(1, KERNELS)]
    assert group(groups(kernels * 50)).p90 is None


def test_as_many_as_needed_bound_it_by_the_worst() -> None:
    kernels = [launch(f"k{number}", number / 100) for number in range(1, KERNELS + 1)]
    assert group(groups(kernels)).p90 == KERNELS / 100


@pytest.mark.parametrize("kernels", [9, 10, 19, 29, 60, 200])
def test_the_bound_holds_for_a_kernel_left_out(kernels: int) -> None:
    """Of K + 1 kernels, whichever is left out, the others' bound covers at least 90 % of them."""
    errors = [((37 * number) % 211) / 211 for number in range(kernels + 1)]
    covered = 0
    for out in range(kernels + 1):
        rest = [launch(f"k{number}", error) for number, error in enumerate(errors) if number != out]
        bound = group(groups(rest)).p90
        assert bound is not None
        covered += errors[out] <= bound + 1e-4
    assert 0.9 * (kernels + 1) <= covered <= 0.9 * (kernels + 1) + 1


def test_launches_with_a_chosen_value_are_no_evidence() -> None:
    found = groups([launch("a", 0.0, chosen="dram.efficiency"), launch("b", 0.2)])
    assert group(found).launches == 1 and group(found).mean == 0.2
    assert groups([launch("a", 0.0, chosen="dram.efficiency")]) == []


def case(name: str, gpu: str = "k20", chosen: str = "") -> Case:
    return Case(name, "made", gpu, (), "module", "kernel", (1, 1, 1), (32, 1, 1), (), None, 100.0, False, chosen)


def test_a_chosen_value_marks_the_kernel_on_its_gpu() -> None:
    cases = [case("1", chosen="host.x"), case("2", chosen="dram.y"), case("3"), case("4", "v100")]
    rows = [(one, measured.row_of(one, Predicted(110.0, "steady", "arithmetic"))) for one in cases]
    assert [one.chosen for one in launches(rows)] == ["dram.y host.x"] * 3 + [""]
    text = document(rows)
    assert read_launches(text) == launches(rows) and list(read_groups(text)) == groups(launches(rows))
    assert document(rows[::-1]) == text


def test_forms_of_a_kernel_are_one_kernel() -> None:
    cases = [replace(case(str(size)), kernel=f"tile_{size}", form_of="product") for size in (8, 16, 32)] + [case("4")]
    rows = [(one, measured.row_of(one, Predicted(110.0, "steady", "arithmetic"))) for one in cases]
    assert {one.kernel for one in launches(rows)} == {"module.product", "module.kernel"}
    assert group(groups(launches(rows))).kernels == 2
    forms = [one for one in published.cases() if one.form_of]
    assert len({one.kernel for one in forms}) > len({one.counted for one in forms}) == 5


def test_predictions_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path))
    (one,) = measured_cases.cases(["kepler k20 matrix_sum_coalesced 1280"])
    first = predictions([one])
    monkeypatch.setattr("ppt_gpu.validate.silicon.measured.predict", None)
    assert predictions([one]) == first
    with pytest.raises(TypeError):  # what it depends on is another: predicted again
        predictions([measured_cases.cases(["kepler k20 matrix_sum_coalesced 1792"])[0]])


# --- the shipped file -------------------------------------------------------------------------------------------------


def test_the_shipped_file_holds_every_case_once() -> None:
    shipped = read_launches(path().read_text())
    assert sorted((one.set, one.gpu, one.case) for one in shipped) == sorted(
        (one.set, one.gpu, one.name) for one in cases()
    )
    times = {one.title: one.time for one in cases()}
    for one in shipped:
        assert one.measured == pytest.approx(times[f"{one.set} {one.gpu} {one.case}"], rel=1e-4)


def test_its_groups_are_those_of_its_launches() -> None:
    text = path().read_text()
    assert list(read_groups(text)) == groups(read_launches(text))
    assert sum(one["launches"] for one in json.loads(text)["kernels"]) == len(read_launches(text))


def test_every_chosen_row_is_a_case_and_no_evidence() -> None:
    titles = {f"{row['set']} {row['gpu']} {row['case']}": row["values"] for row in measured_cases._table("chosen")}
    shipped = {f"{one.set} {one.gpu} {one.case}": one.chosen for one in read_launches(path().read_text())}
    for title, values in titles.items():
        assert set(values.split()) <= set(shipped[title].split())


@pytest.mark.parametrize("gpu", ["v100", "a100", "k40"])
def test_a_report_states_an_expected_error(gpu: str) -> None:
    launch = ppt_gpu.predict("vecadd", gpu).launches[0]
    assert 0 < float(launch.value("kernel.expected_error")) < 1
    found = expected_error(load_gpu(gpu), str(launch.value("limiter.kind")))
    assert launch.extra["expected_error"] == expected_text(found, load_gpu(gpu))
    assert "measured kernel" in str(launch.extra["expected_error"])
