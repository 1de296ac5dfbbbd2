"""GPUPerf and Blem's M-core against the worked numbers of the specification, intermediates too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from goldens import golden, holds

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.gpuperf.gpuperf import gpuperf
from ppt_gpu.models.gpuperf.inputs import C2050, C2050_L1_LATENCY, C2050_L2_LATENCY, C2050_MAX_WARPS, GpuPerfInputs
from ppt_gpu.models.gpuperf.model import potential_benefits
from ppt_gpu.models.mcore.mcore import MCoreHardware, MCoreSoftware, itilp_max, m_core

#: names of the goldens whose lower-case form is not that of the inputs
NAMES = {"SIMD_width": "simd_width", "SFU_width": "sfu_width", "DRAM_lat": "dram_lat", "Gamma": "gamma", "N": "n",
         "active_SMs": "active_sms", "SFU_insts": "sfu_insts", "O_CFdiv": "o_cfdiv", "O_bank": "o_bank", "ILP": "ilp",
         "MLP": "mlp"}  # fmt: skip


def given(record: dict[str, Any]) -> GpuPerfInputs:
    return GpuPerfInputs(**{NAMES.get(name, name): value for name, value in record["inputs"].items()})


@pytest.mark.parametrize("record", [golden("gp.example"), golden("gp.compute_bound")], ids=lambda record: record["id"])
def test_worked_examples(record: dict[str, Any]) -> None:
    found = gpuperf(given(record))
    holds(record["id"], {step.symbol: step.value for step in found.steps})
    assert found.cycles == record["expected"]["T_exec"]


def test_synchronisation_by_warp_and_by_block() -> None:
    record = golden("gp.osync")
    asked, expected = record["inputs"], record["expected"]
    inputs = replace(
        given(golden("gp.example")),
        sync_insts=asked["sync_insts"],
        mem_insts=asked["mem_insts"],
        insts=asked["insts"],
        total_warps=asked["warps_per_SM"] * C2050["active_sms"],
        total_blocks=asked["blocks_per_SM"] * C2050["active_sms"],
    )
    by_warp, by_block = gpuperf(inputs), gpuperf(inputs, sync_count="block")
    assert by_warp["avg_DRAM_lat"] == asked["avg_DRAM_lat"]
    assert by_warp["F_sync"] == by_block["F_sync"] == pytest.approx(expected["F_sync"])
    assert by_warp["O_sync"] == pytest.approx(expected["O_sync_per_warp"])
    assert by_block["O_sync"] == pytest.approx(expected["O_sync_per_block"])
    with pytest.raises(PptError, match="sync_count is 'thread'"):
        gpuperf(inputs, sync_count="thread")


def test_the_machine_of_the_examples() -> None:
    expected = golden("gp.c2050")["expected"]
    assert {name: C2050[NAMES.get(name, name)] for name in C2050 if name in expected} == {
        name: value for name, value in expected.items() if name in C2050
    }
    assert C2050["active_sms"] == expected["SMs"]
    assert (
        expected["l1_lat"],
        expected["l2_lat"],
        expected["max_warps"],
    ) == (C2050_L1_LATENCY, C2050_L2_LATENCY, C2050_MAX_WARPS)


def test_potential_benefits_of_the_example() -> None:
    found = gpuperf(replace(given(golden("gp.example")), fp_insts=100, fp_lat=18))
    benefits = potential_benefits(found)
    assert benefits.itilp == 0  # ITILP is at its maximum
    assert benefits.serial == found["W_serial"] == pytest.approx(5760)
    assert benefits.fp == pytest.approx(53760 - 100 * 3360 * 18 / (14 * 18))
    assert benefits.memlp == 0  # computation hides all of it
    bound = gpuperf(replace(given(golden("gp.example")), ilp=0.5, mlp=0.5, mem_insts=50))
    benefits = potential_benefits(bound)
    assert benefits.itilp == pytest.approx(bound["W_parallel"] - 48000) and benefits.itilp > 0
    assert benefits.memlp == pytest.approx(
        bound["T_mem"] - bound["T_overlap"] - 50 * 240 * bound["AMAT"] / bound["MWP_peak_bw"]
    )
    assert benefits.largest == "memlp"


def test_multiple_issue() -> None:
    record = golden("bl.eq411")
    asked, expected = record["inputs"], record["expected"]
    assert itilp_max(asked["l"], asked["warp"], asked["simd"]) == expected["ITILP_max"]
    assert itilp_max(asked["l"], asked["warp"], asked["simd"], asked["W"]) == expected["ITILP_max_multi"]
    wide = gpuperf(replace(given(golden("gp.example")), issue_width=asked["W"]))
    assert wide["ITILP_max"] == expected["ITILP_max_multi"] and wide["ITILP"] == 1.2 * 24


def software(**changes: Any) -> MCoreSoftware:
    """The launch of the worked example, instructions by type."""
    return replace(
        MCoreSoftware(
            W_SM=24, total_warps=3360, n_mu={"fp": 150, "sfu": 40, "mem": 10}, N_SFU=40, ILP=1.2, MLP=1.5, N_mem=10,
            N_off_chip=5, avg_trans_warp=4,
        ),
        **changes,
    )  # fmt: skip


HARDWARE = MCoreHardware(
    nu=1.15e9, SM=14, SP=32, SFU=4, l_mu={"fp": 18, "sfu": 18, "mem": 18}, t_mem=440, Delta=20, BW_max=144e9, t_hit=122
)


def test_the_m_core_is_gpuperf_where_its_modules_add_nothing() -> None:
    record = golden("gp.example")
    found = m_core(software(), HARDWARE)
    holds(record["id"], {step.symbol: step.value for step in found.model.steps})
    assert found.seconds == pytest.approx(record["expected"]["T_exec"] / 1.15e9)
    assert found.instructions_per_second == pytest.approx(200 * 240 * 32 / found.seconds)


def test_modules_of_the_m_core() -> None:
    plain = m_core(software(), HARDWARE)
    # Instruction timing: the mean latency is that of the mix.
    slow = m_core(software(), replace(HARDWARE, l_mu={"fp": 10, "sfu": 40, "mem": 20}))
    assert slow.model["avg_inst_lat"] == pytest.approx((1500 + 1600 + 200) / 200)
    # Special function units: as part of all instructions and on top.
    none = m_core(software(n_mu={"fp": 150, "mem": 10}, N_SFU=0), HARDWARE)
    assert plain.model["W_parallel"] > none.model["W_parallel"]
    assert plain.model["O_SFU"] == pytest.approx(5760) and none.model["O_SFU"] == 0
    # Multiple issue helps where there is enough parallelism.
    wide = m_core(software(), replace(HARDWARE, W=2))
    assert wide.model["W_parallel"] == pytest.approx(plain.model["W_parallel"] * 18 / 28.8)
    # Divergence and bank conflicts cost an SM time for each of its 240 warps.
    lossy = m_core(software(N_CF_div=20, N_con=3), HARDWARE)
    assert lossy.model["O_CFdiv"] == pytest.approx(20 * 240) and lossy.model["O_bank"] == 3 * 240
    with pytest.raises(PptError, match="no latency for instructions of type tensor"):
        m_core(software(n_mu={"tensor": 1}), HARDWARE)
