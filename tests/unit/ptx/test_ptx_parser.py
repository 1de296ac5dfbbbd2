"""The parser on real compiler output and on the file of traps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.instructions import form, operation
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Module, Operand, Pair, Part, Reg, Sink, Sym, Target, Vec
from ppt_gpu.ptx.parsing.parser import load_module, parse_module, select_kernel

DATA = Path(__file__).parents[2] / "data" / "ptx"
FIXTURES = sorted(DATA.glob("*.ptx"))
REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "gpgpusim"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.fixture(scope="module")
def traps() -> Module:
    return load_module(DATA / "traps.ptx")


@pytest.fixture(scope="module")
def kernel(traps: Module) -> Kernel:
    return traps.kernels["traps"]


def kernel_of(body: str, before: str = "") -> Kernel:
    return parse_module(f"{HEAD}{before}.visible .entry k(.param .u64 p)\n{{\n{body}\nret;\n}}\n").kernels["k"]


def registers_in(operand: Operand) -> Iterator[int]:
    """The ids in an operand, found without the parser's own bookkeeping."""
    if isinstance(operand, Reg):
        yield operand.id
    elif isinstance(operand, Part) or type(operand).__name__ == "Neg":
        yield operand.reg.id  # type: ignore[union-attr]
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, Mem):
        if isinstance(operand.base, Reg):
            yield operand.base.id
        for item in operand.indices:
            yield from registers_in(item)


def named(kernel: Kernel, ids: tuple[int, ...]) -> list[str]:
    return [kernel.registers[register].name for register in ids]


def find(kernel: Kernel, opcode: str, number: int = 0) -> Instruction:
    return [i for i in kernel.instructions if i.opcode == opcode][number]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_instruction_is_understood(path: Path) -> None:
    module = load_module(path)
    for kernel in [*module.kernels.values(), *module.functions.values()]:
        for index, instruction in enumerate(kernel.instructions):
            assert instruction.index == index
            assert operation(instruction)
            ids = {r for operand in instruction.operands for r in registers_in(operand)}
            ids |= {instruction.guard.reg} if instruction.guard else set()
            carry = {r for r, register in enumerate(kernel.registers) if register.name == "%cc"}
            assert ids == (set(instruction.reads) | set(instruction.writes)) - carry
            for target in instruction.operands:
                if isinstance(target, Target) and instruction.base == "bra":
                    assert kernel.labels[target.name] == target.index


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_positions_point_at_the_text(path: Path) -> None:
    module = load_module(path)
    for kernel in module.kernels.values():
        for instruction in kernel.instructions:
            text = module.lines[instruction.line - 1][instruction.column - 1 :]
            assert text.startswith("@" if instruction.guard else instruction.opcode)


def test_reference_kernels_parse() -> None:
    if not REFERENCE.is_dir():
        pytest.skip("../shared/reference/gpgpusim is not here")
    paths = sorted(REFERENCE.glob("ptx*/*.ptx"))
    assert sum(len(load_module(path).kernels) for path in paths) >= 40


def test_header(traps: Module) -> None:
    assert (traps.version, traps.target, traps.address_size) == ((8, 5), "sm_90a", 64)
    assert list(traps.kernels) == ["traps"]
    assert set(traps.functions) == {"later", "register_function", "another_name", "quiet"}


def test_variables(traps: Module) -> None:
    variables = traps.variables
    assert variables["dynamic_shared"].extern and variables["dynamic_shared"].bytes == 0
    assert variables["weak_value"].init == b"\x10\0\0\0"
    assert variables["grid"].init == b"".join(n.to_bytes(4, "little", signed=True) for n in (1, 2, 0, -3, 5, 15))
    assert variables["pointers"].init_symbols == ((0, "grid", 0), (8, "pool", 8), (16, "later", 0))
    assert variables["packed"].init_symbols == ((1, "pool", 0),)
    assert variables["doubles"].bytes == 16
    assert (variables["vector_variable"].bytes, variables["vector_variable"].align) == (16, 16)
    assert (variables["first"].init, variables["second"].init) == (b"\1\0", None)
    assert variables["third"].init == b"\xff\xff\x00\x80"


def test_parameters(kernel: Kernel) -> None:
    assert [(p.name, p.offset, p.bytes, p.pointer_space) for p in kernel.params] == [
        ("out", 0, 8, "global"),
        ("structure", 8, 24, ""),
        ("small", 32, 1, ""),
        ("wide", 40, 8, ""),
    ]
    assert kernel.directives == {"maxntid": (128, 2, 1), "minnctapersm": (3,), "maxnreg": (64,)}


def test_names_of_scopes_are_unique(kernel: Kernel) -> None:
    names = [register.name for register in kernel.registers]
    assert len(names) == len(set(names))
    assert {"%r1", "%r1@1", "%r1@2", "p", "p@1", "p@3"} <= set(names)
    variables = [variable.name for variable in kernel.variables]
    assert len(variables) == len(set(variables))
    assert {"argument", "argument@2", "a", "a@5"} <= set(variables)
    again = [i for i in kernel.instructions if i.base == "bra" and i.operands[0].name.startswith("again")]  # type: ignore[union-attr]
    assert [i.operands[0].name for i in again] == ["again", "again@3"]  # type: ignore[union-attr]
    assert all(i.operands[0].index == i.index for i in again)  # type: ignore[union-attr]


def test_memory_operands(kernel: Kernel) -> None:
    rd1 = next(i for i, register in enumerate(kernel.registers) if register.name == "%rd1")
    load = find(kernel, "ld.global.v2.b32")
    assert load.operands[1] == Mem(Reg(rd1), -4)
    assert isinstance(load.operands[0], Vec) and isinstance(load.operands[0].items[1], Sink)
    assert find(kernel, "ld.param.u64", 1).operands[1] == Mem(Sym("structure"), 8)
    assert find(kernel, "ld.global.u32").operands[1] == Mem(None, 16)
    assert find(kernel, "ld.global.u32", 1).operands[1] == Mem(None, 40)
    texture = find(kernel, "tex.2d.v4.f32.s32").operands[1]
    assert isinstance(texture, Mem) and texture.base == Sym("old_texture")
    assert texture.indices[0] == Sym("old_sampler") and len(texture.indices) == 3


def test_reads_and_writes(kernel: Kernel) -> None:
    def both(instruction: Instruction) -> tuple[list[str], list[str]]:
        return named(kernel, instruction.reads), named(kernel, instruction.writes)

    assert both(find(kernel, "setp.lt.and.s32")) == (["%r1", "%r2", "%p1"], ["p", "q"])
    assert both(find(kernel, "st.v4.f32")) == (["%rd1", "v.x", "v.y", "v.z", "v.w"], [])
    assert both(find(kernel, "atom.global.add.f32")) == (["%rd1", "%f1"], [])
    assert both(find(kernel, "shfl.sync.down.b32")) == (["%r6"], ["%r7", "%p1"])
    assert both(find(kernel, "bar.red.popc.u32")) == (["p"], ["%r1"])
    assert both(find(kernel, "add.cc.s32")) == (["%r2", "%r3"], ["%r1", "%cc"])
    assert both(find(kernel, "addc.s32")) == (["%r5", "%cc"], ["%r4"])
    assert both(find(kernel, "call", 1)) == (["%r2", "%f1"], ["%r1"])
    assert both(find(kernel, "mov.u32")) == (["p"], ["%r6"])


def test_calls(kernel: Kernel) -> None:
    direct = find(kernel, "call.uni")
    assert direct.operands == (Vec((Sym("r"),)), Sym("later"), Vec((Sym("a"), Sym("s"))))
    indirect = find(kernel, "call")
    assert isinstance(indirect.operands[1], Reg)
    assert indirect.operands[3] == Target("prototype_2")
    assert [p.bytes for p in kernel.prototypes["prototype_2"].params] == [4]
    assert find(kernel, "call", 2).operands == (Vec(()), Sym("quiet"), Vec(()))


def test_jump_list(kernel: Kernel) -> None:
    expected = tuple(kernel.labels[name] for name in ("first_case", "second_case", "done"))
    assert kernel.branch_tables == {"jump_list": expected}
    assert kernel.labels["second_case"] == kernel.labels["second_label"]
    assert kernel.labels["at_end"] == len(kernel.instructions)


def test_source_lines() -> None:
    kernel = load_module(DATA / "control_lines.ptx").kernels["_Z7foreverPVi"]
    source = (DATA / "control.cu").read_text().split("\n")
    loads = [i for i in kernel.instructions if i.opcode.startswith("ld.volatile")]
    assert loads and all("*flag" in source[i.source_line - 1] for i in loads)


def test_by_value_structure() -> None:
    kernel = load_module(DATA / "calls.ptx").kernels["_Z11call_directPf8Particlei"]
    assert [(p.bytes, p.align, p.offset) for p in kernel.params] == [(8, 8, 0), (32, 8, 8), (4, 4, 40)]


def test_function_table_and_strings() -> None:
    module = load_module(DATA / "calls.ptx")
    assert [symbol for _, symbol, _ in module.variables["table"].init_symbols] == ["_Z5scaleff", "_Z5shiftff"]
    assert module.variables["$str"].init == b"%d %f\n\0"
    assert not module.functions["vprintf"].has_body
    assert module.functions["_Z4move8Particlef"].returns[0].bytes == 32


def test_registers_of_a_function_are_parameters(traps: Module) -> None:
    function = traps.functions["register_function"]
    assert [p.register for p in (*function.returns, *function.params)] == [0, 1, 2]


def test_ranges_are_lazy_when_they_are_huge() -> None:
    kernel = kernel_of(".reg .b32 %r<4000000000>; .reg .b32 %s1<3>; mov.b32 %r3999999999, %s12;")
    assert {r.name for r in kernel.registers} == {"%r3999999999", "%s10", "%s11", "%s12"}


def test_129_registers_in_one_instruction() -> None:
    items = ", ".join(f"%f{i}" for i in range(128))
    opcode = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
    kernel = kernel_of(f".reg .f32 %f<128>; .reg .b64 %rd<3>; {opcode} {{{items}}}, %rd1, %rd2, 1, 1, 1, 0, 0;")
    multiply = kernel.instructions[0]
    assert len(multiply.writes) == 128 and len(multiply.reads) == 130


def test_numbered_variables() -> None:
    kernel = kernel_of(".shared .align 8 .b32 s<3>; .reg .b32 %r<2>; ld.shared.b32 %r1, [s2];")
    assert [(v.name, v.bytes, v.align) for v in kernel.variables] == [(f"s{n}", 4, 8) for n in range(3)]
    with pytest.raises(PptError, match="at most 4096"):
        kernel_of(".shared .b32 s<5000>;")


def test_numbered_labels() -> None:
    kernel = kernel_of(".reg .b32 %r; N0: list: .branchtargets N<2>, end; brx.idx %r, list; N1: ret; end: ret;")
    assert kernel.branch_tables["list"] == (0, 1, 2)
    with pytest.raises(PptError, match="label 'N1' is not defined"):
        kernel_of(".reg .b32 %r; N0: list: .branchtargets N<2>; brx.idx %r, list;")


def test_elements_of_vector_registers() -> None:
    kernel = kernel_of(
        ".reg .v4 .f32 v; .reg .f32 %f; mov.f32 %f, v.x; mov.f32 %f, v.r; mov.f32 %f, v.w; mov.f32 %f, v.a;"
    )
    reads = [i.reads for i in kernel.instructions[:4]]
    assert reads[0] == reads[1] != reads[2] == reads[3]


@pytest.mark.parametrize("text", ["%r1,%r2,%r3", " %r1 ,\t%r2 , %r3 ", "%r1,\n  %r2,\n  %r3"])
def test_white_space_between_operands(text: str) -> None:
    add = kernel_of(f".reg .b32 %r<4>; add.s32 {text};").instructions[0]
    assert (len(add.writes), len(add.reads)) == (1, 2)


def test_select_kernel(traps: Module) -> None:
    assert select_kernel(traps).name == "traps"
    assert select_kernel(traps, "traps").name == "traps"
    with pytest.raises(PptError, match="no kernel 'trap'") as error:
        select_kernel(traps, "trap")
    assert error.value.hint == "did you mean 'traps'?"
    with pytest.raises(PptError, match="kernels: say which"):
        select_kernel(load_module(DATA / "calls.ptx"))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PptError, match="cannot read the file"):
        load_module(tmp_path / "none.ptx")


def test_parsing_twice_gives_the_same() -> None:
    assert load_module(DATA / "traps.ptx") == load_module(DATA / "traps.ptx")


def test_nothing_is_left_for_the_garbage_collector() -> None:
    import gc

    load_module(DATA / "traps.ptx")
    gc.collect()
    gc.disable()
    try:
        load_module(DATA / "calls.ptx")
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_base_and_modifiers() -> None:
    add = kernel_of(".reg .f32 %f<3>; add.rn.ftz.f32 %f1, %f2, 0f3F800000;").instructions[0]
    assert (add.base, add.modifiers) == ("add", ("rn", "ftz", "f32"))
    assert form(add.opcode).modifiers == add.modifiers
