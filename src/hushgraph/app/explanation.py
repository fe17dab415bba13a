"""How a result was chosen, for the report: risk by threshold for wavelets, shares and weights for combinations."""

from __future__ import annotations

from html import escape

import numpy as np

from hushgraph.app.charts import Line, bar, error_words, line_chart, thinned
from hushgraph.frame import ExactFrame, Frame, chebyshev_frame
from hushgraph.graph import Graph
from hushgraph.local_noise import smooth_weights
from hushgraph.result import Denoised, TypicalError
from hushgraph.risk import exact_weights, monte_carlo_weights
from hushgraph.threshold import sure_curve
from hushgraph.transform import analyze

_CURVED = ("sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact")  # methods whose thresholds are minima of one curve per scale
_SCALED = ("sgwt_scaled", "sgwt_deep")  # whose thresholds follow the local noise level of the coefficients
_POINTS = 160  # of a curve
_MOST_BARS = 12
_MOST_NODES = 2_000_000  # above, nobody opens a report with maps


def explanation(graph: Graph, noisy: np.ndarray, result: Denoised) -> str:
    """A section of HTML on one signal; empty when there is nothing to show."""
    if result.method in _CURVED:
        lines = risk_lines(graph, noisy, result)
        return _curves("How the thresholds were chosen", lines, _OWN_CURVES) if lines else ""
    details = result.details.get("combination", result.details)
    shown = (
        _combination(details, float(np.sum(result.risk_se)), result.n_values) if "sets" in details and "weights" in details else ""
    )
    if np.isnan(noisy).any() or graph.n > _MOST_NODES:
        return shown
    return shown + _curves("What thresholds alone would leave", plain_risk_lines(graph, noisy, result.sigma), _PLAIN_CURVES)


def risk_lines(graph: Graph, noisy: np.ndarray, result: Denoised) -> list[Line]:
    """SURE per node of each scale; none where the thresholds are not the minima of these curves (another rule was asked for)."""
    frame, n_probes = result.details["frame"], result.details["n_probes"]
    thresholds = np.asarray(result.thresholds)
    known = bool(n_probes) or isinstance(frame, ExactFrame)
    if np.isnan(noisy).any() or thresholds.shape != (frame.n_scales,) or not known:
        return []
    own, offset = result.sigma if np.ndim(result.sigma) else None, result.details["offset"]
    sigma = 1.0 if own is not None else float(result.sigma)
    weights = _weights(frame, n_probes, own)
    scales: list = [None] * len(weights)
    if result.method in _SCALED:
        scales = list(np.sqrt(np.maximum(smooth_weights(graph, weights, sigma=own), 0.0)))
    curves = [
        sure_curve(x, g, sigma=sigma, scale=s) for x, g, s in zip(analyze(frame, noisy - offset), weights, scales, strict=True)
    ]
    taken = [min(int(np.searchsorted(t, one * (1 - 1e-9))), len(t) - 1) for (t, _), one in zip(curves, thresholds, strict=True)]
    if any(risk[at] > risk.min() + 1e-6 * np.ptp(risk) for (_, risk), at in zip(curves, taken, strict=True)):
        return []
    return _lines(curves, taken, sigma, graph.n)


def plain_risk_lines(graph: Graph, noisy: np.ndarray, sigma) -> list[Line]:
    """The same curves of the paper's method, for results that threshold in other ways."""
    frame, own = chebyshev_frame(graph), sigma if np.ndim(sigma) else None
    level = 1.0 if own is not None else float(sigma)
    pairs = zip(analyze(frame, noisy), monte_carlo_weights(frame, sigma=own), strict=True)
    curves = [sure_curve(x, g, sigma=level) for x, g in pairs]
    return _lines(curves, [int(np.argmin(risk)) for _, risk in curves], level, graph.n)


def _lines(curves: list[tuple[np.ndarray, np.ndarray]], taken: list[int], sigma: float, n: int) -> list[Line]:
    """In units of sigma and per node, as far as a chart can show."""
    far = 1.3 * max(float(t[at]) for (t, _), at in zip(curves, taken, strict=True)) or sigma
    lines = []
    for j, ((t, risk), at) in enumerate(zip(curves, taken, strict=True)):
        grid, y = thinned(t, risk, far, _POINTS)
        name = f"scale {j}" + {0: " (coarsest)", len(curves) - 1: " (finest)"}.get(j, "")
        lines.append(Line(name, grid / sigma, y / n, (float(t[at]) / sigma, float(risk[at]) / n)))
    return lines


def _weights(frame: Frame, n_probes: int | None, sigma) -> np.ndarray:
    if isinstance(frame, ExactFrame):
        return exact_weights(frame, sigma=sigma)
    return monte_carlo_weights(frame, n_probes=n_probes, sigma=sigma)


_OWN_CURVES = (
    "One line per scale of the wavelets. It shows the squared error that a threshold would leave, estimated without knowing the "
    "truth (SURE); the dot is the threshold taken. What rises further is cut."
)
_PLAIN_CURVES = (
    "One line per scale of the wavelets: the squared error that a threshold would leave, estimated without knowing the truth (SURE). "
    "The dot is the one that the paper's method would take; the result above combines these scales with more. What rises further "
    "is cut."
)


def _curves(title: str, lines: list[Line], words: str) -> str:
    top = 1.15 * max(max(float(line.y[0]), line.dot[1]) for line in lines)
    chart = line_chart(
        lines, x_title="threshold / σ", y_title="estimated risk per node", top=top, name="Estimated risk of each scale by threshold"
    )
    return f'<section><h2>{title}</h2><div class="beside"><figure>{chart}</figure><p class="quiet">{words}</p></div></section>'


def _combination(details: dict, risk_se: float, n: int) -> str:
    tables = [_sets(details["sets"], risk_se, n)] * (len(details["sets"]) > 1) + [_candidates(details["weights"])]
    body = "".join(f"<div>{table}</div>" for table in tables)
    return f'<section><h2>How the estimates were combined</h2><div class="halves">{body}</div></section>'


def _sets(sets: dict, risk_se: float, n: int) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{error_words(TypicalError.of(found["risk"], risk_se, n))}</td>'
        f'<td class="number">{found["share"]:.0%}</td><td>{bar(found["share"])}</td></tr>'
        for name, found in sorted(sets.items(), key=lambda item: item[1]["risk"])
    )
    head = _table_head("Combination", "typical error", "share")
    return f"<table><caption>Combinations tried, the error estimated for each, and its share in the result</caption>{head}{rows}</table>"


def _candidates(weights: dict) -> str:
    most = max(weights.values(), default=1.0)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{weight:.2f}</td><td>{bar(weight / most)}</td></tr>'
        for name, weight in list(weights.items())[:_MOST_BARS]
    )
    rest = len(weights) - _MOST_BARS
    more = f'<p class="quiet">and {rest} more with smaller weights</p>' if rest > 0 else ""
    return f"<table><caption>Simple estimates in use, with their weights</caption>{_table_head('Candidate', 'weight')}{rows}</table>{more}"


def _table_head(first: str, *numbers: str) -> str:
    cells = "".join(f'<th scope="col" class="number">{name}</th>' for name in numbers)
    return f'<thead><tr><th scope="col">{first}</th>{cells}<td></td></tr></thead>'
