"""sigma, delta and epsilon of the Gaussian mechanism: to the last digits, and never on the unsafe side."""

import math
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushgraph.privacy.calibration import (
    analytic_sigma,
    classical_sigma,
    composed_delta,
    composed_epsilon,
    gaussian_delta,
    gaussian_epsilon,
)

# 60-digit mpmath values, delta = 1e-6 unless said otherwise, sensitivity 1
CLASSICAL = {0.2: "26.494012634252370", 0.3: "17.662675089501580", 0.5: "10.597605053700948", 1.0: "5.2988025268504740"}
ANALYTIC = {
    (0.2, 1e-6): "18.988799853945533",
    (0.3, 1e-6): "12.992382894843080",
    (0.5, 1e-6): "8.0576184807250443",
    (1.0, 1e-6): "4.2246788893268353",
    (1e-3, 1e-6): "2436.5524937485809",
    (50.0, 1e-6): "0.15659287039176195",
    (1.0, 1e-12): "6.5578220674588501",
    (1e-3, 1e-12): "5412.3021938439272",
    (1.0, 1e-30): "11.083102948976993",
    (1000.0, 1e-6): "0.024850366686947720",
    (0.0, 1e-6): "398942.28040132824",
}


def exact_delta(sigma, epsilon, squared=1):
    """Balle and Wang's formula as it is printed, with digits to spare; an independent context."""
    with mpmath.workdps(250):
        ratio = mpmath.sqrt(mpmath.mpf(squared)) / mpmath.mpf(sigma)
        half, shift = ratio / 2, mpmath.mpf(epsilon) / ratio
        return mpmath.ncdf(half - shift) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-half - shift)


@pytest.mark.parametrize(("epsilon", "expected"), CLASSICAL.items())
def test_classical_reference_values(epsilon, expected):
    sigma = classical_sigma(epsilon=epsilon, delta=1e-6, sensitivity=1, paper_compat=epsilon == 1)
    assert 0 <= Decimal(sigma) / Decimal(expected) - 1 < Decimal("1e-14") or sigma == float(expected)


@pytest.mark.parametrize(("at", "expected"), ANALYTIC.items())
def test_analytic_reference_values(at, expected):
    sigma = analytic_sigma(epsilon=at[0], delta=at[1], sensitivity=1)
    assert sigma >= float(expected)
    assert float(Decimal(sigma) / Decimal(expected) - 1) < 1e-14


def test_all_eleven_sigmas_of_the_papers_tables():
    """New York (sensitivity 1) and San Francisco (sensitivity 2), delta = 1e-6, as printed."""
    printed = {
        ("classical", 1): {0.2: "26.49", 0.3: "17.66", 0.5: "10.60", 1: "5.30"},
        ("analytic", 1): {0.2: "18.99", 0.3: "12.99", 0.5: "8.06", 1: "4.22"},
        ("analytic", 2): {0.2: "37.98", 0.5: "16.12", 1: "8.45"},
    }
    found = 0
    for (mechanism, sensitivity), row in printed.items():
        for epsilon, sigma in row.items():
            if mechanism == "classical":
                value = classical_sigma(epsilon=epsilon, delta=1e-6, sensitivity=sensitivity, paper_compat=True)
            else:
                value = analytic_sigma(epsilon=epsilon, delta=1e-6, sensitivity=sensitivity)
            assert f"{value:.2f}" == sigma
            found += 1
    assert found == 11


def test_two_hundred_random_points_against_mpmath():
    """delta(sigma) <= delta at the answer, and > delta one part in 1e-14 below it."""
    rng = np.random.default_rng(7)
    for number in range(200):
        epsilon = float(rng.choice([rng.uniform(0, 1000), 10 ** rng.uniform(-12, 3), 0.0], p=[0.4, 0.55, 0.05]))
        delta = float(rng.uniform(0.01, 0.99) if number % 5 == 0 else 10 ** rng.uniform(-100, math.log10(0.99)))
        sigma = analytic_sigma(epsilon=epsilon, delta=delta, sensitivity=1)
        assert exact_delta(sigma, epsilon) <= delta, (epsilon, delta)
        assert exact_delta(sigma * (1 - 1e-14), epsilon) > delta, (epsilon, delta)


def test_a_low_sigma_is_caught():
    """Negative control of the test above: one part in 1e-14 too low is seen."""
    sigma = analytic_sigma(epsilon=0.7, delta=1e-9, sensitivity=1)
    assert exact_delta(sigma * (1 - 1e-14), 0.7) > 1e-9


@pytest.mark.parametrize("squared", [2, 3, 5, 12, 1000003, Fraction(1, 3)])
def test_square_roots_are_rounded_up(squared):
    """sigma of sensitivity sqrt(3) is not that of the float below it."""
    sigma = analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=squared)
    with mpmath.workdps(60):
        exact = mpmath.mpf(squared.numerator) / squared.denominator
        assert exact_delta(sigma, 0.5, exact) <= 1e-6
        assert exact_delta(math.nextafter(sigma, 0), 0.5, exact) > 1e-6


def test_sensitivity_scales_the_noise():
    one = analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity=1)
    assert analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity=4) == 4 * one
    assert analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=16) == 4 * one


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-9, 0.1, 1.0, 30.0, 700.0, 1e4, 1e12])
@pytest.mark.parametrize("sigma", [0.001, 0.3, 4.22, 1e4])
def test_delta_is_never_low_and_tight(epsilon, sigma):
    delta = gaussian_delta(sigma=sigma, epsilon=epsilon, sensitivity=1)
    exact = exact_delta(sigma, epsilon) if epsilon < 1e4 else None
    assert 0 < delta <= 1
    if exact is not None and exact > 1e-300:
        assert 0 <= mpmath.mpf(delta) - exact <= exact * 1e-14


@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 0.1, 0.9])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 20.0, 3e3])
def test_epsilon_is_the_inverse_and_never_low(sigma, delta):
    epsilon = gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=1)
    assert exact_delta(sigma, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(sigma, epsilon * (1 - 1e-14)) > delta


def test_composition_adds_squares():
    """k releases of sigma are one of sigma / sqrt(k)."""
    sigma = 8.0
    once = composed_delta(Fraction(4) / Fraction(sigma) ** 2, 1.0)
    assert float(once) == pytest.approx(gaussian_delta(sigma=sigma / 2, epsilon=1.0, sensitivity=1), rel=1e-15)
    assert composed_epsilon(Fraction(4) / Fraction(sigma) ** 2, 1e-6) == gaussian_epsilon(sigma=4.0, delta=1e-6, sensitivity=1)
    assert composed_delta(Fraction(0), 1.0) == 0
    assert composed_epsilon(Decimal(0), 1e-6) == 0.0


def test_extremes_neither_hang_nor_overflow():
    assert analytic_sigma(epsilon=1e12, delta=1e-6, sensitivity=1) == pytest.approx(1 / math.sqrt(2e12), rel=1e-5)
    assert gaussian_epsilon(sigma=2e-6, delta=1e-6, sensitivity=1) == pytest.approx(1.25e11, rel=1e-4)
    with pytest.raises(ValueError, match="at least a millionth of the sensitivity"):
        gaussian_epsilon(sigma=1e-7, delta=1e-6, sensitivity=1)
    assert analytic_sigma(epsilon=0, delta=1e-100, sensitivity=1) == pytest.approx(1e100 / math.sqrt(2 * math.pi), rel=1e-12)
    with pytest.raises(ValueError, match="more noise than a float can hold"):
        analytic_sigma(epsilon=0, delta=5e-324, sensitivity=1)


def test_analytic_needs_less_noise_than_classical():
    for epsilon in (0.01, 0.2, 0.99):
        assert analytic_sigma(epsilon=epsilon, delta=1e-6, sensitivity=1) < classical_sigma(
            epsilon=epsilon, delta=1e-6, sensitivity=1
        )


def test_threads_and_the_callers_precision_do_not_matter():
    before = mpmath.mp.dps
    jobs = [(0.1 * k + 0.05, 10.0 ** -(k + 2)) for k in range(12)]
    alone = [analytic_sigma(epsilon=e, delta=d, sensitivity=1) for e, d in jobs]
    with mpmath.workdps(5), ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: analytic_sigma(epsilon=job[0], delta=job[1], sensitivity=1), jobs))
    assert alone == together
    assert mpmath.mp.dps == before


BAD_EPSILON = [1e13, float("nan"), float("inf"), -1, -1e-300, True, "1", None, 1j, [1.0], np.array([1.0, 2.0])]
BAD_DELTA = [float("nan"), float("inf"), -0.1, 0, 1, 1.5, False, "1e-6", None, 1j]
BAD_SENSITIVITY = [float("nan"), float("inf"), 0, -1, True, "1", 1j]


@pytest.mark.parametrize("epsilon", BAD_EPSILON)
def test_bad_epsilon(epsilon):
    for function in (analytic_sigma, classical_sigma):
        with pytest.raises(ValueError, match="epsilon"):
            function(epsilon=epsilon, delta=1e-6, sensitivity=1)
    with pytest.raises(ValueError, match="epsilon must be a finite number from 0"):
        gaussian_delta(sigma=1, epsilon=epsilon, sensitivity=1)


@pytest.mark.parametrize("delta", BAD_DELTA)
def test_bad_delta(delta):
    for function in (analytic_sigma, classical_sigma):
        with pytest.raises(ValueError, match="delta must be strictly between 0 and 1"):
            function(epsilon=0.5, delta=delta, sensitivity=1)
    with pytest.raises(ValueError, match="delta must be strictly between 0 and 1"):
        gaussian_epsilon(sigma=1, delta=delta, sensitivity=1)


@pytest.mark.parametrize("sensitivity", BAD_SENSITIVITY)
def test_bad_sensitivity(sensitivity):
    for function in (analytic_sigma, classical_sigma):
        with pytest.raises(ValueError, match="sensitivity must be a positive finite number"):
            function(epsilon=0.5, delta=1e-6, sensitivity=sensitivity)


@pytest.mark.parametrize("squared", [0, -1, 2.0, "3", True, Fraction(0)])
def test_bad_sensitivity_squared(squared):
    with pytest.raises(ValueError, match="sensitivity_squared must be a positive integer"):
        analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=squared)


def test_missing_sensitivity():
    with pytest.raises(ValueError, match=r"give sensitivity .* or sensitivity_squared"):
        analytic_sigma(epsilon=0.5, delta=1e-6)
    with pytest.raises(ValueError, match="one of the two"):
        analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity=1, sensitivity_squared=1)


@pytest.mark.parametrize("epsilon", [1, 1.0, 1.5, 100])
def test_classical_outside_its_theorem(epsilon):
    with pytest.raises(ValueError, match=r"proven for epsilon < 1 only.*analytic_sigma"):
        classical_sigma(epsilon=epsilon, delta=1e-6, sensitivity=1)


def test_paper_compat_goes_to_one_and_no_further():
    assert classical_sigma(epsilon=1, delta=1e-6, sensitivity=1, paper_compat=True) > 5
    with pytest.raises(ValueError, match="epsilon < 1 only"):
        classical_sigma(epsilon=1.01, delta=1e-6, sensitivity=1, paper_compat=True)
    with pytest.raises(ValueError, match="a number between 0 and 1"):
        classical_sigma(epsilon=0, delta=1e-6, sensitivity=1)


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), "2", None])
def test_bad_sigma(sigma):
    with pytest.raises(ValueError, match="sigma must be a positive standard deviation"):
        gaussian_delta(sigma=sigma, epsilon=1, sensitivity=1)


@pytest.mark.parametrize("distance", [1e-1, 1e-6, 1e-10, 1.5e-13, 1e-15, 2.0**-53])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 1.0, 30.0])
def test_delta_next_to_one(epsilon, distance):
    """Useless, but no reason to fail."""
    delta = 1 - distance
    sigma = analytic_sigma(epsilon=epsilon, delta=delta, sensitivity=1)
    assert exact_delta(sigma, epsilon) <= delta
    gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=1)


def test_numbers_below_all_floats():
    assert gaussian_delta(sigma=1, epsilon=1, sensitivity=1e-200) == 5e-324
    assert analytic_sigma(epsilon=1, delta=0.5, sensitivity_squared=Fraction(1, 10**5000)) == 5e-324
