"""The tasks of a run that thresholds wavelets. Each is a pure function of files: it writes its files, then its mark, and may run again.

`transform` computes coefficients, probes and weights of the owned nodes; `survey`, `fit` and `scales` the local noise levels that
scaled thresholds follow; `finish` thresholds the coefficients of owned nodes and ghosts, and synthesizes the signal. The tasks that
search thresholds are in `threshold_tasks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph.core import _loops, block_sum, shifted
from hushgraph.distributed.cost_model import COMBINED, DistributedMethod
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import Output, Place, damaged_error, part_folder, pieces, read_array, read_manifest, read_marked
from hushgraph.distributed.stored_arrays import is_floats, load_nodes
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

STRETCH = 2**18  # nodes whose features and weights are read at a time: a multiple of the blocks of sums


@dataclass(frozen=True, eq=False)
class StoredWeights:
    """Weights at owned nodes, (rows, owned), in a mapped file: they are read where they are needed, since fresh memory takes more time.

    Parameters
    ----------
    mapped : (rows, owned) array
        The weights, or what they are the squares of.
    squared : bool
        Whether the weights are the squares of `mapped`.
    """

    mapped: np.ndarray
    squared: bool

    def row(self, j: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return a row, in `out` if it has to be computed."""
        row = np.asarray(self.mapped[j])
        return np.square(row, out=out) if self.squared else np.ascontiguousarray(row, np.float64)

    def at(self, nodes: slice) -> np.ndarray:
        """Return all rows at a stretch of nodes."""
        rows = np.ascontiguousarray(self.mapped[:, nodes])
        return np.square(rows) if self.squared else rows


@dataclass(frozen=True)
class StoredGuide:
    """A guide of a run: its name, the file of its values, what it was made from, the SHA-256 of each map that was given, and marks of draws."""

    name: str
    file: str
    made_from: str
    digests: tuple[str, ...] = ()
    draws: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One run: its folders, the files of the signal and of a noise per node, and its settings.

    Parameters
    ----------
    work : Path or StoredPath
        The folder of the prepared graph.
    folder : Path or StoredPath
        The folder of the run.
    signal : Path or StoredPath
        The file of the signal.
    sigma : float or None
        Standard deviation of the noise; None where each node has its own.
    sigma_file : Path, StoredPath or None
        The file of the standard deviations of the nodes.
    method, rule, beta, n_probes, law, seed, nonnegative, integer
        As in `denoise`.
    kept_probes : int
        Number of probes whose transforms are kept for standard errors.
    n_groups : int
        Number of groups of components, for methods that combine candidates.
    offset : float
        The offset of a signal far from 0, for methods that threshold wavelets.
    refine : bool or None
        As in `denoise`, for methods that combine candidates.
    guides : tuple of StoredGuide
        Guides, for methods that combine candidates; their values are files in the folder of signals.
    prediction : Path, StoredPath or None
        The file of what guides predict, if it was taken off the signal and local regression on it is among the candidates.
    """

    work: Place
    folder: Place
    signal: Place
    sigma: float | None
    sigma_file: Place | None
    method: DistributedMethod
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
    refine: bool | None = None
    guides: tuple[StoredGuide, ...] = ()
    prediction: Place | None = None

    @property
    def scaled(self) -> bool:
        """Whether thresholds follow the local noise level."""
        return self.method != "sgwt_sure"

    @property
    def combined(self) -> bool:
        """Whether the method combines candidates instead of searching thresholds."""
        return self.method in COMBINED

    @property
    def is_averaged(self) -> bool:
        """Whether `counts` and a combination are averaged, for values that cannot be negative."""
        return self.method == "auto" and self.nonnegative

    @property
    def has_filter(self) -> bool:
        """Whether a fitted filter is among the candidates."""
        return self.method == "auto"

    @property
    def exponent(self) -> float:
        """The exponent of the shrinkage rule."""
        return sure_exponent(self.rule, self.beta)

    @property
    def variance(self) -> float:
        """Variance of the noise; 1 where each node has its own, which the weights contain."""
        return 1.0 if self.sigma is None else self.sigma**2

    def part_folder(self, part: int) -> Place:
        """Return the folder of a partition in this run."""
        return self.folder / f"{part:05d}"

    def output(self, part: int, stage: str) -> Output:
        """Return the files of a stage for a partition."""
        return Output(self.part_folder(part), stage)

    def frame(self, part: Part) -> ChebyshevFrame:
        """Return the frame of the whole graph, on a partition."""
        facts = read_manifest(self.work)
        bands = Bands(facts["n_scales"], facts["base"], facts["plateau"], None, 0)
        path = self.work / "frame.npy"
        coefficients = read_array(path, checksum=lambda: facts.get("frame_checksum"))
        is_good = is_floats(coefficients, (facts["n_scales"], facts["degree"] + 1))
        if not is_good or np.abs(coefficients).max(initial=0.0) > 2:  # those of a function with values in [0, 1] are at most 4/pi
            raise damaged_error(path)
        return ChebyshevFrame(
            part, facts["laplacian"], bands, facts["unit"], facts["lambda_upper"], facts["degree"], facts["damping"], coefficients
        )  # fmt: skip

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Return the signal at these nodes."""
        return read_marked(self.signal, whole=False)[nodes]

    def rest(self, nodes: np.ndarray, offset: float) -> np.ndarray:
        """Return the signal at these nodes in double precision, less the offset that its candidates do not have."""
        return self.values(nodes).astype(np.float64) - offset

    def owned(self, part: int) -> np.ndarray:
        """Return the nodes of a partition, ascending."""
        return load_nodes(Output(part_folder(self.work, part), "rows"), "nodes", "nodes", read_manifest(self.work)["n"])

    def guide_file(self, guide: StoredGuide) -> Place:
        """Return the file of a guide: it is beside the signal."""
        return self.signal.parent / guide.file

    def centred(self, nodes: np.ndarray) -> np.ndarray:
        """Return the signal at these nodes, less the offset."""
        return shifted(self.values(nodes)[None], -np.array([self.offset]))[0]

    def noise(self, nodes: np.ndarray) -> Noise:
        """Return the noise of these nodes."""
        if self.sigma_file is not None:
            return Noise.of(read_array(self.sigma_file, whole=False)[nodes])
        return Noise.of(self.sigma)

    def whole_noise(self) -> Noise:
        """Return the noise of all nodes, mapped where each has its own."""
        return Noise.of(self.sigma if self.sigma_file is None else read_array(self.sigma_file, whole=False))

    def probes(self, nodes: np.ndarray, count: int | None = None) -> np.ndarray:
        """Return all probes, or the first `count`, at these nodes, (probes, n); a noise per node multiplies them."""
        noise = self.noise(nodes)
        eps = probes(len(nodes), self.n_probes if count is None else count, law=self.law, seed=self.seed, nodes=nodes)
        return eps if noise.per_node is None else eps * noise.per_node

    def weights(self, part: int) -> StoredWeights:
        """Return the weights of SURE at owned nodes: squared transforms of a probe, or their mean over probes."""
        out = self.output(part, "transform")
        is_mean = out.has("weights")
        return StoredWeights(out.load("weights" if is_mean else "probes", whole=False), not is_mean)


def transform(run: Run, part: int) -> dict[str, Any]:
    """Write the coefficients of the signal and of the first probes, and the weights, at owned nodes."""
    out = run.output(part, "transform")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, n_scales = run.frame(zone), zone.owned, read_manifest(run.work)["n_scales"]
    bands = forward(frame, run.centred(zone.nodes)[None])[0]
    out.save_rows("bands", (n_scales, len(owned)), bands.dtype, zone.owned_rows(bands))
    facts: dict[str, Any] = {"dtype": bands.dtype.str}
    del bands
    eps = run.probes(zone.nodes)
    few = forward(frame, eps[:RISK_PROBES])
    rows = few.reshape(len(few) * n_scales, zone.n)  # a partition may be empty
    out.save_rows("probes", (len(rows), len(owned)), few.dtype, zone.owned_rows(rows))
    if run.n_probes > 1:
        if len(eps) <= RISK_PROBES:
            weights = weights_of(frame, eps, few, domain="coefficients")
        else:
            weights = mean_weights(frame, eps, domain="coefficients")
        out.save("weights", weights[:, owned])
    del few, rows, eps
    zone.forget()
    if not run.scaled:
        facts["extremes"] = _extremes(out.load("bands", whole=False), run.weights(part), None)
    return out.mark_done(facts)


def _extremes(F: np.ndarray, weights: StoredWeights, scale: np.ndarray | None) -> list[list[float]]:
    """Return the largest sizes of each scale, which set the bins and units of the search."""
    extremes, squares = [], np.empty(F.shape[1])
    for j in range(len(F)):
        x = np.asarray(F[j], np.float64)
        z = _loops.scaled_sizes(x, None if scale is None else np.ascontiguousarray(scale[j]))
        extremes.append(list(_loops.extremes(z, x, weights.row(j, squares))))
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
    features = degree_features(zone, None if noise.per_node is None else noise.per_node**2, usual)
    out.save_rows("around", (len(features), len(zone.owned)), features.dtype, zone.owned_rows(features))
    del features
    tops = [largest_columns(around, weights) for around, weights in _stretches(run, out, part)]
    return out.mark_done({"tops": np.max(tops, axis=0).tolist()})


def _stretches(run: Run, survey: Output, part: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the features and the weights at stretches of the owned nodes: small arrays stay in the cache of the processor."""
    around, weights = survey.load("around", whole=False), run.weights(part)
    for nodes in pieces(around.shape[1], STRETCH) if around.shape[1] else [slice(0, 0)]:
        yield np.ascontiguousarray(around[:, nodes]), weights.at(nodes)


def fit(run: Run, part: int, tops: list[float]) -> dict[str, Any]:
    """Write the products of the regression, in units that add up over partitions."""
    out = run.output(part, "fit")
    if (finished := out.read_facts()) is not None:
        return finished
    stretches = _stretches(run, run.output(part, "survey"), part)
    units = [products_in_units(around, weights, np.array(tops)) for around, weights in stretches]
    out.save("units", np.sum(units, axis=0))
    return out.mark_done({})


def scales(run: Run, part: int, coefficients: list[list[float]], usual: list[float]) -> dict[str, Any]:
    """Write the noise levels of the coefficients of owned nodes; return the extremes where thresholds are searched."""
    out = run.output(part, "scales")
    if (finished := out.read_facts()) is not None:
        return finished
    around = run.output(part, "survey").load("around", whole=False)
    smooth = fitted_weights(around, np.array(coefficients), np.array(usual))
    scale = np.sqrt(np.maximum(smooth, 0.0, out=smooth), out=smooth)
    out.save("scale", scale)
    if run.combined:
        return out.mark_done({})
    F = run.output(part, "transform").load("bands", whole=False)
    return out.mark_done({"extremes": _extremes(F, run.weights(part), scale)})


# ---- the signal --------------------------------------------------------------------------------------------------------


def finish(run: Run, part: int, thresholds: list[float]) -> dict[str, Any]:
    """Write the denoised signal of owned nodes, and return the terms of the risk."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, n_scales = run.frame(zone), zone.owned_places, len(thresholds)
    F = zone.fill(np.empty((n_scales, zone.n), _dtype(run, part)), run.part_folder, "transform", "bands")
    slope = _threshold(run, zone, F, np.array(thresholds))
    signal = inverse(frame, F[None])[0][owned]
    out.save("signal", shifted(signal[None], np.array([run.offset]))[0])
    divergence, weight_sums, terms = [], [], np.empty(len(zone.owned))
    for j in range(n_scales):  # the file is opened for each row: rows that were read would stay in memory
        row = run.weights(part).row(j, terms)
        weight_sums.append(float(block_sum(row)))
        divergence.append(float(block_sum(np.multiply(row, slope[j][owned], out=terms))))
    del row
    del terms
    if run.offset:
        F = np.empty((0, 0), F.dtype)  # the memory is needed
        direction = mean_direction(frame, run.noise(zone.nodes), read_manifest(run.work)["n"], slope)
        divergence = [d - float(block_sum(w[owned] * s[owned])) for d, w, s in zip(divergence, direction, slope, strict=True)]
        del direction
    noise = run.noise(zone.nodes[owned])
    square = np.square(signal - run.centred(zone.nodes[owned]), dtype=np.float64)
    traces, turned, eps = [], [], run.probes(zone.nodes[owned], run.kept_probes)
    for p in range(run.kept_probes):
        F, is_last = _probe_bands(run, zone, p, F if F.size else np.empty_like(slope)), p == run.kept_probes - 1
        product = np.multiply(slope, F, out=slope if is_last else None)
        F = np.empty((0, 0), F.dtype) if is_last else F
        ahead = inverse(frame, product[None])[0][owned]
        traces.append(float(block_sum(noise.weigh(np.square(ahead, dtype=np.float64)))))
        turned.append(float(block_sum(noise.weigh(np.multiply(eps[p], ahead, dtype=np.float64)))))
    zone.forget()
    return out.mark_done(
        {
            "residual": float(block_sum(square)),
            "weighted": float(block_sum(noise.weigh(square))),
            "divergence": divergence,
            "weight_sums": weight_sums,
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


def _probe_bands(run: Run, zone: Part, p: int, bands: np.ndarray) -> np.ndarray:
    """Fill an array with the coefficients of a probe at owned nodes and ghosts, and return it."""
    for j in range(len(bands)):  # row by row: all rows of a mapped file would stay in memory
        zone.fill(bands[j : j + 1], run.part_folder, "transform", "probes", row=p * len(bands) + j)
    return bands
