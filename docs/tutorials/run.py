"""Run the Python blocks and the commands of a page in order, as a reader would, and compare their output with the text blocks after them.

`python docs/tutorials/run.py` runs all tutorials and writes their pictures into docs/tutorials/images; the tests run them too.
A text block directly after a Python block is the output of that block; ... in it matches any text. A console block is one command of
hushgraph after a dollar sign, and its output.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?|^```console\n\$ ((?:[^\n]*\\\n)*[^\n]*\n)(.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
PICTURE = re.compile(r"!\[[^\]]*\]\(images/([^)]+)\)")
WIDTH = 1600  # pixels
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """Code, its expected output (None: anything), the line of the page where the code starts, and whether it is a command."""

    code: str
    prints: str | None
    line: int
    is_command: bool


def blocks(text: str) -> list[Block]:
    """Return the Python blocks and the commands of a page."""
    return [
        Block(match[1] or match[3], match[4] if match[3] else match[2], text[: match.start()].count("\n") + 2, bool(match[3]))
        for match in BLOCK.finditer(text)
    ]


def run(page: Path, folder: Path) -> None:
    """Run all blocks of the page in `folder`; raise an AssertionError that names the block whose output differs."""
    names: dict = {"__name__": "__main__"}
    checker = doctest.OutputChecker()
    for block in blocks(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            if block.is_command:
                sys.stdout.write(run_command(block.code))
            else:
                exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)  # errors name the line of the page
        if block.prints is not None and not checker.check_output(block.prints, printed.getvalue(), FLAGS):
            msg = f"{page.name}, line {block.line}: the page says\n{block.prints}\nand the code prints\n{printed.getvalue()}"
            raise AssertionError(msg)


def run_command(line: str) -> str:
    """Run a command of hushgraph and return what it prints."""
    _, *arguments = shlex.split(line.replace("\\\n", " "))
    return subprocess.run([sys.executable, "-m", "hushgraph", *arguments], capture_output=True, text=True, check=True).stdout


def pictures(page: Path) -> list[str]:
    """Return the names of the pictures of a page, which its code must write."""
    return PICTURE.findall(page.read_text(encoding="utf-8"))


def _shrink_picture(picture: Path, path: Path) -> None:
    """Write a copy for the page: at most as wide as a screen, in few colours."""
    from PIL import Image

    with Image.open(picture) as image:
        image = image.convert("RGB")
        image.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
        image.quantize(256).save(path, optimize=True)


def main() -> None:
    """Run all pages and store their pictures."""
    here = Path(__file__).parent
    os.environ.setdefault("HUSHGRAPH_STATE", tempfile.mkdtemp())
    os.environ.setdefault("MPLBACKEND", "agg")
    for page in sorted(here.glob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            run(page, Path(folder))
            (here / "images").mkdir(exist_ok=True)
            for name in pictures(page):
                _shrink_picture(Path(folder) / name, here / "images" / name)
        sys.stdout.write(f"{page.name}: ran\n")


if __name__ == "__main__":
    main()
