"""GPU descriptions: dataclasses, a strict TOML reader, rules between values, and the shipped files."""

from __future__ import annotations

from ppt_gpu.spec.gpu import Gpu, Isa
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.spec.load import GpuEntry, canonical, fingerprint, list_gpus, load_gpu

__all__ = ["Gpu", "GpuEntry", "Isa", "canonical", "fingerprint", "list_gpus", "load_gpu", "load_isa"]
