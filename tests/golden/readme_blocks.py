"""The outputs pasted in README.md and docs: `python tests/golden/readme_blocks.py` runs their commands, pastes anew.

A block is an HTML comment with the command, then a fenced text block. `validate` shows the summary only.
"""

import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "exploration.md")
BLOCK = re.compile(r"<!-- (?P<command>[^>]+) -->\n```text\n(?P<text>.*?)```", re.S)


def output(command: str) -> str:
    """What the command prints, run in this process from the top of the checkout."""
    words = shlex.split(command)
    stream = io.StringIO()
    with redirect_stdout(stream):
        if words[0] == "bench":
            from benchmarks.__main__ import main as bench

            sys.argv = words
            bench()
        else:
            from ppt_gpu.cli import main

            assert main(words) == 0
    text = stream.getvalue()
    return text[text.index(f"{words[1]}, errors of") :] if words[0] == "validate" else text


def blocks(page: Path = README) -> dict[str, str]:
    """command -> text, as the page has them."""
    return {match["command"]: match["text"] for match in BLOCK.finditer(page.read_text())}


def main() -> None:
    def fresh(match: re.Match[str]) -> str:
        return f"<!-- {match['command']} -->\n```text\n{output(match['command'])}```"

    for page in PAGES:
        page.write_text(BLOCK.sub(fresh, page.read_text()))


if __name__ == "__main__":
    main()
