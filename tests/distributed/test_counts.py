"""`counts` on partitions: the bits of one machine, also after a cut, and with `auto` for values that cannot be negative."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph import distributed
from hushgraph.distributed import counts_driver, counts_tasks
from hushgraph.estimators.counts import empirical_bayes, surroundings

SIGMA = 4.0


@pytest.fixture(scope="module")
def streets():
    """Streets without coordinates, with pieces apart and isolated nodes."""
    city = hg.datasets.city(900, seed=2)
    edges = np.stack(city.adjacency.nonzero(), axis=1)
    graph = hg.Graph.from_edges(edges[edges[:, 0] < edges[:, 1]], n=city.n + 20)
    counts = np.concatenate([hg.hotspot_counts(city, total=4 * city.n, seed=1), np.zeros(20)])
    return graph, counts, counts + SIGMA * np.random.default_rng(0).normal(size=graph.n)


@pytest.mark.parametrize("partitions", [1, 2, 4, 16])
@pytest.mark.parametrize("per_node", [False, True])
def test_the_bits_of_one_machine(streets, tmp_path, partitions, per_node):
    graph, _, noisy = streets
    sigma = SIGMA * np.exp(0.3 * np.random.default_rng(1).normal(size=graph.n)) if per_node else SIGMA
    distributed.prepare(graph, tmp_path, partitions=partitions, degree=counts_tasks.LEAST_DEPTH, most_ghosts=1e9)
    result = distributed.denoise(tmp_path, noisy, sigma=sigma, method="counts")
    here = hg.denoise(graph, noisy, sigma=sigma, method="counts")
    assert np.array_equal(result.read(), here.signal)
    assert result.risk == pytest.approx(here.risk, rel=1e-9)
    assert result.risk_se == pytest.approx(here.risk_se, rel=1e-9)
    assert result.divergence == pytest.approx(here.details["divergence"], rel=1e-9)


def test_a_sample_of_a_large_graph_has_the_same_bits(streets, tmp_path, monkeypatch):
    graph, _, noisy = streets
    monkeypatch.setattr(empirical_bayes, "SAMPLE", 300)
    distributed.prepare(graph, tmp_path, partitions=3, degree=30, most_ghosts=1e9)
    signal = distributed.denoise(tmp_path, noisy, sigma=SIGMA, method="counts").read()
    assert np.array_equal(signal, hg.denoise(graph, noisy, sigma=SIGMA, method="counts").signal)


def test_a_shallow_zone_is_refused(streets, tmp_path):
    graph, _, noisy = streets
    distributed.prepare(graph, tmp_path, partitions=4, degree=counts_tasks.LEAST_DEPTH - 1, most_ghosts=1e9)
    for method, nonnegative in (("counts", False), ("auto", True)):
        with pytest.raises(ValueError, match="needs ghost zones of"):
            distributed.denoise(tmp_path, noisy, sigma=SIGMA, method=method, nonnegative=nonnegative)


def test_auto_averages_counts_and_the_combination(streets, tmp_path):
    graph, counts, noisy = streets
    distributed.prepare(graph, tmp_path, partitions=3, degree=60, most_ghosts=1e9)
    result = distributed.denoise(tmp_path, noisy, sigma=SIGMA, method="auto", nonnegative=True)
    assert "taken" in result.details["counts"]
    assert "80%" in result.details["why"]
    assert set(counts_driver.LEFT_OUT) <= set(result.details["left_out"])
    alone = hg.denoise(graph, noisy, sigma=SIGMA, method="counts").signal
    combination = distributed.denoise(tmp_path, noisy, sigma=SIGMA, method="auto").read()
    assert np.allclose(result.read(), np.maximum(0.8 * alone + 0.2 * combination, 0), atol=1e-8)
    error = np.sum((result.read() - counts) ** 2)
    assert abs(result.risk - error) < 5 * result.risk_se
    assert not list(result.folder.glob("counts")), "the files of the two estimates are removed"
    signed = np.sin(np.arange(graph.n) / 40) * 30
    dropped = distributed.denoise(tmp_path, signed + noisy - counts, sigma=SIGMA, method="auto", nonnegative=True)
    assert "dropped" in dropped.details["counts"]


def test_guides_are_refused(streets, tmp_path):
    graph, counts, noisy = streets
    distributed.prepare(graph, tmp_path, partitions=2, degree=60, most_ghosts=1e9)
    for method, nonnegative in (("counts", False), ("auto", True)):
        with pytest.raises(ValueError, match="whole graph"):
            distributed.denoise(tmp_path, noisy, sigma=SIGMA, method=method, nonnegative=nonnegative, guides=[counts + 1.0])


def test_what_partitions_leave_out_is_for_large_graphs_only(streets):
    graph, _, _ = streets
    assert not surroundings.node_surroundings(graph).wide
    assert hg.datasets.path(surroundings.LARGE).n == 2**14
