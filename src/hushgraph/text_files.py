"""Files in bounded pieces: blocks of whole lines with their numbers, plain or .gz; and files that are written whole or not at all.

Knows nothing of graphs. Nothing is raised while another error is handled, since that one may carry a piece of the file.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hushgraph._errors import FolderThereError, InputError, NoFileError, NoFolderError, NotAllowedError, Sentence

CUT_SHORT = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError)  # what reading a damaged file raises
BLOCK = 1 << 23  # bytes
LONGEST_LINE = 1 << 22  # bytes
UNPACKED_FREELY, MOST_UNPACKED = 1 << 28, 200  # bytes; times the packed size, for files that unpack to more than that
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS_OF_UTF_16 = b"\xff\xfe", b"\xfe\xff"


def existing_file(path, what: str) -> Path:
    path = Path(path)
    if not path.is_file():
        msg = f"{what} {path} does not exist or is a folder; check the path"
        raise NoFileError(msg)
    return path


def unreadable(path: Path, line: int) -> ValueError:
    return InputError(f"{path} cannot be read after line {line}: it is truncated, not text, or not gzip; copy or download it again")


# ---- reading --------------------------------------------------------------------------------------------------------


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, some at a time; what unpacks to absurdly much is refused."""
    packed, total = path.stat().st_size, 0
    is_packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if is_packed else path.open("rb") as file:
        while piece := file.read1(BLOCK):
            total += len(piece)
            if is_packed and total > UNPACKED_FREELY and total > MOST_UNPACKED * packed:
                msg = f"{path} unpacks to more than {MOST_UNPACKED} times its size, which no graph does; unpack it by hand if it is one"
                raise InputError(msg)
            yield piece


def large_blocks(path: Path) -> Iterator[bytes]:
    """The same bytes, megabytes at a time; the last block may be shorter."""
    held = bytearray()
    for piece in pieces(path):
        if not held and len(piece) >= BLOCK:
            yield piece
            continue
        held += piece
        if len(held) >= BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def all_bytes(path: Path) -> io.BytesIO:
    """The whole file, unpacked, for formats that are read in any order."""
    whole, content = True, io.BytesIO()
    try:
        for piece in pieces(path):
            content.write(piece)
    except CUT_SHORT:
        whole = False
    if not whole:
        msg = f"{path} cannot be unpacked: it is truncated or not gzip; copy or download it again"
        raise InputError(msg)
    content.seek(0)
    return content


def line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number of lines before, bytes of whole lines), some megabytes at a time; a line of many megabytes is refused."""
    before, line, held, whole = 0, 0, bytearray(), True  # `line` is where the last, unfinished line begins in what is held
    try:
        for piece in pieces(path):
            cut = piece.rfind(b"\n") + 1
            line = len(held) + cut if cut else line
            held += piece
            if len(held) - line > LONGEST_LINE:
                break
            if line >= BLOCK:
                block = bytes(held[:line])
                del held[:line]
                line = 0
                yield before, _unmarked(path, before, block)
                before += block.count(b"\n")
    except CUT_SHORT:
        whole = False
    if not whole:
        raise unreadable(path, before + held.count(b"\n"))
    if len(held) - line > LONGEST_LINE:
        number = before + held.count(b"\n") + 1
        msg = f"line {number} of {path} is longer than {LONGEST_LINE >> 20} MB; expected lines of text; check that it is the right file"
        raise InputError(msg)
    if held:
        yield before, _unmarked(path, before, bytes(held))


def _unmarked(path: Path, before: int, block: bytes) -> bytes:
    """Without the mark that some programs begin a file of UTF-8 with."""
    if not before and block.startswith(_MARKS_OF_UTF_16):
        msg = f"{path} is text in UTF-16; expected UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)"
        raise InputError(msg)
    return block.removeprefix(b"" if before else BYTE_ORDER_MARK)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line); a file that ends too early or is no text is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("a\\nb\\n")
    ...     list(numbered_lines(path))
    [(1, 'a\\n'), (2, 'b\\n')]
    """
    for before, block in line_blocks(path):
        yield from enumerate(_lines(path, before, block), start=before + 1)


def _lines(path: Path, before: int, block: bytes) -> list[str]:
    try:
        lines = block.decode().split("\n")
    except UnicodeDecodeError as fault:
        good = block[: fault.start].count(b"\n")
        lines = []
    if not lines:
        raise unreadable(path, before + good)
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


# ---- writing --------------------------------------------------------------------------------------------------------


def check_folder(place: Path, *, expected: str = "", advice: str) -> None:
    """Refuse a place that is no folder and cannot become one, or that cannot be written to; the error begins and ends as told."""
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise NoFolderError(Sentence("{}{} is a file, and a folder is needed there; {}", expected, place, advice))
    if not os.access(place, os.W_OK | os.X_OK):
        raise NotAllowedError(Sentence("{}{} cannot be written to; {}", expected, place, advice))


@contextmanager
def replacing(path) -> Iterator[BinaryIO]:
    """A file to write bytes to, packed if the name ends in .gz; it takes its name at the very end, or the old file stays."""
    path = Path(path)
    if path.is_dir():
        msg = f"{path} is a folder; give the name of a file"
        raise FolderThereError(msg)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        with draft.open("xb") as file:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
