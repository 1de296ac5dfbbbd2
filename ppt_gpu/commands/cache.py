"""cache: what is kept between predictions, and where; and its removal."""

from __future__ import annotations

import argparse

from ppt_gpu.report.commands.cache import cache_report


def run(arguments: argparse.Namespace) -> str:
    return cache_report(clear=arguments.clear or arguments.action == "clear", as_json=arguments.json)
