"""What this machine remembers of ledgers: the newest entry that it has seen of each, and which ledger is in use at a path and for which people.

The memory is an SQLite file, `ledgers/memory.db` in the folder `HUSHGRAPH_STATE`, or in hushgraph's folder in the user's state. It shows that a
ledger was rolled back, rewritten or replaced by another one. Its transaction is the lock under which one process at a time compares a ledger with
the memory, charges the ledger, and writes the charge down here. Without it, two processes could charge two copies of one ledger, or two ledgers for
the same people, at the same moment: neither would see the other's charge.

A digest of all rows shows that a row was changed or lost. A memory that is damaged or cannot be read is an error: it is never taken for an empty one.
A memory that can be read and not written is used as it is, and each user is warned.

Until November 2026 the memory was a folder of text files (legacy_memory.py); they are read once, when memory.db is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hushgraph._atomic import atomic_file
from hushgraph._errors import InputError, Sentence
from hushgraph.privacy.ledger import file as ledger_file
from hushgraph.privacy.ledger.chain import RESTORE_ADVICE, LedgerError, LedgerSnapshot, LedgerTampered
from hushgraph.privacy.ledger.legacy_memory import legacy_content

_VERSION = 1
_TABLES = (
    "CREATE TABLE newest (identity TEXT PRIMARY KEY, entry INTEGER NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE in_use (key TEXT PRIMARY KEY, identity TEXT NOT NULL)",
    "CREATE TABLE digest (sha256 TEXT NOT NULL)",
)
# The last one: a message of SQLite that quotes bytes of a damaged file.
_UNREADABLE = (OSError, sqlite3.DatabaseError, UnicodeDecodeError)
_PATIENCE_AFTER = 10.0  # seconds to wait for readers when the ledger has its new entry: a user who waits cannot stop it any more
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)  # the last: a table is missing


# ---- the content ----------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """The content of the memory.

    Attributes
    ----------
    newest : dict
        Number and hash of the newest entry that this machine has seen of each ledger.
    in_use : dict
        Identity of the ledger that is in use, by the key of its path or of its names: the one that was charged, or renewed, last.
    problem : str
        Why the memory could not be written, and what to do; empty if it could.
    """

    newest: dict[str, tuple[int, str]] = field(default_factory=dict)
    in_use: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def seen(self, identity: str) -> list[tuple[int, str]]:
        """Return number and hash of the newest entry of a ledger, in a list; an empty list if this machine has not seen the ledger."""
        return [self.newest[identity]] if identity in self.newest else []

    def was_used(self, identity: str) -> bool:
        """Return whether this machine has seen more of a ledger than its creation."""
        return identity in self.newest and self.newest[identity][0] > 1

    def replaced_by(self, snapshot: LedgerSnapshot, named: str | None = None) -> tuple[str | None, ...]:
        """Return the ledgers that a ledger may replace: the one `named` now, and until it is in use the one that its creation names.

        Later its owner may have gone back to that one.
        """
        return (named,) if self.was_used(snapshot.identity) else (named, snapshot.replaces)

    def check_path(self, path: Path, identity: str | None, replaces: tuple[str | None, ...]) -> None:
        """Refuse a ledger at a path where another one was in use, unless it replaces that one; `identity` is None for a new ledger."""
        other = self.in_use.get(path_key(path))
        if other in (None, identity, *replaces):
            return
        if identity is None:
            msg = (
                "ledger {} was in use at the path of {} on this machine: a new ledger there would be taken for it; choose another path, "
                "or, to replace it on purpose, pass {replaces=}{!r}, which the new ledger and its certificates will say"
            )
            raise LedgerError(Sentence(msg, other, path.name, other))
        msg = (
            "the ledger {} was replaced by another one: this machine has seen ledger {} in use at this path, and the file is "
            "ledger {}; {}; if its owner replaced it on purpose, say so once with {Ledger.open(path, replaces=}{!r}{)}"
        )
        raise LedgerTampered(Sentence(msg, path.name, other, identity, RESTORE_ADVICE, other))

    def check_names(
        self, names: tuple[str, str, str], identity: str | None, replaces: tuple[str | None, ...], *, to_read: bool = False
    ) -> None:
        """Refuse a second budget for the same data set, unit and adjacency, unless it replaces the ledger that is in use.

        `identity` is None for a new ledger. With `to_read`, a ledger that was in use earlier is accepted, since its certificates are still verified.
        """
        dataset, unit, adjacency = names
        other = self.used_for(names)
        if other in (None, identity, *replaces) or (to_read and identity is not None and self.was_used(identity)):
            return
        refusal = Sentence(
            "this machine has seen ledger {} in use for {dataset=}{!r}, {unit=}{!r}, {adjacency=}{!r}: a second ledger would give "
            "the same people a second budget; use that ledger ({ledger.renew(...)} starts a new period)",
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

    def used_for(self, names: tuple[str, str, str]) -> str | None:
        """Return the ledger that is in use for a data set, unit and adjacency; None if there is none. Text files of earlier versions had other keys."""
        return next((self.in_use[key] for key in (names_key(*names), older_names_key(*names)) if key in self.in_use), None)

    def add(self, snapshot: LedgerSnapshot, path: Path, *, takes_over: bool = False) -> None:
        """Add the newest entry of a ledger, and that the ledger is the one in use at its path and for its names if it was charged or renewed.

        A ledger takes the names over from another one only if `check_names` accepted it for use, which `takes_over` says.
        """
        identity = snapshot.identity
        if not self.was_used(identity) or snapshot.entry > self.newest[identity][0]:
            self.newest[identity] = (snapshot.entry, snapshot.head)
        if snapshot.entry > 1 or takes_over:
            self.in_use[path_key(path)] = identity
        if takes_over or (snapshot.entry > 1 and self.used_for(snapshot.names) is None):
            self.in_use[names_key(*snapshot.names)] = identity

    def digest(self) -> str:
        """Return the SHA-256 of the content."""
        return hashlib.sha256(json.dumps([sorted(self.newest.items()), sorted(self.in_use.items())]).encode()).hexdigest()


def path_key(path: Path) -> str:
    """Return the key of a path, whichever links lead there."""
    return "path-" + hashlib.sha256(os.fsencode(os.path.normcase(os.path.realpath(path)))).hexdigest()


def names_key(*names: str) -> str:
    """Return the key of names. Capitals, blanks around a name, and other code points for the same letters give the same key."""
    return _key_of_names([unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).strip().casefold()) for name in names])


def older_names_key(*names: str) -> str:
    """Return the key of names in the text files of earlier versions, which did not treat other code points for the same letters as equal."""
    return _key_of_names([name.strip().casefold() for name in names])


def _key_of_names(alike: list[str]) -> str:
    return "names-" + hashlib.sha256(json.dumps(alike).encode()).hexdigest()


# ---- the file -------------------------------------------------------------------------------------------------------


def read_memory(refusal: str = "") -> Memory:
    """Return the memory as it is now; an empty one if this machine has none.

    Parameters
    ----------
    refusal : str
        The beginning of the error message.

    Raises
    ------
    LedgerError
        If it is damaged (LedgerTampered), or cannot be read.
    """
    path = memory_path()
    if path is None:
        return Memory()
    try:
        if not _exists(path):
            return Memory(*legacy_content(path.parent))
        with ledger_file.begun(path, "DEFERRED") as connection:
            return _content(connection, path)
    except _UNREADABLE as error:
        raise _unusable(error, path, refusal) from error


@contextmanager
def locked_memory(refusal: str, patience: float | None = None) -> Iterator[Memory]:
    """Yield the memory while no other process can change it; what the block adds is written when the block ends well.

    A memory that cannot be written is yielded without a lock, and `problem` says why. If that turns out at the end, `problem` is set then.

    Parameters
    ----------
    refusal : str
        The beginning of the error message if the memory is damaged, cannot be read, or is held by another process for too long.
    patience : float, optional
        Seconds to wait for other processes.
    """
    path = memory_path()
    with ExitStack() as stack:
        connection, memory = None, Memory(problem="there is no home folder; set HUSHGRAPH_STATE to the absolute path of a folder")
        if path is not None:
            try:
                _create(path)
                connection = stack.enter_context(ledger_file.begun(path, "IMMEDIATE", patience))
                memory = _content(connection, path)
            except _UNREADABLE as error:
                problem, connection = _reason(error, path, refusal), None
                memory = read_memory(refusal)
                memory.problem = problem
        before = Memory(dict(memory.newest), dict(memory.in_use))
        yield memory
        if connection is not None and path is not None:
            try:
                _write(connection, before, memory, _PATIENCE_AFTER if patience is None else patience)
            except _UNREADABLE as error:  # the ledger has its new entry already, so the charge stands
                memory.problem = _problem(error, path)


def memory_path() -> Path | None:
    """Return the path of the memory's file; None if there is no home folder."""
    standard = "LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME"
    variable = next((name for name in ("HUSHGRAPH_STATE", standard) if os.environ.get(name)), "HOME")
    try:
        folder = Path(os.environ[variable]) if variable != "HOME" else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    if not folder.is_absolute():
        msg = (
            f"{variable} must be the absolute path of a folder; got {str(folder)!r}, which would be another folder in each place from "
            "which hushgraph is called, so that a ledger could be spent twice; write the whole path"
        )
        raise InputError(msg)
    return (folder if variable == "HUSHGRAPH_STATE" else folder / "hushgraph") / "ledgers" / "memory.db"


def _exists(path: Path) -> bool:
    """Return whether a file exists. Raise OSError if its folder cannot be searched: os.path.exists would say False then."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _create(path: Path) -> None:
    """Make the file of the memory, whole, if there is none."""
    if _exists(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    memory = Memory(*legacy_content(path.parent))
    with suppress(FileExistsError), atomic_file(path, replace=False, sync=True) as draft:  # another process may be faster
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        with ledger_file.begun(draft, "IMMEDIATE") as connection:
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute("INSERT INTO digest VALUES ('')")
            _write(connection, Memory(), memory)


def _content(connection: sqlite3.Connection, path: Path) -> Memory:
    """Return the content of the file, whose digest must be right."""
    if connection.execute("PRAGMA user_version").fetchone()[0] > _VERSION:
        msg = f"this machine's memory of ledgers, {path}, was written by a newer version of hushgraph; use that version"
        raise LedgerError(msg)
    if (
        fault := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    ) != "ok":  # the digest covers the rows only, not the indexes
        raise LedgerTampered(_damage(path, fault))
    newest = {identity: (entry, head) for identity, entry, head in connection.execute("SELECT identity, entry, head FROM newest")}
    memory = Memory(newest, dict(connection.execute("SELECT key, identity FROM in_use").fetchall()))
    digests = connection.execute("SELECT sha256 FROM digest").fetchall()
    try:
        is_whole = digests == [(memory.digest(),)]
    except TypeError:  # values of other types
        is_whole = False
    if not is_whole:
        raise LedgerTampered(_damage(path, "a row was changed or lost"))
    return memory


def _write(connection: sqlite3.Connection, before: Memory, memory: Memory, patience: float | None = None) -> None:
    """Write and commit what is new in the memory."""
    newest, in_use = memory.newest.items() - before.newest.items(), memory.in_use.items() - before.in_use.items()
    connection.executemany("INSERT OR REPLACE INTO newest VALUES (?, ?, ?)", [(identity, *last) for identity, last in newest])
    connection.executemany("INSERT OR REPLACE INTO in_use VALUES (?, ?)", list(in_use))
    connection.execute("UPDATE digest SET sha256 = ?", (memory.digest(),))
    ledger_file.commit(connection, patience)


def _problem(error: Exception, path: Path) -> str:
    """Return why the memory cannot be written, and what to do."""
    if isinstance(error, sqlite3.OperationalError) and ledger_file.is_busy(error):
        return f"another process uses {path}; end it"
    return f"{getattr(error, 'strerror', None) or error}; make {path} a file that can be written"


def _reason(error: Exception, path: Path, refusal: str) -> str:
    """Return why the memory cannot be written; raise if it is damaged or in use, which must not pass for that."""
    if isinstance(error, OSError):
        return _problem(error, path)
    if (
        isinstance(error, sqlite3.OperationalError)
        and not ledger_file.is_busy(error)
        and ledger_file.error_code(error) not in _DAMAGED
    ):
        return _problem(error, path)
    raise _unusable(error, path, refusal) from error


def _unusable(error: Exception, path: Path, refusal: str) -> LedgerError:
    """Return the error for a memory that is in use for too long, is damaged, or cannot be read."""
    if isinstance(error, sqlite3.OperationalError) and ledger_file.is_busy(error):
        msg = f"{refusal}another process uses this machine's memory of ledgers, {path}, for too long; end it, and try again"
        return LedgerError(msg)
    if isinstance(error, OSError) or (
        isinstance(error, sqlite3.OperationalError) and ledger_file.error_code(error) not in _DAMAGED
    ):
        reason = getattr(error, "strerror", None) or error
        msg = f"{refusal}this machine's memory of ledgers, {path}, cannot be read: {reason}; nothing may be released; give access to it"
        return LedgerError(msg)
    return LedgerTampered(refusal + _damage(path, str(error)))


def _damage(path: Path, what: str) -> str:
    return (
        f"this machine's memory of ledgers, {path}, is damaged: {what}; nothing may be released; put a good copy of the file back; without one, compare "
        "each ledger with its newest certificate (hushgraph verify), and then delete this file and the files beside it that end in -journal, .heads or "
        ".ledgers, which makes this a machine that has seen no ledger"
    )
