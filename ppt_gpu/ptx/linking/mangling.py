"""C++ names of kernels: what `_ZN2ns4gemmIfLi16EEEvPKT_` is called in the source, and kernels found by that name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ppt_gpu.ptx.linking.demangle import Beyond, NameReader

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
