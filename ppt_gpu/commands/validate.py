"""validate: reference cases, and how far predictions are from them."""

from __future__ import annotations

import argparse

from ppt_gpu.validate import validate


def run(arguments: argparse.Namespace) -> str:
    return validate(
        arguments.set,
        arguments.case,
        as_json=arguments.json,
        plot=arguments.plot,
        captures=arguments.capture,
        level=arguments.level,
        speed=arguments.speed,
    )
