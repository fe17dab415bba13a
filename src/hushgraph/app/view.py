"""What the page shows of a noisy map: the denoised one, typical errors and risk by threshold. It sees noisy values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushgraph.app.charts import thinned
from hushgraph.app.packing import pack_values
from hushgraph.counts import why_not
from hushgraph.denoise import Method, denoise
from hushgraph.frame import Frame, chebyshev_frame
from hushgraph.graph import Graph
from hushgraph.observation import Noisy
from hushgraph.result import Denoised
from hushgraph.risk import monte_carlo_weights
from hushgraph.threshold import sure_curve
from hushgraph.transform import analyze

METHODS: dict[Method, str] = {
    "auto": "Combined, best of all (default)",
    "let": "Combined, quick (SURE-LET)",
    "counts": "Empirical Bayes for counts",
    "sgwt_sure": "Wavelets, the paper's method",
    "sgwt_scaled": "Wavelets, local thresholds",
    "sgwt_deep": "Wavelets, deeper bands",
    "sgwt_block": "Wavelets in blocks",
    "sgwt_beta": "Wavelets, chosen exponents",
}
RULED = ("sgwt_sure", "sgwt_scaled", "sgwt_deep")  # methods whose thresholding rule can be chosen
REFINED = ("auto", "let")  # methods that may look a second time
SLOW = ("auto", "counts", "sgwt_deep", "sgwt_block")  # stood in for by QUICK while the slider moves
QUICK: Method = "let"
POINTS = 72  # of each risk curve
_FINE = 64.0  # steps per sigma of the values that are sent

PageRule = Literal["james_stein", "soft"]


@dataclass(frozen=True)
class Wish:
    """What the page asks to see; `moving` while the slider is on its way."""

    epsilon: float
    method: Method = "auto"
    rule: PageRule = "james_stein"
    refine: bool = True
    nonnegative: bool = True
    integer: bool = False
    moving: bool = False
    plan: bool = True  # the next release, or the one that is there

    @property
    def method_now(self) -> Method:
        """A fast method while the slider moves."""
        return QUICK if self.moving and self.method in SLOW else self.method


def methods_for(graph: Graph) -> list[dict]:
    """Methods that can be used on this graph, with what can be chosen about each."""
    return [
        {"name": name, "title": title, "rule": name in RULED, "refine": name in REFINED, "refine_default": name == "auto"}
        for name, title in METHODS.items()
        if name != "counts" or why_not(graph) is None
    ]


def view(graph: Graph, noisy: Noisy, wish: Wish, *, order: np.ndarray, truth: np.ndarray | None = None) -> dict:
    """Maps and numbers for one noisy map, ready for JSON; `truth` only where it is generated."""
    result = _denoised(graph, noisy, wish)
    step = noisy.noise_level / _FINE
    errors = {"noisy": noisy.noise_level, **typical_error(result)}
    if truth is not None:
        errors["actual"] = float(np.sqrt(np.mean((result.signal - truth) ** 2)))
    return {
        "method": wish.method_now,
        "settled": wish.method_now == wish.method,
        "sigma": noisy.sigma,
        "errors": errors,
        "why": str(result.details.get("why", "")),
        "notes": list(result.details.get("notes", [])),
        "risk": risk_curves(graph, noisy),
        "maps": {
            "noisy": pack_values(np.asarray(noisy.values, dtype=np.float64)[order], step=step),
            "denoised": pack_values(np.asarray(result.signal, dtype=np.float64)[order], step=step),
        },
    }


def typical_error(result: Denoised) -> dict[str, float | None]:
    """Root of the estimated mean squared error; `below` is a bound in its place, None an error that is not known."""
    error = result.typical_error
    return {"below" if error.is_bound else "denoised": error.size if error.is_known else None}


def _denoised(graph: Graph, noisy: Noisy, wish: Wish) -> Denoised:
    method = wish.method_now
    stands_in = method != wish.method
    return denoise(
        graph,
        noisy,
        method=method,
        rule=wish.rule if method in RULED else "james_stein",
        refine=wish.refine if method in REFINED and not stands_in else None,
        nonnegative=wish.nonnegative,
        integer=wish.integer,
    )


# ---- risk by threshold ------------------------------------------------------------------------------------------------


def risk_curves(graph: Graph, noisy: Noisy) -> list[dict]:
    """SURE per node of each scale of the paper's frame, coarse to fine, thinned to what a small chart can show.

    `threshold` is in units of sigma; `taken` is the exact minimum.
    """
    frame, weights = graph.latest("explorer frame", (), lambda: _frame_and_weights(graph))
    sigma = noisy.noise_level
    F = analyze(frame, np.asarray(noisy.values, dtype=np.float64))
    curves = [sure_curve(x, g, sigma=sigma) for x, g in zip(F, weights, strict=True)]
    best = [int(np.argmin(values)) for _, values in curves]
    taken = [float(t[at]) / sigma for (t, _), at in zip(curves, best, strict=True)]
    far = float(np.clip(1.25 * max(taken), 2.0, 6.0))
    lines = []
    for (t, values), at, point in zip(curves, best, taken, strict=True):
        grid, risk = thinned(t, values, far * sigma, POINTS)
        lines.append({
            "threshold": [round(float(x) / sigma, 4) for x in grid],
            "risk": [round(float(y) / graph.n, 5) for y in risk],
            "taken": [round(min(point, far), 4), round(float(values[at]) / graph.n, 5)],
        })  # fmt: skip
    return lines


def _frame_and_weights(graph: Graph) -> tuple[Frame, np.ndarray]:
    """What depends on the graph alone is worked out once."""
    frame = chebyshev_frame(graph)
    return frame, monte_carlo_weights(frame)
