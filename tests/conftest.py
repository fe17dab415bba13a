"""Shared by all tests: hypothesis without deadlines, which busy machines would miss."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import hushgraph as hg

settings.register_profile("hushgraph", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("hushgraph")


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """Ledgers made by tests and doctests are remembered in a folder that goes away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHGRAPH_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _own_state_of_each_test(tmp_path_factory, monkeypatch):
    """No test remembers the ledgers of another one."""
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def no_figures():
    """The test starts without open figures, and leaves none."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def golden():
    """Values computed by independent programs (R gasper, glmgen, prox-tv); see golden/README.md."""
    with np.load(Path(__file__).parent / "golden" / "independent.npz") as data:
        return dict(data)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data; tests that need it are skipped without it."""
    folder = os.environ.get("HUSHGRAPH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("HUSHGRAPH_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def manhattan(data_folder):
    """Manhattan's streets and the taxi pickups of f_matched."""
    with np.load(data_folder / "manhattan_osm.npz") as data, np.load(data_folder / "nyc_signal.npz") as signals:
        return hg.Graph.from_edges(data["edges"], n=int(data["n"])), signals["f_matched"]
