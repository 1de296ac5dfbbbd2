"""Operation timings of sm_70 and later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rows import SHARES, Row, Stalls, memory_rows, twins
from timings_tensor import tensor


def volta(arch: str, stalls: Stalls) -> list[Row]:
    """sm_70 and later: FMA pipe (fp32), ALU pipe (int32), XU (sfu); IMAD runs on the FMA pipe.

    From sm_86 the FMA pipe has 32 lanes a scheduler of which IMAD uses 16, here a pipe of its own, "imad". Barriers are
    counted by the address divergence unit ("adu"); from sm_75 what a warp computes once for all lanes has a datapath of
    its own ("uniform"). On sm_120 there are two ALUs (`_two_alus`).
    """
    wide = arch in ("sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
    recent = ("sm_90", "sm_100", "sm_120")
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

    def half(name: str, sass: str) -> Row:
        """Pairs of halves: 64 a clock and SM, twice that on sm_80 and sm_90."""
        row = ptxas(f"fp16{name}", imad if arch in ("sm_86", "sm_89", "sm_100", "sm_120") else "fp32", sass)
        rates = {
            "sm_80": "; 128 a clock and SM (BPG: 256 halves), HFMA2 and HFMA2.MMA in turns",
            "sm_86": "; 64 a clock and SM, as measured on RTX 4090 (TUNER4090)",
            "sm_89": "; 64 a clock and SM measured on RTX 4090 (TUNER4090)",
            "sm_100": "; 64 a clock and SM (BPG), measured on B300 (B300CAT)",
            "sm_120": "; 64 a clock and SM (BPG)",
        }
        ii = 1 if arch == "sm_80" else None
        return Row(row.name, row.pipe, row.latency, ii, row.source + rates.get(arch, ""))

    xu = "measured on RTX 4070 Ti (ADA4070: MUFU.EX2 17.6, RCP64H 17.5, BREV 17.5), B300 18 (B300CAT)"

    def select(name: str, sass: str) -> Row:
        latency = stalls.column(arch, sass, "pred_to_alu_src") or 4
        return Row(name, "int32", latency, None, f"ptxas stall count {sass} to a select {arch} (PTXAS)")

    other = "" if arch == "sm_89" else ", copied"
    xu += other
    shfl = "measured 25 on RTX 4070 Ti (ADA4070), 24 on B300 (B300CAT)" + (
        "" if arch in ("sm_89", "sm_100") else ", copied"
    )
    special = (24, "assumed: S2R goes the way of SHFL (24 measured on B300, B300CAT), no source for it")
    uniform = "uniform result to vector consumer 6, to uniform consumer 4 (NAK; ptxas UIADD3 6, PTXAS)"
    copied = "" if arch == "sm_100" else ", copied"
    constant = "measured LDC-style chase in the constant cache on V100 (MT4G: 40), copied"
    mbarrier = "assumed: as shared memory; one ATOMS.ARRIVE (sm_80) or SYNCS (sm_90) in machine code (PTXAS)"
    rows = [
        ptxas("fp32", "fp32", "FFMA"), ptxas("fp32.add", "fp32", "FADD"), ptxas("fp32.mul", "fp32", "FMUL"),
        ptxas("fp32.fma", "fp32", "FFMA"), ptxas("fp32.minmax", "int32", "FMNMX"), guard("fp32.setp", "FSETP"),
        ptxas("fp32.selp", "int32", "FSEL"), ptxas("fp32.misc", "int32", "FSEL"),
        Row("fp32.cvt", "sfu", 19, None, "measured with POPC and FLO on RTX 4070 Ti (ADA4070: 19), copied"),
        Row("fp32.cvtfast", "int32", 4, None, "I2FP on the ALU, 64/clk/SM (B300CAT); latency of the ALU (PTXAS)"),
        *(half(*each) for each in (("", "HFMA2"), (".add", "HADD2"), (".mul", "HMUL2"), (".fma", "HFMA2"))),
        ptxas("fp16.minmax", "int32", "HMNMX2"), guard("fp16.setp", "HSETP2"),
        Row("fp16.cvt", "int32", 5, None, "measured f32<->f16 round trip 10.5 on RTX 4070 Ti (ADA4070), copied"),
        ptxas("int32", "int32", "IADD3"), ptxas("int32.add", "int32", "IADD3"),
        ptxas("int32.mul", imad, "IMAD"), ptxas("int32.mad", imad, "IMAD"),
        ptxas("int32.mulwide", imad, "IMAD.WIDE", 4), ptxas("int32.madwide", imad, "IMAD.WIDE", 4),
        ptxas("int32.mulhi", imad, "IMAD.HI", 4, 6), ptxas("int32.madhi", imad, "IMAD.HI", 4, 6),
        ptxas("int32.logic", "int32", "LOP3"), ptxas("int32.shift", "int32", "SHF"), guard("int32.setp", "ISETP"),
        select("int32.setp.alu", "ISETP"), select("fp32.setp.alu", "FSETP"),
        Row("int32.special", "lsu", special[0], None, special[1]),
        *([Row("int32.constant", "lsu", 40, None, constant)] if arch in recent else []),
        *([] if arch == "sm_70" else [Row("int32.uniform", "uniform", 6, None, uniform)]),
        ptxas("int32.selp", "int32", "SEL"), ptxas("int32.mov", "int32", "MOV"), ptxas("int32.misc", "int32", "PRMT"),
        ptxas("int32.minmax", "int32", "VIMNMX" if arch in recent else "IMNMX"),
        ptxas("int32.cvt", "int32", "PRMT"),
        Row("int32.popc", "sfu", 19, None, "measured on RTX 4070 Ti (ADA4070: 19)" + other),
        Row("int32.div", imad, 80, 40, "assumed: only where [expand] has no entry; about 20 instructions"),
        Row("sfu", "sfu", 18, None, xu),
        Row("branch", "branch", 6, None, "ptxas stall count BREAK " + arch + " (PTXAS), copied to BRA"),
        Row("branch.sync", "branch", 1, None, "assumed: a convergence hint takes an issue slot only"),
        Row("branch.ret", "branch", 1, None, "assumed: nothing depends on it"),
        Row("barrier", "adu", 24, None, f"measured __syncthreads 22 + 2 warps on B300 (B300CAT), one warp{copied}"),
        Row("fence", "lsu", 205, None, "measured membar.gl on RTX 4070 Ti (ADA4070), copied"),
        Row("fence.cta", "lsu", 9, None, "measured membar.cta 8.6 on B300 (B300CAT), copied"),
        *([] if arch in ("sm_70", "sm_75") else [Row("fence.mbarrier", "lsu", 24, None, mbarrier)]),
        Row("fence.prefetch", "lsu", 1, None, "assumed: nothing depends on it"),
        Row("fence.async", "lsu", 1, None, "assumed: waits are those of the loads"),
        Row("shuffle", "lsu", 24, 1, f"{shfl}; 32 a clock and SM (CPGT3, BPG)"),
        Row("shuffle.vote", "int32", 4, None, "ptxas stall count VOTE (PTXAS)"),
        Row("shuffle.match", "lsu", 375, None, "measured MATCH.ANY on B300 (B300CAT), copied"),
        Row("shuffle.redux", "lsu", 60, None, "measured REDUX.SUM on RTX 4070 Ti (ADA4070), copied"),
    ]  # fmt: skip
    rows += _fp64(arch) + tensor(arch) + memory_rows(_constants(arch)) + twins(rows, SHARES)
    return _two_alus(rows, stalls) if arch == "sm_120" else rows


def _constants(arch: str) -> Row:
    """LDC goes to the ADU, which takes the same for 32 and 64 bit, and as long again for each further word."""
    recalled = "recalled (Nsight Compute, pipelines): LDC goes to the ADU; "
    of_turing = "chosen: 32 words a read on a GTX 1650 Ti (PMPPGT); on B300 as many"
    cycles, why = {
        "sm_70": (2, f"{of_turing}; copied from sm_75"),
        "sm_75": (2, of_turing),
        "sm_100": (2, "measured on B300 (QRCUDA): 0.495 a cycle and SM, 31.7 times as long for 32 words"),
    }.get(arch, (1, "a word a cycle"))
    return Row("load.constant", "adu", 1, cycles, f"{recalled}{why}; memory.constant_latency")


#: operations of sm_120 by the leaf that counts them: ALU Lite's, whose mnemonics are FMNMX, FSEL, FSET, FSETP, IMNMX,
#: ISETP, MOV, SEL, VIMNMX and IADD; of the others the ALU's are ALU Heavy's (IADD3, LEA, LOP3, SHF, PRMT, I2FP, F2FP)
_LITE = (
    "fp32.minmax", "fp32.setp", "fp32.setp.alu", "fp32.selp", "fp32.misc", "int32.setp", "int32.setp.alu", "int32.selp",
    "int32.mov", "int32.minmax", "fp64.selp",
)  # fmt: skip
#: 64-bit operations that are one instruction on sm_120: the opcode, its latency, why
_ONE_INSTRUCTION = {
    "add": ("IADD.64", None, ""),
    "setp": ("ISETP.U64", 14, "ptxas stall count ISETP.U64 to guard sm_120 (PTXAS)"),
    "selp": ("SEL.64", None, ""),
    "mov": ("MOV.64", 5, "assumed as MOV: the sample has no pair of it"),
    "minmax": ("IMNMX.U64", 5, "assumed as VIMNMX: the sample has none"),
}


#: what was measured of GB202 otherwise than documented or measured of others: operation -> changes of its row
_MEASURED_120: dict[str, dict[str, Any]] = {
    "shuffle": {
        "ii": 2,
        "source": "25 measured on RTX 4070 Ti (ADA4070), copied; measured on RTX 5090 (CICUVC): 16 a clock and SM, "
        "from one warp to eight, with a register to read or none; 32 documented (CPGT3, BPG)",
    },
    "load.constant": {
        "ii": 2,
        "source": "measured on RTX 5090 (CICUVC): LDC on the ADU, 0.43 a cycle and SM with eight warps, as BAR near "
        "0.5; memory.constant_latency",
    },
    "int32.constant": {
        "pipe": "adu",
        "source": "measured LDC-style chase in the constant cache on V100 (MT4G: 40), copied; LDC on the ADU: counted "
        "on RTX 5090 (CICUVC)",
    },
}


def _two_alus(rows: list[Row], stalls: Stalls) -> list[Row]:
    """sm_120: two ALUs that work side by side, of 64 and of 128 lanes, and half the rate of sm_90 for shuffles and LDC.

    ALU Heavy ("int32") has the sums of three, logic, shifts and packed conversions, ALU Lite ("alulite") the rest: 32
    bit at twice the rate, 64 bit in one instruction of two cycles. ptxas 13.0 writes IADD3 for sums of two as well.
    """
    found = {}
    for name, (sass, latency, source) in _ONE_INSTRUCTION.items():
        known = stalls.fixed("sm_120", sass)
        latency, source = (latency, source) if latency else known or (4, "")
        found[f"int32.{name}64"] = (latency, f"{source}; one {sass}, half the rate of 32 bit (PTXAS: IADD.64 2 apart)")
    lite = "; on ALU Lite, 128 a clock and SM (CICUVC)"
    result = []
    for row in rows:
        if row.name in found:
            latency, source = found[row.name]
            row = Row(row.name, "alulite", latency, 2, source)
        elif row.name in _LITE:
            row = replace(row, pipe="alulite", ii=2 if row.name == "fp64.selp" else None, source=row.source + lite)
        elif row.name in _MEASURED_120:
            row = replace(row, **_MEASURED_120[row.name])
        result.append(row)
    return result


def of_b300(arch: str) -> list[Row]:
    """What B300 has of its own: fp64, matrix instructions, and MUFU.EX2 at twice the rate of the others."""
    text = "18 measured on B300 (B300CAT); 4 cycles a warp and scheduler measured, the others 8 (CICUVC)"
    return [*_fp64(arch), *tensor(arch), Row("sfu.ex2", "sfu", 18, 4, text)]


def _fp64(arch: str) -> list[Row]:
    found = {
        "sm_70": (8, "measured on TITAN V (ISALAT)"),
        "sm_75": (48, "measured on a Turing workstation card (TURING57: 48.2)"),
        "sm_80": (10, "ptxas stall count DFMA sm_80 (PTXAS)"),
        "sm_86": (54, "measured on RTX 4090 (TUNER4090: 54.0), copied"),
        "sm_89": (54, "measured on RTX 4090 (TUNER4090: 54.0)"),
        "sm_90": (8, "ptxas stall count DFMA sm_90 (PTXAS)"),
        "sm_100": (8, "ptxas stall count DFMA sm_100 (PTXAS)"),
        "sm_103": (64, "measured on B300 (B300CAT: 63.9)"),
        "sm_120": (54, "measured on RTX 4090 (TUNER4090: 54.0), copied"),
    }[arch]
    latency, source = found
    rows = [Row("fp64", "fp64", latency, None, source)]
    guard = f"assumed: {latency} + 9, as ISETP to guard exceeds an ALU result by 9"
    rows.append(Row("fp64.setp", "fp64", latency + 9, None, guard))
    rows.append(Row("fp64.selp", "int32", 8, None, "derived: two FSEL"))
    rows.append(_conversion(arch, latency))
    return rows


def _conversion(arch: str, latency: int) -> Row:
    """Conversions from and to 64 bit: 16 a clock and SM where there are many fp64 units, as many as fp64 elsewhere."""
    if arch in ("sm_70", "sm_80", "sm_90", "sm_100"):
        return Row("fp64.cvt", "sfu", 19, None, "assumed as fp32.cvt; 16 a clock and SM (CPGT3)")
    measured = "two with two comparisons are the limit of row filters on four boards of GA10x (PMPPNVB)"
    if arch == "sm_120":
        measured = "18 to 19 cycles a warp and SM measured on RTX 5090 (CICUVC), of integers of 64 bit, too"
    text = f"recalled (CPGT3): 2 a clock and SM, as fp64; {measured}; latency assumed as fp64"
    return Row("fp64.cvt", "fp64", latency, None, text)
