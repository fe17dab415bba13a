"""Whatever happens to the ledger's file is noticed: edits, rollbacks, other files, full disks. Nothing is charged then."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from hushgraph._errors import InputError
from hushgraph.privacy.ledger import budget as module, chain, file as ledger_file
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerError, LedgerTampered, total_after

from ..support.interrupts import hears_interrupts
from .ledgers import KEY, NAMES, SMALL

UNCHARGED = "nothing was charged and nothing may be released"


def create(path, *, n_charges=3, **options):
    """A ledger, and the certificates of its charges."""
    ledger = Ledger.create(path, **{**NAMES, "epsilon": 1.0, "delta": 1e-6, "period": "May", **options})
    charges = [ledger.charge(**SMALL, note="a map") for _ in range(n_charges)]
    return ledger, [{"ledger": {"identity": c.identity, "entry": c.entry, "head": c.head}} for c in charges]


def sql(path, *statements):
    """What somebody with the file and an SQLite client can do."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return [connection.execute(*statement).fetchall() for statement in statements][-1]


def assert_noticed(path, ledger, words="edited|rewritten|altered|damaged", key=None):
    before = path.read_bytes()
    with pytest.raises(LedgerTampered, match=words):
        ledger.charge(**SMALL)
    with pytest.raises(LedgerTampered, match=words):
        ledger.renew(epsilon=1, delta=1e-6, period="June", reason="to get away with it")
    with pytest.raises(LedgerTampered, match=words):
        _ = ledger.spent
    with pytest.raises(LedgerTampered, match=words):
        Ledger.open(path, key=key)
    assert path.read_bytes() == before


# ---- edits ----------------------------------------------------------------------------------------------------------

FIELDS = {
    "sigma": (200.0).hex(), "epsilon": (0.05).hex(), "delta": (1e-7).hex(), "sensitivity_squared": "1/4", "mu_squared": "0.00005",
    "note": "another map", "time": "2020-01-01T00:00:00+00:00", "period": "June", "kind": "renew", "entry": 2,
}  # fmt: skip


@pytest.mark.parametrize("entry", [2, 3, 4])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("key", [None, KEY], ids=["no key", "key"])
def test_an_edited_field_is_noticed(path, state, entry, field, key):
    ledger, _ = create(path, key=key)
    text = json.loads(sql(path, (f"SELECT fields FROM entries WHERE entry={entry}",))[0][0])
    edited = {**text, field: FIELDS[field] if field != "entry" else entry + 1}
    assert edited != text
    edited = json.dumps(edited, sort_keys=True, separators=(",", ":"))
    sql(path, (f"UPDATE entries SET fields=? WHERE entry={entry}", [edited]))
    shutil.rmtree(state)  # the chain alone tells
    assert_noticed(path, ledger, key=key)


@pytest.mark.parametrize(
    ("field", "value"),
    [("epsilon", (2.0).hex()), ("delta", (1e-3).hex()), ("unit", "driver"), ("dataset", "buses"), ("adjacency", "change-one")],
)
def test_an_edited_budget_or_name_is_noticed(path, state, field, value):
    ledger, _ = create(path)
    text = sql(path, ("SELECT fields FROM entries WHERE entry=1",))[0][0]
    edited = json.dumps({**json.loads(text), field: value}, sort_keys=True, separators=(",", ":"))
    sql(path, ("UPDATE entries SET fields=? WHERE entry=1", [edited]))
    shutil.rmtree(state)
    assert_noticed(path, ledger)


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE entries SET head='0' || substr(head, 2) || 'x' WHERE entry=3"],
        ["UPDATE entries SET head='é' WHERE entry=4"],
        ["UPDATE entries SET head=7 WHERE entry=4"],
        ["UPDATE entries SET head=x'00ff' WHERE entry=2"],
        ["UPDATE entries SET fields=x'00ff' WHERE entry=3"],
        ["UPDATE entries SET fields=CAST(x'ff' AS TEXT) WHERE entry=3"],
        ["UPDATE entries SET fields='' WHERE entry=1"],
        ["UPDATE entries SET fields=fields || ' ' WHERE entry=4"],
        ["UPDATE entries SET entry=9 WHERE entry=4"],
        ["DELETE FROM entries WHERE entry=1"],
        ["DELETE FROM entries WHERE entry=3"],
        ["DELETE FROM entries WHERE entry=3", "UPDATE entries SET entry=3 WHERE entry=4"],
        ["INSERT INTO entries SELECT 5, fields, head FROM entries WHERE entry=4"],
        ["INSERT INTO entries SELECT 0, fields, head FROM entries WHERE entry=1"],
        ["INSERT INTO entries VALUES (5, '{}', '')"],
        ["UPDATE entries SET entry=entry + 10 WHERE entry > 2",
         "INSERT INTO entries SELECT 3, fields, head FROM entries WHERE entry=2",
         "UPDATE entries SET entry=entry - 9 WHERE entry > 10"],
        ["UPDATE entries SET entry=-3 WHERE entry=3", "UPDATE entries SET entry=3 WHERE entry=4",
         "UPDATE entries SET entry=4 WHERE entry=-3"],
        ["CREATE TRIGGER free AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE entry=new.entry; END"],
        ["CREATE TABLE other (a)"],
        ["ALTER TABLE entries RENAME TO all_entries", "CREATE VIEW entries AS SELECT * FROM all_entries WHERE entry < 3"],
    ],
)  # fmt: skip
def test_edited_deleted_inserted_and_swapped_rows_are_noticed(path, state, statements):
    ledger, _ = create(path)
    sql(path, *([line] for line in statements))
    shutil.rmtree(state)
    assert_noticed(path, ledger)


def recompute(path, change):
    """Write the chain anew, as whoever has the file, but no key, can: all links fit again."""
    head, total = "0" * 64, Decimal(0)
    for entry, text in sql(path, ("SELECT entry, fields FROM entries ORDER BY entry",)):
        fields = json.loads(text)
        fields.update(change.get(entry, {}))
        if fields["kind"] == "charge":
            with contextlib.suppress(ArithmeticError):
                total = total_after(total, Fraction(fields["sensitivity_squared"]), float.fromhex(fields["sigma"]))
            fields["mu_squared"] = str(total)
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256((head + text).encode()).hexdigest()
        sql(path, ("UPDATE entries SET fields=?, head=? WHERE entry=?", (text, head, entry)))


@pytest.mark.parametrize("change", [{3: {"sigma": (1e4).hex()}}, {1: {"epsilon": (10.0).hex()}}, {4: {"note": "x"}}])
def test_a_recomputed_chain_is_noticed_by_machine_object_and_certificate(path, state, change):
    ledger, certificates = create(path)
    recompute(path, change)
    assert_noticed(path, ledger, "rolled back or rewritten: this process has seen|rolled back or rewritten: this machine has seen")
    shutil.rmtree(state)
    with pytest.raises(LedgerTampered, match="this process has seen entry 4"):
        ledger.charge(**SMALL)
    stranger = Ledger.open(path)  # without key, memory or certificate, nobody could tell
    with pytest.raises(LedgerTampered, match="a certificate has seen entry"):
        stranger.verify(*certificates)


def test_a_recomputed_chain_that_contradicts_itself_is_noticed(path, state):
    create(path)
    for change in ({2: {"sensitivity_squared": "-1"}}, {3: {"period": "June"}}, {3: {"kind": "create"}},
                   {3: {"kind": "renew"}}, {1: {"identity": "../../elsewhere"}}, {1: {"format": 0}}, {4: {"sigma": "0x0p+0"}},
                   {4: {"sigma": "inf"}}, {2: {"epsilon": None}}):  # fmt: skip
        saved = path.read_bytes()
        recompute(path, change)
        shutil.rmtree(state, ignore_errors=True)
        with pytest.raises(LedgerTampered):
            Ledger.open(path)
        path.write_bytes(saved)


def test_a_keyed_chain_cannot_be_recomputed_and_needs_its_key(path, state):
    ledger, certificates = create(path, key=KEY)
    ledger.verify(*certificates)
    shutil.rmtree(state)
    with pytest.raises(LedgerError, match="made with a key"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="the key is another one"):
        Ledger.open(path, key=b"another key of some length")
    assert len(Ledger.open(path, key=KEY)) == 4
    saved = path.read_bytes()
    for change in ({3: {"sigma": (1e4).hex()}}, {1: {"keyed": False}}):
        recompute(path, change)
        assert_noticed(path, ledger, key=KEY, words="edited|rewritten|without a key")
        path.write_bytes(saved)
    path.unlink()
    create(path, replaces=ledger.identity)
    with pytest.raises(LedgerError, match="made without a key"):
        Ledger.open(path, key=KEY)


# ---- rollbacks ------------------------------------------------------------------------------------------------------


def test_a_rolled_back_file_is_noticed_on_this_machine_and_by_certificates_on_others(path, tmp_path, monkeypatch):
    ledger, _ = create(path)
    old = path.read_bytes()
    charge = ledger.charge(**SMALL)
    newest = path.read_bytes()
    path.write_bytes(old)
    assert_noticed(path, ledger, "was rolled back or rewritten: this (machine|process) has seen entry 5 .* put the newest")
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "another machine"))
    with pytest.raises(LedgerTampered, match="this process has seen entry 5"):
        ledger.charge(**SMALL)
    other = Ledger.open(path)
    certificate = {"ledger": {"identity": charge.identity, "entry": charge.entry, "head": charge.head}, "epsilon": 0.1}
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps({"format": "hushgraph release 2", **certificate}))
    for known in (certificate, file, str(file)):
        with pytest.raises(LedgerTampered, match=r"a certificate has seen entry 5 .*, which the file lacks"):
            other.verify(known)
    other.charge(**{**SMALL, "sigma": 99.0})  # a fork of the history: same entry, another head
    with pytest.raises(LedgerTampered, match="which is another one in the file"):
        other.verify(certificate)
    with pytest.raises(LedgerTampered):
        ledger.charge(**SMALL)
    path.write_bytes(newest)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    ledger.verify(certificate)
    ledger.charge(**SMALL)


def test_a_copy_cannot_be_spent_beside_the_original(path, tmp_path):
    ledger, _ = create(path)
    copied = tmp_path / "copy.db"
    shutil.copy(path, copied)
    Ledger.open(copied).charge(**SMALL)
    with pytest.raises(LedgerTampered, match="this machine has seen entry 5"):
        ledger.charge(**SMALL)


def test_where_the_memory_is(path, tmp_path, monkeypatch):
    monkeypatch.delenv("HUSHGRAPH_STATE")
    monkeypatch.setenv("XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA", str(tmp_path / "xdg"))
    ledger, _ = create(path)
    assert remembered(tmp_path / "xdg" / "hushgraph", ledger) == [(4, ledger.head)]
    monkeypatch.setenv("XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA", "")
    monkeypatch.setenv("HOME" if os.name != "nt" else "USERPROFILE", str(tmp_path / "home"))
    ledger.charge(**SMALL)
    assert remembered(tmp_path / "home" / ".local" / "state" / "hushgraph", ledger) == [(5, ledger.head)]


def remembered(folder, ledger):
    """What the memory in a folder has of a ledger, read without hushgraph."""
    return sql(folder / "ledgers" / "memory.db", ("SELECT entry, head FROM newest WHERE identity=?", (ledger.identity,)))


def test_a_machine_that_cannot_remember_says_so_once_and_the_charge_stands(path, state):
    state.write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match=r"this machine cannot remember what was written to budget\.db") as warned:
        ledger, _ = create(path)
    assert len(warned) == 1
    assert len(Ledger.open(path)) == len(ledger) == 4


@pytest.mark.parametrize(
    "bad",
    [None, 3, [], {}, {"ledger": None}, {"ledger": {"identity": "x", "entry": 1}}, "no such file.json",
     {"ledger": {"identity": "x", "entry": "1", "head": ""}}, {"ledger": {"identity": "x", "entry": True, "head": ""}}],
)  # fmt: skip
def test_what_is_no_certificate(path, bad):
    ledger, _ = create(path, n_charges=0)
    with pytest.raises(ValueError, match="a certificate is a dict, or the path of a JSON file"):
        ledger.verify(bad)


def test_a_certificate_of_another_ledger(path, tmp_path):
    ledger, _ = create(path)
    _, certificates = create(tmp_path / "other.db", dataset="buses")
    with pytest.raises(LedgerError, match="the certificate is of ledger"):
        ledger.verify(*certificates)


# ---- the file and the disk ------------------------------------------------------------------------------------------


def test_missing_existing_and_mismatching_files(path, tmp_path):
    with pytest.raises(LedgerError, match=r"there is no ledger .*Ledger\.create"):
        Ledger.open(path)
    assert not path.exists()
    with pytest.raises(LedgerError, match="its folder must exist"):
        create(tmp_path / "no folder" / "budget.db")
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path)
    ledger, _ = create(path)
    with pytest.raises(LedgerError, match=r"exists already; use it with Ledger\.open"):
        create(path)
    for name, other in (("dataset", "buses"), ("unit", "driver"), ("adjacency", "change-one"), ("unit", 3)):
        with pytest.raises(LedgerError, match=f"is for {name}={NAMES[name]!r}; got {other!r}"):
            Ledger.open(path, **{**NAMES, name: other})
    path.unlink()
    with pytest.raises(LedgerError, match=UNCHARGED + ": there is no ledger"):
        ledger.charge(**SMALL)
    assert not path.exists()
    assert "budget.db" in repr(ledger)


@pytest.mark.parametrize("name", ["ä b?c#d%20.db", "-journal", "a'b.db"])
def test_odd_names_of_files(tmp_path, name):
    ledger, certificates = create(tmp_path / name)
    Ledger.open(tmp_path / name).verify(*certificates)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "state"])
    assert ledger.path.name == name


@pytest.mark.parametrize("content", [b"", b"not a ledger, but a text of some length " * 30, b"SQLite format 3\0", bytes(8192)])
def test_other_files_are_not_ledgers(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"no ledger|no entries|damaged"):
        Ledger.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("cut", [1, 100, 4096, 5000, 8191])
def test_truncated_files_are_refused(path, cut):
    ledger, _ = create(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(LedgerError):
        ledger.charge(**SMALL)
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_damaged_pages_are_refused(path):
    ledger, _ = create(path)
    content = bytearray(path.read_bytes())
    content[4096:4200] = bytes(104)
    path.write_bytes(content)
    assert_noticed(path, ledger)


def test_another_database_is_not_a_ledger(path):
    sql(path, ["CREATE TABLE entries (entry INTEGER)"])
    with pytest.raises(LedgerTampered, match="an SQLite file, but no ledger"):
        Ledger.open(path)


def test_a_file_turned_to_write_ahead_logging_is_turned_back(path):
    ledger, certificates = create(path)
    sql(path, ["PRAGMA journal_mode=WAL"])
    ledger.charge(**SMALL)
    assert sql(path, ["PRAGMA journal_mode"]) == [("delete",)]
    ledger.verify(*certificates)


def test_a_locked_file(path, monkeypatch):
    ledger, _ = create(path)
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(ledger) == 4
        with pytest.raises(LedgerError, match=UNCHARGED + ".*locked"):
            ledger.charge(**SMALL)
    ledger.charge(**SMALL)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(LedgerError, match=UNCHARGED + ".*locked"):
            ledger.charge(**SMALL)
    ledger.verify()
    assert len(ledger) == 5


@pytest.mark.skipif(os.name == "nt", reason="needs resource limits")
@pytest.mark.parametrize("room", [0, 3000, 9000])
def test_a_full_disk_charges_nothing(path, state, room):
    create(path, epsilon=1000, weak_guarantee=True)
    program = f"""
import os, resource, sys
from hushgraph.privacy.ledger.budget import Ledger; from hushgraph.privacy.ledger.chain import LedgerError
ledger = Ledger.open(sys.argv[1])
while os.path.getsize(sys.argv[1]) < 2 * os.path.getsize(sys.argv[3]):  # a limit of the ledger alone
    ledger.charge(**{SMALL!r}, note="x" * 2000)
limit = os.path.getsize(sys.argv[1]) + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
n = len(ledger)
try:
    while True:
        n = ledger.charge(**{SMALL!r}, note="x" * 500).entry
except LedgerError as error:
    print(n, len(ledger), error)
"""
    told = subprocess.run(
        [sys.executable, "-c", program, path, str(room), state / "ledgers" / "memory.db"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    n, length, message = re.fullmatch(r"(\d+) (\d+) (.*)\n", told).groups()
    assert message.startswith(UNCHARGED)
    ledger = Ledger.open(path)
    ledger.verify()
    assert len(ledger) == int(length) == int(n)
    ledger.charge(**SMALL)


def test_a_folder_in_which_nothing_can_be_written(path):
    ledger, _ = create(path)
    journal = path.with_name(path.name + "-journal")
    journal.mkdir()  # stops even root
    with pytest.raises(LedgerError, match=UNCHARGED):
        ledger.charge(**SMALL)
    journal.rmdir()
    assert len(ledger) == 4


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(path):
    folder = path.parent / "folder"
    folder.mkdir()
    ledger, certificates = create(folder / "budget.db")
    folder.chmod(0o500)
    try:
        with pytest.raises(LedgerError, match=UNCHARGED):
            ledger.charge(**SMALL)
        with pytest.raises(LedgerError, match="cannot be created"):
            create(folder / "other.db")
        Ledger.open(folder / "budget.db").verify(*certificates)
    finally:
        folder.chmod(0o700)


def test_a_failed_creation_leaves_no_file(path, monkeypatch):
    monkeypatch.setattr(module, "SCHEMA", "CREATE TABLE nonsense (")
    with pytest.raises(LedgerError, match="nothing was created"):
        create(path)
    assert not path.exists()


def test_a_file_put_back_is_noticed_by_a_machine_that_only_read_it(path, state, tmp_path, monkeypatch):
    ledger, _ = create(path)
    old = path.read_bytes()
    ledger.charge(**SMALL)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "reader"))
    Ledger.open(path)
    path.write_bytes(old)
    with pytest.raises(LedgerTampered, match="rolled back"):
        Ledger.open(path)


@pytest.mark.parametrize(("field", "value"), [("epsilon", 0.01), ("delta", 1e-9), ("sigma", 600.0), ("sensitivity_squared", 1)])
def test_an_edited_certificate_is_noticed(path, field, value):
    ledger, _ = create(path)
    charge = ledger.charge(**{**SMALL, "sensitivity_squared": 2, "sigma": 400.0})
    stamp = {"identity": charge.identity, "entry": charge.entry, "head": charge.head}
    honest = {"ledger": stamp, "epsilon": charge.epsilon, "delta": charge.delta, "sigma": charge.sigma, "sensitivity_squared": 2}
    ledger.verify(honest)
    with pytest.raises(LedgerTampered, match=f"the certificate says {field}"):
        ledger.verify({**honest, field: value})


def test_a_slower_creator_never_removes_a_ledger(path, monkeypatch):
    """A process with another memory makes and charges the ledger while this one is at it."""
    real = module.transaction

    @contextlib.contextmanager
    def late(draft, *rest):
        with real(draft, *rest) as connection:
            yield connection
        if draft != path and not path.exists():
            monkeypatch.setattr(module, "transaction", real)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HUSHGRAPH_STATE", str(path.parent / "another memory"))
                create(path)

    monkeypatch.setattr(module, "transaction", late)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, dataset="x", unit="y", adjacency="add-remove", epsilon=1, delta=1e-6)
    assert len(Ledger.open(path)) == 4
    assert [file.name for file in path.parent.glob(".*")] == []


def test_a_key_is_never_pickled(path):
    import pickle

    ledger = Ledger.create(path, dataset="x", unit="y", adjacency="add-remove", epsilon=1, delta=1e-6, key=b"0123456789abcdef")
    with pytest.raises(TypeError, match="the key would go along"):
        pickle.dumps(ledger)


# ---- two processes at one moment -------------------------------------------------------------------------------------

CHARGE = f"""
import contextlib, sys
from hushgraph.privacy.ledger import budget
from hushgraph.privacy.ledger.budget import Ledger; from hushgraph.privacy.ledger.chain import LedgerError
ledger = Ledger.open(sys.argv[1])
print("opened", flush=True)
if sys.argv[2] == "without the lock":
    budget.locked_memory = lambda _: contextlib.nullcontext(budget.read_memory())
try:
    print("charged", ledger.charge(**{SMALL!r}).entry)
except LedgerError as error:
    print("refused:", error)
"""


def copied(path, tmp_path):
    """A ledger and a copy of its file."""
    first, _ = create(path)
    shutil.copy(path, tmp_path / "second.db")
    return first


def doubled(path, tmp_path):
    """Two ledgers for the same people, made before any of them was charged."""
    first, _ = create(path, n_charges=0)
    create(tmp_path / "second.db", n_charges=0)
    return first


@pytest.mark.parametrize("pair", [copied, doubled])
@pytest.mark.parametrize("lock", ["with the lock", "without the lock"])  # the second is the control
def test_of_two_ledgers_charged_at_one_moment_one_is_refused(path, tmp_path, monkeypatch, pair, lock):
    """Another process charges the second ledger when the first one is charged and this machine does not remember it yet."""
    first, processes = pair(path, tmp_path), []

    def late(memory, snapshot, place, **options):
        command = [sys.executable, "-c", CHARGE, str(tmp_path / "second.db"), lock]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert processes[0].stdout.readline() == "opened\n"
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for the lock
            processes[0].wait(60 if lock == "without the lock" else 3)
        add(memory, snapshot, place, **options)

    add = module.Memory.add
    monkeypatch.setattr(module.Memory, "add", late)
    first.charge(**SMALL)
    answer = processes[0].communicate(timeout=300)[0]
    assert answer.startswith("refused: ") == (lock == "with the lock"), answer
    assert ("this machine has seen" in answer) == (lock == "with the lock")


def test_copies_charged_in_the_same_second_have_different_heads(path, tmp_path, monkeypatch):
    one = copied(path, tmp_path).charge(**SMALL)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "another machine"))
    monkeypatch.setattr(chain, "datetime", SimpleNamespace(now=lambda _: datetime.fromisoformat(one.state.time)))
    other = Ledger.open(tmp_path / "second.db").charge(**SMALL)
    assert (one.entry, one.state.time) == (other.entry, other.state.time)
    assert one.head != other.head


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_forked_while_a_thread_charges_can_charge(path, monkeypatch):
    ledger, _ = create(path, n_charges=0)
    within, real = threading.Event(), module._insert

    def slowly(*arguments, **fields):
        within.set()
        time.sleep(0.3)
        return real(*arguments, **fields)

    monkeypatch.setattr(module, "_insert", slowly)
    thread = threading.Thread(target=lambda: ledger.charge(**SMALL))
    thread.start()
    within.wait()
    child = os.fork()
    if not child:
        try:
            monkeypatch.setattr(ledger_file, "PATIENCE", 1.0)
            os._exit(0 if Ledger.open(path).charge(**SMALL).entry == 3 else 1)
        finally:
            os._exit(2)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(ledger) == 3


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.parametrize("held", ["the ledger", "the memory"])
def test_ctrl_c_ends_the_wait_for_another_process(path, state, held):
    create(path)
    file = path if held == "the ledger" else state / "ledgers" / "memory.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        command = [sys.executable, "-c", "print('begins', flush=True)" + CHARGE.replace("\nimport", "; import", 1), str(path), ""]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts)
        assert [process.stdout.readline(), process.stdout.readline()] == ["begins\n", "opened\n"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]  # waits of 60 seconds would outlast this
    assert len(entries_in(path)) == 4


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_ends_the_wait_for_a_reader(path):
    """A reader lets a charge begin, and only its commit waits."""
    create(path)
    program = """
import sys
from hushgraph._progress import watching
from hushgraph.privacy.ledger import file
from hushgraph.privacy.ledger.budget import Ledger
ledger, waits = Ledger.open(sys.argv[1]), []
def watch(share, what):  # as `hushgraph release` after Ctrl-C
    if what.startswith("waiting for another process that reads"):
        print("waits", flush=True)
        raise KeyboardInterrupt
with watching(watch):
    ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
"""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "waits\n"
    assert "KeyboardInterrupt" in done.stderr
    assert len(entries_in(path)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_waits_while_a_thread_connects(path, monkeypatch):
    """SQLite has locks of its own while it connects, which a child would inherit taken."""
    create(path, n_charges=0)
    connects, real, forked = threading.Event(), sqlite3.connect, []

    def slowly(*arguments, **options):
        connects.set()
        time.sleep(0.3)
        forked.append("connected")
        return real(*arguments, **options)

    monkeypatch.setattr(ledger_file.sqlite3, "connect", slowly)
    thread = threading.Thread(target=lambda: Ledger.open(path))
    thread.start()
    connects.wait()
    child = os.fork()
    if not child:
        os._exit(0 if forked else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()


@pytest.mark.parametrize("place", ["acquire", "close"])
def test_an_interrupt_leaves_no_lock_behind(path, monkeypatch, place):
    ledger, _ = create(path, n_charges=0)

    class Interrupted(sqlite3.Connection):
        def close(self):
            super().close()
            raise KeyboardInterrupt

        def execute(self, *arguments):
            if place == "acquire" and arguments[0].startswith("BEGIN"):
                raise KeyboardInterrupt
            return super().execute(*arguments)

    real = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(
            ledger_file.sqlite3, "connect", lambda *arguments, **options: real(*arguments, **options, factory=Interrupted)
        )
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(**SMALL)
    other = threading.Thread(target=lambda: Ledger.open(path), daemon=True)
    other.start()
    other.join(30)
    assert not other.is_alive()


def test_a_disk_that_fails_at_the_commit_is_no_promise(path, monkeypatch):
    """The entry may be there or not, so the error does not say that nothing was charged."""
    ledger, _ = create(path, n_charges=0)

    def failing(connection, *rest, **options):
        real(connection, *rest, **options)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_DIR_FSYNC
        raise error

    real = module.commit
    with monkeypatch.context() as patch:
        patch.setattr(module, "commit", failing)
        with pytest.raises(
            LedgerError,
            match=r"the disk failed \(disk I/O error\) after entry 2 was written to the ledger .*; it may be charged, and no noise was drawn for it",
        ) as error:
            ledger.charge(**SMALL)
    assert UNCHARGED not in str(error.value)
    assert len(Ledger.open(path)) == 2


# ---- which ledger is in use for the same people ----------------------------------------------------------------------

BIG = {**SMALL, "sigma": 5.0, "epsilon": 0.99}


def test_a_renewal_is_no_way_to_a_second_budget(path, tmp_path):
    ledger = doubled(path, tmp_path)
    other = Ledger.open(tmp_path / "second.db")
    ledger.charge(**SMALL)
    for use in (lambda: other.charge(**SMALL), lambda: other.renew(period="June", reason="x", epsilon=1, delta=1e-6)):
        with pytest.raises(LedgerError, match="a second ledger would give the same people a second budget"):
            use()
    assert len(entries_in(tmp_path / "second.db")) == 1


def test_a_renewed_ledger_is_in_use(path, tmp_path):
    ledger = doubled(path, tmp_path)
    ledger.renew(period="June", reason="x", epsilon=1, delta=1e-6)
    with pytest.raises(LedgerError, match="a second ledger"):
        Ledger.open(tmp_path / "second.db")


def test_a_replaced_ledger_is_read_and_not_charged(path, tmp_path):
    old, certificates = create(path)
    new, _ = create(tmp_path / "new.db", n_charges=1, replaces=old.identity)
    again = Ledger.open(path)
    again.verify(*certificates)
    for ledger in (old, again):
        with pytest.raises(LedgerError, match=f"ledger {new.identity} in use"):
            ledger.charge(**SMALL)
    Ledger.open(path, replaces=new.identity).charge(**SMALL)  # the owner goes back to it
    with pytest.raises(LedgerError, match=f"ledger {old.identity} in use"):
        new.charge(**SMALL)


def test_only_the_ledger_in_use_is_replaced(path, tmp_path):
    """A was replaced by B, and B by C: neither A nor B comes back by naming another ledger than C."""
    first, _ = create(path)
    second, _ = create(tmp_path / "second.db", n_charges=1, replaces=first.identity)
    third, _ = create(tmp_path / "third.db", n_charges=1, replaces=second.identity)
    for name, replaces in (("second.db", first.identity), (path.name, second.identity), (path.name, "0" * 32)):
        with pytest.raises(LedgerError, match=f"this machine has seen ledger {third.identity} in use"):
            Ledger.open(tmp_path / name, replaces=replaces)
    for ledger in (first, second):
        with pytest.raises(LedgerError, match=f"ledger {third.identity} in use"):
            ledger.charge(**SMALL)
    third.charge(**SMALL)
    Ledger.open(tmp_path / "third.db", replaces=second.identity).charge(**SMALL)  # said again
    Ledger.open(path, replaces=third.identity).charge(**SMALL)  # the owner goes back to it


def test_a_replacement_that_cannot_be_remembered_is_an_error(path, tmp_path, state, monkeypatch):
    old, _ = create(path)
    new, _ = create(tmp_path / "new.db", n_charges=1, replaces=old.identity)
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(state / "ledgers" / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process uses this machine's memory"):
            Ledger.open(path, replaces=new.identity)
        assert len(Ledger.open(path)) == 4  # to read it needs no memory of it
    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "commit", full_disk(state))
        with pytest.raises(
            LedgerError, match=r"cannot remember which ledger budget\.db replaces \(.* is full; make .*memory\.db a file"
        ):
            Ledger.open(path, replaces=new.identity)
    with pytest.raises(LedgerError, match=f"ledger {new.identity} in use"):
        old.charge(**SMALL)


def test_a_replacement_that_was_charged_elsewhere_is_the_one_in_use(path, tmp_path, monkeypatch):
    old, _ = create(path)
    create(tmp_path / "new.db", n_charges=1, replaces=old.identity)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "another machine"))
    Ledger.open(path)
    new = Ledger.open(tmp_path / "new.db")
    with pytest.raises(LedgerError, match=f"ledger {new.identity} in use"):
        old.charge(**SMALL)
    new.charge(**SMALL)


def test_a_process_killed_between_ledger_and_memory_opens_no_second_budget(path, tmp_path, monkeypatch):
    """The charge is in the file and not in the memory. Nothing was drawn for it, so the other ledger may be used, and then this one not."""
    ledger = doubled(path, tmp_path)
    monkeypatch.setattr(module.Memory, "add", dies)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(**SMALL)
    monkeypatch.undo()
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    assert len(entries_in(path)) == 2
    Ledger.open(tmp_path / "second.db").charge(**SMALL)
    with pytest.raises(LedgerError, match="a second ledger"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="a second ledger"):
        ledger.charge(**SMALL)


def dies(*arguments, **options):
    raise KeyboardInterrupt


def test_a_map_that_is_bound_after_a_copy_was_charged_spoils_neither_file(path, tmp_path):
    ledger, _ = create(path, n_charges=0)
    charge = ledger.charge(**SMALL)
    shutil.copy(path, tmp_path / "copy.db")
    other = Ledger.open(tmp_path / "copy.db")
    other.charge(**SMALL)
    charge.spend()
    with pytest.raises(LedgerTampered, match="the file lacks"):
        ledger.bind(charge, np.zeros(3))
    other.charge(**SMALL)
    assert len(Ledger.open(tmp_path / "copy.db")) == 4


@pytest.mark.parametrize("name", ["TAXIS ", "taxi\N{LATIN SMALL LETTER LONG S}"])
def test_names_that_look_alike_are_the_same_people(path, tmp_path, name):
    create(path)
    with pytest.raises(LedgerError, match="a second ledger"):
        create(tmp_path / "second.db", dataset=name)


# ---- a memory that is damaged, cannot be read or cannot be written ---------------------------------------------------


@pytest.fixture
def older(path, state):
    """An old copy of a ledger in its place, on a machine that has seen the newest one; the memory's file."""
    ledger, _ = create(path, n_charges=2)
    copy = path.read_bytes()
    ledger.charge(**SMALL)
    path.write_bytes(copy)
    return state / "ledgers" / "memory.db"


@pytest.mark.parametrize("byte", [0, 32, 97, 255])
def test_a_damaged_memory_is_not_taken_for_an_empty_one(path, older, byte):
    """Each byte of the file that is in use is exchanged; none lets the old copy pass."""
    whole = older.read_bytes()
    places = [at for at in range(len(whole)) if whole[at] != byte and (whole[at] or not any(whole[max(0, at - 40) : at + 40]))][::7]
    assert len(places) > 100
    for at in places:
        older.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(
            LedgerError, match=r"damaged|this machine has seen entry|newer version|cannot be read|cannot write it durably"
        ):
            Ledger.open(path)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 8192])
def test_a_memory_that_is_cut_off_is_not_taken_for_an_empty_one(path, older, size):
    whole = older.read_bytes()
    assert len(whole) > size
    older.write_bytes(whole[:size])
    with pytest.raises(LedgerTampered, match=r"memory of ledgers, .*, is damaged"):
        Ledger.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM newest",
        "UPDATE newest SET entry = 2",
        "DELETE FROM digest",
        "DROP TABLE newest",
        "UPDATE in_use SET identity = x'00'",
    ],
)
def test_rows_that_were_changed_are_noticed(path, older, statement):
    sql(older, [statement])
    with pytest.raises(LedgerTampered, match=r"memory of ledgers, .*, is damaged"):
        Ledger.open(path)


def test_a_damaged_index_of_the_memory_charges_nothing(path, state):
    """The digest covers the rows, not the index, which is read only when a row is written."""
    ledger, _ = create(path)
    file = state / "ledgers" / "memory.db"
    page = sql(file, ["SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_newest_1'"])[0][0]
    content = bytearray(file.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = bytes(4096)
    file.write_bytes(content)
    for use in (
        lambda: ledger.charge(**SMALL),
        lambda: Ledger.open(path),
        lambda: create(path.parent / "other.db", dataset="other"),
    ):
        with pytest.raises(LedgerTampered, match=r"memory of ledgers, .*, is damaged"):
            use()
    assert len(entries_in(path)) == 4
    assert not (path.parent / "other.db").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may search all folders")
def test_a_folder_that_may_not_be_searched_is_not_taken_for_an_empty_memory(path, state):
    ledger, _ = create(path)
    (state / "ledgers").chmod(0o600)
    try:
        with pytest.raises(LedgerError, match="cannot be read: Permission denied"):
            ledger.charge(**SMALL)
    finally:
        (state / "ledgers").chmod(0o700)


def test_a_memory_of_which_nobody_knows_whether_it_is_there(path, monkeypatch):
    """As the test before, for root."""
    ledger, _ = create(path)
    real = os.lstat

    def refused(name, *rest, **options):
        if str(name).endswith("memory.db"):
            raise PermissionError(13, "Permission denied", str(name))
        return real(name, *rest, **options)

    monkeypatch.setattr(os, "lstat", refused)
    for use in (lambda: ledger.charge(**SMALL), lambda: Ledger.open(path)):
        with pytest.raises(LedgerError, match="cannot be read: Permission denied; nothing may be released"):
            use()
    monkeypatch.undo()
    assert len(entries_in(path)) == 4


def test_a_damaged_memory_stops_all_uses(path, older):
    ledger = Ledger.create(path.with_name("other.db"), **{**NAMES, "dataset": "buses"}, epsilon=1, delta=1e-6)
    older.write_bytes(b"")
    for use in (
        lambda: ledger.charge(**SMALL),
        lambda: ledger.renew(period="June", reason="x", epsilon=1, delta=1e-6),
        lambda: create(path.with_name("third.db"), dataset="trams"),
    ):
        with pytest.raises(LedgerTampered, match=r"is damaged.*nothing may be released"):
            use()
    assert len(entries_in(ledger.path)) == 1
    assert not path.with_name("third.db").exists()


def test_a_memory_that_cannot_be_read_is_not_taken_for_an_empty_one(path, older):
    older.unlink()
    older.mkdir()
    with pytest.raises(LedgerError, match=r"memory of ledgers, .*, cannot be read: .*; nothing may be released"):
        Ledger.open(path)


def test_a_memory_of_a_newer_version_is_refused(path, older):
    sql(older, ["PRAGMA user_version = 2"])
    with pytest.raises(LedgerError, match="written by a newer version of hushgraph"):
        Ledger.open(path)


def full_disk(state):
    """Return a commit that finds no room for this machine's memory."""

    def full(connection, *rest):
        if str(state) in str(connection.execute("PRAGMA database_list").fetchall()):
            raise sqlite3.OperationalError("database or disk is full")
        commit(connection, *rest)

    commit = ledger_file.commit
    return full


def test_a_memory_without_room_warns_and_goes_on_when_there_is_room(path, state, monkeypatch):
    ledger, _ = create(path, n_charges=0)
    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "commit", full_disk(state))
        with pytest.warns(
            UserWarning, match=r"this machine cannot remember what was written to budget\.db \(database or disk is full"
        ):
            ledger.charge(**SMALL)
    assert remembered(state, ledger) == [(1, ledger.entries()[0]["head"])]
    ledger.charge(**SMALL)
    assert remembered(state, ledger) == [(3, ledger.head)]


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_loses_no_charge(path, state, capsys):
    state.write_text("a file where a folder should be")
    ledger, _ = create(path, n_charges=0)
    assert ledger.charge(**SMALL).entry == 2
    assert "this machine cannot remember" in capsys.readouterr().err


def test_a_machine_without_a_home(path, monkeypatch):
    monkeypatch.delenv("HUSHGRAPH_STATE")
    monkeypatch.setattr(module.Path, "home", no_home)
    with pytest.warns(UserWarning, match="there is no home folder"):
        ledger, _ = create(path)
    assert len(Ledger.open(path)) == len(ledger) == 4


def no_home():
    raise RuntimeError


@pytest.mark.parametrize("folder", ["state", "~/state", "./x"])
@pytest.mark.parametrize("variable", ["HUSHGRAPH_STATE", "XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA"])
def test_the_memory_needs_an_absolute_path(path, monkeypatch, variable, folder):
    monkeypatch.delenv("HUSHGRAPH_STATE")
    monkeypatch.setenv(variable, folder)
    with pytest.raises(InputError, match=f"{variable} must be the absolute path of a folder"):
        create(path)
    assert not path.exists()


def test_a_locked_memory_charges_nothing(path, state, monkeypatch):
    ledger, _ = create(path)
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(state / "ledgers" / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=f"{UNCHARGED}.*another process uses this machine's memory of ledgers"):
            ledger.charge(**SMALL)
        assert len(Ledger.open(path)) == 4
    assert len(entries_in(path)) == 4
    ledger.charge(**SMALL)


def entries_in(path):
    """The entries of the file, without hushgraph."""
    return sql(path, ("SELECT entry FROM entries",))


# ---- the memory as text files, of earlier versions -------------------------------------------------------------------


def as_text_files(state, *ledgers):
    """Write the memory as earlier versions did."""
    folder = state / "ledgers"
    in_use = sql(folder / "memory.db", ["SELECT key, identity FROM in_use"])
    (folder / "memory.db").unlink()
    for ledger in ledgers:
        lines = [f"{entry} {head}\n" for entry, _, head in ledger_rows(ledger.path)]
        (folder / f"{ledger.identity}.heads").write_text("".join(lines))
    for key, identity in in_use:
        (folder / f"{key}.ledgers").write_text(f"{'0' * 32}\n{identity}\n")
    return folder


def ledger_rows(path):
    return sql(path, ["SELECT entry, fields, head FROM entries ORDER BY entry"])


def test_text_files_of_earlier_versions_are_taken_over(path, state, tmp_path):
    ledger, _ = create(path)
    older = path.read_bytes()
    ledger.charge(**SMALL)
    folder = as_text_files(state, ledger)
    newest, whole = path.read_bytes(), (folder / f"{ledger.identity}.heads").read_text()
    path.write_bytes(older)
    with pytest.raises(LedgerTampered, match="this machine has seen entry 5"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="a second ledger"):
        create(tmp_path / "second.db")
    path.write_bytes(newest)
    (folder / "memory.db").unlink()
    (folder / f"{ledger.identity}.heads").write_text(whole[:-40])  # what a crash left
    Ledger.open(path)
    assert remembered(state, ledger) == [(5, ledger.head)]


@pytest.mark.parametrize("letter", ["?", " ", "\xff", "\n"])
def test_damaged_text_files_are_not_taken_for_empty_ones(path, state, letter):
    ledger, _ = create(path, n_charges=2)
    older = path.read_bytes()
    ledger.charge(**SMALL)
    folder = as_text_files(state, ledger)
    path.write_bytes(older)
    for memory in list(folder.iterdir()):
        whole = memory.read_bytes()
        for at in range(len(whole)):
            memory.write_bytes(whole[:at] + letter.encode("latin-1") + whole[at + 1 :])
            with pytest.raises(LedgerError, match=r"damaged|this machine has seen entry"):
                Ledger.open(path)
        memory.write_bytes(whole)


@pytest.mark.parametrize(
    "dataset", ["1\N{MASCULINE ORDINAL INDICATOR} trimestre", "Zu\N{COMBINING DIAERESIS}rich", "taxi\N{NO-BREAK SPACE}rides"]
)
def test_text_files_knew_these_names_by_another_key(path, state, tmp_path, dataset):
    ledger, _ = create(path, dataset=dataset)
    folder = as_text_files(state, ledger)
    key = "names-" + hashlib.sha256(json.dumps([dataset.casefold(), NAMES["unit"], NAMES["adjacency"]]).encode()).hexdigest()
    for file in folder.glob("names-*"):
        file.rename(folder / f"{key}.ledgers")
    with pytest.raises(LedgerError, match="a second ledger"):
        create(tmp_path / "second.db", dataset=dataset)
    ledger.charge(**SMALL)


def test_two_charged_copies_that_text_files_knew_are_both_refused(path, state, tmp_path):
    ledger, _ = create(path)
    copy = shutil.copy(path, tmp_path / "copy.db")
    ledger.charge(**SMALL)
    folder = as_text_files(state, ledger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHGRAPH_STATE", str(tmp_path / "another machine"))
        other = Ledger.open(copy).charge(**SMALL)
    heads = folder / f"{ledger.identity}.heads"
    heads.write_text(heads.read_text() + f"{other.entry} {other.head}\n")
    for file in (path, copy):
        with pytest.raises(LedgerTampered, match="rolled back or rewritten: this machine has seen entry 5"):
            Ledger.open(file)


def test_an_empty_text_file_is_what_a_full_disk_left(path, state):
    ledger, _ = create(path)
    folder = as_text_files(state, ledger)
    (folder / f"{ledger.identity}.heads").write_text("")
    assert len(Ledger.open(path)) == 4
