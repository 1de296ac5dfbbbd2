"""Compiled functions kept on disk under a digest of all that numba makes them from, in whichever file that stands.

numba's own cache looks at the file of a function and at the values in its closure. It runs stale code when a constant
or a function of another file changes. The digest is of contents instead: the bytecode of a function and of all
functions that it names, and the values that numba freezes into them. Comments, line numbers and times of files do not
count, and a constant may move to another file.

This module imports numba: it is imported where a function is compiled, not before.
"""

from __future__ import annotations

import dis
import inspect
import logging
import pickle
import sys
from collections.abc import Callable, Iterator
from enum import Enum, EnumMeta
from functools import cache
from hashlib import sha256
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

#: compiled forms of functions of one name (sets of types, values of closures, versions) that stay in a folder
MOST = 128

#: what all code depends on, beside the host's processor, which numba's key names
_MADE_BY = repr(
    (
        numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag, sys.hexversion,
        [getattr(config, name, None) for name in ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE")],
        [getattr(config, name, None) for name in ("DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML")],
    )
)  # fmt: skip

#: packages whose functions and classes are told by their names: `_MADE_BY` says which version they have
_VERSIONED = frozenset(("numba", "llvmlite", "numpy", *sys.stdlib_module_names))
#: types whose `repr` says all
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(...)))
#: attributes of what numba makes of a function, that change the code
_OPTIONS = ("targetoptions", "locals", "_ctor_kwargs", "_prefer_literal")
_IMPORT = dis.opmap["IMPORT_NAME"]
#: flags of code that count; where a profiler looks on, numba takes the others away from what it calls
_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

#: of each function what it was when it was first looked at: numba may have compiled it then
_first: WeakKeyDictionary[FunctionType, tuple[bytes, tuple[FunctionType, ...]]] = WeakKeyDictionary()
_log = logging.getLogger("ppt_gpu.common.compiled")


class Unknown(Exception):
    """The digest of a function cannot be told."""


def digest_of(function: FunctionType, options: object = None) -> str:
    """Of all that `function` is compiled from with these options.

    Unknown when it names a value of a kind that has no digest. Also when what it or another function names has been
    replaced in this process: numba may have compiled that function before, and does not compile it again.
    """
    chosen = _Part().of(options)
    found = sha256(_MADE_BY.encode() + chosen.text())
    order = [function, *chosen.functions]
    number = {each: place for place, each in enumerate(order)}
    for each in order:
        part = _Part().of(each.__module__, each.__name__).function(each)
        text, names = part.text(), tuple(part.functions)
        if _first.setdefault(each, (sha256(text).digest(), names)) != (sha256(text).digest(), names):
            raise Unknown(f"what {each.__qualname__} names has changed")
        for named in names:
            if named not in number:
                number[named] = len(order)
                order.append(named)
        found.update(text)
        found.update(repr([number[named] for named in names]).encode())
    return found.hexdigest()


class _Part:
    """The contents of one function as a text, and the functions that it names, whose contents are not in the text."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.functions: list[FunctionType] = []
        self._names: tuple[str, ...] = ()
        self._modules: set[int] = set()

    def text(self) -> bytes:
        return "\n".join(self.words).encode("utf-8", "surrogatepass")

    def of(self, *values: Any) -> _Part:
        for value in values:
            self._value(value)
        return self

    def function(self, function: FunctionType) -> _Part:
        """What the function is made of. Names of attributes stand among those of globals in its code: a global of the
        same name counts too, which does no harm."""
        codes = list(_codes(function.__code__))
        self._names = tuple(dict.fromkeys(name for code in codes for name in code.co_names))
        for code in codes:
            self._code(code)
        for name in self._names:
            if name in function.__globals__:
                self.words.append(name)
                self._value(function.__globals__[name])
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.words.append(name)
            try:
                self._value(cell.cell_contents)
            except ValueError:  # nothing is in it yet
                self.words.append("empty")
        return self.of(function.__defaults__, function.__kwdefaults__)

    def _code(self, code: CodeType) -> None:
        """What the code does, not where it stands."""
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _STARRED
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self.words += (code.co_name, repr(counts), repr(names), code.co_code.hex(), code.co_exceptiontable.hex())
        self._value(tuple([constant for constant in code.co_consts if not isinstance(constant, CodeType)]))
        if _IMPORT in code.co_code[::2]:
            for instruction in dis.get_instructions(code):
                if instruction.opcode == _IMPORT and not _is_versioned(instruction.argval):
                    self._value(_imported(instruction.argval))

    def _value(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, value))):
            self.words.append(repr(value))
        elif isinstance(value, ModuleType):
            self._module(value)
        elif (function := _compiled_from(value)) is not None:
            options = _options_of(value)
            self.words += options.words
            self.functions += options.functions
            self._value(function)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, Enum):
            self._class(kind)
            self.of(value.name)
        elif isinstance(value, np.ndarray | np.generic):
            self._array(value)
        elif name := _name_of(value):
            self.words.append(name)
        elif isinstance(value, FunctionType):
            self.words.append("function")
            self.functions.append(value)
        elif isinstance(value, np.dtype | np.ufunc | numba.types.Type):
            self.words.append(f"{kind.__name__} {value!r}")
        else:
            self._several(value)

    def _several(self, value: Any) -> None:
        kind = type(value)
        self._class(kind)
        if isinstance(value, slice):
            self.of(value.start, value.stop, value.step)
        elif isinstance(value, tuple) or kind is list:
            self.of(len(value), *value)
        elif kind is dict:
            self.of(tuple(value), tuple(value.values()))
        elif kind in (set, frozenset) and {type(each) for each in value} <= _PLAIN:
            self.of(*sorted(map(repr, value)))
        else:
            raise Unknown(f"a value of {kind.__module__}.{kind.__qualname__}: {value!r}")

    def _module(self, module: ModuleType) -> None:
        """What the function may read of it. The name of the module does not count."""
        if _is_versioned(module.__name__):
            self.words.append(module.__name__)
        elif id(module) not in self._modules:
            self._modules.add(id(module))
            for name in self._names:
                if hasattr(module, name):
                    self.words.append(f".{name}")
                    self._value(getattr(module, name))

    def _class(self, kind: type) -> None:
        self.words.append(f"{kind.__module__}.{kind.__qualname__}")
        if isinstance(kind, EnumMeta):
            members: dict[str, Any] = dict(kind.__members__)
            self.of({name: member.value for name, member in members.items()})
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            self.of(kind._fields, getattr(kind, "_field_defaults", None))
        elif issubclass(kind, numba.types.Type) and not _is_versioned(kind.__module__):
            # what numba does with a type of ours stands beside it
            self.words.append(inspect.getsource(sys.modules[kind.__module__]))
        elif not _is_versioned(kind.__module__):
            raise Unknown(f"the class {kind.__module__}.{kind.__qualname__}")

    def _array(self, value: Any) -> None:
        if value.dtype.hasobject:
            raise Unknown("an array of objects")
        flags = getattr(value, "flags", None)
        order = (flags.c_contiguous, flags.f_contiguous, flags.aligned) if flags is not None else None
        self.of(type(value).__name__, value.dtype, value.shape, order, value.tobytes())


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as reason:
        raise Unknown(str(reason)) from None


def _compiled_from(value: Any) -> FunctionType | None:
    """The function of which numba made this: a dispatcher or an intrinsic, also one that is deferred."""
    for name in ("py_func", "_defn"):
        function = getattr(value, name, None)
        if isinstance(function, FunctionType):
            return function
    return None


@cache
def _options_of(compiled: Any) -> _Part:
    """How numba compiles it."""
    return _Part().of("compiled", *(getattr(compiled, name, None) for name in _OPTIONS))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Of a function, and of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _name_of(value: Any) -> str:
    """The name by which a function of a package is known whose version is; "" for anything else."""
    module, name = str(getattr(value, "__module__", "")), str(getattr(value, "__name__", ""))
    known = callable(value) and _is_versioned(module) and getattr(sys.modules.get(module), name, None) is value
    return f"{module}.{name}" if known else ""


def _is_versioned(module: str) -> bool:
    return module.partition(".")[0] in _VERSIONED


def named_apart(function: Any) -> None:
    """Put its digest into the name of a function that another function makes, or that has no name.

    Such functions have the same name and different closures. numba tells their code apart by a number that counts from
    1 in each process. Two kept functions from two processes may both contain code of that name and number; the one that
    is loaded later would run the code of the first.
    """
    if "<" in function.__qualname__:
        try:
            function.__qualname__ = f"{function.__qualname__}_{digest_of(function)[:16]}"
        except Unknown as reason:  # a function that names this one is not kept either
            _log.debug("%s is not kept: %s", function.__qualname__, reason)


class _Files(CompileResultCacheImpl):
    """The files of a function. numba would put a line number into their names."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        version = f"py{sys.version_info.major}{sys.version_info.minor}{abiflags}"
        return f"{fullname.replace('<', '').replace('>', '')}.{version}"


class _Index(IndexDataCacheFile):
    """Which file has which compiled form. The oldest ones are forgotten when there are many, and their files written
    over. An index that cannot be read counts as empty."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception as reason:
            _log.debug("cannot read %s: %s", self._index_path, reason)
            return {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        while len(overloads) > MOST:
            del overloads[next(iter(overloads))]
        super()._save_index(overloads)


class KeptCode(FunctionCache):
    """The compiled forms of one function. RuntimeError or OSError where no folder for them is writable."""

    _impl_class = _Files

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        """`options`: those that it is compiled with."""
        super().__init__(function)
        self._options = options
        self._cache_file = _Index(self._cache_path, self._impl.filename_base, "contents")
        self._qualname = function.__qualname__
        self._digest = ""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The form for these types, or None. Whatever is wrong with a file, the function is compiled anew.

        numba would first read its tables of all functions that it can compile, which takes longer than anything else in
        a process that compiles nothing; to compile, it reads them then. A function that allocates memory needs them
        here: with the tables comes the allocator.
        """
        self._digest = ""
        if self._options["_nrt"]:
            target_context.refresh()
        try:
            key = self._index_key(sig, target_context.codegen())
            self._digest = key[-1]
            found = self._cache_file.load(key) or (None, b"")
            return self._impl.rebuild(target_context, pickle.loads(found[1])) if found[0] == key else None
        except Exception as reason:
            _log.debug("%s is compiled anew: %s", self._qualname, reason)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless something that it was made from changed meanwhile."""
        try:
            key = self._index_key(sig, data.codegen)
            if key[-1] == self._digest and self._impl.check_cachable(data):
                # the key stands in the file too: another process may have taken the same file for another form
                self._cache_file.save(key, (key, dumps(self._impl.reduce(data))))
        except Exception as reason:
            _log.debug("%s is not kept: %s", self._qualname, reason)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        function = self._py_func
        digest = digest_of(function, self._options)
        if "<" in self._qualname:  # as `named_apart`
            function.__qualname__ = f"{self._qualname}_{digest[:16]}"
        return sig, codegen.magic_tuple(), digest
