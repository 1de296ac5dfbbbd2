"""Occupancy against NVIDIA's own calculator: a sample in the repository, all 22,308 vectors when they lie beside it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from goldens import goldens

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.occupancy.occupancy import UNLIMITED, OccupancyLimits, theoretical_occupancy

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SAMPLES = [DATA / f"occupancy_oracle_{name}.csv" for name in ("sample", "more")]
FULL = HERE.parents[1].parent / "shared" / "reference" / "hardware" / "occupancy_oracle.csv"
KIB = 1024

#: compute capability -> max warps, max blocks, shared memory per SM (KiB), as the oracle's device had them
DEVICES = {
    "3.5": (64, 16, 48),
    "6.0": (64, 32, 64),
    "6.1": (64, 32, 96),
    "7.0": (64, 32, 96),
    "7.5": (32, 16, 64),
    "8.0": (64, 32, 164),
    "8.6": (48, 16, 100),
    "8.9": (48, 24, 100),
    "9.0": (64, 32, 228),
    "10.0": (64, 32, 228),
    "12.0": (48, 24, 100),
}
MASK = {"warps": 1, "registers": 2, "shared": 4, "blocks": 8}
GOLDENS = goldens("occ.*")


def limits_of(cc: str) -> OccupancyLimits:
    warps, blocks, shared = DEVICES[cc]
    recent = int(cc.split(".")[0]) >= 8
    return OccupancyLimits(
        max_warps=warps,
        max_blocks=blocks,
        max_threads_per_block=1024,
        registers=65536,
        register_unit=256,
        register_granularity="warp",
        max_registers_per_thread=255,
        warp_granularity=2 if cc == "6.0" else 4,
        shared_size=shared * KIB,
        shared_per_block=(shared - 1 if recent else shared) * KIB,
        shared_unit=128 if recent else 256,
        shared_reserved=KIB if recent else 0,
    )


def check_vectors(path: Path, device: dict[str, OccupancyLimits]) -> int:
    """Assert every vector of `path` whose compute capability is in `device`; how many there were."""
    checked = 0
    with path.open() as stream:
        for row in csv.DictReader(line for line in stream if not line.startswith("#")):
            if row["cc"] not in device:
                continue
            number = {key: int(value) for key, value in row.items() if key != "cc"}
            found = theoretical_occupancy(
                device[row["cc"]], number["threads"], number["regs_per_thread"], number["smem_bytes"]
            )
            assert found.blocks_per_sm == number["active_blocks_per_sm"], row
            assert found.limits == {
                "warps": number["limit_warps"],
                "blocks": number["limit_blocks"],
                "registers": number["limit_regs"],
                "shared": number["limit_smem"],
            }, row
            assert sum(MASK[name] for name in found.limiters) == number["limiting_mask"] & 15, row
            assert found.registers_per_block == number["alloc_regs_per_block"], row
            assert found.shared_per_block == number["alloc_smem_per_block"], row
            checked += 1
    return checked


def test_sample_of_the_oracle() -> None:
    assert check_vectors(DATA / "occupancy_oracle_sample.csv", {cc: limits_of(cc) for cc in DEVICES}) > 500


@pytest.mark.skipif(not FULL.is_file(), reason="the full oracle is not beside this checkout (../shared)")
def test_the_whole_oracle() -> None:
    assert check_vectors(FULL, {cc: limits_of(cc) for cc in DEVICES}) == 22308


def test_shipped_gpus_agree_with_the_oracle() -> None:
    """The GPUs that exist, from cc 3.0 on; simulated and hypothetical ones have rules of their own."""
    from ppt_gpu.spec import list_gpus, load_gpu

    known = {line.partition(",")[0] for path in SAMPLES for line in path.read_text().splitlines()}
    limits: dict[str, dict[OccupancyLimits, str]] = {}
    for entry in list_gpus():
        major = int(entry.compute_capability.partition(".")[0])
        if major >= 3 and entry.name not in ("gpgpusim_qv100", "pascal_ppt"):
            assert entry.compute_capability in known, entry.name
            limits.setdefault(entry.compute_capability, {})[OccupancyLimits.of(load_gpu(entry.name))] = entry.name
    for cc, found in limits.items():
        assert len(found) == 1, f"GPUs of cc {cc} differ: {sorted(found.values())}"
        assert sum(check_vectors(path, {cc: limit}) for path in SAMPLES for limit in found) > 30


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden["id"])
def test_golden(golden: dict) -> None:
    inputs, device, expected = golden["inputs"], golden["inputs"]["device"], golden["expected"]
    limits = OccupancyLimits(
        max_warps=device["warps"],
        max_blocks=device["blocks"],
        max_threads_per_block=1024,
        registers=device["regs"],
        register_unit=device["rgran"],
        register_granularity="warp",
        max_registers_per_thread=device["maxr"],
        warp_granularity=device["sub"],
        shared_size=device["smem"],
        shared_per_block=device["smem"],
        shared_unit=device["sgran"],
        shared_reserved=device.get("reserved", 0),
    )
    found = theoretical_occupancy(limits, inputs["threads"], inputs["regs"], inputs["smem"])
    assert (found.blocks_per_sm, found.warps_per_sm) == (expected["blocks"], expected["warps"])
    assert found.fraction == pytest.approx(expected["occupancy"], rel=golden["tol"]["rel"])
    names = {"warps": "warps", "regs": "registers", "smem": "shared", "blocks": "blocks"}
    for key, value in expected["limits"].items():
        assert found.limits[names[key]] == (UNLIMITED if value == 10**9 else value)


def test_a_block_that_fits_nowhere_is_an_error_not_zero() -> None:
    from ppt_gpu.scale.occupancy.occupancy import checked_occupancy

    with pytest.raises(PptError, match="registers of 32 warps") as caught:
        checked_occupancy(limits_of("7.0"), 1024, 65, 0, name="V100")
    assert "at most 64 registers per thread" in str(caught.value)
