"""Files that older versions wrote (tests/old_files/write.py) open in this version and say the same."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.privacy import certificate
from hushgraph.privacy.ledger import chain
from hushgraph.privacy.published_maps import read_published

FOLDERS = sorted(path for path in (Path(__file__).parent / "old_files").iterdir() if path.is_dir())
FORMATS = {
    "2026-11-17": (1, "hushgraph release 1"),
    "2026-11-18": (2, "hushgraph release 2"),
    "2026-11-18-reports": (2, "hushgraph release 2"),
}


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def old(request, tmp_path, monkeypatch):
    """A copy of the folder of an older version, on a machine that has not seen it before."""
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_each_format_has_a_folder():
    """Before a format gets a new number, the version of today must write a folder (write.py)."""
    assert [path.name for path in FOLDERS] == list(FORMATS)
    assert FORMATS[FOLDERS[-1].name] == (chain.FORMAT, certificate.FORMAT)


def test_a_ledger_opens_and_goes_on(old):
    ledger = hg.privacy.Ledger.open(old / "budget.db")
    entries = ledger.entries()
    assert f'"format":{FORMATS[old.name][0]}'.encode() in (old / "budget.db").read_bytes()
    assert [entry["note"] for entry in entries if entry["kind"] == "charge"][:2] == ["first", "second"]
    spent = ledger.spent
    assert 0.5 < spent < 1.2
    graph = hg.read_graph(old / "streets.graphml")
    bounds = {"unit": "person", "adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1, "max_distance": 200}
    counts = hg.privacy.count_events(graph, hg.datasets.trips(graph, n_people=400), **bounds)
    hg.privacy.release(counts, epsilon=0.5, delta=1e-7, ledger=ledger, public_graph=True).export(old / "third")
    assert ledger.spent > spent
    assert hg.privacy.verify_release(old / "third", ledger=ledger).ok
    assert hg.privacy.Ledger.open(old / "budget.db").entries()[: len(entries)] == entries


def test_an_edited_ledger_is_refused(old):
    """The negative control: an old chain is still checked."""
    path = old / "budget.db"
    text = path.read_bytes()
    assert text.count(b"second") == 1
    path.write_bytes(text.replace(b"second", b"Second"))
    with pytest.raises(hg.privacy.LedgerError):
        hg.privacy.Ledger.open(path)


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_release_verifies_and_is_read(old, name):
    assert json.loads((old / name / "certificate.json").read_text())["format"] == FORMATS[old.name][1]
    ledger, graph = hg.privacy.Ledger.open(old / "budget.db"), hg.read_graph(old / "streets.graphml")
    assert hg.privacy.verify_release(old / name, graph=graph, ledger=ledger).ok
    release = hg.privacy.read_release(old / name, graph)
    denoised = hg.denoise(graph, release, nonnegative=True)
    assert denoised.sigma == pytest.approx(release.sigma, rel=1e-6)  # the lattice adds a little
    assert np.all(np.isfinite(denoised.signal))


def test_a_changed_map_is_noticed(old):
    path = old / "first" / "map.csv"
    head, first, *rest = path.read_text().splitlines(keepends=True)
    cells = first.split(",")
    cells[-1 if len(cells) == 2 else 1] = "7\n" if len(cells) == 2 else "7"
    path.write_text("".join([head, ",".join(cells), *rest]))
    assert not hg.privacy.verify_release(old / "first").ok


def test_the_report_of_an_old_release_verifies(old):
    """The report is in the certificate since it is part of a release; a changed one is noticed."""
    report = old / "first" / "report.html"
    assert report.exists() == (old.name == "2026-11-18-reports")
    if report.exists():
        claims = [check.claim for check in hg.privacy.verify_release(old / "first").checks if check.holds]
        assert any("report.html" in claim for claim in claims)
        report.write_text(report.read_text().replace("<title>", "<title>Not "))
        assert not hg.privacy.verify_release(old / "first").ok


@pytest.fixture
def newest(tmp_path, monkeypatch):
    """A copy of the newest folder, on the machine that wrote it."""
    folder = Path(shutil.copytree(FOLDERS[-1], tmp_path / "newest"))
    monkeypatch.setenv("HUSHGRAPH_STATE", str(folder / "state"))
    return folder


def test_a_release_by_name_is_returned_without_a_charge(newest):
    ledger = hg.privacy.Ledger.open(newest / "budget.db")
    bounds = {"unit": "person", "adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1, "max_distance": 200}
    graph = hg.read_graph(newest / "streets.graphml")  # `datasets.city` has other last bits on other processors
    counts = hg.privacy.count_events(graph, hg.datasets.trips(graph, n_people=400), **bounds)
    spent = ledger.spent
    stored = np.load(next((newest / "budget.db.releases").iterdir()))
    with pytest.warns(UserWarning, match="nothing was charged"):
        release = hg.privacy.release(counts, epsilon=0.5, delta=1e-7, ledger=ledger, public_graph=True, name="april")
    np.testing.assert_array_equal(release.values, stored)
    assert ledger.spent == spent


def test_a_series_is_read(newest):
    maps = read_published(newest / "series", hg.read_graph(newest / "streets.graphml"))
    assert maps.titles == ["first", "second"]


def write_older(newest):
    """Write a copy of the ledger without its last entry, and return its path."""
    with closing(sqlite3.connect(newest / "budget.db")) as whole, closing(sqlite3.connect(newest / "older.db")) as older:
        whole.backup(older)
        older.execute("DELETE FROM entries WHERE entry = (SELECT max(entry) FROM entries)")
        older.commit()
    return newest / "older.db"


def test_the_memory_of_a_machine_notices_an_older_ledger(newest):
    """What the version of then remembered is enough: this version has not opened the ledger."""
    with pytest.raises(hg.privacy.LedgerError, match="rolled back"):
        hg.privacy.Ledger.open(write_older(newest))


def test_a_machine_without_memory_does_not(newest):
    """The negative control."""
    shutil.rmtree(newest / "state")
    assert hg.privacy.Ledger.open(write_older(newest)).spent > 0


# ---- files of a later version ------------------------------------------------------------------------------------------


def write_later(path, change, number):
    """Rewrite the ledger at `path` as a later version could: entry `number` has other fields, and all hashes are right."""
    with closing(sqlite3.connect(path)) as file:
        head = "0" * 64
        for entry, text in file.execute("SELECT entry, fields FROM entries ORDER BY entry").fetchall():
            fields = json.dumps(json.loads(text) | change) if entry == number else text
            head = hashlib.sha256((head + fields).encode()).hexdigest()
            file.execute("UPDATE entries SET fields = ?, head = ? WHERE entry = ?", (fields, head, entry))
        file.commit()


@pytest.mark.parametrize(("change", "number"), [({"format": 3}, 1), ({"format": 3}, 4), ({"kind": "pause"}, 3)])
def test_a_ledger_of_a_later_version(newest, monkeypatch, change, number):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(newest / "other machine"))
    write_later(newest / "budget.db", change, number)
    with pytest.raises(
        hg.privacy.LedgerError, match=f"^entry {number} of .* newer version of hushgraph; use that version"
    ) as error:
        hg.privacy.Ledger.open(newest / "budget.db")
    assert type(error.value) is hg.privacy.LedgerError  # it was not tampered with


@pytest.mark.parametrize("change", [{"format": "two"}, {"kind": 7, "format": []}, {"entry": 9}])
def test_a_rewritten_ledger_is_not_taken_for_a_later_one(newest, monkeypatch, change):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(newest / "other machine"))
    write_later(newest / "budget.db", change, 3)
    with pytest.raises(hg.privacy.LedgerTampered, match="entry 3 makes no sense"):
        hg.privacy.Ledger.open(newest / "budget.db")


def test_a_release_of_a_later_version(newest):
    path = newest / "first" / "certificate.json"
    path.write_text(path.read_text().replace('"hushgraph release 2"', '"hushgraph release 3"'))
    ledger, graph = hg.privacy.Ledger.open(newest / "budget.db"), hg.read_graph(newest / "streets.graphml")
    answer = hg.privacy.verify_release(newest / "first", graph=graph, ledger=ledger)
    assert not answer.ok
    assert len(answer.checks) == 1
    assert "newer version of hushgraph (format 'hushgraph release 3'" in answer.faults[0].detail
    with pytest.raises(
        ValueError, match=r"'first' cannot be read: the certificate was written by a newer version .* use that version$"
    ):
        hg.privacy.read_release(newest / "first", graph)
    with pytest.raises(hg.privacy.LedgerError, match="newer version") as error:
        ledger.verify(path)
    assert type(error.value) is hg.privacy.LedgerError


def test_a_series_of_a_later_version(newest):
    path, graph = newest / "series" / "summary.json", hg.read_graph(newest / "streets.graphml")
    summary = json.loads(path.read_text())
    path.write_text(json.dumps({"format": 2, "maps": summary["releases"], "graph": summary["graph"]}))
    with pytest.raises(ValueError, match=r"newer version of hushgraph \(format 2\); use that version"):
        read_published(newest / "series", graph)


def test_a_memory_of_a_later_version(newest):
    hg.privacy.Ledger.open(newest / "budget.db")
    with closing(sqlite3.connect(newest / "state" / "ledgers" / "memory.db")) as file:
        file.execute("PRAGMA user_version = 2")
    with pytest.raises(hg.privacy.LedgerError, match="newer version of hushgraph; use that version"):
        hg.privacy.Ledger.open(newest / "budget.db")


# ---- prepared folders ----------------------------------------------------------------------------------------------------


def test_a_prepared_folder_gives_the_signal_of_then(old):
    noisy, expected = np.load(old / "noisy.npy"), np.load(old / "denoised.npy")
    result = hg.distributed.denoise(old / "work", noisy, sigma=1.0, method="sgwt_sure", n_probes=4)
    np.testing.assert_allclose(result.read(), expected, rtol=1e-12)
