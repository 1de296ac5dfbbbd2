"""Helper functions that compiled kernels call: memory accesses, atomics, shuffles, special functions.

Each is written as LLVM IR on first use, compiled once per process with full optimisation, and called by its address.
Kernels themselves are compiled without optimisation: nearly all of their time is spent in here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar

Writer = TypeVar("Writer", bound="Callable[..., Written]")

#: family -> writer of the function `name` for the remaining parts of a key
_WRITERS: dict[str, Callable[..., Written]] = {}
_NUMBERS = itertools.count()


class Written(Protocol):
    """A helper function as its writer gives it."""

    def module(self, name: str) -> str:
        """An LLVM module that defines the function under this name."""
        ...


def writes(family: str) -> Callable[[Writer], Writer]:
    """Registers the writer of a family of helper functions; a key is (family, parameter, ...)."""

    def register(writer: Writer) -> Writer:
        _WRITERS[family] = writer
        return writer

    return register


@cache  # the compiler keeps them all anyway
def helper_address(key: tuple[Any, ...]) -> int:
    """Compile the helper `key` if it is new. Returns its address. Its writer's module must have been imported."""
    family, *parameters = key
    name = f"h{next(_NUMBERS)}_{family}"  # two helpers of one name would be one to the linker
    text = _WRITERS[family](*parameters)
    return _compiler().add(text.module(name), name)


@lru_cache(maxsize=1)
def _compiler() -> Compiler:
    return Compiler(level=2)


class Compiler:
    """LLVM for this host's CPU. Level 0: fast to compile; level 2: fast code."""

    def __init__(self, level: int) -> None:
        from llvmlite import binding

        _initialise()
        self.binding = binding
        self.level = level
        target = binding.Target.from_default_triple()
        self.machine = target.create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=level,
            jit=True,
        )
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), self.machine)

    def add(self, text: str, name: str) -> int:
        """Compile a module and return the address of its function `name`."""
        module = self.binding.parse_assembly(text)
        if self.level:
            options = self.binding.create_pipeline_tuning_options(speed_level=self.level)
            builder = self.binding.create_pass_builder(self.machine, options)
            builder.getModulePassManager().run(module, builder)
        self.engine.add_module(module)
        self.engine.finalize_object()
        return self.engine.get_function_address(name)


@lru_cache(maxsize=1)
def _initialise() -> None:
    from llvmlite import binding

    with contextlib.suppress(RuntimeError):  # needed before llvmlite 0.45, an error after
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
