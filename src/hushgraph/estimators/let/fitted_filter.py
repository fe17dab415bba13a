"""One filter h(L) y whose shape is fitted to the signal: the estimate of a Gaussian process on the graph, without eigenvectors.

The signal is modelled as a Gaussian process whose coefficient at an eigenvalue x of the Laplacian has the variance s(x), in units of
the noise variance. Three families of spectra s are fitted, each with a level, a place and a steepness:

    band          a / (1 + (x / t)^q)       for large q all below t and nothing above: band-limited signals
    matern        a (1 + x / t)^-q          the process of Matern's covariance
    exponential   a exp(-(x / t)^q)         for q = 1 diffused white noise

The energy E_b of y and the number N_b of eigenvalues in bins of the spectrum (`wavelets/spectral_energy.py`) give the likelihood,

    -2 log L(s) = sum_b N_b log(1 + s_b) + E_b / (1 + s_b),

so whole families are searched without another product with the Laplacian. Each family has the filter h = s / (1 + s), the posterior
mean of its process. The estimate is h(L) y with the mean of these filters in proportion to their likelihoods. The mean of each large component passes
unchanged. Steep edges near 0 need polynomials of a high degree: the degree starts low and is raised as long as the filter asks for it.

Maximum likelihood finds the parameters of smooth signals under strong noise more exactly than SURE does. Whether the model holds is decided
in `combination.py`: by the kurtosis of the wavelet coefficients, and by SURE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, special

from hushgraph._arrays import on_device, on_host
from hushgraph.estimators.let.columns import Candidates, Derivative
from hushgraph.estimators.let.component_means import ComponentMeans
from hushgraph.estimators.let.filters import Filters, filtered
from hushgraph.estimators.let.observation import Observation
from hushgraph.graphs import Graph
from hushgraph.wavelets import SpectralBins, chebyshev_points, jackson_damping, spectral_moments

DEGREES = (256, 1024, 4096)  # tried in this order
LITTLE_WORK = 2**17  # nodes and stored edges, up to which the first degree is left out
MOST_WORK = 2**32  # nodes and stored edges times a degree that is tried after the first
HIGHEST_PER_ROOT = 32.0  # degree over the root of the number of nodes, at most: higher ones separate single eigenvalues
PROBE_WORK = 2**21  # nodes and stored edges times the number of probes for traces
LEAST_BINS = 24  # below the edge of a filter, or the degree is raised
NEGLIGIBLE = 1e-5  # coefficients that are not computed
UNRESOLVED = 0.02  # error of the polynomial at 0 that asks for a higher degree
BINS_PER_FIT = 4  # bins of the spectrum that are put together for the search, away from 0
STARTS = 4  # best points of the grid from which the search starts
STEPS = 40  # of the search, at most
CLOSE = 1e-4  # a gain of -2 log L that ends the search
CHARGE = 1.0  # degrees of freedom that fitting one of the three parameters costs
LOGS_OF_STEEPNESS = np.log([0.7, 1.5, 3.0, 8.0, 30.0])
STEEPEST = 200.0  # largest q
DECIMALS = 4  # of the logarithms of parameters; rounding errors of the signal, as in another unit, then change nothing
CURVE_POINTS = 401  # of the response in the account of a result


# ---- families of spectra -----------------------------------------------------------------------------------------------


def _band(log_x: np.ndarray, place: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    apart = q * (log_x - place)
    share = special.expit(apart)
    return -np.logaddexp(0.0, apart), q * share, -apart * share


def _matern(log_x: np.ndarray, place: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bend = q * np.logaddexp(0.0, log_x - place)
    return -bend, q * special.expit(log_x - place), -bend


def _exponential(log_x: np.ndarray, place: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    apart = np.minimum(q * (log_x - place), 200.0)
    decay = np.exp(apart)
    return -decay, q * decay, -apart * decay


# log (s / a) and its derivatives by log t and by log q
FAMILIES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
    "band": _band,
    "matern": _matern,
    "exponential": _exponential,
}


class Energies(NamedTuple):
    """The energy of a signal in bins of the spectrum, in units of the noise variance, and the number of eigenvalues in each."""

    x: np.ndarray
    energy: np.ndarray
    n_eigenvalues: np.ndarray


@dataclass(frozen=True)
class FittedSpectrum:
    """A spectrum of one family: logarithms of level, place and steepness, and -2 log L."""

    family: str
    parameters: np.ndarray
    deviance: float

    def filter(self, x: np.ndarray) -> np.ndarray:
        """Return h = s / (1 + s) at eigenvalues x."""
        level, place, log_q = self.parameters
        return special.expit(level + FAMILIES[self.family](np.log(np.maximum(x, 1e-300)), place, np.exp(log_q))[0])


@dataclass(frozen=True)
class FittedFilter:
    """The mean of the filters of the families, in proportion to their likelihoods."""

    spectra: tuple[FittedSpectrum, ...]

    @property
    def shares(self) -> np.ndarray:
        """The part of each family."""
        deviance = np.array([one.deviance for one in self.spectra])
        likelihood = np.exp((deviance.min() - deviance) / 2)
        return likelihood / likelihood.sum()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return h at eigenvalues x."""
        return self.shares @ np.stack([one.filter(x) for one in self.spectra])


def fit_spectra(energies: Energies) -> FittedFilter:
    """Return the spectra of largest likelihood, one of each family."""
    return FittedFilter(tuple(_fit(name, energies) for name in FAMILIES))


class _Likelihood:
    """-2 log L of spectra of one family, as a function of the logarithms of level, place and steepness (k, 3)."""

    def __init__(self, family: str, energies: Energies) -> None:
        self.family, self.log_x, self.energy, self.count = (
            FAMILIES[family],
            np.log(energies.x),
            energies.energy,
            energies.n_eigenvalues,
        )
        lowest, highest = self.log_x[0], self.log_x[-1]
        self.least = np.array([-30.0, lowest - 3, np.log(0.3)])
        self.most = np.array([80.0, highest + 3, np.log(STEEPEST)])

    def starts(self) -> np.ndarray:
        """Return the best points of a grid over places and steepness, with the level that the energy above the noise gives."""
        grid = product(np.arange(self.log_x[0], self.log_x[-1] + 1, 0.7), LOGS_OF_STEEPNESS)
        places, logs = np.array(list(grid)).T[:, :, None]
        shapes = np.exp(self.family(self.log_x, places, np.exp(logs))[0])
        signal = max(float(np.sum(self.energy - self.count)), 1.0)
        level = np.log(signal / np.maximum(shapes @ self.count, 1e-6))
        points = np.clip(np.column_stack([level, places, logs]), self.least, self.most)
        return points[np.argsort(self.deviance(points), kind="stable")[:STARTS]]

    def parts(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return log(1 + s) (k, bins), s / (1 + s), and the derivatives of log s by log t and by log q."""
        shape, by_place, by_steepness = self.family(self.log_x, p[:, 1:2], np.exp(p[:, 2:3]))
        log_s = p[:, :1] + shape
        return np.logaddexp(0.0, log_s), special.expit(log_s), by_place, by_steepness

    def deviance(self, p: np.ndarray) -> np.ndarray:
        """Return -2 log L."""
        log_v = self.parts(p)[0]
        return log_v @ self.count + np.exp(-log_v) @ self.energy

    def step(self, p: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """Return points after a damped step of Fisher's scoring."""
        log_v, h, by_place, by_steepness = self.parts(p)
        slopes = np.stack([h, h * by_place, h * by_steepness], axis=1)
        gradient = slopes @ self.count - np.einsum("kpb,kb->kp", slopes, self.energy * np.exp(-log_v))
        information = np.einsum("kpb,kqb->kpq", slopes * self.count, slopes)
        scale = np.einsum("kpp->kp", information) + 1e-9
        information += damping[:, None, None] * np.eye(3) * scale[:, None, :] + 1e-12 * np.eye(3)
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        return np.clip(p - np.clip(step, -3.0, 3.0), self.least, self.most)


def _fit(name: str, energies: Energies) -> FittedSpectrum:
    """Return the spectrum of a family with the largest likelihood: Fisher's scoring from the best points of a grid, all side by side."""
    likelihood = _Likelihood(name, energies)
    p = likelihood.starts()
    value, damping = likelihood.deviance(p), np.full(len(p), 1e-2)
    for _ in range(STEPS):
        trial = likelihood.step(p, damping)
        trial_value = likelihood.deviance(trial)
        better = trial_value < value
        gain = np.where(better, value - trial_value, 0.0)
        p, value = np.where(better[:, None], trial, p), np.where(better, trial_value, value)
        damping = np.where(better, damping / 4, damping * 4)
        if np.all((gain < CLOSE) & (better | (damping > 1e4))):
            break
    best = np.round(p[np.argmin(value)], DECIMALS)
    return FittedSpectrum(name, best, float(likelihood.deviance(best[None])[0]))


# ---- the spectrum of a graph -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GraphSpectrum:
    """Bins of the spectrum of a graph, the moments of its probes, and the variance of the noise in each bin in units of `noise.variance`."""

    bins: SpectralBins
    moments: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, filters: Filters, degree: int) -> GraphSpectrum:
        """Return the spectrum as polynomials of this degree resolve it; the graph caches the latest of each degree."""
        frame, graph = filters.frame, filters.graph

        def make() -> GraphSpectrum:
            eps = filters.draw_probes(n_trace_probes(_work(graph)))
            rest = ComponentMeans.cached(graph, eps).removed(eps)
            moments = spectral_moments(frame, rest, degree).mean(axis=0)
            bins = SpectralBins.of(degree, frame.lambda_upper)
            return cls(bins, moments, bins.energies(moments[None])[0])

        kind = "" if filters.per_node is None else " per node"
        sizes = None if filters.per_node is None else on_host(filters.per_node).tobytes()
        name = f"spectrum {degree}{kind}{' on device' * on_device(filters.probes.eps)}"
        return graph.cached(name, make, version=(filters.law, filters.seed, sizes))


def n_trace_probes(work: int) -> int:
    """Return the number of probes for traces on a graph with as many nodes and stored edges: 2 to 64.

    >>> [n_trace_probes(work) for work in (1_000, 363_000, 4_000_000)]
    [64, 5, 2]
    """
    return int(np.clip(PROBE_WORK // max(work, 1), 2, 64))


def _work(graph: Graph) -> int:
    """Return the number of nodes and stored edges: what one step of the recurrence costs."""
    return graph.n + graph.adjacency.nnz


def fit_filter(observation: Observation, rest: Any) -> tuple[FittedFilter, np.ndarray, GraphSpectrum, Energies]:
    """Return the filter of a signal less its means, the coefficients of its polynomial, the spectrum of the graph and that of the signal.

    The degree is raised while the coefficients that it leaves out are too large. At the highest degree allowed they are damped.
    """
    filters, n = observation.filters, observation.graph.n
    typical = observation.noise.mean(n)
    highest = min(MOST_WORK / _work(observation.graph), HIGHEST_PER_ROOT * n**0.5)
    first, *others = DEGREES[_work(observation.graph) <= LITTLE_WORK :]
    degrees = [first, *(degree for degree in others if degree <= highest)]
    for degree in degrees:
        spectrum = GraphSpectrum.of(filters, degree)
        energy = spectrum.bins.energies(spectral_moments(filters.frame, rest, degree))[0]
        energies = _joined(spectrum.bins, energy / typical, spectrum.variance * observation.noise.variance / typical)
        fitted = fit_spectra(energies)
        points = chebyshev_points(4 * degree, upper=spectrum.bins.upper)
        coefficients = fft.dct(fitted(points), type=2) / len(points)
        coefficients[0] /= 2
        is_resolved = np.abs(coefficients[degree + 1 :]).sum() < UNRESOLVED
        if is_resolved and _edge(fitted, spectrum.bins) >= LEAST_BINS:
            break
    coefficients = coefficients[: degree + 1] if is_resolved else coefficients[: degree + 1] * jackson_damping(degree)
    matters = np.flatnonzero(np.abs(coefficients) > NEGLIGIBLE)
    return fitted, coefficients[: matters[-1] + 1 if len(matters) else 1], spectrum, energies


def _edge(fitted: FittedFilter, bins: SpectralBins) -> float:
    """Return where the filter falls below 1/2, in narrow bins from 0; a signal in few of them is not resolved."""
    below = np.flatnonzero(fitted(bins.x) < 0.5)
    return float(bins.ends[below[0]]) / 2 if len(below) else np.inf


def _joined(bins: SpectralBins, energy: np.ndarray, count: np.ndarray) -> Energies:
    """Return the energies in fewer bins: away from 0 several are put together."""
    first = len(bins.x) // BINS_PER_FIT
    starts = np.concatenate([np.arange(first), np.arange(first, len(bins.x), BINS_PER_FIT)])
    sizes = np.diff(np.append(starts, len(bins.x)))
    return Energies(np.add.reduceat(bins.x, starts) / sizes, np.add.reduceat(energy, starts), np.add.reduceat(count, starts))


# ---- the candidate -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Filtered(Candidates):
    """One column: the means of the components, and h(L) of the rest."""

    fitted: FittedFilter = field(repr=False)
    coefficients: np.ndarray = field(repr=False)
    filters: Filters = field(repr=False)
    energies: Energies = field(repr=False)

    @classmethod
    def of(cls, observation: Observation) -> Filtered:
        """Return the signal through the filter that is fitted to it."""
        filters, y = observation.filters, observation.y
        means = ComponentMeans.cached(observation.graph, y)
        fitted, coefficients, spectrum, energies = fit_filter(observation, means.removed(y[None]))
        freedom_of_means = means.means(observation.node_variance)[means.sizes > 0].sum()
        divergence = np.array([coefficients @ spectrum.moments[: len(coefficients)] + freedom_of_means])
        values = _applied(filters, coefficients, y[None])
        return cls(("filter",), values, divergence, fitted, coefficients, filters, energies, tuned=3 * CHARGE)

    def applied(self, rows: Any) -> Any:
        """Return signals (m, n) through this filter: the means of the components, and h(L) of the rest."""
        return _applied(self.filters, self.coefficients, rows)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the probes through the filter."""
        derivative.nodes = derivative.nodes + weights[0] * self.applied(self.filters.probes.eps)

    def description(self) -> dict[str, Any]:
        """Return the filter for people to read and to plot, with eigenvalues in the unit of the graph's Laplacian."""
        unit, upper = self.filters.frame.unit, self.filters.frame.lambda_upper
        x = upper * np.linspace(0.0, 1.0, CURVE_POINTS) ** 2
        families = {
            one.family: {"share": float(share), "level": level, "place": place / unit, "steepness": steepness}
            for one, share in zip(self.fitted.spectra, self.fitted.shares, strict=True)
            for level, place, steepness in [np.exp(one.parameters).tolist()]
        }
        return {
            "families": families,
            "eigenvalues": x / unit,
            "response": self.fitted(x),
            "degree": len(self.coefficients) - 1,
            "degrees_of_freedom": float(self.divergence[0]),
            "energies": {
                "eigenvalues": self.energies.x / unit,
                "energy": self.energies.energy,
                "n_eigenvalues": self.energies.n_eigenvalues,
            },
        }


def _applied(filters: Filters, coefficients: np.ndarray, rows: Any) -> Any:
    """Return signals (m, n): the means of the components, and a polynomial of the rest."""
    rest = ComponentMeans.cached(filters.graph, rows).removed(rows)
    return filtered(filters.frame, coefficients[None], rest)[:, 0] + (rows - rest)
