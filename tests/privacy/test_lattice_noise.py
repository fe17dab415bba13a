"""The lattice Gaussian: exactly the law it states, in the middle, at every boundary and far in the tails."""

import math
import os
from collections import deque

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from hushgraph.privacy import lattice as noise
from hushgraph.privacy.lattice import _fast_steps, exact_step, lattice_noise, lattice_step, steps_from

SIGMAS = [4.224678889326836, 26.49, 1000.0, 5000.5, 0.01]


@pytest.mark.parametrize("sigma", [2.0**-10, 0.01, 0.999, 1.0, 1024.0, 1023.9, 1025.0, 4.22, 1e9, 2.0**32])
def test_lattice_step(sigma):
    """A power of two, at most 1 and at most sigma / 1024, and the largest such."""
    g = lattice_step(sigma)
    assert math.frexp(g)[0] == 0.5
    assert g <= min(1, sigma / 1024)
    assert 2 * g > min(1, sigma / 1024)


@pytest.mark.parametrize("sigma", [0, -1, 1e-4, 1e10, float("nan"), float("inf"), "1", True])
def test_sigma_outside_the_lattices_range(sigma):
    with pytest.raises(ValueError, match="sigma must be between"):
        lattice_noise(3, sigma=sigma)


@pytest.mark.parametrize("size", [-1, 2.0, "3", True])
def test_bad_size(size):
    with pytest.raises(ValueError, match="size must be an integer of at least 0"):
        lattice_noise(size, sigma=1.0)


def _chi_square(counts, expected):
    """p-value; cells with fewer than 20 expected draws are taken together."""
    few = expected < 20
    counts = np.append(counts[~few], counts[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    keep = expected > 0
    return stats.chi2.sf(np.sum((counts[keep] - expected[keep]) ** 2 / expected[keep]), keep.sum() - 1)


def _cells(steps, sigma, edges):
    """Draws and their expected number between the edges (in steps, at half numbers)."""
    g = lattice_step(sigma)
    upper = special.ndtr(edges * g / sigma)
    tail = special.ndtr(-edges * g / sigma)
    middle = np.where(edges[1:] <= 0, np.diff(upper), -np.diff(tail))
    expected = len(steps) * np.concatenate([[upper[0]], middle, [tail[-1]]])
    return np.bincount(np.searchsorted(edges, steps), minlength=len(edges) + 1), expected


@pytest.fixture(scope="module")
def ten_million():
    return lattice_noise(10_000_000, sigma=SIGMAS[0])


@pytest.mark.statistics
def test_every_cell_on_ten_million_draws(ten_million):
    """Chi-square over each single lattice point within 5 sigma; false-alarm rate 1e-6."""
    reach = round(5 * SIGMAS[0] / lattice_step(SIGMAS[0]))
    edges = np.arange(-reach, reach + 1) - 0.5
    assert _chi_square(*_cells(ten_million, SIGMAS[0], edges)) > 1e-6
    even = 2 * (ten_million // 2)  # negative control: the lowest bit of J is lost
    assert _chi_square(*_cells(even, SIGMAS[0], edges)) < 1e-6


@pytest.mark.statistics
def test_sixty_four_bins_on_ten_million_draws(ten_million):
    """Few bins see a wrong sigma best: half a percent is caught. False-alarm rate 1e-6."""
    per_sigma = SIGMAS[0] / lattice_step(SIGMAS[0])
    edges = np.floor(special.ndtri(np.arange(1, 64) / 64) * per_sigma) + 0.5
    assert _chi_square(*_cells(ten_million, SIGMAS[0], edges)) > 1e-6
    assert _chi_square(*_cells(ten_million, 1.005 * SIGMAS[0], edges)) < 1e-6


@pytest.mark.statistics
def test_tails_have_their_share(ten_million):
    """Draws beyond 4.5 sigma, exact binomial test, false-alarm rate 1e-6 each side."""
    limit = 4.5 * SIGMAS[0] / lattice_step(SIGMAS[0])
    p = special.ndtr(-(math.floor(limit) + 0.5) * lattice_step(SIGMAS[0]) / SIGMAS[0])
    for side in (ten_million > limit, ten_million < -limit):
        assert stats.binomtest(int(side.sum()), len(ten_million), p).pvalue > 1e-6


@pytest.mark.statistics
@pytest.mark.parametrize("sigma", SIGMAS)
def test_moments(sigma):
    """Variance sigma^2 + g^2/12 over a million draws, z-test with false-alarm rate 1e-6; 1 % off is caught."""
    g = lattice_step(sigma)
    values = g * lattice_noise(1_000_000, sigma=sigma)
    level = sigma**2 + g**2 / 12

    def p_value(variance):
        return 2 * stats.norm.sf(abs(np.mean(values**2) / variance - 1) / math.sqrt(2 / len(values)))

    assert p_value(level) > 1e-6
    assert p_value(level * 1.01**2) < 1e-6


def test_ndtri_is_as_good_as_the_fast_path_assumes():
    """z of 64 bits, from floats against mpmath: within 2^-42 above the tail, a sixteenth of the margin."""
    rng = np.random.default_rng(0)
    half = np.concatenate([rng.integers(0, 2**63, 300, dtype=np.uint64), (2.0 ** rng.uniform(42, 63, 300)).astype(np.uint64)])
    half = np.append(half, np.uint64(2**63) - np.arange(1, 50, dtype=np.uint64))  # next to 1/2
    z = special.ndtri((half.astype(np.float64) + 0.5) * 2.0**-64)
    above = z >= -5
    with mpmath.workdps(50):
        for bits, value in zip(half[above], z[above], strict=True):
            middle, start = (mpmath.mpf(int(bits)) + 0.5) / 2**64, mpmath.mpf(float(value))
            exact = start - (mpmath.ncdf(start) - middle) / mpmath.npdf(start)  # one Newton step: 1e-15 becomes 1e-30
            cell = mpmath.mpf(2) ** -65 / mpmath.npdf(exact)
            assert abs(exact - mpmath.mpf(float(value))) + cell < 2.0**-42
    assert above.sum() > 500


def _steps_by_floats(bits, sigma):
    steps = np.empty(len(bits), dtype=np.int64)
    doubtful = _fast_steps(np.asarray(bits, dtype="<u8"), sigma / lattice_step(sigma), steps)
    return steps, doubtful


@pytest.mark.parametrize("sigma", SIGMAS)
def test_fast_path_equals_exact_path(sigma):
    bits = np.random.default_rng(3).integers(0, 2**64, 400, dtype=np.uint64)
    steps, doubtful = _steps_by_floats(bits, sigma)
    exact = [exact_step(int(b), sigma, lattice_step(sigma), os.urandom) for b in bits]
    assert np.array_equal(steps[~doubtful], np.array(exact)[~doubtful])
    assert doubtful.mean() < 0.05


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("place", [0.0, -0.01, -0.5, -1.7, -3.3, -4.9])
def test_fast_path_at_boundaries(sigma, place):
    """On either side of a rounding boundary: decided only outside the margin, and then like the exact path."""
    g = lattice_step(sigma)
    j = round(place * sigma / g)
    with mpmath.workdps(60):
        z = (j - mpmath.mpf(0.5)) * mpmath.mpf(g) / mpmath.mpf(sigma)
        boundary = mpmath.ncdf(z) * mpmath.mpf(2) ** 64
        width = mpmath.npdf(z) * mpmath.mpf(2) ** 64  # 64-bit numbers per unit of z
        near = [int(mpmath.floor(boundary)) + k for k in (-2, -1, 0, 1, 2)]
        away = [int(boundary + sign * width * mpmath.mpf(2) ** -36) for sign in (-1, 1)]
    for half, close in [(h, True) for h in near] + [(h, False) for h in away]:
        for sign in (0, 1):
            bits = 2 * half + sign
            steps, doubtful = _steps_by_floats([bits], sigma)
            exact = exact_step(bits, sigma, g, os.urandom)
            assert doubtful[0] == close
            assert close or steps[0] == exact
            assert abs(exact) in (abs(j), abs(j - 1))
    below, above = (abs(exact_step(2 * half, sigma, g, os.urandom)) for half in (near[0], near[-1]))
    assert (below, above) == (abs(j - 1), abs(j))


def _script(*parts):
    """A source that hands out these bytes and fails when more are asked for."""
    left = deque(parts)
    return lambda size: left.popleft() if len(left[0]) == size else pytest.fail(f"asked for {size} bytes, not {len(left[0])}")


def test_an_undecided_cell_draws_more_bits():
    """64 + 128 bits right at the boundary leave it open; the next 128 decide."""
    sigma, g = 4.22, lattice_step(4.22)
    with mpmath.workdps(200):
        exact = mpmath.ncdf((-100 - mpmath.mpf(0.5)) * mpmath.mpf(g) / mpmath.mpf(sigma))
        whole = int(mpmath.floor(exact * mpmath.mpf(2) ** 192))
    half, rest = whole >> 128, (whole & (2**128 - 1)).to_bytes(16, "little")
    assert exact_step(2 * half, sigma, g, _script(rest, b"\xff" * 16)) == 100
    assert exact_step(2 * half, sigma, g, _script(rest, b"\x00" * 16)) == 101


@pytest.mark.parametrize("zeros", [0, 1, 3, 10])
def test_tails_far_beyond_eight_sigma(zeros):
    """A uniform number of 2^-192 or 2^-1472 is a draw like any other: -15.9 and -44.9 sigma."""
    sigma, g = 4.22, lattice_step(4.22)
    bytes_of_u = *[b"\x00" * 16] * zeros, b"\x01" + b"\x00" * 15, b"\x77" * 16
    step = exact_step(0, sigma, g, _script(*bytes_of_u))
    expected = -special.ndtri_exp(-(64 + 128 * (zeros + 1)) * math.log(2)) * sigma / g
    assert step == pytest.approx(expected, rel=0.02)
    assert step * g > 8 * sigma
    assert exact_step(1, sigma, g, _script(*bytes_of_u)) == -step


def test_the_tail_always_takes_the_exact_path(monkeypatch):
    calls = []
    monkeypatch.setattr(noise, "exact_step", lambda bits, *_: calls.append(bits) or 7)
    bits = np.array([0, 1, 2**40, 2**62], dtype="<u8")
    steps = steps_from(lambda size: bits.tobytes(), 4, 4.22)
    assert calls == [0, 1, 2**40]
    assert steps[:3].tolist() == [7, 7, 7]


def test_entropy_comes_from_the_operating_system(monkeypatch):
    """Eight bytes per entry, fresh each time, nothing kept."""
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or real(size))
    first, second = lattice_noise(100_000, sigma=4.22), lattice_noise(100_000, sigma=4.22)
    assert sum(asked) >= 1_600_000
    assert (first != second).mean() > 0.99


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_draws_its_own_noise():
    lattice_noise(1000, sigma=4.22)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, lattice_noise(1000, sigma=4.22).tobytes())
        os._exit(0)
    with os.fdopen(read, "rb") as pipe:
        os.close(write)
        theirs = np.frombuffer(pipe.read(8000), dtype=np.int64)
    os.waitpid(child, 0)
    assert len(theirs) == 1000
    assert (theirs != lattice_noise(1000, sigma=4.22)).mean() > 0.9


def test_no_entries():
    assert lattice_noise(0, sigma=1.0).shape == (0,)


# ---- the low-bit attack -------------------------------------------------------------------------------------------------


def only_zero_gives(values):
    """Which outputs cannot come from a count of 1 or more: adding 1 leaves nothing below 2^-53."""
    scaled = values * 2.0**53
    return scaled != np.rint(scaled)


def test_the_low_bit_attack_finds_naive_noise_and_not_ours():
    sigma = SIGMAS[0]
    naive = np.random.default_rng(0).normal(0, sigma, 1_000_000)
    assert only_zero_gives(0 + naive).mean() > 0.05  # one output in twenty proves that nobody was there
    assert not only_zero_gives(1 + naive).any()  # and never wrongly
    ours = lattice_step(sigma) * lattice_noise(1_000_000, sigma=sigma)
    assert not only_zero_gives(0 + ours).any()
    assert not only_zero_gives(1 + ours).any()


def test_every_count_reaches_the_same_outputs():
    """Outputs are the multiples of g, whatever the count; the sum is exact, so it hides nothing in its last bits."""
    sigma = SIGMAS[0]
    g = lattice_step(sigma)
    steps = lattice_noise(100_000, sigma=sigma)
    for count in (0, 1, 2, 77, 123_456_789):
        outputs = count + g * steps
        assert np.array_equal(outputs / g, np.rint(outputs / g))
        assert np.array_equal((outputs - count) / g, steps)
