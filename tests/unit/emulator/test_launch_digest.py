"""Digests of launches are those of what `dataclasses.asdict` says: trace files of earlier versions hold them."""

from dataclasses import asdict

import pytest

from ppt_gpu.emulator.trace.identity import digest, launch_digest
from ppt_gpu.workload.reader import load_workload, sample_names


@pytest.mark.parametrize("name", sample_names())
def test_a_launch_is_digested_as_plain_data(name: str) -> None:
    workload = load_workload(name)
    for launch in workload.launches:
        fields = asdict(launch)
        for unseen in ("registers", "registers_from", "repeat"):
            del fields[unseen]
        places = [(b.name, b.type, b.count, b.copied) for b in workload.buffers]
        assert launch_digest("module", launch, workload.buffers) == digest("module", fields, places)
