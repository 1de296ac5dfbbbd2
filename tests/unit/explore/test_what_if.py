"""what-if: what bounds a kernel is what helps it, and elasticities are slopes of simulated times."""

import json
import math

import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.explore.hardware_changes import Changes, direction, studied
from ppt_gpu.explore.sweep import Run
from ppt_gpu.explore.what_if import what_if

SAXPY = ppt_gpu.open_workload("vecadd")
WIDE = ("memory.requests_per_cycle=0",)  # so that DRAM alone bounds a stream


def test_bandwidth_helps_a_stream() -> None:
    found = what_if(
        SAXPY, "k40", WIDE, Run(), only=("sm.count", "dram.bandwidth", "pipes.sfu.lanes", "host.launch_overhead")
    )
    assert found.effects[0].change.key == "dram.bandwidth"
    assert 1.5 < found.effects[0].speedup <= 2.05
    effects = {effect.change.key: effect for effect in found.effects}
    assert effects["pipes.sfu.lanes"].speedup == 1.0 and effects["pipes.sfu.lanes"].elasticity == 0.0
    overhead = effects["host.launch_overhead"]
    assert overhead.elasticity == pytest.approx(3.5e-6 / found.time, rel=0.02)  # time = overhead + the rest


def test_effects_are_predictions() -> None:
    (effect,) = what_if(SAXPY, "k40", ("sm.count=10",), Run(), only=("dram.bandwidth",)).effects
    times = [
        ppt_gpu.predict("vecadd", "k40", overrides=["sm.count=10", f"dram.bandwidth={rate!r} B/s"]).time
        for rate in (288e9, 576e9, 288e9 / 1.1, 288e9 * 1.1)
    ]
    assert (effect.time, effect.speedup) == (times[1], times[0] / times[1])
    assert effect.elasticity == pytest.approx(math.log(times[3] / times[2]) / math.log(1.1 * 1.1))


def test_steps_are_those_of_the_hardware() -> None:
    changes = Changes("k40")
    after = {key: change.after for key in studied(changes.gpu) if (change := changes.scaled(key, 1.1)) is not None}
    assert (after["sm.count"], after["sm.registers"], after["l2.size"]) == (17, 72192, 1730560)
    assert after["l2.size"] % (128 * 16) == 0
    better = {key: change for key in studied(changes.gpu) if (change := changes.improved(key, 2)) is not None}
    assert better["dram.latency"].after == 234  # half of it would be less than the L2's
    for key, change in better.items():
        assert (float(change.after) > float(change.before)) == (direction(key) == 1)


def test_what_cannot_change_alone_is_named() -> None:
    found = what_if(SAXPY, "a100", (), Run(), only=("shared.size", "sm.clock"))  # one of its carve-outs
    assert (found.fixed, [effect.change.key for effect in found.effects]) == (("shared.size",), ["sm.clock"])


def test_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["what-if", "vecadd", "--gpu", "k40"]
    arguments += [p for key in ("l2.size", "sm.clock", "l1.size") for p in ("--parameter", key)]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("vecadd on k40: ") and max(map(len, lines)) <= 120
    assert any(line.startswith("no effect: l1.size") for line in lines)
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    effects = {effect["parameter"]: effect for effect in document["effects"]}
    assert effects["sm.clock"]["from"] == 745e6 and effects["sm.clock"]["to"] == 1490e6
    speedups = [effect["speedup"] for effect in document["effects"]]
    assert speedups == sorted(speedups, reverse=True)
    assert effects["sm.clock"]["speedup"] == document["time_s"] / effects["sm.clock"]["time_s"]
