"""For tests of what is kept of simulations: the stages that run, GPUs with one field changed, results compared."""

from dataclasses import fields, is_dataclass, replace

import numpy as np

import ppt_gpu
from ppt_gpu import sm
from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.run import run
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.budget import Budget

K40 = load_gpu("k40")


def count_stages(monkeypatch):
    """The list to which the names of the stages that run are added."""
    found = []

    def counted(name, real):
        def call(*arguments, **options):
            found.append(name)
            return real(*arguments, **options)

        return call

    for module, name in ((run, "run"), (sm, "lower_trace"), (sm, "simulate")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    return found


def launch_of(name):
    prepared = prepare(ppt_gpu.open_workload(name), K40.compute_capability)
    return Traces(prepared.module, prepared.workload, {}, Budget()).launch(0)


def leaves(value, path=()):
    """(path, value) of every field of a GPU that is no dataclass itself; entries of mappings count as fields."""
    for field in fields(value):
        held = getattr(value, field.name)
        if is_dataclass(held):
            yield from leaves(held, (*path, field.name))
        elif field.name in ("pipes", "ops"):
            key = next(iter(held))
            for inner, found in leaves(held[key]):
                yield (*path, field.name, key, *inner), found
        else:
            yield (*path, field.name), held


def changed(value, path, new):
    """`value` with another value at `path`."""
    name, *rest = path
    if isinstance(value, dict) or hasattr(value, "keys"):
        return {**value, name: changed(value[name], rest, new) if rest else new}
    return replace(value, **{name: changed(getattr(value, name), rest, new) if rest else new})


def another(value):
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return (*value, (1, 2)) if isinstance(value, tuple) else {**value, "another": ("fp32.add",)}


class Unreadable:
    """A value that nothing can be done with."""

    def _refuse(self, *_):
        raise AssertionError("a field that the SM does not see was read")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = _refuse
    __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __neg__ = _refuse
    __int__ = __float__ = __index__ = __bool__ = __str__ = __repr__ = __iter__ = __len__ = __getitem__ = _refuse
    __hash__ = None


def same(one, other):
    """Equal, field by field, with the same types."""
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other
