"""The order of the machine code, and the registers that values take meanwhile."""

import itertools

from ppt_gpu.machine.scheduling.list_scheduler import issue_order
from ppt_gpu.machine.scheduling.live_registers import Taken
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.linking.liveness import EXTRA_REGISTERS, register_weights
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.ptx.parsing.parser import parse_module


def kernel_of(body: str) -> Kernel:
    names = ".reg .f32 %f<99>; .reg .b32 %r<199>; .reg .pred %p<2>; .shared .align 16 .b8 tile[8192];"
    return parse_module(f".version 8.0\n.target sm_80\n.entry k() {{ {names} {body} }}").kernels["k"]


def ordered(body: str, registers: int, alive: tuple[str, ...] = ()) -> list[str]:
    """Operations in the order of issue; the registers `alive` are read behind the code."""
    kernel = kernel_of(body)
    mask = sum(1 << number for number, register in enumerate(kernel.registers) if register.name in alive)
    order = issue_order(kernel.instructions, register_weights(kernel), mask, registers, ())
    assert sorted(order) == list(range(len(kernel.instructions)))
    return [operation(kernel.instructions[number]) for number in order]


def runs(operations: list[str]) -> list[tuple[str, int]]:
    return [(name, len(list(members))) for name, members in itertools.groupby(operations)]


# --- registers taken --------------------------------------------------------------------------------------------------


def taken(body: str, alive: tuple[str, ...] = ()) -> list[int]:
    """Registers that are taken before the code and after each of its instructions."""
    kernel = kernel_of(body)
    mask = sum(1 << number for number, register in enumerate(kernel.registers) if register.name in alive)
    found = Taken(kernel.instructions, register_weights(kernel), mask)
    counts = [found.count]
    for number in range(len(kernel.instructions)):
        found.issue(number)
        counts.append(found.count)
    return counts


def test_a_value_takes_a_register_until_it_has_been_read_last() -> None:
    assert taken("add.f32 %f2, %f0, %f1; add.f32 %f3, %f2, %f1; add.f32 %f4, %f3, %f3;", ("%f4",)) == [2, 2, 1, 1]


def test_a_register_of_a_loop_is_free_between_its_last_use_and_the_next_turn() -> None:
    body = "neg.f32 %f1, %f0; neg.f32 %f2, %f1; add.f32 %f3, %f2, %f2; neg.f32 %f0, %f3;"
    assert taken(body, ("%f0",)) == [1] * 5  # not two: what %f0 was is not needed any more, what it will be not yet


def test_what_a_predicate_may_leave_as_it_was_is_the_same_value() -> None:
    assert taken("neg.f32 %f1, %f0; @%p1 neg.f32 %f0, %f1; neg.f32 %f2, %f0;", ("%f2",)) == [1, 2, 1, 1]


def test_what_passes_by_takes_its_register_all_the_time() -> None:
    kernel = kernel_of("neg.f32 %f1, %f0; neg.f32 %f2, %f7;")
    (passing,) = (number for number, register in enumerate(kernel.registers) if register.name == "%f7")
    found = Taken(kernel.instructions[:1], register_weights(kernel), 1 << passing)
    assert found.count == 2  # and %f0
    found.issue(0)
    assert found.count == 1 + 1  # %f1, which nobody reads, has a place all the same


# --- the order --------------------------------------------------------------------------------------------------------


def product(number: int, a: int, b: int) -> str:
    d = ", ".join(f"%r{number + part}" for part in range(2))
    a_parts = ", ".join(f"%r{a + part}" for part in range(4))
    multiply = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
    return f"{multiply} {{{d}}}, {{{a_parts}}}, {{%r{b}, %r{b + 1}}}, {{{d}}}; "


def fragment(first: int, count: int, place: int) -> str:
    names = ", ".join(f"%r{first + part}" for part in range(count))
    return f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{names}}}, [tile+{place}]; "


def test_products_and_loads_take_turns() -> None:
    """Eight products whose operands are there, and eight loads of what comes next."""
    body = "".join(fragment(100 + 4 * n, 4, 64 * n) for n in range(8))
    body += "".join(product(2 * n, 40, 50) for n in range(8))
    sums = tuple(f"%r{n}" for n in range(16)) + tuple(f"%r{n}" for n in range(100, 132))
    found = ordered(body, 255, sums)
    kinds = [name.split(".")[0] for name in found]
    assert runs(kinds) == [(kind, 1) for _ in range(8) for kind in ("load", "tensor")]


def test_fragments_of_later_steps_wait_where_registers_are_short() -> None:
    """Four steps of a product: each loads 4 and 8 fragments for 32 products, as their registers allow for one step."""
    steps = 4
    body = ""
    for step in range(steps):
        base = 100 if step % 2 == 0 else 148
        body += "".join(fragment(base + 4 * n, 4, 64 * (step * 12 + n)) for n in range(4))
        body += "".join(fragment(base + 16 + 2 * n, 2, 64 * (step * 12 + 4 + n)) for n in range(8))
        body += "".join(product(2 * (8 * i + j), base + 4 * i, base + 16 + 2 * j) for i in range(4) for j in range(8))
    sums = tuple(f"%r{n}" for n in range(64))
    found = ordered(body, 64 + 34 + EXTRA_REGISTERS, sums)
    ahead = 0
    for name in found:
        ahead += 1 if name.startswith("load") else 0
        if name.startswith("tensor"):
            break
    assert ahead <= 12


# --- few values alive -------------------------------------------------------------------------------------------------


def sums(rows: int, apart: int) -> str:
    """Two sums over rows of shared memory, the second `apart` rows ahead of the first, taking turns as in PTX."""
    loads: dict[int, str] = {}
    code = ""
    for step in range(rows):
        for one, row in (("%f0", step), ("%f1", step + apart)):
            if row not in loads:
                loads[row] = f"%f{2 + row}"
                code += f"ld.shared.f32 {loads[row]}, [tile+{4 * row}]; "
            code += f"add.f32 {one}, {one}, {loads[row]}; "
    return code


def most_taken(body: str, registers: int, fewest: bool) -> int:
    kernel = kernel_of(body)
    mask = sum(1 << number for number, register in enumerate(kernel.registers) if register.name in ("%f0", "%f1"))
    weights = register_weights(kernel)
    order = issue_order(kernel.instructions, weights, mask, registers, (), fewest)
    assert sorted(order) == list(range(len(order)))
    found = Taken(kernel.instructions, weights, mask)
    counts = [found.count]
    for number in order:
        found.issue(number)
        counts.append(found.count)
    return max(counts)


def test_sums_over_the_same_rows_wait_for_one_another_where_registers_are_few() -> None:
    body = sums(rows=40, apart=20)
    assert most_taken(body, registers=12, fewest=False) > 20  # what lies between the two stays in registers
    assert most_taken(body, registers=12, fewest=True) <= 12 - EXTRA_REGISTERS
    assert most_taken(body, registers=12, fewest=True) == 12 - EXTRA_REGISTERS  # loads are moved ahead into all of them


def test_an_order_of_few_values_is_taken_only_where_it_fits() -> None:
    body = sums(rows=40, apart=20)
    assert most_taken(body, registers=4, fewest=True) == most_taken(body, registers=4, fewest=False)
