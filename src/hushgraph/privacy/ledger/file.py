"""The SQLite file of a ledger: created whole, read and written in durable transactions. Knows nothing of budgets."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushgraph._atomic import atomic_file
from hushgraph._errors import Sentence
from hushgraph.privacy.ledger.chain import RESTORE_ADVICE, LedgerError, LedgerTampered

SCHEMA = "CREATE TABLE entries (entry INTEGER PRIMARY KEY, fields TEXT NOT NULL, head TEXT NOT NULL)"
PATIENCE = 60.0  # seconds to wait for another process


@contextmanager
def transaction(path: Path, begin: str, refusal: str = "") -> Iterator[sqlite3.Connection]:
    """Give a connection to an existing file within one transaction, which is committed durably if the block ends well."""
    if not os.path.isfile(path):
        msg = "{}there is no ledger {}; check the path, or make one with {Ledger.create(path, ...)}"
        raise LedgerError(Sentence(msg, refusal, path))
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
        try:
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            modes = [connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]]
            connection.execute("PRAGMA synchronous=EXTRA")  # FULL, and a power failure cannot bring a finished journal back
            modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
            if modes != ["delete", 3]:
                msg = f"{refusal}SQLite cannot write {path} durably here (journal and synchronous are {modes}); use another disk"
                raise LedgerError(msg)
            connection.execute(f"BEGIN {begin}")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # takes back what was not committed
    except sqlite3.OperationalError as error:
        msg = f"{refusal}the ledger {path} cannot be used now: {error}; make room or give access, and try again"
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
        raise LedgerError(Sentence("{} exists already; use it with {Ledger.open(path)}, or choose another name", path)) from error
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
