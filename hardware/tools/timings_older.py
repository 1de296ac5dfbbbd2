"""Operation timings of sm_10 to sm_61."""

from __future__ import annotations

from rows import SHARES, Row, Stalls, memory_rows, twins

_NO_TENSOR = "assumed: no tensor cores; ptxas rejects the instruction on this capability"


def before_volta(arch: str, stalls: Stalls) -> list[Row]:
    """sm_10 to sm_61: integer and single precision share the CUDA cores (pipe fp32)."""
    return {
        "sm_10": tesla, "sm_13": tesla, "sm_20": fermi, "sm_30": kepler, "sm_35": kepler, "sm_52": pascal,
        "sm_60": pascal, "sm_61": pascal,
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
        _barrier(arch, alu, source),
        Row("fence", "lsu", 200, None, "assumed: of the order of an L2 access"),
        Row("fence.prefetch", "lsu", 1, None, "assumed: nothing depends on it"),
        Row("shuffle.vote", "fp32", alu, None, source),
    ]
    replaced = {row.name for row in more}
    rows = [row for row in rows if row.name not in replaced] + more
    return rows + memory_rows() + twins(rows, SHARES)


def _barrier(arch: str, alu: int, source: str) -> Row:
    """At the rate of the programming guide, whose operations are those of threads."""
    pipe, ii, rate = {
        "sm_10": ("lsu", None, "8 a clock and SM (CPGT3)"),
        "sm_13": ("lsu", None, "8 a clock and SM (CPGT3)"),
        "sm_20": ("lsu", None, "16 a shader clock and SM (CPGT3)"),
        "sm_30": ("branch", None, "128 a clock and SM (CPGT3)"),
        "sm_35": ("branch", None, "128 a clock and SM (CPGT3)"),
        "sm_52": ("branch", 2, "64 a clock and SM (CPGT3)"),
        "sm_60": ("branch", 2, "32 a clock and SM (CPGT3), two schedulers"),
        "sm_61": ("branch", 2, "64 a clock and SM (CPGT3)"),
    }[arch]
    return Row("barrier", pipe, alu, ii, f"documented: {rate}; latency assumed that of the ALU; {source}")


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
    ppt = "simulator (ACCEL SM2_GTX480: 5 + 6 = 11 core clocks); 22 shader clocks recalled, PPTOLD 18"
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
    """cc 5.2 and 6.x: 6 cycles for the ALU; 32-bit multiply is three XMAD, the first two at once."""
    copied = "" if arch == "sm_60" else ", copied from sm_60"
    ppt = f"measured on P100 (PPT19: 6 cycles; ptxas sm_60 6){copied}"
    setp = stalls.predicate("sm_60", "ISETP") or (13, "ptxas ISETP to guard (PTXAS)")
    xu = "16 a clock and SM (CPGT3)" if arch == "sm_60" else "32 a clock and SM (CPGT3)"
    double = (8, None, "measured on P100 (PPT19: 8 cycles)")
    if arch != "sm_60":
        double = (48, None, "measured on a Maxwell TITAN X (PPT19: 48 cycles)")
    half = [Row("fp16", "fp64", 32, 32, "documented: 2 halves a clock and SM (CPGT3); the latency of one, assumed")]
    return _common(arch, 6, ppt, [
        Row("fp64", "fp64", *double),
        Row("int32.mul", "fp32", 13, 3, f"derived: three XMAD of 6 cycles, two at once; measured 13 (PPT19){copied}"),
        Row("int32.mad", "fp32", 13, 3, f"derived: three XMAD of 6 cycles, two at once; measured 13 (PPT19){copied}"),
        Row("int32.xmad", "fp32", 6, None, f"ptxas stall count XMAD sm_60 (PTXAS){copied}"),
        Row("int32.xmad.part", "fp32", 1, None, "the next XMAD does not wait for it: a product takes 13 (PPT19)"),
        Row("int32.setp", "fp32", setp[0], None, setp[1] + copied),
        Row("fp32.setp", "fp32", setp[0], None, setp[1] + copied),
        Row("int32.popc", "sfu", 13, None, f"measured on P100 (PPT19: popc 13){copied}; {xu}"),
        Row("fp32.cvt", "sfu", 13, None, f"assumed as popc, the same unit{copied}; {xu}"),
        Row("fp64.cvt", "sfu", 13, None, f"assumed as popc, the same unit{copied}; {xu}") if arch == "sm_60"
        else Row("fp64.cvt", "fp64", double[0], None, "4 a clock and SM, as fp64 (CPGT3); latency assumed as fp64"),
        Row("sfu", "sfu", 15, None, f"measured on P100 (PPT19: sin, cos 15 cycles){copied}"),
        Row("shuffle", "lsu", 6, 1, f"measured on P100 (PPT19: shfl 6 cycles){copied}; 32 a clock and SM (CPGT3)"),
        *(half if arch == "sm_61" else []),
    ])  # fmt: skip
