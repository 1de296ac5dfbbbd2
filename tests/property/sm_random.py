"""Random programs and GPUs for the SM simulator: all that the contract allows, small enough for the plain reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.policies import POLICIES
from ppt_gpu.sm.program.program import (
    EVENT_COUNTS,
    EVENT_LATE,
    EVENT_WAITS,
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_COMPUTE,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    RESULT_AT,
    Program,
    operand_bits,
)
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import TASK_CLASSES, CodeCache, Collectors, ConstantCache, Gpu, Pipe

CLASSES = {
    KIND_COMPUTE: ("fp32", "int32", "sfu", "shuffle", "fence"),
    KIND_BRANCH: ("branch",),
    KIND_BARRIER: ("barrier",),
    KIND_LOAD: ("load.global", "load.local"),
    KIND_STORE: ("store.global", "store.local"),
    KIND_ATOMIC: ("atomic.global",),
    KIND_SHARED: ("load.shared", "store.shared"),
    KIND_CONSTANT: ("load.constant",),
}
CODE = (
    CodeCache(),
    CodeCache(size=16, line=8, ways=1),
    CodeCache(size=64, line=16, ways=2),
    CodeCache(size=1024, line=32, ways=4),
)
CONSTANTS = (
    ConstantCache(),
    ConstantCache(size=64, miss=0, fill=0.7),
    ConstantCache(size=256, ways=1, miss=30, fill=3.3, caches=2),
    ConstantCache(size=2048, miss=70, fill=20.0),
)
QUEUED = (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED)
UNLIKE = ("wall", "skipped_cycles")


def outcome(run: Callable[..., SmResult], *arguments: Any) -> SmResult | str:
    """The result of a run, or why it never ends. BudgetError when it takes too many cycles."""
    try:
        return run(*arguments)
    except BudgetError:
        raise
    except PptError as error:
        return str(error)


def differences(one: SmResult | str, other: SmResult | str) -> list[str]:
    """Names of the fields, how they were found apart, in which two results differ; or why only one of them ends."""
    if isinstance(one, str) or isinstance(other, str):
        return [] if one == other else [f"{one} | {other}"]
    names = [field.name for field in dataclasses.fields(one) if field.name not in UNLIKE]
    return [name for name in names if not np.array_equal(getattr(one, name), getattr(other, name))]


@st.composite
def gpus(draw: st.DrawFn) -> Gpu:
    """A GPU with everything the SM loop reads drawn anew."""
    base = load_gpu("k40")
    small = st.integers(1, 4)
    pipes = {
        name: Pipe(name, 32, draw(st.sampled_from(("sm", "scheduler"))), draw(st.integers(1, 6)), 1)
        for name in ("math", "slow", "lsu", "control")
    }
    pipes["unit"] = Pipe("unit", 32, "sm", 1, 1, queue=draw(st.integers(1, 4)))
    replace = dataclasses.replace
    l1 = replace(
        base.l1,
        size=draw(st.sampled_from((0, 128, 512, 2048, 16384))),
        ways=draw(small),
        latency=draw(st.integers(1, 40)),
        sector=draw(st.sampled_from((32, 64, 128))),
        mshrs=draw(st.sampled_from((1, 2, 7, 64))),
        mshr_merges=draw(st.integers(1, 4)),
        write=draw(st.sampled_from(("write-through", "write-evict", "write-back"))),
        write_allocate=draw(st.booleans()),
        replacement=draw(st.sampled_from(("lru", "fifo"))),
        index=draw(st.sampled_from(("linear", "hash"))),
        caches_global=draw(st.booleans()),
        reserves=draw(st.booleans()),
    )
    l2 = replace(
        base.l2,
        size=draw(st.sampled_from((128, 1024, 8192, 1 << 20))),
        ways=draw(small),
        latency=draw(st.integers(1, 300)),
        bandwidth=draw(st.sampled_from((20.0, 80.0, 1000.0))),
        partitions=draw(st.integers(1, 3)),
        far_latency=draw(st.sampled_from((0, 7, 200))),
        write=draw(st.sampled_from(("write-back", "write-through"))),
        write_allocate=draw(st.booleans()),
        replacement=draw(st.sampled_from(("lru", "fifo"))),
    )
    return replace(
        base,
        pipes=pipes,
        l1=l1,
        l2=l2,
        sm=replace(
            base.sm,
            schedulers=draw(st.sampled_from((1, 2, 3, 4))),
            issue_width=draw(st.sampled_from((1, 2))),
            policy=draw(st.sampled_from(POLICIES)),
            turned=draw(st.booleans()),
        ),
        shared=replace(base.shared, latency=draw(st.integers(1, 40))),
        dram=replace(
            base.dram,
            bandwidth=draw(st.sampled_from((20.0, 80.0, 600.0))) * base.sm.clock,
            latency=draw(st.integers(1, 400)),
            turnaround=draw(st.sampled_from((0.0, 0.2, 3.0))),
            loaded_latency=draw(st.sampled_from((0, 90, 700))),
            burst=draw(st.sampled_from((0, 64, 128))),
        ),
        interconnect=replace(base.interconnect, bandwidth=draw(st.sampled_from((5.0, 32.0, 500.0)))),
        memory=replace(
            base.memory,
            queue=draw(st.sampled_from((1, 2, 5, 32))),
            transactions_per_cycle=draw(st.sampled_from((0.5, 1.0, 3.0))),
            constant_latency=draw(st.integers(1, 30)),
            atomics_per_cycle=draw(st.sampled_from((0.3, 1.0, 2.0))),
            requests_per_cycle=draw(st.sampled_from((0.0, 0.3, 1.0))),
            request_queue=draw(st.sampled_from((1, 4, 16))),
            miss_latency=draw(st.sampled_from((0, 4))),
            store_ack=draw(st.booleans()),
            store_latency=draw(st.sampled_from((0, 30))),
            constant_cold=draw(st.booleans()),
            constant_queued=draw(st.booleans()),
        ),
        code=draw(st.sampled_from(CODE)),
        constants=draw(st.sampled_from(CONSTANTS)),
        host=replace(
            base.host,
            block_launch=draw(st.sampled_from((0, 1, 20, 100))),
            warp_launch=draw(st.integers(0, 7)),
            blocks_per_cycle=draw(st.sampled_from((0.0, 0.1, 1.0))),
        ),
        perfect_memory=draw(st.integers(0, 9)) == 0,
    )


def _operations(rng: np.random.Generator, memory: float) -> dict[str, np.ndarray]:
    """Two operations of every kind on random pipes (memory kinds may share theirs with others)."""
    kinds = np.repeat(np.arange(8), 2).astype(np.int8)
    names = [rng.choice(CLASSES[int(kind)]) for kind in kinds]
    served = (kinds == KIND_COMPUTE) & (rng.random(len(kinds)) < 0.4)
    weight = np.where(np.isin(kinds, QUEUED), memory, 1.0) * np.where(kinds == KIND_BARRIER, 0.3, 1.0)
    return {
        "op_name": tuple(f"{name}.{index}" for index, name in enumerate(names)),
        "op_pipe": np.where(served, 4, rng.integers(0, 4, len(kinds))).astype(np.int32),
        "op_latency": rng.choice((0, 1, 2, 6, 20, 90), len(kinds)).astype(np.int32),
        "op_ii": rng.choice((0, 1, 1, 1, 2, 5), len(kinds)).astype(np.int32),
        "op_kind": kinds,
        "op_pc": np.arange(len(kinds), dtype=np.int32),
        "op_class": np.array([TASK_CLASSES.index(name) for name in names], np.int32),
        "weight": weight / weight.sum(),
    }


def _looped(rng: np.random.Generator, size: int, repeat: int) -> np.ndarray:
    """Entries 0 to `size` with a stretch of them repeated, a stretch of that again and again; `repeat` at most."""
    entries = np.arange(size)
    for _ in range(2):
        first, last = np.sort(rng.integers(0, len(entries) + 1, 2))
        entries = np.concatenate(
            (entries[:first], np.tile(entries[first:last], rng.integers(1, repeat)), entries[last:])
        )
    return entries


def random_program(
    seed: int, warps: int, blocks: int, length: int, lines: int, memory: float, repeat: int = 1, even: bool = False
) -> Program:
    """Reproducible from its arguments: `length` entries a path at most, `lines` distinct lines.

    Above 1, `repeat` bounds the rounds of loops. `even`: all memory operations are alike.
    """
    rng = np.random.default_rng(seed)
    ops = _operations(rng, memory)
    weight = ops.pop("weight")
    paths = int(rng.integers(1, 4))
    sizes = rng.integers(0 if rng.random() < 0.2 else 1, length + 1, paths)
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    total = int(start[-1])
    entry_op = rng.choice(len(weight), total, p=weight).astype(np.int32)
    slots = int(rng.choice((3, 8, 64)))
    entry_slot = np.where(rng.random(total) < 0.7, rng.integers(0, slots, total), -1).astype(np.int8)
    wait = np.zeros(total, np.uint64)
    for count in range(4):
        bits = np.left_shift(np.uint64(1), rng.integers(0, slots, total).astype(np.uint64))
        wait |= np.where(rng.random(total) < 0.4 / (count + 1), bits, np.uint64(0))
    if repeat > 1:
        loops = [a + _looped(rng, b - a, repeat) for a, b in pairwise(start)]
        start = np.concatenate(([0], np.cumsum([len(loop) for loop in loops]))).astype(np.int64)
        entry_op, entry_slot, wait = (values[np.concatenate(loops)] for values in (entry_op, entry_slot, wait))
    in_block = rng.integers(1, warps + 1, blocks) if rng.random() < 0.3 else np.full(blocks, warps)
    count = int(in_block.sum())
    path = rng.integers(0, paths, count).astype(np.int32)
    queued = np.isin(ops["op_kind"], QUEUED)[entry_op]
    per_path = np.array([queued[a:b].sum() for a, b in pairwise(start)], np.int64)
    warp_access = np.concatenate(([0], np.cumsum(per_path[path]))).astype(np.int64)
    kinds = [ops["op_kind"][entry_op[start[p] : start[p + 1]]] for p in path]
    kind = np.concatenate([k[np.isin(k, QUEUED)] for k in kinds] or [np.zeros(0, np.int8)])
    transactions = np.where(kind == KIND_SHARED, 0, rng.choice((0, 1, 1, 2, 5), len(kind)))
    if even:
        transactions = np.minimum(transactions, 1)
    tx = int(transactions.sum())
    forced = rng.random(tx) < (0.3 if rng.random() < 0.3 else 0.0)
    updates = rng.integers(1, 5, len(kind)).astype(np.int32) if rng.random() < 0.5 else np.zeros(0, np.int32)
    return Program(
        **ops,
        **(
            _constants(rng, ops["op_kind"], entry_op, start, path)
            if rng.random() < (0.5 if repeat == 1 else 0.2)
            else {}
        ),
        path_start=start,
        entry_op=entry_op,
        entry_wait=wait,
        entry_slot=entry_slot,
        warp_path=path,
        warp_access=warp_access,
        block_warp=np.concatenate(([0], np.cumsum(in_block))).astype(np.int64),
        access_start=np.concatenate(([0], np.cumsum(transactions))).astype(np.int64),
        access_cycles=(np.ones(len(kind)) if even else rng.integers(0, 4, len(kind))).astype(np.int32),
        tx_line=np.where(forced, rng.integers(-3, 0, tx), rng.integers(0, lines, tx)).astype(np.int32),
        tx_sectors=rng.integers(1, 16, tx).astype(np.uint8),
        line_address=(rng.permutation(4 * lines)[:lines] * 128).astype(np.uint64),
        line_warm=rng.choice((0, 0xFF, 5), lines, p=(0.5, 0.3, 0.2)).astype(np.uint8),
        line_kept=rng.random(lines) < 0.3 if rng.random() < 0.5 else np.zeros(0, np.bool_),
        line_coming=rng.integers(0, 16, lines).astype(np.uint8) if rng.random() < 0.5 else np.zeros(0, np.uint8),
        access_atomic=updates,
        l2_share_factor=float(rng.choice((1.0, 3.0))),
        l2_camping=float(rng.choice((1.0, 1.3))),
        l2_reads=float(rng.choice((0.7, 1.0, 1.2))),
        atomic_share=float(rng.choice((0.1, 1.0, 20.0))),
        op_posted=(ops["op_kind"] == KIND_ATOMIC) & (rng.random(len(ops["op_kind"])) < 0.5),
        dram_rows=float(rng.choice((1.0, 1.7))),
    )


def _constants(
    rng: np.random.Generator, kind: np.ndarray, entry_op: np.ndarray, start: np.ndarray, path: np.ndarray
) -> dict[str, np.ndarray]:
    """Some of the constants are looked up, a few lines a read."""
    looked_up = (kind == KIND_CONSTANT) & (rng.random(len(kind)) < 0.7)
    if not looked_up.any():
        return {}
    before = np.concatenate(([0], np.cumsum(looked_up[entry_op])))
    reads = (before[start[1:]] - before[start[:-1]])[path]
    lines = rng.choice((1, 1, 2, 5), int(reads.sum()))
    ends = np.concatenate(([0], np.cumsum(lines)))
    last = np.zeros(int(ends[-1]), np.bool_)
    last[ends[1:] - 1] = True
    return {
        "op_looked_up": looked_up,
        "constant_start": ends[np.concatenate(([0], np.cumsum(reads)))].astype(np.int64),
        "constant_line": rng.integers(0, rng.choice((3, 60)), int(ends[-1])).astype(np.int32),
        "constant_last": last,
    }


def with_events(program: Program, seed: int) -> Program:
    """`program` with events at some of its barriers and loads, such that in some order all warps come to their end."""
    rng = np.random.default_rng(seed)
    bits, of_load = np.zeros(len(program.op_name), np.int8), EVENT_COUNTS | EVENT_LATE
    kind = program.op_kind.copy()
    if rng.random() < 0.6:  # more of them: what else computes waits for mbarriers, or arrives at them
        kind[kind == KIND_COMPUTE] = KIND_BARRIER
    for op in np.flatnonzero(np.isin(kind, (KIND_BARRIER, KIND_LOAD))):
        of_barrier = (0, EVENT_COUNTS, of_load, EVENT_WAITS, EVENT_COUNTS | EVENT_WAITS)
        if program.op_kind[op] != kind[op]:
            of_barrier = (of_load, EVENT_WAITS)
        bits[op] = rng.choice((0, of_load) if kind[op] == KIND_LOAD else of_barrier)
    program = dataclasses.replace(program, op_kind=kind)
    latency = np.where(kind == KIND_BARRIER, rng.choice((1, 20)), program.op_latency).astype(np.int32)
    paths = [program.entry_op[a:b].tolist() for a, b in pairwise(program.path_start)]
    of: list[list[int]] = [[] for _ in program.warp_path]
    count: list[int] = []
    for first, last in pairwise(program.block_warp.tolist()):
        _one_order(rng, [paths[p] for p in program.warp_path[first:last]], bits, program.op_kind, of[first:last], count)
    return dataclasses.replace(
        program,
        op_latency=latency,
        op_copies=(program.op_kind == KIND_LOAD) & (rng.random(len(bits)) < 0.4),
        op_event=bits,
        event_start=np.cumsum([0, *map(len, of)]).astype(np.int64),
        event_of=np.array([event for row in of for event in row], np.int32),
        event_count=np.array(count, np.int32),
    )


def _one_order(
    rng: np.random.Generator, streams: list, bits: np.ndarray, kinds: np.ndarray, of: list[list[int]], count: list[int]
) -> None:
    """Let the warps of a block go on in some order, and note the events that they count for or wait for."""
    place, held = [0] * len(streams), [-1] * len(streams)  # held: -2 at the block's barrier, else by an event
    closed, open_ = [-1], [len(count), len(count) + 1]
    count += [0, 0]

    def close(index: int) -> None:
        closed.append(open_[index])
        open_[index] = len(count)
        count.append(0)

    while True:
        live = [w for w, stream in enumerate(streams) if place[w] < len(stream)]
        if not live:
            return
        for w in live:
            held[w] = -1 if held[w] in closed else held[w]
        if all(held[w] == -2 for w in live):
            for w in live:
                held[w] = -1
        free = [w for w in live if held[w] == -1]
        if not free or rng.random() < 0.2:  # mostly an event that somebody counts for
            close(int(rng.integers(0, 2) if rng.random() < 0.3 else count[open_[1]] > count[open_[0]]))
            continue
        w = int(rng.choice(free))
        op = streams[w][place[w]]
        place[w] += 1
        last = place[w] == len(streams[w])
        if bits[op] & EVENT_COUNTS:
            event = int(rng.choice(open_)) if rng.random() < 0.9 else -1
            of[w].append(event)
            if event >= 0:
                count[event] += 1
            held[w] = event if bits[op] & EVENT_WAITS and not last else -1
        elif bits[op]:
            of[w].append(int(rng.choice(closed) if rng.random() < 0.3 else closed[-1]))
        elif kinds[op] == KIND_BARRIER and not last:
            held[w] = -2


looping_programs = st.builds(
    random_program,
    seed=st.integers(0, 2**32),
    warps=st.integers(1, 6),
    blocks=st.integers(1, 3),
    length=st.integers(1, 12),
    lines=st.sampled_from((1, 4, 400)),
    memory=st.sampled_from((0.0, 0.1, 1.0)),
    repeat=st.sampled_from((8, 30, 100)),
    even=st.booleans(),
)
programs = st.builds(
    random_program,
    seed=st.integers(0, 2**32),
    warps=st.integers(1, 9),
    blocks=st.integers(1, 6),
    length=st.integers(1, 25),
    lines=st.sampled_from((1, 4, 30, 400)),
    memory=st.sampled_from((0.1, 1.0, 4.0)),
)


@st.composite
def staged_gpus(draw: st.DrawFn) -> Gpu:
    """A random GPU with collector units, of its schedulers or of its pipes."""
    gpu = draw(gpus())
    shared = draw(st.booleans())
    collectors = Collectors(
        units=draw(st.integers(1, 4)),
        scope="sm" if shared else "scheduler",
        steps=draw(st.integers(1, 3)),
        banks=draw(st.sampled_from((1, 3, 4, 8, 16))),
        fetches=draw(st.integers(1, 4)),
        order=draw(st.sampled_from(((), ("slow", "lsu"), ("math", "control", "slow", "lsu")))),
        results=draw(st.sampled_from((0, 1, 2, 8))),
        one_result=draw(st.booleans()),
    )
    policy = draw(st.sampled_from(("lrr", "gto", "gto_launch")))
    sm = dataclasses.replace(gpu.sm, policy=policy)
    pipes = {name: dataclasses.replace(pipe, queue=0) for name, pipe in gpu.pipes.items()}  # not with collector units
    if shared:
        own = {name: draw(st.sampled_from((0, 1, 3, 6))) for name in pipes}
        pipes = {name: dataclasses.replace(pipe, scope="sm", collectors=own[name]) for name, pipe in pipes.items()}
    if collectors.one_result:  # for up to 64 units of an SM
        most = 64 // (len(pipes) * gpu.sm.schedulers)
        pipes = {name: dataclasses.replace(pipe, units=min(pipe.units, most)) for name, pipe in pipes.items()}
    return dataclasses.replace(gpu, sm=sm, pipes=pipes, collectors=collectors)


@st.composite
def pipelined_gpus(draw: st.DrawFn) -> Gpu:
    """A random GPU with collector units and pipelines before the banks of its L1."""
    gpu = draw(staged_gpus())
    l1 = dataclasses.replace(
        gpu.l1,
        size=draw(st.sampled_from((256, 2048, 16384))),
        sector=(sector := draw(st.sampled_from((32, 32, 64, 128)))),
        sector_banks=draw(st.sampled_from([banks for banks in (1, 2, 4) if banks * sector <= 128])),
        miss_queue=draw(st.sampled_from((2, 3, 16))),
        sets=draw(st.sampled_from((0, 2))),
        write=draw(st.sampled_from(("write-through", "write-evict"))),
    )
    memory = dataclasses.replace(gpu.memory, requests_per_cycle=1.0, store_ack=True)
    return dataclasses.replace(gpu, l1=l1, memory=memory)


def with_operands(program: Program, seed: int, banks: int) -> Program:
    """The program with register operands in random banks."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, (len(program.op_name), banks)) * (rng.random((len(program.op_name), 1)) < 0.8)
    results = rng.integers(0, banks + 1, len(program.op_name)) << RESULT_AT
    reads = (counts << operand_bits(banks) * np.arange(banks)).sum(axis=1)
    return dataclasses.replace(program, op_operands=reads | results)
