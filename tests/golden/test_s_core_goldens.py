"""Blem's S-core equations (chapter 4), her core table and the interval CPU models against the goldens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from goldens import golden, goldens

from ppt_gpu.models.base.steps import Step
from ppt_gpu.multicore.base.core import CoreOperation, SCore
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.core_models.interval import in_order, out_of_order
from ppt_gpu.multicore.core_models.s_core import Options, arrival_rates, fullest_load, predict, spread, waits
from ppt_gpu.multicore.core_models.s_inputs import SInputs


def plain_core(**changes: object) -> SCore:
    """An in-order core of width 2 on which every operation takes a cycle on either port."""
    core = load_core("atom")
    operations = {name: CoreOperation(1.0, ((0, 1),)) for name in core.operations}
    return replace(core, **{"operations": operations, **changes})


def last(steps: tuple[Step, ...], symbol: str) -> float:
    return next(step.value for step in reversed(steps) if step.symbol == symbol)


def test_equation_4_3() -> None:
    """N_I / D + P_d x N_d + P_L x N_L, put together from the three parts of the model."""
    case = golden("bl.eq43")
    given = case["inputs"]
    # P_d = 1/2 is (D - 1) / D of a 2-wide core; N_d of N_I operations depend on the one before, and N_L of them block
    # their unit for P_L cycles beyond the first. Register moves stand for the rest.
    n, long = given["N_I"], given["N_L"]
    core = plain_core()
    blocking = CoreOperation(1.0, ((0, 1),), blocking=given["P_L"] + 1.0)
    core = replace(core, operations={**core.operations, "fp_div": blocking})
    inputs = SInputs({"move": n - long, "fp_div": long}, ILP_w2=2 - given["N_d"] / n)
    parts = predict(inputs, core).parts
    assert given["P_d"] == (given["D"] - 1) / given["D"]
    found = parts["issue"] + parts["dependences"] + parts["long operations"]
    assert found == pytest.approx(case["expected"]["T"], rel=case["tol"]["rel"])


def test_equation_4_6() -> None:
    case = golden("bl.eq46")
    inputs = SInputs({"move": 1000}, ILP_w2=2 - case["inputs"]["N_dep"] / 1000)
    found = predict(inputs, plain_core())
    assert last(found.steps, "N_dep") == pytest.approx(case["inputs"]["N_dep"])
    assert found.parts["dependences"] == pytest.approx(case["expected"]["total_penalty"], rel=case["tol"]["rel"])


def test_equation_4_7_corrected_and_as_printed() -> None:
    case = golden("bl.eq47")
    inputs = SInputs({"move": 1000}, ILP_w2=case["inputs"]["ILP_window2"])
    corrected, literal = (predict(inputs, plain_core(), Options(literal=flag)) for flag in (False, True))
    assert last(corrected.steps, "p_dep") == case["expected"]["p_dep_corrected"]
    assert last(literal.steps, "p_dep") == case["expected"]["p_dep_literal"]


def test_equations_4_8_to_4_10() -> None:
    case = golden("bl.eq48")
    given, expected = case["inputs"], case["expected"]
    rates = arrival_rates(given["D"], given["IPC_M"], given["p"])
    assert rates == pytest.approx(expected["lam"], rel=case["tol"]["rel"])
    assert waits(rates) == pytest.approx(expected["W"], rel=case["tol"]["rel"])
    assert given["l_mu"] + max(waits(rates)) == pytest.approx(expected["l_mu_new"], rel=case["tol"]["rel"])


def test_equations_4_8_to_4_10_in_the_model() -> None:
    """The same numbers from a core whose three ports take 5, 3 and 2 of 10 micro-ops."""
    given, expected = golden("bl.eq48")["inputs"], golden("bl.eq48")["expected"]
    core = load_core("sandybridge")
    operations = dict(core.operations)
    for port, name in enumerate(("fp_mul", "fp_add", "shuffle")):
        operations[name] = CoreOperation(given["l_mu"], ((port,),))
    core = replace(core, operations=operations, issue_width=given["D"])
    counts = dict(zip(("fp_mul", "fp_add", "shuffle"), (500, 300, 200), strict=True))
    found = predict(SInputs(counts, ILP=given["IPC_M"] * given["l_mu"]), core, Options(literal=True))
    assert last(found.steps, "IPC_M") == pytest.approx(given["IPC_M"])
    assert last(found.steps, "lambda_max") == pytest.approx(max(expected["lam"]))
    assert last(found.steps, "W_max") == pytest.approx(max(expected["W"]))
    assert last(found.steps, "l_mu'") == pytest.approx(expected["l_mu_new"])


@pytest.mark.parametrize("case", goldens("bl.alg41.*"), ids=lambda case: case["id"])
def test_algorithm_4_1(case: dict) -> None:
    kinds = [(count, tuple(ports)) for count, ports in case["inputs"]["types"]]
    ports, expected = case["inputs"]["ports"], case["expected"]["max_port_load"]
    assert fullest_load(kinds, ports) == pytest.approx(expected, rel=case["tol"]["rel"])
    assert max(spread(kinds, ports)) == pytest.approx(expected, rel=case["tol"]["rel"])


def test_table_2_4_of_s_cores() -> None:
    """The printed table and the shipped files agree; data caches are halves of what the table counts."""
    names = {
        "CortexA8": "a8", "Atom": "atom", "Xeon": "xeon", "Nehalem": "nehalem", "Sandybridge": "sandybridge"
    }  # fmt: skip
    for printed, row in golden("bl.table24.S")["expected"].items():
        core = load_core(names[printed])
        assert (core.out_of_order, core.instruction_width) == (row["ooo"], row["issue"])
        assert core.issue_width == row.get("uop_issue", row["issue"])
        assert core.clock == pytest.approx(row["ghz"] * 1e9)
        assert (core.power, core.area, core.specmark) == (row["tdp"], row["mm2"], row["spec"])
        assert core.l2.size == row["l2_kb"] * 1024
        assert (core.l3.size if core.l3 else None) == (row["l3_mb"] << 20 if "l3_mb" in row else None)
        if "bw" in row:
            assert core.bandwidth == pytest.approx(row["bw"] * 1e9)
        if core.out_of_order:
            assert core.l1.size == row["l1_kb"] * 512
        if printed != "CortexA8":  # its SIMD unit is not modelled: the dissertation ran scalar code
            assert core.lanes("fp_add") == row["simd"]


def test_eyerman() -> None:
    case = golden("ey.ooo")
    given = case["inputs"]
    found = out_of_order(
        instructions=given["N"], width=given["D"], l1i_misses=given["miL1"], l2i_misses=given["miL2"],
        mispredicts=given["mbr"], isolated_misses=given["mdl2"], l1i_penalty=given["ciL1"],
        memory_penalty=given["cL2"], drain=given["cdr"], front_end=given["cfe"],
    )  # fmt: skip
    assert found.cycles == pytest.approx(case["expected"]["cycles"], rel=case["tol"]["rel"])
    assert last(found.steps, "C_base") == given["N"] / given["D"]


def test_breughe() -> None:
    case = golden("ey.inorder")
    given = case["inputs"]
    found = in_order(
        instructions=given["N"], width=given["W"], misses=[(given["misses"], given["miss_latency"])],
        mispredicts=given["mispredicts"], front_end=given["frontend"],
        long_operations=[(given["ll"], given["ll_latency"])],
        unit_dependences={int(distance): count for distance, count in given["deps_unit"].items()},
    )  # fmt: skip
    assert found.cycles == pytest.approx(case["expected"]["cycles"], rel=case["tol"]["rel"])
    assert last(found.steps, "P_dep") == 200 / 4
