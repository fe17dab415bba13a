"""Scales, polynomials, frames and transforms."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from ..support.steps import steps_at_most
from .tables import Bad, F, each_of, each_value, exact, frame, grid, inf, nan, path, turned, y

# ---- scales --------------------------------------------------------------------------------------------------------

BASE = "base must be a finite number above 1; got "


@each_value("base", [1, nan, inf, True, "2", None, 2j])
def test_a_number_within_bounds_is_finite_and_real(base):
    Bad(lambda: hg.count_scales(8.0, base=base), InputError, f"{BASE}{base!r}").is_refused()


@each_of(
    {
        "count_scales, two": Bad(lambda: hg.count_scales(8.0, base=[2, 3]), InputError, f"{BASE}list of length 2"),
        "partition": Bad(lambda: hg.partition([0.5], n_scales=3, base=1), InputError, f"{BASE}1"),
        "linear_plateau": Bad(lambda: hg.linear_plateau([0.5], base=1), InputError, f"{BASE}1"),
        "c3_plateau": Bad(lambda: hg.c3_plateau([0.5], base=1), InputError, f"{BASE}1"),
        "meyer_plateau": Bad(lambda: hg.meyer_plateau([0.5], base=1), InputError, f"{BASE}1"),
        "chebyshev_frame": Bad(lambda: hg.chebyshev_frame(grid, base=1), InputError, f"{BASE}1"),
        "exact_frame": Bad(lambda: hg.exact_frame(grid, base=1), InputError, f"{BASE}1"),
    }
)
def test_who_needs_a_base(bad):
    bad.is_refused()


def test_a_base_next_to_one_is_refused_at_once():
    """It would make a billion scales; the refusal comes before the first."""
    says = "base must be at least 1.01 (next to 1 there are too many scales); got 1.000000001"
    large = hg.datasets.grid(25, 25)
    with steps_at_most(10_000):
        Bad(lambda: hg.chebyshev_frame(large, base=1 + 1e-9), InputError, says).is_refused()


WIDTH = "c must be in (0, 1 - 1/base] = (0, 0.5] for a partition of unity; got "


@each_of(
    {
        "partition, too wide": Bad(lambda: hg.partition([0.5], n_scales=3, plateau="smooth", c=0.6), InputError, f"{WIDTH}0.6"),
        "partition, 0": Bad(lambda: hg.partition([0.5], n_scales=3, plateau="smooth", c=0), InputError, f"{WIDTH}0"),
        "chebyshev_frame": Bad(lambda: hg.chebyshev_frame(grid, plateau="smooth", c=0.6), InputError, f"{WIDTH}0.6"),
        "exact_frame": Bad(lambda: hg.exact_frame(grid, plateau="smooth", c=0.6), InputError, f"{WIDTH}0.6"),
        "smooth_plateau, 0": Bad(lambda: hg.smooth_plateau([0.5], c=0), InputError, "c must be a finite number above 0; got 0"),
        "partition, linear": Bad(
            lambda: hg.partition([0.5], n_scales=3, c=0.3),
            InputError,
            "c belongs to plateau='smooth' only; got c=0.3 with plateau='linear'",
        ),
        "chebyshev_frame, c3": Bad(
            lambda: hg.chebyshev_frame(grid, plateau="c3", c=0.3),
            InputError,
            "c belongs to plateau='smooth' only; got c=0.3 with plateau='c3'",
        ),
        "exact_frame, linear": Bad(
            lambda: hg.exact_frame(grid, c=0.3), InputError, "c belongs to plateau='smooth' only; got c=0.3 with plateau='linear'"
        ),
    }
)
def test_width_of_the_smooth_plateau(bad):
    bad.is_refused()


@each_value("lambda_max", [-1, "a"])
def test_lambda_max_is_a_number(lambda_max):
    Bad(
        lambda: hg.count_scales(lambda_max), InputError, f"lambda_max must be finite and at least 0; got {lambda_max!r}"
    ).is_refused()


REAL = "x must hold real numbers; got dtype "


@each_of(
    {
        "partition": Bad(lambda: hg.partition(["a"], n_scales=3), InputTypeError, f"{REAL}<U1"),
        "linear_plateau": Bad(lambda: hg.linear_plateau([1j]), InputTypeError, f"{REAL}complex128"),
        "smooth_plateau": Bad(lambda: hg.smooth_plateau("a"), InputTypeError, f"{REAL}<U1"),
        "c3_plateau": Bad(lambda: hg.c3_plateau(None), InputTypeError, f"{REAL}object"),
        "meyer_plateau": Bad(lambda: hg.meyer_plateau(["a"]), InputTypeError, f"{REAL}<U1"),
    }
)
def test_plateaus_take_real_numbers(bad):
    bad.is_refused()


@pytest.mark.parametrize("plateau", ["linear", "smooth", "c3", "meyer"])
def test_nan_never_becomes_a_value_of_a_plateau(plateau):
    assert np.isnan(getattr(hg, f"{plateau}_plateau")([nan])).all()
    assert np.isnan(hg.partition([nan], n_scales=3, plateau=plateau)).all()


SCALES = "n_scales must be an integer from 1 to 5: bands above would lie beyond lambda_max = 7.03225 "
LOW_SCALES = "low_scales must be an integer from 0 to 64; got "


@each_of(
    {
        "partition": Bad(lambda: hg.partition([0.5], n_scales=0), InputError, "n_scales must be an integer of at least 1; got 0"),
        "chebyshev_frame, too many": Bad(lambda: hg.chebyshev_frame(grid, n_scales=6), InputError, SCALES),
        "exact_frame, too many": Bad(lambda: hg.exact_frame(grid, n_scales=6), InputError, SCALES),
        "partition, low": Bad(lambda: hg.partition([0.5], n_scales=3, low_scales=-1), InputError, f"{LOW_SCALES}-1"),
        "partition, too many low": Bad(lambda: hg.partition([0.5], n_scales=3, low_scales=5000), InputError, f"{LOW_SCALES}5000"),
        "chebyshev_frame, low": Bad(lambda: hg.chebyshev_frame(grid, low_scales=1.5), InputError, f"{LOW_SCALES}1.5"),
        "exact_frame, low": Bad(lambda: hg.exact_frame(grid, low_scales=None), InputError, f"{LOW_SCALES}None"),
    }
)
def test_numbers_of_scales(bad):
    bad.is_refused()


# ---- polynomials and frames ----------------------------------------------------------------------------------------

DEGREE = "degree must be an integer of at least "


@each_of(
    {
        "chebyshev_coefficients": Bad(lambda: hg.chebyshev_coefficients(np.cos, -1, upper=1.0), InputError, f"{DEGREE}0; got -1"),
        "jackson_damping": Bad(lambda: hg.jackson_damping(2.5), InputError, f"{DEGREE}0; got 2.5"),
        "chebyshev_frame": Bad(lambda: hg.chebyshev_frame(grid, degree=0), InputError, f"{DEGREE}1, or 'auto'; got 0"),
        "chebyshev_frame, too high": Bad(
            lambda: hg.chebyshev_frame(grid, degree=10**12),
            InputError,
            "degree must be an integer from 1 to 100000, or 'auto'; got 1000",
        ),
    }
)
def test_degrees(bad):
    bad.is_refused()


FINITE_REAL = "function must return finite real numbers, one per point: expected shape (4096,) or (n_functions, 4096); got "


@each_of(
    {
        "upper 0": Bad(
            lambda: hg.chebyshev_coefficients(np.cos, 5, upper=0),
            InputError,
            "upper must be a finite number above 0, the right end",
        ),
        "a number": Bad(
            lambda: hg.chebyshev_coefficients(5, 5, upper=1.0),
            InputTypeError,
            "function must be callable, of points to values; got int",
        ),
        "one value": Bad(lambda: hg.chebyshev_coefficients(lambda x: 1.0, 5, upper=1.0), InputError, FINITE_REAL),
        "NaN": Bad(lambda: hg.chebyshev_coefficients(lambda x: x * nan, 5, upper=1.0), InputError, FINITE_REAL),
        "complex values": Bad(
            lambda: hg.chebyshev_coefficients(lambda x: x * 1j, 5, upper=1.0), InputError, f"{FINITE_REAL}dtype complex"
        ),
    }
)
def test_functions_of_polynomials(bad):
    bad.is_refused()


TIGHTNESS = "tightness must be between 0 and 1; got "


@each_of(
    {
        "tightness 0": Bad(lambda: hg.chebyshev_frame(grid, degree="auto", tightness=0), InputError, f"{TIGHTNESS}0"),
        "tightness 1": Bad(lambda: hg.chebyshev_frame(grid, degree="auto", tightness=1), InputError, f"{TIGHTNESS}1"),
        "out of reach": Bad(
            lambda: hg.chebyshev_frame(grid, degree="auto", tightness=1e-9),
            InputError,
            "no degree up to 2000 reaches tightness 1e-09 (defect 0.0027); try a smoother plateau ('c3' or 'meyer')",
        ),
        "too many nodes": Bad(
            lambda: hg.exact_frame(hg.Graph.from_edges([(0, 1)], n=20_001)),
            InputError,
            "an exact frame of 20001 nodes needs 3 GB; use chebyshev_frame above 20000",
        ),
    }
)
def test_frames(bad):
    bad.is_refused()


FRAME = "frame must come from chebyshev_frame or exact_frame; got "
OTHER_FRAME = "frame belongs to another graph than the one given; build it with chebyshev_frame(graph)"


@each_value("other", [None, 5, "frame", grid])
def test_a_frame_is_a_frame(other):
    Bad(lambda: hg.analyze(other, y), InputTypeError, f"{FRAME}{type(other).__name__}").is_refused()


@each_of(
    {
        "synthesize": Bad(lambda: hg.synthesize(grid, F), InputTypeError, f"{FRAME}Graph"),
        "as_linear_operator": Bad(lambda: hg.as_linear_operator(grid), InputTypeError, f"{FRAME}Graph"),
        "monte_carlo_weights": Bad(lambda: hg.monte_carlo_weights(grid), InputTypeError, f"{FRAME}Graph"),
        "exact_weights": Bad(lambda: hg.exact_weights(grid), InputTypeError, f"{FRAME}Graph"),
        "sure_variance": Bad(lambda: hg.sure_variance(grid, F, 1.0, sigma=1.0, n_probes=4), InputTypeError, f"{FRAME}Graph"),
        "estimate_sigma": Bad(lambda: hg.estimate_sigma(grid, y, frame=5), InputTypeError, f"{FRAME}int"),
        "denoise": Bad(lambda: hg.denoise(grid, y, sigma=1.0, frame=5, method="sgwt_sure"), InputTypeError, f"{FRAME}int"),
        "estimate_sigma, as many nodes": Bad(
            lambda: hg.estimate_sigma(grid, y, frame=hg.chebyshev_frame(turned)), InputError, OTHER_FRAME
        ),
        "denoise, fewer nodes": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, frame=hg.chebyshev_frame(path), method="sgwt_sure"), InputError, OTHER_FRAME
        ),
        "denoise, as many nodes": Bad(
            lambda: hg.denoise(grid, y, sigma=1.0, frame=hg.exact_frame(turned), method="sgwt_sure"), InputError, OTHER_FRAME
        ),
    }
)
def test_who_needs_a_frame(bad):
    bad.is_refused()


# ---- transforms ----------------------------------------------------------------------------------------------------

SHAPE = "coefficients must have shape (5, 20) or (5, 20, 'm'), as analyze returns them; got "
REAL_COEFFICIENTS = "coefficients must hold real numbers; got dtype "


@each_of(
    {
        "two scales": Bad(lambda: hg.synthesize(frame, F[:2]), InputError, f"{SHAPE}(2, 20)"),
        "turned": Bad(lambda: hg.synthesize(frame, F.T), InputError, f"{SHAPE}(20, 5)"),
        "no signals": Bad(lambda: hg.synthesize(frame, np.zeros((5, 20, 0))), InputError, f"{SHAPE}(5, 20, 0)"),
        "complex": Bad(lambda: hg.synthesize(frame, F * 1j), InputTypeError, f"{REAL_COEFFICIENTS}complex128"),
        "NaN": Bad(lambda: hg.synthesize(frame, F * nan), InputError, "coefficients has 100 entries that are NaN or infinite"),
        "exact frame, turned": Bad(lambda: hg.synthesize(exact, F.T), InputError, f"{SHAPE}(20, 5)"),
        "exact frame, infinite": Bad(
            lambda: hg.synthesize(exact, np.where(F > 0, F, inf)),
            InputError,
            "coefficients has 38 entries that are NaN or infinite",
        ),
    }
)
def test_coefficients_fit_the_frame(bad):
    bad.is_refused()


def test_an_operator_takes_vectors_of_its_own_length():
    """The base class of SciPy looks at the length, and says so."""
    with pytest.raises(ValueError, match="dimension mismatch"):
        hg.as_linear_operator(frame) @ np.zeros(19)


@each_of(
    {
        "analyze": Bad(
            lambda: hg.as_linear_operator(frame) @ (1j * y), InputTypeError, "must hold real numbers; got dtype complex128"
        ),
        "synthesize": Bad(
            lambda: hg.as_linear_operator(frame).T @ (1j * F.ravel()),
            InputTypeError,
            "must hold real numbers; got dtype complex128",
        ),
    }
)
def test_an_operator_does_not_drop_imaginary_parts(bad):
    bad.is_refused()
