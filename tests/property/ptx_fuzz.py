"""Damaged PTX, read and run: `python ptx_fuzz.py SEED COUNT` in a process of its own, which it may take down.

Prints the number of each case before it begins, and for every error that is not a PptError its traceback. A case that
takes longer than CASE_SECONDS ends the process, and so does more memory than the limit.
"""

from __future__ import annotations

import faulthandler
import random
import re
import resource
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import forget_engines, run
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.value_text import parse_tensormap
from ppt_gpu.workload.workload import Argument, Buffer, Launch

ROOT = Path(__file__).parents[2]
#: samples, and kernels that use each feature: TMA, clusters, tensor cores, aliases, ...
FOLDERS = ("tests/data/exec", "tests/data/matrix", "tests/data/ptx", "tasklists", "validation/coverage/ptx")
LONGEST = 12_000  # characters of an entry
#: for a parameter that may be one: 8,192 words of `data`
TENSOR_MAP = "tensormap(data, dims=64x64, box=16x8, type=u32)"
MOST_THREADS = 1024  # of a block, as every launch is checked for before it comes to run()
CASE_SECONDS = 60  # on a machine that does other work, too
BUDGET = Budget(instructions=30_000, memory=1 << 24, trace=1 << 23)
ADDRESS_SPACE = 6 << 30  # B that the process may map, most of it never touched
TOKEN = re.compile(r"[%$\w.]+|\s+|.")
WORDS = (
    *("add", "ld.global.u32", "st.shared.u8", "bra", "bar.sync", "atom.global.add.u32", "shfl.sync.bfly.b32", "ret"),
    *("%r1", "%rd1", "%p1", "%f1", "%tid.x", "0", "-1", "4294967295", "0x7fffffffffffffff", "0f7FC00000", ".f64"),
    *(";", "{", "}", "[", "]", ",", "@", "!", "+", "|", "", "\n", "::", ".reg", ".shared", ".align", "<99>", "_", "v4"),
)  # fmt: skip


def modules() -> list[str]:
    """Texts of one kernel each: every entry of the kernels in FOLDERS with the head of its file."""
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ptx"))):
        text = path.read_text()
        starts = [match.start() for match in re.finditer(r"^(?:\.visible |\.weak )?\.entry", text, re.M)]
        for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
            if end - begin < LONGEST:
                found.append(text[: starts[0]] + text[begin:end])
    return found


def mutate(text: str, rng: random.Random) -> str:
    """One to three changes of characters, tokens or lines; most leave a text that can be run."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_alike, _alike, _alike, _alike, _alike, _lines, _tokens, _characters))(text, rng)
    return text


def _characters(text: str, rng: random.Random) -> str:
    at, length = rng.randrange(len(text)), rng.choice((0, 1, 1, 3))
    return text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(32, 127)))) + text[at + length :]


def _tokens(text: str, rng: random.Random) -> str:
    tokens = TOKEN.findall(text)
    head = len(tokens) // 5  # mostly in bodies
    first, second = (rng.randrange(rng.choice((0, head)), len(tokens)) for _ in range(2))
    kind = rng.randrange(5)
    if kind == 0:
        tokens[first], tokens[second] = tokens[second], tokens[first]
    elif kind == 1:
        tokens[first] = tokens[second]
    elif kind == 2:
        tokens[first] = rng.choice(WORDS)
    elif kind == 3:
        tokens[first] = ""
    else:
        numbers = [k for k, token in enumerate(tokens) if token.isdecimal()]
        if numbers:
            tokens[rng.choice(numbers)] = str(rng.choice((0, 1, 3, 31, 33, 255, 2**31, 2**32 - 1, 2**63, 10**25)))
    return "".join(tokens)


def _alike(text: str, rng: random.Random) -> str:
    """One token becomes another of its kind: a register of the same type, an opcode, a number, a label."""
    tokens = TOKEN.findall(text)
    first = rng.randrange(len(tokens) // 5, len(tokens))
    kind = _kind(tokens[first])
    while not kind:
        first = rng.randrange(len(tokens) // 5, len(tokens))
        kind = _kind(tokens[first])
    others = [token for token in tokens if _kind(token) == kind]
    if kind == "number" and rng.random() < 0.5:
        others = ["0", "1", "3", "4", "31", "32", "255", "65536", "4294967295", "-1", "9223372036854775807"]
    tokens[first] = rng.choice(others)
    return "".join(tokens)


def _kind(token: str) -> str:
    if token.startswith("%"):
        return "".join(c for c in token if not c.isdigit())
    if token.isdecimal():
        return "number"
    if token.startswith("$"):
        return "label"
    return "opcode" if token[:1].isalpha() and "." in token else ""


def _lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 1:
        lines.insert(first, lines[second])
    elif kind == 2:
        del lines[first]
    else:
        lines[first] = lines[second]
    return "\n".join(lines)


def launch_of(kernel: Kernel, rng: random.Random) -> Launch:
    """Two blocks; every 8-byte parameter points into one buffer, structs of 128 bytes are tensor maps of it, others are
    small numbers."""
    arguments = []
    for param in kernel.params:
        if param.type in ("u64", "b64", "s64") and param.bytes == 8:
            arguments.append(Argument("u64", buffer="data"))
        elif param.bytes == 128:
            arguments.append(parse_tensormap(TENSOR_MAP))
        elif param.bytes > 8 or param.type in ("b8",):
            fields = (Argument("u32", 1),) * (param.bytes // 4) + (Argument("u8", 1),) * (param.bytes % 4)
            arguments.append(Argument("struct", fields=fields))
        else:
            arguments.append(Argument(param.type, rng.choice((1, 40, 64))))
    x, y, z = (*kernel.directives.get("reqntid", ()), 1, 1, 1)[:3]
    if not 1 < x * y * z <= MOST_THREADS:
        x, y, z = rng.choice((32, 40, 64, 128)), 1, 1
    return Launch(kernel.name, (2, 1, 1), (x, y, z), tuple(arguments), rng.choice((0, 256)))


def check(text: str, rng: random.Random) -> None:
    """Read the text and run its first kernel. PptError is the only error that may come of it."""
    try:
        module = parse_module(text, "fuzz.ptx")
        for kernel in list(module.kernels.values())[:1]:
            launch = launch_of(kernel, rng)
            memory = DeviceMemory.build(module, [Buffer("data", "u32", 8192, "iota")], budget=BUDGET)
            run(kernel, module, launch, memory, [0, 1], budget=BUDGET)
    except PptError as error:
        assert str(error)


def cases(seed: int, count: int) -> Iterator[tuple[int, str, random.Random]]:
    texts = modules()
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        yield number, mutate(rng.choice(texts), rng), rng


def main(seed: int, count: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    check(modules()[0], random.Random(seed))  # loads what every case needs, which is no part of their time
    failures = 0
    for number, text, rng in cases(seed, count):
        print(f"case {number}", flush=True)
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        try:
            check(text, rng)
        except Exception:
            failures += 1
            traceback.print_exc(file=sys.stdout)
        faulthandler.cancel_dump_traceback_later()
        if number % 50 == 49:
            forget_engines()
    print(f"done: {failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2])))
