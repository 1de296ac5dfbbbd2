"""The machines and benchmarks of Hong and Kim's paper as data: Tables 3 to 6."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class Machine:
    """A column of Table 3. A GPU of `hardware/` has the same chip, with values from other sources."""

    title: str
    sms: int
    cores: int
    graphics_clock: int  # MHz
    processor_clock: float  # GHz
    memory: int  # MB
    bandwidth: float  # GB/s
    gflops: float  # Gflop/s, peak
    capability: tuple[int, int]
    uncoal_per_mw: int | None  # None: counted for each access


MACHINES = {
    "8800gtx": Machine("8800GTX", 16, 128, 575, 1.35, 768, 86.4, 345.6, (1, 0), 32),
    "fx5600": Machine("Quadro FX5600", 16, 128, 600, 1.35, 1536, 76.8, 384.0, (1, 0), 32),
    "8800gt": Machine("8800GT", 14, 112, 600, 1.5, 512, 57.6, 336.0, (1, 1), 32),
    "gtx280": Machine("GTX280", 30, 240, 602, 1.3, 1024, 141.7, 933.0, (1, 3), None),
}


@dataclass(frozen=True)
class MicroBenchmark:
    """A column of Table 4: instructions of one iteration of the loop."""

    memory: int
    comp: int
    fp: int  # of comp


MICRO_BENCHMARKS = {
    "Mb1": MicroBenchmark(0, 23, 20),
    "Mb2": MicroBenchmark(1, 17, 8),
    "Mb3": MicroBenchmark(1, 29, 20),
    "Mb4": MicroBenchmark(2, 27, 12),
    "Mb5": MicroBenchmark(2, 35, 20),
    "Mb6": MicroBenchmark(4, 47, 20),
    "Mb7": MicroBenchmark(6, 59, 20),
}


@dataclass(frozen=True)
class Benchmark:
    """A row of Table 5. The counts of the tiled product depend on the size of its tiles: from, to."""

    comp: tuple[int, int]
    memory: tuple[int, int]
    coalesced: bool
    registers: int
    shared: int  # B


BENCHMARKS = {
    "Sepia": Benchmark((71, 71), (6, 6), False, 7, 52),
    "Linear": Benchmark((111, 111), (30, 30), False, 15, 60),
    "SVM": Benchmark((10871, 10871), (819, 819), True, 9, 44),
    "Mat. (naive)": Benchmark((12043, 12043), (4001, 4001), False, 10, 88),
    "Mat. (tiled)": Benchmark((9780, 24580), (201, 1001), False, 18, 3960),
    "Blackscholes": Benchmark((137, 137), (7, 7), False, 11, 36),
}


@dataclass(frozen=True)
class MemoryParameters:
    """A column of Table 6, or what takes its place for another GPU. Cycles."""

    mem_ld: float
    dep_uncoal: float
    dep_coal: float
    source: str


TABLE_6 = {
    "FX5600": MemoryParameters(420, 10, 4, "Table 6, FX5600"),
    "GTX280": MemoryParameters(450, 40, 4, "Table 6, GTX280"),
}
#: FX5600, 8800GTX and 8800GT have the same parameters (section 5.1)
_COLUMNS = {"8800gtx": "FX5600", "fx5600": "FX5600", "8800gt": "FX5600", "gtx280": "GTX280"}


def memory_parameters(gpu: Gpu) -> MemoryParameters:
    """Table 6 for the paper's GPUs; for others the same three numbers from the description of the GPU.

    A transaction follows another when the SM's share of the DRAM has moved its bytes (a sector; of compute capability
    1.2 and 1.3 a line), a coalesced one when its line has crossed the SM's interconnect. For FX5600 and GTX280 that
    yields 11.2 and 4, 43.9 and 4, where the paper fits 10 and 4, 40 and 4.
    """
    if gpu.name in _COLUMNS:
        return TABLE_6[_COLUMNS[gpu.name]]
    share = gpu.dram_bytes_per_cycle * gpu.dram.efficiency / gpu.sm.count
    moved = gpu.l2.line if gpu.memory.coalescing == "half_warp_1.2" else gpu.l2.sector
    return MemoryParameters(
        gpu.dram.latency,
        moved / share,
        gpu.l2.line / gpu.interconnect.bandwidth,
        "DRAM latency, sector over the SM's share of the DRAM bandwidth, line over the interconnect's",
    )
