#!/usr/bin/env python3
"""Run ppt_gpu from a checkout: the same program as the installed `ppt-gpu`."""

from ppt_gpu.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
