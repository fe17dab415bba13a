"""The view of a noisy map: noisy and denoised values, typical errors and risk by threshold. It is computed from noisy values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushgraph.estimators import INTERVAL_LEVEL, METHODS, Denoised, MethodName, denoise, obstacle_to_counts
from hushgraph.explorer.guides import PublicGuides
from hushgraph.graphs import Graph, Noisy
from hushgraph.plotting import pack_interval, pack_values
from hushgraph.wavelets import paper_risk_curves

OFFERED = {name: method for name, method in METHODS.items() if method.is_for_large_graphs}
QUICK: MethodName = "let"  # replaces slow methods while the slider moves
POINTS = 72  # of each risk curve
_STEPS_PER_SIGMA = 64.0  # resolution of the values that are sent

PageRule = Literal["james_stein", "soft"]


@dataclass(frozen=True)
class ViewRequest:
    """The settings of the page; `moving` while the slider moves, when a fast method answers, without guides."""

    epsilon: float
    method: MethodName = "auto"
    rule: PageRule = "james_stein"
    refine: bool = True
    nonnegative: bool = True
    integer: bool = False
    guides: bool = True  # whether to use the guides, if there are any
    moving: bool = False
    plan: bool = True  # whether the page plans the next release, or shows the last one

    @property
    def method_now(self) -> MethodName:
        """The method to use: a fast one while the slider moves."""
        return QUICK if self.moving and METHODS[self.method].is_slow else self.method


def methods_for(graph: Graph) -> list[dict[str, Any]]:
    """Return the methods that can be used on this graph, and which settings each of them has."""
    return [
        {
            "name": name,
            "title": method.title,
            "rule": method.takes_rule,
            "refine": method.takes_refine,
            "refine_default": method.refines_by_default,
            "guides": method.takes_guides,
        }
        for name, method in OFFERED.items()
        if name != "counts" or obstacle_to_counts(graph) is None
    ]


def map_view(
    graph: Graph,
    noisy: Noisy,
    request: ViewRequest,
    *,
    order: np.ndarray,
    guides: PublicGuides,
    truth: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return maps and numbers for one noisy map, ready for JSON; `truth` is given only for generated counts."""
    wants_guides = request.guides and guides.are_used_by(request.method)
    has_guides = wants_guides and not request.moving  # with guides no method is fast
    result = denoised_for(graph, noisy, request, guides)
    step = noisy.noise_level / _STEPS_PER_SIGMA
    errors = {"noisy": noisy.noise_level, **typical_error(result)}
    if truth is not None:
        errors["actual"] = float(np.sqrt(np.mean((result.signal - truth) ** 2)))
    has_interval = not request.moving and result.typical_error.is_known  # a moving slider is answered faster without
    lower, upper = result.interval(INTERVAL_LEVEL) if has_interval else (None, None)
    return {
        "method": request.method_now,
        "settled": request.method_now == request.method and has_guides == wants_guides,
        "sigma": noisy.sigma,
        "errors": errors,
        "interval": interval_facts(lower, upper, truth),
        "why": str(result.details.get("why", "")),
        "notes": list(result.details.get("notes", [])),
        "guides": guides.effects(result) if has_guides else None,
        "risk": risk_chart(graph, noisy) if noisy.windows is None else None,
        "maps": packed_maps(noisy, result, (lower, upper), order=order, step=step),
    }


def packed_maps(
    noisy: Noisy, result: Denoised, interval: tuple[np.ndarray | None, np.ndarray | None], *, order: np.ndarray, step: float
) -> list[dict[str, Any]]:
    """Return the values of each map, one for each time window, ready for JSON; without intervals there are no expected errors either."""

    def columns(values: Any) -> np.ndarray:
        return np.asarray(values, dtype=np.float64).reshape(len(order), -1)[order].T

    lower, upper = interval
    signals = list(zip(columns(noisy.values), columns(result.signal), strict=True))
    maps = [{"noisy": pack_values(a, step=step), "denoised": pack_values(b, step=step)} for a, b in signals]
    if lower is None or upper is None:
        return maps
    limits = zip(columns(lower), columns(upper), columns(result.expected_error()), strict=True)
    for parts, (_, denoised), (low, high, expected) in zip(maps, signals, limits, strict=True):
        parts |= pack_interval(denoised, low, high, step=step) | {"error": pack_values(expected, step=step)}
    return maps


def interval_facts(lower: np.ndarray | None, upper: np.ndarray | None, truth: np.ndarray | None) -> dict[str, float] | None:
    """Return the level of the intervals and, for generated counts, the share of them that hold the true count; None without intervals."""
    if lower is None or upper is None:
        return None
    facts = {"level": INTERVAL_LEVEL}
    return facts if truth is None else facts | {"actual": float(np.mean((lower <= truth) & (truth <= upper)))}


def typical_error(result: Denoised) -> dict[str, float | None]:
    """Return the root of the estimated mean squared error, as "denoised"; its bound as "below"; None if it is not known."""
    error = result.typical_error
    return {"below" if error.is_bound else "denoised": error.size if error.is_known else None}


def denoised_for(graph: Graph, noisy: Noisy, request: ViewRequest, guides: PublicGuides) -> Denoised:
    """Return the result at the settings of the page; while the slider moves, that of a fast method without guides."""
    has_guides = request.guides and guides.are_used_by(request.method) and not request.moving
    guide_maps = guides.maps(request.method, nonnegative=request.nonnegative) if has_guides else None
    method = request.method_now
    is_replaced = method != request.method
    return denoise(
        graph,
        noisy,
        method=method,
        rule=request.rule if METHODS[method].takes_rule else "james_stein",
        refine=request.refine if METHODS[method].takes_refine and not is_replaced else None,
        nonnegative=request.nonnegative,
        integer=request.integer,
        guides=guide_maps,
    )


# ---- risk by threshold ------------------------------------------------------------------------------------------------


def risk_chart(graph: Graph, noisy: Noisy) -> list[dict[str, list[float]]]:
    """Return SURE per node of each scale of the paper's frame, coarse to fine, with as many points as a small chart can show.

    `threshold` is in units of sigma; `taken` is the exact minimum.
    """
    sigma = noisy.noise_level
    curves = paper_risk_curves(graph, np.asarray(noisy.values, dtype=np.float64), sigma)
    minima = [float(curve.thresholds[curve.best]) / sigma for curve in curves]
    end = float(np.clip(1.25 * max(minima), 2.0, 6.0))
    lines = []
    for curve, minimum in zip(curves, minima, strict=True):
        thresholds, risk = curve.resampled(end * sigma, POINTS)
        lines.append({
            "threshold": [round(float(t) / sigma, 4) for t in thresholds],
            "risk": [round(float(y) / graph.n, 5) for y in risk],
            "taken": [round(min(minimum, end), 4), round(float(curve.sure[curve.best]) / graph.n, 5)],
        })  # fmt: skip
    return lines
