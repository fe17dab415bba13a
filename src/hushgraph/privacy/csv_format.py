"""CsvFormat: how a text file of events is written, as its owner declares it. Nothing is guessed from the rows.

What a line means must depend on that line alone (see `text_lines.py`). A format keeps this, since it is fixed before the first line is read:

- The delimiter and the decimal sign are one byte each, compared byte by byte.
- An encoding is a table of 256 characters, one per byte, all different. Bytes become UTF-8 one by one, and different bytes stay different.
- A time is matched from its first to its last byte, and becomes ISO 8601, which is then read like any other time.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cache, cached_property

from hushgraph._errors import InputError
from hushgraph._validation import choose, shown

_TWO = rb"[0-9]{1,2}"
_DIRECTIVES = {
    "Y": rb"[0-9]{4}", "y": rb"[0-9]{2}", "m": _TWO, "d": _TWO, "H": _TWO, "I": _TWO, "M": _TWO, "S": _TWO, "f": rb"[0-9]{1,9}",
    "p": rb"[AaPp][Mm]", "z": rb"Z|[+-][0-9]{2}:?[0-9]{2}",
}  # fmt: skip
_KNOWN = ", ".join(f"%{letter}" for letter in _DIRECTIVES)


@dataclass(frozen=True)
class CsvFormat:
    """How a text file of events is written, where it is not comma-separated UTF-8 with decimal points and ISO 8601 times.

    Parameters
    ----------
    delimiter : str
        The character between fields: ";" or a tab, say.
    decimal : {".", ","}
        The sign before the decimals of a number.
    time_format : str, optional
        How times are written, with the directives of Python's strptime: %Y (or %y), %m, %d, and perhaps %H (or %I with %p), %M, %S, %f, %z.
        By default ISO 8601. Digits need no leading zeros where another character follows.
    encoding : str
        "utf-8", or an encoding with one byte per character, such as "cp1252" (Windows, western Europe) and "latin-1".

    Examples
    --------
    >>> form = CsvFormat(delimiter=";", decimal=",", time_format="%d/%m/%Y %H:%M", encoding="cp1252")
    >>> form.times.iso(b"31/1/2026 7:05")
    b'2026-01-31T07:05:00'
    """

    delimiter: str = ","
    decimal: str = "."
    time_format: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        mark = self.delimiter
        if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in "\"'\r\n\0+-.":
            expected = "one ASCII character that is no letter, digit, sign, point or quotation mark: ';' or a tab, say"
            raise InputError.about(argument="delimiter", expected=expected, got=shown(mark))
        if choose("decimal", self.decimal, (".", ",")) == mark:
            hint = "name the character that separates the fields"
            raise InputError.about(
                argument="delimiter", expected="another character than the decimal sign", got=shown(mark), hint=hint
            )
        if self.time_format is not None:
            self.times  # noqa: B018  # raises an error if it cannot be used
        if not isinstance(self.encoding, str):
            raise InputError.about(
                argument="encoding", expected="the name of an encoding, such as 'utf-8' or 'cp1252'", got=shown(self.encoding)
            )
        is_bytewise(self.encoding)

    @cached_property
    def times(self) -> TimeFormat:
        """How times are written; only for formats with a `time_format`."""
        return TimeFormat(self.time_format)


@cache
def is_bytewise(encoding: str) -> bool:
    """Return whether text must be converted, byte by byte; False for UTF-8. An encoding with other units than bytes is refused."""
    singles = [bytes([byte]) for byte in range(256)]
    pairs = b"".join(a + b for a in singles for b in singles)  # a codec of several bytes per character reads some pair as one
    try:
        if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
            return False
        characters = [byte.decode(encoding, "surrogateescape") for byte in singles]
        is_plain = pairs.decode(encoding, "surrogateescape") == "".join(a + b for a in characters for b in characters)
    except (LookupError, ValueError, TypeError):
        is_plain, characters = False, []
    ascii_characters = [chr(code) for code in range(128)]
    if not is_plain or characters[:128] != ascii_characters or len(set(characters)) < 256 or max(map(len, characters)) > 1:
        expected = "'utf-8', or an encoding with one byte per character that has ASCII, such as 'cp1252' or 'latin-1'"
        raise InputError.about(argument="encoding", expected=expected, got=shown(encoding), hint="save the file as UTF-8 otherwise")
    return True


def to_utf8(content: bytes, encoding: str) -> bytes:
    """Return bytes in an encoding as UTF-8; a byte that stands for no character becomes a lone surrogate, so different bytes stay different."""
    return content.decode(encoding, "surrogateescape").encode("utf-8", "surrogatepass")


class TimeFormat:
    """A format of times; see `CsvFormat`.

    Examples
    --------
    >>> TimeFormat("%m/%d/%Y %I:%M:%S %p").iso(b"1/5/2013 3:07:00 PM")
    b'2013-01-05T15:07:00'
    >>> TimeFormat("%d/%m/%Y").iso(b"2013-01-05")
    b''
    """

    def __init__(self, text: object) -> None:
        if not isinstance(text, str):
            raise InputError.about(argument="time_format", expected="text such as '%d/%m/%Y %H:%M'", got=shown(text))
        if not text.isprintable():
            raise InputError.about(argument="time_format", expected="text in one line, such as '%d/%m/%Y %H:%M'", got=shown(text))
        pieces = re.findall(r"%.?|[^%]", text.strip(" "), re.DOTALL)  # blanks around a time mean nothing
        letters = [piece[1:] for piece in pieces if piece[0] == "%" and piece != "%%"]
        fault = _fault_of(letters)
        if fault:
            hint = f"write '%d/%m/%Y %H:%M', say, with {_KNOWN}"
            raise InputError.about(argument="time_format", verb="have", expected=fault, got=shown(text), hint=hint)
        pattern = b""
        for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
            if piece[0] != "%" or piece == "%%":
                pattern += re.escape(piece[-1].encode())
                continue
            digits = _DIRECTIVES[piece[1]]
            is_fixed = digits is _TWO and (following[1:] in _DIRECTIVES or following.isdigit())  # nothing else says where it ends
            pattern += b"(?P<%s>%s)" % (piece[1].encode(), rb"[0-9]{2}" if is_fixed else digits)
        self._match = re.compile(pattern).fullmatch

    def iso(self, text: bytes) -> bytes:
        """Return a time as ISO 8601, or nothing if it is not written so; whether the day exists is not checked."""
        match = self._match(text.strip(b" \t"))
        if match is None:
            return b""
        part = match.groupdict(default=b"")
        year = part.get("Y") or (b"19" if part["y"] >= b"69" else b"20") + part["y"]  # as POSIX has it
        hour = part.get("H", b"0")
        if "I" in part:
            if not 1 <= int(part["I"]) <= 12:
                return b""
            hour = b"%d" % (int(part["I"]) % 12 + 12 * (part["p"][:1] in b"pP"))
        clock = b":".join(value.zfill(2) for value in (hour, part.get("M", b"0"), part.get("S", b"0")))
        fraction = b"." + part["f"] if "f" in part else b""
        return b"-".join([year, part["m"].zfill(2), part["d"].zfill(2)]) + b"T" + clock + fraction + part.get("z", b"")


def _fault_of(letters: list[str]) -> str:
    """Return what a format of times with these directives must have instead; nothing if it is right."""
    if set(letters) - set(_DIRECTIVES):
        return "known directives"
    if len(set(letters)) < len(letters) or ("Y" in letters) == ("y" in letters) or not {"m", "d"} <= set(letters):
        return "%Y (or %y), %m and %d, each once"
    if ("I" in letters) != ("p" in letters) or {"H", "I"} <= set(letters):
        return "%H, or %I together with %p"
    for finer, coarser in (("M", {"H", "I"}), ("S", {"M"}), ("f", {"S"})):
        if finer in letters and not coarser & set(letters):
            return "hours before minutes, minutes before seconds and seconds before fractions"
    return ""
