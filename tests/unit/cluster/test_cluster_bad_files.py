"""Every bad file of a cluster gives exactly the text beside it: all errors at once, of every file that it names."""

from pathlib import Path

import pytest

from ppt_gpu.checks import check
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.common.errors import PptError

FOLDER = Path(__file__).resolve().parents[2] / "errors" / "cluster"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_expected_text(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    with pytest.raises(PptError) as caught:
        check(path.name)
    assert str(caught.value) + "\n" == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_text_has_its_file() -> None:
    assert {path.stem for path in FILES} == {path.stem for path in FOLDER.glob("*.txt")}


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["nic.cuont=4"], "--set nic.cuont=4: unknown key nic.cuont\n  hint: did you mean 'count'?"),
        (
            ["network.bandwidth=50 us"],
            '--set network.bandwidth=50 us: bandwidth: "50 us" measures time, not bytes/s; '
            'expected a quantity such as "288 GB/s"',
        ),
        (["nic.count"], "--set nic.count: expected KEY=VALUE, such as sm.count=30 or dram.bandwidth=1 TB/s"),
        (
            ["network.nic_latency=0 s", "network.link_latency=0 s", "network.switch_latency=0 s"],
            "network 'infiniband_ndr': nic_latency, link_latency and switch_latency are all zero\n"
            "  hint: give at least one of them: no message between nodes is there at once",
        ),
    ],
)
def test_bad_overrides(overrides: list[str], text: str) -> None:
    with pytest.raises(PptError) as caught:
        load_machine("dgx_h100", 2, overrides)
    assert str(caught.value) == text


def test_overrides_reach_the_files_that_a_machine_names() -> None:
    overrides = ["network.bandwidth=10 GB/s", "host.cores=3", "nic.count=2", "mpi.local_copy=1 us"]
    spec = load_machine("dgx_h100", overrides=overrides).spec
    assert (spec.network.bandwidth, spec.host.cores, spec.nic.count, spec.mpi.local_copy) == (10e9, 3, 2, 1e-6)


def test_a_network_too_small_for_the_nodes() -> None:
    with pytest.raises(PptError, match="network 'ring_of_four' joins 8 nodes, not 9"):
        load_machine("dgx_h100", 9, ["network=ring_of_four"])


def test_paths_are_relative_to_the_file_or_the_command_line_that_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's to its own folder, also when another file inherits it; an override's to the current folder."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "mine.toml").write_text('base = "single_switch"\nbandwidth = "1 GB/s"\n')
    (tmp_path / "far" / "gpu.toml").write_text('base = "k40"\n')
    text = 'base = "k40_node"\nnetwork = "mine.toml"\ngpus = [{ model = "gpu.toml", count = 3 }]\n'
    (tmp_path / "far" / "machine.toml").write_text(text)
    (tmp_path / "near.toml").write_text('base = "far/machine.toml"\n')
    (tmp_path / "own.toml").write_text('base = "single_switch"\nbandwidth = "2 GB/s"\n')
    monkeypatch.chdir(tmp_path)
    found = load_machine("near.toml")
    assert (found.spec.network.bandwidth, found.gpus_per_node) == (1e9, 3)
    assert Path(found.gpu(0)).resolve() == tmp_path / "far" / "gpu.toml"
    assert load_machine("near.toml", overrides=["network=own.toml"]).spec.network.bandwidth == 2e9
    assert load_machine("dgx_h100", overrides=["network=far/mine.toml"]).spec.network.bandwidth == 1e9
