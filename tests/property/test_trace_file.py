"""Trace files: what is written is read again; a file with any byte changed, cut anywhere, gives one clear error."""

import contextlib
import copy
import dataclasses
import json
import zlib

import numpy as np
import pytest
from equal_fields import assert_equal
from hypothesis import strategies as st
from some_examples import examples

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_file import (
    GLOBAL_SECTIONS,
    MAGIC,
    PREFIX,
    TRACE_SECTIONS,
    VERSION,
    Record,
    read_traces,
)
from ppt_gpu.emulator.trace.trace_file import write_traces as write
from ppt_gpu.emulator.trace.trace_pack import Damaged, Rows, pack, unpack
from ppt_gpu.ptx import load_module
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.reader import bind_workload, load_workload


def make_records(blocks=(3, 1)):
    """The trace and the global accesses of some blocks of a sample."""
    workload = load_workload("stencil7_shared")
    module = load_module(workload.ptx_path)
    workload = bind_workload(workload, module)
    launch = workload.launches[0]
    kernel = module.kernels[launch.kernel]
    memory = DeviceMemory.build(module, workload.buffers)
    trace = run(kernel, module, launch, memory, list(blocks))
    head = (0, kernel.name, launch.grid, launch.threads_per_block, len(kernel.instructions), "identity", True)
    return [Record(*head, trace), Record(*head, global_accesses(kernel, trace))], kernel, launch


RECORDS, KERNEL, LAUNCH = make_records()
GPU = load_gpu("v100")
DATA = write(RECORDS)


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        assert {**vars(left), "content": 0} == {**vars(right), "content": 0}
        assert_equal(left.content, right.content)


def test_read_what_was_written():
    assert_same(read_traces(DATA, "x"), RECORDS)
    assert write(read_traces(DATA, "x")) == DATA


def refused(data):
    with pytest.raises(PptError) as caught:
        read_traces(bytes(data), "some.trace")
    text = str(caught.value)
    assert text.startswith("some.trace: byte ") and text.count("\n") <= 1
    return text


def boundaries():
    """Offsets at which something begins, and their neighbours."""
    length = PREFIX.unpack_from(DATA)[2]
    header = json.loads(DATA[PREFIX.size : PREFIX.size + length])
    at = [0, 8, 12, 16, PREFIX.size, PREFIX.size + length]
    for record in header["records"]:
        for section in record["sections"]:
            at.append(at[-1] + section["bytes"])
    return sorted({b + d for b in at for d in (-1, 0, 1) if 0 <= b + d < len(DATA)})


@pytest.mark.parametrize("end", boundaries())
def test_cut_at_every_boundary(end):
    refused(DATA[:end])


def test_something_behind_the_end():
    assert "after the last section" in refused(DATA + b"x")


@examples(300, 20_000, st.integers(0, len(DATA) - 1), st.integers(0, 7))
def test_any_bit_flipped(place, bit):
    data = bytearray(DATA)
    data[place] ^= 1 << bit
    refused(data)


def sealed(header, body):
    """A file with this header, whatever it says, and a checksum that fits it."""
    text = json.dumps(header).encode()
    return PREFIX.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text + body


def parts():
    length = PREFIX.unpack_from(DATA)[2]
    return json.loads(DATA[PREFIX.size : PREFIX.size + length]), DATA[PREFIX.size + length :]


VALUES = (
    None,
    True,
    -1,
    0,
    1,
    31,
    32,
    33,
    2**31,
    2**63,
    1e300,
    "",
    "i1",
    "i8",
    "trace",
    "global",
    [],
    [1],
    {},
    {"a": 1},
)


@examples(400, 20_000, st.data())
def test_any_value_of_the_header_changed(data):
    """Refused, or read as something that lowering takes or refuses: never a crash, never an error without a name."""
    header, body = parts()
    holder = header
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(holder[key], dict | list) and holder[key] and data.draw(st.integers(0, 4)):
            holder = holder[key]
            continue
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
        break
    survive(sealed(header, body))


def survive(data):
    try:
        records = read_traces(data, "some.trace")
    except PptError as error:
        assert str(error).startswith("some.trace: ")
        return
    lower(records)


def lower(records):
    """Lower what was read, with the second record as neighbours."""
    own = [r.content for r in records if isinstance(r.content, Trace)]
    others = [r.content for r in records if isinstance(r.content, GlobalAccesses)]
    for trace in own:
        with contextlib.suppress(PptError):
            lower_trace(
                KERNEL, trace, GPU, launch=LAUNCH, active_sms=GPU.sm.count, neighbours=others[0] if others else None
            )


@examples(300, 10_000, st.data())
def test_any_value_of_a_section_changed(data):
    """The same for values of the arrays, in a file whose checksums fit."""
    number = data.draw(st.integers(0, 1))
    content = RECORDS[number].content
    name = data.draw(st.sampled_from(list(TRACE_SECTIONS if number == 0 else GLOBAL_SECTIONS)))
    array = getattr(content, name).copy()
    info = np.iinfo(array.dtype)
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, array.size - 1))
        extreme = st.sampled_from((int(info.min), int(info.max), 0, 1, -1 if info.min < 0 else 2))
        array.ravel()[place] = data.draw(extreme | st.integers(int(info.min), int(info.max)))
    else:
        array = array[: data.draw(st.integers(0, len(array) - 1))]
    changed = [dataclasses.replace(record) for record in RECORDS]
    changed[number] = dataclasses.replace(RECORDS[number], content=dataclasses.replace(content, **{name: array}))
    try:
        file = write(changed)
    except (ValueError, IndexError):
        return  # no file of this content can be written
    survive(file)


def test_newer_versions_are_refused_by_name():
    for version, word in ((VERSION + 1, "newer"), (VERSION - 1, "older")):
        data = bytearray(DATA)
        data[8:12] = version.to_bytes(4, "little")
        assert word in refused(data)


def test_more_than_the_budget_is_refused_before_it_is_unpacked():
    """Zeros pack a thousand times smaller; a small file must not fill the memory."""
    header, body = parts()
    section = header["records"][0]["sections"][0]
    bomb = zlib.compress(bytes(1 << 22), 9)
    section |= {"count": 1 << 22, "width": "i1", "bytes": len(bomb), "crc32": zlib.crc32(bomb)}
    with pytest.raises(BudgetError, match="--max-trace"):
        read_traces(sealed(header, bomb + body), "x", limit=1 << 20)


@examples(200, 5_000, st.data())
def test_rows_unpack_to_what_was_packed(data):
    """For any paths and numbers of accesses, also none."""
    warps = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12))
    path = np.array([p for p, _ in warps], np.int32)
    start = np.cumsum([0, *(n for _, n in warps)])
    values = np.array(
        data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=int(start[-1]), max_size=int(start[-1]))), np.uint64
    )
    rows = Rows.of(path, start)
    for coding in ("plain", "delta", "rows"):
        width, packed = pack(values, coding, rows)
        assert np.array_equal(unpack(packed, width, len(values), coding, "uint64", rows), values)
        for count in (len(values) + 1, len(values) - 1):
            if count >= 0:
                with pytest.raises(Damaged):
                    unpack(packed, width, count, coding, "uint64", None)
