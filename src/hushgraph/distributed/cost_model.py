"""The cost of a run: bytes per task, and so the number of partitions; bytes on disk; CPU seconds.

The constants were measured (benchmarks/scaling.py).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import as_number, shown
from hushgraph.estimators import METHODS, N_OTHER_FILTERS, PROBES_AT_ONCE, distributed_methods
from hushgraph.wavelets import default_probes

DistributedMethod = Literal["auto", "let", "counts", "sgwt_sure", "sgwt_scaled"]  # DISTRIBUTED, for type checkers
DISTRIBUTED = distributed_methods()
COMBINED = tuple(
    name for name in DISTRIBUTED if METHODS[name].family == "combined"
)  # methods that combine candidates instead of searching thresholds
BASE = 0.15e9  # bytes of a process after its imports, without data
KEPT = 0.05e9  # bytes that a process which prepared before has not given back
LEAST_MEMORY = BASE + KEPT
SHARE = 0.8  # of the memory of a worker that a task may take: Dask pauses a worker that uses more
QUICK = 2_000_000  # edges up to which all ghosts are counted before a graph is prepared
USUAL = 5_000_000  # nodes that a partition owns, where memory allows
EXPECTED_GROWTH, EXPECTED_SCALES = 1.3, 6  # rows per owned node, and scales, before they are counted
_UNITS = {"": 1.0, "b": 1.0, **{f"{unit}{end}": 1e3**k for k, unit in enumerate("kmgt", 1) for end in ("", "b")}}
_UNITS |= {f"{unit}ib": 2.0 ** (10 * k) for k, unit in enumerate("kmgt", 1)}


def parse_memory(memory: str | float | None) -> float | None:
    """Return a number of bytes, from a number or a text like '3GB'; None stays None.

    `dask.utils.parse_bytes` is not used: a graph in memory is planned, prepared and denoised without Dask.

    >>> parse_memory("3GB"), parse_memory("3G"), parse_memory("3e9"), parse_memory("1.5 GiB") == 1.5 * 2**30
    (3000000000.0, 3000000000.0, 3000000000.0, True)
    """
    given = memory
    if memory is None:
        return None
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)\s*", memory.lower(), re.ASCII)
        if match is None or match[2] not in _UNITS:
            msg = "{memory} must be a number of bytes, or a text like '3GB', '3G' or '3GiB'; got {}"
            raise InputError(Sentence(msg, shown(memory)))
        memory = float(match[1]) * _UNITS[match[2]]
    expected = f"above {LEAST_MEMORY / 1e9:.2f} GB, a number of bytes or a text like '3GB'"
    if not LEAST_MEMORY < as_number(memory) < math.inf:
        raise InputError(Sentence("{memory} must be {}; got {}", expected, shown(given)))
    return float(memory)


def task_memory(memory: str | float | None, client: Any) -> float | None:
    """Return the bytes that a task may take: those asked for, or a share of the memory of the smallest worker."""
    if memory is None and client is not None:
        limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
        if not limits or not min(limits):
            return None
        if (least := min(limits)) <= LEAST_MEMORY / SHARE:
            msg = f"workers need more than {LEAST_MEMORY / SHARE / 1e9:.2f} GB of memory; the smallest has {least / 1e9:.2f}; start fewer or larger ones"
            raise InputError(msg)
        return SHARE * least
    return parse_memory(memory)


@dataclass(frozen=True)
class Shape:
    """What the memory of a task depends on: entries per row, number of scales, whether edges have weights, method, number of probes."""

    entries: float
    n_scales: int
    weighted: bool = False
    method: str = "sgwt_scaled"
    probes: int = 1

    @property
    def scaled(self) -> bool:
        """Whether thresholds follow the local noise level."""
        return self.method != "sgwt_sure"

    @property
    def n_filters(self) -> int:
        """Number of filters that candidates are made of; 0 for methods that threshold wavelets."""
        return 2 * self.n_scales + N_OTHER_FILTERS if self.method in COMBINED else 0

    @property
    def layout(self) -> float:
        """Bytes per row of the matrix in the layout of the compiled loops."""
        return 8 + 2 * 4 * self.entries + (8 * self.entries + 8 if self.weighted else 0)

    @property
    def draw(self) -> float:
        """Bytes per row while all probes are drawn: counters, their hashes, and the values."""
        return self.layout + 8 * self.n_scales + 3 * 8 * self.probes

    @property
    def forward(self) -> float:
        """Bytes per row of a transform: the last two terms twice, bands in two orders of the probes of a group, signal and all probes."""
        return self.layout + 4 * 8 + 2 * 8 * self.n_scales * min(self.probes, PROBES_AT_ONCE) + 3 * 8 + 8 * self.probes

    @property
    def inverse(self) -> float:
        """Bytes per row of an inverse transform: coefficients, slopes, and the bands in the order of the rows."""
        return self.layout + 4 * 8 + 3 * 8 * self.n_scales + 2 * 8 + 8 + (8 * self.n_scales if self.scaled else 0)

    @property
    def grow(self) -> float:
        """Bytes per row while a ghost zone is built; then while its triangles are taken out, two numbers per entry and a few vectors."""
        weights = 2 * 8 * self.entries if self.weighted else 0
        return max(4 * 4 * self.entries + 60, (2 * 4 + 2 * 8) * self.entries + 90) + weights

    @property
    def combine(self) -> float:
        """Bytes per row of all filters of a probe: in two orders, as sums, and while they are written; all probes; and two groups of them."""
        groups = 11.0 if self.probes > PROBES_AT_ONCE else 0.5 * (self.probes - 1)
        return self.layout + 4 * 8 + (4.7 + groups) * 8 * self.n_filters + 8 * (self.probes - 1)

    @property
    def count(self) -> float:
        """Bytes per row of the features of `counts`: features and gains twice, and edges in three orders."""
        return self.layout + 8 * 21 * 5 + 3 * 12 * self.entries + 100 if self.method in ("counts", "auto") else 0.0

    @property
    def per_row(self) -> float:
        """Bytes per row of the largest task."""
        return max(self.draw, self.forward, self.inverse, self.grow, self.combine, self.count)

    @property
    def prepared(self) -> tuple[float, float]:
        """Bytes in the files of a prepared graph per owned node and per row: rows, zones, layouts and degrees."""
        weights = 8 * self.entries if self.weighted else 0.0
        return 24 + weights, 44 + 8 * self.entries + 2 * weights + (16 if self.weighted else 0)

    @property
    def disk(self) -> float:
        """Bytes per owned node of a run: coefficients, probes and noise levels, or all filters and candidates.

        `auto` also has signal and probes without means and through its fitted filter, and the columns of its second stage.
        """
        if self.n_filters:
            more = 20 + 2 * self.n_scales if self.method == "auto" else 0
            return 8 * (3 + 2 * self.n_filters + 6 * self.n_scales + 9 + 4 + more)
        return 8 * (3 + (2 + self.scaled) * self.n_scales + 6 * self.scaled)


FILTER_DEGREE = 256  # of a fitted filter, the lowest that is tried on large graphs
START = 0.8  # CPU seconds of the imports of a process


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a run on one core, from measured seconds per edge, row and step of the recurrence."""

    edges: int
    rows: float  # of all partitions, ghosts included
    degree: int
    shape: Shape
    parts: int = 1

    @property
    def prepare(self) -> float:
        """CPU seconds to look for small worlds, sort edges, build rows, grow zones hop by hop, and bound the spectrum."""
        look = 0.1 * self.edges * (self.edges <= QUICK and self.parts > 1)
        hops = 0.8e-3 * self.degree * self.parts * (self.parts > 1)
        return hops + 1e-6 * (look + self.edges * 0.18 + self.rows * (0.2 + 0.17 * self.shape.entries))

    @property
    def denoise(self) -> float:
        """CPU seconds of the transforms and their inverses, for the signal and each probe, and of what is done once per row."""
        shape = self.shape
        step = 0.35 + 0.25 * shape.entries * (2.0 if shape.weighted else 1.0)
        transforms, mixed = 1 + shape.probes, 0.35 * shape.n_scales
        work = 2 * transforms * ((step + mixed) * self.degree + 20 + 34 * shape.n_scales) + 200 * shape.n_scales * shape.scaled
        if shape.n_filters:
            work = transforms * (step + 0.35 * shape.n_filters) * self.degree + 2 * shape.n_scales * (step + 0.35) * self.degree
            work += shape.probes * (step + mixed) * self.degree + 150 * shape.n_filters
        if (
            shape.method == "auto"
        ):  # signal and two probes for the spectrum, signal and a probe through the filter; the second stage
            work += 5 * (step + 0.5) * FILTER_DEGREE + 6 * (step + mixed) * self.degree
        return 1e-9 * self.rows * work


def partitions_for(n: int, entries: int, weighted: bool, method: str, memory: float | None, n_scales: int | None = None) -> int:
    """Return the least number of partitions whose tasks fit into the memory, with usual numbers of ghosts and scales.

    `plan` and `prepare` both call this before ghosts are counted, and so cut a graph in the same way.
    """
    most: float = USUAL
    if memory is not None:
        shape = Shape(entries / max(n, 1), n_scales or EXPECTED_SCALES, weighted, method, default_probes(n))
        most = min(USUAL, 0.9 * (memory - LEAST_MEMORY) / (shape.per_row * EXPECTED_GROWTH))
    return -(-n // max(1, int(most)))
