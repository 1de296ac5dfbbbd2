"""One cache for many processes, some of them killed while they write: every prediction is right, every entry whole."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ppt_gpu.emulator.cache import store as traces
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.machine import code_cache as machine_code
from ppt_gpu.scale.cache.block_timing import TIMING
from ppt_gpu.scale.cache.lowered_blocks import LOWERED
from ppt_gpu.scale.l2_history import lines_codec

ROOT = Path(__file__).parents[2]
PROCESSES, PREDICTIONS, KILLS = 8, 1000, 8
#: of each kind of entry; ValueError for one that is damaged
READERS = {
    traces.SUFFIX: traces._decode,
    TIMING.suffix: TIMING.read,
    LOWERED.suffix: LOWERED.read,
    machine_code.SUFFIX: machine_code._decode,
    lines_codec(128, None).suffix: lines_codec(128, None).read,
}

PREDICT = """
import json, random, sys
import ppt_gpu
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.machine import code_cache as machine_code
from ppt_gpu.scale.cache import launch_store
from pathlib import Path
root, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
for _ in range(count):
    key = (chance.choice(("64", "128")), chance.choice((2, 3, 5, 7)), chance.choice(("gto", "lrr")))
    block, sms, policy = key
    workload = ppt_gpu.open_workload(root / "tasklists" / "vecadd.ptx", grid=str(4096 // int(block)), block=block,
                                     registers=12, args=["f32[4096]=random"] * 3 + ["i32=4096"])
    found = ppt_gpu.predict(workload, "k40", overrides=[f"sm.count={sms}"], policy=policy, cache={cache})
    print(json.dumps([key, found.time, found.main.value("limiter")]), flush=True)
    for each in (kept, machine_code, launch_store):
        each.forget()  # so that the next reads from disk
"""


def started(cache: Path, seed: int, count: int, keep: bool = True) -> subprocess.Popen[str]:
    environment = os.environ | {"PPT_GPU_CACHE": str(cache)}
    command = [sys.executable, "-c", PREDICT.replace("{cache}", str(keep)), str(ROOT), str(seed), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def lines_of(text: str) -> list[tuple[str, float, str]]:
    whole = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [(json.dumps(key), seconds, limiter) for key, seconds, limiter in map(json.loads, whole)]


@pytest.mark.slow
def test_a_thousand_predictions_share_a_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    out, errors = started(cache / "none", 0, 200, keep=False).communicate()
    assert errors == ""
    expected = {key: (seconds, limiter) for key, seconds, limiter in lines_of(out)}
    assert len(expected) == 16
    chance, made, kills, seed = random.Random(1), 0, 0, 1
    running: list[subprocess.Popen[str]] = []
    while made < PREDICTIONS or running:
        while made < PREDICTIONS and len(running) < PROCESSES:
            running.append(started(cache, seed, 40))
            seed += 1
        time.sleep(chance.uniform(0, 0.3))
        if kills < KILLS and len(running) == PROCESSES and made:
            chance.choice(running).kill()
            kills += 1
        for process in [one for one in running if one.poll() is not None]:
            running.remove(process)
            out, errors = process.communicate()
            assert errors == "", "nobody finds a damaged entry"
            for key, seconds, limiter in lines_of(out):
                assert (seconds, limiter) == expected[key]
                made += 1
    assert kills == KILLS
    store = Store(cache / "traces")
    entries = store.entries()
    assert len(entries) > 20
    for path, _, _ in entries:
        assert store.read(path.parent.name, path.name, READERS[path.suffix]) is not None


def test_what_killed_writers_left_goes(tmp_path: Path) -> None:
    """The file of a writer that lives is locked."""
    fcntl = pytest.importorskip("fcntl")
    store = Store(tmp_path, limit=1000)
    store.write("ab" * 16, "one.timing", b"1" * 10)
    (folder,) = tmp_path.glob("*/*")
    dead, living, foreign = (
        folder / f".ppt_gpu-{name}" for name in ("00000000-" + 16 * "0", "00000000-" + 16 * "1", "x")
    )
    for path in (dead, living, foreign):
        path.write_bytes(b"half")
    with living.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        store.write("ab" * 16, "two.timing", b"2" * 970)  # more than there is room for: it looks what is there
        assert not dead.exists() and living.exists() and foreign.exists()
    store.clear()
    assert [path.name for path in folder.iterdir()] == [foreign.name]


def test_clearing_while_others_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "traces")
    for turn in range(20):
        store.write("ab" * 16, f"{turn}.timing", b"x")
        assert store.clear()[0] == 1
        assert store.entries() == [] and list(tmp_path.iterdir()) == []
    assert store.clear() == (0, 0)
