"""The spectral graph wavelet tight frame { sqrt(psi_j)(L) delta_i } (paper, Sec. II-A and II-B).

A ChebyshevFrame holds polynomials rho_j close to sqrt(psi_j) and needs no eigenvectors; an ExactFrame holds the eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import linalg

from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import checked_count, checked_number, choose, shown
from hushgraph.core import orderless_sum
from hushgraph.graphs import Graph, LaplacianKind, Spectrum, as_graph
from hushgraph.wavelets.chebyshev import chebyshev_coefficients, chebyshev_values, checked_degree, frame_bounds
from hushgraph.wavelets.partition_of_unity import (
    Plateau,
    checked_base,
    checked_low_scales,
    count_scales,
    last_step_below,
    partition,
)

Damping = Literal["jackson"]
Kernel = Callable[[np.ndarray], npt.ArrayLike]
MEAN_DEGREE = 3.0  # that of street networks, for which the paper's bands were made: weighted graphs are rescaled to it
MAX_DEGREE = 2000
MAX_EXACT_NODES = 20_000
MAX_SCALES = 64


@dataclass(frozen=True)
class Bands:
    """The choice of band functions: everything but the graph."""

    n_scales: int
    base: float
    plateau: Plateau
    c: float | None
    low_scales: int

    def filters(self, x: npt.ArrayLike) -> np.ndarray:
        """Return rho_j(x) = sqrt(psi_j(x)), shape (n_scales, len(x))."""
        psi = partition(x, n_scales=self.n_scales, plateau=self.plateau, base=self.base, c=self.c, low_scales=self.low_scales)
        return np.sqrt(np.maximum(psi, 0.0))


@dataclass(frozen=True)
class KernelBands:
    """Functions of the eigenvalues that the caller gave, as they are, or divided by the root of the sum of their squares (`is_tight`)."""

    kernels: tuple[Kernel, ...] = field(repr=False)
    is_tight: bool
    n_scales: int
    base: float = 2.0  # of the ticks on a logarithmic axis
    low_scales: int = 0
    plateau: str = "custom"

    def filters(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the functions at the points x, shape (n_scales, len(x))."""
        points = np.asarray(x, dtype=float)
        values = np.stack([self._values(j, points) for j in range(self.n_scales)])
        if not self.is_tight:
            return values
        norm = np.sqrt(np.sum(values**2, axis=0))
        if (norm <= 1e-6 * norm.max(initial=0.0)).any():
            place, hint = float(points[norm.argmin()]), "add one that covers it, or leave tight=True out"
            text = f"with tight=True some kernel must differ from 0 at every eigenvalue, and all are 0 or nearly 0 at {place:.3g}; {hint}"
            raise InputError.about(
                argument="kernels", verb="cover", expected="every eigenvalue", got=f"none at {place:.3g}", text=text
            )
        return values / norm

    def _values(self, j: int, points: np.ndarray) -> np.ndarray:
        values = np.asarray(self.kernels[j](points))
        if values.shape != points.shape or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            expected = f"one finite real number for each of its {points.shape[0]} eigenvalues"
            got = f"dtype {values.dtype} and shape {values.shape}"
            raise InputError.about(argument=f"kernel number {j}", verb="return", expected=expected, got=got)
        return values.astype(float)


@dataclass(frozen=True, eq=False)
class ChebyshevFrame:
    """A frame of polynomials; `chebyshev_frame` and `custom_frame` build it.

    Parameters
    ----------
    graph : Graph
        The graph.
    laplacian : {"combinatorial", "normalized", "random_walk"}
        The Laplacian L.
    bands : Bands or KernelBands
        The choice of band functions.
    unit : float
        Factor on L that gives weighted graphs the mean degree 3.
    lambda_upper : float
        Upper bound on the eigenvalues of unit L: the right end of the interval of the polynomials.
    degree : int
        Degree of the polynomials.
    damping : {"jackson", None}
        Damping of the coefficients.
    coefficients : numpy.ndarray
        Chebyshev coefficients of rho_j on [0, lambda_upper], damping included, shape (n_scales, degree + 1).
    """

    graph: Graph
    laplacian: LaplacianKind
    bands: Bands | KernelBands
    unit: float
    lambda_upper: float
    degree: int
    damping: Damping | None
    coefficients: np.ndarray = field(repr=False)

    @property
    def n_scales(self) -> int:
        """Number of scales, J + 1."""
        return self.bands.n_scales

    @property
    def base(self) -> float:
        """Ratio b between scales."""
        return self.bands.base

    @cached_property
    def lambda_max(self) -> float:
        """Largest eigenvalue of the Laplacian, to 1e-3, in the unit of the frame."""
        return self.unit * self.graph.spectrum(self.laplacian).lambda_max

    @property
    def laplacian_scale(self) -> float:
        """Factor on L that maps its eigenvalues into [0, 2]: the polynomials are sums of T_k(laplacian_scale L - I)."""
        return 2 * self.unit / self.lambda_upper

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Frame bounds (A, B): the range of sum_j rho_j(x)^2 over [0, lambda_upper]."""
        return frame_bounds(self.coefficients)

    @property
    def tightness_defect(self) -> float:
        """Largest |sum_j rho_j(x)^2 - 1|: synthesize(analyze(f)) differs from f by at most this share of its norm."""
        return max(1 - self.bounds[0], self.bounds[1] - 1)

    def filters(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the polynomials rho_j at the eigenvalues x.

        Parameters
        ----------
        x : array_like
            Eigenvalues in the unit of the frame.

        Returns
        -------
        numpy.ndarray
            Values, shape (n_scales, len(x)).
        """
        return chebyshev_values(self.coefficients, x, upper=self.lambda_upper)


@dataclass(frozen=True, eq=False)
class ExactFrame:
    """A frame from the full eigendecomposition of the Laplacian; `exact_frame` builds it.

    The last bits of results depend on the threads of LAPACK and BLAS.

    Parameters
    ----------
    graph : Graph
        The graph.
    laplacian : {"combinatorial", "normalized", "random_walk"}
        The Laplacian L.
    bands : Bands
        The choice of band functions.
    unit : float
        Factor on L that gives weighted graphs the mean degree 3.
    lambda_max : float
        Largest eigenvalue of unit L.
    eigenvalues : numpy.ndarray
        Eigenvalues of unit L, shape (n,).
    eigenvectors : numpy.ndarray
        Orthonormal eigenvectors of the symmetric Laplacian in columns, shape (n, n).
    """

    graph: Graph
    laplacian: LaplacianKind
    bands: Bands
    unit: float
    lambda_max: float
    eigenvalues: np.ndarray = field(repr=False)
    eigenvectors: np.ndarray = field(repr=False)

    @property
    def n_scales(self) -> int:
        """Number of scales, J + 1."""
        return self.bands.n_scales

    @property
    def base(self) -> float:
        """Ratio b between scales."""
        return self.bands.base

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Frame bounds (A, B): the range of sum_j rho_j^2 over the eigenvalues; 1 and 1 up to rounding."""
        total = np.sum(self.filters(self.eigenvalues) ** 2, axis=0)
        return float(total.min(initial=1.0)), float(total.max(initial=1.0))

    @property
    def tightness_defect(self) -> float:
        """Largest |sum_j rho_j(x)^2 - 1| over the eigenvalues: 0 up to rounding."""
        return max(1 - self.bounds[0], self.bounds[1] - 1)

    def filters(self, x: npt.ArrayLike) -> np.ndarray:
        """Return rho_j = sqrt(psi_j) at the eigenvalues x.

        Parameters
        ----------
        x : array_like
            Eigenvalues in the unit of the frame.

        Returns
        -------
        numpy.ndarray
            Values, shape (n_scales, len(x)).
        """
        return self.bands.filters(x)


Frame = ChebyshevFrame | ExactFrame


def chebyshev_frame(
    graph: Graph,
    *,
    degree: int | Literal["auto"] = 100,
    damping: Damping | None = "jackson",
    base: float = 2.0,
    plateau: Plateau = "linear",
    c: float | None = None,
    laplacian: LaplacianKind = "combinatorial",
    low_scales: int = 0,
    n_scales: int | None = None,
    rescale: bool = True,
    tightness: float = 1e-2,
) -> ChebyshevFrame:
    """Return the polynomial wavelet frame of a graph; no eigendecomposition is needed.

    Parameters
    ----------
    graph : Graph
        The graph.
    degree : int or "auto"
        Degree K of the polynomials. "auto" takes the smallest of 10, 20, 40, ... whose tightness defect is at most
        `tightness`, refined to about 10 %, and refuses above 2,000.
    damping : {"jackson", None}
        Jackson damping, as in the paper, or plain Chebyshev, which is tighter at equal degree.
    base : float
        Ratio b > 1 between scales.
    plateau : {"linear", "smooth", "c3", "meyer"}
        The function omega; smoother ones need a smaller degree.
    c : float, optional
        Width of the slope of plateau="smooth", at most 1 - 1/b, which is the default.
    laplacian : {"combinatorial", "normalized", "random_walk"}
        The Laplacian L.
    low_scales : int
        Number of extra bands below the paper's lowest.
    n_scales : int, optional
        Number of bands; the top one takes all that lies above. Default: as in the paper, from lambda_max.
    rescale : bool
        Rescale weighted graphs to mean degree 3, for which the paper's bands were made.
    tightness : float
        Largest tightness defect that degree="auto" accepts, between 0 and 1.

    Returns
    -------
    ChebyshevFrame
        The frame, for `analyze` and `synthesize`.

    Examples
    --------
    >>> import hushgraph as hg
    >>> frame = hg.chebyshev_frame(hg.datasets.grid(20, 20), degree=100, damping=None, plateau="meyer")
    >>> frame.n_scales, frame.tightness_defect < 0.01
    (5, True)
    """
    choose("damping", damping, (None, *get_args(Damping)))
    choose("laplacian", laplacian, get_args(LaplacianKind))
    graph = as_graph(graph)
    unit, ratio = _unit(graph, laplacian, rescale), checked_base(base)
    spectrum = graph.spectrum_for_scales(laplacian, lambda upper: last_step_below(unit * upper, ratio) / unit)
    return frame_of(graph, spectrum, unit, laplacian, degree, damping, (ratio, plateau, c, low_scales, n_scales), tightness)


def custom_frame(
    graph: Graph,
    kernels: Sequence[Kernel],
    *,
    degree: int = 100,
    damping: Damping | None = None,
    laplacian: LaplacianKind = "combinatorial",
    tight: bool = False,
) -> ChebyshevFrame:
    """Return the polynomial frame of filters of your own, one scale for each function of the eigenvalues.

    Its `tightness_defect` says how far the sum of the squares of the filters is from 1: `synthesize(frame, analyze(frame, f))` differs from f
    by at most this share of its norm. Filters that are not tight can be made so with `tight=True`, which denoising needs.

    Parameters
    ----------
    graph : Graph
        The graph. Its weights are not rescaled.
    kernels : sequence of callable
        Functions of an array of eigenvalues, from 0 to `graph.spectrum(laplacian).lambda_upper`, that return an array of the same shape: those of a
        PyGSP filter bank `g` are `g._kernels`.
    degree : int
        Degree of the polynomials that stand for the functions; smooth functions need a small one.
    damping : {"jackson", None}
        Damping of the Chebyshev coefficients, for functions with jumps.
    laplacian : {"combinatorial", "normalized", "random_walk"}
        The Laplacian L.
    tight : bool
        Divide all functions by the root of the sum of their squares, which makes the frame tight up to the error of the polynomials.

    Returns
    -------
    ChebyshevFrame
        The frame, for `analyze`, `synthesize` and `denoise(..., method="sgwt_sure", frame=frame)`.

    Raises
    ------
    InputError
        If a function does not return one finite number per eigenvalue, or all are 0 at some eigenvalue and `tight` is asked for.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(20, 20)
    >>> heat = [lambda x, t=t: np.exp(-t * x) for t in (0.5, 2, 8)]
    >>> frame = hg.custom_frame(graph, heat, degree=30)
    >>> hg.analyze(frame, np.ones(400)).shape, round(frame.tightness_defect, 1)
    ((3, 400), 2.0)
    >>> tight = hg.custom_frame(graph, [*heat, lambda x: 1 - np.exp(-0.5 * x)], degree=60, tight=True)
    >>> tight.tightness_defect < 1e-6
    True
    """
    choose("damping", damping, (None, *get_args(Damping)))
    choose("laplacian", laplacian, get_args(LaplacianKind))
    choose("tight", tight, (True, False))
    graph, degree = as_graph(graph), checked_degree(degree, 1)
    functions = tuple(kernels) if isinstance(kernels, Iterable) else ()
    if not 1 <= len(functions) <= MAX_SCALES or not all(map(callable, functions)):
        expected = f"a list of 1 to {MAX_SCALES} functions of an array of eigenvalues"
        raise InputTypeError.about(argument="kernels", expected=expected, got=shown(kernels))
    upper = graph.spectrum(laplacian).lambda_upper or 1.0  # L = 0: any interval will do
    bands = KernelBands(functions, tight, len(functions))
    theta = chebyshev_coefficients(bands.filters, degree, upper=upper, damping=damping)
    return ChebyshevFrame(graph, laplacian, bands, 1.0, upper, degree, damping, theta)


def frame_of(
    graph: Graph,
    spectrum: Spectrum,
    unit: float,
    laplacian: LaplacianKind,
    degree: Any,
    damping: Damping | None,
    bands: tuple[float, Plateau, float | None, int, int | None],
    tightness: float = 1e-2,
) -> ChebyshevFrame:
    """Return the frame of a graph whose spectrum and unit are known; `bands` are base, plateau, c, low_scales and n_scales."""
    upper = unit * spectrum.lambda_upper or 1.0  # L = 0: any interval will do
    choice = _bands(unit * spectrum.lambda_max, *bands)
    if isinstance(degree, str) and degree == "auto":
        degree = _degree_for(choice, upper, damping, tightness)
    degree = checked_degree(degree, 1, note=", or 'auto'")
    theta = chebyshev_coefficients(choice.filters, degree, upper=upper, damping=damping)
    return ChebyshevFrame(graph, laplacian, choice, unit, upper, degree, damping, theta)


def check_exact_size(graph: Graph) -> None:
    """Raise an InputError if a graph is too large for all its eigenvectors."""
    if graph.n > MAX_EXACT_NODES:
        msg = f"an exact frame of {graph.n} nodes needs {8e-9 * graph.n**2:.0f} GB; use chebyshev_frame above {MAX_EXACT_NODES}"
        raise InputError(msg)


def exact_frame(
    graph: Graph,
    *,
    base: float = 2.0,
    plateau: Plateau = "linear",
    c: float | None = None,
    laplacian: LaplacianKind = "combinatorial",
    low_scales: int = 0,
    n_scales: int | None = None,
    rescale: bool = True,
) -> ExactFrame:
    """Return the tight wavelet frame from the eigendecomposition, for graphs of up to some thousand nodes (n^3 time, n^2 memory).

    Parameters
    ----------
    graph : Graph
        A graph of at most 20,000 nodes.
    base : float
        Ratio b > 1 between scales.
    plateau : {"linear", "smooth", "c3", "meyer"}
        The function omega.
    c : float, optional
        Width of the slope of plateau="smooth", at most 1 - 1/b, which is the default.
    laplacian : {"combinatorial", "normalized", "random_walk"}
        The Laplacian L.
    low_scales : int
        Number of extra bands below the paper's lowest.
    n_scales : int, optional
        Number of bands; the top one takes all that lies above. Default: as in the paper, from lambda_max.
    rescale : bool
        Rescale weighted graphs to mean degree 3, for which the paper's bands were made.

    Returns
    -------
    ExactFrame
        The frame, for `analyze` and `synthesize`.
    """
    graph = as_graph(graph)
    check_exact_size(graph)
    values, vectors = eigenpairs(graph, laplacian)
    unit = _unit(graph, laplacian, rescale)
    values = unit * values
    lambda_max = float(values.max(initial=0.0))
    bands = _bands(lambda_max, base, plateau, c, low_scales, n_scales)
    return ExactFrame(graph, laplacian, bands, unit, lambda_max, values, vectors)


def eigenpairs(graph: Graph, laplacian: LaplacianKind = "combinatorial") -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues clamped at 0 (a -1e-15 must not lose the null vector) and orthonormal eigenvectors; cached with the graph."""

    def compute() -> tuple[np.ndarray, np.ndarray]:
        matrix, diagonal = graph.symmetric_parts(laplacian)
        dense = np.asfortranarray(np.diag(diagonal) - matrix.toarray())
        # divide and conquer: the default driver takes many times as long where eigenvalues coincide, as on several components
        values, vectors = linalg.eigh(dense, driver="evd", overwrite_a=True, check_finite=False)
        return np.maximum(values, 0.0), vectors

    return graph.cached(_eigenpairs_key(laplacian), compute)


def has_eigenpairs(graph: Graph, laplacian: LaplacianKind = "combinatorial") -> bool:
    """Return whether eigenpairs are cached with the graph."""
    return _eigenpairs_key(laplacian) in graph.cache


def keep_eigenpairs(graph: Graph, values: np.ndarray, vectors: np.ndarray, laplacian: LaplacianKind = "combinatorial") -> None:
    """Cache eigenpairs that were computed before, for example those of a file."""
    graph.cache.put(_eigenpairs_key(laplacian), (values, vectors))


def _eigenpairs_key(laplacian: LaplacianKind) -> tuple[str, bool]:
    """Return the key of the cached eigenpairs; the two normalized Laplacians share the eigenpairs of the symmetric one."""
    return "eigenpairs", choose("laplacian", laplacian, get_args(LaplacianKind)) == "combinatorial"


def _unit(graph: Graph, laplacian: LaplacianKind, rescale: bool) -> float:
    """Return the factor on L: weighted combinatorial Laplacians get mean degree 3."""
    if not rescale or laplacian != "combinatorial" or graph.is_unweighted:
        return 1.0
    return unit_of(orderless_sum(graph.degrees), graph.n)


def unit_of(total: float, n: int) -> float:
    """Return the factor that gives n degrees of that sum the mean 3."""
    return MEAN_DEGREE * n / total if total > 0 else 1.0


def _bands(lambda_max: float, base: float, plateau: Plateau, c: float | None, low_scales: int, n_scales: int | None) -> Bands:
    base = checked_base(base)
    low_scales = checked_low_scales(low_scales, base)
    reach = count_scales(lambda_max * base**low_scales, base=base)
    if n_scales is None and reach > MAX_SCALES:
        msg = f"base={base:g} and low_scales={low_scales} make {reach} scales, and at most {MAX_SCALES} make sense; raise base or give n_scales"
        raise InputError(msg)
    if n_scales is None:
        n_scales = reach
    else:
        note = f": bands above would lie beyond lambda_max = {lambda_max:g} (a smaller base or more low_scales give more bands)"
        n_scales = checked_count("n_scales", n_scales, 1, min(reach, MAX_SCALES), note=note)
    bands = Bands(n_scales, base, plateau, c, low_scales)
    bands.filters([0.0])  # refuses an unknown plateau or a bad c before any work is done
    return bands


def _degree_for(bands: Bands, upper: float, damping: Damping | None, tightness: float) -> int:
    """Return the smallest degree (to about 10 %) whose tightness defect is at most `tightness`."""
    tightness = checked_number("tightness", tightness, "between 0 and 1", above=0, below=1)

    def defect(degree: int) -> float:
        low, high = frame_bounds(chebyshev_coefficients(bands.filters, degree, upper=upper, damping=damping))
        return max(1 - low, high - 1)

    degree = 10
    while defect(degree) > tightness:
        if degree == MAX_DEGREE:
            ways = {"linear": ["a smoother plateau ('c3' or 'meyer')"], "c3": ["a smoother plateau ('meyer')"]}.get(
                bands.plateau, []
            )
            ways += ["damping=None"] * (damping is not None) + ["a larger tightness"]
            msg = f"no degree up to {MAX_DEGREE} reaches tightness {tightness:g} (defect {defect(MAX_DEGREE):.2g}); try {', '.join(ways)}"
            raise InputError(msg)
        degree = min(2 * degree, MAX_DEGREE)
    shortest = degree // 2
    while degree - shortest > max(1, degree // 10):
        middle = (degree + shortest) // 2
        shortest, degree = (shortest, middle) if defect(middle) <= tightness else (middle, degree)
    return degree
