"""How much noise: the Gaussian mechanism's sigma, delta and epsilon, exact to the last digit and never on the unsafe side.

With mu = sensitivity / sigma, the mechanism is (epsilon, delta)-differentially private if and only if

    delta >= Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)            (Balle and Wang, 2018; paper, Sec. IV)

and releases with mu_1, mu_2, ... together are a mechanism with mu^2 = mu_1^2 + mu_2^2 + .... Everything is computed with as many
digits as it takes (mpmath) and rounded once, upwards: floats cancel at small epsilon and overflow at large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

import mpmath

from hushgraph._errors import InputError, Sentence, StateError
from hushgraph._validation import as_number, checked_number, choose, shown
from hushgraph.privacy.sensitivity import checked_squared

Mechanism = Literal["analytic", "classical"]
_DIGITS = 60  # of every intermediate result; at least 50 after cancellation
_MOST_EPSILON = 1e12  # nothing private is left long before; mu of 1e6 has more
_STEPS = 500  # Newton steps; about six are needed


def classical_sigma(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float | None = None,
    sensitivity_squared: int | Fraction | None = None,
    paper_compat: bool = False,
) -> float:
    """Return sigma of the classical Gaussian mechanism, sensitivity sqrt(2 log(1.25/delta)) / epsilon, rounded up.

    Parameters
    ----------
    epsilon : float
        Above 0 and below 1: the mechanism is proven there only.
    delta : float
        Strictly between 0 and 1.
    sensitivity : float, optional
        Largest L2 distance between the counts of neighbouring data sets. Square roots do not fit into floats:
        sensitivity=sqrt(3) would be a little low, so give `sensitivity_squared=3` instead.
    sensitivity_squared : int or Fraction, optional
        Its exact square, in place of `sensitivity`.
    paper_compat : bool
        Whether epsilon = 1 is allowed too. The paper's tables use the mechanism there, without a proof.

    Returns
    -------
    float
        The next float above the exact value.

    Examples
    --------
    >>> classical_sigma(epsilon=0.5, delta=1e-6, sensitivity=1)
    10.59760505370095
    """
    choose("paper_compat", paper_compat, (True, False))
    limit = 1.0 if paper_compat else math.nextafter(1.0, 0.0)
    if as_number(epsilon) > limit:
        got, hint = shown(epsilon), Sentence("use analytic_sigma ({mechanism='analytic'})")
        text = Sentence("the classical mechanism is proven for epsilon < 1 only; got {}; {}", got, hint)
        raise InputError.about(argument="epsilon", expected="below 1", got=got, hint=hint, text=text)
    epsilon = checked_number("epsilon", epsilon, "a number between 0 and 1", above=0)
    delta, squared = checked_delta(delta), checked_squared(sensitivity, sensitivity_squared)
    mp = _arithmetic()
    return _up(mp, mp.sqrt(2 * mp.log(mp.mpf(1.25) / mp.mpf(delta)) * _exactly(mp, squared)) / mp.mpf(epsilon))


def analytic_sigma(
    *, epsilon: float, delta: float, sensitivity: float | None = None, sensitivity_squared: int | Fraction | None = None
) -> float:
    """Return the smallest sigma that gives (epsilon, delta)-differential privacy (the analytic Gaussian mechanism).

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        Strictly between 0 and 1.
    sensitivity : float, optional
        Largest L2 distance between the counts of neighbouring data sets. Square roots do not fit into floats:
        sensitivity=sqrt(3) would be a little low, so give `sensitivity_squared=3` instead.
    sensitivity_squared : int or Fraction, optional
        Its exact square, in place of `sensitivity`.

    Returns
    -------
    float
        The next float above the exact value.

    Examples
    --------
    >>> analytic_sigma(epsilon=1, delta=1e-6, sensitivity=1)
    4.224678889326836
    """
    epsilon, delta, squared = checked_epsilon(epsilon), checked_delta(delta), checked_squared(sensitivity, sensitivity_squared)
    mp = _arithmetic()
    sigma = _up(mp, mp.sqrt(_exactly(mp, squared)) / _largest_mu(mp, mp.mpf(epsilon), mp.mpf(delta)))
    while _delta(mp, mp.sqrt(_exactly(mp, squared)) / mp.mpf(sigma), mp.mpf(epsilon)) > delta:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def gaussian_delta(
    *, sigma: float, epsilon: float, sensitivity: float | None = None, sensitivity_squared: int | Fraction | None = None
) -> float:
    """Return the smallest delta for which noise `sigma` gives (epsilon, delta)-differential privacy, rounded up.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.
    epsilon : float
        At least 0.
    sensitivity : float, optional
        Largest L2 distance between the counts of neighbouring data sets. Square roots do not fit into floats:
        sensitivity=sqrt(3) would be a little low, so give `sensitivity_squared=3` instead.
    sensitivity_squared : int or Fraction, optional
        Its exact square, in place of `sensitivity`.

    Returns
    -------
    float
        The next float above the exact value.

    Examples
    --------
    >>> round(gaussian_delta(sigma=4.224678889326836, epsilon=1, sensitivity=1), 18)
    1e-06
    """
    sigma = checked_number("sigma", sigma, "a positive standard deviation", above=0)
    epsilon, squared = checked_epsilon(epsilon), checked_squared(sensitivity, sensitivity_squared)
    return _up(_arithmetic(), composed_delta(squared / Fraction(sigma) ** 2, epsilon))


def gaussian_epsilon(
    *, sigma: float, delta: float, sensitivity: float | None = None, sensitivity_squared: int | Fraction | None = None
) -> float:
    """Return the smallest epsilon for which noise `sigma` gives (epsilon, delta)-differential privacy, rounded up.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.
    delta : float
        Strictly between 0 and 1.
    sensitivity : float, optional
        Largest L2 distance between the counts of neighbouring data sets. Square roots do not fit into floats:
        sensitivity=sqrt(3) would be a little low, so give `sensitivity_squared=3` instead.
    sensitivity_squared : int or Fraction, optional
        Its exact square, in place of `sensitivity`.

    Returns
    -------
    float
        The next float above the exact value; 0 if (0, delta) holds already.

    Examples
    --------
    >>> gaussian_epsilon(sigma=4.3, delta=1e-6, sensitivity=1)
    0.9811352237549203
    """
    sigma = checked_number("sigma", sigma, "a positive standard deviation", above=0)
    squared = checked_squared(sensitivity, sensitivity_squared)
    return composed_epsilon(squared / Fraction(sigma) ** 2, delta)


# ---- for the ledger, which adds up mu^2 -----------------------------------------------------------------------------


def composed_delta(mu_squared: Fraction | Decimal, epsilon: float) -> Any:
    """Return delta of releases whose mu^2 add up to `mu_squared`, exactly, as an mpmath number of 50 digits."""
    mp = _arithmetic()
    total = _checked_total(mu_squared)
    return _delta(mp, mp.sqrt(_exactly(mp, total)), mp.mpf(checked_epsilon(epsilon))) if total else mp.mpf(0)


def composed_epsilon(mu_squared: Fraction | Decimal, delta: float) -> float:
    """Return epsilon of releases whose mu^2 add up to `mu_squared`, exactly, rounded up; 0 for none.

    Parameters
    ----------
    mu_squared : Fraction or Decimal
        Sum of (sensitivity / sigma)^2 over the releases.
    delta : float
        delta of all of them together.

    Returns
    -------
    float
        The next float above the exact value.
    """
    delta, total = checked_delta(delta), _checked_total(mu_squared)
    mp = _arithmetic()
    mu = mp.sqrt(_exactly(mp, total))
    if not total or _delta(mp, mu, mp.mpf(0)) <= delta:
        return 0.0
    start = mu * mu / 2 + mu * mp.sqrt(-2 * mp.log(mp.mpf(delta)))  # here Phi(mu/2 - epsilon/mu) <= delta already

    def log_delta(epsilon: Any) -> tuple[Any, Any]:
        value = _delta(mp, mu, epsilon)
        return mp.log(value / delta), -mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu) / value

    exact = _newton(mp, log_delta, start)
    epsilon = _up(mp, exact)
    while _delta(mp, mu, mp.mpf(epsilon)) > delta:
        epsilon = math.nextafter(epsilon, math.inf)
    return epsilon


# ---- numbers of many digits -----------------------------------------------------------------------------------------


def _arithmetic() -> Any:
    """Return a new mpmath context: callers' precision stays as it is, and threads do not share it."""
    mp = mpmath.MPContext()
    mp.dps = _DIGITS
    return mp


def _exactly(mp: Any, value: Fraction) -> Any:
    return mp.mpf(value.numerator) / mp.mpf(value.denominator)


def _delta(mp: Any, mu: Any, epsilon: Any) -> Any:
    """Return delta of mu at epsilon; more digits are taken until enough are left after the subtraction."""
    if epsilon / mu - mu / 2 > 1e6:
        return mp.ldexp(1, -(10**11))  # more than Phi(-1e6), and far below every float
    digits = _DIGITS
    while True:
        with mp.workdps(digits):
            first = mp.ncdf(mu / 2 - epsilon / mu)
            delta = first - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
            if delta > 0 and mp.log10(first / delta) < digits - _DIGITS + 10:
                return delta
        digits *= 2


def _largest_mu(mp: Any, epsilon: Any, delta: Any) -> Any:
    """Return mu whose delta at epsilon is `delta`; Newton on log delta from below, where d delta / d mu = phi(mu/2 - epsilon/mu)."""
    tail = -mp.log(delta)
    start = 2 * epsilon / (mp.sqrt(2 * (tail + epsilon)) + mp.sqrt(2 * tail))  # here Phi(mu/2 - epsilon/mu) = Phi(-sqrt(2 tail))
    at_zero = 2 * mp.sqrt(2) * mp.erfinv(delta) if delta > 0.5 else mp.sqrt(2 * mp.pi) * delta  # at most mu of epsilon = 0

    def log_delta(mu: Any) -> tuple[Any, Any]:
        value = _delta(mp, mu, epsilon)
        return mp.log(value / delta), mp.npdf(mu / 2 - epsilon / mu) / value

    return _newton(mp, log_delta, max(start, at_zero))


def _newton(mp: Any, function: Callable[[Any], tuple[Any, Any]], x: Any) -> Any:
    """Return the root of a concave function (log delta), which also gives its slope, from its safe side, where every step stays."""
    before = mp.mpf(0)
    for _ in range(_STEPS):
        value, slope = function(x)
        step = value / slope
        turned = before * step < 0  # only rounding changes the sign of a step: this is as close as the digits go
        x, before = x - step, step
        if turned or abs(step) < abs(x) * mp.mpf(10) ** (10 - _DIGITS):
            return x
    msg = "the noise level did not converge; please report epsilon, delta and the sensitivity"
    raise StateError(msg)


def _up(mp: Any, value: Any) -> float:
    """Return the smallest float that is at least `value`."""
    if 0 < value < mp.mpf(5e-324):
        return 5e-324
    nearest = float(value)
    if math.isinf(nearest):
        msg = "this takes more noise than a float can hold; use a larger delta or epsilon, or a smaller sensitivity"
        raise InputError(msg)
    return math.nextafter(nearest, math.inf) if mp.mpf(nearest) < value else nearest


# ---- checks ---------------------------------------------------------------------------------------------------------


def checked_epsilon(epsilon: Any) -> float:
    """Return epsilon as a float from 0 to 1e12."""
    expected = f"a finite number from 0 to {_MOST_EPSILON:g} (the privacy budget; 0.1 to 2 are usual)"
    return checked_number("epsilon", epsilon, expected, least=0, most=_MOST_EPSILON)


def _checked_total(mu_squared: Fraction | Decimal) -> Fraction:
    total = Fraction(mu_squared)
    if total > _MOST_EPSILON:
        expected = f"at least a millionth of the sensitivity: less noise gives an epsilon above {_MOST_EPSILON / 2:g}"
        raise InputError.about(argument="sigma", expected=expected)
    return total


def checked_delta(delta: Any) -> float:
    """Return delta as a float strictly between 0 and 1."""
    return checked_number(
        "delta", delta, "strictly between 0 and 1 (1e-6, say: well below one over the number of people)", above=0, below=1
    )


def mechanism_sigma(
    mechanism: Mechanism, *, epsilon: float, delta: float, sensitivity_squared: int | Fraction, paper_compat: bool = False
) -> float:
    """Return sigma of the named mechanism.

    Parameters
    ----------
    mechanism : {"analytic", "classical"}
        The mechanism.
    epsilon, delta : float
        The guarantee.
    sensitivity_squared : int or Fraction
        Exact square of the sensitivity.
    paper_compat : bool
        As in `classical_sigma`.

    Returns
    -------
    float
        The standard deviation of the noise.
    """
    if choose("mechanism", mechanism, get_args(Mechanism)) == "classical":
        return classical_sigma(epsilon=epsilon, delta=delta, sensitivity_squared=sensitivity_squared, paper_compat=paper_compat)
    return analytic_sigma(epsilon=epsilon, delta=delta, sensitivity_squared=sensitivity_squared)
