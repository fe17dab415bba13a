"""Text files in bounded pieces: blocks of whole lines with their numbers, plain or .gz.

No error is raised while another one is handled, since that one may carry a piece of the file.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from hushgraph._errors import InputError, NoFileError

CUT_SHORT = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError)  # what reading a damaged file raises
BLOCK = 1 << 23  # bytes
LONGEST_LINE = 1 << 22  # bytes
UNPACKED_FREELY, MOST_UNPACKED = 1 << 28, 200  # bytes; times the packed size, for files that unpack to more than that
_DECODED = 1 << 16  # bytes of lines decoded at a time
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS_OF_UTF_16 = b"\xff\xfe", b"\xfe\xff"


def existing_file(path: str | Path, what: str) -> Path:
    """Return the path of a file that exists; otherwise raise an error that begins with `what`."""
    path = Path(path)
    if not path.is_file():
        msg = f"{what} {path} does not exist or is a folder; check the path"
        raise NoFileError(msg)
    return path


def unreadable(path: Path, line: int) -> InputError:
    """Return the error for a file that cannot be read after a line."""
    return InputError(f"{path} cannot be read after line {line}: it is truncated, not text, or not gzip; copy or download it again")


# ---- reading --------------------------------------------------------------------------------------------------------


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked, some at a time; a file that unpacks to absurdly much is refused."""
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
    """Yield the bytes of a file, unpacked, megabytes at a time; the last block may be shorter."""
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
    """Return the whole file, unpacked, for formats that are not read from start to end."""
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
    """Yield (number of lines before, bytes of whole lines), some megabytes at a time; a line of many megabytes is refused."""
    before, parts, size, unfinished, whole = 0, [], 0, 0, True  # sizes of all parts and of their last line, in bytes
    try:
        for piece in pieces(path):
            cut = piece.rfind(b"\n") + 1
            unfinished = len(piece) - cut + (0 if cut else unfinished)
            parts.append(piece)
            size += len(piece)
            if unfinished > LONGEST_LINE:
                break
            if size - unfinished >= BLOCK // 2:
                held = b"".join(parts)
                block, parts, size = held[: size - unfinished], [held[size - unfinished :]], unfinished
                yield before, _unmarked(path, before, block)
                before += block.count(b"\n")
    except CUT_SHORT:
        whole = False
    held = b"".join(parts)
    if not whole:
        raise unreadable(path, before + held.count(b"\n"))
    if unfinished > LONGEST_LINE:
        number = before + held.count(b"\n") + 1
        msg = f"line {number} of {path} is longer than {LONGEST_LINE >> 20} MB; expected lines of text; check that it is the right file"
        raise InputError(msg)
    if held:
        yield before, _unmarked(path, before, held)


def _unmarked(path: Path, before: int, block: bytes) -> bytes:
    """Return a block without the byte order mark that some programs write at the start of a file in UTF-8."""
    if not before and block.startswith(_MARKS_OF_UTF_16):
        msg = f"{path} is text in UTF-16; expected UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)"
        raise InputError(msg)
    return block.removeprefix(b"" if before else BYTE_ORDER_MARK)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line); a file that ends too early or is no text is an error.

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
        start = 0
        while start < len(block):  # a caller that needs only the first lines does not pay for the whole block
            end = (block.find(b"\n", start + _DECODED) + 1) or len(block)
            lines = _lines(path, before, block[start:end])
            yield from enumerate(lines, start=before + 1)
            before, start = before + len(lines), end


def _lines(path: Path, before: int, block: bytes) -> list[str]:
    try:
        lines = block.decode().split("\n")
    except UnicodeDecodeError as fault:
        good = block[: fault.start].count(b"\n")
        lines = []
    if not lines:
        raise unreadable(path, before + good)
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
