"""Files that older versions wrote (tests/old_files/write.py) open in this version and say the same."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg

FOLDERS = sorted(path for path in (Path(__file__).parent / "old_files").iterdir() if path.is_dir())
FORMATS = {"2026-11-17": (1, "hushgraph release 1"), "2026-11-18": (2, "hushgraph release 2")}


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def old(request, tmp_path, monkeypatch):
    """A copy of the folder of an older version, on a machine that has not seen it before."""
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_each_format_has_a_folder():
    assert [path.name for path in FOLDERS] == list(FORMATS)


def test_a_ledger_opens_and_goes_on(old):
    ledger = hg.privacy.Ledger.open(old / "budget.db")
    entries = ledger.entries()
    assert f'"format":{FORMATS[old.name][0]}'.encode() in (old / "budget.db").read_bytes()
    assert [entry["note"] for entry in entries if entry["kind"] == "charge"] == ["first", "second"]
    spent = ledger.spent
    assert 0.5 < spent < 1.0
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


def test_a_prepared_folder_gives_the_signal_of_then(old):
    noisy, expected = np.load(old / "noisy.npy"), np.load(old / "denoised.npy")
    result = hg.distributed.denoise(old / "work", noisy, sigma=1.0, method="sgwt_sure", n_probes=4)
    np.testing.assert_allclose(result.read(), expected, rtol=1e-12)
