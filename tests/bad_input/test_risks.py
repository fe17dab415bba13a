"""Shrinking, weights, risks and thresholds."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, F, W, dust, each_of, each_value, exact, frame, grid, inf, nan, noisy, nothing, point, truth, y

# ---- sigma, probes, seeds ------------------------------------------------------------------------------------------

SIGMA = "sigma must be a standard deviation in signal units, a positive number"
SIGMAS = f"{SIGMA} or 20 of them, one per node; got "


@each_value(
    "sigma",
    [0, -1, nan, inf, "1.0", True, 1j, [1] * 19, [], np.ones((20, 1)), ["a"] * 20, [[1.0], [1, 2]], [0] + [1] * 19, [nan] + [1.0] * 19],
)  # fmt: skip
def test_sigma_is_positive_and_one_or_one_per_node(sigma):
    Bad(lambda: hg.exact_weights(frame, sigma=sigma), InputError, SIGMAS).is_refused()


@each_of(
    {
        "monte_carlo_weights": Bad(
            lambda: hg.monte_carlo_weights(frame, sigma=np.ones(19)), InputError, f"{SIGMAS}shape (19,), smallest 1"
        ),
        "exact_weights of an exact frame": Bad(lambda: hg.exact_weights(exact, sigma=-1), InputError, f"{SIGMAS}-1"),
        "signal_sure": Bad(
            lambda: hg.signal_sure(y, y, divergence=1.0, sigma=[1, 2]), InputError, f"{SIGMAS}shape (2,), smallest 1"
        ),
        "monte_carlo_divergence": Bad(
            lambda: hg.monte_carlo_divergence(np.tanh, y, sigma=[1, 2]), InputError, f"{SIGMAS}shape (2,)"
        ),
        "denoise, 0": Bad(lambda: hg.denoise(grid, y, sigma=0), InputError, f"{SIGMAS}0"),
        "denoise, 19": Bad(lambda: hg.denoise(grid, y, sigma=[1] * 19), InputError, f"{SIGMAS}shape (19,), smallest 1"),
        "denoise, labels": Bad(
            lambda: hg.denoise(grid, y, sigma={0: 1.0}), InputError, "labels of sigma and graph differ: 19 nodes have no value"
        ),
        "denoise, labelled text": Bad(
            lambda: hg.denoise(grid, y, sigma=dict.fromkeys(range(20), "a")),
            InputTypeError,
            "sigma must hold real numbers; got dtype <U1",
        ),
        "sure, 20": Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=np.ones(20)), InputError, f"{SIGMA}; got shape (20,), smallest 1"),
        "sure_variance": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=None, n_probes=4), InputError, f"{SIGMA}; got None"),
        "sure_thresholds": Bad(lambda: hg.sure_thresholds(F, W, sigma=np.ones(20)), InputError, f"{SIGMA}; got shape (20,)"),
        "sure_curve": Bad(lambda: hg.sure_curve(F[0], W[0], sigma=np.ones(20)), InputError, f"{SIGMA}; got shape (20,)"),
        "Noisy, 20": Bad(lambda: noisy(sigma=np.ones(20)), InputError, f"{SIGMA}; got shape (20,), smallest 1"),
    }
)
def test_who_needs_sigma(bad):
    bad.is_refused()


PROBES = "n_probes must be an integer of at least 1; got "


@each_of(
    {
        "monte_carlo_weights": Bad(lambda: hg.monte_carlo_weights(frame, n_probes=0), InputError, f"{PROBES}0"),
        "sure_variance": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=True), InputError, f"{PROBES}True"),
        "monte_carlo_divergence": Bad(lambda: hg.monte_carlo_divergence(np.tanh, y, n_probes=2.0), InputError, f"{PROBES}2.0"),
        "denoise": Bad(lambda: hg.denoise(grid, y, sigma=1.0, n_probes=0), InputError, f"{PROBES}0"),
        "denoise without probes": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, n_probes="4", method="sgwt_exact"), InputError, f"{PROBES}'4'"
        ),
        "denoise with weights": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, n_probes=1.5, method="sgwt_sure", frame=frame, weights=W),
            InputError,
            f"{PROBES}1.5",
        ),
    }
)
def test_probes_are_counted(bad):
    bad.is_refused()


SEED = "seed must be an integer from 0 to 2^64 - 1; got "


@each_value("seed", [-1, 1.5, "a", 2**64, None, True])
def test_a_seed_is_a_natural_number(seed):
    Bad(lambda: hg.monte_carlo_weights(frame, seed=seed), InputError, f"{SEED}{seed!r}").is_refused()


@each_of(
    {
        "sure_variance": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, seed=-1), InputError, f"{SEED}-1"),
        "monte_carlo_divergence": Bad(lambda: hg.monte_carlo_divergence(np.tanh, y, seed=-1), InputError, f"{SEED}-1"),
        "denoise": Bad(lambda: hg.denoise(grid, y, sigma=1.0, seed=None), InputError, f"{SEED}None"),
    }
)
def test_who_needs_a_seed(bad):
    bad.is_refused()


# ---- shrinking -----------------------------------------------------------------------------------------------------

BETA = "rule='power' needs a finite beta of at least 1 (1 is soft, 2 is James-Stein); got "
NOT_POWER = "beta belongs to rule='power' only; got beta=2 with rule="
HARD = "SURE does not hold for rule='hard' (it jumps); use 'soft', 'james_stein' or 'power', or oracle_thresholds"


@each_value("beta", [0.5, nan, inf, None, "3"])
def test_beta_is_finite_and_at_least_one(beta):
    Bad(lambda: hg.power(y, 1.0, beta=beta), InputError, f"{BETA}{beta!r}").is_refused()


@each_of(
    {
        "shrink": Bad(lambda: hg.shrink(y, 1.0, rule="power", beta=0.5), InputError, f"{BETA}0.5"),
        "sure": Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=1.0, rule="power", beta=0.5), InputError, f"{BETA}0.5"),
        "sure_variance": Bad(
            lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule="power", beta=0.5), InputError, f"{BETA}0.5"
        ),
        "sure_thresholds": Bad(lambda: hg.sure_thresholds(F, W, sigma=1.0, rule="power", beta=None), InputError, f"{BETA}None"),
        "sure_curve": Bad(lambda: hg.sure_curve(F[0], W[0], sigma=1.0, rule="power", beta=0.5), InputError, f"{BETA}0.5"),
        "oracle_thresholds": Bad(lambda: hg.oracle_thresholds(F, truth, rule="power", beta=0.5), InputError, f"{BETA}0.5"),
        "denoise": Bad(lambda: hg.denoise(grid, y, sigma=1.0, rule="power", beta=0.5), InputError, f"{BETA}0.5"),
        "shrink, not power": Bad(lambda: hg.shrink(y, 1.0, rule="soft", beta=2), InputError, f"{NOT_POWER}'soft'"),
        "sure, not power": Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=1.0, beta=2), InputError, f"{NOT_POWER}'james_stein'"),
        "sure_thresholds, not power": Bad(
            lambda: hg.sure_thresholds(F, W, sigma=1.0, beta=2), InputError, f"{NOT_POWER}'james_stein'"
        ),
        "oracle_thresholds, not power": Bad(
            lambda: hg.oracle_thresholds(F, truth, beta=2), InputError, f"{NOT_POWER}'james_stein'"
        ),
        "denoise, not power": Bad(lambda: hg.denoise(grid, y, sigma=1.0, beta=2), InputError, f"{NOT_POWER}'james_stein'"),
    }
)
def test_who_needs_beta(bad):
    bad.is_refused()


@each_of(
    {
        "sure": Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=1.0, rule="hard"), InputError, HARD),
        "sure_variance": Bad(lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule="hard"), InputError, HARD),
        "sure_thresholds": Bad(lambda: hg.sure_thresholds(F, W, sigma=1.0, rule="hard"), InputError, HARD),
        "sure_curve": Bad(lambda: hg.sure_curve(F[0], W[0], sigma=1.0, rule="hard"), InputError, HARD),
        "denoise": Bad(lambda: hg.denoise(grid, y, sigma=1.0, rule="hard"), InputError, HARD),
    }
)
def test_sure_refuses_hard_thresholds(bad):
    bad.is_refused()


REAL_X = "x must hold real numbers; got dtype "
T = "thresholds must be numbers of at least 0; "
SHAPE_OF_T = "t must have one of the shapes (), (5,) for F of shape (5, 20); got "


@each_of(
    {
        "soft": Bad(lambda: hg.soft(["a"], 1.0), InputTypeError, f"{REAL_X}<U1"),
        "james_stein": Bad(lambda: hg.james_stein([1j], 1.0), InputTypeError, f"{REAL_X}complex128"),
        "hard": Bad(lambda: hg.hard(None, 1.0), InputTypeError, f"{REAL_X}object"),
        "power": Bad(lambda: hg.power("a", 1.0, beta=3.0), InputTypeError, f"{REAL_X}<U1"),
        "shrink": Bad(lambda: hg.shrink(["a"], 1.0), InputTypeError, f"{REAL_X}<U1"),
    }
)
def test_real_numbers_are_shrunk(bad):
    bad.is_refused()


@each_of(
    {
        "soft, negative": Bad(lambda: hg.soft(y, -1), InputError, f"{T}the smallest is -1"),
        "soft, NaN": Bad(lambda: hg.soft(y, nan), InputError, f"{T}the smallest is nan"),
        "soft, None": Bad(lambda: hg.soft(y, None), InputError, f"{T}got None"),
        "soft, text": Bad(lambda: hg.soft(y, "a"), InputError, f"{T}got 'a'"),
        "james_stein": Bad(lambda: hg.james_stein(y, -1), InputError, f"{T}the smallest is -1"),
        "hard": Bad(lambda: hg.hard(y, -1), InputError, f"{T}the smallest is -1"),
        "power": Bad(lambda: hg.power(y, -1, beta=3.0), InputError, f"{T}the smallest is -1"),
        "shrink": Bad(lambda: hg.shrink(y, -1), InputError, f"{T}the smallest is -1"),
        "sure": Bad(lambda: hg.sure(F, -1, weights=W, sigma=1.0), InputError, f"{T}the smallest is -1"),
        "sure, two": Bad(lambda: hg.sure(F, [1.0, 2.0], weights=W, sigma=1.0), InputError, f"{SHAPE_OF_T}(2,)"),
        "sure, one each": Bad(lambda: hg.sure(F, np.ones((5, 20)), weights=W, sigma=1.0), InputError, f"{SHAPE_OF_T}(5, 20)"),
        "sure_variance": Bad(lambda: hg.sure_variance(frame, F, -1, sigma=1.0, n_probes=4), InputError, f"{T}the smallest is -1"),
        "sure_variance, two": Bad(
            lambda: hg.sure_variance(frame, F, [1, 2], sigma=1.0, n_probes=4), InputError, f"{SHAPE_OF_T}(2,)"
        ),
    }
)
def test_thresholds(bad):
    bad.is_refused()


@pytest.mark.parametrize("rule", ["soft", "james_stein", "hard", "power"])
def test_nan_is_never_shrunk_to_a_number(rule):
    beta = {"beta": 3.0} if rule == "power" else {}
    assert np.isnan(getattr(hg, rule)([nan], 1.0, **beta)[0]).all()
    assert np.isnan(hg.shrink([nan], 1.0, rule=rule, **beta)[0]).all()


# ---- coefficients, their weights and scales ------------------------------------------------------------------------

PAIR = "F must be (n_scales, n) or (n_scales, n, m), weights (n_scales, n); got "
OF_FRAME = "coefficients must have shape (5, 20) or (5, 20, 'm'), as analyze returns them; got "


@each_of(
    {
        "sure, two scales": Bad(lambda: hg.sure(F[:2], 1.0, weights=W, sigma=1.0), InputError, f"{PAIR}(2, 20) and (5, 20)"),
        "sure, NaN": Bad(
            lambda: hg.sure(F * nan, 1.0, weights=W, sigma=1.0), InputError, "F has 100 entries that are NaN or infinite"
        ),
        "sure_variance, turned": Bad(
            lambda: hg.sure_variance(frame, F.T, 1.0, sigma=1.0, n_probes=4), InputError, f"{OF_FRAME}(20, 5)"
        ),
        "sure_variance, a column": Bad(
            lambda: hg.sure_variance(frame, F[..., None], 1.0, sigma=1.0, n_probes=4),
            InputError,
            "sure_variance takes one signal, coefficients of shape (n_scales, n); got (5, 20, 1)",
        ),
        "sure_variance, NaN": Bad(
            lambda: hg.sure_variance(frame, F * nan, 1.0, sigma=1.0, n_probes=4),
            InputError,
            "coefficients has 100 entries that are NaN or infinite",
        ),
        "sure_thresholds, NaN": Bad(
            lambda: hg.sure_thresholds(F * nan, W, sigma=1.0), InputError, "F has 100 entries that are NaN or infinite"
        ),
        "sure_thresholds, one scale": Bad(lambda: hg.sure_thresholds(F[0], W, sigma=1.0), InputError, f"{PAIR}(20,) and (5, 20)"),
        "oracle_thresholds, one scale": Bad(
            lambda: hg.oracle_thresholds(F[0], F[0]), InputError, "F must be (n_scales, n) or (n_scales, n, m); got (20,)"
        ),
        "oracle_thresholds, NaN": Bad(
            lambda: hg.oracle_thresholds(F * nan, truth), InputError, "F has 100 entries that are NaN or infinite"
        ),
        "oracle_thresholds, truth of two scales": Bad(
            lambda: hg.oracle_thresholds(F, truth[:2]),
            InputError,
            "truth_F must have the shape of F, (5, 20), or of one of its signals; got (2, 20)",
        ),
        "oracle_thresholds, truth NaN": Bad(
            lambda: hg.oracle_thresholds(F, truth * nan), InputError, "truth_F has 100 entries that are NaN or infinite"
        ),
    }
)
def test_coefficients(bad):
    bad.is_refused()


REAL_WEIGHTS = "weights must hold real numbers; got dtype "
NAN_WEIGHTS = "weights has 100 entries that are NaN or infinite"
WEIGHTS_OF_FRAME = "weights must have shape (5, 20), as monte_carlo_weights of the same frame returns them; got "


@each_of(
    {
        "sure, two scales": Bad(lambda: hg.sure(F, 1.0, weights=W[:2], sigma=1.0), InputError, f"{PAIR}(5, 20) and (2, 20)"),
        "sure, a number": Bad(lambda: hg.sure(F, 1.0, weights=1.0, sigma=1.0), InputError, f"{PAIR}(5, 20) and ()"),
        "sure, NaN": Bad(lambda: hg.sure(F, 1.0, weights=W * nan, sigma=1.0), InputError, NAN_WEIGHTS),
        "sure, complex": Bad(lambda: hg.sure(F, 1.0, weights=W * 1j, sigma=1.0), InputTypeError, f"{REAL_WEIGHTS}complex128"),
        "sure_thresholds, turned": Bad(lambda: hg.sure_thresholds(F, W.T, sigma=1.0), InputError, f"{PAIR}(5, 20) and (20, 5)"),
        "oracle_thresholds, one scale": Bad(
            lambda: hg.oracle_thresholds(F, truth, threshold_scale=True, weights=W[0]), InputError, f"{PAIR}(5, 20) and (20,)"
        ),
        "sure_thresholds, NaN": Bad(lambda: hg.sure_thresholds(F, W * nan, sigma=1.0), InputError, NAN_WEIGHTS),
        "oracle_thresholds, NaN": Bad(
            lambda: hg.oracle_thresholds(F, truth, threshold_scale=True, weights=W * nan), InputError, NAN_WEIGHTS
        ),
        "estimate_sigma, NaN": Bad(lambda: hg.estimate_sigma(grid, y, frame=frame, weights=W * nan), InputError, NAN_WEIGHTS),
        "denoise, NaN": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, frame=frame, weights=W * nan, method="sgwt_sure"), InputError, NAN_WEIGHTS
        ),
        "smooth_weights, three nodes": Bad(
            lambda: hg.smooth_weights(grid, W[:, :3]),
            InputError,
            "weights must have shape (n_scales, 20), as monte_carlo_weights returns them; got (5, 3)",
        ),
        "smooth_weights, NaN": Bad(lambda: hg.smooth_weights(grid, W * nan), InputError, NAN_WEIGHTS),
        "estimate_sigma, two scales": Bad(
            lambda: hg.estimate_sigma(grid, y, frame=frame, weights=W[:2]), InputError, f"{WEIGHTS_OF_FRAME}(2, 20)"
        ),
        "denoise, two scales": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, frame=frame, weights=W[:2], method="sgwt_sure"),
            InputError,
            f"{WEIGHTS_OF_FRAME}(2, 20)",
        ),
    }
)
def test_weights(bad):
    bad.is_refused()


SCALED = "threshold_scale must be True, False or non-negative numbers of shape (5, 20); got "
THRESHOLD_SCALE = "threshold_scale must be non-negative numbers of shape (5, 20); got "


@each_value("scaled", ["yes", 1, np.ones(3), -W, W * nan, W.astype(str)])
def test_scales_of_thresholds(scaled):
    Bad(lambda: hg.sure(F, 1.0, weights=W, sigma=1.0, threshold_scale=scaled), InputError, SCALED).is_refused()


@each_of(
    {
        "sure_thresholds": Bad(
            lambda: hg.sure_thresholds(F, W, sigma=1.0, threshold_scale=W.T), InputError, f"{SCALED}shape (20, 5)"
        ),
        "oracle_thresholds": Bad(
            lambda: hg.oracle_thresholds(F, truth, threshold_scale=W.T, weights=W), InputError, f"{SCALED}shape (20, 5)"
        ),
        "oracle_thresholds without weights": Bad(
            lambda: hg.oracle_thresholds(F, truth, threshold_scale=W.T), InputError, f"{SCALED}shape (20, 5)"
        ),
        "oracle_thresholds, True": Bad(
            lambda: hg.oracle_thresholds(F, truth, threshold_scale=True),
            InputError,
            "threshold_scale=True needs weights=, or pass the multiplier itself as threshold_scale=",
        ),
        "sure_variance, True": Bad(
            lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, threshold_scale=True),
            InputError,
            f"{THRESHOLD_SCALE}shape ()",
        ),
        "sure_variance, negative": Bad(
            lambda: hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, threshold_scale=-W), InputError, THRESHOLD_SCALE
        ),
    }
)
def test_who_scales_thresholds(bad):
    bad.is_refused()


ONE_SCALE = "x and weights must be those of one scale, (n,) and (n,); got shape "
SCALE = "threshold_scale must be True, False or non-negative numbers of shape (20,); got "


@each_of(
    {
        "all scales": Bad(lambda: hg.sure_curve(F, W, sigma=1.0), InputError, f"{ONE_SCALE}(5, 20) and (5, 20)"),
        "three weights": Bad(lambda: hg.sure_curve(F[0], W[0][:3], sigma=1.0), InputError, f"{ONE_SCALE}(20,) and (3,)"),
        "NaN": Bad(lambda: hg.sure_curve(F[0] * nan, W[0], sigma=1.0), InputError, "x has 20 entries that are NaN or infinite"),
        "weights NaN": Bad(
            lambda: hg.sure_curve(F[0], W[0] * nan, sigma=1.0), InputError, "weights has 20 entries that are NaN or infinite"
        ),
        "complex": Bad(
            lambda: hg.sure_curve(F[0] * 1j, W[0], sigma=1.0), InputTypeError, "x must hold real numbers; got dtype complex128"
        ),
        "scale of three": Bad(
            lambda: hg.sure_curve(F[0], W[0], threshold_scale=np.ones(3), sigma=1.0), InputError, f"{SCALE}shape (3,)"
        ),
        "negative scale": Bad(lambda: hg.sure_curve(F[0], W[0], threshold_scale=-np.ones(20), sigma=1.0), InputError, SCALE),
        "scale as text": Bad(lambda: hg.sure_curve(F[0], W[0], threshold_scale="a", sigma=1.0), InputError, f"{SCALE}shape ()"),
    }
)
def test_a_curve_is_of_one_scale(bad):
    bad.is_refused()


# ---- risks of signals ----------------------------------------------------------------------------------------------

SAME_SHAPE = "noisy and denoised must have the same shape, (n,) or (n, m); got "
DIVERGENCE = "divergence must be a finite number: expected shape (); got "


@each_of(
    {
        "lengths": Bad(lambda: hg.signal_sure(y, y[:-1], divergence=1.0, sigma=1.0), InputError, f"{SAME_SHAPE}(20,) and (19,)"),
        "noisy NaN": Bad(
            lambda: hg.signal_sure(y * nan, y, divergence=1.0, sigma=1.0),
            InputError,
            "noisy has 20 entries that are NaN or infinite",
        ),
        "denoised NaN": Bad(
            lambda: hg.signal_sure(y, y * nan, divergence=1.0, sigma=1.0),
            InputError,
            "denoised has 20 entries that are NaN or infinite",
        ),
        "divergence NaN": Bad(lambda: hg.signal_sure(y, y, divergence=nan, sigma=1.0), InputError, f"{DIVERGENCE}nan"),
        "two divergences": Bad(
            lambda: hg.signal_sure(y, y, divergence=[1.0, 2.0], sigma=1.0), InputError, f"{DIVERGENCE}list of length 2"
        ),
    }
)
def test_risk_of_a_signal(bad):
    bad.is_refused()


RETURN = "estimator must return finite real numbers of shape (20,); got "
ONE_SIGNAL = "noisy must be one signal, (n,); got "
STEP = "or it is lost in the rounding of the signal; got "


@each_of(
    {
        "no function": Bad(
            lambda: hg.monte_carlo_divergence(None, y),
            InputTypeError,
            "estimator must be callable, of a noisy signal to a denoised one; got NoneType",
        ),
        "three values": Bad(lambda: hg.monte_carlo_divergence(lambda v: v[:3], y), InputError, f"{RETURN}shape (3,)"),
        "NaN returned": Bad(lambda: hg.monte_carlo_divergence(lambda v: v * nan, y), InputError, RETURN),
        "a result, no signal": Bad(
            lambda: hg.monte_carlo_divergence(lambda v: hg.denoise(grid, v, sigma=1.0), y), InputError, RETURN
        ),
        "a column": Bad(lambda: hg.monte_carlo_divergence(np.tanh, y[:, None]), InputError, f"{ONE_SIGNAL}(20, 1)"),
        "noisy NaN": Bad(
            lambda: hg.monte_carlo_divergence(np.tanh, y * nan), InputError, "noisy has 20 entries that are NaN or infinite"
        ),
        "step 0": Bad(lambda: hg.monte_carlo_divergence(np.tanh, y, step=0), InputError, f"{STEP}0"),
        "usual step too small": Bad(
            lambda: hg.monte_carlo_divergence(lambda v: v, y * 1e20),
            InputError,
            f"step must be a number above 7.6e+08, {STEP}0.001",
        ),
    }
)
def test_divergence(bad):
    bad.is_refused()


ZERO = "the estimated sigma is 0: over half the finest coefficients vanish, so the signal looks noise-free; pass sigma="
half_zero = np.where(np.arange(20) < 10, 0.0, W)


@each_of(
    {
        "no noise": Bad(lambda: hg.estimate_sigma(grid, np.zeros(20)), InputError, ZERO),
        "one node": Bad(lambda: hg.estimate_sigma(point, np.ones(1)), InputError, ZERO),
        "no edges": Bad(lambda: hg.estimate_sigma(dust, np.ones(5)), InputError, ZERO),
        "no nodes": Bad(lambda: hg.estimate_sigma(nothing, []), InputError, "sigma cannot be estimated: the graph has no nodes"),
        "weights 0": Bad(
            lambda: hg.estimate_sigma(grid, y, frame=frame, weights=W * 0),
            InputError,
            "sigma cannot be estimated: the graph has no scale that carries noise",
        ),
        "some weights 0": Bad(
            lambda: hg.estimate_sigma(grid, y, frame=frame, weights=half_zero),
            InputError,
            "weights must be above 0 at every node, in the finest scales at least; pass smooth_weights(graph, weights)",
        ),
    }
)
def test_estimated_sigma(bad):
    bad.is_refused()
