"""From machine instructions (SASS) to the names of machine operations that ISA files have timings for.

The opcodes are those of the instruction set tables in NVIDIA's "CUDA Binary Utilities", Kepler to Blackwell. The first
part of an opcode decides, but for the few that `operation` looks at more closely.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ppt_gpu.common.errors import PptError, did_you_mean

#: machine operation -> first parts of the opcodes that are one
_GROUPS = {
    "int32.add": "IADD3 IADD IADD32I ISUB LEA ISCADD ISCADD32I VIADD IABS VIADDMNMX LEPC",
    "int32.mul": "IMUL IMUL32I",
    "int32.mad": "IMAD IDP IMADSP IDP4A",
    "int32.xmad": "XMAD",
    "int32.mov": "MOV MOV32I CS2R B2R P2R R2P R2B RPCMOV GETLMEMBASE SETLMEMBASE",
    "int32.special": "S2R",
    "int32.shift": "SHF SHL SHR",
    "int32.misc": "SGXT BMSK PRMT BFE BFI RRO VABSDIFF VABSDIFF4 VADD VMNMX VSHL VSHR VSET VSETP VMAD VADD2 VADD4 ISAD "
    "LDSLK STSCUL VHMNMX MOVM",
    "int32.logic": "LOP3 LOP LOP32I",
    "int32.setp": "ISETP ISET PSETP CSETP PLOP3 QSPC CSET PSET",
    "int32.selp": "SEL ICMP",
    "int32.minmax": "IMNMX VIMNMX VIMNMX3",
    "int32.popc": "POPC FLO BREV",
    "int32.cvt": "I2I I2IP",
    "int32.uniform": "ULDC UMOV UIADD3 UIMAD ULEA ULOP ULOP3 ULOP32I USHF USHL USHR USEL UISETP UPLOP3 UPSETP UPRMT "
    "USGXT UBMSK UFLO UPOPC UBREV UP2UR UR2UP UCLEA R2UR S2UR CS2UR VOTEU UIABS UVIMNMX UVIADD UI2F UF2F UF2I UI2I "
    "UI2FP UI2IP UF2FP UF2IP UFRND UFFMA UFADD UFMUL UFMNMX UFSEL UFSET UFSETP USTGR UMEMSETS UGETNEXTWORKID",
    "fp32.add": "FADD FADD32I FADD2 FSWZADD",
    "fp32.mul": "FMUL FMUL32I FMUL2",
    "fp32.fma": "FFMA FFMA32I FFMA2",
    "fp32.minmax": "FMNMX FMNMX3",
    "fp32.setp": "FSETP FSET FCHK",
    "fp32.selp": "FSEL FCMP",
    "fp32.cvt": "I2F F2I FRND F2F",
    "fp32.cvtfast": "I2FP F2IP",
    "fp64.add": "DADD",
    "fp64.mul": "DMUL",
    "fp64.fma": "DFMA",
    "fp64.minmax": "DMNMX",
    "fp64.setp": "DSETP DSET",
    "fp16.add": "HADD2 HADD2_32I",
    "fp16.mul": "HMUL2 HMUL2_32I",
    "fp16.fma": "HFMA2 HFMA2_32I",
    "fp16.minmax": "HMNMX2",
    "fp16.setp": "HSETP2 HSET2",
    "fp16.cvt": "F2FP",
    "branch": "BRA BRX BRXU CALL CAL JCAL RET BRK BREAK JMP JMX JMXU CONT KILL BPT RTT",
    "branch.ret": "EXIT",
    "branch.sync": "BSSY BSYNC SSY SYNC PBK PCNT PRET WARPSYNC BMOV YIELD NANOSLEEP NOP DEPBAR LDGDEPBAR PREEXIT "
    "ENDCOLLECTIVE WARPGROUP WARPGROUPSET PMTRIG ACQBULK ACQSHMINIT SETCTAID CSMTEST VOTE_VTG",
    "shuffle.shfl": "SHFL",
    "shuffle.vote": "VOTE ELECT",
    "shuffle.match": "MATCH",
    "shuffle.redux": "REDUX CREDUX",
    "barrier": "BAR",
    "barrier.cluster": "UCGABAR_ARV UCGABAR_WAIT",
    "fence": "MEMBAR FENCE",
    "fence.async": "ERRBAR CGAERRBAR CCTL CCTLL CCTLT UTMACCTL UTMAPF UTMACMDFLUSH SYNCS ARRIVES UBLKPF",
    "tensor.wgmma": "IGMMA QGMMA BGMMA",
    "tensor.tcgen05": "UTCHMMA UTCIMMA UTCQMMA UTCOMMA",
    "load.generic": "LD",
    "load.global": "LDG LDGSTS TEX TLD TLD4 TEXS TLDS TLD4S TMML TXA TXD TXQ SULD SUQUERY UBLKCP UTMALDG LDGMC",
    "load.local": "LDL",
    "load.shared": "LDS LDSM",
    "load.constant": "LDC LDCU",
    "store.generic": "ST",
    "store.global": "STG SUST UTMASTG",
    "store.local": "STL",
    "store.shared": "STS STSM STAS",
    "atomic.generic": "ATOM",
    "atomic.global": "ATOMG RED REDG SUATOM SURED UTMAREDG UBLKRED",
    "atomic.shared": "ATOMS REDAS",
}  # fmt: skip
_BY_OPCODE = {opcode: name for name, opcodes in _GROUPS.items() for opcode in opcodes.split()}
_MUFU = {"RCP": "rcp", "RCP64H": "rcp", "RSQ": "rsqrt", "RSQ64H": "rsqrt", "SQRT": "sqrt", "SIN": "sin", "COS": "cos",
         "EX2": "ex2", "LG2": "lg2", "TANH": "tanh"}  # fmt: skip
_PRODUCTS = ("HMMA", "IMMA", "DMMA", "QMMA", "BMMA")
#: shapes as opcodes of matrix products write them, where they are not of the form 16x8x16
_SHAPES = {"884": (8, 8, 4), "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
           "16864": (16, 8, 64), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128), "168128": (16, 8, 128),
           "168256": (16, 8, 256)}  # fmt: skip
_LONG = re.compile(r"\d+x\d+x\d+")
#: opcodes that work on pairs of registers where they say so (sm_120): elsewhere 64 bit takes two of them
_WHOLE_64 = frozenset(("IADD", "ISETP", "SEL", "MOV", "IMNMX", "VIMNMX"))
_WIDE = frozenset(("64", "U64", "S64"))
_CONVERTED_64 = frozenset(("F64", "U64", "S64"))  # conversions from and to 64 bit have a rate of their own (CPGT3)


@lru_cache(maxsize=4096)
def operation(opcode: str) -> str | None:
    """The operation of a whole opcode ("IMAD.WIDE.U32"), None when its first part is none of an NVIDIA GPU."""
    head, *rest = opcode.split(".")
    if head == "MUFU":
        return f"sfu.{_MUFU.get(rest[0] if rest else '', 'rcp')}"
    if head == "IMAD" and "WIDE" in rest:
        return "int32.madwide"
    if head == "IMAD" and "HI" in rest:
        return "int32.madhi"
    if head in ("I2F", "F2I", "FRND", "F2F") and not _CONVERTED_64.isdisjoint(rest):
        return "fp64.cvt"
    if head in _WHOLE_64 and not _WIDE.isdisjoint(rest):
        return f"{_BY_OPCODE[head]}64"
    if head == "HADD2" and "F32" in rest:
        return "fp16.cvt"
    if head in _PRODUCTS or head == "HGMMA":
        return _product(head, rest)
    return _BY_OPCODE.get(head)


def _product(head: str, rest: list[str]) -> str:
    """Rate class and shape, as the operations of PTX products are called (`ppt_gpu.ptx.operations`)."""
    if head == "HMMA" and "884" in rest:  # one step of four, or of two with sums in f16
        return "tensor.hmma884" + ("f16" if "F16" in rest[1:2] else "")
    written = next((part for part in rest if part in _SHAPES or _LONG.fullmatch(part)), "")
    if not written:
        return "tensor"
    m, n, k = _SHAPES.get(written) or tuple(int(size) for size in written.split("x"))
    if head == "HGMMA":
        return f"tensor.wgmma.n{n}"
    kind = {"IMMA": "s8", "DMMA": "f64", "QMMA": "f8", "BMMA": "b1"}.get(head, "f16")
    if head == "IMMA" and {"S4", "U4"} & set(rest):
        kind = "s4"
    if head == "HMMA" and "TF32" in rest:
        kind = "tf32"
    elif head == "HMMA" and "F16" in rest:
        kind = "f16acc"
    return f"tensor.mma.{kind}.m{m}n{n}k{k}"


def known_operation(opcode: str) -> str:
    """As `operation`; PptError, without a place, for an unknown opcode."""
    found = operation(opcode)
    if found is None:
        head = opcode.partition(".")[0]
        raise PptError(f"unknown SASS opcode '{head}'", hint=did_you_mean(head, (*_BY_OPCODE, *_PRODUCTS, "MUFU")))
    return found
