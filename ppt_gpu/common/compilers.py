"""How numba is asked to compile: functions that Python calls, and those that only compiled functions call.

The machine code of the first is kept on disk. Of the others only LLVM's intermediate code is made: numba would optimise
each and turn it into machine code, with all functions that it calls in it, so that what is called through four others
would be compiled five times. Here it is compiled once, as a part of the function that Python calls.

Then the types of a table of records, and of a record of tables (common.records): numba has a pointer to numbers, but
none whose elements are records that can be written to. This module imports numba: it is imported where a function is
compiled, not before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any

from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.datamodel import models, register_default
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_getattr_generic

from ppt_gpu.common.compiled_cache import KeptCode, named_apart


def kept(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function that Python calls."""
    made = njit(**options)(function)
    with suppress(RuntimeError, OSError):
        made._cache = KeptCode(function, options)
    return made


def linked(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function that only compiled functions call."""
    named_apart(function)
    made = njit(pipeline_class=_LinkOnly, **options)(function)
    made.__class__ = _Helper
    return made


def extended(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Instructions for compiled code."""
    return intrinsic(function, **options)


class _Codegen:
    """numba's code generator, which has no place in memory for what these functions would keep there."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Constants that Python made: compiled functions here use none."""


class _Library(JITCodeLibrary):
    """The code of a function, to be linked into others."""

    @property
    def codegen(self) -> Any:
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None:
        """Done where it is called."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _LinkOnly(Compiler):
    """numba's compiler, for functions that are linked."""

    def compile_extra(self, function: Any) -> Any:
        self.state.library = _Library(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class _Helper(CPUDispatcher):
    """Such a function as Python sees it: no machine code is made of it alone."""

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.__name__} is for compiled code, which alone can call it")


def _short(*whatever: Any) -> str:
    """Names of types become parts of the names of functions, hundreds of times."""
    return sha256(repr(whatever).encode()).hexdigest()[:12]


class RecordPointer(types.Type):
    """Where records of one type stand, one after another."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"RecordPointer({_short(dtype)})")


@register_default(RecordPointer)
class _RecordPointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.dtype).get_value_type())


@infer_global(operator.getitem)
class _Indexed(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], RecordPointer) and isinstance(args[1], types.Integer):
            return signature(args[0].dtype, args[0], types.int64)
        return None


@lower_builtin(operator.getitem, RecordPointer, types.Integer)
def _element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.gep(args[0], [args[1]], inbounds=True)


class View(types.Type):
    """A record of numbers and tables: what each field holds, as of common.records. `known`: fields of which the
    compiler knows the value."""

    def __init__(self, name: str, fields: dict[str, Any], known: dict[str, int] | None = None) -> None:
        self.kind, self.held, self.known = name, fields, known or {}
        self.place = {field: place for place, field in enumerate(fields)}
        self.fields = {field: _table_of(held) for field, held in fields.items()}
        super().__init__(name=f"View({name}, {_short(fields, self.known)})")

    def knowing(self, field: str, value: int) -> View:
        """The type of a view of which one more field is known."""
        return View(self.kind, self.held, {**self.known, field: value})


def _table_of(held: Any) -> Any:
    """The type of a table that holds this, of a number where it is None."""
    if held is None:
        return types.int64
    kind = from_dtype(held)
    return RecordPointer(kind) if isinstance(kind, types.Record) else types.CPointer(kind)


@register_default(View)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@infer_getattr
class _ViewFields(AttributeTemplate):
    key = View

    def generic_resolve(self, view: Any, name: str) -> Any:
        return view.fields.get(name)


@lower_getattr_generic(View)
def _field(context: Any, builder: Any, view: Any, value: Any, name: str) -> Any:
    if name in view.known:
        return ir.Constant(ir.IntType(64), view.known[name])
    kind = view.fields[name]
    place = builder.gep(value, [ir.Constant(ir.IntType(64), view.place[name])], inbounds=True)
    if kind != types.int64:
        place = builder.bitcast(place, context.get_value_type(kind).as_pointer())
    field = builder.load(place)
    field.set_metadata("invariant.load", builder.module.add_metadata([]))
    return field
