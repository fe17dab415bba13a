"""`estimate_sigma`: the noise level of a signal, from the flat floor of its spectrum and from the nodes where it is quiet.

A signal only adds to energies, so each of two estimates is about sigma or too high:

- the **floor of the spectrum** (`noise_floor`) is right for smooth signals, whatever their size, and for random fields;
- the **core of local energies** (`noise_core`), of the values and of several bands, is right for signals that are rough at some nodes and
  quiet at others: spikes, counts, borders of patches.

The core is taken where some nodes are rough or where it is clearly lower, the floor otherwise. A signal that is white noise itself, on all
nodes, cannot be told from noise.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import namespace, on_device, on_host, placed_like
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import checked_real_array
from hushgraph.core import block_dots, block_sum, offsets_of, shifted
from hushgraph.graphs import ComponentMeans, Graph, as_graph
from hushgraph.wavelets.chebyshev import chebyshev_coefficients
from hushgraph.wavelets.frame import ChebyshevFrame, Frame, chebyshev_frame
from hushgraph.wavelets.monte_carlo import monte_carlo_weights, probes, scramble
from hushgraph.wavelets.noise_core import core_scales
from hushgraph.wavelets.noise_floor import Floor, flat_floor, merged_bins
from hushgraph.wavelets.spectral_energy import SIGNALS_AT_ONCE, SpectralBins, spectral_moments
from hushgraph.wavelets.transform import checked_frame_of, engine, forward
from hushgraph.wavelets.weight_smoothing import checked_weight_size, smooth_weights

LARGE_GRAPH = 200_000  # nodes
DEGREE, LARGE_DEGREE = 100, 40  # of the polynomials of moments and bands; the second on large graphs
COARSE_DEGREE = 20  # of the moments that place the bands
BANDS = ((0.1, 1.0), (0.5, 1.0), (0.25, 0.75))  # from which part of the ascending eigenvalues to which
BAND_SLOPE = 0.1  # part of the eigenvalues over which a band rises or falls
DIFFUSION_STEPS = (2, 8)  # of the two diffusions that make local means of energies
PROBE_WORK, MOST_PROBES = 24_000, 16  # nodes times probes for the number of eigenvalues and the weights of the bands
N_COARSE_PROBES = 2  # probes that place the bands, at most
MOST_SAMPLED = 2**15  # local energies of each kind, of all signals together
LEAST_SAMPLED = 256  # of each signal
LEAST_NODES = 30  # with fewer nodes, none can be told to be quiet
LEAST_ENERGY = 1e-12  # of noise in a band
UNSURE = 0.1  # standard error, as part of sigma, above which the estimate is not sure
MODEL_ERROR = 0.015  # part of sigma by which the core may be wrong because energies of rough nodes do not follow the assumed law
ROUGHNESS_ERROR = 0.4  # the same because few nodes are quiet: this times the share of rough nodes
DISAGREEMENT = 0.15  # part of the difference between core and floor that is added to the standard error of the core
CLEAR_ERRORS = 3.0  # standard errors by which the core is clearly below the floor
BOUND_ERRORS = 2.0  # standard errors that are added to the estimate of a scale to make an upper bound
NORMAL_MEDIAN = 0.6744897501960817  # of |x| for a standard normal x


class NoiseLevel(float):
    """A noise level: a number that also says how sure it is.

    Parameters
    ----------
    sigma : float
        The noise level.
    se : float
        Its standard error.
    reason : str
        Where it comes from.
    is_sure : bool
        Whether the standard error is small; `estimate_sigma` warns if it is not.

    Examples
    --------
    >>> level = NoiseLevel(2.0, se=0.04, reason="the spectrum has a flat floor")
    >>> level, level + 1, level.in_words
    (2.0, 3.0, '2, give or take 0.04: the spectrum has a flat floor')
    """

    __slots__ = ("_is_sure", "_reason", "_se")
    _se: float
    _reason: str
    _is_sure: bool

    def __new__(cls, sigma: float, *, se: float, reason: str, is_sure: bool = True) -> NoiseLevel:
        level = super().__new__(cls, sigma)
        level._se, level._reason, level._is_sure = float(se), reason, is_sure
        return level

    @property
    def se(self) -> float:
        """Standard error of the noise level."""
        return self._se

    @property
    def reason(self) -> str:
        """Where the noise level comes from."""
        return self._reason

    @property
    def is_sure(self) -> bool:
        """Whether the standard error is small: at most a tenth of the noise level, or what is usual on a graph of this size."""
        return self._is_sure

    @property
    def in_words(self) -> str:
        """The noise level, its standard error and where it comes from, as text."""
        return f"{float(self):.4g}, give or take {self._se:.2g}: {self._reason}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_noise_level, (float(self), self._se, self._reason, self._is_sure)


def _read_noise_level(sigma: float, se: float, reason: str, is_sure: bool) -> NoiseLevel:
    return NoiseLevel(sigma, se=se, reason=reason, is_sure=is_sure)


def estimate_sigma(graph: Graph, noisy: Any, *, frame: Frame | None = None, weights: npt.ArrayLike | None = None) -> NoiseLevel:
    """Return an estimate of the standard deviation of the noise, with its standard error.

    Noise adds the same energy to every eigenvector of the Laplacian; a signal adds most of its energy to few eigenvectors, or to few
    nodes. The estimate is the flat floor of the spectrum or, where that is lower, the level around the nodes where the signal is quiet. A
    signal only adds energy, so the estimate is too high rather than too low where signal and noise look alike; its standard error is then
    large, and a warning says so. Use the known sigma if there is one.

    Parameters
    ----------
    graph : Graph
        The graph.
    noisy : array_like, mapping or table, shape (n,) or (n, m)
        One noisy signal, or m signals with the same noise level.
    frame : ChebyshevFrame or ExactFrame, optional
        A frame of the graph. Each of its scales then gives two upper bounds: the median of |F| / sqrt(weights) divided by 0.6745, and the
        root mean square, each plus two of its standard errors.
    weights : array_like, shape (n_scales, n), optional
        Weights of the frame, above 0, for these bounds; smoothed Monte-Carlo weights by default.

    Returns
    -------
    NoiseLevel
        The estimate: a float with the attributes `se`, its standard error, `is_sure`, and `in_words`, which says where it comes from.

    Raises
    ------
    InputError
        If the estimate is impossible: no scale carries noise, or most local energies are 0.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(40, 40)
    >>> sigma = hg.estimate_sigma(graph, np.random.default_rng(0).normal(7.0, 2.0, graph.n))
    >>> 1.9 < sigma < 2.1, 0 < sigma.se < 0.1
    (True, True)
    """
    level = noise_level_of(graph, noisy, frame=frame, weights=weights)
    if not level.is_sure:
        warnings.warn(Sentence("sigma was estimated as {}; pass {sigma=} if you know it", level.in_words), stacklevel=2)
    return level


def noise_level_of(graph: Graph, noisy: Any, *, frame: Frame | None = None, weights: npt.ArrayLike | None = None) -> NoiseLevel:
    """Return `estimate_sigma` without its warning."""
    graph = as_graph(graph)
    if graph.n == 0:
        msg = "sigma cannot be estimated: the graph has no nodes"
        raise InputError(msg)
    if frame is not None:
        checked_frame_of(graph, frame)
    values = graph.align(noisy)
    planes = namespace(values).ascontiguousarray(values[None] if values.ndim == 1 else values.T, dtype=np.float64)
    bound = np.inf
    if frame is not None or weights is not None:
        bound = _bound_of_scales(graph, planes, chebyshev_frame(graph) if frame is None else frame, weights)
    level = _level_without_edges(planes) if graph.n_edges == 0 else _level_with_edges(graph, planes)
    if bound < level:
        reason = "a scale of the frame has no more energy"
        level = NoiseLevel(bound, se=max(level.se, float(level) - bound), reason=reason, is_sure=level.is_sure)
    return level


# ---- a graph with edges ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """What all estimates on one graph share, from random probes.

    The narrow `bins` are merged into wider ones, which begin at `starts`; `x` are the mean eigenvalues in them, `counts` how many.
    `coefficients` are the polynomials of the bands; `weights` are the variances of noise in the bands, (bands, n), and `traces` the sums of
    variances, of the signal itself first. Local energies are measured at the nodes `sample`: those of noise have the means `noise_means`
    and the degrees of freedom `freedom`, (1 + bands, diffusions).
    """

    frame: ChebyshevFrame
    bins: SpectralBins
    starts: np.ndarray
    x: np.ndarray
    counts: np.ndarray
    coefficients: np.ndarray
    weights: Any
    traces: np.ndarray
    sample: Any
    noise_means: np.ndarray
    freedom: np.ndarray
    n_probes: int

    @classmethod
    def of(cls, graph: Graph, like: Any) -> _Spectrum:
        """Return the spectrum of a graph, computed on the machine (CPU or GPU) of the array `like`."""
        frame = chebyshev_frame(graph, degree=1)
        count = int(np.clip(PROBE_WORK // graph.n, 1, MOST_PROBES))
        eps = _centered(graph, placed_like(probes(graph.n, count, law="gaussian"), like))
        rank = graph.n - int(graph.components.max()) - 1
        eps *= placed_like(np.sqrt(rank / block_dots(eps, eps))[:, None], eps)  # their energy is known, so it need not be random
        degree = DEGREE if graph.n < LARGE_GRAPH else LARGE_DEGREE
        coefficients = _band_coefficients(frame, eps[:N_COARSE_PROBES], degree)
        bands, moments = _bands_and_moments(frame, coefficients, eps)
        bins = SpectralBins.of(degree, frame.lambda_upper)
        density = bins.energies(moments).mean(axis=0)
        density *= rank / density.sum()
        starts = merged_bins(density)
        counts = np.add.reduceat(density, starts)
        weights = np.maximum(smooth_weights(graph, (bands**2).mean(axis=0)), LEAST_ENERGY)
        sample = placed_like(_sample(graph), eps)
        noise = _local_energies(frame, eps, bands, weights, sample)
        noise_means = np.maximum(np.mean(noise, axis=(0, 3)), LEAST_ENERGY)
        return cls(
            frame=frame,
            bins=bins,
            starts=starts,
            x=np.add.reduceat(density * bins.x, starts) / counts,
            counts=counts,
            coefficients=coefficients,
            weights=weights,
            traces=np.array([rank, *block_sum(weights.T)]),
            sample=sample,
            noise_means=noise_means,
            freedom=2 / np.maximum(np.var(noise, axis=(0, 3)) / noise_means**2, 0.02),
            n_probes=len(eps),
        )


def _band_coefficients(frame: ChebyshevFrame, eps: Any, degree: int) -> np.ndarray:
    """Return the polynomials of the bands. Where a band begins and ends is given by the share of the eigenvalues below."""
    bins = SpectralBins.of(COARSE_DEGREE, frame.lambda_upper)
    density = bins.energies(spectral_moments(frame, eps, COARSE_DEGREE)).mean(axis=0)
    position = (np.cumsum(density) - density / 2) / density.sum()

    def shapes(x: np.ndarray) -> np.ndarray:
        share_below = np.interp(x, bins.x, position)
        return np.array([_root_of_band(share_below, *band) for band in BANDS])

    return chebyshev_coefficients(shapes, degree, upper=bins.upper, damping="jackson")


def _level_with_edges(graph: Graph, planes: Any) -> NoiseLevel:
    """Return the noise level of signals in rows."""
    planes = _centered(graph, planes)
    largest = float(abs(planes).max())
    if not largest > 0:
        raise _no_noise_error()
    unit = 2.0 ** np.floor(np.log2(largest))  # no square overflows
    planes = planes / unit
    where = " on device" if on_device(planes) else ""
    spectrum = graph.cached(f"spectrum of noise{where}", lambda: _Spectrum.of(graph, planes))
    moments, local = [], []
    n_sampled = max(MOST_SAMPLED // len(planes), LEAST_SAMPLED)
    for start in range(0, len(planes), SIGNALS_AT_ONCE):
        group = planes[start : start + SIGNALS_AT_ONCE]
        bands, group_moments = _bands_and_moments(spectrum.frame, spectrum.coefficients, group)
        moments.append(group_moments)
        local.append(_local_energies(spectrum.frame, group, bands, spectrum.weights, spectrum.sample[:n_sampled]))
    energies = spectrum.bins.energies(np.concatenate(moments)).sum(axis=0)
    floor = flat_floor(spectrum.x, len(planes) * spectrum.counts, np.add.reduceat(energies, spectrum.starts))
    level, has_rough_nodes = _level_of_floor(graph, floor, len(planes)), False
    core = level
    if graph.n >= LEAST_NODES:
        core, has_rough_nodes = _level_of_core(np.concatenate(local), spectrum, len(planes))
    if has_rough_nodes:
        difference = max(float(core) - floor.sigma, 0.0)
        level = NoiseLevel(core, reason=core.reason, se=float(np.hypot(core.se, DISAGREEMENT * difference)))
    elif float(core) + CLEAR_ERRORS * core.se < floor.sigma:
        level = core
    is_sure = level.se <= _usual_error(planes.size) * level
    return NoiseLevel(unit * level, se=unit * level.se, reason=level.reason, is_sure=is_sure)


def _usual_error(n_values: int) -> float:
    """Return the standard error, as part of sigma, that is not worth a warning: with few values no estimate is better."""
    return UNSURE + 1.5 / float(np.sqrt(2 * n_values))


def _level_of_floor(graph: Graph, floor: Floor, n_signals: int) -> NoiseLevel:
    """Return the floor of the spectrum as a noise level; if its standard error is large, the reason says why."""
    n_linked = int(np.count_nonzero(graph.degrees))
    reason = "the spectrum falls to its end, so its floor is uncertain"
    if floor.se <= _usual_error(n_signals * graph.n) * floor.sigma:
        reason = "the flat floor of the spectrum"
    elif n_linked < graph.n / 2 and floor.se <= _usual_error(n_signals * n_linked) * floor.sigma:
        reason = f"only {n_linked:,} of {graph.n:,} nodes have neighbors, and the others say nothing about the noise"
    return NoiseLevel(floor.sigma, se=floor.se, reason=reason)


def _level_of_core(local: np.ndarray, spectrum: _Spectrum, n_signals: int) -> tuple[NoiseLevel, bool]:
    """Return the noise level around the nodes where the signal is quiet, and whether the signal is rough around others.

    The level is the least one over bands and diffusions. Whether the signal is rough is seen in fine bands only, because a smooth signal
    has more energy at some nodes than at others, too.
    """
    n_diffusions = len(DIFFUSION_STEPS)
    # a tiny graph has empty bands
    has_energy = np.repeat(spectrum.traces >= np.minimum(1.0, 0.5 * spectrum.traces[0]), n_diffusions)
    is_fine = np.repeat(np.arange(len(spectrum.traces)) > 1, n_diffusions)[has_energy]
    rows = np.moveaxis(local / spectrum.noise_means[:, :, None], 0, 2).reshape(spectrum.freedom.size, -1)[has_energy]
    if (np.median(rows, axis=1) <= 1e-18 * rows.mean(axis=1)).any():
        raise _no_noise_error()
    freedom, traces = spectrum.freedom.ravel()[has_energy], n_signals * np.repeat(spectrum.traces, n_diffusions)[has_energy]
    variances, shares, gains = core_scales(rows, freedom, np.minimum(traces / freedom, rows.shape[1]))
    sigmas = np.sqrt(variances)
    errors = sigmas * 1.2 * np.sqrt((1 + n_signals / spectrum.n_probes) / (2 * np.maximum(traces, 1.0) * shares))
    least = int(np.argmin(sigmas + errors))
    rough_share, reason, model_error = 1 - float(shares[least]), "the energy in the quietest part of the spectrum", 0.0
    if rough_share > 0:
        reason = f"the level around quiet nodes; the signal is rough around {100 * rough_share:.0f} % of the nodes"
        model_error = (MODEL_ERROR + ROUGHNESS_ERROR * rough_share) * sigmas[least]
    level = NoiseLevel(sigmas[least], se=float(np.hypot(errors[least], model_error)), reason=reason)
    return level, bool((gains[is_fine] > 0).any())


def _no_noise_error() -> InputError:
    msg = "the estimated sigma is 0: over half the finest coefficients vanish, so the signal looks noise-free; pass {sigma=}"
    return InputError(Sentence(msg))


def _root_of_band(share_below: np.ndarray, start: float, end: float) -> np.ndarray:
    """Return the root of a band that rises and falls linearly in the share of the eigenvalues below."""
    rise = np.clip((share_below - start) / BAND_SLOPE + 0.5, 0, 1)
    fall = np.clip((end - share_below) / BAND_SLOPE + 0.5, 0, 1) if end < 1 else 1.0
    return np.sqrt(rise * fall)


def _centered(graph: Graph, planes: Any) -> Any:
    """Return signals without their means over connected components, so that eigenvalues of 0 have no energy."""
    if not graph.components.any():
        return planes - placed_like((block_sum(planes.T) / graph.n)[:, None], planes)
    # on the CPU, where means of small components are exact to the last bits
    return placed_like(ComponentMeans.of(graph, large=1).without_means(on_host(planes)), planes)


def _bands_and_moments(frame: ChebyshevFrame, coefficients: np.ndarray, planes: Any) -> tuple[Any, np.ndarray]:
    """Return the bands of signals, (m, bands, n), and their moments, (m, 2 degree + 1)."""
    kernels, layout = engine(frame, planes)
    count = 2 * coefficients.shape[1] - 1
    bands, moments = kernels.forward_with_moments(layout, coefficients, planes, frame.laplacian_scale, n_moments=count)
    return bands, on_host(moments).astype(np.float64)


def _local_energies(frame: ChebyshevFrame, planes: Any, bands: Any, weights: Any, sample: Any) -> np.ndarray:
    """Return local means of energies at the nodes `sample`, (m, 1 + bands, diffusions, nodes).

    The energies are squared distances of the signals from their medians, and squares of the bands in units of those of noise. Their local
    means are the diffusions (I - L / upper)^steps.
    """
    kernels, layout = engine(frame, planes)
    energies = namespace(planes).empty((len(planes), 1 + len(weights), planes.shape[1]))
    energies[:, 0] = (planes - namespace(planes).median(planes[:, sample], axis=1)[:, None]) ** 2
    np.divide(bands**2, weights, out=energies[:, 1:])
    coefficients = np.zeros((len(DIFFUSION_STEPS), max(DIFFUSION_STEPS) + 1))
    for row, steps in zip(coefficients, DIFFUSION_STEPS, strict=True):
        row[: steps + 1] = chebyshev_coefficients(partial(_diffusion, steps=steps), steps, upper=1.0)
    rows = energies.reshape(-1, planes.shape[1])
    means = kernels.forward(layout, coefficients, rows, frame.laplacian_scale)
    return np.abs(on_host(means[:, :, sample])).reshape(*energies.shape[:2], len(DIFFUSION_STEPS), -1)


def _diffusion(x: np.ndarray, *, steps: int) -> np.ndarray:
    return (1 - x) ** steps


def _sample(graph: Graph) -> np.ndarray:
    """Return nodes with edges, in random order, about MOST_SAMPLED of them: an isolated node has no energy in the bands."""
    linked = np.flatnonzero(graph.degrees > 0)
    keys = scramble(linked.astype(np.uint64))
    if len(linked) > MOST_SAMPLED:
        is_chosen = keys < np.uint64(2**64 * MOST_SAMPLED / len(linked))
        linked, keys = linked[is_chosen], keys[is_chosen]
    return linked[np.argsort(keys, kind="stable")]


# ---- without edges, with a frame ---------------------------------------------------------------------------------------


def _level_without_edges(planes: Any) -> NoiseLevel:
    """Return the noise level by the median of |y|: every signal looks like noise on a graph without edges."""
    sigma = float(namespace(planes).median(abs(shifted(planes, -offsets_of(planes))))) / NORMAL_MEDIAN
    if not sigma > 0:
        raise _no_noise_error()
    return NoiseLevel(sigma, se=sigma, reason="the graph has no edges, so signal and noise look alike", is_sure=False)


def _bound_of_scales(graph: Graph, planes: Any, frame: Frame, weights: npt.ArrayLike | None) -> float:
    """Return the least upper bound of sigma from the scales of a frame that carry at least 2 % of the trace."""
    if weights is None:
        weights = smooth_weights(graph, monte_carlo_weights(frame, like=planes))
    weights = checked_real_array("weights", weights)
    if weights.shape != (frame.n_scales, graph.n):
        expected = f"shape {(frame.n_scales, graph.n)}, as monte_carlo_weights of the same frame returns them"
        raise InputError.about(argument="weights", verb="have", expected=expected, got=weights.shape)
    checked_weight_size(weights)
    usable = np.flatnonzero(block_sum(weights.T) / graph.n >= 0.02)[::-1]
    if len(usable) == 0:
        msg = "sigma cannot be estimated: the graph has no scale that carries noise (is it empty?); pass {sigma=}"
        raise InputError(Sentence(msg))
    if not min(float(weights[j].min()) for j in usable[:2]) > 0:
        expected = "above 0 at every node, in the finest scales at least"
        raise InputError.about(argument="weights", expected=expected, hint="pass smooth_weights(graph, weights)")
    bands = forward(frame, shifted(planes, -offsets_of(planes)))
    is_linked = graph.degrees > 0 if graph.n_edges else np.ones(graph.n, dtype=bool)  # an isolated node has no fine coefficients
    linked = placed_like(np.flatnonzero(is_linked), bands)
    return min(_upper_sigma(bands[:, j], weights[j], linked) for j in usable if weights[j].min() > 0)


def _upper_sigma(band: Any, weights: Any, linked: Any) -> float:
    """Return an upper bound of sigma from one scale: the smaller of two estimates, by median and by energy, plus BOUND_ERRORS standard errors.

    The standard errors are those of as many independent values as the scale has degrees of freedom: 1.17 and 0.71 over their root.
    """
    median = float(np.median(np.abs(band[:, linked]) / np.sqrt(weights[linked]))) / NORMAL_MEDIAN
    freedom = float(block_sum(weights)) * len(band)
    energy = float(np.sqrt(block_sum(np.square(band).sum(axis=0)) / freedom))
    return min(median * (1 + BOUND_ERRORS * 1.167 / np.sqrt(freedom)), energy * (1 + BOUND_ERRORS * np.sqrt(0.5 / freedom)))
