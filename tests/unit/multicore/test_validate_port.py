"""`validate port`: the printed tables beside what the models make of them."""

import json

import pytest
from goldens import golden

from ppt_gpu.cli import main
from ppt_gpu.multicore.representation.ir_to_s import MISPREDICTED
from ppt_gpu.validate.papers.port import Assumed, m_inputs, m_to_s, s_inputs, s_to_m, table


def test_the_tables_are_those_of_the_goldens() -> None:
    rows, expected = table("s_to_m"), golden("bl.table53")["expected"]
    for kind in ("warps", "blocks", "insts"):
        assert {name: [row[f"{kind}_n"], row[f"{kind}_t"]] for name, row in rows.items()} == expected[kind]
    counts, expected = table("m_to_s"), golden("bl.table54")["expected"]
    found = {name: [row["instructions_n"] / 1e6, row["instructions_t"] / 1e6] for name, row in counts.items()}
    assert found == expected["insts_M"]
    assert {row["ilp_t"] for row in counts.values()} == {expected["ilp_const"]}


def test_inputs_keep_what_the_tables_print() -> None:
    row = table("m_to_s")["sgemm"]
    inputs = s_inputs("sgemm", row, "t", Assumed())
    assert inputs.operations == pytest.approx(row["instructions_t"])
    assert inputs.n_i["branch"] * MISPREDICTED == pytest.approx(inputs.N_mbr)
    row = table("s_to_m")["convolution"]
    inputs = m_inputs(row, "t", Assumed())
    assert (inputs.N_I, inputs.N_SFU, inputs.N_mem, inputs.warps) == (103, 25, 2, 8176)
    assert inputs.avg_trans_warp == pytest.approx(0.3 * 2 + 0.7 * 32)


def test_equal_inputs_have_no_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from ppt_gpu.validate.papers import port

    def native(name: str) -> dict[str, dict[str, float]]:
        return {
            benchmark: {key: row[key.removesuffix("_t") + "_n"] if key.endswith("_t") else row[key] for key in row}
            for benchmark, row in table(name).items()
        }

    monkeypatch.setattr(port, "table", native)
    assert set(s_to_m(Assumed()).values()) | set(m_to_s(Assumed()).values()) == {0.0}


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "port", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["case"]: row for row in document["rows"]}
    assert rows["instruction counts off by more than a factor of 2"]["ours"] == 3
    assert rows["lbm, blocks of eight warps"]["ours"] == 3907
    assert len(document["sensitivity"]) >= 8
    assert main(["validate", "port", "--case", "lbm"]) == 0
    assert "SPECmark" not in capsys.readouterr().out
    assert main(["validate", "port", "--case", "nothing"]) == 2
    assert "no case of 'port' has nothing in its name" in capsys.readouterr().err
