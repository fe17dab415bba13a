"""What this machine remembers of ledgers: the heads it has seen, and which ledger is at a path or for a name.

The memory is a folder of small text files that only grow, one line at a time: `HUSHGRAPH_STATE`, or hushgraph's folder in the user's
state. It shows that a ledger was rolled back, rewritten, or replaced by another one. A machine that never saw the ledger has no
such memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from hushgraph._errors import Sentence
from hushgraph.privacy.ledger.chain import RESTORE_ADVICE, LedgerError, LedgerSnapshot, LedgerTampered


def seen_heads(identity: str) -> list[tuple[int, str]]:
    """Return each (entry, head) of a ledger that this machine has seen."""
    matches = [re.fullmatch("([0-9]{1,15}) ([0-9a-f]{64})", line) for line in _lines(f"{identity}.heads")]
    return [(int(match[1]), match[2]) for match in matches if match]


def remember(snapshot: LedgerSnapshot, path: Path) -> None:
    """Remember the head of a ledger, and that this ledger is the one at `path` and the one for its names."""
    names = _file_of_names(snapshot.dataset, snapshot.unit, snapshot.adjacency)
    known = _is_spent(snapshot.identity) and snapshot.identity in _lines(names)  # a ledger that is opened again is not the newest
    notes = {f"{snapshot.identity}.heads": f"{snapshot.entry} {snapshot.head}", _file_of_path(path): snapshot.identity}
    for file, line in (notes if known else {**notes, names: snapshot.identity}).items():
        if _lines(file)[-1:] != [line]:
            _append(file, line)


def check_path(path: Path, identity: str | None, replaces: tuple[str | None, ...]) -> None:
    """Refuse a ledger at a path where this machine has seen another one that was spent from; `identity` is None for a new one."""
    other = _other_ledger(_file_of_path(path), identity, replaces)
    if other is None:
        return
    if identity is None:
        msg = (
            "this machine has seen ledger {} at the path of {}, with spending: a new ledger there would pass for it; choose another path, "
            "or, to replace it on purpose, pass {replaces=}{!r}, which the new ledger and its certificates will say"
        )
        raise LedgerError(Sentence(msg, other, path.name, other))
    msg = (
        "the ledger {} was replaced by another one: this machine has seen ledger {} at this path, with spending, and the file is "
        "ledger {}; {}; if its owner replaced it on purpose, say so once with {Ledger.open(path, replaces=}{!r}{)}"
    )
    raise LedgerTampered(Sentence(msg, path.name, other, identity, RESTORE_ADVICE, other))


def check_names(dataset: str, unit: str, adjacency: str, identity: str | None, replaces: tuple[str | None, ...]) -> None:
    """Refuse a second budget for the same data set, unit and adjacency, unless it names the ledger that it replaces.

    `identity` is None for a new ledger. One that was spent from on this machine was let through then, and is again.
    """
    other = _other_ledger(_file_of_names(dataset, unit, adjacency), identity, replaces)
    if other is None or (identity is not None and _is_spent(identity)):
        return
    refusal = Sentence(
        "this machine has seen ledger {} for {dataset=}{!r}, {unit=}{!r}, {adjacency=}{!r}, with spending: a second ledger would give "
        "the same people a second budget; go on with that ledger ({ledger.renew(...)} starts a new period)",
        other,
        dataset,
        unit,
        adjacency,
    )
    if identity is None:
        msg = (
            "{}, use another dataset name for other people's data, or, to replace it on purpose, pass {replaces=}{!r}, which the new "
            "ledger and its certificates will say"
        )
        raise LedgerError(Sentence(msg, refusal, other))
    msg = "{}; if its owner replaced it on purpose by ledger {}, say so once with {Ledger.open(path, replaces=}{!r}{)}"
    raise LedgerError(Sentence(msg, refusal, identity, other))


def _other_ledger(file: str, identity: str | None, replaces: tuple[str | None, ...]) -> str | None:
    """Return the ledger of `file` that was spent from last, unless it is `identity` or is replaced by that one."""
    later: list[str | None] = []
    for line in reversed(_lines(file)):
        if _is_spent(line):
            return None if line in (identity, *replaces) or identity in later else line
        later.append(line)
    return None


def _is_spent(identity: str) -> bool:
    """Return whether this machine has seen more of a ledger than its creation."""
    return any(entry > 1 for entry, _ in seen_heads(identity))


def _file_of_path(path: Path) -> str:
    return f"path-{hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()}.ledgers"


def _file_of_names(*names: str) -> str:
    """Return the file for these names, however they are written: capitals, and blanks around them, make no other people."""
    alike = [name.strip().casefold() for name in names]
    return f"names-{hashlib.sha256(json.dumps(alike).encode()).hexdigest()}.ledgers"


def _folder() -> Path:
    """Return the folder of this machine's memory."""
    chosen, home = os.environ.get("HUSHGRAPH_STATE"), os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    state = Path(chosen) if chosen else (Path(home) if home else Path.home() / ".local" / "state") / "hushgraph"
    return state / "ledgers"


def _lines(file: str) -> list[str]:
    """Return the complete lines of a file of the memory; a last line without its end is what a crash left."""
    try:
        return (_folder() / file).read_bytes().decode(errors="replace").split("\n")[:-1]
    except (OSError, RuntimeError):  # nothing seen yet, or no home; `remember` fails too if it cannot write
        return []


def _append(file: str, line: str) -> None:
    """Write one more line to a file of the memory."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / file).open("a+b") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
        cut = b"" if stream.read(1) in (b"", b"\n") else b"\n"  # ends the partial line of a crash
        stream.write(cut + f"{line}\n".encode())
