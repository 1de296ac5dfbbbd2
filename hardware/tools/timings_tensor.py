"""Matrix instructions of sm_70 and later: a rate by board, the types' rates over it, and every shape's share."""

from __future__ import annotations

import re

from rows import Row

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
    "sm_103": (256, 20, "HMMA.16816 20 (PTXAS), 1003 FMA/clk/SM measured for mma.sync on B300 (B300CAT)"),
    "sm_120": (
        64,
        35,
        "HMMA.16816.F32 measured 35 on a GeForce RTX 50 (SM120HMMA); 256 FMA/clk/SM with f32 accumulation (RTX 5090: "
        "spec 209.5 TFLOPS, recalled)",
    ),
    "pro_120": (128, 28, "HMMA.16816 28 (PTXAS sm_120); 512 FMA/clk/SM (RTX PRO 6000: spec 504 TFLOPS, recalled)"),
    "sm_87": (
        256,
        24,
        "recalled: 85 dense int8 TOPS of the Orin GPU at 1.3 GHz, 1024 FMA/clk/SM in f16; latency of sm_80",
    ),
    "half_86": (64, 32, "recalled: A10G 70 TFLOPS, 256 FMA/clk/SM, all types half of the A10; latency of sm_86"),
    "half_89": (64, 32, "data sheets: L40 181, L20 119.5 TFLOPS, 256 FMA/clk/SM, half of the L40S; latency of sm_89"),
    "gtx_75": (32, 62, "assumed: TU116 and TU117 have FP16 cores, 128 FMA/clk/SM, where others have tensor cores"),
    "geforce_75": (
        64,
        30,
        "recalled: half the rate of sums in f16 on GeForce boards (RTX 2080 Ti 57 TFLOPS)",
    ),
    "pro_86": (128, 24, "recalled: the full rate also with sums in f32 (RTX A6000 155 TFLOPS)"),
    "pro_89": (128, 24, "recalled: the full rate also with sums in f32 (L40S 362 TFLOPS)"),
}


def tensor(arch: str) -> list[Row]:
    rate, latency, source = _TENSOR[arch]

    def cycles(m: int, n: int, k: int, factor: float = 1) -> int:
        return max(1, round(m * n * k / rate / factor))

    if arch == "sm_70":  # m8n8k4 is four steps of one eighth of 16x16x4; a step occupies the tensor cores 2 cycles
        rows = _steps("tensor.hmma884", "HMMA.884.F32", 10, 2, 4)
        rows += _steps("tensor.hmma884f16", "HMMA.884.F16", 13, 4, 2)
        mma = 8
    else:
        rows: list[Row] = []
        mma = cycles(16, 8, 16)
    first = Row("tensor", "tensor", latency, mma, source + "; taken for 16x8x16")
    return [first, *rows, *_products(arch), *_warpgroups(arch)]


def _steps(name: str, sass: str, latency: int, ii: int, steps: int) -> list[Row]:
    """A step of a product; one that others of its set follow; and the last of a set that another set follows.

    The steps of a set write different accumulators, so none waits for the one before it; the next set adds to them.
    """
    rate = f"{ii} cycles of the unit: 512 FMA/clk/SM (JIAJE)"
    sets = f"RAW distance {sass} {latency} (NAK, sm_75, copied)"
    part = f"the next of {steps} steps waits for the unit only (PTXAS sm_70); {rate}"
    return [
        Row(name, "tensor", latency, ii, f"{sets}; {rate}"),
        Row(f"{name}.part", "tensor", ii, ii, part),
        Row(f"{name}.end", "tensor", latency - (steps - 1) * ii, ii, f"{sets}, from set to set; {rate}"),
    ]


#: class of an mma -> its rate over f16 with 32-bit sums, and why; other capabilities' after the class
_RATES = {
    "f16": (1.0, ""),
    "f16acc": (1.0, ""),
    "f16acc.sm_86": (2.0, "; sums in f16 twice the rate (TUNER4090)"),
    "f16acc.sm_89": (2.0, "; sums in f16 twice the rate (TUNER4090)"),
    "f16acc.sm_120": (2.0, "; sums in f16 twice the rate, as on RTX 4090 (TUNER4090)"),
    "f16acc.geforce_75": (2.0, "; sums in f16 twice the rate"),
    "tf32": (0.5, "; tf32 half the rate (ABDEL: HMMA.1684 4 cycles)"),
    "s8": (2.0, "; int8 twice the rate (ABDEL: IMMA.16816 4 cycles)"),
    "s8.sm_86": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 3080 238 TOPS)"),
    "s8.sm_89": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 4090 661 TOPS)"),
    "s8.geforce_75": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 2080 Ti 228 TOPS)"),
    "s8.sm_103": (0.25, "; 142 TOPS measured on B300 (B300CAT)"),
    "s8.sm_120": (4.0, "; int8 twice the rate of sums in f16 (recalled: RTX 5090 838 TOPS)"),
    "s4.sm_120": (8.0, "; int4 twice the rate of int8"),
    "s4.sm_86": (8.0, "; int4 twice the rate of int8"),
    "s4.sm_89": (8.0, "; int4 twice the rate of int8"),
    "s4.geforce_75": (8.0, "; int4 twice the rate of int8"),
    "s4": (4.0, "; int4 four times the rate (ABDEL: 1248 TOPS)"),
    "b1": (16.0, "; one-bit 16 times the rate, spec of A100 (4992 TOPS)"),
    "f8": (2.0, "; fp8 twice the rate, spec"),
    "f8.sm_100": (0.5, "; e4m3 emulated, 276 TFLOPS measured on B300 (B300CAT)"),
    "f8.sm_103": (0.5, "; e4m3 emulated, 276 TFLOPS measured on B300 (B300CAT)"),
}
#: f64 FMA a cycle and scheduler of DMMA
_DOUBLE = {"sm_80": (16, "DMMA.884 16 cycles (ABDEL)"), "sm_90": (32, "spec: 67 TFLOPS, 128 FMA/clk/SM"),
           "sm_100": (16, "assumed: half of sm_90, 40 TFLOPS spec"),
           "sm_103": (0.5, "spec: 1.2 TFLOPS, 2 FMA/clk/SM as without tensor cores")}  # fmt: skip


def products_of(board: str) -> list[Row]:
    """The matrix instructions whose rate boards differ in."""
    return [row for row in tensor(board) if not re.search(r"\.(f64|b1)\.", row.name)]


def _products(arch: str) -> list[Row]:
    """mma.sync and wmma.mma of every shape: the products over the rate, and the latency of 16x8x16 f16 around it."""
    from ppt_gpu.emulator.forms.matrix_form import MMA_SHAPES, WMMA_SHAPES

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
