"""Shared by the tests of private releases."""

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """This machine's memory of ledgers, empty for each test."""
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"
