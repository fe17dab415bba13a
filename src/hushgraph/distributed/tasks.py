"""The tasks of a run that thresholds wavelets. Each is a pure function of files: it writes its own, then its mark, and may run again.

`transform` makes coefficients, probes and weights of a partition's nodes; `survey`, `fit` and `scales` the local noise levels of
thresholds that follow them; `finish` thresholds coefficients, its own and those of the ghosts, and synthesizes the signal.
`thresholds` has the tasks in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from hushgraph.core import _loops
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.size import COMBINED
from hushgraph.distributed.store import Output, manifest_of, read_array
from hushgraph.frame import Bands, ChebyshevFrame
from hushgraph.local_noise import Usual, fitted_weights, largest_columns, products_in_units, surroundings
from hushgraph.risk import mean_weights, probes, weights_of
from hushgraph.sgwt import RISK_PROBES, Noise, mean_direction
from hushgraph.shrink import sure_exponent
from hushgraph.sums import block_sum, shifted
from hushgraph.threshold import apply_thresholds
from hushgraph.transform import forward, inverse


@dataclass(frozen=True)
class Run:
    """One run: its folders, the files of the signal and of a noise per node, and how to threshold."""

    work: Path
    folder: Path
    signal: Path
    sigma: float | None
    sigma_file: Path | None
    method: str
    rule: Any
    beta: float | None
    n_probes: int
    law: Any
    seed: int
    nonnegative: bool = False
    integer: bool = False
    kept_probes: int = 1
    n_groups: int = 0  # of components, for `let`
    offset: float = 0.0  # of a signal far from 0, for the methods that threshold wavelets

    @property
    def scaled(self) -> bool:
        return self.method != "sgwt_sure"

    @property
    def combined(self) -> bool:
        """Whether the method combines candidates, and searches no thresholds."""
        return self.method in COMBINED

    @property
    def exponent(self) -> float:
        return sure_exponent(self.rule, self.beta)

    @property
    def variance(self) -> float:
        """That of the noise; 1 where each node has its own, and weights hold it."""
        return 1.0 if self.sigma is None else self.sigma**2

    def part_folder(self, part: int) -> Path:
        return self.folder / f"{part:05d}"

    def output(self, part: int, stage: str) -> Output:
        return Output(self.part_folder(part), stage)

    def frame(self, part: Part) -> ChebyshevFrame:
        """The frame of the whole graph, on a partition."""
        facts = manifest_of(self.work)
        bands = Bands(facts["n_scales"], facts["base"], facts["plateau"], None, 0)
        coefficients = read_array(self.work / "frame.npy")
        return ChebyshevFrame(
            cast(Any, part), facts["laplacian"], bands, facts["unit"], facts["lambda_upper"], facts["degree"], facts["damping"], coefficients
        )  # fmt: skip

    def values(self, nodes: np.ndarray) -> np.ndarray:
        return read_array(self.signal, whole=False)[nodes]

    def centred(self, nodes: np.ndarray) -> np.ndarray:
        """The signal at these nodes, less the offset."""
        return shifted(self.values(nodes)[None], -np.array([self.offset]))[0]

    def noise(self, nodes: np.ndarray) -> Noise:
        """The noise of these nodes."""
        if self.sigma_file is not None:
            return Noise.of(read_array(self.sigma_file, whole=False)[nodes])
        return Noise.of(self.sigma)

    def probes(self, nodes: np.ndarray, count: int | None = None) -> np.ndarray:
        """(probes, n) at these nodes, all or the first few, with the size of their noise if each has its own."""
        noise = self.noise(nodes)
        eps = probes(len(nodes), self.n_probes if count is None else count, law=self.law, seed=self.seed, nodes=nodes)
        return eps if noise.per_node is None else eps * noise.per_node

    def raw_weights(self, part: int) -> np.ndarray:
        """Weights of SURE of owned nodes (n_scales, owned): squares of the transforms of a single probe, or their mean."""
        out = self.output(part, "transform")
        if out.path("weights").exists():
            return out.load("weights")
        bands = out.load("probes")
        return np.square(bands, out=bands)


def transform(run: Run, part: int) -> dict[str, Any]:
    """Coefficients of the signal and of the first probes, and weights, at owned nodes."""
    out = run.output(part, "transform")
    if (known := out.known()) is not None:
        return known
    here = Part(run.work, part)
    frame, own, n_scales = run.frame(here), here.own, manifest_of(run.work)["n_scales"]
    bands = forward(frame, run.centred(here.nodes)[None])[0]
    F = bands[:, own]
    del bands
    out.save("bands", F)
    found = {"dtype": F.dtype.str}
    eps = run.probes(here.nodes)
    few = forward(frame, eps[:RISK_PROBES])
    out.save_rows("probes", (len(few) * n_scales, len(own)), few.dtype, (band[own] for probe in few for band in probe))
    if run.n_probes > 1:
        known_few = len(eps) <= RISK_PROBES
        weights = (
            weights_of(frame, eps, few, domain="coefficients") if known_few else mean_weights(frame, eps, domain="coefficients")
        )
        out.save("weights", weights[:, own])
    del few, eps
    here.forget()
    if not run.scaled:
        found["extremes"] = _extremes(F, run.raw_weights(part), None)
    return out.done(found)


def _extremes(F: np.ndarray, weights: np.ndarray, scale: np.ndarray | None) -> list[list[float]]:
    """Of each scale, what bins and units are made of."""
    found = []
    for j in range(len(F)):
        x = F[j].astype(np.float64)
        z = _loops.scaled_sizes(x, None if scale is None else np.ascontiguousarray(scale[j]))
        found.append(list(_loops.extremes(z, x, np.ascontiguousarray(weights[j], np.float64))))
    return found


# ---- thresholds that follow the local noise ----------------------------------------------------------------------------


def survey(run: Run, part: int, variance: float) -> dict[str, Any]:
    """What is known around the owned nodes, and how large it gets."""
    out = run.output(part, "survey")
    if (known := out.known()) is not None:
        return known
    here, facts = Part(run.work, part), manifest_of(run.work)
    noise = run.noise(here.nodes)
    usual = Usual(facts["mean_degree"], facts["most_degree"], variance)
    around = surroundings(cast(Any, here), None if noise.per_node is None else noise.per_node**2, usual)[:, here.own]
    around = np.ascontiguousarray(around)
    out.save("around", around)
    return out.done({"tops": largest_columns(around, run.raw_weights(part)).tolist()})


def fit(run: Run, part: int, tops: list[float]) -> dict[str, Any]:
    """Products of the regression, in units that add up over partitions."""
    out = run.output(part, "fit")
    if (known := out.known()) is not None:
        return known
    around = run.output(part, "survey").load("around")
    out.save("units", products_in_units(around, run.raw_weights(part), np.array(tops)))
    return out.done({})


def scales(run: Run, part: int, coefficients: list, usual: list[float]) -> dict[str, Any]:
    """Noise levels of the coefficients of owned nodes; where thresholds are searched, also what their bins are made of."""
    out = run.output(part, "scales")
    if (known := out.known()) is not None:
        return known
    smooth = fitted_weights(run.output(part, "survey").load("around"), np.array(coefficients), np.array(usual))
    scale = np.sqrt(np.maximum(smooth, 0.0, out=smooth), out=smooth)
    out.save("scale", scale)
    if run.combined:
        return out.done({})
    F = run.output(part, "transform").load("bands")
    return out.done({"extremes": _extremes(F, run.raw_weights(part), scale)})


# ---- the signal --------------------------------------------------------------------------------------------------------


def finish(run: Run, part: int, thresholds: list[float]) -> dict[str, Any]:
    """The denoised signal of owned nodes, and the partition's terms of the risk."""
    out = run.output(part, "finish")
    if (known := out.known()) is not None:
        return known
    here = Part(run.work, part)
    frame, own, n_scales = run.frame(here), here.own, len(thresholds)
    F = here.fill(np.empty((n_scales, here.n), _dtype(run, part)), run.part_folder, "transform", "bands")
    slope = _threshold(run, here, F, np.array(thresholds))
    signal = inverse(frame, F[None])[0][own]
    del F
    out.save("signal", shifted(signal[None], np.array([run.offset]))[0])
    weights = run.raw_weights(part)
    divergence = [float(block_sum(w * s[own])) for w, s in zip(weights, slope, strict=True)]
    del weights
    if run.offset:
        direction = mean_direction(frame, run.noise(here.nodes), manifest_of(run.work)["n"], slope)
        divergence = [d - float(block_sum(w[own] * s[own])) for d, w, s in zip(divergence, direction, slope, strict=True)]
        del direction
    noise = run.noise(here.nodes[own])
    square = np.square(signal - run.centred(here.nodes[own]), dtype=np.float64)
    traces, turned, eps = [], [], run.probes(here.nodes[own], run.kept_probes)
    for p in range(run.kept_probes):
        bands = _probe_bands(run, here, p, n_scales, slope.dtype)
        product = np.multiply(slope, bands, out=slope if p == run.kept_probes - 1 else None)
        del bands
        ahead = inverse(frame, product[None])[0][own]
        traces.append(float(block_sum(noise.weigh(np.square(ahead, dtype=np.float64)))))
        turned.append(float(block_sum(noise.weigh(np.multiply(eps[p], ahead, dtype=np.float64)))))
    here.forget()
    return out.done(
        {
            "residual": float(block_sum(square)),
            "weighted": float(block_sum(noise.weigh(square))),
            "divergence": divergence,
            "traces": traces,
            "turned": turned,
        }
    )


def _dtype(run: Run, part: int):
    return run.output(part, "transform").load("bands", whole=False).dtype


def _threshold(run: Run, here: Part, F: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Threshold the coefficients scale by scale; returns the slopes."""
    slope = np.empty_like(F)
    scale = np.empty((1, here.n)) if run.scaled else None
    for j in range(len(F)):
        row = slice(j, j + 1)
        if scale is not None:
            here.fill(scale, run.part_folder, "scales", "scale", row=j)
        apply_thresholds(F[row], t[row], slope[row], rule=run.rule, beta=run.beta, scale=scale)
    return slope


def _probe_bands(run: Run, here: Part, p: int, n_scales: int, dtype) -> np.ndarray:
    bands = np.empty((n_scales, here.n), dtype)
    for j in range(n_scales):
        here.fill(bands[j : j + 1], run.part_folder, "transform", "probes", row=p * n_scales + j)
    return bands
