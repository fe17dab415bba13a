"""The tasks of guided runs: local regression on what guides predict, and the average of estimates with and without guides."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph.core import block_dots, block_products, block_sum, sum_of_rows
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.let_tasks import filters
from hushgraph.distributed.store import read_array, read_marked
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import SMOOTHERS, TIMES, filtered, looks_of, regression_gain
from hushgraph.wavelets import ChebyshevFrame


def _heat(run: Run, frame: ChebyshevFrame) -> np.ndarray:
    """Return the coefficients of the heat kernels that are the surroundings of a node, one for each width."""
    return np.cumsum(filters(run, frame)[2 * frame.n_scales + len(SMOOTHERS) :], axis=0)[list(TIMES)]


def _smoothed(frame: ChebyshevFrame, coefficients: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Return one polynomial of one signal."""
    return filtered(frame, coefficients[None], signal[None])[0, 0]


def surroundings(run: Run, part: int) -> dict[str, Any]:
    """Write what the prediction shows above its surroundings at owned nodes, for each width; return the sums of its squares."""
    out = run.output(part, "surroundings")
    if (finished := out.read_facts()) is not None:
        return finished
    assert run.prediction is not None
    zone = Part(run.work, part)
    frame, owned = run.frame(zone), zone.owned
    p = read_marked(run.prediction, whole=False)[zone.nodes]
    u = p[owned] - np.stack([_smoothed(frame, one, p)[owned] for one in _heat(run, frame)])
    out.save("above", u)
    return out.mark_done({"squares": [float(block_sum(row * row)) for row in u]})


def regressions(run: Run, part: int, offset: float, squares: list[float], n: int) -> dict[str, Any]:
    """Write the local regressions at owned nodes and their derivatives along the kept probes; return terms of their divergences."""
    out = run.output(part, "regression")
    if (finished := out.read_facts()) is not None:
        return finished
    zone, kept = Part(run.work, part), run.kept_probes
    frame, owned = run.frame(zone), zone.owned
    y, eps = run.rest(zone.nodes, offset), run.probes(zone.nodes, kept)
    values, derivatives = np.empty((len(TIMES), len(owned))), np.empty((kept, len(TIMES), len(owned)))
    for k, one in enumerate(_heat(run, frame)):
        u = zone.fill(np.empty((1, zone.n)), run.part_folder, "surroundings", "above", row=k)[0]
        gain = regression_gain(u[owned], _smoothed(frame, one, u * u)[owned], squares[k], n)
        values[k] = gain * _smoothed(frame, one, u * y)[owned]
        for p in range(kept):
            derivatives[p, k] = gain * _smoothed(frame, one, u * eps[p])[owned]
    out.save("values", values)
    out.save("derivatives", derivatives.reshape(kept * len(TIMES), len(owned)))
    samples = [[float(block_sum(eps[p][owned] * derivatives[p, k])) for p in range(kept)] for k in range(len(TIMES))]
    return out.mark_done({"samples": samples})


# ---- several estimates, averaged ---------------------------------------------------------------------------------------


def compare_looks(run: Run, part: int, alone: Run, centres: list[float], centre: float) -> dict[str, Any]:
    """Write the inner products of 1, the guides, and the noisy and the denoised map as they may come back as guides, over owned nodes.

    Constants near their means, `centres` of the guides and `centre` of the signal, are taken off first.
    """
    out = run.output(part, "looks")
    if (finished := out.read_facts()) is not None:
        return finished
    nodes = run.owned(part)
    guides = [read_array(run.guide_file(guide), whole=False)[nodes] - mean for guide, mean in zip(run.guides, centres, strict=True)]
    maps = run.values(nodes).astype(np.float64), alone.output(part, "finish").load("signal")
    looks = [look - centre for values in maps for look in looks_of(values)]
    out.save("products", block_products(np.stack([np.ones(len(nodes)), *guides, *looks])))
    return out.mark_done({})


def compare_estimates(run: Run, part: int, experts: list[Run]) -> dict[str, Any]:
    """Return the inner products of the differences of the estimates from the first one, and the sum of their squares times the noise."""
    out = run.output(part, "compare")
    if (finished := out.read_facts()) is not None:
        return finished
    signals = _signals(part, experts)
    apart = signals - signals[0]
    products = [block_dots(apart, np.broadcast_to(row, apart.shape)).tolist() for row in apart]
    noise = run.noise(run.owned(part))
    return out.mark_done({"products": products, "weighed": float(block_sum(noise.weigh(np.sum(apart**2, axis=0))))})


def average_gain(run: Run, part: int, experts: list[Run], weights: list[float]) -> dict[str, Any]:
    """Return what SURE gains by averaging the estimates, summed over owned nodes, and the same sum times the noise."""
    out = run.output(part, "average")
    if (finished := out.read_facts()) is not None:
        return finished
    nodes, shares, signals = run.owned(part), np.array(weights), _signals(part, experts)
    y = run.values(nodes).astype(np.float64)
    gain = (y - sum_of_rows(shares, signals)) ** 2 - sum_of_rows(shares, (y - signals) ** 2)
    return out.mark_done({"gain": float(block_sum(gain)), "weighed": float(block_sum(run.noise(nodes).weigh(gain)))})


def write_average(run: Run, part: int, experts: list[Run], weights: list[float]) -> dict[str, Any]:
    """Write the average of the estimates at owned nodes."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    out.save("signal", sum_of_rows(np.array(weights), _signals(part, experts)))
    return out.mark_done({})


def _signals(part: int, experts: list[Run]) -> np.ndarray:
    """Return the estimates at owned nodes, each with what its guides predict."""
    signals = []
    for expert in experts:
        signal = expert.output(part, "finish").load("signal")
        if (prediction := expert.folder / "prediction.npy").exists():
            signal = read_marked(prediction, whole=False)[expert.owned(part)] + signal
        signals.append(signal)
    return np.stack(signals)
