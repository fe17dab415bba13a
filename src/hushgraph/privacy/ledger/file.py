"""The SQLite file of a ledger: created whole, read and written in durable transactions. Knows nothing of budgets."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from hushgraph._atomic import atomic_file
from hushgraph._errors import Sentence
from hushgraph._progress import reached
from hushgraph.privacy.ledger.chain import RESTORE_ADVICE, LedgerError, LedgerTampered

SCHEMA = "CREATE TABLE entries (entry INTEGER PRIMARY KEY, fields TEXT NOT NULL, head TEXT NOT NULL)"
PATIENCE = 60.0  # seconds to wait for another process
_STEP = 0.01  # seconds between two tries; Ctrl-C is heard between them
# Held during each transaction of this process, and during a fork: a child that is forked within a transaction inherits SQLite's note of
# the lock, and would wait for ever for a process that is itself.
_TRANSACTION = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_TRANSACTION.acquire, after_in_parent=_TRANSACTION.release, after_in_child=_TRANSACTION.release)


# ---- any SQLite file ------------------------------------------------------------------------------------------------


@contextmanager
def begun(path: Path, mode: str, patience: float | None = None) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an existing file within a transaction; the block commits it with `commit`, or it is taken back.

    Other processes are waited for, `patience` seconds at most (default: PATIENCE). Raises the errors of sqlite3.
    """
    end = time.monotonic() + (PATIENCE if patience is None else patience)
    while True:
        with (
            _TRANSACTION
        ):  # also while it connects: a child that is forked during that would inherit locks inside SQLite that nobody releases
            connection = _begun_connection(path, mode, is_last=time.monotonic() >= end)
            if connection is not None:
                try:
                    yield connection
                finally:
                    connection.close()  # takes back what was not committed
                return
        reached(0.0, f"waiting for another process that uses {path.name}")
        time.sleep(_STEP)


def _begun_connection(path: Path, mode: str, *, is_last: bool) -> sqlite3.Connection | None:
    """Return a connection within a transaction; None if another process is in the way, which is an error with `is_last`."""
    address = quote(os.fsencode(path.as_posix()), safe="/:")
    connection = sqlite3.connect(
        f"file://{'' if address.startswith('/') else '/'}{address}?mode=rw", uri=True, timeout=0, isolation_level=None
    )
    try:
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        _make_durable(connection)
        connection.execute(f"BEGIN {mode}")
        connection.execute(
            "SELECT count(*) FROM sqlite_master"
        ).fetchone()  # takes the lock of a reader, or reads under that of a writer
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and is_busy(error) and not is_last:
            return None
        raise
    return connection


def _make_durable(connection: sqlite3.Connection) -> None:
    """Let each commit reach the disk before it is done."""
    modes = [connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]]
    connection.execute("PRAGMA synchronous=EXTRA")  # FULL, and a power failure cannot bring a finished journal back
    connection.execute("PRAGMA fullfsync=ON")  # for macOS
    modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
    if modes != ["delete", 3]:
        msg = f"SQLite cannot write it durably here (journal and synchronous are {modes})"
        raise sqlite3.OperationalError(msg)


def commit(connection: sqlite3.Connection, patience: float | None = None, waits_for: str | None = None) -> None:
    """Commit a transaction durably; processes that read the file are waited for. If `waits_for` names the file, Ctrl-C ends the wait."""
    end = time.monotonic() + (PATIENCE if patience is None else patience)
    while True:
        try:
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
            if waits_for is not None:
                reached(0.0, f"waiting for another process that reads {waits_for}")
            time.sleep(_STEP)
        else:
            return


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another process, or another connection of this one, was in the way."""
    return error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0 if it is not SQLite's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


# ---- the file of a ledger -------------------------------------------------------------------------------------------


@contextmanager
def transaction(path: Path, mode: str, refusal: str = "") -> Iterator[sqlite3.Connection]:
    """Yield a connection to a ledger's file within one transaction, which is committed durably if the block ends well."""
    if not os.path.isfile(path):
        msg = "{}there is no ledger {}; check the path, or make one with {Ledger.create(path, ...)}"
        raise LedgerError(Sentence(msg, refusal, path))
    try:
        with begun(path, mode) as connection:
            yield connection
            if connection.in_transaction:
                commit(connection)
    except sqlite3.OperationalError as error:
        advice = "end the process that uses it, or wait" if is_busy(error) else "make room, give access or use another disk"
        msg = f"{refusal}the ledger {path} cannot be used now: {error}; {advice}, and try again"
        raise LedgerError(msg) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the second: a message of SQLite with bytes of a damaged file
        raise LedgerTampered(Sentence("{}{} is no ledger, or is damaged: {}; {}", refusal, path, error, RESTORE_ADVICE)) from error


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give a draft that becomes `path` if the block ends well and no other process was faster: no ledger is ever half written."""
    try:
        with atomic_file(path, replace=False, hard_links_only=True) as draft:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
            yield draft
    except FileExistsError as error:
        if path.exists():
            msg = "{} exists already; use it with {Ledger.open(path)}, or choose another name"
        else:
            msg = "{} is a link to a file that does not exist; choose another name, or remove the link"
        raise LedgerError(Sentence(msg, path)) from error
    except OSError as error:
        msg = f"the ledger {path} cannot be created: {error.strerror}; its folder must exist, be writable and allow hard links"
        raise LedgerError(msg) from error


def rows_of(path: Path, connection: sqlite3.Connection, *, since: int = -(2**63)) -> list[tuple]:
    """Return all entries from entry `since` on; a file with other tables, or with triggers, is refused."""
    schema = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    if schema and schema != [("table", "entries", SCHEMA)]:
        msg = "{} is an SQLite file, but no ledger, or its tables were altered; check the path; {}"
        raise LedgerTampered(Sentence(msg, path, RESTORE_ADVICE))
    chosen = "SELECT entry, fields, head FROM entries WHERE entry >= ? ORDER BY entry"
    return connection.execute(chosen, (since,)).fetchall() if schema else []
