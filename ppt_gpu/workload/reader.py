"""Reads a workload's TOML (docs/workload.md) and finds shipped samples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean, nearest
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.units import parse_quantity
from ppt_gpu.ptx.module import TYPE_BYTES
from ppt_gpu.spec.toml_reader import Checked, check, dotted, read_toml
from ppt_gpu.spec.toml_reader import Path as Place
from ppt_gpu.spec.toml_schema import shown
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.arguments import MAX_THREADS
from ppt_gpu.workload.binding import bind_workload
from ppt_gpu.workload.schema import LAUNCH_KEYS, workload_schema
from ppt_gpu.workload.texture import Texture, check_texture
from ppt_gpu.workload.texture_text import is_texture, parse_texture, renamed
from ppt_gpu.workload.workload import Argument, Buffer, Copy, Launch, Loop, Workload

__all__ = ["bind_workload", "find_sample", "load_workload", "sample_names"]


def sample_names() -> tuple[str, ...]:
    """Names of the workloads that ship with the program, sorted."""
    files = os.listdir(data_dir("tasklists"))
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def find_sample(name: str) -> Path:
    """The file of shipped sample `name` ("sgemm"). PptError with the nearest name when there is none."""
    if name not in sample_names():
        hint = did_you_mean(name, sample_names()) or f"samples: {', '.join(sample_names())}"
        raise PptError(f"no sample workload '{name}'", hint=hint)
    return data_dir("tasklists") / f"{name}.toml"


def load_workload(path_or_name: str | Path) -> Workload:
    """The workload in a TOML file, or the shipped sample of that name.

    Raises PptError when there is no such file or sample or it is not TOML, and InputErrors with every other mistake.
    """
    path = Path(path_or_name)
    if not path.is_file():
        path = _sample_or_error(path)
    document = read_toml(path)
    checked = check(document, workload_schema(path.parent))
    reader = _Reader(checked, path)
    workload = reader.workload()
    checked.finish()
    return workload


def _sample_or_error(path: Path) -> Path:
    if path.suffix == "" and len(path.parts) == 1:
        return find_sample(path.name)
    close = nearest(path.stem, sample_names())
    what = "is a folder" if path.is_dir() else "no such file"
    raise PptError(what, path=path, hint=f"the shipped sample is called '{close}'" if close else None)


class _Reader:
    """Turns checked TOML values into a Workload; mistakes join `checked.errors`."""

    def __init__(self, checked: Checked, path: Path) -> None:
        self.checked, self.path = checked, path
        self.values = checked.values
        self.buffers = self._named("buffers")
        tables = [checked.document.data.get(key) for key in ("buffers", "textures")]
        #: names, also of buffers that are wrong
        self.defined = tuple(name for table in tables if isinstance(table, dict) for name in table)
        self.used: set[str] = set()
        self.textures: dict[str, Texture] = {}
        for name, read in (self.values.get("textures") or {}).items():
            if read is not None:
                self._texture(name, read, ("textures", name))
        self.arguments: dict[Place, tuple[Argument, ...]] = {}

    def workload(self) -> Workload:
        """The workload as far as it could be read."""
        files = {key: self._file(key) for key in ("ptx", "tasklist")}
        self._one_source()
        copies = self._copies("copy_in", "in") + self._copies("copy_out", "out")
        launches, loops = self._launches()
        unused = [name for name in self.buffers if name not in self.used]
        places = self.checked.document.places
        return Workload(
            name=self.values.get("name") or self.path.stem,
            path=str(self.path),
            ptx_path=files["ptx"],
            launches=tuple(launch for _, launch in launches),
            loops=loops,
            places=tuple(dotted(place) for place, _ in launches) if launches[0][0] else (),
            buffers=tuple(self.buffers.values()),
            copies=copies,
            graph=bool(self.values.get("graph")),
            symbols=tuple(self._named("symbols").values()),
            textures=tuple(self.textures.values()),
            tasklist_path=files["tasklist"],
            line={dotted(place): places[place].line for place in places if place},
            warnings=tuple(f"{self.path}:{self._line('buffers', n)}: no launch uses the buffer '{n}'" for n in unused),
        )

    def _line(self, *place: str | int) -> int:
        return self.checked.place(place).line

    def _file(self, key: str) -> str:
        """The file that `key` names, relative to the workload's own folder; "" when there is none."""
        name = self.values.get(key)
        if not name:
            return ""
        file = self.path.parent / name
        if not file.is_file():
            others = [p.name for p in file.parent.glob(f"*{file.suffix}")] if file.parent.is_dir() else []
            self.checked.problem((key,), f"{key}: no file {file}", did_you_mean(file.name, others))
        return str(file)

    def _one_source(self) -> None:
        """Exactly one of ptx and tasklist; a task list needs no data."""
        data = self.checked.document.data
        if "ptx" in data and "tasklist" in data:
            self.checked.problem(("tasklist",), "a workload has either ptx or tasklist, not both")
        if "ptx" not in data and "tasklist" not in data:
            self.checked.problem((), "missing key ptx (or tasklist)", 'such as ptx = "kernel.ptx"')
        if "tasklist" in data:
            for key in ("arguments", "buffers", "symbols", "textures", "kernel"):
                if key in data:
                    self.checked.problem((key,), f"{key}: a task list takes none")

    def _named(self, key: str) -> dict[str, Buffer]:
        table: Mapping[str, Buffer | None] = self.values.get(key) or {}
        return {name: replace(buffer, name=name) for name, buffer in table.items() if buffer is not None}

    def _copies(self, key: str, direction: str) -> tuple[Copy, ...]:
        copies = []
        for number, item in enumerate(self.values.get(key) or ()):
            size = self._copy_bytes((key, number), item)
            if direction == "in" and item in self.buffers:
                self.buffers[item] = replace(self.buffers[item], copied=True)
            copies.append(Copy(size, direction, bool(self.values.get("pinned")), item))
        return tuple(copies)

    def _copy_bytes(self, place: Place, item: str) -> int:
        if item in self.buffers:
            buffer = self.buffers[item]
            return buffer.count * TYPE_BYTES[buffer.type]
        try:
            size = int(parse_quantity(item, "bytes"))
        except ValueError:
            if item not in self.defined:
                hint = did_you_mean(item, self.defined) or 'a copy is a buffer\'s name or bytes such as "4 MiB"'
                self.checked.problem(place, f"{dotted(place)}: no buffer '{item}'", hint)
            return 0
        if size < 1:
            self.checked.problem(place, f"{dotted(place)}: {item} is nothing to copy")
        return size

    def _launches(self) -> tuple[list[tuple[Place, Launch]], tuple[Loop, ...]]:
        """Launches with their places, in the order of [[launch]] and [[loop]] in the file, and the loops."""
        groups: list[Place] = [(key, number) for key in ("launch", "loop") for number in self._numbers(key)]
        if not groups:
            return [((), self._launch((), {key: self.values.get(key) for key in LAUNCH_KEYS}))], ()
        launches: list[tuple[Place, Launch]] = []
        loops = []
        for place in sorted(groups, key=lambda group: self._line(*group)):
            first = len(launches)
            inside = [place]
            if place[0] == "loop":
                inside = [(*place, "launch", number) for number in self._numbers("launch", place)]
            launches += [(one, self._merged(one)) for one in inside]
            if place[0] == "loop":
                loops.append(self._loop(place, first, len(launches)))
        return launches, tuple(loops)

    def _numbers(self, key: str, place: Place = ()) -> range:
        """The numbers of the tables [[key]] at `place`; a list without any is a mistake, as is a loop of nothing."""
        tables = self.checked.get(*place, key)
        if tables is None and not place:
            return range(0)
        if not tables:
            name = ".".join(part for part in (*place, key) if isinstance(part, str))
            self.checked.problem((*place, key), f"{dotted((*place, key))}: expected at least one table ([[{name}]])")
        return range(len(tables or ()))

    def _merged(self, place: Place) -> Launch:
        """The launch at `place`, with what all launches have in common."""
        own: Any = self.checked.document.data
        for part in place:
            own = own[part]
        table = self.checked.get(*place)
        return self._launch(place, {key: table[key] if key in own else self.values.get(key) for key in LAUNCH_KEYS})

    def _loop(self, place: Place, first: int, end: int) -> Loop:
        table = self.checked.get(*place)
        names = table.get("swap") or ()
        known = [self.buffers[name] for name in names if name in self.buffers]
        at = (*place, "swap")
        for number, name in enumerate(names):
            if name not in self.defined or name in self.textures:
                hint = did_you_mean(name, self.buffers) or "buffers are defined in the table [buffers]"
                self.checked.problem((*at, number), f"{dotted((*at, number))}: no buffer '{name}'", hint)
        if names and (len(names) < 2 or len(set(names)) < len(names)):
            self.checked.problem(at, f"{dotted(at)}: expected at least two different buffers", 'such as ["old", "new"]')
        if len({(buffer.type, buffer.count) for buffer in known}) > 1:
            self.checked.problem(at, f"{dotted(at)}: buffers that change places have the same type and count")
        return Loop(first, end, table.get("repeat") or 1, tuple(names))

    def _launch(self, place: Place, table: dict[str, Any]) -> Launch:
        self._block_of_tasklist(place, table)
        for key in ("grid", "block"):
            if table.get(key) is None and not self._given(place, key):
                where = f" in {dotted(place)}" if place else ""
                self.checked.problem(place, f"missing key {key}{where}", f"such as {key} = [64, 4]")
        block = table.get("block") or (1, 1, 1)
        if block[0] * block[1] * block[2] > MAX_THREADS:
            message = f"block: {block[0] * block[1] * block[2]} threads are too many"
            self.checked.problem(self._key_place(place, "block"), message, f"a block has at most {MAX_THREADS}")
        kernel = table.get("kernel") or ("" if not self.values.get("tasklist") else Path(self.values["tasklist"]).stem)
        return Launch(
            kernel=kernel,
            grid=table.get("grid") or (1, 1, 1),
            block=block,
            arguments=self._arguments(place, table.get("arguments") or ()),
            dynamic_shared=table.get("dynamic_shared") or 0,
            registers=table.get("registers"),
            repeat=table.get("repeat") or 1,
            cluster=table.get("cluster"),
        )

    def _block_of_tasklist(self, place: Place, table: dict[str, Any]) -> None:
        """A task list says its own block size; the workload may repeat it, but not contradict it."""
        path = self.path.parent / (self.values.get("tasklist") or "")
        if not path.is_file():
            return
        from ppt_gpu.tasklist.text import read_tasklist

        try:
            size = read_tasklist(path).block_size
        except PptError as error:
            self.checked.errors += error.errors if isinstance(error, InputErrors) else [error]
            size = 0
        x, y, z = table.get("block") or (size, 1, 1)
        if size and x * y * z != size:
            message = f"block: {x * y * z} threads, but the task list says {size}"
            self.checked.problem(self._key_place(place, "block"), message, "leave block out")
        table["block"] = (x, y, z) if size or table.get("block") else (1, 1, 1)

    def _given(self, place: Place, key: str) -> bool:
        """Whether the file has `key` for the launch at `place`, however wrong its value."""
        return bool({(*place, key), (key,)} & self.checked.document.places.keys())

    def _key_place(self, place: Place, key: str) -> Place:
        return (*place, key) if (*place, key) in self.checked.document.places else (key,)

    def _arguments(self, place: Place, items: tuple[Any, ...]) -> tuple[Argument, ...]:
        here = self._key_place(place, "arguments")
        if here not in self.arguments:  # arguments at the top of the file serve several launches
            read = (self._argument((*here, number), item) for number, item in enumerate(items))
            self.arguments[here] = tuple(argument for argument in read if argument is not None)
        return self.arguments[here]

    def _argument(self, place: Place, item: Any) -> Argument | None:
        if isinstance(item, int | float) and not isinstance(item, bool):
            return Argument("", item)
        if not isinstance(item, str):
            hint = 'a buffer\'s name, a number, or a scalar such as "i32=4"'
            self.checked.problem(
                place, f"{dotted(place)}: an argument is a string or a number, not {shown(item)}", hint
            )
            return None
        try:
            if is_texture(item):
                read = parse_texture(item, "", self.path.parent)
                return Argument("u64", buffer=self._texture(_argument_name(place), read, place))
            argument, buffer = parse_argument(item, 0, self.path.parent)
        except PptError as error:
            self.checked.problem(place, f"{dotted(place)}: {error.message}", error.hint)
            return None
        if buffer is not None:
            name = _argument_name(place)
            argument = replace(argument, buffer=name)
            self.buffers[name] = replace(buffer, name=name)
        for pointer in (argument, *argument.fields):
            self._use(pointer, place)
        return argument

    def _texture(self, name: str, read: tuple[Texture, Buffer | None], place: Place) -> str:
        """Note a texture and the buffer that it defines. Returns its name."""
        texture, own = renamed(*read, name)
        if name in self.buffers:
            self.checked.problem(place, f"{dotted(place)}: a buffer is called '{name}', too", "rename one of them")
        if own is not None:
            self.buffers[own.name] = own
        self._use(Argument("u64", buffer=texture.buffer), place)
        buffer = self.buffers.get(texture.buffer)
        if buffer is not None:
            try:
                check_texture(texture, buffer.count * TYPE_BYTES[buffer.type])
            except PptError as error:
                self.checked.problem(place, f"{dotted(place)}: {error.message}", error.hint)
        self.textures[name] = texture
        return name

    def _use(self, pointer: Argument, place: Place) -> None:
        if not pointer.buffer or pointer.buffer in self.textures:
            return
        self.used.add(pointer.buffer)
        buffer = self.buffers.get(pointer.buffer)
        if buffer is None:
            if pointer.buffer not in self.defined:
                hint = did_you_mean(pointer.buffer, self.defined) or "buffers are defined in the table [buffers]"
                self.checked.problem(place, f"{dotted(place)}: no buffer '{pointer.buffer}'", hint)
        elif pointer.offset >= buffer.count * TYPE_BYTES[buffer.type]:
            message = f"{dotted(place)}: byte {pointer.offset} is outside the buffer '{pointer.buffer}'"
            self.checked.problem(place, message, f"it has {buffer.count * TYPE_BYTES[buffer.type]} bytes")


def _argument_name(place: Place) -> str:
    """The name of what an argument defines."""
    return "argument_" + "_".join(str(part) for part in place if part != "arguments")
