"""Where the paper needed correcting, each place shown by numbers: what is printed, what is right, and what comes out.

Right values come from formulas; measured ones another way: all 2^n probes tried, losses of many draws of the noise, derivatives
as differences, integrals, counts. A formula agrees with what was measured if they are equal up to rounding, or, where noise is
drawn, within 4.9 standard errors (a false alarm in a million).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import integrate, optimize, stats

from hushgraph.datasets import grid
from hushgraph.experiments import output
from hushgraph.experiments.fig_plateaus import band_sum
from hushgraph.experiments.stage import Stage
from hushgraph.graphs import Graph
from hushgraph.privacy import bounded_counts, classical_sigma, gaussian_delta, squared_sensitivity
from hushgraph.wavelets import (
    Frame,
    analyze,
    as_linear_operator,
    chebyshev_frame,
    exact_frame,
    exact_weights,
    forward,
    shrink,
    signal_sure,
    smooth_plateau,
    sure,
    sure_variance,
    synthesize,
)

NAME = "corrections"
TITLE = "Corrections to the paper, by numbers"

SIGMA = 1.3
ROUNDING = 1e-9
Claim = Literal["equal", "at most", "at least"]  # what the paper says of its number
Z = stats.norm.isf(0.5e-6)


def seven_nodes() -> Graph:
    """Return a weighted graph with two components and an isolated node; it has 128 vectors of signs."""
    return Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)], n=7, weights=[0.5, 2.0, 1.3, 0.7, 1.1])


def small_grid() -> Graph:
    """Return a grid of 48 nodes with unequal weights and so unequal degrees."""
    unweighted = grid(6, 8)
    ends = np.stack(unweighted.adjacency.tocoo().coords, axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    return Graph.from_edges(ends, n=unweighted.n, weights=np.random.default_rng(2).uniform(0.3, 3, len(ends)))


def agree(value: float, measured: float, error: float = 0.0, tolerance: float = ROUNDING, claim: Claim = "equal") -> bool:
    """Return whether the measured number is the value (or at most, or at least the value), within Z standard errors or rounding."""
    room = max(Z * error, tolerance * max(1.0, abs(measured)))
    return bool((claim == "at least" or measured <= value + room) and (claim == "at most" or measured >= value - room))


def compared(
    correction: str, quantity: str, printed: float, right: float, measured: float, *,
    by: str, errors: tuple[float, float] = (0.0, 0.0), tolerance: float = ROUNDING, claim: Claim = "equal",
) -> dict:  # fmt: skip
    """Return a row of the table; `errors` are the standard errors of the printed and of the right value minus the measured one."""
    return {
        "correction": correction, "quantity": quantity,
        "printed": float(printed), "right": float(right), "measured": float(measured), "measured_by": by,
        "standard_error": errors[1], "tolerance": tolerance, "printed_is": claim,
        "printed_agrees": agree(printed, measured, errors[0], tolerance, claim),
        "agrees": agree(right, measured, errors[1], tolerance),
    }  # fmt: skip


def run(stage: Stage) -> list[dict]:
    """Return one row per tested statement of the paper."""
    draws = 1000 if stage.smoke else 4000
    rows = []
    for name, demonstration in DEMONSTRATIONS.items():
        settings = {"graphs": [seven_nodes().hash, small_grid().hash], "sigma": SIGMA, "draws": draws, "version": 2}
        rows += stage.cells.value(f"{NAME}-{name}", settings, partial(demonstration, draws))
    return rows


# ---- Propositions 1 and 2, all probes tried ---------------------------------------------------------------------------


def printed_variance(W: np.ndarray) -> np.ndarray:
    """Return N Var of the weights of all pairs (i, j) for Rademacher probes, as Proposition 1 prints it."""
    return 2 * ((W @ W.T) ** 2 - (W**2) @ (W**2).T)


def corrected_variance(W: np.ndarray) -> np.ndarray:
    """Return the same, corrected: sum_{p!=q} W_ip^2 W_jq^2 + sum_{p!=q} W_ip W_iq W_jp W_jq."""
    same, energy = (W**2) @ (W**2).T, np.sum(W**2, axis=1)
    return np.outer(energy, energy) + (W @ W.T) ** 2 - 2 * same


def all_transforms(frame: Frame) -> np.ndarray:
    """Return W eps for each of the 2^n probes eps of signs: (2^n, n_scales * n)."""
    signs = np.array(list(product([-1.0, 1.0], repeat=frame.graph.n)))
    return forward(frame, signs).reshape(len(signs), -1)


def _proposition_1(_: int) -> list[dict]:
    frame = exact_frame(seven_nodes())
    W, bands = as_linear_operator(frame) @ np.eye(frame.graph.n), all_transforms(frame)
    measured = np.var(bands[:, :, None] * bands[:, None, :], axis=0)
    printed, right = printed_variance(W), corrected_variance(W)
    errors = np.where(printed > 1e-3, np.abs(printed - measured), 0.0)
    pairs = {"i != j, where the printed form is positive and errs most": np.unravel_index(np.argmax(errors), errors.shape)}
    pairs["i != j, where it is most negative"] = np.unravel_index(np.argmin(printed), printed.shape)
    most = int(np.argmax(np.diag(measured)))
    pairs["i = j, the case that is used"] = (np.intp(most), np.intp(most))
    by = f"all {len(bands)} Rademacher probes"
    return [
        compared("Proposition 1", f"variance of an estimated weight, {case}", printed[pair], right[pair], measured[pair], by=by)
        for case, pair in pairs.items()
    ]


def four_indices(W: np.ndarray, jacobian: np.ndarray) -> float:
    """Return the sum over i, j, k, l of Proposition 2 for Rademacher probes, term by term as printed."""
    same = np.einsum("ij,lk,ip,jp,kp,lp->", jacobian, jacobian, W, W, W, W, optimize=True)
    first = np.einsum("ij,lk,ip,jq,kp,lq->", jacobian, jacobian, W, W, W, W, optimize=True) - same
    second = np.einsum("ij,lk,ip,jq,kq,lp->", jacobian, jacobian, W, W, W, W, optimize=True) - same
    return float(first + second)


def _proposition_2(_: int) -> list[dict]:
    frame = exact_frame(seven_nodes())
    W, bands = as_linear_operator(frame) @ np.eye(frame.graph.n), all_transforms(frame)
    F = analyze(frame, np.random.default_rng(5).normal(0, 3, frame.graph.n))
    t = np.quantile(np.abs(F), 0.4, axis=1)
    slope = shrink(F, t[:, None])[1].ravel()
    measured = np.var(2 * SIGMA**2 * (bands**2 @ slope))
    printed = 4 * SIGMA**4 * four_indices(W, np.diag(slope))
    right = sure_variance(frame, F, t, sigma=SIGMA, n_probes=1)
    quantity = "variance of SURE over one probe: the printed sum over four indices, and 2 |M|^2 - 2 sum M_pp^2"
    return [compared("Proposition 2", quantity, printed, right, measured, by=f"all {len(bands)} Rademacher probes")]


# ---- SURE, many draws of the noise ------------------------------------------------------------------------------------


def _drawn(frame: Frame, draws: int) -> dict[str, np.ndarray]:
    """Return the two SUREs and the two losses at fixed thresholds, one value per draw of the noise."""
    n, rng = frame.graph.n, np.random.default_rng(3)
    truth = 3 * np.sin(np.linspace(0, 4, n)) + 4 * (np.arange(n) % 9 == 0)
    noisy = truth[:, None] + SIGMA * rng.normal(size=(n, draws))
    F, t, weights = analyze(frame, noisy), SIGMA * np.linspace(0.3, 1.2, frame.n_scales), exact_weights(frame)
    value, slope = shrink(F, np.broadcast_to(t[:, None, None], F.shape))
    denoised = synthesize(frame, value)
    right = sure(F, t, weights=weights, sigma=SIGMA)
    return {
        "sure": np.asarray(right),
        "printed": np.asarray(right) + SIGMA**2 * (weights.sum() - n),  # the constant -n sigma^2
        "signal_sure": signal_sure(noisy, denoised, divergence=np.einsum("ji,jim->m", weights, slope), sigma=SIGMA),
        "coefficient_loss": np.sum((value - analyze(frame, truth)[:, :, None]) ** 2, axis=(0, 1)),
        "signal_loss": np.sum((denoised - truth[:, None]) ** 2, axis=0),
    }


def _means(correction: str, quantity: str, drawn: dict, printed: str, right: str, measured: str) -> dict:
    errors = (float(stats.sem(drawn[printed] - drawn[measured])), float(stats.sem(drawn[right] - drawn[measured])))
    means = (float(drawn[name].mean()) for name in (printed, right, measured))
    return compared(correction, quantity, *means, by=f"mean loss of {len(drawn[measured])} draws of the noise", errors=errors)


def _what_sure_estimates(draws: int) -> list[dict]:
    drawn = _drawn(exact_frame(small_grid()), draws)
    quantity = "squared error of the signal: SURE of the coefficients, and SURE of the signal"
    return [_means("SURE estimates the error of the signal", quantity, drawn, "sure", "signal_sure", "signal_loss")]


def _constant(draws: int) -> list[dict]:
    title, quantity = "constant of SURE", "squared error of the coefficients: -n sigma^2, and -sigma^2 sum(weights)"
    frames: dict[str, Frame] = {
        "exact frame": exact_frame(small_grid()),
        "polynomials of degree 12": chebyshev_frame(small_grid(), degree=12),
    }
    rows = [
        _means(title, f"{quantity}; {kind}", _drawn(frame, draws), "printed", "sure", "coefficient_loss")
        for kind, frame in frames.items()
    ]
    frame = chebyshev_frame(seven_nodes(), degree=100)
    energy = float(np.mean(np.sum(all_transforms(frame) ** 2, axis=1)))
    quantity = (
        "mean energy of transformed noise, sigma = 1: n, and sum(weights); polynomials of degree 100, Jackson, as in the paper"
    )
    return [*rows, compared(title, quantity, frame.graph.n, exact_weights(frame).sum(), energy, by="all 128 Rademacher probes")]


# ---- frames -----------------------------------------------------------------------------------------------------------


def _plateau(_: int) -> list[dict]:
    top, rows = 7.9, []
    x = np.linspace(0, top, 2001)
    for c in (1.0, 0.5):
        right = float(smooth_plateau(top / 16, c=c))  # the bands telescope to h_c(b^-J x), here J = 4, and h_c decreases
        quantity = f"smallest sum of the bands on [0, {top}], b = 2, c = {c:g}: 1, and h_c(lambda_max / b^J)"
        rows.append(
            compared("h_c as a plateau", quantity, 1.0, right, band_sum(x, top, c=c).min(), by="bands added up at 2,001 points")
        )
    return rows


def _random_walk(_: int) -> list[dict]:
    graph = small_grid()
    frame, rng = exact_frame(graph, laplacian="random_walk"), np.random.default_rng(7)
    x, y = rng.normal(size=graph.n), rng.normal(size=(frame.n_scales, graph.n))
    title, D = "random walk: inverse = adjoint", graph.degrees
    inner = float(np.sum(analyze(frame, x) * y))
    quantity = "<Wx, y>: <x, Sy> with S the inverse, and <x, D S D^-1 y>"
    rows = [compared(title, quantity, x @ synthesize(frame, y), x @ (D * synthesize(frame, y / D)), inner, by="the transform W")]

    def estimate(noisy: np.ndarray) -> np.ndarray:
        return synthesize(frame, shrink(analyze(frame, noisy), t[:, None], rule="soft")[0])

    t, step = SIGMA * np.linspace(0.3, 1.2, frame.n_scales), 1e-6
    measured = sum(
        (estimate(x + step * unit)[i] - estimate(x - step * unit)[i]) / (2 * step) for i, unit in enumerate(np.eye(graph.n))
    )
    slope = shrink(analyze(frame, x), t[:, None], rule="soft")[1]
    printed, right = (float(np.sum(exact_weights(frame, domain=domain) * slope)) for domain in ("coefficients", "signal"))
    quantity = "divergence of the denoised signal: weights diag(W W'), and diag(W S)"
    return [*rows, compared(title, quantity, printed, right, measured, by="central differences", tolerance=1e-6)]


def _damping(_: int) -> list[dict]:
    graph, degree = grid(20, 20), 100
    plain, damped = chebyshev_frame(graph, degree=degree, damping=None), chebyshev_frame(graph, degree=degree)
    x = plain.lambda_upper / 2 * (1 - np.cos(np.linspace(0, np.pi, 200_001)))
    measured = float(np.max(np.abs(np.sum(plain.filters(x) ** 2, axis=0) - 1)))
    quantity = f"tightness defect without damping, degree {degree}, linear plateau: Jackson's, and its own bound"
    return [
        compared("Jackson damping converges better", quantity, damped.tightness_defect, plain.tightness_defect, measured,
                 by="|sum of rho_j^2 - 1| at 200,001 points", tolerance=2e-4, claim="at least")
    ]  # fmt: skip


# ---- privacy ----------------------------------------------------------------------------------------------------------


def integrated_delta(sigma: float, epsilon: float) -> float:
    """Return the integral of (p - e^epsilon q)+ for p = N(1, sigma^2) and q = N(0, sigma^2): delta by its definition, sensitivity 1."""
    start = sigma**2 * epsilon + 0.5  # p exceeds e^epsilon q from here on
    excess = lambda x: stats.norm.pdf(x, 1, sigma) - math.exp(epsilon) * stats.norm.pdf(x, 0, sigma)  # noqa: E731
    return float(integrate.quad(excess, start, start + 12 * sigma, epsabs=0, epsrel=1e-10, limit=200)[0])


def classical_formula(epsilon: float, delta: float) -> float:
    """Return sqrt(2 log(1.25 / delta)) / epsilon for any epsilon, proven or not."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def first_failure(delta: float) -> float:
    """Return the epsilon from which on the classical formula gives too little noise."""
    return float(
        optimize.brentq(
            lambda e: math.log(gaussian_delta(sigma=classical_formula(e, delta), epsilon=e, sensitivity=1) / delta), 1, 50
        )
    )


def _classical(_: int) -> list[dict]:
    delta = 1e-6
    sigma, limit = classical_sigma(epsilon=1, delta=delta, sensitivity=1, paper_compat=True), first_failure(delta)
    rows, title, by = [], "classical mechanism, proven for epsilon < 1", "the integral of (p - e^epsilon q)+"
    cases = {
        1.0: (sigma, "as in the paper"),
        2 * limit: (classical_formula(2 * limit, delta), f"too little from epsilon = {limit:.1f} on"),
    }
    for epsilon, (noise, remark) in cases.items():
        quantity = f"delta / {delta:g} of its noise {noise:.2f} at epsilon = {epsilon:.3g} ({remark}): as asked, and exact"
        right, measured = gaussian_delta(sigma=noise, epsilon=epsilon, sensitivity=1), integrated_delta(noise, epsilon)
        rows.append(compared(title, quantity, 1.0, right / delta, measured / delta, by=by, tolerance=1e-8, claim="at most"))
    return rows


def _sensitivity(_: int) -> list[dict]:
    others, key = np.array([0, 1, 2, 2, 4]), np.arange(1, 7, dtype=np.uint64)

    def counts(trips: list[int], max_cells: int, max_per_cell: int) -> np.ndarray:
        units = np.concatenate([np.arange(5), np.full(len(trips), 5)])
        cells = np.concatenate([others, np.array(trips, dtype=np.int64)])
        return bounded_counts(units, cells, key, n_cells=6, max_cells=max_cells, max_per_cell=max_per_cell)

    title, rows = "sensitivity", []
    cases = {
        "four trips from distinct places, add or remove a person": ([0, 1, 2, 3], [], 4, 1, "add-remove", 2.0),
        "four trips from one place, add or remove a person": ([3, 3, 3, 3], [], 1, 4, "add-remove", 2.0),
        "one trip, moved elsewhere (change one person)": ([3], [5], 1, 1, "change-one", 1.0),
    }
    for case, (with_them, without, nodes, each, adjacency, printed) in cases.items():
        measured = float(np.linalg.norm(counts(with_them, nodes, each) - counts(without, nodes, each)))
        right = math.sqrt(squared_sensitivity(nodes, each, adjacency))  # type: ignore[arg-type]
        rows.append(
            compared(
                title, f"L2 distance of two maps: {case}", printed, right, measured, by="counted with and without", claim="at most"
            )
        )
    return rows


DEMONSTRATIONS: dict[str, Callable[[int], list[dict]]] = {
    "proposition-1": _proposition_1, "proposition-2": _proposition_2, "signal": _what_sure_estimates, "constant": _constant,
    "plateau": _plateau, "random-walk": _random_walk, "damping": _damping, "classical": _classical, "sensitivity": _sensitivity,
}  # fmt: skip


# ---- for readers ------------------------------------------------------------------------------------------------------


def render(rows: list[dict], folder: Path) -> list[Path]:
    return output.write_files(folder, NAME, rows, _text(rows))


def _text(rows: list[dict]) -> str:
    answer = {True: "yes", False: "**no**"}
    lines = [
        [row["correction"], row["quantity"].replace("|", "\\|"), *_numbers(row), row["measured_by"].replace("|", "\\|"),
         answer[row["printed_agrees"]], answer[row["agrees"]]]
        for row in rows
    ]  # fmt: skip
    head = [
        "statement",
        "quantity: as printed, and as it should be",
        "printed",
        "right",
        "measured",
        "measured by",
        "printed holds",
        "right holds",
    ]
    hold = {name: sum(row[name] for row in rows) for name in ("agrees", "printed_agrees")}
    return f"""## {TITLE}

Computed on tiny graphs: seven weighted nodes, where all 128 Rademacher probes can be tried, and grids of 48 and 400 nodes. A value
holds if it equals what was measured up to rounding, or within {Z:.1f} standard errors (±) where the noise is drawn.

{output.markdown(head, lines)}

{hold["agrees"]} of {len(rows)} corrected values hold, and {hold["printed_agrees"]} of the printed ones.

{NOTES}"""


def _numbers(row: dict) -> list[str]:
    words = {"equal": "", "at most": "at most ", "at least": "at least "}
    measured = 0.0 if abs(row["measured"]) < 1e-15 else row["measured"]
    spread = f" ± {row['standard_error']:.2g}" if row["standard_error"] else ""
    return [f"{words[row['printed_is']]}{row['printed']:.6g}", f"{row['right']:.6g}{spread}", f"{measured:.6g}"]


NOTES = """- Proposition 1 is right for i = j, the case that coordinate-wise thresholds use. For i != j it is even negative in
  places. The bracket of the paper's own Proposition 2 at (k, l) = (i, j) is the corrected form.
- Proposition 2 is right, and listed for its cost: a sum over (n (J + 1))^4 terms. With M = W' diag(slope) W it is Hutchinson's
  variance of a trace and takes one transform per node.
- SURE is unbiased for the coefficients. The error of the signal is smaller, because synthesis projects; its own SURE has the same
  divergence.
- The constant of SURE matters for frames that are not tight: much at degree 12, little at the paper's degree 100.
- The classical formula is proven for epsilon < 1. At epsilon = 1 its noise gives far less than the delta asked for, so it is
  wasteful there rather than unsafe, but the theorem does not say so; for larger epsilon it fails, as the second row shows.
- A sensitivity of 2 for four trips holds for distinct places, as the paper assumes: it takes a bound for each place too. For one
  person changed instead of added or removed, sensitivities are sqrt(2) larger.
"""
