"""Operation timings of sm_70 and later."""

from __future__ import annotations

import re

from rows import SHARES, Row, Stalls, memory_rows, twins


def volta(arch: str, stalls: Stalls) -> list[Row]:
    """sm_70 and later: FMA pipe (fp32), ALU pipe (int32), XU (sfu); IMAD runs on the FMA pipe.

    From sm_86 the FMA pipe has 32 lanes a scheduler of which IMAD uses 16, here a pipe of its own, "imad". Barriers are
    counted by the address divergence unit ("adu"); from sm_75 what a warp computes once for all lanes has a datapath of
    its own ("uniform").
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

    def half(name: str, sass: str) -> Row:
        """Pairs of halves: 64 a clock and SM, twice that on sm_80 and sm_90."""
        row = ptxas(f"fp16{name}", imad if arch in ("sm_86", "sm_89", "sm_100") else "fp32", sass)
        rates = {
            "sm_80": "; 128 a clock and SM (BPG: 256 halves), HFMA2 and HFMA2.MMA in turns",
            "sm_86": "; 64 a clock and SM, as measured on RTX 4090 (TUNER4090)",
            "sm_89": "; 64 a clock and SM measured on RTX 4090 (TUNER4090)",
            "sm_100": "; 64 a clock and SM (BPG), measured on B300 (B300CAT)",
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
        *([Row("int32.constant", "lsu", 40, None, constant)] if arch in ("sm_90", "sm_100") else []),
        *([] if arch == "sm_70" else [Row("int32.uniform", "uniform", 6, None, uniform)]),
        ptxas("int32.selp", "int32", "SEL"), ptxas("int32.mov", "int32", "MOV"), ptxas("int32.misc", "int32", "PRMT"),
        ptxas("int32.minmax", "int32", "VIMNMX" if arch in ("sm_90", "sm_100") else "IMNMX"),
        ptxas("int32.cvt", "int32", "PRMT"),
        Row("int32.popc", "sfu", 19, None, "measured on RTX 4070 Ti (ADA4070: 19)" + other),
        Row("int32.div", imad, 80, 40, "assumed: only where [expand] has no entry; about 20 instructions"),
        Row("sfu", "sfu", 18, None, xu),
        Row("branch", "branch", 6, None, "ptxas stall count BREAK " + arch + " (PTXAS), copied to BRA"),
        Row("branch.sync", "branch", 1, None, "assumed: a convergence hint takes an issue slot only"),
        Row("branch.ret", "branch", 1, None, "assumed: nothing depends on it"),
        Row("barrier", "adu", 24, None, f"measured __syncthreads 22 + 2 warps on B300 (B300CAT), one warp{copied}"),
        Row("fence", "lsu", 205, None, "measured membar.gl on RTX 4070 Ti (ADA4070), copied"),
        Row("fence.prefetch", "lsu", 1, None, "assumed: nothing depends on it"),
        Row("fence.async", "lsu", 1, None, "assumed: waits are those of the loads"),
        Row("shuffle", "lsu", 24, 1, f"{shfl}; 32 a clock and SM (CPGT3, BPG)"),
        Row("shuffle.vote", "int32", 4, None, "ptxas stall count VOTE (PTXAS)"),
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
    "sm_90": (2048 / 6, 24, "HMMA.16816 24, 6 apart (PTXAS sm_90): two thirds of the 2048 FMA/clk/SM of wgmma (JIAJE)"),
    "sm_100": (256, 20, "HMMA.16816 20 (PTXAS), 1003 FMA/clk/SM measured for mma.sync on B300 (B300CAT)"),
    "geforce_75": (
        64,
        30,
        "recalled: half the rate of sums in f16 on GeForce boards (RTX 2080 Ti 57 TFLOPS)",
    ),
    "pro_86": (128, 24, "recalled: the full rate also with sums in f32 (RTX A6000 155 TFLOPS)"),
    "pro_89": (128, 24, "recalled: the full rate also with sums in f32 (L40S 362 TFLOPS)"),
}


def _tensor(arch: str) -> list[Row]:
    rate, latency, source = _TENSOR[arch]

    def cycles(m: int, n: int, k: int, factor: float = 1) -> int:
        return max(1, round(m * n * k / rate / factor))

    if arch == "sm_70":  # m8n8k4 is four steps of one eighth of 16x16x4; a step occupies the tensor cores 2 cycles
        rows = [Row("tensor.hmma884", "tensor", 8, 2, source), Row("tensor.hmma884f16", "tensor", 8, 4, source)]
        mma = 8
    else:
        rows = []
        mma = cycles(16, 8, 16)
    first = Row("tensor", "tensor", latency, mma, source + "; taken for 16x8x16")
    return [first, *rows, *_products(arch), *_warpgroups(arch)]


#: class of an mma -> its rate over f16 with 32-bit sums, and why; other capabilities' after the class
_RATES = {
    "f16": (1.0, ""),
    "f16acc": (1.0, ""),
    "f16acc.sm_86": (2.0, "; sums in f16 twice the rate (TUNER4090)"),
    "f16acc.sm_89": (2.0, "; sums in f16 twice the rate (TUNER4090)"),
    "f16acc.geforce_75": (2.0, "; sums in f16 twice the rate"),
    "tf32": (0.5, "; tf32 half the rate (ABDEL: HMMA.1684 4 cycles)"),
    "s8": (2.0, "; int8 twice the rate (ABDEL: IMMA.16816 4 cycles)"),
    "s8.sm_86": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 3080 238 TOPS)"),
    "s8.sm_89": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 4090 661 TOPS)"),
    "s8.geforce_75": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 2080 Ti 228 TOPS)"),
    "s8.sm_100": (0.25, "; 142 TOPS measured on B300 (B300CAT), copied"),
    "s4.sm_86": (8.0, "; int4 twice the rate of int8"),
    "s4.sm_89": (8.0, "; int4 twice the rate of int8"),
    "s4.geforce_75": (8.0, "; int4 twice the rate of int8"),
    "s4": (4.0, "; int4 four times the rate (ABDEL: 1248 TOPS)"),
    "b1": (16.0, "; one-bit 16 times the rate, spec of A100 (4992 TOPS)"),
    "f8": (2.0, "; fp8 twice the rate, spec"),
    "f8.sm_100": (0.5, "; e4m3 emulated, 276 TFLOPS measured on B300 (B300CAT)"),
}
#: f64 FMA a cycle and scheduler of DMMA
_DOUBLE = {"sm_80": (16, "DMMA.884 16 cycles (ABDEL)"), "sm_90": (32, "spec: 67 TFLOPS, 128 FMA/clk/SM"),
           "sm_100": (16, "assumed: half of sm_90, 40 TFLOPS spec")}  # fmt: skip


def products_of(board: str) -> list[Row]:
    """The matrix instructions whose rate boards differ in."""
    return [row for row in _tensor(board) if not re.search(r"\.(f64|b1)\.", row.name)]


def _products(arch: str) -> list[Row]:
    """mma.sync and wmma.mma of every shape: the products over the rate, and the latency of 16x8x16 f16 around it."""
    from ppt_gpu.exec.matrix_form import MMA_SHAPES, WMMA_SHAPES

    if arch == "sm_70":
        return []  # m8n8k4 and the wmma forms expand to steps
    rate, latency, source = _TENSOR[arch]
    base = 16 * 8 * 16 / rate
    rows = []
    types = {
        "f16": "f16",
        "f16acc": "f16",
        "tf32": "tf32",
        "f64": "f64",
        "s8": "s8",
        "s4": "s4",
        "b1": "b1",
        "f8": "e4m3",
    }
    for kind, element in types.items():
        factor, why = _RATES.get(f"{kind}.{arch}", _RATES.get(kind, (0.0, "")))
        pace, text = rate * factor, source + why
        if kind == "f64":
            pace, text = _DOUBLE.get(arch, (0.5, "assumed: the fp64 pipe of 2 lanes a scheduler and SM quarter"))
        shapes = dict.fromkeys((*MMA_SHAPES[element], *WMMA_SHAPES.get(element, ())))
        for shape in shapes:
            m, n, k = (int(size) for size in re.findall(r"\d+", shape))
            busy = max(1, round(m * n * k * (4 if shape == "m8n8k4" and element == "f16" else 1) / pace))
            late = latency if busy == base else latency + busy - base if busy > base else max(latency * 2 // 3, 14)
            rows.append(Row(f"tensor.mma.{kind}.{shape}", "tensor", round(late), busy, text))
    return rows


def _warpgroups(arch: str) -> list[Row]:
    """wgmma.mma_async m64nNkK: a warp's 16 rows take N/2 cycles of its tensor core in every type, K being 32 bytes."""
    if arch != "sm_90":
        return []
    source = "m64n64k16 32, n128 64, n256 128 measured (B200PAPER): N/2"
    widths = [*range(8, 33, 8), *range(64, 257, 32)]
    return [Row(f"tensor.wgmma.n{n}", "tensor", n // 2, n // 2, source) for n in widths]
