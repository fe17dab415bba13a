"""The wavelet transform W f = (rho_0(L) f, ..., rho_J(L) f) and its inverse sum_j rho_j(L) F_j (paper, Sec. II-A).

This module chooses between processor and GPU for all transforms (`engine`). The random-walk Laplacian is D^-1/2 L_norm D^1/2, so rho(L_rw) is the
normalized transform between two diagonal scalings; its transpose swaps them. For it `synthesize` reconstructs but is
not the transpose of `analyze`: the two are adjoint in <x, y>_D = x'Dy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from hushgraph._arrays import on_device, placed_like
from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import ROOM, checked_real_array, checked_size, checks_at_the_end
from hushgraph.core import cpu
from hushgraph.graphs import Graph
from hushgraph.wavelets.frame import ChebyshevFrame, ExactFrame, Frame


def analyze(frame: Frame, signal: Any) -> np.ndarray:
    """Return the wavelet coefficients of a signal.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame.
    signal : array_like, mapping or table, shape (n,) or (n, m)
        One signal, or m signals in columns; see `Graph.align`. A CuPy array is transformed on its GPU.

    Returns
    -------
    numpy.ndarray
        Coefficients, shape (n_scales, n) or (n_scales, n, m); float32 for a float32 signal, else float64.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> frame = hg.chebyshev_frame(hg.datasets.grid(10, 12))
    >>> hg.analyze(frame, np.ones(120)).shape, hg.analyze(frame, np.ones((120, 3))).shape
    ((5, 120), (5, 120, 3))
    """
    with checks_at_the_end():
        values = checked_frame(frame).graph.align(signal)
        planes = values[None] if values.ndim == 1 else values.T
        return _columns_last(forward(frame, planes), values.ndim)


def synthesize(frame: Frame, coefficients: npt.ArrayLike) -> np.ndarray:
    """Return the signal sum_j rho_j(L) F_j, the paper's inverse of `analyze`.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame.
    coefficients : array_like, shape (n_scales, n) or (n_scales, n, m)
        Wavelet coefficients F of one signal or of m signals.

    Returns
    -------
    numpy.ndarray
        The signal, shape (n,) or (n, m).

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> frame = hg.exact_frame(hg.datasets.grid(3, 4))
    >>> bool(np.allclose(hg.synthesize(frame, hg.analyze(frame, np.arange(12.0))), np.arange(12.0)))
    True
    """
    with checks_at_the_end():
        values = checked_coefficients(frame, coefficients)
        planes = values[None] if values.ndim == 2 else np.moveaxis(values, 2, 0)
        return _columns_last(inverse(frame, planes), values.ndim - 1)


def as_linear_operator(frame: Frame) -> LinearOperator:
    """Return `analyze` as a SciPy LinearOperator.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        An operator of shape (n_scales * n, n); `rmatvec` is its plain transpose.
    """
    n, n_scales = checked_frame(frame).graph.n, frame.n_scales

    def matmat(x: Any) -> np.ndarray:
        x = checked_real_array("x", x).astype(np.float64, copy=False)
        return np.moveaxis(forward(frame, x.T), 0, 2).reshape(n_scales * n, x.shape[1])

    def rmatmat(y: Any) -> np.ndarray:
        y = np.reshape(checked_real_array("y", y), (n_scales, n, -1)) if n else np.empty((n_scales, 0, np.shape(y)[-1]))
        return inverse(frame, np.moveaxis(y, 2, 0).astype(np.float64), transposed=True).T

    return LinearOperator(
        (n_scales * n, n),
        matvec=lambda x: matmat(x.reshape(n, 1)).ravel(),
        rmatvec=lambda y: rmatmat(y.reshape(-1, 1)).ravel(),
        matmat=matmat,
        rmatmat=rmatmat,
        dtype=np.float64,
    )


def forward(frame: Frame, planes: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return all rho_j(L) x, or rho_j(L)' x, of signals in rows: (m, n) -> (m, n_scales, n)."""
    before = _scaling(frame, planes, transposed)
    planes = planes if before is None else planes * before
    if isinstance(frame, ExactFrame):
        vectors = _near(frame, "eigenvectors", frame.eigenvectors, planes)
        filters = placed_like(frame.filters(frame.eigenvalues), planes)
        bands = ((planes @ vectors)[:, None, :] * filters) @ vectors.T
        bands = bands.astype(planes.dtype, copy=False)
    else:
        kernels, layout = engine(frame, planes)
        bands = kernels.forward(layout, frame.coefficients, planes, frame.laplacian_scale)
    return bands if before is None else np.divide(bands, before, out=bands)


def inverse(frame: Frame, planes: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return sum_j rho_j(L) F_j, or sum_j rho_j(L)' F_j, of bands in rows: (m, n_scales, n) -> (m, n)."""
    before = _scaling(frame, planes, transposed)
    planes = planes if before is None else planes * before
    if isinstance(frame, ExactFrame):
        vectors = _near(frame, "eigenvectors", frame.eigenvectors, planes)
        filters = placed_like(frame.filters(frame.eigenvalues), planes)
        sums = (np.sum((planes @ vectors) * filters, axis=1) @ vectors.T).astype(planes.dtype, copy=False)
    else:
        kernels, layout = engine(frame, planes)
        sums = kernels.inverse(layout, frame.coefficients, planes, frame.laplacian_scale)
    return sums if before is None else np.divide(sums, before, out=sums)


def engine(frame: Frame, planes: Any) -> tuple[Any, Any]:
    """Return the module that transforms these arrays, `core.cpu` or `core.gpu`, and the matrix of the frame as that module takes it."""
    if on_device(planes):
        from hushgraph.core import gpu

        return gpu, frame.graph.device_layout(frame.laplacian)
    return cpu, frame.graph.layout(frame.laplacian)


def checked_frame(frame: Any) -> Frame:
    """Return `frame`; anything but a frame is refused."""
    if not isinstance(frame, ChebyshevFrame | ExactFrame):
        raise InputTypeError.about(
            argument="frame", verb="come from", expected="chebyshev_frame or exact_frame", got=type(frame).__name__
        )
    return frame


def checked_frame_of(graph: Graph, frame: Any) -> Frame:
    """Return `frame`; anything but a frame of this graph is refused."""
    if checked_frame(frame).graph is not graph and frame.graph.hash != graph.hash:
        hint = "build it with chebyshev_frame(graph)"
        text = f"frame belongs to another graph than the one given; {hint}"
        raise InputError.about(argument="frame", expected="a frame of the graph", got="that of another", hint=hint, text=text)
    return frame


def checked_coefficients(frame: Any, coefficients: npt.ArrayLike) -> np.ndarray:
    """Return finite float coefficients that fit the frame."""
    expected = (checked_frame(frame).n_scales, frame.graph.n)
    values = checked_real_array("coefficients", coefficients)
    if values.ndim not in (2, 3) or values.shape[:2] != expected or values.shape[2:] == (0,):
        shapes = f"shape {expected} or {(*expected, 'm')}, as analyze returns them"
        raise InputError.about(argument="coefficients", verb="have", expected=shapes, got=values.shape)
    return checked_coefficient_size("coefficients", values)


def checked_coefficient_size(name: str, values: np.ndarray) -> np.ndarray:
    """Return finite coefficients, which may be somewhat larger than a signal."""
    return checked_size(name, values, room=ROOM)


def _near(frame: Frame, name: str, values: np.ndarray, planes: Any) -> Any:
    """Return `values` on the GPU of `planes`, cached with the graph; or `values` themselves if `planes` are not on a GPU."""
    if not on_device(planes):
        return values
    # the host array is cached too: while it lives, no other array has its id
    return frame.graph.cached(f"{name} on device", lambda: (values, placed_like(values, planes)), version=id(values))[1]


def _scaling(frame: Frame, planes: Any, transposed: bool) -> Any:
    """Return D^1/2 (or D^-1/2 for the transpose) before the normalized transform; its inverse follows it."""
    if frame.laplacian != "random_walk":
        return None
    root = _near(frame, "roots of degrees", frame.graph.root_degrees, planes)
    return (1 / root if transposed else root).astype(planes.dtype)


def _columns_last(planes: np.ndarray, ndim: int) -> np.ndarray:
    return planes[0] if ndim == 1 else np.moveaxis(planes, 0, -1)
