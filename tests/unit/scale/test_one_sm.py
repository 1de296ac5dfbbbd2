"""What looks at one SM of a launch that was simulated whole: a mix of its blocks."""

from __future__ import annotations

import pytest
from irregular_kernels import triangular

from ppt_gpu.pipeline import predict_launch
from ppt_gpu.scale.levels.representative_sm import one_sm
from ppt_gpu.scale.levels.window_recording import record_prediction
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.sm.reference.recording import Window
from ppt_gpu.spec import load_gpu

GPU = load_gpu("v100", ["sm.count=8"])


def test_a_mix_stands_for_the_launch() -> None:
    sm = triangular(GPU)
    survey = sm.survey()
    found, _ = predict_launch(sm, "steady", survey)
    assert found.plan.whole and len(found.plan.blocks) == 600
    made = one_sm(found)
    assert len(made.blocks) < 300 and made.simulated_sms == 1
    work = survey.features.warp_instructions if survey.whole else sm.survey("all").features.warp_instructions
    assert made.chip_factor * work[list(made.blocks)].sum() == pytest.approx(work.sum(), rel=0.02)
    assert model_inputs(sm, made).blocks == made.blocks
    assert record_prediction(found, Window(100, 50)).blocks == made.blocks


def test_one_sm_stands_for_itself() -> None:
    sm = triangular(GPU, 90)
    found, _ = predict_launch(sm, "steady", sm.survey())
    assert not found.plan.whole and one_sm(found) is found.plan
