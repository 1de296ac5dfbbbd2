"""calibrate: numbers of a hardware file from micro-benchmarks: of the simulated GPUs, or of one that was measured."""

from __future__ import annotations

import argparse

from ppt_gpu.calibrate.capture import calibrate_capture
from ppt_gpu.calibrate.hardware_file import write_hardware
from ppt_gpu.calibrate.report import to_json, to_text
from ppt_gpu.calibrate.simulator import RESTS, calibrate, configuration_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.spec.files import files_of
from ppt_gpu.validate.silicon.capture import read_capture


def run(arguments: argparse.Namespace) -> str:
    if arguments.capture:
        for name, value in (("a GPU of the reference simulator", arguments.gpu), ("--with", arguments.launches)):
            if value:
                raise PptError(f"--capture and {name} exclude each other", hint="--capture FILE --base GPU -o FILE")
        return _captured(arguments)
    if arguments.base or arguments.hardware:
        raise PptError(f"{'--base' if arguments.base else '-o'} is for --capture", hint="--capture FILE --base GPU")
    return _simulator(arguments)


def _simulator(arguments: argparse.Namespace) -> str:
    if not arguments.gpu:
        raise PptError("calibrate what?", hint=f"one of {', '.join(RESTS)}, or --capture FILE --base GPU -o FILE")
    name = configuration_of(arguments.gpu)
    if name is None:
        message = f"'{arguments.gpu}' is no GPU of the reference simulator"
        raise PptError(message, hint=f"one of {', '.join(RESTS)}; a measured GPU: --capture FILE --base GPU")
    found = calibrate(name, arguments.launches)
    if arguments.json:
        return to_json(name, found)
    return to_text(f"{name}: each number with which the launches that it rests on take as long as measured", found)


def _captured(arguments: argparse.Namespace) -> str:
    if not arguments.base:
        raise PptError("--capture needs --base", hint="the GPU or file whose other numbers are kept, such as h100")
    if arguments.hardware and not arguments.hardware.endswith(".toml"):
        raise PptError(f"-o {arguments.hardware}: a hardware file ends in .toml")
    check_outputs([arguments.hardware], lambda: (arguments.capture, *files_of("gpus", arguments.base)))
    capture = read_capture(arguments.capture)
    found = calibrate_capture(capture, arguments.base)
    if arguments.hardware:
        write_hardware(arguments.hardware, arguments.base, capture, found)
    if arguments.json:
        return to_json(capture.facts["gpu"], found)
    written = f"; written to {arguments.hardware}" if arguments.hardware else ""
    return to_text(f"{capture.facts['gpu']} over {arguments.base}, from {arguments.capture}{written}", found)
