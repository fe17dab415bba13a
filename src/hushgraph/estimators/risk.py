"""From an estimate to its risk: one function for wavelets, combinations, counts, baselines and partitions.

Let y be the noisy signal, Sigma the covariance of its noise (diagonal), f the estimate and J its Jacobian. Then

    SURE     ||y - f||^2 - tr(Sigma) + 2 tr(Sigma J)                                     estimates ||f - truth||^2 without bias
    risk_se  the root of 4 <y - f, Sigma (y - f)> + 4 tr((Sigma J)^2) - 2 tr(Sigma^2)    its standard error

at fixed thresholds and weights. What choosing them by SURE costs is the `optimism` of an estimate, and its risk is SURE plus that.

The threshold of least SURE lies where the number of kept coefficients happens to fall fast: SURE jumps by 2 beta sigma^2 weights_i where
a threshold passes a coefficient, and near its minimum it is a parabola plus a random walk. Scaling both (Kim and Pollard's cube-root
asymptotics) gives a cost that grows like the cube root of m, the trace of the noise in the scale over sigma^2: 0.75 m^(1/3) degrees of
freedom for James-Stein, measured on generated graphs of 200 to 6,000 nodes (0.5 to 0.9 where there is a signal, 0.3 without any), and
(beta / 2)^(2/3) times that for other exponents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hushgraph.core import block_sum, rowwise_sums, shifted, sum_of_rows
from hushgraph.wavelets import Law, Noise

Source = Literal["probes", "exact", "given"]  # of the weights that divergences are made of
THRESHOLD_FREEDOM = 0.75  # degrees of freedom that choosing a threshold costs, over the cube root of the trace of the noise
BLOCK_FREEDOM = 0.6  # the same for an average of thresholds of blocks of several sizes
EXPONENT_FREEDOM = 3.2  # where the exponent of the rule is chosen too, over the sixth root of the trace
IMPOSSIBLE = 3.0  # a risk of more than this many standard errors below 0 is no basis for an error


class Spread(NamedTuple):
    """What the Jacobian J of an estimate does to the noise: two traces, and two diagonals with a value per node."""

    trace: Any  # tr((Sigma J)^2)
    frobenius: Any  # tr(J' Sigma J Sigma), the same where J is symmetric
    divergence: Any  # diagonal of J Sigma
    variance: Any  # diagonal of J Sigma J'
    probe_count: int = 0  # number of probes that the diagonals are estimated from; 0 if they are exact


class Jacobian(Protocol):
    """The Jacobian of an estimate, as far as its risk needs it."""

    def spread(self, noise: Noise) -> Spread:
        """Return the traces and diagonals of J with this noise."""
        ...


class Posterior(Protocol):
    """The distribution of the true value of each node, given the noisy signal."""

    def interval(self, level: float) -> np.ndarray:
        """Return lower and upper values (2, n) between which the true value lies with this probability."""
        ...

    def expected_squares(self, variance: np.ndarray) -> np.ndarray:
        """Return posterior variances, corrected for what the distribution itself is not sure of."""
        ...


def spread_along(eps: np.ndarray, product: np.ndarray, transposed: np.ndarray | None, noise: Noise) -> Spread:
    """Return the spread that probes estimate: `product` is J eps of each probe, `transposed` is J' eps, or None where J is symmetric."""
    frobenius = noise.variance * np.mean(noise.energy(product, product))
    trace = frobenius if transposed is None else noise.variance * np.mean(noise.energy(product, transposed))
    divergence = noise.variance * np.mean(np.multiply(eps, product, dtype=np.float64), axis=0)
    variance = noise.variance * np.mean(np.square(product, dtype=np.float64), axis=0)
    return Spread(trace, frobenius, divergence, variance, len(eps))


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
    the estimate; `level_cost` is what it adds to the risk, where `sure` does not hold that already. `caution` is charged besides where
    estimates are compared: an estimate with many fitted parameters is more likely to have the least risk by chance. `account` says what was
    done, for people to read.
    """

    signal: Any
    sure: Any
    divergence: Any
    jacobian: Jacobian
    probes: ProbeUse
    optimism: float = 0.0
    level: float = 0.0
    level_cost: float = 0.0
    caution: float = 0.0
    posterior: Posterior | None = None
    thresholds: Any = None
    account: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Assessed:
    """An estimate of one signal with its risk: numbers for the whole, and terms of SURE, variances and divergences per node.

    `caution` is that of `Estimate`. With a `posterior` the variances are expected squared errors. `probe_count` probes are behind variances and divergences; 0: exact.
    """

    signal: Any
    risk: Any
    risk_se: Any
    probe_se: Any
    sure: Any
    variance: Any
    divergence: Any
    probe_count: int = 0
    posterior: Posterior | None = None
    thresholds: Any = None
    account: dict[str, Any] = field(default_factory=dict)
    caution: float = 0.0

    @property
    def compared_risk(self) -> Any:
        """The risk by which the estimate is compared with others."""
        return self.risk + self.caution


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


def freedom_of_thresholds(traces: Any, *, beta: Any = 2.0, factor: float = THRESHOLD_FREEDOM) -> Any:
    """Return the degrees of freedom that choosing the threshold of each scale at the least SURE costs, on top of the divergence at fixed ones.

    `traces` are those of the noise in each scale, tr(Sigma W_j' W_j) over the mean variance of the noise, and `beta` the exponent of the rule.
    """
    traces = np.maximum(traces, 0.0)
    return (
        factor * (beta / 2) ** (2 / 3) * np.minimum(traces, np.cbrt(traces))
    )  # a scale with little noise has little to choose from


def freedom_of_exponents(traces: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom that choosing the threshold and the exponent of each scale costs: measured, on the graphs of `benchmarks/estimators.py`."""
    traces = np.maximum(traces, 0.0)
    return np.minimum(traces, EXPONENT_FREEDOM * traces ** (1 / 6))


def within_gain(optimism: Any, sure: Any, noise_total: float) -> Any:
    """Return what choosing thresholds costs: at most half of what SURE gains over doing nothing.

    Thresholds of 0 do nothing. In weak noise all are near 0, and choosing them costs less than where many values are near the threshold.
    """
    return np.minimum(optimism, np.maximum(noise_total - sure, 0.0) / 2)


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
        divergence=spread.divergence,
        probe_count=spread.probe_count,
        posterior=estimate.posterior,
        thresholds=estimate.thresholds,
        account=estimate.account,
        caution=estimate.caution,
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
    return Average(signal, *average_risk(risks, errors, shares, block_sum(gain), block_sum(noise.weigh(gain))), gain)


def average_risk(risks: Any, errors: Any, shares: np.ndarray, gain: Any, weighed_gain: Any) -> tuple[float, float]:
    """Return risk and standard error of an average, from the sum of its gain, and of its gain times the variance of the noise, over nodes."""
    square = shares @ np.square(errors) + 4 * weighed_gain
    square = square if square > 0 else np.min(np.square(errors))  # 0 and less where sigma is too large: no part's error is 0
    return float(shares @ np.asarray(risks) + gain), float(np.sqrt(square))


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
