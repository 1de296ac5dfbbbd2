"""Device memory: placement, content, look-up, budgets."""

import numpy as np
import pytest

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.memory.initial_memory import MemoryState, device_memory
from ppt_gpu.emulator.memory.memory import GLOBAL_BASE, DeviceMemory
from ppt_gpu.ptx.module import Module, Variable
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.fill import NUMPY_TYPES, buffer_bytes, fill
from ppt_gpu.workload.workload import Buffer, Workload


def module(*variables: Variable) -> Module:
    return Module("m.ptx", (7, 8), "sm_70", 64, {}, {}, {v.name: v for v in variables})


def test_objects_are_aligned_and_apart():
    table = Variable("table", "const", "u32", 16, 4, init=np.arange(4, dtype="u4").tobytes())
    counter = Variable("counter", "global", "u64", 8, 8, init_symbols=((0, "table", 4),))
    m = DeviceMemory.build(module(counter, table), [Buffer("a", "f32", 3), Buffer("b", "u8", 1)])
    assert m.names == ("table", "counter", "a", "b")  # constants first
    assert np.all(m.starts % 512 == 0) and m.starts[0] > GLOBAL_BASE
    assert np.all(m.starts[1:] - m.ends[:-1] >= 512)
    assert m.view("table", "u4").tolist() == [0, 1, 2, 3]
    assert int(m.view("counter", "u8")[0]) == m.address_of("table") + 4
    assert [r.name for r in m.ranges()] == ["counter", "a", "b"]


def test_content_of_buffers(tmp_path):
    np.save(tmp_path / "x.npy", np.array([1.5, 2.5]))
    buffers = [
        Buffer("i", "s16", 5, "iota"),
        Buffer("c", "f64", 2, "const:2.5"),
        Buffer("n", "f32", 2, "npy:x.npy"),
        Buffer("r", "s32", 1000, "random", seed=1, low=-3, high=4),
        Buffer("f", "f32", 1000, "random", seed=1, low=2, high=3),
        Buffer("h", "bf16", 2, "const:1.0"),
    ]
    m = DeviceMemory.build(module(), buffers, directory=tmp_path)
    assert m.view("i", "i2").tolist() == [0, 1, 2, 3, 4]
    assert m.view("c", "f8").tolist() == [2.5, 2.5]
    assert m.view("n", "f4").tolist() == [1.5, 2.5]
    assert sorted(set(m.view("r", "i4").tolist())) == list(range(-3, 5))
    assert 2 <= m.view("f", "f4").min() < 2.1 < 2.9 < m.view("f", "f4").max() < 3
    assert m.view("h", "u2").tolist() == [0x3F80, 0x3F80]
    again = DeviceMemory.build(module(), buffers, directory=tmp_path)
    assert np.array_equal(m.data, again.data)


def test_symbols_set_module_variables():
    c = Variable("coef", "const", "f32", 16, 4)
    m = DeviceMemory.build(module(c), symbols=[Buffer("coef", "f32", 4, "iota")])
    assert m.view("coef", "f4").tolist() == [0, 1, 2, 3]
    with pytest.raises(PptError, match="20 bytes, the variable only 16"):
        DeviceMemory.build(module(c), symbols=[Buffer("coef", "f32", 5)])
    with pytest.raises(PptError, match="no variable 'coeff'") as info:
        DeviceMemory.build(module(c), symbols=[Buffer("coeff", "f32", 4)])
    assert info.value.hint == "did you mean 'coef'?"


def test_nearest_buffer_tells_side_and_distance():
    m = DeviceMemory.build(module(), [Buffer("a", "f32", 4), Buffer("b", "f32", 4)])
    a, b = m.address_of("a"), m.address_of("b")
    assert m.nearest_buffer(a + 5).startswith("byte 5 of 'a'")
    assert m.nearest_buffer(a + 16).startswith("0 bytes after the end of 'a'")
    assert m.nearest_buffer(b - 4).startswith("4 bytes before 'b'")
    assert m.nearest_buffer(8) == "in no memory: a null pointer plus 8 bytes"
    assert m.nearest_buffer(1 << 33).endswith(f"before 'a' (f32, 16 bytes at {a:#x})")
    assert m.find(a + 16) == -1 and m.find(b) == 1
    nothing = DeviceMemory.build(module(), [])
    assert nothing.nearest_buffer(0) == "in no memory: a null pointer"
    assert nothing.nearest_buffer(1 << 33) == "in no memory: there are no buffers"


def test_budget_names_itself():
    with pytest.raises(BudgetError, match="budget is 1 KiB"):
        DeviceMemory.build(module(), [Buffer("a", "f32", 4096)], budget=Budget(memory=1024))


@pytest.mark.parametrize(
    ("buffer", "text"),
    [
        (Buffer("a", "f23", 4), "unknown element type 'f23'"),
        (Buffer("a", "f32", -1), "-1 elements"),
        (Buffer("a", "f32", 4, "zero"), "unknown init 'zero'"),
        (Buffer("a", "u8", 4, "const:300"), "300 does not fit u8"),
        (Buffer("a", "u8", 4, "const:x"), "'x' is not a u8 value"),
        (Buffer("a", "u8", 4, "random", low=0, high=256), "does not fit u8"),
        (Buffer("a", "f32", 4, "random", low=2, high=1), "is empty"),
        (Buffer("a", "f32", 4, "npy:missing.npy"), "no file"),
    ],
)
def test_bad_buffers_are_named(buffer, text, tmp_path):
    with pytest.raises(PptError, match=text):
        DeviceMemory.build(module(), [buffer], directory=tmp_path)


def test_two_objects_of_one_name():
    with pytest.raises(PptError, match="called 'a'"):
        DeviceMemory.build(module(), [Buffer("a", "f32", 4), Buffer("a", "f32", 4)])


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        (np.array([1.0, 2.5]), "s32", "element 1 of .* is 2.5, which s32 cannot hold"),
        (np.array([1.0, np.nan]), "u8", "element 1 of .* is nan"),
        (np.array([3, -1]), "u32", "element 1 of .* is -1, which u32 cannot hold"),
        (np.array([1 << 40]), "b32", "element 0"),
        (np.array([2.0**64]), "u64", "element 0"),
    ],
)
def test_indices_from_a_file_are_not_changed(values, kind, text, tmp_path):
    np.save(tmp_path / "x.npy", values)
    buffer = Buffer("n", kind, len(values), "npy:x.npy")
    with pytest.raises(PptError, match=text):
        fill(np.zeros(buffer_bytes(buffer), np.uint8), buffer, tmp_path)


@pytest.mark.parametrize("kind", ["u8", "s32", "b64", "u64", "f32", "bf16", "f64"])
@pytest.mark.parametrize("values", [np.array([[1.0, 0.0], [7.0, 2.0]]), np.array([[True, False]]), np.uint8([3, 250])])
def test_values_that_fit_are_converted(values, kind, tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(values))
    buffer = Buffer("n", kind, values.size, "npy:x.npy")
    raw = np.zeros(buffer_bytes(buffer), np.uint8)
    fill(raw, buffer, tmp_path)
    if kind != "bf16":
        assert raw.view(NUMPY_TYPES[kind]).tolist() == values.ravel().astype(NUMPY_TYPES[kind]).tolist()


def test_buffers_of_zeros_stay_blank_in_copies_until_they_are_written():
    state = MemoryState(
        lambda: DeviceMemory.build(module(), [Buffer("z", "f32", 4), Buffer("i", "s32", 4, "iota")]), ""
    )
    assert state.memory.blank == {"z"}
    copy = state.copy()
    assert copy.view("i", "i4").tolist() == [0, 1, 2, 3] and not copy.view("z", "f4").any()
    copy.view("i", "i4")[:] = 7
    assert state.memory.view("i", "i4").tolist() == [0, 1, 2, 3]
    state.change(lambda memory: memory.view("z", "f4").fill(2.5), "changed")
    assert state.copy().view("z", "f4").tolist() == [2.5] * 4


def test_given_contents_are_not_blank():
    kernel = parse_module(".version 7.0\n.target sm_70\n.address_size 64\n.entry k() { ret; }", "k.ptx")
    work = Workload("w", "", "k.ptx", (), buffers=(Buffer("z", "f32", 2),))
    memory = device_memory(kernel, work, {"z": np.array([1, 2], "f4")}, Budget())
    assert memory.copy().view("z", "f4").tolist() == [1, 2]
