"""The tasks of a run that thresholds wavelets. Each is a pure function of files: it writes its files, then its mark, and may run again.

`transform` computes coefficients, probes and weights of the owned nodes; `survey`, `fit` and `scales` the local noise levels that
scaled thresholds follow; `finish` thresholds the coefficients of owned nodes and ghosts, and synthesizes the signal. The tasks that
search thresholds are in `threshold_tasks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.core import _loops, block_sum, shifted
from hushgraph.distributed.cost_model import COMBINED
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import Output, read_array, read_manifest
from hushgraph.estimators import RISK_PROBES, mean_direction
from hushgraph.wavelets import (
    Bands,
    ChebyshevFrame,
    Law,
    Noise,
    Rule,
    Usual,
    apply_thresholds,
    degree_features,
    fitted_weights,
    forward,
    inverse,
    largest_columns,
    mean_weights,
    probes,
    products_in_units,
    sure_exponent,
    weights_of,
)


@dataclass(frozen=True)
class Run:
    """One run: its folders, the files of the signal and of a noise per node, and its settings.

    Parameters
    ----------
    work : Path
        The folder of the prepared graph.
    folder : Path
        The folder of the run.
    signal : Path
        The file of the signal.
    sigma : float or None
        Standard deviation of the noise; None where each node has its own.
    sigma_file : Path or None
        The file of the standard deviations of the nodes.
    method, rule, beta, n_probes, law, seed, nonnegative, integer
        As in `denoise`.
    kept_probes : int
        Number of probes whose transforms are kept for standard errors.
    n_groups : int
        Number of groups of components, for methods that combine candidates.
    offset : float
        The offset of a signal far from 0, for methods that threshold wavelets.
    """

    work: Path
    folder: Path
    signal: Path
    sigma: float | None
    sigma_file: Path | None
    method: str
    rule: Rule
    beta: float | None
    n_probes: int
    law: Law
    seed: int
    nonnegative: bool = False
    integer: bool = False
    kept_probes: int = 1
    n_groups: int = 0
    offset: float = 0.0

    @property
    def scaled(self) -> bool:
        """Whether thresholds follow the local noise level."""
        return self.method != "sgwt_sure"

    @property
    def combined(self) -> bool:
        """Whether the method combines candidates instead of searching thresholds."""
        return self.method in COMBINED

    @property
    def exponent(self) -> float:
        """The exponent of the shrinkage rule."""
        return sure_exponent(self.rule, self.beta)

    @property
    def variance(self) -> float:
        """Variance of the noise; 1 where each node has its own, which the weights contain."""
        return 1.0 if self.sigma is None else self.sigma**2

    def part_folder(self, part: int) -> Path:
        """Return the folder of a partition in this run."""
        return self.folder / f"{part:05d}"

    def output(self, part: int, stage: str) -> Output:
        """Return the files of a stage for a partition."""
        return Output(self.part_folder(part), stage)

    def frame(self, part: Part) -> ChebyshevFrame:
        """Return the frame of the whole graph, on a partition."""
        facts = read_manifest(self.work)
        bands = Bands(facts["n_scales"], facts["base"], facts["plateau"], None, 0)
        coefficients = read_array(self.work / "frame.npy")
        return ChebyshevFrame(
            part, facts["laplacian"], bands, facts["unit"], facts["lambda_upper"], facts["degree"], facts["damping"], coefficients
        )  # fmt: skip

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Return the signal at these nodes."""
        return read_array(self.signal, whole=False)[nodes]

    def centred(self, nodes: np.ndarray) -> np.ndarray:
        """Return the signal at these nodes, less the offset."""
        return shifted(self.values(nodes)[None], -np.array([self.offset]))[0]

    def noise(self, nodes: np.ndarray) -> Noise:
        """Return the noise of these nodes."""
        if self.sigma_file is not None:
            return Noise.of(read_array(self.sigma_file, whole=False)[nodes])
        return Noise.of(self.sigma)

    def probes(self, nodes: np.ndarray, count: int | None = None) -> np.ndarray:
        """Return all probes, or the first `count`, at these nodes, (probes, n); a noise per node multiplies them."""
        noise = self.noise(nodes)
        eps = probes(len(nodes), self.n_probes if count is None else count, law=self.law, seed=self.seed, nodes=nodes)
        return eps if noise.per_node is None else eps * noise.per_node

    def raw_weights(self, part: int) -> np.ndarray:
        """Return the weights of SURE at owned nodes, (n_scales, owned): squared transforms of a probe, or their mean over probes."""
        out = self.output(part, "transform")
        if out.path("weights").exists():
            return out.load("weights")
        bands = out.load("probes")
        return np.square(bands, out=bands)


def transform(run: Run, part: int) -> dict[str, Any]:
    """Write the coefficients of the signal and of the first probes, and the weights, at owned nodes."""
    out = run.output(part, "transform")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, n_scales = run.frame(zone), zone.owned, read_manifest(run.work)["n_scales"]
    bands = forward(frame, run.centred(zone.nodes)[None])[0]
    F = bands[:, owned]
    del bands
    out.save("bands", F)
    facts: dict[str, Any] = {"dtype": F.dtype.str}
    eps = run.probes(zone.nodes)
    few = forward(frame, eps[:RISK_PROBES])
    out.save_rows("probes", (len(few) * n_scales, len(owned)), few.dtype, (band[owned] for probe in few for band in probe))
    if run.n_probes > 1:
        if len(eps) <= RISK_PROBES:
            weights = weights_of(frame, eps, few, domain="coefficients")
        else:
            weights = mean_weights(frame, eps, domain="coefficients")
        out.save("weights", weights[:, owned])
    del few, eps
    zone.forget()
    if not run.scaled:
        facts["extremes"] = _extremes(F, run.raw_weights(part), None)
    return out.mark_done(facts)


def _extremes(F: np.ndarray, weights: np.ndarray, scale: np.ndarray | None) -> list[list[float]]:
    """Return the largest sizes of each scale, which set the bins and units of the search."""
    extremes = []
    for j in range(len(F)):
        x = F[j].astype(np.float64)
        z = _loops.scaled_sizes(x, None if scale is None else np.ascontiguousarray(scale[j]))
        extremes.append(list(_loops.extremes(z, x, np.ascontiguousarray(weights[j], np.float64))))
    return extremes


# ---- thresholds that follow the local noise ----------------------------------------------------------------------------


def survey(run: Run, part: int, variance: float) -> dict[str, Any]:
    """Write the features of the owned nodes, from the degrees and the noise around them; return the largest of each column."""
    out = run.output(part, "survey")
    if (finished := out.read_facts()) is not None:
        return finished
    zone, facts = Part(run.work, part), read_manifest(run.work)
    noise = run.noise(zone.nodes)
    usual = Usual(facts["mean_degree"], facts["most_degree"], variance)
    around = degree_features(zone, None if noise.per_node is None else noise.per_node**2, usual)[:, zone.owned]
    around = np.ascontiguousarray(around)
    out.save("around", around)
    return out.mark_done({"tops": largest_columns(around, run.raw_weights(part)).tolist()})


def fit(run: Run, part: int, tops: list[float]) -> dict[str, Any]:
    """Write the products of the regression, in units that add up over partitions."""
    out = run.output(part, "fit")
    if (finished := out.read_facts()) is not None:
        return finished
    around = run.output(part, "survey").load("around")
    out.save("units", products_in_units(around, run.raw_weights(part), np.array(tops)))
    return out.mark_done({})


def scales(run: Run, part: int, coefficients: list[list[float]], usual: list[float]) -> dict[str, Any]:
    """Write the noise levels of the coefficients of owned nodes; return the extremes where thresholds are searched."""
    out = run.output(part, "scales")
    if (finished := out.read_facts()) is not None:
        return finished
    smooth = fitted_weights(run.output(part, "survey").load("around"), np.array(coefficients), np.array(usual))
    scale = np.sqrt(np.maximum(smooth, 0.0, out=smooth), out=smooth)
    out.save("scale", scale)
    if run.combined:
        return out.mark_done({})
    F = run.output(part, "transform").load("bands")
    return out.mark_done({"extremes": _extremes(F, run.raw_weights(part), scale)})


# ---- the signal --------------------------------------------------------------------------------------------------------


def finish(run: Run, part: int, thresholds: list[float]) -> dict[str, Any]:
    """Write the denoised signal of owned nodes, and return the terms of the risk."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, n_scales = run.frame(zone), zone.owned, len(thresholds)
    F = zone.fill(np.empty((n_scales, zone.n), _dtype(run, part)), run.part_folder, "transform", "bands")
    slope = _threshold(run, zone, F, np.array(thresholds))
    signal = inverse(frame, F[None])[0][owned]
    del F
    out.save("signal", shifted(signal[None], np.array([run.offset]))[0])
    weights = run.raw_weights(part)
    divergence = [float(block_sum(w * s[owned])) for w, s in zip(weights, slope, strict=True)]
    del weights
    if run.offset:
        direction = mean_direction(frame, run.noise(zone.nodes), read_manifest(run.work)["n"], slope)
        divergence = [d - float(block_sum(w[owned] * s[owned])) for d, w, s in zip(divergence, direction, slope, strict=True)]
        del direction
    noise = run.noise(zone.nodes[owned])
    square = np.square(signal - run.centred(zone.nodes[owned]), dtype=np.float64)
    traces, turned, eps = [], [], run.probes(zone.nodes[owned], run.kept_probes)
    for p in range(run.kept_probes):
        bands = _probe_bands(run, zone, p, n_scales, slope.dtype)
        product = np.multiply(slope, bands, out=slope if p == run.kept_probes - 1 else None)
        del bands
        ahead = inverse(frame, product[None])[0][owned]
        traces.append(float(block_sum(noise.weigh(np.square(ahead, dtype=np.float64)))))
        turned.append(float(block_sum(noise.weigh(np.multiply(eps[p], ahead, dtype=np.float64)))))
    zone.forget()
    return out.mark_done(
        {
            "residual": float(block_sum(square)),
            "weighted": float(block_sum(noise.weigh(square))),
            "divergence": divergence,
            "traces": traces,
            "turned": turned,
        }
    )


def _dtype(run: Run, part: int) -> np.dtype:
    """Return the type of the coefficients."""
    return run.output(part, "transform").load("bands", whole=False).dtype


def _threshold(run: Run, zone: Part, F: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Threshold the coefficients in place, scale by scale, and return the slopes."""
    slope = np.empty_like(F)
    scale = np.empty((1, zone.n)) if run.scaled else None
    for j in range(len(F)):
        row = slice(j, j + 1)
        if scale is not None:
            zone.fill(scale, run.part_folder, "scales", "scale", row=j)
        apply_thresholds(F[row], t[row], slope[row], rule=run.rule, beta=run.beta, scale=scale)
    return slope


def _probe_bands(run: Run, zone: Part, p: int, n_scales: int, dtype: np.dtype) -> np.ndarray:
    """Return the coefficients of a probe at owned nodes and ghosts."""
    bands = np.empty((n_scales, zone.n), dtype)
    for j in range(n_scales):
        zone.fill(bands[j : j + 1], run.part_folder, "transform", "probes", row=p * n_scales + j)
    return bands
