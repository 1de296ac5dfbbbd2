"""Writes micro.ptx: the micro-benchmarks of Hong and Kim (ISCA 2009, Table 4 and Figure 29).

A compiler would not keep to the paper's counts, so the loops are written out: in each iteration `memory` loads, each
with six integer instructions for an address, `fp` multiply-adds that wait for the loads, and three instructions of the
loop itself; comp = fp + 6 x memory + 3, as all columns of Table 4 have it. Nothing but the multiply-adds waits: each
address instruction works on what the one before it found for the last load, each multiply-add on a sum of its own, so
that a warp spends its time on memory and on issuing, as the model has it. `python validation/hong_kim/make.py`
"""

from __future__ import annotations

from pathlib import Path

from ppt_gpu.models.hong_kim.tables import MICRO_BENCHMARKS

HEAD = """\
// Made by make.py: the micro-benchmarks Mb1 to Mb7 of Hong and Kim (ISCA 2009, Table 4), and programs A and B of their
// Figure 29 in a loop. _c: the lanes of a warp load neighbouring words; _uc: words that are 32 words apart.
.version 6.0
.target sm_30
.address_size 64
"""

ENTRY = """
.visible .entry {name}(.param .u64 data, .param .u64 out, .param .u32 mask, .param .u32 iterations)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<16>;
    .reg .b64 %d<16>;
    .reg .f32 %f<32>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [mask];       // words of the data - 1, a power of two - 1
    ld.param.u32 %r2, [iterations];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;  // the thread
    mov.u32 %r7, %nctaid.x;
    mul.lo.u32 %r8, %r7, %r4;
    shl.b32 %r9, %r6, {spread};  // the word that it loads first
    shl.b32 %r10, %r8, {spread};  // and how far the next one is
    and.b32 %r12, %r9, %r1;
    shl.b32 %r13, %r12, 2;
    cvt.u64.u32 %d5, %r13;
    add.u64 %d6, %d1, %d5;
{sums}
    mov.u32 %r11, 0;
loop:
{body}
    add.u32 %r11, %r11, 1;
    setp.lt.u32 %p1, %r11, %r2;
    @%p1 bra loop;
    ld.param.u64 %d2, [out];
    mul.wide.u32 %d3, %r6, 4;
    add.u64 %d4, %d2, %d3;
    st.global.f32 [%d4], %f16;
    ret;
}}
"""

LOAD = """\
    add.u64 %d7, %d6, 0;
    add.u64 %d6, %d1, %d5;
    cvt.u64.u32 %d5, %r13;
    shl.b32 %r13, %r12, 2;
    and.b32 %r12, %r9, %r1;
    add.u32 %r9, %r9, %r10;
    ld.global.f32 %f1, [%d7];"""

#: %f16 to %f25
SUMS = 10
START = "\n".join(f"    mov.f32 %f{16 + k}, 0f3F800000;" for k in range(SUMS))


def multiply_adds(first: int, count: int, value: str) -> list[str]:
    """Multiply-adds number `first` and on, each on the next sum."""
    sums = [16 + (first + k) % SUMS for k in range(count)]
    return [f"    fma.rn.f32 %f{k}, %f{k}, 0f3F000000, {value};" for k in sums]


def loop_body(memory: int, fp: int) -> str:
    """Loads, each followed by its share of the multiply-adds, the first of which waits for it."""
    lines = [] if memory else multiply_adds(0, fp, "0f3F000000")
    done = 0
    for load in range(memory):
        share = (fp + memory - 1 - load) // memory
        lines += [LOAD, *multiply_adds(done, share, "%f1")]
        done += share
    return "\n".join(lines)


def figure_29(barrier: bool) -> str:
    """Program A (with the barrier) or B: load, multiply, store."""
    wait = "    bar.sync 0;\n" if barrier else ""
    return f"{LOAD}\n    mul.f32 %f3, %f1, 0f41200000;\n{wait}    st.global.f32 [%d7], %f3;"


def module() -> str:
    """The text of micro.ptx."""
    bodies = {name.lower(): loop_body(each.memory, each.fp) for name, each in MICRO_BENCHMARKS.items()}
    bodies |= {"sync_a": figure_29(True), "sync_b": figure_29(False)}
    entries = [
        ENTRY.format(name=f"{name}_{access}", spread=spread, sums=START, body=body)
        for name, body in bodies.items()
        for access, spread in (("c", 0), ("uc", 5))
    ]
    return HEAD + "".join(entries)


if __name__ == "__main__":
    (Path(__file__).resolve().parent / "micro.ptx").write_text(module())
