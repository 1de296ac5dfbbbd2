"""More kernels at the edge than test_models_consistent has, also for the cache models: a finite number or a reason."""

from __future__ import annotations

import math

import pytest
from model_kernels import bare_kernel_text, inputs_of, kernel_text

from ppt_gpu.models.base.model import Model, Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.caches.cache_models import cache_models
from ppt_gpu.models.registry import models

LANE = ("mov.u32 %r4, %laneid;", "mul.wide.u32 %rd3, %r1, 4;", "add.s64 %rd4, %rd2, %rd3;")
#: a branch for every lane, each to a load and a store of its own
DIVERGENT = (
    *LANE,
    *(
        line
        for lane in range(8)
        for line in (
            f"setp.ne.u32 %p1, %r4, {lane};",
            f"@%p1 bra L{lane};",
            f"ld.global.f32 %f1, [%rd4+{1024 * lane}];",
            f"st.global.f32 [%rd1+{512 * lane}], %f1;",
            f"L{lane}:",
        )
    ),
    "ret;",
)
COPY_SHARED = ("ld.shared.f32 %f1, [shared_data];", "st.shared.f32 [shared_data], %f1;")
KERNELS = {
    "a return alone": (bare_kernel_text("ret;"), 1, 32),
    "no computation": (bare_kernel_text(*COPY_SHARED), 2, 64),
    "barriers alone": (bare_kernel_text("bar.sync 0;", "bar.sync 0;", "ret;"), 2, 96),
    "one thread": (kernel_text("ld.global.f32 %f1, [%rd2];", "st.global.f32 [%rd1], %f1;", "ret;"), 1, 1),
    "no lane takes part": (kernel_text("setp.lt.u32 %p1, %r1, 0;", "@%p1 ld.global.f32 %f1, [%rd2];", "ret;"), 2, 32),
    "divergence in every branch": (kernel_text(*DIVERGENT), 2, 64),
}
GPUS = ("gpumech_table1", "k40", "h100")


@pytest.fixture(scope="module", params=GPUS)
def launches(request: pytest.FixtureRequest) -> dict[str, ModelInputs]:
    return {
        name: inputs_of(text, request.param, grid=grid, block=block) for name, (text, grid, block) in KERNELS.items()
    }


@pytest.mark.parametrize("policy", ["lrr", "gto", "gto_block"])
@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_a_finite_number_or_a_reason(
    model: Model, policy: str, literal: bool, launches: dict[str, ModelInputs]
) -> None:
    for name, inputs in launches.items():
        found = model.analyze(inputs, Options(policy, literal))
        if not found.applies:
            assert len(found.reason) > 10, name
            continue
        assert math.isfinite(found.cycles) and found.cycles > 0, name
        assert found.limiter, name
        if found.stack:
            assert sum(share for _, share in found.stack) == pytest.approx(found.cpi, rel=1e-6), name
        assert all(math.isfinite(step.value) for step in found.steps), name
        assert all("nan" not in line.lower() for line in model.report(found)), name


def test_hit_rates(launches: dict[str, ModelInputs]) -> None:
    for name, inputs in launches.items():
        for literal in (False, True):
            for rates in cache_models(inputs, literal=literal):
                assert all(rate is None or 0 <= rate <= 1 for rate in (rates.l1, rates.l2)), (name, rates)
