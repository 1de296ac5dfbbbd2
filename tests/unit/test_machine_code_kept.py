"""Machine code kept between predictions: the same when it is read again, and nothing else in its files."""

import pickle
from dataclasses import fields, replace
from hashlib import sha256

import numpy as np
import pytest

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.machine import code_cache as kept
from ppt_gpu.machine.code import machine_code
from ppt_gpu.ptx import load_module
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.binding import bind_workload
from ppt_gpu.workload.reader import load_workload

ISA = load_gpu("v100").isa


@pytest.fixture(autouse=True)
def nothing_in_memory():
    kept.forget()
    yield
    kept.forget()


def kernel_of(sample):
    workload = load_workload(sample)
    module = load_module(workload.ptx_path)
    return link(module.kernels[bind_workload(workload, module).launches[0].kernel], module), module


def assert_same(one, other):
    assert one.kernel == other.kernel and one.flow == other.flow
    assert one.kernel.origin == other.kernel.origin
    for a, b in zip(one.templates, other.templates, strict=True):
        assert a.blocks == b.blocks
        for field in ("code", "access"):
            x, y = getattr(a, field), getattr(b, field)
            assert x.dtype == y.dtype and np.array_equal(x, y)


def entries(store):
    return [path for path, _, _ in store.entries()]


@pytest.mark.parametrize("sample", ["sgemm", "stencil7", "reduction"])
def test_read_as_it_was_made(tmp_path, monkeypatch, sample):
    kernel, module = kernel_of(sample)
    store = Store(tmp_path)
    made = machine_code(kernel, 32, ISA)
    assert_same(kept.kept_machine_code(kernel, module, 32, ISA, store), made)
    kept.forget()
    monkeypatch.setattr(kept, "machine_code", None)  # not made again
    found = kept.kept_machine_code(kernel, module, 32, ISA, store)
    assert_same(found, made)
    entries(store)[0].unlink()
    assert kept.kept_machine_code(kernel, module, 32, ISA, store) is found  # from memory


def test_what_it_depends_on(tmp_path):
    kernel, module = kernel_of("sgemm")
    store = Store(tmp_path)
    for registers, isa in ((32, ISA), (40, ISA), (32, load_gpu("gtx280").isa), (32, ISA)):
        kept.kept_machine_code(kernel, module, registers, isa, store)
    assert len(entries(store)) == 3


@pytest.mark.parametrize("table", ["expand", "fuse", "unnamed"])
def test_every_table_of_the_isa_counts(tmp_path, table):
    """What one GPU left must not be taken for another whose code differs in any way."""
    kernel, module = kernel_of("sgemm")
    store = Store(tmp_path)
    assert getattr(ISA, table)
    for isa in (ISA, replace(ISA, **{table: {}})):
        assert_same(kept.kept_machine_code(kernel, module, 32, isa, store), machine_code(kernel, 32, isa))
    assert len(entries(store)) == 2


@pytest.mark.parametrize("sample", ["reduction", "vecadd"])
def test_no_gpu_finds_what_another_left(tmp_path, sample):
    kernel, module = kernel_of(sample)
    store = Store(tmp_path)
    for isa in [load_gpu(name).isa for name in ("v100", "t4", "a100", "h100", "k40")]:
        assert_same(kept.kept_machine_code(kernel, module, 32, isa, store), machine_code(kernel, 32, isa))


class Harm:
    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "other things"])
def test_damaged_files_are_dropped(tmp_path, caplog, capsys, damage):
    kernel, module = kernel_of("sgemm")
    store = Store(tmp_path)
    made = kept.kept_machine_code(kernel, module, 32, ISA, store)
    (path,) = entries(store)
    data = path.read_bytes()
    foreign = pickle.dumps((Harm(),) * len(fields(kept._Added)))
    other = pickle.dumps((1, 2))
    if damage in ("cut", "changed"):
        path.write_bytes(data[:-9] if damage == "cut" else data[:100] + bytes([data[100] ^ 1]) + data[101:])
    else:
        content = foreign if damage == "foreign" else other
        store.write(path.parent.name, path.name, sha256(content).digest() + content)
    kept.forget()
    assert_same(kept.kept_machine_code(kernel, module, 32, ISA, store), made)
    assert "damaged entry" in caplog.text
    assert "harm" not in capsys.readouterr().out
    assert path.read_bytes() == data
