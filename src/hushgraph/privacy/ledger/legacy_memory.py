"""The memory of ledgers as text files, as it was written until November 2026: a line for each entry of a ledger, and for each ledger of a path or of names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hushgraph.privacy.ledger.chain import LedgerError, LedgerTampered

_HEAD, _PART_OF_HEAD = "([0-9]{1,15}) ([0-9a-f]{64})", "[0-9]{1,15}( [0-9a-f]{0,63})?"  # a whole line, and what a crash left of one
_IDENTITY, _PART_OF_IDENTITY = "[0-9a-f]{32}", "[0-9a-f]{1,31}"


def legacy_content(folder: Path) -> tuple[dict[str, tuple[int, str]], dict[str, str]]:
    """Return what the text files of a folder say: the newest entry of each ledger, and the ledger in use for each key."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return {}, {}
    except OSError as error:
        raise _unreadable(folder, error) from error
    newest: dict[str, tuple[int, str]] = {}
    for name in names:
        identity, ending = os.path.splitext(name)
        if ending == ".heads" and (lines := _whole_lines(folder / name, _HEAD, _PART_OF_HEAD)):
            newest[identity] = _newest(lines)
    in_use = {}
    for name in names:
        key, ending = os.path.splitext(name)
        if ending == ".ledgers":
            used = [one for one in _whole_lines(folder / name, _IDENTITY, _PART_OF_IDENTITY) if newest.get(one, (0, ""))[0] > 1]
            if used:
                in_use[key] = used[-1]
    return newest, in_use


def _newest(lines: list[str]) -> tuple[int, str]:
    """Return number and hash of the newest entry.

    If two copies of the ledger were charged, some number has two hashes. Then return the first such number with a text that is no hash, so that
    both copies are refused.
    """
    heads: dict[int, str] = {}
    for number, head in sorted((int(number), head) for number, head in map(str.split, lines)):
        if heads.setdefault(number, head) != head:
            return number, "two entries"
    return max(heads.items())


def _whole_lines(path: Path, whole: str, part: str) -> list[str]:
    """Return the lines of a file that fit `whole`. Another line is damage, unless a crash left it: the last line, or the one before a whole one."""
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")
    except OSError as error:
        raise _unreadable(path, error) from error
    lines = lines if lines[-1] else lines[:-1]
    are_whole = [re.fullmatch(whole, line) is not None for line in lines]
    for number, (line, is_whole) in enumerate(zip(lines, are_whole, strict=True), 1):
        is_left_by_a_crash = re.fullmatch(part, line) and all(are_whole[number : number + 1])
        if not is_whole and not is_left_by_a_crash:
            msg = (
                f"this machine's memory of ledgers is damaged: line {number} of {path} is not what was written; nothing may be released; "
                "put a good copy of the file back; without one, compare the ledger with the newest certificate (hushgraph verify), and remove this line"
            )
            raise LedgerTampered(msg)
    return [line for line, is_whole in zip(lines, are_whole, strict=True) if is_whole]


def _unreadable(path: Path, error: OSError) -> LedgerError:
    msg = f"this machine's memory of ledgers, {path}, cannot be read: {error.strerror}; nothing may be released; give access to it"
    return LedgerError(msg)
