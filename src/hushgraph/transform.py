"""The wavelet transform W f = (rho_0(L) f, ..., rho_J(L) f) and its inverse sum_j rho_j(L) F_j (paper, Sec. II-A).

The only place that picks a kernel module for transforms. The random-walk Laplacian is D^-1/2 L_norm D^1/2, so rho(L_rw) is the
normalized transform between two diagonal scalings; its transpose swaps them. For it `synthesize` reconstructs but is
not the transpose of `analyze`: the two are adjoint in <x, y>_D = x'Dy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from hushgraph._errors import InputError, InputTypeError
from hushgraph.arrays import beside, on_device
from hushgraph.checks import ROOM, checked_real_array, checked_size, checks_at_the_end
from hushgraph.frame import ChebyshevFrame, ExactFrame, Frame
from hushgraph.graph import Graph
from hushgraph.kernels import cpu


def analyze(frame: Frame, signal) -> np.ndarray:
    """Wavelet coefficients: (n_scales, n) of one signal, (n_scales, n, m) of m signals in columns.

    float32 stays float32.

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


def synthesize(frame: Frame, coefficients) -> np.ndarray:
    """The paper's inverse sum_j rho_j(L) F_j: (n,) or (n, m)."""
    with checks_at_the_end():
        values = checked_coefficients(frame, coefficients)
        planes = values[None] if values.ndim == 2 else np.moveaxis(values, 2, 0)
        return _columns_last(inverse(frame, planes), values.ndim - 1)


def as_linear_operator(frame: Frame) -> LinearOperator:
    """`analyze` as a SciPy LinearOperator of shape (n_scales * n, n); rmatvec is its plain transpose."""
    n, n_scales = checked_frame(frame).graph.n, frame.n_scales

    def matmat(x):
        x = checked_real_array("x", x).astype(np.float64, copy=False)
        return np.moveaxis(forward(frame, x.T), 0, 2).reshape(n_scales * n, x.shape[1])

    def rmatmat(y):
        y = np.reshape(checked_real_array("y", y), (n_scales, n, -1)) if n else np.empty((n_scales, 0, np.shape(y)[-1]))
        return inverse(frame, np.moveaxis(y, 2, 0).astype(np.float64), transposed=True).T

    return LinearOperator(
        (n_scales * n, n), matvec=lambda x: matmat(x.reshape(n, 1)).ravel(), rmatvec=lambda y: rmatmat(y.reshape(-1, 1)).ravel(),
        matmat=matmat, rmatmat=rmatmat, dtype=np.float64,
    )  # fmt: skip


def forward(frame: Frame, planes: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """All rho_j(L) x, or rho_j(L)' x, of signals in rows: (m, n) -> (m, n_scales, n)."""
    before = _scaling(frame, planes, transposed)
    planes = planes if before is None else planes * before
    if isinstance(frame, ExactFrame):
        vectors, filters = (
            _kept_beside(frame, "eigenvectors", frame.eigenvectors, planes),
            beside(frame.filters(frame.eigenvalues), planes),
        )
        bands = ((planes @ vectors)[:, None, :] * filters) @ vectors.T
        bands = bands.astype(planes.dtype, copy=False)
    else:
        kernels, layout = engine(frame, planes)
        bands = kernels.forward(layout, frame.coefficients, planes, 2 * frame.unit / frame.lambda_upper)
    return bands if before is None else np.divide(bands, before, out=bands)


def inverse(frame: Frame, planes: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """sum_j rho_j(L) F_j, or sum_j rho_j(L)' F_j, of bands in rows: (m, n_scales, n) -> (m, n)."""
    before = _scaling(frame, planes, transposed)
    planes = planes if before is None else planes * before
    if isinstance(frame, ExactFrame):
        vectors, filters = (
            _kept_beside(frame, "eigenvectors", frame.eigenvectors, planes),
            beside(frame.filters(frame.eigenvalues), planes),
        )
        sums = (np.sum((planes @ vectors) * filters, axis=1) @ vectors.T).astype(planes.dtype, copy=False)
    else:
        kernels, layout = engine(frame, planes)
        sums = kernels.inverse(layout, frame.coefficients, planes, 2 * frame.unit / frame.lambda_upper)
    return sums if before is None else np.divide(sums, before, out=sums)


def engine(frame: Frame, planes) -> tuple[Any, Any]:
    """The kernels for these arrays, and the frame's matrix as they take it."""
    if on_device(planes):
        from hushgraph.kernels import gpu

        return gpu, frame.graph.device_layout(frame.laplacian)
    return cpu, frame.graph.layout(frame.laplacian)


def checked_frame(frame) -> Frame:
    """`frame`, or an error that says what to pass."""
    if not isinstance(frame, ChebyshevFrame | ExactFrame):
        msg = f"frame must come from chebyshev_frame or exact_frame; got {type(frame).__name__}"
        raise InputTypeError(msg)
    return frame


def checked_frame_of(graph: Graph, frame) -> Frame:
    """`frame` if it is one, and of this graph."""
    if checked_frame(frame).graph is not graph and frame.graph.hash != graph.hash:
        msg = "frame belongs to another graph than the one given; build it with chebyshev_frame(graph)"
        raise InputError(msg)
    return frame


def checked_coefficients(frame, coefficients) -> np.ndarray:
    """Finite float coefficients that fit the frame."""
    expected = (checked_frame(frame).n_scales, frame.graph.n)
    values = checked_real_array("coefficients", coefficients)
    if values.ndim not in (2, 3) or values.shape[:2] != expected or values.shape[2:] == (0,):
        msg = f"coefficients must have shape {expected} or {(*expected, 'm')}, as analyze returns them; got {values.shape}"
        raise InputError(msg)
    return checked_coefficient_size("coefficients", values)


def checked_coefficient_size(name: str, values: np.ndarray) -> np.ndarray:
    """Coefficients may be somewhat larger than a signal."""
    return checked_size(name, values, room=ROOM)


def _kept_beside(frame: Frame, name: str, values: np.ndarray, planes):
    """`values` where the signals are; on a GPU they stay with the graph, and those here too, so that no others have their id."""
    if not on_device(planes):
        return values
    return frame.graph.latest(f"{name} on device", (id(values),), lambda: (values, beside(values, planes)))[1]


def _scaling(frame: Frame, planes, transposed: bool):
    """D^1/2 (or D^-1/2 for the transpose) before the normalized transform; its inverse follows it."""
    if frame.laplacian != "random_walk":
        return None
    root = _kept_beside(frame, "roots of degrees", frame.graph.root_degrees, planes)
    return (1 / root if transposed else root).astype(planes.dtype)


def _columns_last(planes: np.ndarray, ndim: int) -> np.ndarray:
    return planes[0] if ndim == 1 else np.moveaxis(planes, 0, -1)
