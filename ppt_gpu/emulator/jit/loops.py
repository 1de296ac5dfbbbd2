"""Helper functions with loops and tables, for instructions that work on whole matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ppt_gpu.emulator.llvm.text import Helper


class LoopHelper(Helper):
    """A helper that knows its current block, so that counted loops can be written where they stand."""

    def __init__(self, result: str, *parameters: str) -> None:
        super().__init__(result, *parameters)
        self.block = ""

    def label(self, name: str) -> None:
        super().label(name)
        self.block = name

    @contextmanager
    def loop(self, count: int | str, carried: Sequence[tuple[str, str]] = ()) -> Iterator[tuple[str, list[str]]]:
        """Run the body `count` (at least 1) times. Yields (index i64, values).

        carried: (type, initial value) of values that go from turn to turn. The body puts their next values into the
        list; after the loop the list holds the last ones.
        """
        before, top, end = self.block, self.fresh("loop"), self.fresh("end")
        index = self.fresh("%i")
        names = [self.fresh("%c") for _ in carried]
        self.jump(top)
        self.label(top)
        place = len(self.lines)
        self.lines += [""] * (1 + len(carried))
        values = list(names)
        yield index, values
        following = self.i64("add", index, 1)
        for k, (name, kind, first, last) in enumerate(
            [(index, "i64", "0", following)]
            + [(name, *start, value) for name, start, value in zip(names, carried, values, strict=True)]
        ):
            self.lines[place + k] = f"  {name} = phi {kind} [ {first}, %{before} ], [ {last}, %{self.block} ]"
        self.branch(self.i64("icmp ult", following, count), top, end)
        self.label(end)

    def room(self, element: str, count: int) -> str:
        """An array on the stack. Only before the first loop."""
        return self.op(f"alloca [{count} x {element}], align 64")

    def table(self, element: str, values: Iterable[int]) -> str:
        """A constant array."""
        listed = [f"{element} {value}" for value in values]
        name = f"@table{len(self.declarations)}"
        self.declarations[name] = f"{name} = private constant [{len(listed)} x {element}] [{', '.join(listed)}]"
        return name

    def at(self, element: str, pointer: str, index: str | int) -> str:
        """A pointer to element `index` of an array."""
        return self.op(f"getelementptr {element}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int = 1) -> str:
        return self.op(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int = 1) -> None:
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def spread(self, element: str, value: str, lanes: int) -> str:
        """A vector of `lanes` elements with the scalar `value` in each."""
        kind = f"<{lanes} x {element}>"
        one = self.op(f"insertelement {kind} poison, {element} {value}, i32 0")
        return self.op(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
