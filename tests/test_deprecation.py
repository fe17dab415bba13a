"""Old names go in the version that their warning says."""

import re
from pathlib import Path

import pytest

import hushgraph as hg

SOURCES = Path(hg.__file__).parent


def stated_versions():
    """Return (file, version) for each old name that still works."""
    files = [path for path in SOURCES.rglob("*.py") if path.name != "_deprecation.py"]
    return [
        (path.name, version)
        for path in files
        for version in re.findall(r'removed_in="(\d+\.\d+)"', path.read_text(encoding="utf-8"))
    ]


def overdue(version):
    """Return the old names that must be gone in a version."""
    major, minor = map(int, version.split(".")[:2])
    return [name for name, last in stated_versions() if tuple(map(int, last.split("."))) <= (major, minor)]


def test_no_old_name_is_overdue():
    assert overdue(hg.__version__) == []


def test_an_overdue_name_would_be_noticed():
    assert {"budget.py", "thresholds.py"} <= {*overdue("0.3.0")}
    assert not overdue("0.2.9")


def test_the_old_names_of_a_ledger_warn_where_they_are_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    ledger = hg.privacy.Ledger.create(tmp_path / "b.db", dataset="d", unit="p", adjacency="add-remove", epsilon=1, delta=1e-6)
    with pytest.warns(
        DeprecationWarning, match=r"Ledger\.seen is called Ledger\.last_snapshot now; the old name will go in 0\.3"
    ) as warned:
        assert ledger.seen == ledger.last_snapshot
    assert warned[0].filename == __file__
