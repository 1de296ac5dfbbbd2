"""Operation timings of the two GPGPU-Sim configurations, from gpgpusim_configs.csv and measured chains."""

from __future__ import annotations

from collections.abc import Callable

from rows import Row, memory_rows

#: latencies and initiation intervals of ADD, MAX, MUL, MAD, DIV[, SHFL]
Five = tuple[tuple[int, ...], tuple[int, ...]]


def qv100() -> list[Row]:
    """GPGPU-Sim SM7_QV100: execution latency of the configuration + 5 cycles of issue, operand read and write-back."""
    return _simulator(
        5, 4, {"fp": "fp32", "int": "int32", "dp": "fp64", "sfu": "sfu"}, "QV100",
        fp=((4, 13, 4, 5, 39), (2, 2, 2, 2, 4)), integer=((4, 13, 4, 5, 145, 21), (2, 2, 2, 2, 8, 4)),
        dp=((8, 19, 8, 8, 330), (4, 4, 4, 4, 130)), sfu=(100, 8), tensor=(64, 64),
    )  # fmt: skip


def gtx480() -> list[Row]:
    """GPGPU-Sim SM2_GTX480: + 6 cycles; no integer or double-precision units, so SP and SFU do their work."""
    return _simulator(
        6, 4, {"fp": "fp32", "int": "fp32", "dp": "sfu", "sfu": "sfu"}, "GTX480",
        fp=((4, 13, 4, 5, 39), (1, 2, 1, 1, 4)), integer=((4, 13, 4, 5, 145, 32), (1, 2, 2, 1, 8, 4)),
        dp=((8, 19, 8, 8, 330), (8, 16, 8, 8, 130)), sfu=(8, 8), tensor=(64, 64),
    )  # fmt: skip


def _simulator(
    pipeline: int, branch: int, pipes: dict[str, str], config: str,
    fp: Five, integer: Five, dp: Five, sfu: tuple[int, int], tensor: tuple[int, int],
) -> list[Row]:  # fmt: skip
    """Rows of a GPGPU-Sim configuration: ADD, MAX, MUL, MAD, DIV of each kind; everything else 1 cycle.

    What has no latency of its own goes to the unit of integers, branches and barriers too.
    Halves are taken for integers.
    """
    chains = {"QV100": "ffma 10.0, fadd 9.0, imad 10.1, xor + add 15.1, dfma 12.8, sin 104.4",
              "GTX480": "ffma 11.0, fadd 10.0, imad 11.1, xor + add 17.0, dfma 13.8, sin 13.7"}[config]  # fmt: skip
    fit = f"steps of the perfect-memory chains of gpgpusim/launches.csv, without loop overhead: {chains}"

    def timed(name: str, pipe: str, latency: int, ii: int, key: str) -> Row:
        return Row(
            name, pipe, latency + pipeline, ii, f"{latency} exec ({key} of {config}) + {pipeline} pipeline ({fit})"
        )

    def plain(name: str, pipe: str) -> Row:
        text = f"1 exec (opcode without latency in PTX mode) + {pipeline} pipeline ({fit})"
        return Row(name, pipe, 1 + pipeline, 1, text)

    kinds: list[tuple[str, str, Five, Callable[[str], list[str]]]] = [
        ("fp32", pipes["fp"], fp, lambda n: [n]), ("fp64", pipes["dp"], dp, lambda n: [n]),
        ("fp16", pipes["int"], integer, lambda n: [n]), ("int32", pipes["int"], integer, lambda n: [n, f"{n}64"]),
    ]  # fmt: skip
    rows: list[Row] = []
    for kind, pipe, (latency, ii), spell in kinds:
        key = {"fp32": "fp", "fp64": "dp", "fp16": "int", "int32": "int"}[kind]
        places = {"add": 0, "minmax": 1, "mul": 2, "mad" if kind == "int32" else "fma": 3}
        if kind == "int32":
            places |= {"mulwide": 2, "mulhi": 2, "madwide": 3, "madhi": 3}
        rows.append(plain(kind, pipes["int"]))
        for name, place in places.items():
            rows += [timed(f"{kind}.{each}", pipe, latency[place], ii[place], key) for each in spell(name)]
        rows += [timed(f"{kind}.{each}", pipes["sfu"], latency[4], ii[4], key) for each in spell("div")]
    for name, place in (("mul24", 2), ("mad24", 3)):
        text = "int, and 1 more"
        rows.append(timed(f"int32.{name}", pipes["int"], integer[0][place] + 1, integer[1][place] + 1, text))
    for name in ("rcp", "sqrt", "rsqrt", "ex2", "lg2"):
        rows.append(timed(f"fp64.{name}", pipes["sfu"], *sfu, "sfu"))
    rows.append(timed("sfu", pipes["sfu"], *sfu, "sfu"))
    rows.append(timed("shuffle", pipes["int"], integer[0][5], integer[1][5], "int SHFL"))
    rows += [plain(f"shuffle.{each}", pipes["int"]) for each in ("vote", "match", "redux")]
    rows.append(timed("tensor", "tensor" if config == "QV100" else "sfu", *tensor, "tensor"))
    refetch = f"{branch}: next instruction after a branch is fetched again ({fit}; 16 iterations)"
    arrives = "simulator: a warp issues again in the cycle after the last one arrives"
    rows += [Row("branch", pipes["int"], branch, 1, refetch), Row("barrier", pipes["int"], 1, 1, arrives)]
    passes = "simulator: a fence passes the memory port; the warp goes on when none of its results is pending"
    rows.append(Row("fence", "lsu", 1, 1, passes))
    return rows + memory_rows()
