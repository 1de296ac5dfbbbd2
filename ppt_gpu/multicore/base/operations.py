"""The RISC-like operations of the intermediate representation, and what a machine operation of PTX becomes in them.

Blem, chapter 5.2.1: micro-ops of a CPU and PTX instructions are both RISC-like, so one table of classes serves both
sides. Classes whose names begin with `dp_` work on 8-byte lanes, all others on 4-byte lanes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: class -> what it stands for
CLASSES: Mapping[str, str] = {
    "move": "register moves, sign and zero extension",
    "int_add": "integer addition, subtraction, comparison, minimum, maximum",
    "logic": "and, or, xor, not",
    "shift": "shifts and bit fields",
    "lea": "address arithmetic in one instruction",
    "select": "conditional moves and blends",
    "int_mul": "integer multiplication, bit counts",
    "int_div": "integer division and remainder",
    "fp_add": "addition, comparison, minimum of 4-byte floats or halves",
    "fp_mul": "multiplication",
    "fp_fma": "fused multiply and add",
    "fp_div": "exact division",
    "fp_sqrt": "square root",
    "fp_rcp": "approximate reciprocal and reciprocal square root",
    "fp_special": "sine, cosine, exponential, logarithm, hyperbolic tangent",
    "dp_add": "addition, comparison, minimum of 8-byte floats",
    "dp_mul": "multiplication of 8-byte floats",
    "dp_fma": "fused multiply and add of 8-byte floats",
    "dp_div": "division of 8-byte floats",
    "dp_sqrt": "square root of 8-byte floats",
    "convert": "conversion between integers and floats, and between floats",
    "shuffle": "exchange between lanes: shuffle, vote, match, pack",
    "branch": "jumps, calls, returns",
    "load": "loads from the memory that all threads share",
    "store": "stores to it",
    "atomic": "atomic operations on it",
    "local_load": "loads from memory of a group of threads, constants and parameters: cached on a CPU",
    "local_store": "stores to memory of a group of threads",
    "sync": "a meeting of the threads of a group; ends an inner loop on a CPU, where it costs nothing",
}

#: counts, bytes and threads of a program beyond this are mistakes
LARGEST = 1e18

MEMORY = ("load", "store", "atomic")
LOADS = ("load", "atomic", "local_load")
STORES = ("store", "atomic", "local_store")
#: classes that a GPU's special function units execute
SPECIAL = ("fp_rcp", "fp_sqrt", "fp_special")

_FLOAT = {
    "add": "add", "mul": "mul", "fma": "fma", "div": "div", "minmax": "add", "setp": "add", "misc": "add",
}  # fmt: skip
_SFU = {"rcp": "fp_rcp", "rsqrt": "fp_rcp", "sqrt": "fp_sqrt"}
_DOUBLE_SFU = {"rcp": "dp_div", "rsqrt": "dp_div", "sqrt": "dp_sqrt"}
_INTEGER = {
    "mul": "int_mul", "div": "int_div", "shift": "shift", "logic": "logic", "selp": "select", "mov": "move",
    "cvt": "move", "popc": "int_mul",
}  # fmt: skip
_MATRIX = re.compile(r"tensor\.mma\.(\w+)\.m(\d+)n(\d+)k(\d+)")
_WARP_GROUP = re.compile(r"tensor\.wgmma\.n(\d+)")

Parts = tuple[tuple[str, float], ...]


def of_machine_operation(name: str) -> Parts:
    """(class, how many a thread) of a machine operation ("fp32.fma", "int32.mad64", "load.shared").

    Memory fences become nothing: one thread of a CPU sees its own accesses in order. A matrix product becomes the
    multiply-adds of one thread. Raises KeyError for a name whose work is unknown.
    """
    head, _, rest = name.partition(".")
    kind = re.sub(r"(wide|hi)?(64)?$", "", rest.partition(".")[0])
    if head in ("fp32", "fp16", "fp64"):
        return ((_floating(head, kind), 1.0),)
    if head == "int32":
        return (("int_mul", 1.0), ("int_add", 1.0)) if kind == "mad" else ((_INTEGER.get(kind, "int_add"), 1.0),)
    if head == "sfu":
        return ((_SFU.get(kind, "fp_special"), 1.0),)
    if head == "tensor":
        return _matrix(name)
    if head in ("load", "store", "atomic"):
        return ((_memory(head, kind), 1.0),)
    if head == "fence":
        return ()
    return (({"branch": "branch", "barrier": "sync", "shuffle": "shuffle"}[head], 1.0),)


def _floating(head: str, kind: str) -> str:
    general = {"selp": "select", "logic": "logic", "cvt": "convert", "mov": "move"}
    if kind in general:
        return general[kind]
    if head == "fp64":
        return _DOUBLE_SFU.get(kind, "dp_" + _FLOAT.get(kind, "add"))
    return "fp_" + _FLOAT.get(kind, "add")


def _matrix(name: str) -> Parts:
    """Multiply-adds of a thread: m x n x k over the 32 lanes of a warp; wgmma is m64 k16 over 128 threads."""
    product, group = _MATRIX.fullmatch(name), _WARP_GROUP.fullmatch(name)
    if product:
        kind, m, n, k = product[1], *(int(size) for size in product.groups()[1:])
        return (("dp_fma" if kind == "f64" else "fp_fma", m * n * k / 32),)
    if group:
        return (("fp_fma", 64 * int(group[1]) * 16 / 128),)
    if name == "tensor.movmatrix":
        return (("shuffle", 1.0),)
    raise KeyError(name)


def _memory(access: str, space: str) -> str:
    if space in ("shared", "constant", "param"):
        return "local_store" if access == "store" else "local_load"
    return access


#: class -> machine operation of a GPU, for its timing
MACHINE_OPERATION: Mapping[str, str] = {
    "move": "int32.mov", "int_add": "int32.add", "logic": "int32.logic", "shift": "int32.shift", "lea": "int32.add",
    "select": "int32.selp", "int_mul": "int32.mul", "int_div": "int32.div", "fp_add": "fp32.add", "fp_mul": "fp32.mul",
    "fp_fma": "fp32.fma", "fp_div": "fp32.div", "fp_sqrt": "sfu.sqrt", "fp_rcp": "sfu.rcp", "fp_special": "sfu.sin",
    "dp_add": "fp64.add", "dp_mul": "fp64.mul", "dp_fma": "fp64.fma", "dp_div": "fp64.div", "dp_sqrt": "fp64.sqrt",
    "convert": "fp32.cvt", "shuffle": "shuffle.shfl", "branch": "branch", "sync": "barrier",
}  # fmt: skip


def lane_bytes(name: str) -> int:
    """Bytes of a lane of this class."""
    return 8 if name.startswith("dp_") else 4
