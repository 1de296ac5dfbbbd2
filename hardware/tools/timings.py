"""Timing of machine operations by compute capability: what make_isa.py writes into the [op] tables.

A row is (operation, pipe, latency, initiation interval or None for the pipe's, source). Latencies that ptxas's stall
counts fix are looked up in sass_latency_ii.csv by the SASS opcode (`sass`); the others carry their source here.
Source ids (PPT19, WONG, ADA4070, ...) are those of hardware/SOURCES.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    name: str
    pipe: str
    latency: int
    ii: int | None
    source: str


class Stalls:
    """Fixed latencies read from the control codes that ptxas emits."""

    def __init__(self, path: Path) -> None:
        with path.open() as file:
            self.rows = {(row["arch"], row["sass_op"]): row for row in csv.DictReader(file)}

    def fixed(self, arch: str, sass: str) -> tuple[int, str] | None:
        """Cycles from an instruction to a dependent one, with the source text."""
        row = self.rows.get((arch, sass))
        for column in ("raw_same_op", "raw_min_other_consumer") if row else ():
            if row and row[column]:
                return int(row[column]), f"ptxas stall count {sass} {arch} (PTXAS)"
        return None

    def column(self, arch: str, sass: str, column: str) -> int | None:
        """A cell of the table as a number, None where it is empty."""
        text = self.rows.get((arch, sass), {}).get(column, "")
        return int(text) if text else None

    def predicate(self, arch: str, sass: str) -> tuple[int, str] | None:
        """Cycles from a comparison to an instruction that it guards."""
        row = self.rows.get((arch, sass))
        if row and row["pred_to_guard"]:
            return int(row["pred_to_guard"]), f"ptxas stall count {sass} to guard {arch} (PTXAS)"
        return None


_MEMORY = "not used: the memory tables of the GPU decide"
_NO_TENSOR = "assumed: no tensor cores; ptxas rejects the instruction on this capability"


def memory_rows() -> list[Row]:
    """Loads, stores and atomics: only the pipe matters."""
    names = [f"{access}.{space}" for access in ("load", "store", "atomic")
             for space in ("global", "shared", "local", "constant")]  # fmt: skip
    return [Row(name, "lsu", 1, None, _MEMORY) for name in [*names, "load", "store", "atomic"]]


def twins(rows: list[Row], shares: dict[str, int]) -> list[Row]:
    """64-bit integer operations as `count` dependent 32-bit ones, for opcodes that [expand] does not list."""
    by_name = {row.name: row for row in rows}
    result = []
    for name, count in shares.items():
        row = by_name.get(f"int32.{name}", by_name["int32"])
        ii = None if row.ii is None else row.ii * count
        text = f"derived: {count} x int32.{name} (opcodes not listed in [expand])"
        result.append(Row(f"int32.{name}64", row.pipe, row.latency * count, ii, text))
    return result


#: 64-bit forms that are more than one instruction even where [expand] has no entry
SHARES = {"add": 2, "mul": 4, "mad": 4, "logic": 2, "shift": 3, "setp": 2, "selp": 2, "minmax": 4, "mov": 2, "div": 4}


def volta(arch: str, stalls: Stalls) -> list[Row]:
    """sm_70 and later: FMA pipe (fp32), ALU pipe (int32), XU (sfu); IMAD runs on the FMA pipe.

    From sm_86 the FMA pipe has 32 lanes a scheduler of which IMAD uses 16, here a pipe of its own, "imad".
    """
    wide = arch in ("sm_86", "sm_89", "sm_90", "sm_100")
    imad = "imad" if wide else "fp32"

    def ptxas(name: str, pipe: str, sass: str, ii: int | None = None, default: int = 4) -> Row:
        found = stalls.fixed(arch, sass)
        text = f"assumed {default}: {sass} not in the {arch} sample (PTXAS)"
        latency, source = found or (default, text)
        return Row(name, pipe, latency, ii, source)

    def guard(name: str, sass: str, pipe: str = "int32") -> Row:
        found = stalls.predicate(arch, sass) or (
            13,
            f"ptxas ISETP to guard 13 on sm_80 and later, copied to {sass} {arch}",
        )
        return Row(name, pipe, found[0], None, found[1])

    xu = "measured on RTX 4070 Ti (ADA4070: MUFU.EX2 17.6, RCP64H 17.5, BREV 17.5), B300 18 (B300CAT)"

    def select(name: str, sass: str) -> Row:
        latency = stalls.column(arch, sass, "pred_to_alu_src") or 4
        return Row(name, "int32", latency, None, f"ptxas stall count {sass} to a select {arch} (PTXAS)")

    other = "" if arch == "sm_89" else ", copied"
    xu += other
    shfl = "measured 25 on RTX 4070 Ti (ADA4070), 24 on B300 (B300CAT)" + (
        "" if arch in ("sm_89", "sm_100") else ", copied"
    )
    rows = [
        ptxas("fp32", "fp32", "FFMA"), ptxas("fp32.add", "fp32", "FADD"), ptxas("fp32.mul", "fp32", "FMUL"),
        ptxas("fp32.fma", "fp32", "FFMA"), ptxas("fp32.minmax", "int32", "FMNMX"), guard("fp32.setp", "FSETP"),
        ptxas("fp32.selp", "int32", "FSEL"), ptxas("fp32.misc", "int32", "FSEL"),
        Row("fp32.cvt", "sfu", 19, None, "measured with POPC and FLO on RTX 4070 Ti (ADA4070: 19), copied"),
        Row("fp32.cvtfast", "int32", 4, None, "I2FP on the ALU, 64/clk/SM (B300CAT); latency of the ALU (PTXAS)"),
        ptxas("fp16", "fp32", "HFMA2"), ptxas("fp16.add", "fp32", "HADD2"), ptxas("fp16.mul", "fp32", "HMUL2"),
        ptxas("fp16.fma", "fp32", "HFMA2"), ptxas("fp16.minmax", "int32", "HMNMX2"), guard("fp16.setp", "HSETP2"),
        Row("fp16.cvt", "int32", 5, None, "measured f32<->f16 round trip 10.5 on RTX 4070 Ti (ADA4070), copied"),
        ptxas("int32", "int32", "IADD3"), ptxas("int32.add", "int32", "IADD3"),
        ptxas("int32.mul", imad, "IMAD"), ptxas("int32.mad", imad, "IMAD"),
        ptxas("int32.mulwide", imad, "IMAD.WIDE", 4), ptxas("int32.madwide", imad, "IMAD.WIDE", 4),
        ptxas("int32.mulhi", imad, "IMAD.HI", 4, 6), ptxas("int32.madhi", imad, "IMAD.HI", 4, 6),
        ptxas("int32.logic", "int32", "LOP3"), ptxas("int32.shift", "int32", "SHF"), guard("int32.setp", "ISETP"),
        select("int32.setp.alu", "ISETP"), select("fp32.setp.alu", "FSETP"),
        ptxas("int32.selp", "int32", "SEL"), ptxas("int32.mov", "int32", "MOV"), ptxas("int32.misc", "int32", "PRMT"),
        ptxas("int32.minmax", "int32", "VIMNMX" if arch in ("sm_90", "sm_100") else "IMNMX"),
        ptxas("int32.cvt", "int32", "PRMT"),
        Row("int32.popc", "sfu", 19, None, "measured on RTX 4070 Ti (ADA4070: 19)" + other),
        Row("int32.div", imad, 80, 40, "assumed: only where [expand] has no entry; about 20 instructions"),
        Row("sfu", "sfu", 18, None, xu),
        Row("branch", "branch", 6, None, "ptxas stall count BREAK " + arch + " (PTXAS), copied to BRA"),
        Row("branch.sync", "branch", 1, None, "assumed: a convergence hint takes an issue slot only"),
        Row("branch.ret", "branch", 1, None, "assumed: nothing depends on it"),
        Row("barrier", "lsu", 24, None, "measured __syncthreads 22 + 2 warps on B300 (B300CAT), one warp, copied"),
        Row("fence", "lsu", 205, None, "measured membar.gl on RTX 4070 Ti (ADA4070), copied"),
        Row("fence.prefetch", "lsu", 1, None, "assumed: nothing depends on it"),
        Row("fence.async", "lsu", 1, None, "assumed: waits are those of the loads"),
        Row("shuffle", "lsu", 24, None, shfl), Row("shuffle.vote", "int32", 4, None, "ptxas stall count VOTE (PTXAS)"),
        Row("shuffle.match", "lsu", 375, None, "measured MATCH.ANY on B300 (B300CAT), copied"),
        Row("shuffle.redux", "lsu", 60, None, "measured REDUX.SUM on RTX 4070 Ti (ADA4070), copied"),
    ]  # fmt: skip
    return rows + _fp64(arch) + _tensor(arch) + memory_rows() + twins(rows, SHARES)


def _fp64(arch: str) -> list[Row]:
    found = {
        "sm_70": (8, "measured on TITAN V (ISALAT)"),
        "sm_75": (48, "measured on a Turing workstation card (TURING57: 48.2)"),
        "sm_80": (10, "ptxas stall count DFMA sm_80 (PTXAS)"),
        "sm_86": (54, "measured on RTX 4090 (TUNER4090: 54.0), copied"),
        "sm_89": (54, "measured on RTX 4090 (TUNER4090: 54.0)"),
        "sm_90": (8, "ptxas stall count DFMA sm_90 (PTXAS)"),
        "sm_100": (8, "ptxas stall count DFMA sm_100 (PTXAS)"),
    }[arch]
    latency, source = found
    rows = [Row("fp64", "fp64", latency, None, source)]
    guard = f"assumed: {latency} + 9, as ISETP to guard exceeds an ALU result by 9"
    rows.append(Row("fp64.setp", "fp64", latency + 9, None, guard))
    rows.append(Row("fp64.selp", "int32", 8, None, "derived: two FSEL"))
    rows.append(Row("fp64.cvt", "sfu", 19, None, "assumed as fp32.cvt"))
    return rows


#: FMA a cycle and scheduler of an fp16 mma with 32-bit accumulation, and its latency, by capability
_TENSOR = {
    "sm_70": (128, 8, "HMMA.884 step to step 8 (PTXAS sm_70); 512 FMA/clk/SM (JIAJE)"),
    "sm_75": (128, 14, "assumed; 512 FMA/clk/SM (JIAJE)"),
    "sm_80": (256, 24, "HMMA.16816 to store 23 (PTXAS sm_80); 1024 FMA/clk/SM (XLA)"),
    "sm_86": (
        64,
        32,
        "HMMA.16816.F32 measured 32 on RTX 4090 (TUNER4090), copied; 256 FMA/clk/SM with f32 accumulation",
    ),
    "sm_89": (64, 32, "HMMA.16816.F32 measured 32, 256 FMA/clk/SM on RTX 4090 (TUNER4090)"),
    "sm_90": (512, 24, "HMMA.16816 24 (PTXAS sm_90); 2048 FMA/clk/SM (JIAJE)"),
    "sm_100": (256, 20, "HMMA.16816 20 (PTXAS), 1003 FMA/clk/SM measured for mma.sync on B300 (B300CAT)"),
}


def _tensor(arch: str) -> list[Row]:
    rate, latency, source = _TENSOR[arch]

    def cycles(m: int, n: int, k: int, factor: float = 1) -> int:
        return max(1, round(m * n * k / rate / factor))

    if arch == "sm_70":  # m8n8k4 is four steps of one eighth of 16x16x4; a step occupies the tensor cores 2 cycles
        rows = [Row("tensor.hmma884", "tensor", 8, 2, source), Row("tensor.hmma884f16", "tensor", 8, 4, source)]
        mma = 8
    else:
        single = 1 if arch not in ("sm_86", "sm_89") else 2  # GeForce: f16 accumulation is twice as fast (TUNER4090)
        rows = [
            Row("tensor.hmma16816", "tensor", latency, cycles(16, 8, 16), source),
            Row("tensor.hmma16816f16", "tensor", latency // single, cycles(16, 8, 16, single), source),
            Row("tensor.hmma1688", "tensor", max(latency * 2 // 3, 14), cycles(16, 8, 8), source),
            Row("tensor.hmma1688f16", "tensor", max(latency * 2 // 3 // single, 12), cycles(16, 8, 8, single), source),
            Row("tensor.imma16832", "tensor", latency, cycles(16, 8, 32, 2), source + "; int8 twice the rate, assumed"),
            Row("tensor.imma8816", "tensor", max(latency // 2, 12), cycles(8, 8, 16, 2), source + "; int8, assumed"),
            Row("tensor.dmma884", "tensor", 24, 16 if arch == "sm_80" else 8, "assumed: 32 FMA/clk/SM fp64 doubled"),
        ]
        mma = cycles(16, 8, 16)
    first = Row("tensor", "tensor", latency, mma, source + "; taken for 16x8x16")
    return [first, *rows, Row("tensor.ldmatrix", "lsu", 33, None, "assumed: a shared load"),
            Row("tensor.stmatrix", "lsu", 33, None, "assumed: a shared store")]  # fmt: skip


def before_volta(arch: str, stalls: Stalls) -> list[Row]:
    """sm_10 to sm_61: integer and single precision share the CUDA cores (pipe fp32)."""
    return {
        "sm_10": tesla, "sm_13": tesla, "sm_20": fermi, "sm_30": kepler, "sm_35": kepler, "sm_60": pascal,
        "sm_61": pascal,
    }[arch](arch, stalls)  # fmt: skip


def _common(arch: str, alu: int, source: str, more: list[Row]) -> list[Row]:
    """Rows in which every ALU operation has one latency, then `more`, which replace rows of the same name."""
    rows = [Row(name, "fp32", alu, None, source) for name in ("fp32", "int32")]
    rows += [
        Row("fp32.cvt", "fp32", alu, None, source),
        Row("int32.div", "fp32", 20 * alu, 20, "assumed: only where [expand] has no entry; about 20 instructions"),
        Row("fp16", "fp32", alu, None, f"assumed as fp32: {source}"),
        Row("fp16.cvt", "fp32", alu, None, source),
        Row("tensor", "fp32", alu * 16, 64, _NO_TENSOR),
        Row("branch", "branch", alu, None, f"assumed: the ALU latency; {source}"),
        Row("branch.sync", "branch", 1, None, "assumed: a convergence hint takes an issue slot only"),
        Row("branch.ret", "branch", 1, None, "assumed: nothing depends on it"),
        Row("barrier", "lsu", alu, None, f"assumed: the ALU latency; {source}"),
        Row("fence", "lsu", 200, None, "assumed: of the order of an L2 access"),
        Row("fence.prefetch", "lsu", 1, None, "assumed: nothing depends on it"),
        Row("shuffle.vote", "fp32", alu, None, source),
    ]
    replaced = {row.name for row in more}
    rows = [row for row in rows if row.name not in replaced] + more
    return rows + memory_rows() + twins(rows, SHARES)


def tesla(arch: str, _stalls: Stalls) -> list[Row]:
    """cc 1.x (Wong ISPASS 2010, GT200): 8 lanes, one instruction in 4 shader clocks; 32-bit multiply in four."""
    copied = "" if arch == "sm_13" else ", copied from GT200"
    wong = f"measured (WONG){copied}"
    fp64 = Row("fp64", "fp64", 48, None, f"{wong}: 48 cycles, 1 a clock")
    if arch == "sm_10":
        fp64 = Row("fp64", "fp32", 24, None, "assumed as fp32: cc 1.0 to 1.2 demote double to single precision")
    return _common(arch, 24, f"{wong}: 24 cycles, 7.9 ops/clk/SM", [
        fp64,
        Row("int32.mul", "fp32", 96, 19, f"{wong}: mul.lo 96 cycles, 1.7 ops/clk/SM"),
        Row("int32.mad", "fp32", 120, 23, f"{wong}: mad.lo 120 cycles, 1.4 ops/clk/SM"),
        Row("int32.mul24", "fp32", 24, None, f"{wong}: mul24 24 cycles, 7.9 ops/clk/SM"),
        Row("int32.mulhi", "fp32", 144, 32, f"{wong}: mul.hi.u32 144 cycles, 1.0 ops/clk/SM"),
        Row("int32.mulwide", "fp32", 144, 32, f"{wong}: as mul.hi.u32, assumed"),
        Row("int32.madwide", "fp32", 168, 36, f"{wong}: mul.hi.u32 and an add, assumed"),
        Row("int32.div", "fp32", 650, 128, f"{wong}: div.u32 608, div.s32 684 cycles, 0.25 ops/clk/SM"),
        Row("fp32.div", "fp32", 137, 21, f"{wong}: 137 cycles, 1.5 ops/clk/SM"),
        Row("fp64.div", fp64.pipe, 1366, 508, f"{wong}: 1366 cycles, 0.063 ops/clk/SM"),
        Row("sfu", "sfu", 48, None, f"{wong}: sin, cos, ex2 48 cycles, 2 ops/clk/SM"),
        Row("sfu.rcp", "sfu", 28, None, f"{wong}: as lg2 and rsqrt, assumed"),
        Row("sfu.rsqrt", "sfu", 28, None, f"{wong}: 28 cycles"),
        Row("sfu.lg2", "sfu", 28, None, f"{wong}: 28 cycles"),
        Row("sfu.sqrt", "sfu", 56, 32, f"{wong}: 56 cycles; rsqrt and rcp, assumed"),
        Row("shuffle", "lsu", 38, None, "assumed: no shuffle on cc 1.x; a shared-memory exchange"),
    ])  # fmt: skip


def fermi(_arch: str, _stalls: Stalls) -> list[Row]:
    """cc 2.0, in core clocks (two shader clocks): 22 shader clocks for the ALU, 36 for the special functions."""
    ppt = "simulator (ACCEL SM2_GTX480: 5 + 6 = 11 core clocks); 22 shader clocks recalled from the CUDA guide, PPTOLD has 18"
    rate = "16 a shader clock and SM (PCSX2T)"
    return _common("sm_20", 11, ppt, [
        Row("fp64", "fp64", 14, None, "simulator (ACCEL SM2_GTX480: 8 + 6 core clocks)"),
        Row("int32.mul", "fp32", 11, 2, f"{ppt}; {rate}"),
        Row("int32.mad", "fp32", 11, 2, f"{ppt}; {rate}"),
        Row("int32.popc", "fp32", 11, 2, f"{ppt}; {rate}"),
        Row("int32.shift", "fp32", 11, 2, f"{ppt}; {rate}"),
        Row("fp32.cvt", "fp32", 11, 2, f"{ppt}; {rate}"),
        Row("sfu", "sfu", 18, None, "model of the M2090 (PPTOLD: 36), read as shader clocks"),
        Row("shuffle", "lsu", 26, None, "assumed: no shuffle on cc 2.x; a shared-memory exchange"),
    ])  # fmt: skip


def kepler(arch: str, _stalls: Stalls) -> list[Row]:
    """cc 3.x: 9 cycles for the ALU (measured, and the compiler's table), multiply and shift at reduced rates."""
    copied = "" if arch == "sm_35" else ", copied from sm_35"
    ppt = f"measured on K40m (PPT19: 9 cycles; NAKK: 9){copied}"
    rate = "32 a clock and SM (CPGT3)"
    return _common(arch, 9, ppt, [
        Row("fp64", "fp64", 10, None, f"measured on K40m (PPT19: 10 cycles){copied}"),
        Row("int32.mul", "fp32", 9, 6, f"{ppt}; {rate}: 6 of 192 lanes' slots"),
        Row("int32.mad", "fp32", 9, 6, f"{ppt}; {rate}: 6 of 192 lanes' slots"),
        Row("int32.shift", "fp32", 9, 3, f"{ppt}; 64 a clock and SM (CPGT3)"),
        Row("int32.setp", "fp32", 13, None, f"compiler table (NAKK: ISETP 13){copied}; 160 a clock taken as 192"),
        Row("fp32.setp", "fp32", 13, None, f"compiler table (NAKK: ISETP 13){copied}"),
        Row("int32.popc", "fp32", 9, 6, f"{ppt}; {rate}"),
        Row("fp32.cvt", "fp32", 9, 6, f"{ppt}; {rate}"),
        Row("fp64.cvt", "fp32", 10, 6, f"{ppt}; {rate}"),
        Row("sfu", "sfu", 18, None, f"measured on K40m (PPT19: sin, cos 18 cycles){copied}"),
        Row("shuffle", "lsu", 9, None, f"measured on K40m (PPT19: shfl 9 cycles){copied}"),
    ])  # fmt: skip


def pascal(arch: str, stalls: Stalls) -> list[Row]:
    """cc 6.x: 6 cycles for the ALU; 32-bit multiply is three XMAD."""
    copied = "" if arch == "sm_60" else ", copied from sm_60"
    ppt = f"measured on P100 (PPT19: 6 cycles; ptxas sm_60 6){copied}"
    setp = stalls.predicate("sm_60", "ISETP") or (13, "ptxas ISETP to guard (PTXAS)")
    xu = "16 a clock and SM (CPGT3)"
    return _common(arch, 6, ppt, [
        Row("fp64", "fp64", 8, None, f"measured on P100 (PPT19: 8 cycles){copied}"),
        Row("int32.mul", "fp32", 18, 3, f"derived: three XMAD of 6 cycles; {ppt}"),
        Row("int32.mad", "fp32", 18, 3, f"derived: three XMAD of 6 cycles; {ppt}"),
        Row("int32.xmad", "fp32", 6, None, f"ptxas stall count XMAD sm_60 (PTXAS){copied}"),
        Row("int32.setp", "fp32", setp[0], None, setp[1] + copied),
        Row("fp32.setp", "fp32", setp[0], None, setp[1] + copied),
        Row("int32.popc", "sfu", 13, None, f"measured on P100 (PPT19: popc 13){copied}; {xu}"),
        Row("fp32.cvt", "sfu", 13, None, f"assumed as popc, the same unit{copied}; {xu}"),
        Row("fp64.cvt", "sfu", 13, None, f"assumed as popc, the same unit{copied}; {xu}"),
        Row("sfu", "sfu", 15, None, f"measured on P100 (PPT19: sin, cos 15 cycles){copied}"),
        Row("shuffle", "lsu", 6, None, f"measured on P100 (PPT19: shfl 6 cycles){copied}"),
    ])  # fmt: skip


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


Five = tuple[tuple[int, ...], tuple[int, ...]]


def _simulator(
    pipeline: int, branch: int, pipes: dict[str, str], config: str,
    fp: Five, integer: Five, dp: Five, sfu: tuple[int, int], tensor: tuple[int, int],
) -> list[Row]:  # fmt: skip
    """Rows of a GPGPU-Sim configuration: ADD, MAX, MUL, MAD, DIV of each kind; everything else 1 cycle."""
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
        ("fp16", pipes["fp"], fp, lambda n: [n]), ("int32", pipes["int"], integer, lambda n: [n, f"{n}64"]),
    ]  # fmt: skip
    rows: list[Row] = []
    for kind, pipe, (latency, ii), spell in kinds:
        key = {"fp32": "fp", "fp64": "dp", "fp16": "fp", "int32": "int"}[kind]
        places = {"add": 0, "minmax": 1, "mul": 2, "mad" if kind == "int32" else "fma": 3}
        if kind == "int32":
            places |= {"mulwide": 2, "mulhi": 2, "madwide": 3, "madhi": 3}
        rows.append(plain(kind, pipes["int"] if kind == "int32" else pipes["fp"]))
        for name, place in places.items():
            rows += [timed(f"{kind}.{each}", pipe, latency[place], ii[place], key) for each in spell(name)]
        rows += [timed(f"{kind}.{each}", pipes["sfu"], latency[4], ii[4], key) for each in spell("div")]
    for name in ("rcp", "sqrt", "rsqrt", "ex2", "lg2"):
        rows.append(timed(f"fp64.{name}", pipes["sfu"], *sfu, "sfu"))
    rows.append(timed("sfu", pipes["sfu"], *sfu, "sfu"))
    rows.append(timed("shuffle", pipes["int"], integer[0][5], integer[1][5], "int SHFL"))
    rows += [plain(f"shuffle.{each}", pipes["int"]) for each in ("vote", "match", "redux")]
    rows.append(timed("tensor", "tensor" if config == "QV100" else "sfu", *tensor, "tensor"))
    refetch = f"{branch}: next instruction after a branch is fetched again ({fit}; 16 iterations)"
    rows += [Row("branch", "branch", branch, 1, refetch), plain("barrier", "branch"), plain("fence", "branch")]
    return rows + memory_rows()
