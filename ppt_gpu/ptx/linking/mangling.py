"""C++ names of kernels: what `_ZN2ns4gemmIfLi16EEEvPKT_` is called in the source, and kernels found by that name.

Reads mangled C++ names.

The Itanium C++ ABI's mangling of function names (section 5.1), as far as kernels use it: nested, local and anonymous
names, lambdas, template arguments that are types, integers or functions, and substitutions. `Beyond` is raised for what
is not read here: other expressions than a function's address, members of classes by address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double", "w": "wchar_t", "n": "__int128", "o": "unsigned __int128",
    "e": "long double", "z": "...", "Dn": "std::nullptr_t", "Ds": "char16_t", "Di": "char32_t", "Du": "char8_t",
    "Da": "auto", "DF16_": "_Float16", "DF16b": "__bf16",
}  # fmt: skip
_SIGNS = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile", "r": " restrict"}
_STANDARD = {
    "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream", "o": "std::ostream",
    "d": "std::iostream",
}  # fmt: skip
_ANONYMOUS = re.compile(r"_GLOBAL__N_.*")
_OF_THE_FILE = re.compile(r"_INTERNAL_.*")  # where nvcc puts static functions that are template arguments


class Beyond(Exception):
    """A construct that is not read here."""


class NameReader:
    """Reads a mangled name from left to right. `known`: what substitutions (S_, S0_, ...) stand for, in order."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.known: list[str] = []
        self.parameters: list[str] = []  # the template arguments that T_, T0_, ... stand for

    def took(self, prefix: str) -> bool:
        if not self.text.startswith(prefix, self.at):
            return False
        self.at += len(prefix)
        return True

    def sees(self, prefixes: str) -> bool:
        return self.text[self.at : self.at + 1] in (*prefixes,)

    def match(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.text, self.at)
        if not found:
            raise Beyond
        self.at = found.end()
        return found[0]

    def keep(self, text: str) -> str:
        self.known.append(text)
        return text

    def source_name(self) -> str:
        size = int(self.match(r"[1-9]\d*"))
        name = self.text[self.at : self.at + size]
        self.at += size
        if len(name) < size:
            raise Beyond
        if _OF_THE_FILE.fullmatch(name):
            return ""
        return "(anonymous namespace)" if _ANONYMOUS.fullmatch(name) else name

    def name(self) -> str:
        """<name>: a nested, local, template or plain one."""
        if self.took("N"):
            return self.nested()
        if self.took("Z"):
            return self.local()
        if self.sees("S") and not self.took("St"):
            return self.substitution() + self.template_arguments()
        standard = self.text.startswith("St", self.at - 2) if self.at >= 2 else False
        name = ("std::" if standard else "") + self.part()
        if self.sees("I"):
            self.keep(name)
            name += self.template_arguments()
        return name

    def nested(self) -> str:
        self.match(r"[rVK]*[RO]?")
        name, kept = "", False
        while not self.took("E"):
            if self.took("St"):
                name = "std"
                continue
            kept = not (self.sees("S") and name == "")
            if not kept:
                name = self.substitution()
            elif self.sees("T"):
                name = self.keep(self.template_parameter())
            elif self.sees("I"):
                name = self.keep(name + self.template_arguments())
            else:
                name = self.keep(f"{name}::{self.part()}".removeprefix("::"))
        if kept:
            self.known.pop()  # the whole is a substitution only where it is a type
        return name

    def local(self) -> str:
        """What is declared in a function, such as a lambda."""
        function = self.function()
        if self.took("s"):
            self.match(r"(_\d)?")
            return function
        return f"{function}::{self.name()}"

    def part(self) -> str:
        self.took("L")  # internal linkage
        if self.took("Ul"):
            name = "{lambda" + self.listed("()") + f"#{self.number() + 1}" + "}"
        elif self.took("Ut"):
            name = f"{{unnamed type#{self.number() + 1}}}"
        elif self.took("cl"):
            name = "operator()"
        else:
            name = self.source_name()
        while self.took("B"):  # ABI tags, which numba writes
            self.source_name()
        return name

    def number(self, digits: str = r"\d") -> int:
        """ "_" is 0, "0_" is 1, ...; of base 36 where `digits` has letters."""
        text = self.match(rf"{digits}*_")[:-1]
        return int(text, 36 if "Z" in digits else 10) + 1 if text else 0

    def substitution(self) -> str:
        self.match("S")
        if self.sees("absiod"):
            return _STANDARD[self.match("[absiod]")]
        return self.entry(self.known, self.number(r"[\dA-Z]"))

    def template_parameter(self) -> str:
        self.match("T")
        number = self.number()
        return self.parameters[number] if number < len(self.parameters) else "auto"

    def entry(self, names: list[str], number: int) -> str:
        if number >= len(names):
            raise Beyond
        return names[number]

    def template_arguments(self) -> str:
        if not self.took("I"):
            return ""
        items = []
        while not self.took("E"):
            items += self.template_argument()
        self.parameters = items
        return f"<{', '.join(items)}>"

    def template_argument(self) -> list[str]:
        if self.took("J"):  # a pack
            items = []
            while not self.took("E"):
                items += self.template_argument()
            return items
        if self.took("XadL_Z"):  # the address of a function, as an expression
            name = self.function()
            self.match("E")
            return [name]
        if self.took("L"):
            return [self.literal()]
        return [self.type()]

    def function(self) -> str:
        """The name of a function whose types follow it, up to E."""
        name = self.name()
        while not self.took("E"):
            self.type()
        return name

    def literal(self) -> str:
        if self.took("_Z"):
            return self.function()
        kind = self.type()
        value = self.match(r"n?\d+").replace("n", "-")
        self.match("E")
        if kind == "bool":
            return {"0": "false", "1": "true"}.get(value, value)
        return value if kind in _BUILTIN.values() else f"({kind}){value}"

    def listed(self, brackets: str) -> str:
        """The types up to E, in brackets."""
        types = []
        while not self.took("E"):
            types.append(self.type())
        return brackets[0] + ", ".join(t for t in types if t != "void") + brackets[1]

    def type(self) -> str:
        if self.sees("PRO"):
            sign = _SIGNS[self.match("[PRO]")]
            return self.keep(f"{self.type()}{sign}")
        if qualifiers := self.match("r?V?K?"):
            return self.keep(self.type() + "".join(_SIGNS[letter] for letter in reversed(qualifiers)))
        if self.took("F"):
            result = self.type()
            return self.keep(f"{result} {self.listed('()')}")
        if self.took("A"):
            size = self.match(r"\d*_")[:-1]
            return self.keep(f"{self.type()} [{size}]")
        if self.took("Dp"):
            return self.keep(self.type())
        if word := next((word for word in _BUILTIN if self.took(word)), ""):
            return _BUILTIN[word]
        if self.sees("T"):
            name = self.keep(self.template_parameter())
            return self.keep(name + self.template_arguments()) if self.sees("I") else name
        if self.sees("S") and not self.text.startswith("St", self.at):
            name = self.substitution()
            return self.keep(name + self.template_arguments()) if self.sees("I") else name
        return self.keep(self.name())


LONG = 80  # characters of a name that messages show whole


def source_name(mangled: str) -> str:
    """The C++ name with its scopes and template arguments, without parameters: "ns::gemm<float, 16>".

    A name that is not mangled, or in a way not read here, comes back as it is.
    """
    if not mangled.startswith("_Z"):
        return mangled
    try:
        return NameReader(mangled[2:]).name()
    except (Beyond, RecursionError):
        return mangled


def short_name(mangled: str) -> str:
    """The C++ name as messages show it: a long one without scopes, then without inner template arguments."""
    name = source_name(mangled)
    if len(name) > LONG:
        name = re.sub(r"(?:\w+(?:<[^<>]*>)?::|\(anonymous namespace\)::)+(?=\w)", "", name)
    while len(name) > LONG and (shorter := re.sub(r"(?<=<)(.*)<[^<>.]+>", r"\1<...>", name)) != name:
        name = shorter
    return name if len(name) <= 2 * LONG else f"{name.partition('<')[0]}<...>"


def matching(name: str, mangled: Iterable[str]) -> list[str]:
    """The names out of `mangled` that a user may mean by `name`, best kind of match only.

    In order: the very name; the whole C++ name ("ns::gemm<float, 16>"); the same without template arguments
    ("ns::gemm"); without scopes ("gemm<float, 16>" or "gemm"); as `short_name` shows it. Anonymous namespaces may be
    left out everywhere.
    """
    every = list(mangled)
    if name in every:
        return [name]
    wanted = _plain(name)
    for form in (lambda s: s, _without_arguments, _without_scopes, lambda s: _without_arguments(_without_scopes(s))):
        found = [item for item in every if _plain(form(source_name(item))) == wanted]
        if found:
            return found
    return [item for item in every if _plain(short_name(item)) == wanted]


def _plain(name: str) -> str:
    return re.sub(r"\s+", "", name.replace("(anonymous namespace)::", ""))


def _without_arguments(name: str) -> str:
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def _without_scopes(name: str) -> str:
    head, bracket, arguments = name.partition("<")
    return head.rpartition("::")[2] + bracket + arguments
