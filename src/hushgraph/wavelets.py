"""The methods that threshold wavelets of one kind: frames, the estimate with the least risk, and what is said of it."""

from __future__ import annotations

import numpy as np

from hushgraph.arrays import namespace, on_host
from hushgraph.frame import Frame, chebyshev_frame, exact_frame
from hushgraph.graph import Graph
from hushgraph.progress import timed
from hushgraph.result import Denoised, NodeRisk, per_signal
from hushgraph.sgwt import Noise, Settings, estimates, risk_errors, signals_below_noise
from hushgraph.sums import offset_of, shifted, sums_there, variances_there

DEPTHS = (0, 2, 4, 6)  # low_scales tried by sgwt_deep


def denoise_wavelets(graph: Graph, values: np.ndarray, sigma, settings: Settings, timings: dict) -> Denoised:
    """All columns of `values` (n,) or (n, m): the frame with the least risk for each."""
    noise, ndim = Noise.of(sigma), values.ndim
    planes = namespace(values).ascontiguousarray(values[None] if ndim == 1 else values.T)
    with timed(timings, "frame", 0.0, 0.05):
        frames = _frames(graph, settings.method) if settings.frame is None else [settings.frame]
    spread = variances_there(planes)
    means = on_host(sums_there(planes)) / len(values)
    offsets = np.array([offset_of(*pair) for pair in zip(means.tolist(), on_host(spread).tolist(), strict=True)])
    planes = shifted(planes, -offsets)
    parts, probed, slope = estimates(frames, planes, noise, settings, timings, is_centred=offsets != 0)
    best = np.argmin([on_host(part.risk) for part in parts], axis=0) if len(parts) > 1 else np.zeros(len(planes), dtype=int)
    errors = [risk_errors(parts[b], m, planes, noise, probed, slope, settings.law, timings) for m, b in enumerate(best)]
    picked = [(parts[b], m) for m, b in enumerate(best)]
    frames, thresholds = [part.frame for part, _ in picked], [part.thresholds[..., m] for part, m in picked]
    same = len({len(t) for t in thresholds}) == 1
    details = {
        "frame": frames[0] if ndim == 1 else frames,
        "n_scales": frames[0].n_scales if ndim == 1 else [frame.n_scales for frame in frames],
        "tightness_defect": max(frame.tightness_defect for frame in frames),
        "n_probes": probed.count if probed.weights_from == "probes" else None,
        "divergence": per_signal([part.divergence[m] for part, m in picked], ndim),
        "noisy_variance": per_signal(spread, ndim),
        "offset": per_signal(offsets, ndim),
        "sigma_too_large": per_signal(signals_below_noise(probed, noise), ndim),
    }
    if settings.method == "sgwt_deep":
        details["low_scales"] = per_signal([DEPTHS[b] for b in best], ndim)
        details["risk_by_low_scales"] = {depth: per_signal(part.risk, ndim) for depth, part in zip(DEPTHS, parts, strict=True)}
    sure, variance = (np.stack([error[k] for error in errors]) for k in (2, 3))
    signals = [shifted(part.signal[m : m + 1], offsets[m : m + 1])[0] for part, m in picked]
    return Denoised(
        signal=signals[0] if ndim == 1 else np.stack(signals, axis=1),
        sigma=sigma,
        risk=per_signal([part.risk[m] for part, m in picked], ndim),
        risk_se=per_signal([error[0] for error in errors], ndim),
        probe_se=per_signal([error[1] for error in errors], ndim),
        method=settings.method,
        thresholds=thresholds[0] if ndim == 1 else np.stack(thresholds, axis=1) if same else thresholds,
        timings=timings,
        details=details,
        node_risk=NodeRisk(graph, sure, variance, values.shape),
    )


def _frames(graph: Graph, method: str) -> list[Frame]:
    if method == "sgwt_exact":
        return [exact_frame(graph)]
    depths = DEPTHS if method == "sgwt_deep" else (0,)
    return graph.latest(f"frames of {method}", (), lambda: [chebyshev_frame(graph, low_scales=depth) for depth in depths])
