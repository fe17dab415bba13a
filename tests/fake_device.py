"""A GPU that is none: an array type as strict as CuPy's, which takes no NumPy arrays and becomes none unless asked, on the processor.

With it the code that works on whichever machine the arrays are on runs where there is no GPU. The compiled kernels are replaced.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from hushgraph import device_thresholds
from hushgraph.kernels import cpu, gpu

_WHOLE = ("sum", "min", "max", "mean", "any", "all", "cumsum", "reshape", "ravel", "copy", "astype", "view", "repeat", "var")


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 - its name in CuPy
    """Values nobody may look at but through `get`."""

    __module__ = "cupy"

    def __init__(self, values):
        self._values = np.asarray(values)

    shape, ndim, size, dtype, nbytes = (property(lambda self, name=name: getattr(self._values, name)) for name in ("shape", "ndim", "size", "dtype", "nbytes"))  # fmt: skip
    T = property(lambda self: ndarray(self._values.T))
    data = property(lambda self: SimpleNamespace(ptr=self._values.ctypes.data))

    def get(self):
        return self._values.copy()

    def __array__(self, *_, **__):
        msg = "Implicit conversion to a NumPy array is not allowed"
        raise TypeError(msg)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        if method != "__call__":
            return NotImplemented
        outs = None if out is None else tuple(inside(one) for one in out)
        found = getattr(ufunc, method)(*map(inside, inputs), **({} if outs is None else {"out": outs}), **settings)
        return out[0] if out is not None and len(out) == 1 else wrapped(found)

    def __array_function__(self, function, types, arguments, settings):
        return called(function)(*arguments, **settings)

    def __getitem__(self, place):
        return wrapped(self._values[inside(place)])

    def __setitem__(self, place, value):
        self._values[inside(place)] = inside(value)

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return (wrapped(part) for part in self._values)

    def __float__(self):
        return float(self._values)

    def __int__(self):
        return int(self._values)

    def __bool__(self):
        return bool(self._values)


for _name in _WHOLE:
    setattr(ndarray, _name, lambda self, *a, _name=_name, **k: wrapped(getattr(self._values, _name)(*map(inside, a), **k)))


def inside(value):
    """What CuPy would take: its own arrays and numbers."""
    if isinstance(value, ndarray):
        return value._values
    if isinstance(value, np.ndarray) and value.ndim:
        msg = "Unsupported type <class 'numpy.ndarray'>"
        raise TypeError(msg)
    if isinstance(value, tuple | list):
        return type(value)(map(inside, value))
    return value


def wrapped(value):
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(value)
    return type(value)(map(wrapped, value)) if isinstance(value, tuple | list) else value


def called(function):
    return lambda *arguments, **settings: wrapped(
        function(*map(inside, arguments), **{name: inside(value) for name, value in settings.items()})
    )


class _Module(ModuleType):
    def __getattr__(self, name):
        return called(getattr(np, name))


def installed(monkeypatch) -> ModuleType:
    """CuPy, as far as it is needed, until the test is over."""
    fake = _Module("cupy")
    fake.ndarray = ndarray
    fake.asarray = lambda values, dtype=None: ndarray(
        np.array(values._values if isinstance(values, ndarray) else values, dtype=dtype)
    )
    fake.asnumpy = lambda values: values.get()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu, "prepare", cpu.prepare)
    for name in ("forward", "inverse", "forward_with_moments"):
        monkeypatch.setattr(gpu, name, _on_host(getattr(cpu, name)))
    monkeypatch.setattr(device_thresholds, "_bin_sums", lambda: _bin_sums)
    monkeypatch.setattr(device_thresholds, "_shrink", lambda: _shrink)
    return fake


def _on_host(work):
    def run(layout, coefficients, planes, scale, **settings):
        return wrapped(work(layout, coefficients, np.ascontiguousarray(planes.get()), scale, **settings))

    return run


def _bin_sums(grid, block, arguments):
    n_bins, z, x, g, starts, edges, beta, sums = (inside(one) for one in arguments)
    for k in range(n_bins):
        own = slice(starts[k], starts[k + 1])
        r = np.divide(edges[k], z[own], out=np.zeros_like(z[own]), where=z[own] > 0) ** beta
        square = x[own] ** 2
        for row, terms in zip(sums, (square, g[own], square * r * r, g[own] * r), strict=True):
            row[k] = np.cumsum(terms)[-1] if len(terms) else 0.0


def _shrink(x, t, scale, beta, y, slope):
    x, limit = inside(x), inside(t) * inside(scale)
    alive = (np.abs(x) > limit) | (limit == 0)
    r = np.where(np.abs(x) > limit, limit / np.where(x == 0, 1, np.abs(x)), 0) ** beta
    inside(y)[:], inside(slope)[:] = x * (alive - r), alive + (beta - 1) * r
