"""A likelihood-ratio audit of the whole release path on neighbouring inputs; a sigma 10 % low is caught.

The set with the largest P1[S] - exp(epsilon) P0[S] is where the likelihood ratio exceeds exp(epsilon): outputs above
sigma^2 epsilon / Delta + Delta / 2. Clopper-Pearson bounds at level 1e-3 on either side make the false-alarm rate of one
audit less than 2e-3 for any mechanism that keeps its promise, and 1e-5 for this one, whose delta is met with equality.
delta is 1e-3: at 1e-6 it would take 1e9 draws to see a sigma 10 % low.
"""

import math

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.privacy import release
from hushgraph.privacy.calibration import analytic_sigma
from hushgraph.privacy.counting import declare_counts
from hushgraph.privacy.lattice import lattice_noise, lattice_step
from hushgraph.privacy.ledger.budget import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.statistics]
DELTA, LEVEL = 1e-3, 1e-3
NODES, WINDOWS = 500_000, 32
DRAWS = NODES * WINDOWS


def proven_delta(with_unit: np.ndarray, without: np.ndarray, threshold: float, epsilon: float) -> float:
    """A lower confidence bound on the delta of a mechanism, from its outputs on two neighbouring inputs."""
    hits, false = int((with_unit > threshold).sum()), int((without > threshold).sum())
    least = stats.beta.ppf(LEVEL, hits, with_unit.size - hits + 1) if hits else 0.0
    most = stats.beta.isf(LEVEL, false + 1, without.size - false)
    return least - math.exp(epsilon) * most


def _released(folder, count, epsilon):
    """Outputs of the public path on DRAWS equal counts, each protected by itself (a unit changes one value by 1)."""
    graph = hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=NODES)
    counts = declare_counts(
        graph, np.full((NODES, WINDOWS), count), unit="person", adjacency="add-remove", sensitivity=1, windows=range(WINDOWS + 1)
    )
    ledger = Ledger.create(
        folder / f"{count}.db",
        dataset=f"{count} events",
        unit="person",
        adjacency="add-remove",
        epsilon=50,
        delta=DELTA,
        weak_guarantee=True,
    )
    return release(counts, epsilon=epsilon, delta=DELTA, ledger=ledger, public_graph=True)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_release_path_keeps_its_promise(tmp_path, epsilon):
    without, with_unit = _released(tmp_path, 0, epsilon), _released(tmp_path, 1, epsilon)
    threshold = without.sigma**2 * epsilon + 0.5
    bound = proven_delta(with_unit.values, without.values, threshold, epsilon)
    assert bound <= DELTA
    assert bound > 0.4 * DELTA  # the audit has teeth: it proves nearly half of what is allowed


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_sigma_ten_percent_low_is_caught(epsilon):
    """Negative control."""
    sigma = 0.9 * analytic_sigma(epsilon=epsilon, delta=DELTA, sensitivity=1)
    without = lattice_step(sigma) * lattice_noise(DRAWS, sigma=sigma)
    with_unit = 1 + lattice_step(sigma) * lattice_noise(DRAWS, sigma=sigma)
    assert proven_delta(with_unit, without, sigma**2 * epsilon + 0.5, epsilon) > DELTA
