"""A GPU that is none: an array type as strict as CuPy's, which takes no NumPy arrays and becomes none unless asked, on the processor.

With it the code that works on whichever machine the arrays are on runs where there is no GPU. The compiled kernels are replaced.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from hushgraph import _arrays as arrays
from hushgraph.core import _loops, cpu, gpu, total_variation_gpu
from hushgraph.estimators.counts import empirical_bayes, surroundings_gpu
from hushgraph.estimators.let import gating as gated, second_stage
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

    def get(self, stream=None):
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
    fake.cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDevice=lambda: 0, CUDARuntimeError=RuntimeError),
        Event=lambda **_: SimpleNamespace(record=lambda: None),
        Stream=lambda **_: SimpleNamespace(wait_event=lambda event: None),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu, "prepare", cpu.prepare)
    for name in ("forward", "inverse", "forward_with_moments"):
        monkeypatch.setattr(gpu, name, _on_host(getattr(cpu, name)))
    monkeypatch.setattr(gpu, "forward_each", _on_host(_each))
    monkeypatch.setattr(device_thresholds, "_Rows", _Rows)
    monkeypatch.setattr(device_thresholds, "_shrink", lambda: _shrink)
    monkeypatch.setattr(
        gpu, "dots", lambda a, b=None: wrapped((inside(a) * (1.0 if b is None else inside(b))).sum(axis=1, dtype=np.float64))
    )
    monkeypatch.setattr(gpu, "signs", lambda keys, n, dtype: wrapped(probes_of(keys, n).astype(dtype)))
    monkeypatch.setattr(
        arrays, "_largest", lambda: lambda x: wrapped(np.max(np.nan_to_num(np.abs(inside(x)), nan=np.inf, posinf=np.inf)))
    )
    monkeypatch.setattr(total_variation_gpu, "total_variation", _total_variation)
    monkeypatch.setattr(second_stage, "_kernels", _refine_kernels)
    for name in ("_shrunken_on_device", "_moves_on_device", "_add_shrunken_derivative_on_device", "_opening_on_device"):
        monkeypatch.setattr(gated, name, globals()[name])
    monkeypatch.setattr(surroundings_gpu, "_uploaded", _Surroundings)
    monkeypatch.setattr(empirical_bayes, "posterior_moments", _posterior_moments)
    monkeypatch.setattr(empirical_bayes.Likelihood, "on_device", lambda self, like: _Likelihood(self))
    return fake


def _on_host(work):
    def run(layout, coefficients, planes, scale, **settings):
        if not len(coefficients):  # moments alone
            bands, moments = run(layout, np.zeros((1, coefficients.shape[1])), planes, scale, **settings)
            return bands[:, :0], moments
        return wrapped(work(layout, coefficients, np.ascontiguousarray(planes.get()), scale, **settings))

    return run


def _each(layout, coefficients, bands, scale):
    return np.stack(
        [cpu.forward(layout, row[None], np.ascontiguousarray(bands[:, j]), scale)[:, 0] for j, row in enumerate(coefficients)],
        axis=1,
    )


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


def _shrunken_on_device(w, scale, thresholds, weights, gate, moves):
    return wrapped(gated.shrunken(inside(w), inside(scale), thresholds, inside(weights), _host_gate(gate), inside(moves)))


def _moves_on_device(gate, cross, rho):
    return wrapped(_host_gate(gate).moves(inside(cross), inside(rho)))


def _add_shrunken_derivative_on_device(w, scale, thresholds, a, rows, out, gate):
    gated.add_shrunken_derivative(inside(w), inside(scale), thresholds, a, inside(rows), inside(out), _host_gate(gate))


def _opening_on_device(p, mean, spread):
    return wrapped(gated.gate_opening(inside(p), float(mean[0]), float(spread[0])))


def _host_gate(gate):
    return (
        None
        if gate is None
        else gated.Gate(
            *(np.ascontiguousarray(inside(getattr(gate, part))) for part in ("open", "z", "slope", "smooth", "shift", "stretch"))
        )
    )


def _total_variation(edges, y, penalties):
    """The steps of `total_variation_gpu` in NumPy."""
    y, (first, second), weights, step = inside(y), inside(edges.ends).T, inside(edges.weights), inside(edges.step)
    bound, flow = np.asarray(penalties)[:, None] * weights, np.zeros((len(y), len(weights)))
    ahead = flow

    def values(u):
        return np.stack(
            [one - np.bincount(first, row, len(one)) + np.bincount(second, row, len(one)) for one, row in zip(y, u, strict=True)]
        )

    for k in range(total_variation_gpu.STEPS):
        x = values(ahead)
        now = np.clip(ahead + step * (x[:, first] - x[:, second]), -bound, bound)
        flow, ahead = now, now + k / (k + 3) * (now - flow)
    return wrapped(values(flow))


def _refine_kernels():
    """The formulas of `second_stage` in NumPy."""

    def gain(q, scale, c):
        return q**2 / (q**2 + c * scale**2)

    def tilted(w, q, scale, c, rho, moved):
        return gain(q, scale, c) * rho + 2 * w * q * c * scale**2 / (q**2 + c * scale**2) ** 2 * moved

    formulas = {
        "wiener": lambda w, q, scale, c: w * gain(q, scale, c),
        "moved_wiener": tilted,
        "outlier": lambda y, p, t: james_stein(y - p, t)[0],
        "moved_outlier": lambda y, p, t, eps, moved: james_stein(y - p, t)[1] * (eps - moved),
        "kept": lambda y, p, s: y * np.abs(p) / (np.abs(p) + s),
        "moved_kept": lambda y, p, s, eps, moved: (
            eps * np.abs(p) / (np.abs(p) + s) + y * np.sign(p) * s / (np.abs(p) + s) ** 2 * moved
        ),
        "kept_squared": lambda y, p, s: y * p**2 / (p**2 + s**2),
        "moved_kept_squared": lambda y, p, s, eps, moved: (
            eps * p**2 / (p**2 + s**2) + y * 2 * p * s**2 / (p**2 + s**2) ** 2 * moved
        ),
    }

    def kernel(formula):
        def run(*arguments):
            n_inputs = formula.__code__.co_argcount
            found = formula(*map(inside, arguments[:n_inputs]))
            if len(arguments) == n_inputs:
                return wrapped(found)
            inside(arguments[-1])[...] = found
            return None

        return run

    return {name: kernel(formula) for name, formula in formulas.items()}


class _Surroundings:
    """Surroundings of the processor, for arrays of the stand-in."""

    def __init__(self, surroundings):
        self.host, self.wide = surroundings, surroundings.wide
        self.narrow, self.coordinates = surroundings.narrow, surroundings.coordinates

    def features_and_gains(self, values):
        return wrapped(self.host.features_and_gains(inside(values)))

    def features(self, values, gains, chosen):
        return wrapped(self.host.features(inside(values), inside(gains), chosen))

    def echoes(self, coefficients, gains, slope):
        return wrapped(self.host.echoes(coefficients, inside(gains), inside(slope)))


class _Likelihood(empirical_bayes.DeviceLikelihood):
    """The likelihood of the processor, for arrays of the stand-in."""

    def __init__(self, likelihood):
        super().__init__(*(wrapped(part) for part in (likelihood.values, likelihood.starts, likelihood.first, likelihood.plain)))
        object.__setattr__(self, "host", likelihood)

    def evidence(self, table, low, share):
        return wrapped(self.host.evidence(table, inside(low), inside(share)))

    def em_step(self, prior, low, share, least):
        step = self.host.em_step(prior, low, share, least)
        return lambda table: wrapped(step(inside(table)))


def _posterior_moments(y, sigma, mu, priors):
    """Posterior moments by the loops of the processor."""
    y, sigma, mu = (np.asarray(inside(part)) for part in (y, sigma, mu))
    likelihood = empirical_bayes.Likelihood.of(
        empirical_bayes.NoisyValues(y, sigma, empirical_bayes.Grid(priors.grid, priors.width))
    )
    place = np.log(priors.b0 + priors.b1 * (mu / priors.level)) / priors.step - priors.lowest
    low = np.clip(np.floor(place).astype(np.int64), 0, len(priors.gammas) - 2)
    parts = likelihood.values, likelihood.starts, likelihood.first, priors.grid
    total, mean, square = _loops.sum_moments(*parts, priors.gammas, low, np.clip(place - low, 0, 1)) + _loops.sum_moments(
        *parts, priors.hats, *empirical_bayes.hat_places(mu, priors.knots)
    )
    keep = likelihood.plain | (total <= priors.least)
    total = np.where(keep, 1.0, total)
    mean = np.where(keep, np.maximum(y, 0), mean / total)
    return wrapped(mean), wrapped(np.where(keep, sigma**2, np.maximum(square / total - mean**2, 0)))


def real_device():
    """CuPy, if it has a GPU."""
    cp = pytest.importorskip("cupy")
    try:
        gpu.current_device()
    except RuntimeError as error:
        pytest.skip(str(error))
    return cp
