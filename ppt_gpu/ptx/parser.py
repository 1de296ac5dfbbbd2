"""PTX text -> `ppt_gpu.ptx.module.Module`: a statement parser on regular expressions.

Grammar: NVIDIA's PTX ISA manual. Text above the functions is read here, bodies in `ppt_gpu.ptx.body`.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppt_gpu.errors import PptError, did_you_mean
from ppt_gpu.ptx.body import Body
from ppt_gpu.ptx.declarations import SPACES, parameters, variables
from ppt_gpu.ptx.lexer import NAME, Source
from ppt_gpu.ptx.module import Kernel, Module, Param, Variable
from ppt_gpu.ptx.operands import OperandReader
from ppt_gpu.ptx.scope import Names, Scope

_LINE = re.compile(r"\.(version|target|address_size)\b[ \t]*([^\n]*)")
_SKIPPED_LINE = re.compile(r"\.(?:file|loc|pragma|hidden)\b[^\n]*")
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?=\s|$)")
_TARGET = re.compile(r"(sm_\d{2,3}[af]?)\s*((?:,\s*\w+\s*)*)(?=\s|$)")
_ADDRESS_SIZE = re.compile(r"(32|64)(?=\s|$)")
_SECTION = re.compile(r"\.section\b[^{};]*\{")
_HEAD = re.compile(r"((?:\.(?:visible|extern|weak|common|hidden)\b\s*)*)\.([a-zA-Z]\w*)")
_NAME = re.compile(rf"\s*({NAME})\s*", re.ASCII)
_PARENTHESES = re.compile(r"\s*\(([^()]*)\)")
_PERFORMANCE = re.compile(r"\s*\.([a-z_]\w*)\s*((?:\"[^\"\n]*\"|\([^()]*\)|[\d,\s]+)?)")
_ALIAS = re.compile(rf"\s*({NAME})\s*,\s*({NAME})\s*;", re.ASCII)
_PERFORMANCE_NAMES = (
    "maxntid reqntid minnctapersm maxnctapersm maxnreg maxclusterrank reqnctapercluster explicitcluster "
    "blocksareclusters noreturn pragma abi_preserve abi_preserve_control unified attribute"
)
_TOP_NAMES = (
    "version target address_size file loc section entry func visible extern weak common alias pragma "
    "global const shared tex"
)


def load_module(path: str | Path) -> Module:
    """Read and parse a PTX file. Raises PptError when it cannot be read or is no valid PTX."""
    try:
        text = Path(path).read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    return parse_module(text, str(path))


def parse_module(text: str, path: str = "<ptx>") -> Module:
    """Parse a whole PTX text. Raises PptError with file, line and column at the first mistake."""
    with _collector_paused():
        return _ModuleReader(Source(text, path)).read()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A module is a million small objects without cycles: looking for garbage among them only costs time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
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


def _sizes(word: str, text: str) -> tuple[int, ...]:
    """The numbers after a performance directive; thread and block counts always have three."""
    found = tuple(int(digits[:10]) for digits in re.findall(r"\d+", text))
    three = word in ("maxntid", "reqntid", "reqnctapercluster") and found
    return (*found, 1, 1)[:3] if three else found


class _ModuleReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.version: tuple[int, int] | None = None
        self.target = ""
        self.address_size = 32  # what the manual says for a text that does not say
        self.kernels: dict[str, Kernel] = {}
        self.functions: dict[str, Kernel] = {}
        self.variables: dict[str, Variable] = {}
        self.unknown: list[tuple[str, int]] = []  # symbols not declared where they were used; search from here
        self.aliases: list[tuple[str, str, int]] = []

    def read(self) -> Module:
        source = self.source
        position = source.skip(0)
        if position >= len(source.text):
            raise PptError("the file is empty: expected PTX", path=source.path, line=1, column=1)
        while position < len(source.text):
            position = source.skip(self._statement(position))
        if self.version is None:
            raise source.error("no .version: is this PTX?", 0, "PTX begins with .version, .target and .address_size")
        self._check_symbols()
        if not self.kernels:
            hint = "only device functions are here" if self.functions else "nothing is declared here"
            raise source.error("no kernel (.entry) in this file", len(source.text), hint)
        return Module(
            path=source.path,
            version=self.version,
            target=self.target,
            address_size=self.address_size,
            kernels=self.kernels,
            functions=self.functions,
            variables=self.variables,
            lines=tuple(source.original.split("\n")),
        )

    # module level

    def _statement(self, position: int) -> int:
        text = self.source.text
        match = _LINE.match(text, position)
        if match is not None:
            return self._header_line(match[1], match.start(2))
        if self.version is None:
            found = text[position : position + 20].split("\n")[0]
            message = f"expected .version first, found '{found}'"
            raise self.source.error(message, position, "PTX begins with .version, .target and .address_size")
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
            return self._function(word == "entry", match.end())
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
        before = self.variables.get(variable.name)
        if before is not None and not before.extern and not variable.extern:
            raise self.source.error(f"'{variable.name}' is already declared on line {before.line}", place)
        if before is None or before.extern:
            self.variables[variable.name] = variable
        self.unknown += [(symbol, place) for _, symbol, _ in variable.init_symbols if not self._is_global(symbol)]

    # functions

    def _function(self, is_entry: bool, position: int) -> int:
        source, text = self.source, self.source.text
        names = Names(creatable=len(text) // 8)
        unknown: dict[str, None] = {}
        reader = OperandReader(self._is_global, unknown)
        scope = Scope(names, None, position, reader.read)
        directives: dict[str, tuple[int, ...]] = {}
        position = self._performance(position, directives)
        returns: tuple[Param, ...] = ()
        match = _PARENTHESES.match(text, position)
        if match is not None and not is_entry:
            returns = parameters(source, match[1], match.start(1), scope)
            position = match.end()
        named = _NAME.match(text, position)
        if named is None:
            raise source.error("expected a function name", source.skip(position))
        name, start = named[1], named.start(1)
        params: tuple[Param, ...] = ()
        match = _PARENTHESES.match(text, named.end())
        position = named.end() if match is None else match.end()
        if match is None and text[source.skip(position) : source.skip(position) + 1] == "(":
            raise source.error("this parameter list never ends: expected ')'", source.skip(position))
        if match is not None:
            params = parameters(source, match[1], match.start(1), scope)
        position = source.skip(self._performance(position, directives))
        for param in (*params, *returns):
            scope.symbols[param.name] = param.name
            scope.symbol_lines[param.name] = param.line
            names.symbol_names.add(param.name)
        has_body = text[position : position + 1] == "{"
        if not has_body and text[position : position + 1] != ";":
            raise source.error("expected '{' or ';' after the function's head", position)
        self._declare_function(name, start, params, returns, is_entry, has_body)
        body = Body(source, names, scope, reader)
        end = body.read(position + 1) if has_body else position + 1
        scope.close()
        self.unknown += [(symbol, position) for symbol in unknown]
        kernel = Kernel(
            name=name,
            params=params,
            registers=body.registers,
            variables=tuple(body.variables),
            instructions=tuple(body.instructions.all),
            labels=body.labels,
            directives=directives,
            is_entry=is_entry,
            returns=returns,
            line=source.line_of(start),
            end_line=source.line_of(end - 1),
            branch_tables=body.branch_tables,
            call_tables=body.call_tables,
            prototypes=body.prototypes,
            has_body=has_body,
        )
        if has_body or name not in (self.kernels if is_entry else self.functions):
            (self.kernels if is_entry else self.functions)[name] = kernel
        return end

    def _declare_function(
        self,
        name: str,
        start: int,
        params: tuple[Param, ...],
        returns: tuple[Param, ...],
        is_entry: bool,
        body: bool,
    ) -> None:
        """Known from here on, so that a function can call itself."""
        table = self.kernels if is_entry else self.functions
        before = table.get(name)
        if before is not None and before.has_body and body:
            raise self.source.error(f"'{name}' is already defined on line {before.line}", start)
        if before is None and body:
            table[name] = Kernel(name, params, (), (), (), {}, is_entry=is_entry, returns=returns, has_body=False)

    def _performance(self, position: int, directives: dict[str, tuple[int, ...]]) -> int:
        """Directives such as `.maxntid 256, 1, 1` from `position` on."""
        while (match := _PERFORMANCE.match(self.source.text, position)) is not None:
            word = match[1]
            if word not in _PERFORMANCE_NAMES.split():
                hint = did_you_mean(word, _PERFORMANCE_NAMES.split())
                raise self.source.error(f"unknown directive '.{word}' on a function", match.start(1) - 1, hint)
            if match[2][:1] not in ('"', "("):
                directives[word] = _sizes(word, match[2])
            position = match.end()
            if word == "pragma":
                position += len(re.match(r"\s*;?", self.source.text[position : position + 80])[0])  # type: ignore[index]
        return position

    # symbols

    def _is_global(self, name: str) -> bool:
        return name in self.variables or name in self.functions or name in self.kernels

    def _check_symbols(self) -> None:
        for name, aliased, position in self.aliases:
            if aliased not in self.functions:
                hint = did_you_mean(aliased, self.functions)
                raise self.source.error(f"function '{aliased}' is not declared", position, hint)
            self.functions[name] = self.functions[aliased]
        for name, start in self.unknown:
            if self._is_global(name):
                continue
            found = re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", re.ASCII).search(self.source.text, start)
            hint = did_you_mean(name, [*self.variables, *self.functions])
            where = found.start() if found else start
            raise self.source.error(f"'{name}' is not declared", where, hint)
