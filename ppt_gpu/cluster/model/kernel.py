"""A kernel as an application names it: a workload, or a kernel file with its launch. Its time comes from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kernel:
    """A launch of a kernel; equal kernels on equal GPUs take equally long and are predicted once.

    `workload`: a sample's name, or a .toml, .ptx, .cu or .tl file. With `grid` and `block` its kernel is launched so,
    with `args` as on the command line ("f32[1048576]=random", "i32=1024"); a sample's name then means its kernel.
    `times`: so many such launches, one behind the other.
    """

    workload: str
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    args: tuple[str, ...] = ()
    kernel: str = ""
    registers: int | None = None
    times: int = 1

    def __str__(self) -> str:
        name = self.kernel or self.workload.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        if not self.grid:
            return name
        numbers = ", ".join(arg.partition("=")[2] for arg in self.args if "[" not in arg)
        return f"{name}[{'x'.join(map(str, self.grid))}]({numbers})" + (f" x {self.times}" if self.times > 1 else "")


#: (kernel, GPU) -> seconds
KernelTimes = Callable[[Kernel, str], float]


def no_kernel_times(kernel: Kernel, gpu: str) -> float:
    """For applications that give all times themselves."""
    raise ValueError(f"no time for {kernel} on {gpu}: give the simulation a source of kernel times")
