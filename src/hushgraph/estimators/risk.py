"""From an estimate to its risk: one function for wavelets, combinations, counts, baselines and partitions.

Let y be the noisy signal, Sigma the covariance of its noise (diagonal), f the estimate and J its Jacobian. Then

    SURE     ||y - f||^2 - tr(Sigma) + 2 tr(Sigma J)                                     estimates ||f - truth||^2 without bias
    risk_se  the root of 4 <y - f, Sigma (y - f)> + 4 tr((Sigma J)^2) - 2 tr(Sigma^2)    its standard error

at fixed thresholds and weights. What choosing them by SURE costs is the `optimism` of an estimate, and its risk is SURE plus that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hushgraph.core import block_sum, rowwise_sums, sum_of_rows
from hushgraph.wavelets import Law, Noise

Source = Literal["probes", "exact", "given"]  # of the weights that divergences are made of
IMPOSSIBLE = 3.0  # a risk of more than this many standard errors below 0 is no basis for an error


class Spread(NamedTuple):
    """What the Jacobian J of an estimate does to the noise: two traces, and two diagonals with a value per node."""

    trace: Any  # tr((Sigma J)^2)
    frobenius: Any  # tr(J' Sigma J Sigma), the same where J is symmetric
    divergence: Any  # diagonal of J Sigma
    variance: Any  # diagonal of J Sigma J'


class Jacobian(Protocol):
    """The Jacobian of an estimate, as far as its risk needs it."""

    def spread(self, noise: Noise) -> Spread:
        """Return the traces and diagonals of J with this noise."""
        ...


def spread_along(eps: np.ndarray, ahead: np.ndarray, back: np.ndarray | None, noise: Noise) -> Spread:
    """Return the spread that probes estimate: `ahead` is J eps of each probe, `back` is J' eps, or None where J is symmetric."""
    frobenius = noise.variance * np.mean(noise.energy(ahead, ahead))
    trace = frobenius if back is None else noise.variance * np.mean(noise.energy(ahead, back))
    divergence = noise.variance * np.mean(np.multiply(eps, ahead, dtype=np.float64), axis=0)
    return Spread(trace, frobenius, divergence, noise.variance * np.mean(np.square(ahead, dtype=np.float64), axis=0))


@dataclass(frozen=True)
class ProbeUse:
    """Where the divergence of an estimate comes from, for its standard error `probe_se`.

    `has_diagonal` says that the squared divergence over n bounds the squared diagonal of M in the variance of Rademacher probes.
    """

    source: Source
    count: int = 1
    law: Law = "rademacher"
    has_diagonal: bool = True


EXACT = ProbeUse("exact")


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of one signal, before its risk is worked out.

    `divergence` is sum_i sigma_i^2 df_i/dy_i in units of `noise.variance`. `level` is a constant that was taken off the signal
    before and is added to it afterwards. `account` says what was done, for people to read.
    """

    signal: Any
    sure: Any
    divergence: Any
    jacobian: Jacobian
    probes: ProbeUse
    optimism: float = 0.0
    is_posterior: bool = False
    thresholds: Any = None
    account: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Assessed:
    """An estimate of one signal with its risk: numbers for the whole, and terms of SURE and variances per node.

    Where `is_posterior` is true the variances are those of a posterior: expected squared errors.
    """

    signal: Any
    risk: Any
    risk_se: Any
    probe_se: Any
    sure: Any
    variance: Any
    is_posterior: bool = False
    thresholds: Any = None
    account: dict[str, Any] = field(default_factory=dict)


def with_risk(y: Any, estimate: Estimate, noise: Noise) -> Assessed:
    """Return the estimate of `y` with its risk, its standard errors and the terms of each node."""
    spread = estimate.jacobian.spread(noise)
    square = np.square(estimate.signal - y, dtype=np.float64)
    weighted, turned = rowwise_sums(np.stack([noise.weigh(square), noise.weigh(spread.divergence)]))
    return Assessed(
        signal=estimate.signal,
        risk=estimate.sure + estimate.optimism,
        risk_se=risk_error(weighted, spread.trace, turned, noise.fourth(len(square))),
        probe_se=probe_error(estimate.probes, spread.trace, spread.frobenius, noise.variance * estimate.divergence, len(square)),
        sure=square - noise.weigh(np.ones_like(square)) + 2 * spread.divergence,
        variance=spread.variance,
        is_posterior=estimate.is_posterior,
        thresholds=estimate.thresholds,
        account=estimate.account,
    )


def sure_of(residual: Any, noise_total: float, weighted_divergence: Any) -> Any:
    """Return SURE from ||y - f||^2, tr(Sigma) and tr(Sigma J)."""
    return residual - noise_total + 2 * weighted_divergence


def risk_error(weighted: Any, trace: Any, turned: Any, fourth: float) -> Any:
    """Return `risk_se` from <y - f, Sigma (y - f)>, tr((Sigma J)^2), tr(Sigma J Sigma) and tr(Sigma^2).

    The mean squared difference of SURE and loss is at least 2 tr(((I - 2 J) Sigma)^2), which is due to the noise alone. That takes the
    place of an estimate of less than a quarter of it: the residual is too small then, since sigma is too large, and the estimate may
    even be negative.
    """
    square, noise_alone = 4 * weighted + 4 * trace - 2 * fourth, 2 * (fourth - 4 * turned + 4 * trace)
    return np.sqrt(np.maximum(np.where(4 * square < noise_alone, noise_alone, square), 0.0))


def probe_error(use: ProbeUse, trace: Any, frobenius: Any, weighted_divergence: Any, n: int) -> Any:
    """Return `probe_se`, the part of the standard error that the probes cause: Proposition 2 of the paper, corrected.

    Its last sum, of the squared diagonal of M, is replaced by the least it can be.
    """
    if use.source != "probes":
        return 0.0 if use.source == "exact" else np.nan
    diagonal = weighted_divergence**2 / n if use.has_diagonal and use.law == "rademacher" else 0.0
    return np.sqrt(4 * np.maximum(frobenius + trace - 2 * diagonal, 0.0) / use.count)


def average(y: Any, parts: Sequence[Assessed], noise: Noise, shares: np.ndarray) -> tuple[Assessed, np.ndarray]:
    """Return the average of several estimates of y in these shares, and what SURE gains at each node over the mean of theirs.

    SURE is exact for an average, since divergences are averaged. Its standard error is an upper bound, since traces are convex.
    """
    signals = np.stack([part.signal for part in parts])
    risks, errors = (np.array([getattr(part, name) for part in parts]) for name in ("risk", "risk_se"))
    signal = sum_of_rows(shares, signals)
    gain = np.nan_to_num((y - signal) ** 2 - sum_of_rows(shares, (y - signals) ** 2))  # at most 0; 0 where there is no value
    square = shares @ np.square(errors) + 4 * block_sum(noise.weigh(gain))
    square = square if square > 0 else np.min(np.square(errors))  # 0 and less where sigma is too large: no part's error is 0
    whole = Assessed(
        signal=signal,
        risk=float(shares @ risks + block_sum(gain)),
        risk_se=float(np.sqrt(square)),
        probe_se=max(part.probe_se for part in parts),
        sure=None,
        variance=None,
    )
    return whole, gain


class NoiseRisk(NamedTuple):
    """The risk of doing nothing: what a result is compared with."""

    risk: float
    risk_se: float

    @classmethod
    def of(cls, noise_total: float, fourth: float) -> NoiseRisk:
        """From tr(Sigma) and tr(Sigma^2)."""
        return cls(noise_total, float(np.sqrt(2 * fourth)))

    def instead_of(self, risk: Any, risk_se: Any, probe_se: Any) -> tuple[Any, Any, Any, Any]:
        """Return which risks exceed that of the noise, and the three numbers of each signal with those replaced."""
        is_worse = risk > self.risk
        return (
            is_worse,
            np.where(is_worse, self.risk, risk),
            np.where(is_worse, self.risk_se, risk_se),
            np.where(is_worse, 0.0, probe_se),
        )
