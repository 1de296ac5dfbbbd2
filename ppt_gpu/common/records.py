"""Tables whose rows are records of named words: `table[place].word` in compiled code, `table["word"]` in NumPy."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import intrinsic

Words = NDArray[np.int64]
Row = TypeVar("Row", covariant=True)
BYTES, LINE = 8, 8  # of a word; words of a line of the host's caches


class Table(Protocol[Row]):
    """Records one after another, as compiled code sees them: an array in NumPy."""

    def __getitem__(self, place: int, /) -> Row: ...


class Rows(Protocol[Row]):
    """Tables of as many records each: an array of two dimensions."""

    shape: tuple[int, int]

    def __len__(self) -> int: ...

    def __getitem__(self, place: tuple[int, int], /) -> Row: ...


class Record:
    """A class that derives from this names the words of a record, all int64, by its annotations in their order.

    Or it is a record of tables and numbers, which `addresses` makes and a `viewer` looks at.

    `dtype`: the record of words as a type of NumPy. Its size is a power of two, or whole lines of the host's caches.
    `fields`: what the table holds that a field is; None: the field is a number.
    """

    dtype: ClassVar[np.dtype[np.void]]
    fields: ClassVar[dict[str, np.dtype[Any] | None]]

    def __init_subclass__(cls) -> None:
        names, hints = list(cls.__annotations__), get_type_hints(cls)
        cls.fields = {name: _held(hints[name]) for name in names}
        words = 1 << (len(names) - 1).bit_length() if len(names) <= LINE else -(-len(names) // LINE) * LINE
        layout: Any = {"names": names, "formats": [np.int64] * len(names), "itemsize": words * BYTES}
        cls.dtype = np.dtype(layout, align=True)


def _held(hint: Any) -> np.dtype[Any] | None:
    if hint is int:
        return None
    of = get_args(hint)
    return of[0].dtype if get_origin(hint) is Table else np.dtype(get_args(of[1])[0])


class Layout:
    """Tables one after another in an array of words: what each holds, None: words, and how many of it."""

    def __init__(self, kinds: dict[str, type[Record] | None], sizes: dict[str, int]) -> None:
        self.kinds = kinds
        words = [sizes[name] * (kind.dtype.itemsize // BYTES if kind else 1) for name, kind in kinds.items()]
        ends = pairwise(accumulate(words, initial=0))
        self._part = {name: slice(begin, end) for name, (begin, end) in zip(kinds, ends, strict=True)}
        self.words = sum(words)

    def tables(self, core: Words) -> dict[str, Any]:
        """Views of words [..., self.words]."""
        found: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            words = core[..., self._part[name]]
            found[name] = words.view(kind.dtype) if kind else words
        return found


def addresses(kind: type[Record], values: dict[str, Any]) -> Words:
    """What a `viewer` of `kind` looks at: for each field its number, or where its array begins, [fields].

    [rows, fields] where an array has two dimensions: then each row's own. Whoever uses it keeps the arrays. TypeError
    for other fields than those of `kind`, or arrays of another type.
    """
    if values.keys() != kind.fields.keys():
        raise TypeError(f"{kind.__name__} has other fields: {sorted(values.keys() ^ kind.fields.keys())}")
    rows = max((len(value) for value in values.values() if np.ndim(value) == 2), default=0)
    found = np.zeros((max(rows, 1), len(values)), np.int64)
    for column, (name, held) in zip(found.T, kind.fields.items(), strict=True):
        value = values[name]
        if held is None:
            column[:] = value
        elif value.dtype != held or not (value[0] if value.ndim == 2 else value).flags.c_contiguous:
            raise TypeError(f"{kind.__name__}.{name} is no array of {held}, one after another")
        else:
            column[:] = value.ctypes.data + np.arange(len(column)) * (value.strides[0] if value.ndim == 2 else 0)
    return found if rows else found[0]


def viewer(kind: type[Record]) -> Any:
    """A function for compiled code: of the words that `addresses` made, a `kind` whose fields are numbers and tables.

    Its fields do not change while compiled code runs. So the compiler reads a field once, wherever it likes.
    """
    name, fields = kind.__qualname__, kind.fields

    @intrinsic
    def view(typing_context: Any, words: Any) -> Any:
        from ppt_gpu.common.compilers import View

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

        return View(name, fields)(words), generate

    return view


@intrinsic
def known(typing_context: Any, view: Any, name: Any, value: Any) -> Any:
    """The view, of whose field `name` the compiler knows the value."""

    from numba import types

    if not isinstance(name, types.StringLiteral) or not isinstance(value, types.IntegerLiteral):
        return None  # numba then asks again with what it knows of them

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return view.knowing(name.literal_value, value.literal_value)(view, name, value), generate
