"""PTX text -> `ppt_gpu.ptx.module.Module`: a statement parser on regular expressions.

Grammar: NVIDIA's PTX ISA manual. Text above the functions is read here, bodies in `ppt_gpu.ptx.parsing.body`.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.ptx.assume import read_assumptions
from ppt_gpu.ptx.module import Kernel, Module, Variable
from ppt_gpu.ptx.parsing.declarations import SPACES, variables
from ppt_gpu.ptx.parsing.function import Symbols, read_function
from ppt_gpu.ptx.parsing.lexer import NAME, Source

_LINE = re.compile(r"\.(version|target|address_size)\b[ \t]*([^\n]*)")
_SKIPPED_LINE = re.compile(r"\.(?:file|loc|pragma|hidden)\b[^\n]*")
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?=\s|$)")
_TARGET = re.compile(r"(sm_\d{2,3}[af]?)\s*((?:,\s*\w+\s*)*)(?=\s|$)")
_ADDRESS_SIZE = re.compile(r"(32|64)(?=\s|$)")
_SECTION = re.compile(r"\.section\b[^{};]*\{")
_HEAD = re.compile(r"((?:\.(?:visible|extern|weak|common|hidden)\b\s*)*)\.([a-zA-Z]\w*)")
_ALIAS = re.compile(rf"\s*({NAME})\s*,\s*({NAME})\s*;", re.ASCII)
_TOP_NAMES = (
    "version target address_size file loc section entry func visible extern weak common alias pragma "
    "global const shared tex"
)


def load_module(path: str | Path, assume: Iterable[str] = ()) -> Module:
    """Read and parse a PTX file. Raises PptError when it cannot be read, and as `parse_module`."""
    return parse_module(read_text(path), str(path), assume)


def read_text(path: str | Path) -> str:
    """The text of a PTX file. Raises PptError when it cannot be read."""
    try:
        return Path(path).read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None


def parse_module(text: str, path: str = "<ptx>", assume: Iterable[str] = ()) -> Module:
    """Parse a whole PTX text. Raises PptError with file, line and column.

    assume: "OPCODE=CLASS" for instructions that are timed as a class and not executed (`ppt_gpu.ptx.assume`).
    At the first mistake, except that bad instructions of one body are reported together, as InputErrors.
    """
    with _collector_paused():
        return _ModuleReader(Source(text, path, read_assumptions(assume))).read()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A module is a million small objects without cycles: looking for garbage among them only costs time.

    They go to the collector's oldest generation at once, else it would look through all of them when it starts again.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            if not gc.get_freeze_count():  # else this would thaw what others have frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def select_kernel(module: Module, name: str | None = None) -> Kernel:
    """The kernel called `name`, or the only one. Raises PptError naming the kernels that there are."""
    if name is None:
        if len(module.kernels) == 1:
            return next(iter(module.kernels.values()))
        message = f"{len(module.kernels)} kernels: say which"
        raise PptError(message, path=module.path, hint="there are " + ", ".join(sorted(module.kernels)))
    if name not in module.kernels:
        hint = did_you_mean(name, module.kernels)
        raise PptError(f"no kernel '{name}' in this file", path=module.path, hint=hint)
    return module.kernels[name]


_BEGINNING = "PTX begins with .version, .target and .address_size"


class _ModuleReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.version: tuple[int, int] | None = None
        self.target = ""
        self.address_size = 32  # what the manual says for a text that does not say
        self.symbols = Symbols()
        self.creatable = [len(source.text) // 8]
        self.aliases: list[tuple[str, str, int]] = []

    def read(self) -> Module:
        source = self.source
        position = source.skip(0)
        if position >= len(source.text):
            raise PptError("the file is empty: expected PTX", path=source.path, line=1, column=1)
        while position < len(source.text):
            position = source.skip(self._statement(position))
        assert self.version is not None, "nothing else can come first"
        if not self.target:
            raise source.error("no .target in this file", len(source.text), _BEGINNING)
        self._check_symbols()
        kernels = {name: kernel for name, kernel in self.symbols.kernels.items() if kernel.has_body}
        if self.address_size == 32:
            kernels = {name: replace(kernel, pointer_bytes=4) for name, kernel in kernels.items()}
        if not kernels:
            hint = "only device functions are here" if self.symbols.functions else "nothing is declared here"
            raise source.error("no kernel (.entry) in this file", len(source.text), hint)
        return Module(
            path=source.path,
            version=self.version,
            target=self.target,
            address_size=self.address_size,
            kernels=kernels,
            functions=self.symbols.functions,
            variables=self.symbols.variables,
            lines=tuple(source.original.split("\n")),
            assumptions=source.assumptions,
        )

    # module level

    def _statement(self, position: int) -> int:
        text = self.source.text
        match = _LINE.match(text, position)
        if match is not None and (match[1] == "version" or self.version is not None):
            return self._header_line(match[1], match.start(2))
        if self.version is None:
            found = text[position : position + 20].split("\n")[0]
            message = f"expected .version first, found '{found}'"
            raise self.source.error(message, position, _BEGINNING)
        match = _SKIPPED_LINE.match(text, position)
        if match is not None:
            return match.end()
        match = _SECTION.match(text, position)
        if match is not None:
            end = text.find("}", match.end())
            if end < 0:
                raise self.source.error("this .section never ends: expected '}'", position)
            return end + 1
        match = _HEAD.match(text, position)
        if match is None:
            found = text[position : position + 20].split("\n")[0]
            raise self.source.error(f"expected a directive, found '{found}'", position)
        return self._declaration(match, position)

    def _header_line(self, word: str, position: int) -> int:
        text = self.source.text
        if word == "version":
            match = _VERSION.match(text, position)
            if match is None:
                raise self.source.error("expected a version such as 8.0 after .version", position)
            self.version = (int(match[1]), int(match[2]))
        elif word == "target":
            match = _TARGET.match(text, position)
            if match is None:
                raise self.source.error("expected a target such as sm_80 after .target", position)
            self.target = match[1]
        else:
            match = _ADDRESS_SIZE.match(text, position)
            if match is None:
                raise self.source.error("expected 32 or 64 after .address_size", position)
            self.address_size = int(match[1])
        return match.end()

    def _declaration(self, match: re.Match[str], position: int) -> int:
        linkage, word = match[1], match[2]
        if word == "entry" or word == "func":
            return read_function(self.source, self.symbols, word == "entry", match.end(), self.creatable)
        if word == "alias":
            alias = _ALIAS.match(self.source.text, match.end())
            if alias is None:
                raise self.source.error("expected .alias name, function;", position)
            self.aliases.append((alias[1], alias[2], position))
            return alias.end()
        if word not in SPACES:
            hint = did_you_mean(word, _TOP_NAMES.split())
            raise self.source.error(f"unknown directive '.{word}'", match.start(2) - 1, hint)
        end = self.source.text.find(";", match.end())
        if end < 0:
            raise self.source.error("the file ends inside a declaration: expected ';'", len(self.source.text))
        body = self.source.text[match.end() : end]
        for variable, place in variables(self.source, body, match.end(), SPACES[word], "extern" in linkage):
            self._add_variable(variable, place)
        return end + 1

    def _add_variable(self, variable: Variable, place: int) -> None:
        known = self.symbols
        before = known.variables.get(variable.name)
        if before is not None and not before.extern and not variable.extern:
            raise self.source.error(f"'{variable.name}' is already declared on line {before.line}", place)
        if before is None or before.extern:
            known.variables[variable.name] = variable
        symbols = {symbol for _, symbol, _ in variable.init_symbols}
        known.unknown += [(symbol, place, []) for symbol in sorted(symbols) if symbol not in known]

    # symbols

    def _check_symbols(self) -> None:
        known = self.symbols
        for name, aliased, position in self.aliases:
            if aliased not in known.functions:
                hint = did_you_mean(aliased, known.functions)
                raise self.source.error(f"function '{aliased}' is not declared", position, hint)
            known.functions[name] = known.functions[aliased]
        for name, start, local in known.unknown:
            if name in known:
                continue
            whole = re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", re.ASCII)
            found = whole.search(self.source.text, start)
            hint = did_you_mean(name, [*known.variables, *known.functions, *local])
            raise self.source.error(f"'{name}' is not declared", found.start() if found else start, hint)
