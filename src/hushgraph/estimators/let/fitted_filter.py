"""One filter h(L) y whose shape is fitted to the signal: the estimate of a Gaussian process on the graph, without eigenvectors.

The signal is modelled as a Gaussian process whose coefficient at an eigenvalue x of the Laplacian has the variance s(x), in units of
the noise variance. Three families of spectra s are fitted, each with a level, a place and a steepness:

    band          a / (1 + (x / t)^q)       for large q all below t and nothing above: band-limited signals
    matern        a (1 + x / t)^-q          the process of Matern's covariance
    exponential   a exp(-(x / t)^q)         for q = 1 diffused white noise

The energy E_b of y and the number N_b of eigenvalues in bins of the spectrum (`wavelets/spectral_energy.py`) give the likelihood,

    -2 log L(s) = sum_b N_b log(1 + s_b) + E_b / (1 + s_b),

so whole families are searched without another product with the Laplacian. The posterior mean of a process is the signal through the filter
h = s / (1 + s). The estimate is h(L) y, where h is the mean of the filters of the families, weighted by their likelihoods. The mean of each
large component passes unchanged. Steep edges near 0 need polynomials of a high degree: the degree starts low and is raised while the
polynomial is too inexact.

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
from hushgraph.estimators.let.filters import Filters, filtered
from hushgraph.estimators.let.observation import Observation
from hushgraph.graphs import ComponentMeans, Graph
from hushgraph.wavelets import ChebyshevFrame, SpectralBins, chebyshev_points, jackson_damping, spectral_moments

DEGREES = (256, 1024, 4096)  # tried in this order
LITTLE_WORK = 2**17  # nodes and stored edges, up to which the first degree is left out
MOST_WORK = 2**32  # nodes and stored edges times a degree that is tried after the first
MOST_DEGREE_PER_ROOT = 32.0  # degree over the root of the number of nodes: higher ones separate single eigenvalues
PROBE_WORK = 2**21  # nodes and stored edges times the number of probes for traces
LEAST_BINS_BELOW_EDGE = 24  # with fewer bins below the edge of a filter the degree is raised
LEAST_COEFFICIENT = 1e-5  # smaller coefficients at the high end of the polynomial are left out
LARGEST_ERROR = 0.02  # of the polynomial; with a larger one the degree is raised
MERGED_BINS = 4  # bins of the spectrum that are put together for the search, away from 0
N_STARTS = 4  # points of the grid, the best ones, from which the search starts
MOST_STEPS = 40  # of the search
LEAST_GAIN = 1e-4  # of -2 log L in a step; with less the search ends
PARAMETER_FREEDOM = 1.0  # degrees of freedom that fitting one of the three parameters costs
LOGS_OF_STEEPNESS = np.log([0.7, 1.5, 3.0, 8.0, 30.0])  # of the grid
LARGEST_STEEPNESS = 200.0
DECIMALS = 4  # of the logarithms of parameters, so that rounding errors, as in another unit of the signal, change nothing
CURVE_POINTS = 401  # of the response in the details of a result


# ---- families of spectra -----------------------------------------------------------------------------------------------


def _band_spectrum(log_x: np.ndarray, log_t: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    log_power = q * (log_x - log_t)
    share = special.expit(log_power)
    return -np.logaddexp(0.0, log_power), q * share, -log_power * share


def _matern_spectrum(log_x: np.ndarray, log_t: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    log_power = q * np.logaddexp(0.0, log_x - log_t)
    return -log_power, q * special.expit(log_x - log_t), -log_power


def _exponential_spectrum(log_x: np.ndarray, log_t: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    log_power = np.minimum(q * (log_x - log_t), 200.0)
    power = np.exp(log_power)
    return -power, q * power, -log_power * power


# functions of log x, log t and q that return log (s / a) and its derivatives by log t and by log q
FAMILIES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
    "band": _band_spectrum,
    "matern": _matern_spectrum,
    "exponential": _exponential_spectrum,
}


class Energies(NamedTuple):
    """The energy of a signal in bins of the spectrum, in units of the noise variance, and the number of eigenvalues in each."""

    x: np.ndarray
    energy: np.ndarray
    n_eigenvalues: np.ndarray


@dataclass(frozen=True)
class FittedSpectrum:
    """A spectrum of one family: the logarithms of level a, place t and steepness q, and -2 log L."""

    family: str
    parameters: np.ndarray
    deviance: float

    def filter(self, x: np.ndarray) -> np.ndarray:
        """Return h = s / (1 + s) at eigenvalues x."""
        level, place, log_q = self.parameters
        return special.expit(level + FAMILIES[self.family](np.log(np.maximum(x, 1e-300)), place, np.exp(log_q))[0])


@dataclass(frozen=True)
class FittedFilter:
    """The mean of the filters of the families, weighted by their likelihoods."""

    spectra: tuple[FittedSpectrum, ...]

    @property
    def shares(self) -> np.ndarray:
        """The weight of each family in the mean."""
        deviance = np.array([spectrum.deviance for spectrum in self.spectra])
        likelihood = np.exp((deviance.min() - deviance) / 2)
        return likelihood / likelihood.sum()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return h at eigenvalues x."""
        return self.shares @ np.stack([spectrum.filter(x) for spectrum in self.spectra])


def fit_spectra(energies: Energies) -> FittedFilter:
    """Return the spectra of largest likelihood, one of each family: Fisher's scoring from the best points of a grid.

    The points of all families take their steps at once: each step is a few operations on small arrays. A family whose points have arrived
    takes no further steps.
    """
    likelihood, names = _Likelihood(energies), tuple(FAMILIES)
    points = likelihood.at(names, np.stack([likelihood.starts(name) for name in names]))
    damping, moving = np.full(points.p.shape[:2], 1e-2), np.arange(len(names))
    for _ in range(MOST_STEPS):
        here = _Points(*(part[moving] for part in points))
        there = likelihood.at(tuple(names[k] for k in moving), likelihood.step(here, damping[moving]))
        is_better = there.deviance < here.deviance
        gain = np.where(is_better, here.deviance - there.deviance, 0.0)
        for part, new in zip(points, there, strict=True):
            part[moving] = np.where(is_better if new.ndim == 2 else is_better[..., None], new, part[moving])
        damping[moving] *= np.where(is_better, 0.25, 4.0)
        moving = moving[~np.all((gain < LEAST_GAIN) & (is_better | (damping[moving] > 1e4)), axis=1)]
        if not len(moving):
            break
    best = np.round(points.p[np.arange(len(names)), np.argmin(points.deviance, axis=1)], DECIMALS)
    deviance = likelihood.at(names, best[:, None]).deviance[:, 0]
    return FittedFilter(tuple(FittedSpectrum(name, best[k], float(deviance[k])) for k, name in enumerate(names)))


class _Points(NamedTuple):
    """Points p (families, k, 3): logarithms of level, place and steepness; there log s and log(1 + s) (families, k, bins), the derivatives of
    log s by log t and by log q, and -2 log L (families, k)."""

    p: np.ndarray
    log_s: np.ndarray
    log_v: np.ndarray
    by_place: np.ndarray
    by_steepness: np.ndarray
    deviance: np.ndarray


class _Likelihood:
    """-2 log L of spectra with these energies."""

    def __init__(self, energies: Energies) -> None:
        self.log_x, self.energy, self.count = np.log(energies.x), energies.energy, energies.n_eigenvalues
        self.least = np.array([-30.0, self.log_x[0] - 3, np.log(0.3)])
        self.most = np.array([80.0, self.log_x[-1] + 3, np.log(LARGEST_STEEPNESS)])

    def starts(self, name: str) -> np.ndarray:
        """Return the best points of a grid over place and steepness; the level is that of the energy that the noise does not explain."""
        grid = product(np.arange(self.log_x[0], self.log_x[-1] + 1, 0.7), LOGS_OF_STEEPNESS)
        places, logs = np.array(list(grid)).T[:, :, None]
        shapes = np.exp(FAMILIES[name](self.log_x, places, np.exp(logs))[0])
        signal = max(float(np.sum(self.energy - self.count)), 1.0)
        level = np.log(signal / np.maximum(shapes @ self.count, 1e-6))
        points = np.clip(np.column_stack([level, places, logs]), self.least, self.most)
        return points[np.argsort(self.at((name,), points[None]).deviance[0], kind="stable")[:N_STARTS]]

    def at(self, names: tuple[str, ...], p: np.ndarray) -> _Points:
        """Return everything that is needed at points of these families."""
        steepness = np.exp(p[:, :, 2:3])
        parts = [FAMILIES[name](self.log_x, p[f, :, 1:2], steepness[f]) for f, name in enumerate(names)]
        shape, by_place, by_steepness = (np.stack(part) for part in zip(*parts, strict=True))
        log_s = p[:, :, :1] + shape
        log_v = np.logaddexp(0.0, log_s)
        return _Points(p, log_s, log_v, by_place, by_steepness, log_v @ self.count + np.exp(-log_v) @ self.energy)

    def step(self, points: _Points, damping: np.ndarray) -> np.ndarray:
        """Return points after a damped step of Fisher's scoring."""
        h = special.expit(points.log_s)
        slopes = np.stack([h, h * points.by_place, h * points.by_steepness], axis=2)
        gradient = slopes @ self.count - np.einsum("fkpb,fkb->fkp", slopes, self.energy * np.exp(-points.log_v))
        information = np.einsum("fkpb,fkqb->fkpq", slopes * self.count, slopes)
        scale = np.einsum("fkpp->fkp", information) + 1e-9
        information += damping[..., None, None] * np.eye(3) * scale[..., None, :] + 1e-12 * np.eye(3)
        step = np.linalg.solve(information, gradient[..., None])[..., 0]
        return np.clip(points.p - np.clip(step, -3.0, 3.0), self.least, self.most)


# ---- the spectrum of a graph -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GraphSpectrum:
    """Bins of the spectrum of a graph, the mean moments of its probes, and the energy of the noise in each bin over `noise.variance`."""

    bins: SpectralBins
    moments: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, filters: Filters, degree: int) -> GraphSpectrum:
        """Return the spectrum as polynomials of this degree resolve it; the graph caches the latest of each degree."""
        frame, graph = filters.frame, filters.graph

        def make() -> GraphSpectrum:
            eps = filters.draw_probes(n_trace_probes(_work(graph)))
            centered = ComponentMeans.cached(graph, eps).without_means(eps)
            return cls.of_moments(spectral_moments(frame, centered, degree), degree, frame.lambda_upper)

        kind = "" if filters.per_node is None else " per node"
        sizes = None if filters.per_node is None else on_host(filters.per_node).tobytes()
        name = f"spectrum {degree}{kind}{' on device' * on_device(filters.probes.eps)}"
        return graph.cached(name, make, version=(filters.law, filters.seed, sizes))

    @classmethod
    def of_moments(cls, moments: np.ndarray, degree: int, upper: float) -> GraphSpectrum:
        """Return the spectrum from the moments of each probe, (probes, 2 degree + 1)."""
        mean, bins = moments.mean(axis=0), SpectralBins.of(degree, upper)
        return cls(bins, mean, bins.energies(mean[None])[0])


def n_trace_probes(work: int) -> int:
    """Return the number of probes for traces, 2 to 64, given the number of nodes and stored edges.

    >>> [n_trace_probes(work) for work in (1_000, 363_000, 4_000_000)]
    [64, 5, 2]
    """
    return int(np.clip(PROBE_WORK // max(work, 1), 2, 64))


def _work(graph: Graph) -> int:
    """Return the number of nodes and stored edges: what one step of the recurrence costs."""
    return graph.n + graph.adjacency.nnz


class FilterFit(NamedTuple):
    """A filter, the coefficients of its polynomial, the spectrum of the graph, and that of the signal."""

    fitted: FittedFilter
    coefficients: np.ndarray
    spectrum: GraphSpectrum
    energies: Energies


def begin_filter(observation: Observation) -> None:
    """Let a GPU compute what the fit of a filter begins with. The host can fit the filter while the GPU has other work."""
    observation.moments(_degrees(observation)[0])


def fit_filter(observation: Observation) -> FilterFit:
    """Return the filter of a signal less its means."""

    def spectra(degree: int) -> tuple[np.ndarray, GraphSpectrum]:
        spectrum = GraphSpectrum.of(observation.filters, degree)
        return observation.moments(degree).get(), spectrum

    noise = observation.noise
    return fit_by_moments(spectra, _degrees(observation), noise.variance, noise.mean(observation.graph.n))


def _degrees(observation: Observation) -> list[int]:
    """Return the degrees that are tried on the graph of a signal."""
    return filter_degrees(observation.graph.n, _work(observation.graph))


def filter_degrees(n: int, work: int) -> list[int]:
    """Return the degrees that are tried on a graph of n nodes, in this order; `work` is the number of nodes and stored edges.

    >>> filter_degrees(1_000, 4_000), filter_degrees(200_000, 1_000_000), filter_degrees(10**7, 4 * 10**7)
    ([1024], [256, 1024, 4096], [256])
    """
    first, *others = DEGREES[work <= LITTLE_WORK :]
    highest = min(MOST_WORK / work, MOST_DEGREE_PER_ROOT * n**0.5)
    return [first, *(degree for degree in others if degree <= highest)]


def fit_by_moments(
    spectra: Callable[[int], tuple[np.ndarray, GraphSpectrum]], degrees: list[int], variance: float, typical: float
) -> FilterFit:
    """Return the filter of a signal from the moments (1, 2 degree + 1) of the signal and the spectrum that `spectra` returns for a degree.

    `typical` is the mean variance of the noise, and `variance` the unit of the traces. The degree is raised while the coefficients that
    it leaves out are too large. If they still are at the highest degree, the others are damped.
    """
    for degree in degrees:
        moments, spectrum = spectra(degree)
        energy = spectrum.bins.energies(moments)[0]
        energies = _merged_energies(spectrum.bins, energy / typical, spectrum.variance * variance / typical)
        fitted = fit_spectra(energies)
        points = chebyshev_points(4 * degree, upper=spectrum.bins.upper)
        coefficients = fft.dct(fitted(points), type=2) / len(points)
        coefficients[0] /= 2
        is_resolved = np.abs(coefficients[degree + 1 :]).sum() < LARGEST_ERROR
        if is_resolved and _bins_below_edge(fitted, spectrum.bins) >= LEAST_BINS_BELOW_EDGE:
            break
    coefficients = coefficients[: degree + 1] if is_resolved else coefficients[: degree + 1] * jackson_damping(degree)
    large = np.flatnonzero(np.abs(coefficients) > LEAST_COEFFICIENT)
    return FilterFit(fitted, coefficients[: large[-1] + 1 if len(large) else 1], spectrum, energies)


def _bins_below_edge(fitted: FittedFilter, bins: SpectralBins) -> float:
    """Return how many bins of the least width lie between 0 and the edge, where the filter falls below 1/2."""
    is_low = np.flatnonzero(fitted(bins.x) < 0.5)
    return float(bins.ends[is_low[0]]) / 2 if len(is_low) else np.inf


def _merged_energies(bins: SpectralBins, energy: np.ndarray, count: np.ndarray) -> Energies:
    """Return the energies in fewer bins: away from 0 several are put together."""
    n_single = len(bins.x) // MERGED_BINS
    starts = np.concatenate([np.arange(n_single), np.arange(n_single, len(bins.x), MERGED_BINS)])
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
        fitted, coefficients, spectrum, energies = fit_filter(observation)
        freedom_of_means = observation.mean_variances(means)[means.sizes > 0].sum()
        divergence = np.array([coefficients @ spectrum.moments[: len(coefficients)] + freedom_of_means])
        values = _filter_signals(filters, coefficients, y[None])
        return cls(("filter",), values, divergence, fitted, coefficients, filters, energies, tuned=3 * PARAMETER_FREEDOM)

    def filter_signals(self, rows: Any) -> Any:
        """Return signals (m, n) through this filter: the means of the components, and h(L) of the rest."""
        return _filter_signals(self.filters, self.coefficients, rows)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the probes through the filter."""
        derivative.nodes = derivative.nodes + weights[0] * self.filter_signals(self.filters.probes.eps)

    def description(self) -> dict[str, Any]:
        """Return the filter for people to read and to plot."""
        return described(self.fitted, self.energies, len(self.coefficients) - 1, float(self.divergence[0]), self.filters.frame)


def described(fitted: FittedFilter, energies: Energies, degree: int, freedom: float, frame: ChebyshevFrame) -> dict[str, Any]:
    """Return a filter for people to read and to plot, with eigenvalues in the unit of the graph's Laplacian."""
    unit, x = frame.unit, frame.lambda_upper * np.linspace(0.0, 1.0, CURVE_POINTS) ** 2
    families = {
        one.family: {"share": float(share), "level": level, "place": place / unit, "steepness": steepness}
        for one, share in zip(fitted.spectra, fitted.shares, strict=True)
        for level, place, steepness in [np.exp(one.parameters).tolist()]
    }
    return {
        "families": families,
        "eigenvalues": x / unit,
        "response": fitted(x),
        "degree": degree,
        "degrees_of_freedom": freedom,
        "energies": {"eigenvalues": energies.x / unit, "energy": energies.energy, "n_eigenvalues": energies.n_eigenvalues},
    }


def _filter_signals(filters: Filters, coefficients: np.ndarray, rows: Any) -> Any:
    """Return the means of signals (m, n) over the components, plus a polynomial of L times the rest."""
    centered = ComponentMeans.cached(filters.graph, rows).without_means(rows)
    return filtered(filters.frame, coefficients[None], centered)[:, 0] + (rows - centered)
