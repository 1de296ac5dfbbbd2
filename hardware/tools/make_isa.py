"""Writes hardware/isa/*.toml from measured tables.

    python hardware/tools/make_isa.py ../shared/reference/hardware

The folder holds ptx_to_sass.csv (the machine instructions that ptxas makes of each PTX form), ptx_fusion.csv (those of
patterns of several forms) and sass_latency_ii.csv (stall counts in the SASS). The TOML files are committed: this script
only documents and repeats how they were made.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from isa_text import over, text
from rows import Row, Stalls
from timings_older import before_volta
from timings_simulator import gtx480, qv100
from timings_tensor import products_of
from timings_volta import of_b300, volta

from ppt_gpu.ptx.operations import operation_of
from ppt_gpu.ptx.table import TABLE
from ppt_gpu.sass.operations import operation

#: capability -> (capability whose expansions are used, why)
EXPANSIONS = {
    "sm_10": "sm_35", "sm_13": "sm_35", "sm_20": "sm_35", "sm_30": "sm_35", "sm_35": "sm_35", "sm_52": "sm_50",
    "sm_60": "sm_60", "sm_61": "sm_61", "sm_70": "sm_70", "sm_75": "sm_75", "sm_80": "sm_80", "sm_86": "sm_86",
    "sm_89": "sm_89", "sm_90": "sm_90", "sm_100": "sm_100", "sm_120": "sm_120",
}  # fmt: skip
#: capability without a table of patterns -> the one whose patterns are used
PATTERNS_OF = {"sm_50": "sm_60", "sm_61": "sm_60"}
#: ISA of boards whose tensor cores differ from those of the first boards with the capability -> that capability
BOARDS = {
    "geforce_75": "sm_75", "gtx_75": "sm_75", "pro_86": "sm_86", "half_86": "sm_86", "pro_89": "sm_89",
    "half_89": "sm_89", "pro_120": "sm_120",
}  # fmt: skip
#: capability without tables of its own -> the one that it differs from by few rows, and what is known of that
LIKE = {
    "sm_37": ("sm_35", "GK210: the SM of GK110 with twice the registers and shared memory."),
    "sm_50": ("sm_52", "The expansions of sm_52 are those of ptxas 12.3 for sm_50; the SMs differ in shared memory."),
    "sm_53": ("sm_52", "GM20B: the SM of GM204 with arithmetic on pairs of halves, timed as fp32."),
    "sm_62": ("sm_61", "GP10B: the SM of GP104, with pairs of halves at the rate of fp32."),
    "sm_72": ("sm_70", "GV10B: the SM of GV100; its int8 tensor instructions are timed as those of f16."),
    "sm_87": ("sm_86", "GA10B: the SM of GA10x with the tensor cores of GA100."),
    "sm_103": (
        "sm_100",
        "GB110: the SM of GB100 with fewer fp64 units, slower int8 tensor instructions and twice the rate of ex2.",
    ),
    "sm_121": ("sm_120", "GB20B: the SM of GB20x."),
}
#: products by a power of two -> the form of ptx_to_sass.csv, or the pattern of ptx_fusion.csv; where a product is
#: several instructions (XMAD), these are shifts
SHIFTED = {"mul.wide.shift": "mul.wide.u32 imm4", "mul.32.shift": "mul.lo.u32 imm8"}
SHIFTED_SUMS = {"mul.wide.shift+add.64": "mul.wide.s32 imm4+add.s64 (index->addr)",
                "mul.32.shift+add.32": "shl.b32+add.s32"}  # fmt: skip
#: free everywhere: parameters are constant-bank operands, ptxas removes register copies, signs are operand modifiers,
#: and predicate logic is folded into the comparisons (ptx_fusion.csv)
FREE = ("ld.param", "ld.param::entry", "mov", "cvta", "bar.warp", "neg.f32", "neg.ftz.f32", "neg.f64", "abs.f32",
        "abs.ftz.f32", "abs.f64", "and.pred", "or.pred", "xor.pred", "not.pred")  # fmt: skip
#: what GPGPU-Sim gives no latency of its own although it computes what GPUs add or multiply for
SIMULATED_PLAIN = ("cvta", "neg", "dp2a", "dp4a")
#: forms that the immediate variant of the table describes best, because compilers emit them with literals
IMMEDIATE = ("bfe", "bfi", "shl", "shr")
#: step of a matrix product on Volta -> steps of a set
STEPS = {"tensor.hmma884": 4, "tensor.hmma884f16": 2}
#: PTX spelling -> the table's spelling of matrix instructions (operand layouts do not matter)
MATRIX = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": "mma.sync.m16n8k16.f16 acc f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16": "mma.sync.m16n8k16.f16 acc f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": "mma.sync.m16n8k16.bf16 acc f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32": "mma.sync.m16n8k8.f16 acc f32",
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16": "mma.sync.m16n8k8.f16 acc f16",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": "mma.sync.m16n8k8.tf32 acc f32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32": "mma.sync.m16n8k32.s8 acc s32",
    "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32": "mma.sync.m8n8k16.s8 acc s32",
    "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32": "wmma.mma.m16n16k16.f16 acc f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32": "wmma.mma.m16n16k16.f16 acc f32",
    "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16": "wmma.mma.m16n16k16.f16 acc f16",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16": "wmma.mma.m16n16k16.f16 acc f16",
}
#: pattern of ptx_fusion.csv -> that of ppt_gpu.machine.selection.fusion, and the machine instructions that its parts
#: are alone
PATTERNS = {
    "mul.wide.s32+add.s64": ("mul.wide+add.64", 4),
    "mul.lo.s32+add.s32": ("mul.32+add.32", 2),
    "add.s32+add.s32": ("add.32+add.32", 2),
    "shl.b32+add.s32": ("shl.32+add.32", 2),
    "and.b32+or.b32": ("logic.32+logic.32", 2),
    "mul.f32+add.f32 (no rnd)": ("mul.f32+add.f32", 2),
    "mul.f64+add.f64 (no rnd)": ("mul.f64+add.f64", 2),
}
#: address arithmetic that accesses to shared memory do (ppt_gpu.machine.selection.addresses), as ptxas 13.0 has it,
#: from the first capability on and before the second: Hopper finds the window of a block's shared memory when it runs
ADDRESSES = {"add.32+shared": (70, 90), "shl.32+shared": (70, 90)}
#: pairs of 64-bit instructions from Volta on, as ptxas 13.0 has them: LEA and LEA.HI.X; IADD3 and LEA.HI.X.SX32 or
#: IADD3.X; IMAD, IMAD.WIDE, IMAD and IADD3
WIDE = {
    "shl.64+add.64": ["int32.add"] * 2,
    "cvt.s64+add.64": ["int32.add"] * 2,
    "cvt.u64+add.64": ["int32.add"] * 2,
    "mul.64+add.64": ["int32.mad", "int32.madwide", "int32.mad", "int32.add"],
}
_INTEGERS = [f"{base}.{kind}" for base in ("min", "max") for kind in ("s32", "u32")]
#: pairs of instructions as ptxas 13.0 has them, from a capability on and before another one: both halves of a product
#: are one IMAD.WIDE; two conversions to halves one F2FP; a shift to the right in a sum LEA.HI; logic compared with zero
#: LOP3 with a predicate; floor or ceiling as an integer F2I.FLOOR; a sum in a minimum or maximum VIADDMNMX, and two of
#: a kind VIMNMX3 and FMNMX3, which the GPUs of capability 12.x have not
PAIRS = {
    "mul.hi+mul.32": (["int32.mulwide"], 70, 999),
    "cos.approx+sin.approx": (["sfu.sin"], 70, 999),  # the second of the two, in either order
    "sin.approx+cos.approx": (["sfu.cos"], 70, 999),
    "cvt.f16+cvt.f16": (["fp16.cvt"], 75, 999),
    "shr.32+add.32": (["int32.add"], 70, 999),
    "logic.32+setp.zero": (["int32.setp"], 70, 999),
    "logic.64+logic.64": (["int32.logic"] * 2, 70, 999),
    "cvt.whole+cvt.integer": (["fp32.cvt"], 70, 999),
    "load.constant+operand": ([], 70, 90),
    **{f"add.32+{each}": (["int32.add"], 90, 120) for each in _INTEGERS},
    **{f"{each}+{each}": (["int32.minmax"], 90, 120) for each in _INTEGERS},
    **{f"{each}+{each}": (["fp32.minmax"], 100, 120) for each in ("min.f32", "max.f32")},
}
#: machine instructions that no PTX names (ppt_gpu.machine.selection.implicit_moves) -> operations, as ptxas 13.0 adds
#: them, from this capability on (of GPUs before Volta there is no disassembly here to look at)
_VOLTA = {
    "stack": ["int32.mov"],
    "special": ["int32.special"],
    "constant": ["int32.mov"],
    "copy": ["int32.mov"],
    "reconverge": ["branch.sync"] * 3,
    # atomics that one lane does for its warp (ppt_gpu.machine.selection.warp_aggregated_atomics): S2R, VOTE, FLO,
    # ISETP; POPC; shuffles; and what gives each lane its own result: LOP3, POPC, SHFL, IADD
    "elect": ["int32.special", "shuffle.vote", "int32.popc", "int32.setp"],
    "count": ["int32.popc"],
    "reduce": ["shuffle.shfl", "int32.add"] * 5,
    "scan": ["shuffle.shfl", "int32.add"] * 5,
    "spread": ["int32.logic", "int32.popc", "shuffle.shfl", "int32.add"],
    "extend": ["int32.shift"],
}  # BMOV, BSSY, BSYNC
_AMPERE = _VOLTA | {"descriptor": ["int32.uniform"], "reconverge": ["branch.sync"] * 2, "reduce": ["shuffle.redux"]}
_HOPPER = _AMPERE | {
    "stack": ["int32.constant"],
    "parameter": ["int32.constant"],
    "double": ["int32.uniform"] * 2,  # UMOV, and from sm_120 on UMOV.64
    "shared": ["int32.uniform", "int32.uniform", "int32.uniform"],
}  # UMOV, S2UR, ULEA
UNNAMED = {70: _VOLTA, 80: _AMPERE, 90: _HOPPER, 120: _HOPPER | {"double": ["int32.uniform"]}}
MEMORY = {"ld", "ldu", "st", "atom", "red", "cp", "prefetch", "membar", "fence", "bar", "barrier", "mbarrier", "setp",
          "set", "selp", "slct", "vote", "match", "elect", "isspacep", "testp", "griddepcontrol", "shfl", "ldmatrix",
          "stmatrix", "redux", "activemask", "nanosleep", "tcgen05", "wgmma", "createpolicy", "multimem"}  # fmt: skip
#: first parts of machine instructions that are left out of expansions: scheduling hints, uniform-datapath constants and
#: the constant loads of a kernel's parameters, which cost no issue slot worth modelling
LEFT_OUT = (
    "NOP", "DEPBAR", "BMOV", "WARPSYNC", "LDC", "LDCU", "ULDC", "UMOV", "UIADD3", "UI2F", "UISETP", "USHF", "UFFMA",
    "S2UR", "R2UR", "ERRBAR", "CGAERRBAR", "CCTL", "LDGDEPBAR", "NANOSLEEP",
)  # fmt: skip


def expansions(rows: list[dict[str, str]], known: dict[str, Row]) -> dict[str, list[str]]:
    """PTX opcode -> operations, for every form that is not just its own single operation."""
    forms = {row["ptx_opcode"]: row["sass_opcodes"].split() for row in rows}
    chosen: dict[str, list[str]] = {}
    by_shape = "tensor.mma.f16.m16n8k16" in known
    for form, sass in forms.items():
        opcode, _, variant = form.partition(" ")
        base = opcode.partition(".")[0]
        if base in ("mma", "wmma") and by_shape:
            continue
        special = variant and not (variant == "imm" and base in IMMEDIATE)
        if special or "+" in form or base in MEMORY or base in ("mov", "cvta", "bra", "@p") or opcode not in forms:
            continue
        if base in IMMEDIATE and not variant and f"{opcode} imm" in forms:
            continue
        chosen[opcode] = sass
    for opcode, form in MATRIX.items():  # later ones have the timing of each shape (timings_volta)
        if form in forms and not by_shape:
            chosen[opcode] = forms[form]
    result = {opcode: [] for opcode in FREE}
    for opcode, sass in sorted(chosen.items()):
        operations = converted(opcode, sass, known)
        if opcode not in FREE and operations is not None and not same_timing(operations, own(opcode), known):
            result[opcode] = operations
    if "max.f64" in result and "min.f64" in result:  # no instruction saturates a double: DSETP.MAX and DSETP.MIN
        result["cvt.sat.f64.f64"] = result["max.f64"] + result["min.f64"]
    for sign in ("u", "s"):  # ptxas merges the addition into IMAD.WIDE unless the addend comes late (NOTES section 2)
        if result.get(f"mad.wide.{sign}32", [""])[0] == "int32.madwide":
            result[f"mad.wide.{sign}32"] = ["int32.madwide"]
    return dict(sorted(result.items()))


def shifted(rows: list[dict[str, str]], forms: list[dict[str, str]], known: dict[str, Row]) -> dict[str, list[str]]:
    """Products by a power of two, alone and with a sum -> operations."""
    found = {row["ptx_opcode"]: row["sass_opcodes"].split() for row in forms}
    sums = {row["pattern"]: row["sass_added"].split() for row in rows}
    result = {name: converted(name, found[form], known) for name, form in SHIFTED.items()}
    result |= {name: converted(name, sums[pattern], known) for name, pattern in SHIFTED_SUMS.items()}
    return {name: operations for name, operations in result.items() if operations is not None}


def fusions(rows: list[dict[str, str]], known: dict[str, Row]) -> dict[str, list[str]]:
    """Pattern of two PTX instructions -> the operations that both are together."""
    result = {}
    for row in rows:
        pattern = PATTERNS.get(row["pattern"])
        if pattern is None:
            continue
        sass = row["sass_added"].split()
        if row["sass_removed"] == "MOVx1":  # the harness's own, which ptxas wrote another way
            sass.remove(next(each for each in sass if "MOV" in each))
        operations = converted(row["pattern"], sass, known)
        if operations is not None and len(operations) < pattern[1]:
            result[pattern[0]] = operations
    pairs = known["int32.add64"].latency > known.get("int32.add", known["int32"]).latency  # else IADD.64, of two
    if result.get("add.32+add.32") == ["int32.add"] and pairs:  # IADD3 with its carries: two of three sums of 64 bit
        result["add.64+add.64"] = ["int32.add"] * 2
    if "mul.f32+add.f32" in result:
        result["mul.ftz.f32+add.ftz.f32"] = result["mul.f32+add.f32"]
    return dict(sorted(result.items()))


def converted(opcode: str, sass: list[str], known: dict[str, Row]) -> list[str] | None:
    """The operations of a list of machine instructions; None when one of them is unknown."""
    result = []
    for each in (printed.strip("<>") for printed in sass):
        if each.partition(".")[0] in LEFT_OUT:
            continue
        name = operation(each)
        accesses = name is not None and name.startswith(("load.", "store.", "atomic."))  # timed by the memory system
        if name is None or accesses or not resolves(name, known):
            print(f"left out {opcode}: {each}", file=sys.stderr)
            return None
        result.append(name)
    for place, name in enumerate(result[:-2]):  # of the XMAD of a product only the last two wait for others
        if name == "int32.xmad" == result[place + 1] == result[place + 2]:
            result[place] = "int32.xmad.part"
    for name, steps in STEPS.items():  # of a matrix product's steps only those of different sets wait for one another
        places = [place for place, each in enumerate(result) if each == name]
        for number, place in enumerate(places[:-1], start=1):
            result[place] = f"{name}.end" if number % steps == 0 else f"{name}.part"
    for place, name in enumerate(result[:-1]):  # a select or carry reads the predicate sooner than a guard does
        if name in ("int32.setp", "fp32.setp") and f"{name}.alu" in known and result[place + 1] != "branch":
            result[place] = f"{name}.alu"
    return result


def same_timing(operations: list[str], name: str, known: dict[str, Row]) -> bool:
    """Whether the operations are one, with the timing that the opcode has without expansion."""
    if len(operations) != 1 or not name:
        return False
    first, second = (row_of(each, known) for each in (operations[0], name))
    return first is not None and second is not None and first == second


def row_of(name: str, known: dict[str, Row]) -> tuple[str, int, int | None] | None:
    """Pipe, latency and interval of an operation, by longest prefix."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return (known[name].pipe, known[name].latency, known[name].ii) if name else None


def resolves(name: str, known: dict[str, Row]) -> bool:
    return row_of(name, known) is not None


def own(opcode: str) -> str:
    """The operation that the opcode is when it is not expanded."""
    base, *modifiers = opcode.split(".")
    try:
        return operation_of(base, tuple(modifiers), TABLE[base])
    except (KeyError, ValueError):
        return ""


def changed_by(name: str) -> list[Row]:
    """What `LIKE` capabilities have of their own."""
    if name == "sm_62":
        return [Row("fp16", "fp32", 6, 1, "recalled: pairs at the rate of fp32, 256 halves a clock and SM")]
    return {"sm_87": products_of, "sm_103": of_b300}.get(name, lambda _name: [])(name)


def comparisons(known: dict[str, Row]) -> dict[str, list[str]]:
    """Comparisons and selections of 64 bit from Volta on: ISETP and ISETP.EX, which reads its predicate; two SEL.

    Nothing where they are one instruction (ISETP.U64, SEL.64 of sm_120): the operations of 64 bit are that.
    """
    if "int32.setp.alu" not in known or known["int32.selp64"].latency == known["int32.selp"].latency:
        return {}
    found = {
        f"setp.{test}.{letter}64": ["int32.setp.alu", "int32.setp"]
        for letter in "bsu" for test in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
    }  # fmt: skip
    return found | {f"selp.{letter}64": ["int32.selp"] * 2 for letter in "bsu"}


def constants(capability: int) -> dict[str, list[str]]:
    """Four words of constants are two LDC.64, of whatever type: no LDC reads more (ptxas 13.0, sm_75 to sm_120)."""
    words = [f"v4.{letter}32" for letter in "bsuf"] + [f"v2.{letter}64" for letter in "bsuf"]
    return {f"ld.const.{form}": ["load.constant"] * 2 for form in words} if capability >= 70 else {}


def pairs_of(name: str) -> dict[str, list[str]]:
    """What accesses to shared memory of "sm_86" do with their addresses, and its sums of 64 bit."""
    capability = int(name[3:])
    addresses = {pattern: [] for pattern, (first, end) in ADDRESSES.items() if first <= capability < end}
    pairs = {pattern: made for pattern, (made, first, end) in PAIRS.items() if first <= capability < end}
    if capability >= 90:
        pairs["load.constant+operand"] = ["int32.uniform"]  # ULDC.64
    return addresses | pairs | (WIDE if capability >= 70 else {})


def unnamed_of(name: str) -> dict[str, list[str]]:
    """The machine instructions of "sm_86" that no PTX names."""
    known = [first for first in UNNAMED if first <= int(name[3:])]
    return UNNAMED[max(known)] if known else {}


def main(folder: Path, out: Path) -> None:
    """Write the ISA files into `out` from the tables in `folder`."""
    stalls = Stalls(folder / "sass_latency_ii.csv")
    with (folder / "ptx_to_sass.csv").open() as file:
        table = list(csv.DictReader(file))
    with (folder / "ptx_fusion.csv").open() as file:
        patterns = list(csv.DictReader(file))
    for name, arch in EXPANSIONS.items():
        rows = (volta if int(name[3:]) >= 70 else before_volta)(name, stalls)
        forms = [row for row in table if row["arch"] == arch]
        note = f"Expansions: ptxas {forms[0]['ptxas']} for {arch}, fast paths (ptx_to_sass.csv)."
        if arch != name:
            note += f" Copied: no table for {name}."
        if name in ("sm_10", "sm_13"):
            expand, fuse = {opcode: [] for opcode in FREE}, {}
            note = "No expansion table for cc 1.x: multi-instruction opcodes have measured timings of their own (WONG)."
        else:
            known = {row.name: row for row in rows}
            expand = expansions(forms, known)
            expand = dict(sorted((expand | comparisons(known) | constants(int(name[3:]))).items()))
            own_patterns = [row for row in patterns if row["arch"] == PATTERNS_OF.get(arch, arch)]
            fuse = dict(sorted((fusions(own_patterns, known) | pairs_of(name)).items()))
            if "int32.xmad" in known:
                fuse = dict(sorted((fuse | shifted(own_patterns, forms, known)).items()))
        (out / f"{name}.toml").write_text(text(name, note, rows, expand, fuse, unnamed_of(name)))
        for board in (each for each, capability in BOARDS.items() if capability == name):
            (out / f"{board}.toml").write_text(over(name, products_of(board), rows))
        for like in (each for each, (base, _) in LIKE.items() if base == name):
            more = ("sm_registers = 131072",) if like == "sm_37" else ()
            (out / f"{like}.toml").write_text(over(name, changed_by(like), rows, LIKE[like][1], more))
    note = "GPGPU-Sim runs PTX as it is: one operation each. Facts: reference/gpgpusim/README.md and its launches.csv."
    plain = {opcode: ["int32"] for opcode in SIMULATED_PLAIN} | {name: [f"int32.{name}"] for name in ("mul24", "mad24")}
    (out / "gpgpusim_qv100.toml").write_text(text("gpgpusim_qv100", note, qv100(), plain))
    (out / "gpgpusim_gtx480.toml").write_text(text("gpgpusim_gtx480", note, gtx480(), plain))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(__file__).resolve().parent.parent / "isa")
