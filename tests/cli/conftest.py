"""A small city with releases of several months."""

import csv

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.files.graphs import write_graph
from hushgraph.files.signals import write_signal
from hushgraph.privacy import declare_counts, export, release
from hushgraph.privacy.lattice import steps_from
from hushgraph.privacy.ledger.budget import Ledger

SIGMA = 4.0


@pytest.fixture(scope="session")
def months(tmp_path_factory):
    """A small city, four months of it as releases, a day as a release over windows, and files with guides; all of it is the same in each run."""
    folder = tmp_path_factory.mktemp("guided")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHGRAPH_STATE", str(folder / "state"))
        graph = hg.datasets.city(150)
        mean = 0.3 + hg.hotspot_counts(graph, total=3000)
        rng = np.random.default_rng(0)
        patch.setattr("hushgraph.privacy.releases.lattice_noise", lambda size, *, sigma: steps_from(rng.bytes, size, sigma))
        write_graph(folder / "streets.npz", graph)
        ledger = Ledger.create(folder / "b.db", dataset="visits", unit="person", adjacency="add-remove", epsilon=9, delta=1e-6)
        for name in ("jan", "feb", "mar", "apr"):
            export(_published(graph, rng.poisson(mean), ledger), folder / name, method="sgwt_sure")
        day = rng.poisson(mean[:, None], (graph.n, 3))
        export(_published(graph, day, ledger, windows=(0, 8, 16, 24)), folder / "day", method="sgwt_sure")
    write_signal(folder / "noisy.csv", graph, mean + rng.normal(0, SIGMA, graph.n))
    write_signal(folder / "mean.csv", graph, {"mean": mean, "nothing": rng.normal(size=graph.n)})
    write_signal(folder / "other.csv", graph, {"mean": mean**0.5})
    np.save(folder / "plain.npy", np.stack([mean, mean**0.5], axis=1))
    trips = hg.datasets.trips(graph, n_people=100)
    with (folder / "trips.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(trips)
        writer.writerows(zip(*trips.values(), strict=True))
    return folder, graph


def _published(graph, counts, ledger, windows=None):
    declared = declare_counts(graph, counts, unit="person", adjacency="add-remove", sensitivity=1, windows=windows)
    return release(declared, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)


@pytest.fixture
def served(monkeypatch):
    """What the explorer would have been started with, a dict for each start."""
    pytest.importorskip("starlette")
    calls = []

    def serve(**given):
        calls.append(given)
        given["on_ready"]("http://127.0.0.1:1234/#token=abc")
        raise KeyboardInterrupt

    monkeypatch.setattr("hushgraph.explorer.serve", serve)
    return calls
