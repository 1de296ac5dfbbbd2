"""How triton_sm80.ptx and triton_sm90.ptx were made, with Triton 3.4 and no GPU: python matmul_triton.py"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    at_a = a + row[:, None] * n + depth[None, :]
    at_b = b + depth[:, None] * n + column[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, n, K):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += K
        at_b += K * n
    tl.store(c + row[:, None] * n + column[None, :], total)


@triton.jit
def matmul_tma(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    tiles_a = tl.make_tensor_descriptor(a, [n, n], [n, 1], [M, K])
    tiles_b = tl.make_tensor_descriptor(b, [n, n], [n, 1], [K, N])
    total = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, n, K):
        total = tl.dot(tiles_a.load([row, k]), tiles_b.load([k, column]), total)
    at = c + (row + tl.arange(0, M))[:, None] * n + (column + tl.arange(0, N))[None, :]
    tl.store(at, total)


def ptx(kernel, capability, m, n, k):
    names = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32", "M": "constexpr", "N": "constexpr", "K": "constexpr"}
    divisible = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(fn=kernel, signature=names, constexprs={(4,): m, (5,): n, (6,): k}, attrs=divisible)
    options = {"num_warps": 4, "num_stages": 3, "ptx_version": 86}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]


for name, kernel, capability, depth in (
    ("sm80", matmul, 80, 32),
    ("sm90", matmul, 90, 64),
    ("tma", matmul_tma, 90, 64),
):
    text = ptx(kernel, capability, 64, 64, depth)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith((".loc", ".file"))]
    with open(f"triton_{name}.ptx", "w") as out:  # without the debug sections, which name files
        out.write("\n".join(lines).partition("\t.section")[0] + "\n")
