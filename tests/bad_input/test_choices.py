"""An argument that takes one of a few names: the error lists them."""

import numpy as np

import hushgraph as hg
from hushgraph._errors import InputError

from .tables import Bad, F, W, each_of, each_value, exact, frame, grid, noisy, path, truth, y

LAPLACIAN = "laplacian must be one of 'combinatorial', 'normalized', 'random_walk'; got 'no'"
DUPLICATES = "duplicates must be one of 'error', 'sum', 'max'; got 'no'"
PLATEAU = "plateau must be one of 'linear', 'smooth', 'c3', 'meyer'; got 'no'"
DAMPING = "damping must be one of None, 'jackson'; got 'no'"
RULE = "rule must be one of 'soft', 'james_stein', 'power', 'hard'; got 'no'"
LAW = "law must be one of 'rademacher', 'gaussian'; got 'no'"
DOMAIN = "domain must be one of 'coefficients', 'signal'; got 'no'"
LEVEL = "level must be one of 'scale', 'global'; got 'no'"
CANDIDATES = "candidates must be one of 'all', 'percentiles'; got 'no'"
METHOD = "method must be one of 'auto', 'let', 'counts', 'filter', 'sgwt_sure', 'sgwt_scaled', 'sgwt_deep', 'sgwt_exact', 'sgwt_block', 'sgwt_beta'; "


@each_value("rule", [["soft"], np.array(["a", "b"])])
def test_a_choice_is_one_name(rule):
    says = "rule must be one of 'soft', 'james_stein', 'power', 'hard'; got "
    Bad(lambda: hg.shrink(y, 1.0, rule=rule), InputError, says).is_refused()


@each_of(
    {
        "Graph.laplacian": Bad(lambda: path.laplacian("no"), InputError, LAPLACIAN),
        "Graph.spectrum": Bad(lambda: path.spectrum("no"), InputError, LAPLACIAN),
        "from_edges, duplicates": Bad(lambda: hg.Graph.from_edges([(0, 1)], duplicates="no"), InputError, DUPLICATES),
        "from_edges, crs": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], crs="no"), InputError, "crs must be one of None, 'lonlat'; got 'no'"
        ),
        "from_image": Bad(lambda: hg.Graph.from_image((2, 3), neighbours=6), InputError, "neighbours must be one of 4, 8; got 6"),
        "partition": Bad(lambda: hg.partition([0.5], n_scales=3, plateau="no"), InputError, PLATEAU),
        "chebyshev_coefficients": Bad(lambda: hg.chebyshev_coefficients(np.cos, 5, upper=1.0, damping="no"), InputError, DAMPING),
        "chebyshev_frame, plateau": Bad(lambda: hg.chebyshev_frame(grid, plateau="no"), InputError, PLATEAU),
        "chebyshev_frame, damping": Bad(lambda: hg.chebyshev_frame(grid, damping="no"), InputError, DAMPING),
        "chebyshev_frame, laplacian": Bad(lambda: hg.chebyshev_frame(grid, laplacian="no"), InputError, LAPLACIAN),
        "exact_frame, plateau": Bad(lambda: hg.exact_frame(grid, plateau="no"), InputError, PLATEAU),
        "exact_frame, laplacian": Bad(lambda: hg.exact_frame(grid, laplacian="no"), InputError, LAPLACIAN),
        "Noisy": Bad(lambda: noisy(kind="no"), InputError, "kind must be one of 'measurement', 'release', 'simulation'; got 'no'"),
    }
)
def test_choices_of_graphs_frames_and_signals(bad):
    bad.is_refused()


@each_of(
    {
        "shrink": Bad(lambda: hg.shrink(y, 1.0, rule="no"), InputError, RULE),
        "monte_carlo_weights, law": Bad(lambda: hg.monte_carlo_weights(frame, law="no"), InputError, LAW),
        "monte_carlo_weights, domain": Bad(lambda: hg.monte_carlo_weights(frame, domain="no"), InputError, DOMAIN),
        "exact_weights": Bad(lambda: hg.exact_weights(frame, domain="no"), InputError, DOMAIN),
        "exact_weights of an exact frame": Bad(lambda: hg.exact_weights(exact, domain="no"), InputError, DOMAIN),
        "sure": Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=1.0, rule="no"), InputError, RULE),
        "sure_variance, rule": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule="no"), InputError, RULE),
        "sure_variance, law": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, law="no"), InputError, LAW),
        "sure_thresholds, rule": Bad(lambda: hg.sure_thresholds(F, W, sigma=1.0, rule="no"), InputError, RULE),
        "sure_thresholds, level": Bad(lambda: hg.sure_thresholds(F, W, sigma=1.0, level="no"), InputError, LEVEL),
        "sure_thresholds, candidates": Bad(lambda: hg.sure_thresholds(F, W, sigma=1.0, candidates="no"), InputError, CANDIDATES),
        "sure_curve": Bad(lambda: hg.sure_curve(F[0], W[0], sigma=1.0, rule="no"), InputError, RULE),
        "oracle_thresholds, rule": Bad(lambda: hg.oracle_thresholds(F, truth, rule="no"), InputError, RULE),
        "oracle_thresholds, level": Bad(lambda: hg.oracle_thresholds(F, truth, level="no"), InputError, LEVEL),
    }
)
def test_choices_of_risks_and_thresholds(bad):
    bad.is_refused()


@each_of(
    {
        "method": Bad(lambda: hg.denoise(grid, y, sigma=1.0, method="no"), InputError, f"{METHOD}got 'no'"),
        "rule": Bad(lambda: hg.denoise(grid, y, sigma=1.0, rule="no"), InputError, RULE),
        "level": Bad(lambda: hg.denoise(grid, y, sigma=1.0, level="no"), InputError, LEVEL),
        "candidates": Bad(lambda: hg.denoise(grid, y, sigma=1.0, candidates="no"), InputError, CANDIDATES),
        "law": Bad(lambda: hg.denoise(grid, y, sigma=1.0, law="no"), InputError, LAW),
        "missing": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, missing="no"),
            InputError,
            "missing must be one of 'error', 'drop', 'fill'; got 'no'",
        ),
    }
)
def test_choices_of_denoise(bad):
    bad.is_refused()
