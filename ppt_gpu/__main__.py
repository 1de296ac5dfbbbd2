"""Starts the command line: `python -m ppt_gpu`."""

from ppt_gpu.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
