"""How a result was chosen, for the report: risk by threshold for wavelets, shares and weights for combinations."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from hushgraph.estimators import METHODS, Denoised, TypicalError
from hushgraph.graphs import Graph
from hushgraph.plotting.report.charts import Line, bar, format_error, line_chart
from hushgraph.wavelets import (
    ExactFrame,
    Frame,
    RiskCurve,
    analyze,
    exact_weights,
    monte_carlo_weights,
    paper_risk_curves,
    scale_risk_curves,
    smooth_weights,
)

_POINTS = 160  # of a curve
_LEAST_FILTER_WEIGHT = 0.2  # with less weight the fitted filter is not drawn
_MAX_CANDIDATES = 12  # rows of the table of weights
_MAX_NODES = 2_000_000  # with more nodes a report with maps is too large to open, and the curves are not worth their time


def method_sections(graph: Graph, noisy: np.ndarray, result: Denoised) -> str:
    """Return the HTML sections on how the result of one signal was chosen; empty if there is nothing to show."""
    method = METHODS.get(result.method)
    if method is not None and method.family == "wavelet":
        lines = threshold_lines(graph, noisy, result)
        return _curve_section("How the thresholds were chosen", lines, _METHOD_CURVES) if lines else ""
    details = result.details.get("combination", result.details)
    tables = ""
    if "sets" in details and "weights" in details:
        title = "How the estimate without guides was combined" if "experts" in result.details else "How the estimates were combined"
        if len(details["weights"]) > 1:
            tables = _combination_section(title, details, float(np.sum(result.risk_se)), result.n_values)
        tables += _filter_section(details)
    if result.method == "filter" or np.isnan(noisy).any() or graph.n > _MAX_NODES:
        return tables
    lines = paper_threshold_lines(graph, noisy, result.sigma)
    return tables + _curve_section("What thresholds alone would leave", lines, _PAPER_CURVES)


def threshold_lines(graph: Graph, noisy: np.ndarray, result: Denoised) -> list[Line]:
    """Return SURE per node of each scale over the threshold, with a dot at the threshold of the result.

    The list is empty where these curves do not explain the thresholds: with another rule the thresholds are not their minima.
    """
    frame, n_probes = result.details["frame"], result.details["n_probes"]
    thresholds = np.asarray(result.thresholds)
    has_weights = bool(n_probes) or isinstance(frame, ExactFrame)
    if np.isnan(noisy).any() or thresholds.shape != (frame.n_scales,) or not has_weights:
        return []
    node_sigma = result.sigma if np.ndim(result.sigma) else None
    weights = _weights(frame, n_probes, node_sigma)
    scales = None
    if METHODS[result.method].is_scaled:
        scales = np.sqrt(np.maximum(smooth_weights(graph, weights, sigma=node_sigma), 0.0))
    F, unit = analyze(frame, noisy - result.details["offset"]), _threshold_unit(result.sigma)
    curves = scale_risk_curves(F, weights, sigma=unit, threshold_scales=scales)
    taken = [
        min(int(np.searchsorted(curve.thresholds, t * (1 - 1e-9))), len(curve.thresholds) - 1)
        for curve, t in zip(curves, thresholds, strict=True)
    ]
    if any(curve.sure[k] > curve.sure.min() + 1e-6 * np.ptp(curve.sure) for curve, k in zip(curves, taken, strict=True)):
        return []
    return _lines(curves, taken, unit, graph.n)


def paper_threshold_lines(graph: Graph, noisy: np.ndarray, sigma: float | np.ndarray) -> list[Line]:
    """Return the curves of the paper's method with dots at their minima, for results that do not threshold scale by scale."""
    curves = paper_risk_curves(graph, noisy, sigma)
    return _lines(curves, [curve.best for curve in curves], _threshold_unit(sigma), graph.n)


def _threshold_unit(sigma: float | np.ndarray) -> float:
    """Return sigma; 1 with one sigma per node, since the weights include sigma^2 then."""
    return 1.0 if np.ndim(sigma) else float(sigma)


def _lines(curves: list[RiskCurve], taken: list[int], unit: float, n: int) -> list[Line]:
    """Return the curves in units of sigma and per node, a little beyond the largest threshold taken."""
    end = 1.3 * max(float(curve.thresholds[k]) for curve, k in zip(curves, taken, strict=True)) or unit
    lines = []
    for j, (curve, k) in enumerate(zip(curves, taken, strict=True)):
        t, risk = curve.resampled(end, _POINTS)
        name = f"scale {j}" + {0: " (coarsest)", len(curves) - 1: " (finest)"}.get(j, "")
        lines.append(Line(name, t / unit, risk / n, (float(curve.thresholds[k]) / unit, float(curve.sure[k]) / n)))
    return lines


def _weights(frame: Frame, n_probes: int | None, sigma: np.ndarray | None) -> np.ndarray:
    if isinstance(frame, ExactFrame):
        return exact_weights(frame, sigma=sigma)
    return monte_carlo_weights(frame, n_probes=n_probes, sigma=sigma)


_METHOD_CURVES = (
    "One line per scale of the wavelets. It shows the squared error that a threshold would leave, estimated without knowing the "
    "truth (SURE); the dot is the threshold taken. Higher values are cut off."
)
_PAPER_CURVES = (
    "One line per scale of the wavelets: the squared error that a threshold would leave, estimated without knowing the truth (SURE). "
    "The dot is the threshold that the paper's method would take; the result above combines these scales with more. Higher values "
    "are cut off."
)


def _curve_section(title: str, lines: list[Line], caption: str) -> str:
    top = 1.15 * max(max(float(line.y[0]), line.dot[1]) for line in lines)
    chart = line_chart(
        lines, x_title="threshold / σ", y_title="estimated risk per node", top=top, name="Estimated risk of each scale by threshold"
    )
    return _chart_section(title, chart, caption)


def _filter_section(details: dict[str, Any]) -> str:
    """Return the response of the fitted filter; empty where it has little weight."""
    if "filter" not in details or details["weights"].get("filter", 0.0) < _LEAST_FILTER_WEIGHT:
        return ""
    x, h = np.sqrt(details["filter"]["eigenvalues"]), details["filter"]["response"]
    half = int(np.argmin(np.abs(h - 0.5)))
    line = Line("share kept", x[::4], h[::4], (float(x[half]), float(h[half])))
    chart = line_chart([line], x_title="√ eigenvalue", y_title="share kept", top=1.1, name="Response of the fitted filter")
    caption = (
        "What the fitted filter keeps of slow variation (left) and of fast variation (right) over the graph. Its shape was fitted to the "
        f"noisy signal by maximum likelihood; it has {details['filter']['degrees_of_freedom']:,.0f} degrees of freedom. "
        "The dot is where half is kept."
    )
    return _chart_section("The fitted filter", chart, caption)


def _chart_section(title: str, chart: str, caption: str) -> str:
    """Return a section with a chart and its caption beside it."""
    return f'<section><h2>{title}</h2><div class="beside"><figure>{chart}</figure><p class="quiet">{caption}</p></div></section>'


def _combination_section(title: str, details: dict[str, Any], risk_se: float, n: int) -> str:
    tables = [_candidate_table(details["weights"])]
    if len(details["sets"]) > 1:
        tables.insert(0, _set_table(details["sets"], risk_se, n))
    body = "".join(f"<div>{table}</div>" for table in tables)
    return f'<section><h2>{title}</h2><div class="halves">{body}</div></section>'


def _set_table(sets: dict[str, dict[str, float]], risk_se: float, n: int) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{format_error(TypicalError.of(part["risk"], risk_se, n))}</td>'
        f'<td class="number">{part["share"]:.0%}</td><td>{bar(part["share"])}</td></tr>'
        for name, part in sorted(sets.items(), key=lambda item: item[1]["risk"])
    )
    head = _table_head("Combination", "typical error", "share")
    return f"<table><caption>Combinations tried, the error estimated for each, and its share in the result</caption>{head}{rows}</table>"


def _candidate_table(weights: dict[str, float]) -> str:
    largest = max(weights.values(), default=1.0)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{weight:.2f}</td><td>{bar(weight / largest)}</td></tr>'
        for name, weight in list(weights.items())[:_MAX_CANDIDATES]
    )
    rest = len(weights) - _MAX_CANDIDATES
    more = f'<p class="quiet">and {rest} more with smaller weights</p>' if rest > 0 else ""
    return f"<table><caption>Simple estimates in use, with their weights</caption>{_table_head('Candidate', 'weight')}{rows}</table>{more}"


def _table_head(first: str, *numbers: str) -> str:
    cells = "".join(f'<th scope="col" class="number">{name}</th>' for name in numbers)
    return f'<thead><tr><th scope="col">{first}</th>{cells}<td></td></tr></thead>'
