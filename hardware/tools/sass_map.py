"""From machine instructions (SASS) to the names of machine operations, for the expansions of make_isa.py."""

from __future__ import annotations

#: SASS opcode (first part) -> operation. "" is left out of an expansion: scheduling hints, uniform-datapath constants
#: and the constant loads of a kernel's parameters, which cost no issue slot worth modelling.
_GROUPS = {
    "int32.add": "IADD3 IADD IADD32I ISUB LEA ISCADD VIADD IABS",
    "int32.mul": "IMUL IMUL32I",
    "int32.mad": "IMAD IDP",
    "int32.xmad": "XMAD",
    "int32.mov": "MOV MOV32I CS2R S2R B2R",
    "int32.shift": "SHF SHL SHR",
    "int32.misc": "SGXT BMSK PRMT BFE BFI RRO VABSDIFF VABSDIFF4 VADD VMNMX ISAD LDSLK STSCUL",
    "int32.logic": "LOP3 LOP LOP32I",
    "int32.setp": "ISETP ISET PSETP CSETP PLOP3 QSPC",
    "int32.selp": "SEL ICMP",
    "int32.minmax": "IMNMX VIMNMX VIMNMX3",
    "int32.popc": "POPC FLO BREV",
    "int32.cvt": "I2I I2IP",
    "fp32.add": "FADD FADD2",
    "fp32.mul": "FMUL",
    "fp32.fma": "FFMA FFMA2",
    "fp32.minmax": "FMNMX",
    "fp32.setp": "FSETP FSET FCHK",
    "fp32.selp": "FSEL FCMP",
    "fp32.cvt": "I2F F2I FRND F2F",
    "fp32.cvtfast": "I2FP F2IP",
    "fp64.add": "DADD",
    "fp64.mul": "DMUL",
    "fp64.fma": "DFMA",
    "fp64.minmax": "DMNMX",
    "fp64.setp": "DSETP DSET",
    "fp16.add": "HADD2",
    "fp16.mul": "HMUL2",
    "fp16.fma": "HFMA2",
    "fp16.minmax": "HMNMX2",
    "fp16.setp": "HSETP2",
    "fp16.cvt": "F2FP",
    "branch": "BRA CALL CAL RET BRK BREAK JMP",
    "branch.sync": "BSSY BSYNC SSY SYNC PBK",
    "shuffle.shfl": "SHFL",
    "shuffle.vote": "VOTE ELECT",
    "shuffle.match": "MATCH",
    "shuffle.redux": "REDUX CREDUX",
    "barrier": "BAR",
    "fence": "MEMBAR",
    "": "NOP DEPBAR BMOV WARPSYNC LDC LDCU ULDC UMOV UIADD3 UI2F UISETP USHF UFFMA S2UR R2UR ERRBAR CGAERRBAR CCTL "
    "LDGDEPBAR NANOSLEEP",
}  # fmt: skip
_BY_OPCODE = {opcode: name for name, opcodes in _GROUPS.items() for opcode in opcodes.split()}
_MUFU = {"RCP": "rcp", "RCP64H": "rcp", "RSQ": "rsqrt", "RSQ64H": "rsqrt", "SQRT": "sqrt", "SIN": "sin", "COS": "cos",
         "EX2": "ex2", "LG2": "lg2", "TANH": "tanh"}  # fmt: skip


def operation(sass: str) -> str | None:
    """The operation of a SASS instruction as printed ("IMAD.WIDE.U32", "<MUFU.RCP>"), "" for none, None if unknown."""
    parts = sass.strip("<>").split(".")
    head, rest = parts[0], parts[1:]
    if head == "MUFU":
        return f"sfu.{_MUFU[rest[0]]}"
    if head == "IMAD" and "WIDE" in rest:
        return "int32.madwide"
    if head == "IMAD" and "HI" in rest:
        return "int32.madhi"
    if head in ("I2F", "F2I", "FRND", "F2F") and "F64" in rest:
        return "fp64.cvt"
    if head == "HADD2" and "F32" in rest:
        return "fp16.cvt"
    if head in ("HMMA", "IMMA", "DMMA", "QMMA", "BMMA"):
        shape = next((part for part in rest if part.isdigit()), "")
        return f"tensor.{head.lower()}{shape}" + ("f16" if rest[-1] == "F16" and head == "HMMA" else "")
    return _BY_OPCODE.get(head)
