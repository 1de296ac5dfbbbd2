"""PTX text to module, control flow, instruction table. Independent of any GPU."""

from ppt_gpu.ptx.module import Instruction, Kernel, Module
from ppt_gpu.ptx.parsing.parser import load_module, parse_module, select_kernel

__all__ = ["Instruction", "Kernel", "Module", "load_module", "parse_module", "select_kernel"]
