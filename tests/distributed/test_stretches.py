"""Arrays of partitions that are read in rows and stretches of nodes: the same values and bits as those of whole arrays."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, wavelet_tasks
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import read_manifest
from hushgraph.distributed.wavelet_tasks import StoredWeights

from .cases import ANY, METHODS, assert_equal, noisy_on, with_islands


@pytest.mark.parametrize("by", ["ordering", "coordinates"])
def test_rows_of_owned_nodes(tmp_path, by):
    """Owned nodes follow each other in ranges of node numbers, and do not in boxes."""
    graph = hg.datasets.roads(2000)
    prepare(graph, tmp_path, partitions=4, by=by, degree=5, most_ghosts=ANY)
    kinds = set()
    for part in range(4):
        zone = Part(tmp_path / read_manifest(tmp_path)["folder"], part)
        rows = np.random.default_rng(part).normal(size=(3, zone.n))
        found = [row.copy() for row in zone.owned_rows(rows)]
        np.testing.assert_array_equal(found, rows[:, zone.owned])
        np.testing.assert_array_equal(rows[0][zone.owned_places], rows[0][zone.owned])
        kinds.add(type(zone.owned_places))
    assert (slice in kinds) == (by == "ordering")


@pytest.mark.parametrize("squared", [True, False])
def test_weights_in_rows_and_stretches(squared):
    mapped = np.random.default_rng(0).normal(size=(4, 50))
    mapped.flags.writeable = False
    whole = mapped**2 if squared else mapped
    weights, out = StoredWeights(mapped, squared), np.empty(50)
    for j in range(4):
        np.testing.assert_array_equal(weights.row(j), whole[j])
        np.testing.assert_array_equal(weights.row(j, out), whole[j])
    np.testing.assert_array_equal(weights.at(slice(10, 30)), whole[:, 10:30])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_probes", [1, 3])
def test_the_same_bits_for_stretches_of_any_length(tmp_path, monkeypatch, method, n_probes):
    monkeypatch.setattr(wavelet_tasks, "STRETCH", 700)
    graph = with_islands()
    prepare(graph, tmp_path, partitions=3, most_ghosts=ANY)
    for sigma in (1.0, np.linspace(0.5, 1.5, graph.n)):
        found = denoise(tmp_path, noisy_on(graph), sigma=sigma, method=method, n_probes=n_probes)
        assert_equal(found, hg.denoise(graph, noisy_on(graph), sigma=sigma, method=method, n_probes=n_probes))
