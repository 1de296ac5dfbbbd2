"""C++ names of kernels: what `_ZN2ns4gemmIfLi16EEEvPKT_` is called in the source, and kernels found by that name.

The Itanium C++ ABI's mangling of function names (section 5.1), as far as kernels use it: nested names, anonymous
namespaces, template arguments that are builtin types, integers or names. What is beyond that keeps its mangled form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip
_ANONYMOUS = re.compile(r"_GLOBAL__N_.*|_INTERNAL_.*")


class _Beyond(Exception):
    """A construct that is not read here."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def took(self, prefix: str) -> bool:
        if not self.text.startswith(prefix, self.at):
            return False
        self.at += len(prefix)
        return True

    def match(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.text, self.at)
        if not found:
            raise _Beyond
        self.at = found.end()
        return found[0]

    def source_name(self) -> str:
        size = int(self.match(r"[1-9]\d*"))
        name = self.text[self.at : self.at + size]
        if len(name) < size:
            raise _Beyond
        self.at += size
        return "(anonymous namespace)" if _ANONYMOUS.fullmatch(name) else name

    def name(self) -> str:
        if not self.took("N"):
            return self.part()
        self.match(r"[rVK]*")
        parts = []
        while not self.took("E"):
            parts.append(self.part())
        return "::".join(parts)

    def part(self) -> str:
        self.took("L")  # internal linkage
        name = self.source_name()
        while self.took("B"):  # ABI tags, which numba writes
            self.source_name()
        return name + self.template_arguments()

    def template_arguments(self) -> str:
        if not self.took("I"):
            return ""
        items = []
        while not self.took("E"):
            items += self.template_argument()
        return f"<{', '.join(items)}>"

    def template_argument(self) -> list[str]:
        if self.took("J"):  # a pack
            items = []
            while not self.took("E"):
                items += self.template_argument()
            return items
        if self.took("L"):
            kind = self.type()
            value = self.match(r"n?\d+").replace("n", "-")
            self.match("E")
            return [{"0": "false", "1": "true"}.get(value, value) if kind == "bool" else value]
        return [self.type()]

    def type(self) -> str:
        if self.took("P"):
            return f"{self.type()}*"
        if self.took("K"):
            return f"{self.type()} const"
        letter = self.text[self.at : self.at + 1]
        if letter in _BUILTIN:
            self.at += 1
            return _BUILTIN[letter]
        return self.name()


def source_name(mangled: str) -> str:
    """The C++ name with its scopes and template arguments, without parameters: "ns::gemm<float, 16>".

    A name that is not mangled, or in a way not read here, comes back as it is.
    """
    if not mangled.startswith("_Z"):
        return mangled
    try:
        return _Reader(mangled[2:]).name()
    except (_Beyond, RecursionError):
        return mangled


def matching(name: str, mangled: Iterable[str]) -> list[str]:
    """The names out of `mangled` that a user may mean by `name`, best kind of match only.

    In order: the very name; the whole C++ name ("ns::gemm<float, 16>"); the same without template arguments
    ("ns::gemm"); without scopes ("gemm<float, 16>" or "gemm").
    """
    every = list(mangled)
    if name in every:
        return [name]
    wanted = _plain(name)
    for form in (lambda s: s, _without_arguments, _without_scopes, lambda s: _without_arguments(_without_scopes(s))):
        found = [item for item in every if _plain(form(source_name(item))) == wanted]
        if found:
            return found
    return []


def _plain(name: str) -> str:
    return re.sub(r"\s+", "", name)


def _without_arguments(name: str) -> str:
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def _without_scopes(name: str) -> str:
    head, bracket, arguments = name.partition("<")
    return head.rpartition("::")[2] + bracket + arguments
