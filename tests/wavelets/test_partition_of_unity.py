"""The band functions: a partition of unity, where they live, how many there are, and what deeper scales mean."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg

from ..support.strategies import PLATEAUS

BASES = (1.05, 1.5, 1.7, 2.0, 3.0, 10.0)


def points(base, n_scales):
    """Dense on a linear and on a logarithmic axis, with all breakpoints and their neighbouring floats."""
    breakpoints = base ** np.arange(-3.0, n_scales + 2)
    near = [breakpoints, np.nextafter(breakpoints, 0), np.nextafter(breakpoints, np.inf)]
    return np.concatenate([[0.0], np.linspace(0, base**n_scales, 4001), base ** np.linspace(-5, n_scales + 2, 4001), *near])


# ---- sums and signs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("n_scales", [1, 2, 3, 7, 12])
def test_bands_sum_to_one_and_are_not_negative(plateau, base, n_scales):
    psi = hg.partition(points(base, n_scales), n_scales=n_scales, plateau=plateau, base=base)
    assert psi.shape[0] == n_scales
    np.testing.assert_allclose(psi.sum(axis=0), 1, rtol=0, atol=1e-14)
    assert psi.min() >= -1e-14
    assert psi.max() <= 1 + 1e-14


@given(
    x=st.floats(0, 1e6),
    base=st.floats(1.01, 50),
    n_scales=st.integers(1, 20),
    low_scales=st.integers(0, 8),
    plateau=st.sampled_from(PLATEAUS),
)
def test_bands_sum_to_one_everywhere(x, base, n_scales, low_scales, plateau):
    psi = hg.partition([x], n_scales=n_scales, base=base, plateau=plateau, low_scales=low_scales)
    assert abs(psi.sum() - 1) <= 1e-14
    assert psi.min() >= -1e-14


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("base", BASES)
def test_plateau_is_one_up_to_one_over_b_and_zero_from_one_on(plateau, base):
    omega = hg.partition(points(base, 3), n_scales=2, plateau=plateau, base=base)[0]
    x = points(base, 3)
    np.testing.assert_allclose(omega[x <= 1 / base], 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(omega[x >= 1], 0, rtol=0, atol=1e-14)
    inside = np.sort(x[(x > 1 / base) & (x < 1)])
    falling = hg.partition(inside, n_scales=2, plateau=plateau, base=base)[0]
    assert np.diff(falling).max() <= 1e-14
    assert falling.min() < 0.1 < 0.9 < falling.max()


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("base", BASES)
def test_each_band_lives_between_its_neighbours(plateau, base):
    n_scales = 6
    x = points(base, n_scales)
    psi = hg.partition(x, n_scales=n_scales, plateau=plateau, base=base)
    for j in range(n_scales):
        lower, upper = base ** (j - 2.0) if j else -1.0, base**j if j < n_scales - 1 else np.inf
        outside = (x <= lower * (1 - 1e-15)) | (x >= upper * (1 + 1e-15))
        assert np.abs(psi[j][outside]).max(initial=0) <= 1e-14
        assert psi[j][~outside].max() > 0.9  # and it is not empty


@pytest.mark.parametrize("base", BASES)
def test_linear_bands_follow_the_formula_of_the_paper(base):
    x = points(base, 4)

    def omega(x):
        return np.interp(x, [1 / base, 1], [1, 0])

    expected = [omega(x)] + [omega(x * base**-j) - omega(x * base ** (1.0 - j)) for j in range(1, 6)]
    on_the_spectrum = x <= base**4
    psi = hg.partition(x, n_scales=6, base=base)
    np.testing.assert_allclose(psi[:, on_the_spectrum], np.array(expected)[:, on_the_spectrum], rtol=0, atol=1e-13)


# ---- plateaus -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
def test_smooth_plateau_of_the_largest_width_is_a_partition(base):
    width = 1 - 1 / base
    x = points(base, 4)
    psi = hg.partition(x, n_scales=5, plateau="smooth", base=base, c=width)
    np.testing.assert_array_equal(psi, hg.partition(x, n_scales=5, plateau="smooth", base=base))
    assert psi.min() >= -1e-14


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("excess", [1e-9, 0.01, 1.0])
def test_smooth_plateau_refuses_a_wider_slope(base, excess):
    with pytest.raises(ValueError, match="for a partition of unity"):
        hg.partition([1.0], n_scales=3, plateau="smooth", base=base, c=1 - 1 / base + excess)


@pytest.mark.parametrize("c", [0.0, -0.1, np.nan])
def test_smooth_plateau_refuses_a_width_that_is_none(c):
    with pytest.raises(ValueError, match="c must be in"):
        hg.partition([1.0], n_scales=3, plateau="smooth", c=c)


def test_wide_smooth_plateau_is_no_partition_which_is_why_it_is_refused():
    """The sum of the paper's bands is omega(b^-J x), and b^-J lambda_max is at most 1 / b."""
    x = np.linspace(0.0, 8.0, 161)
    J = hg.count_scales(8.0) - 1
    assert np.all(hg.smooth_plateau(x * 2.0**-J, c=0.5) == 1)
    assert hg.smooth_plateau(x * 2.0**-J, c=1.0).min() < 0.6


@pytest.mark.parametrize("c", [0.05, 0.3, 0.5, 1.0])
def test_smooth_plateau_is_one_up_to_one_minus_c(c):
    x = np.linspace(0, 1.5, 3001)
    values = hg.smooth_plateau(x, c=c)
    assert np.all(values[x <= 1 - c] == 1)
    assert np.all(values[x >= 1] == 0)
    assert np.all(np.diff(values) <= 0)
    assert hg.smooth_plateau(1 - c / 2, c=c) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(("function", "order"), [(hg.linear_plateau, 1), (hg.c3_plateau, 4), (hg.meyer_plateau, 8)])
@pytest.mark.parametrize("base", [1.5, 2.0, 10.0])
def test_plateau_leaves_one_with_its_order(function, order, base):
    """1 - omega grows like u^1 (linear), u^4 (c3) and u^8 (meyer: the square of u^4)."""
    u = np.array([0.02, 0.04])
    first, second = 1 - function((1 + u * (base - 1)) / base, base=base)
    assert np.log2(second / first) == pytest.approx(order, abs=0.25)


def test_c_belongs_to_the_smooth_plateau():
    with pytest.raises(ValueError, match="c belongs to plateau='smooth' only"):
        hg.partition([1.0], n_scales=2, plateau="meyer", c=0.3)


@pytest.mark.parametrize("base", [1.0, 0.5, -2.0, np.inf, np.nan])
def test_base_must_exceed_one(base):
    with pytest.raises(ValueError, match="base must be a finite number above 1"):
        hg.partition([1.0], n_scales=2, base=base)
    with pytest.raises(ValueError, match="base must be a finite number above 1"):
        hg.count_scales(3.0, base=base)


def test_unknown_plateau_is_named():
    with pytest.raises(ValueError, match="plateau must be one of 'linear', 'smooth', 'c3', 'meyer'; got 'flat'"):
        hg.partition([1.0], n_scales=2, plateau="flat")


# ---- how many -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [1.5, 1.7, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("k", range(12))
def test_scales_at_and_around_exact_powers(base, k):
    """J = floor(log_b lambda) + 2; at the power itself the top band would be empty and is left out."""
    assert hg.count_scales(base**k, base=base) == k + 2
    assert hg.count_scales(base**k * (1 + 1e-6), base=base) == k + 3
    assert hg.count_scales(base**k * (1 - 1e-6), base=base) == k + 2


def test_scales_where_quotients_of_logarithms_are_wrong():
    assert math.log(1000) / math.log(10) < 3  # so its floor is 2
    assert hg.count_scales(1000.0, base=10) == hg.count_scales(10.0**3 * (1 - 1e-9), base=10) == 5
    assert hg.count_scales(1000.1, base=10) == 6
    assert hg.count_scales(1.5**5, base=1.5) == 7
    assert [hg.count_scales(2.0**k) for k in range(-1, 40)] == [1, *range(2, 42)]


@pytest.mark.parametrize("lambda_max", [0.0, 1e-300, 1e-3, 0.3, 0.49, 0.5])
def test_nothing_above_one_half_needs_one_scale(lambda_max):
    assert hg.count_scales(lambda_max) == 1
    assert np.all(hg.partition([0.0, lambda_max], n_scales=1) == 1)


@pytest.mark.parametrize(("lambda_max", "n_scales"), [(0.51, 2), (0.99, 2), (1.0, 2), (1.01, 3), (2.0, 3), (2.01, 4)])
def test_scales_of_small_spectra(lambda_max, n_scales):
    assert hg.count_scales(lambda_max) == n_scales


@given(lambda_max=st.floats(1e-3, 1e9), base=st.floats(1.05, 20))
def test_no_scale_is_empty_and_none_is_missing(lambda_max, base):
    n_scales = hg.count_scales(lambda_max, base=base)
    low_edge_of_top = base ** (n_scales - 3.0)  # psi_J of J = n_scales - 1 begins at b^(J - 2)
    assert n_scales == 1 or low_edge_of_top < lambda_max
    assert lambda_max <= base ** (n_scales - 2.0) * (1 + 2e-9)  # one more would begin above lambda_max


@pytest.mark.parametrize("lambda_max", [-1.0, np.nan, np.inf])
def test_spectrum_must_be_finite(lambda_max):
    with pytest.raises(ValueError, match="lambda_max must be finite and at least 0"):
        hg.count_scales(lambda_max)


# ---- deeper scales ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("base", [1.5, 2.0, 10.0])
@pytest.mark.parametrize("m", [0, 1, 2, 4])
def test_low_scales_dilate_the_partition(plateau, base, m):
    x = points(base, 4)
    deep = hg.partition(x, n_scales=7, plateau=plateau, base=base, low_scales=m)
    np.testing.assert_array_equal(deep, hg.partition(x * base**m, n_scales=7, plateau=plateau, base=base))


@pytest.mark.parametrize("m", [1, 2, 4])
def test_low_scales_add_bands_below_and_keep_those_above(m):
    """psi^(m)_{j+m} = psi_j for j >= 1, and the m + 1 lowest share what was psi_0."""
    x = points(2.0, 4)
    plain, deep = hg.partition(x, n_scales=5), hg.partition(x, n_scales=5 + m, low_scales=m)
    np.testing.assert_array_equal(deep[m + 1 :], plain[1:])
    np.testing.assert_allclose(deep[: m + 1].sum(axis=0), plain[0], rtol=0, atol=1e-14)
