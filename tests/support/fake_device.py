"""A GPU that is none: an array type as strict as CuPy's, which takes no NumPy arrays and becomes none unless asked, on the processor.

With it the code that works on whichever machine the arrays are on runs where there is no GPU. The compiled kernels are replaced.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from hushgraph import _arrays as arrays
from hushgraph.core import _loops, cpu, gpu
from hushgraph.estimators.let import gating as gated
from hushgraph.wavelets import monte_carlo, threshold_search_gpu as device_thresholds
from hushgraph.wavelets.shrinkage import james_stein
from hushgraph.wavelets.threshold_search import BINS, FINER, WORDS

_WHOLE = ("sum", "min", "max", "mean", "any", "all", "cumsum", "reshape", "ravel", "copy", "astype", "view", "repeat", "var")


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 - its name in CuPy
    """Values nobody may look at but through `get`."""

    __module__ = "cupy"

    def __init__(self, values):
        self._values = np.asarray(values)

    shape, ndim, size, dtype, nbytes, strides, itemsize = (property(lambda self, name=name: getattr(self._values, name)) for name in ("shape", "ndim", "size", "dtype", "nbytes", "strides", "itemsize"))  # fmt: skip
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
    fake.cuda = SimpleNamespace(runtime=SimpleNamespace(getDevice=lambda: 0, CUDARuntimeError=RuntimeError))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu, "prepare", cpu.prepare)
    for name in ("forward", "inverse", "forward_with_moments"):
        monkeypatch.setattr(gpu, name, _on_host(getattr(cpu, name)))
    monkeypatch.setattr(device_thresholds, "_Rows", _Rows)
    monkeypatch.setattr(device_thresholds, "_shrink", lambda: _shrink)
    monkeypatch.setattr(
        gpu, "dots", lambda a, b=None: wrapped((inside(a) * (1.0 if b is None else inside(b))).sum(axis=1, dtype=np.float64))
    )
    monkeypatch.setattr(gpu, "signs", lambda keys, n, dtype: wrapped(probes_of(keys, n).astype(dtype)))
    monkeypatch.setattr(
        arrays, "_largest", lambda: lambda x: wrapped(np.max(np.nan_to_num(np.abs(inside(x)), nan=np.inf, posinf=np.inf)))
    )
    monkeypatch.setattr(gated, "_gated_kernel", lambda: _gated)
    monkeypatch.setattr(gated, "_sum_kernel", lambda: _add_shrunken)
    return fake


def _on_host(work):
    def run(layout, coefficients, planes, scale, **settings):
        return wrapped(work(layout, coefficients, np.ascontiguousarray(planes.get()), scale, **settings))

    return run


class _Rows:
    """As the one of `device_thresholds`, with the pieces of the processor, and cells always searched on the host."""

    def __init__(self, *arguments):
        self.found = _cells(*arguments)

    def search(self):
        return np.zeros(len(self.found[0])), np.zeros(len(self.found[0]), dtype=bool)

    def cells_and_members(self):
        return self.found


def _cells(x, g, scale, variance, beta):
    x, g, scale = (None if part is None else np.asarray(inside(part), dtype=np.float64) for part in (x, g, scale))
    known, cells, members = np.zeros((len(x), 7)), np.zeros((len(x), BINS * FINER, 5)), [np.zeros((4, 0))]
    for j in range(len(x)):
        z = _loops.scaled_sizes(x[j], None if scale is None else scale[j])
        top, *sizes = _loops.extremes(z, x[j], g[j])
        known[j, 0] = top
        if top > 0:
            lowest, units = _loops.lowest_bin(top), _loops.units_of(*sizes)
            sums = np.zeros((BINS, WORDS), np.int64)
            _loops.add_to_bins(z, x[j], g[j], lowest, units, beta, sums)
            slots, bins, inside_bins = _loops.open_bins(sums, lowest, units, variance, beta)
            finer = np.zeros((len(bins), FINER, WORDS), np.int64)
            _loops.add_to_finer(z, x[j], g[j], lowest, slots, units, beta, finer)
            own, cell_of = _loops.open_cells(bins, inside_bins, finer, lowest, units, variance, beta)
            numbers = _loops.cell_numbers(z, lowest, slots, cell_of)
            known[j, 1:6], cells[j, : len(own)] = (len(bins), *inside_bins, len(own)), own
            members.append(np.stack([numbers, z, x[j], g[j]])[:, numbers >= 0])
        known[j, 6] = sum(part.shape[1] for part in members)
    return known, cells, np.concatenate(members, axis=1)


def _shrink(x, t, scale, beta, y, slope):
    x, limit = inside(x), inside(t) * inside(scale)
    alive = (np.abs(x) > limit) | (limit == 0)
    r = np.where(np.abs(x) > limit, limit / np.where(x == 0, 1, np.abs(x)), 0) ** beta
    inside(y)[:], inside(slope)[:] = x * (alive - r), alive + (beta - 1) * r


def probes_of(keys, n):
    with np.errstate(over="ignore"):
        bits = monte_carlo.scramble(monte_carlo.scramble(np.arange(1, n + 1, dtype=np.uint64)) ^ keys[:, None])
    return np.where(bits >> np.uint64(63), -1.0, 1.0)


def _gated(x, t, scale, weight, opening, moves, value, terms):
    h, slope = james_stein(inside(x), t * inside(scale))
    inside(value)[:], inside(terms)[:] = inside(opening) * h, inside(weight) * inside(opening) * slope + inside(moves) * h


def _add_shrunken(x, t, scale, share, values, slopes):
    h, slope = james_stein(inside(x), t * inside(scale))
    values._values += inside(share) * h
    slopes._values += inside(share) * slope


def real_device():
    """CuPy, if it has a GPU."""
    cp = pytest.importorskip("cupy")
    try:
        gpu.current_device()
    except RuntimeError as error:
        pytest.skip(str(error))
    return cp
