"""From an estimate to its risk: one function for wavelets, combinations, counts, baselines and partitions.

Let y be the noisy signal, Sigma the covariance of its noise (diagonal), f the estimate and J its Jacobian. Then

    SURE     ||y - f||^2 - tr(Sigma) + 2 tr(Sigma J)                                     estimates ||f - truth||^2 without bias
    risk_se  the root of 4 <y - f, Sigma (y - f)> + 4 tr((Sigma J)^2) - 2 tr(Sigma^2)    its standard error

at fixed thresholds and weights. What choosing them by SURE costs is the `optimism` of an estimate, and its risk is SURE plus that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hushgraph.core import block_sum, rowwise_sums, shifted, sum_of_rows
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


def spread_along(eps: np.ndarray, product: np.ndarray, transposed: np.ndarray | None, noise: Noise) -> Spread:
    """Return the spread that probes estimate: `product` is J eps of each probe, `transposed` is J' eps, or None where J is symmetric."""
    frobenius = noise.variance * np.mean(noise.energy(product, product))
    trace = frobenius if transposed is None else noise.variance * np.mean(noise.energy(product, transposed))
    divergence = noise.variance * np.mean(np.multiply(eps, product, dtype=np.float64), axis=0)
    return Spread(trace, frobenius, divergence, noise.variance * np.mean(np.square(product, dtype=np.float64), axis=0))


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

    `sure` is its SURE at fixed thresholds and weights, and `divergence` is sum_i sigma_i^2 df_i/dy_i in units of `noise.variance`.
    `optimism` is what choosing thresholds and weights costs. `level` is a constant that was taken off the signal before and is added to
    the estimate; `level_cost` is what it adds to the risk, where `sure` does not hold that already. `account` says what was done, for
    people to read.
    """

    signal: Any
    sure: Any
    divergence: Any
    jacobian: Jacobian
    probes: ProbeUse
    optimism: float = 0.0
    level: float = 0.0
    level_cost: float = 0.0
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


class RiskSums(NamedTuple):
    """The sums over nodes that the risk of an estimate is made of. Parts of a graph add theirs up."""

    sure: Any  # with what choosing costs
    weighted_residual: Any  # <y - f, Sigma (y - f)>
    divergence: Any  # tr(Sigma J)
    weighted_divergence: Any  # tr(Sigma J Sigma)
    trace: Any  # tr((Sigma J)^2)
    frobenius: Any  # tr(J' Sigma J Sigma)
    noise_total: float  # tr(Sigma)
    noise_fourth: float  # tr(Sigma^2)
    n: int

    def risk_numbers(self, probes: ProbeUse) -> tuple[Any, Any, Any]:
        """Return the risk, its standard error, and the part of that which the probes cause."""
        return self.sure, self._risk_error(), self._probe_error(probes)

    def _risk_error(self) -> Any:
        """Return `risk_se`.

        The mean squared difference of SURE and loss is at least 2 tr(((I - 2 J) Sigma)^2), which is due to the noise alone. That takes
        the place of an estimate of less than a quarter of it: the residual is too small then, since sigma is too large, and the estimate
        may even be negative.
        """
        square = 4 * self.weighted_residual + 4 * self.trace - 2 * self.noise_fourth
        noise_alone = 2 * (self.noise_fourth - 4 * self.weighted_divergence + 4 * self.trace)
        return np.sqrt(np.maximum(np.where(4 * square < noise_alone, noise_alone, square), 0.0))

    def _probe_error(self, probes: ProbeUse) -> Any:
        """Return `probe_se`: Proposition 2 of the paper, corrected; its last sum, of the squared diagonal of M, is the least it can be."""
        if probes.source != "probes":
            return 0.0 if probes.source == "exact" else np.nan
        diagonal = self.divergence**2 / self.n if probes.has_diagonal and probes.law == "rademacher" else 0.0
        return np.sqrt(4 * np.maximum(self.frobenius + self.trace - 2 * diagonal, 0.0) / probes.count)

    def or_nothing(self, probes: ProbeUse) -> tuple[bool, float, float, float]:
        """Return whether the risk exceeds that of doing nothing, and the three numbers, which are those of doing nothing then."""
        is_worse, *numbers = NoiseRisk.of(self.noise_total, self.noise_fourth).instead_of(*self.risk_numbers(probes))
        risk, risk_se, probe_se = map(float, numbers)
        return bool(is_worse), risk, risk_se, probe_se


def sure_of(residual: Any, noise_total: float, divergence: Any) -> Any:
    """Return SURE from ||y - f||^2, tr(Sigma) and tr(Sigma J)."""
    return residual - noise_total + 2 * divergence


def with_risk(y: Any, estimate: Estimate, noise: Noise) -> Assessed:
    """Return the estimate of `y` with its risk, its standard errors and the terms of each node."""
    spread = estimate.jacobian.spread(noise)
    square = np.square(estimate.signal - y, dtype=np.float64)
    n = len(square)
    weighted_residual, weighted_divergence = rowwise_sums(np.stack([noise.weigh(square), noise.weigh(spread.divergence)]))
    sums = RiskSums(
        sure=estimate.sure + estimate.optimism + estimate.level_cost,
        weighted_residual=weighted_residual,
        divergence=noise.variance * estimate.divergence,
        weighted_divergence=weighted_divergence,
        trace=spread.trace,
        frobenius=spread.frobenius,
        noise_total=noise.total(n),
        noise_fourth=noise.fourth(n),
        n=n,
    )
    risk, risk_se, probe_se = sums.risk_numbers(estimate.probes)
    return Assessed(
        signal=shifted(estimate.signal[None], np.array([estimate.level]))[0],
        risk=risk,
        risk_se=risk_se,
        probe_se=probe_se,
        sure=square - noise.weigh(np.ones_like(square)) + 2 * spread.divergence,
        variance=spread.variance,
        is_posterior=estimate.is_posterior,
        thresholds=estimate.thresholds,
        account=estimate.account,
    )


class Average(NamedTuple):
    """The average of several estimates: its signal, risk and standard error, and what SURE gains at each node over the mean of theirs."""

    signal: np.ndarray
    risk: float
    risk_se: float
    gain: np.ndarray


def average(y: Any, signals: np.ndarray, risks: Any, errors: Any, noise: Noise, shares: np.ndarray) -> Average:
    """Return the average of estimates (k, n) of y in these shares.

    SURE is exact for an average, since divergences are averaged. Its standard error is an upper bound, since traces are convex.
    """
    signal = sum_of_rows(shares, signals)
    gain = np.nan_to_num((y - signal) ** 2 - sum_of_rows(shares, (y - signals) ** 2))  # at most 0; 0 where there is no value
    square = shares @ np.square(errors) + 4 * block_sum(noise.weigh(gain))
    square = square if square > 0 else np.min(np.square(errors))  # 0 and less where sigma is too large: no part's error is 0
    return Average(signal, float(shares @ np.asarray(risks) + block_sum(gain)), float(np.sqrt(square)), gain)


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
