"""Whatever happens to the ledger's file is noticed: edits, rollbacks, other files, full disks. Nothing is charged then."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest

from hushgraph.privacy.ledger import budget as module, file as ledger_file
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerError, LedgerTampered, total_after

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
    for change in ({3: {"kind": "gift"}}, {2: {"sensitivity_squared": "-1"}}, {3: {"period": "June"}}, {3: {"kind": "create"}},
                   {3: {"kind": "renew"}}, {1: {"identity": "../../elsewhere"}}, {1: {"format": 3}}, {4: {"sigma": "0x0p+0"}},
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


def test_the_witness_has_a_line_for_each_entry_and_survives_a_crash(path, state):
    ledger, _ = create(path)
    witness = state / "ledgers" / f"{ledger.identity}.heads"
    lines = [f"{entry['entry']} {entry['head']}\n" for entry in ledger.entries()]
    assert witness.read_text() == "".join(lines)
    witness.write_text("".join(lines)[:-40])
    Ledger.open(path).charge(**SMALL)
    assert witness.read_text() == "".join(lines)[:-40] + f"\n{lines[3]}5 {ledger.head}\n"
    witness.write_text(f"5 {ledger.head}\n{lines[2]}")  # the order in which two processes were served
    ledger.charge(**SMALL)
    Ledger.open(path)


def test_where_the_witness_is(path, tmp_path, monkeypatch):
    monkeypatch.delenv("HUSHGRAPH_STATE")
    monkeypatch.setenv("XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA", str(tmp_path / "xdg"))
    ledger, _ = create(path)
    assert (tmp_path / "xdg" / "hushgraph" / "ledgers" / f"{ledger.identity}.heads").exists()
    monkeypatch.setenv("XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA", "")
    monkeypatch.setenv("HOME" if os.name != "nt" else "USERPROFILE", str(tmp_path / "home"))
    ledger.charge(**SMALL)
    assert (tmp_path / "home" / ".local" / "state" / "hushgraph" / "ledgers" / f"{ledger.identity}.heads").exists()


def test_a_machine_that_cannot_remember_says_so_once_and_the_charge_stands(path, state):
    state.write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match=r"rollbacks of budget\.db cannot be noticed on this machine") as warned:
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
def test_a_full_disk_charges_nothing(path, room):
    create(path, epsilon=1000, weak_guarantee=True)
    program = f"""
import os, resource, sys
from hushgraph.privacy.ledger.budget import Ledger; from hushgraph.privacy.ledger.chain import LedgerError
ledger = Ledger.open(sys.argv[1])
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
        [sys.executable, "-c", program, path, str(room)], capture_output=True, text=True, check=True, timeout=30
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
    """Another process makes and charges the ledger while this one is at it."""
    real = module.transaction

    @contextlib.contextmanager
    def late(draft, *rest):
        with real(draft, *rest) as connection:
            yield connection
        if draft != path and not path.exists():
            monkeypatch.setattr(module, "transaction", real)
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
