"""The command line: `ppt-gpu`, `python -m ppt_gpu`, `python run_sim.py`. Heavy imports wait for the command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any, NoReturn

from ppt_gpu.commands.options import kernels, studies, systems
from ppt_gpu.common import interrupt, progress
from ppt_gpu.common.errors import PptError, did_you_mean, nearest
from ppt_gpu.common.interrupt import prompt_interrupts
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.threads import at_most, at_work

EXAMPLES = """\
examples:
  ppt-gpu predict sgemm --gpu k40
  ppt-gpu predict my.cu --gpu a100 --grid 4096 --block 256 --arg 'f32[1048576]=random' --arg i32=1048576
  ppt-gpu predict my.ptx --gpu my_gpu.toml --grid 64,64 --block 16,16 --arg 'f32[1048576]=random' --arg i32=1024
  ppt-gpu predict sgemm --gpu k40 --set sm.count=30 --json
  ppt-gpu compare sgemm --gpu k40 --explain gpumech
  ppt-gpu gpus k40
"""


class _Parser(argparse.ArgumentParser):
    """Argument errors in the form of every other error, with the nearest valid name."""

    def error(self, message: str) -> NoReturn:
        raise PptError(message, hint=f"see: {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        option = next((each.partition("=")[0] for each in rest if each.startswith("-")), None)
        if option is not None:
            close = _option_like(option, self._option_string_actions)
            hint = f"did you mean '{close}'?" if close else f"see: {self.prog} --help"
            raise PptError(f"unknown option '{option}'", hint=hint)
        return found, rest

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except PptError as error:
            name = action.option_strings[0] if action.option_strings else ""
            if not name or error.message.startswith(name):
                raise
            raise PptError(f"{name}: {error.message}", hint=error.hint) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            what = "command" if action.dest == "command" else (action.option_strings or [action.dest])[0]
            raise PptError(f"unknown {what} '{value}'", hint=did_you_mean(str(value), names))


def _option_like(option: str, known: Iterable[str]) -> str | None:
    """The known option of which `option` has some of the words ("--shared": "--dynamic-shared"), else the nearest."""
    words = set(option.strip("-").split("-"))
    long = [name for name in known if name.startswith("--")]
    return next((name for name in long if words <= set(name.split("-"))), None) or nearest(option, long)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or 2 after printing one clear error on standard error."""
    try:
        with prompt_interrupts():
            arguments = _parser(_command(sys.argv[1:] if argv is None else argv)).parse_args(argv)
            with progress.shown(arguments.command), at_most(getattr(arguments, "working_threads", None)):
                output = _run(arguments)
            _write(output, getattr(arguments, "output", None))
    except PptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:  # a checkout whose requirements are not installed for this Python
        package = (error.name or "").partition(".")[0]
        if package in ("", "ppt_gpu"):
            raise
        print(f"error: {_not_installed(package)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _OutputError as error:  # a full disk
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again at its end
        return 2
    except OSError as error:  # a folder that may not be entered, a name that is too long
        print(f"error: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(interrupt.TEXT, file=sys.stderr)
        # Nobody can stop other threads' compiled code, and to take apart what was being worked on can take seconds.
        if argv is None or at_work():
            sys.stderr.flush()
            interrupt.end_now()
        return interrupt.CODE
    return 0


def _run(arguments: argparse.Namespace) -> str:
    """What the command prints. What runs it is imported here, so that Ctrl-C is answered with one line meanwhile."""
    output: str = resolve_name(f"ppt_gpu.commands.{arguments.run}")(arguments)
    return output


def _not_installed(package: str) -> PptError:
    return PptError(
        f"the Python package '{package}' is not installed for {sys.executable}",
        hint="in the folder of ppt_gpu: python -m pip install .",
    )


class _OutputError(OSError):
    """Standard output takes no more."""


def _write(text: str, path: str | None) -> None:
    if path is None:
        try:
            sys.stdout.write(printable(text, sys.stdout.encoding or "utf-8"))
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _OutputError(error.errno, error.strerror) from None
    else:
        write_whole(path, text.encode("utf-8", "surrogateescape"))


#: what stands for characters that a terminal cannot show
PLAIN = str.maketrans(
    {"█": "#", "·": ".", "µ": "u", "²": "2", "×": "x", "…": "...", "–": "-", "—": "-", "→": "->", "≤": "<=", "≥": ">="}
)


def printable(text: str, encoding: str) -> str:
    """`text` as far as `encoding` has its characters; others as plain ones, or '?'."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(PLAIN)
        return plain.encode(encoding, "replace").decode(encoding)
    return text


def _command(words: Sequence[str]) -> str | None:
    """The command among the words of a command line, where its options follow."""
    return words[0] if words and not words[0].startswith("-") else None


class _NotAsked(argparse.ArgumentParser):
    """A command that is not the one to be run: its name and its text are known, its options are not needed."""

    def add_argument(self, *arguments: Any, **options: Any) -> Any:
        return argparse.Action((), "")

    def add_mutually_exclusive_group(self, **options: Any) -> Any:
        return self


def _parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands; with their options, or that one alone of which it is known that it will be run."""
    parser = _Parser(
        prog="ppt-gpu",
        description="Predicts how long a GPU kernel takes, without the GPU.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    spare = _NotAsked(add_help=False)

    def command(name: str, run: str, text: str) -> argparse.ArgumentParser:
        if only is not None and only != name:
            commands.add_parser(name, help=text, add_help=False)
            return spare
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="one JSON document on standard output")
        return added

    for group in (kernels, studies, systems):
        group.add(command)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
