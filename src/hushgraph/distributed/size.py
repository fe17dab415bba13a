"""How much memory a task takes, and so how many nodes a partition may own; how long the whole takes.

The numbers per row were measured (benchmarks/scaling.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hushgraph.checks import checked_number, shown
from hushgraph.filters import OTHERS

COMBINED = ("let", "auto")  # methods that combine candidates, and search no thresholds
BASE = 0.32e9  # bytes of a process with its compiled code, before any data
COMPILING = (
    0.4e9  # more in a process that prepared before, and that compiles what never ran on its machine: room that partitions leave
)
LEAST_MEMORY = BASE + COMPILING
SHARE = 0.8  # of a worker's memory that a task may take: Dask pauses those that take more
QUICK = 2_000_000  # edges up to which all ghosts of a few partitions are counted before a graph is prepared
USUAL, LEAST = 5_000_000, 20_000  # nodes that a partition owns, where memory allows; and at least, unless partitions= says so
_UNITS = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def bytes_of(memory) -> float | None:
    """A number of bytes, from a number or a text like '3GB'.

    >>> bytes_of("3GB"), bytes_of("1.5 GiB") == 1.5 * 2**30
    (3000000000.0, True)
    """
    if memory is None:
        return None
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", memory)
        if match is None or match[2].lower() not in _UNITS or match[1].count(".") > 1 or match[1] == ".":
            msg = f"memory must be a number of bytes, or a text like '3GB'; got {shown(memory)}"
            raise ValueError(msg)
        memory = float(match[1]) * _UNITS[match[2].lower()]
    return checked_number("memory", memory, f"a number of bytes above {LEAST_MEMORY:.2g}, or a text like '3GB'", above=LEAST_MEMORY)


def memory_of(memory, client) -> float | None:
    """What a task may take: what was asked for, or what the smallest worker has."""
    if memory is None and client is not None:
        limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
        if not limits or not min(limits):
            return None
        if (least := min(limits)) <= LEAST_MEMORY / SHARE:
            msg = f"workers need more than {LEAST_MEMORY / SHARE / 1e9:.2f} GB of memory; the smallest has {least / 1e9:.2f}; start fewer or larger ones"
            raise ValueError(msg)
        return SHARE * least
    return bytes_of(memory)


@dataclass(frozen=True)
class Shape:
    """What the size of a task depends on: entries per row, number of scales, bytes of a value, whether edges differ in weight."""

    entries: float
    n_scales: int
    weighted: bool = False
    method: str = "sgwt_scaled"

    @property
    def scaled(self) -> bool:
        return self.method != "sgwt_sure"

    @property
    def n_filters(self) -> int:
        """Filters that candidates are made of, for methods that combine them."""
        return 2 * self.n_scales + OTHERS if self.method in COMBINED else 0

    @property
    def layout(self) -> float:
        """Bytes per row of the matrix as kernels take it."""
        return 8 + 2 * 4 * self.entries + (8 * self.entries + 8 if self.weighted else 0)

    @property
    def forward(self) -> float:
        """Bytes per row of a transform: the last two terms twice, bands in two orders, signal and probe."""
        return self.layout + 4 * 8 + 2 * 8 * self.n_scales + 3 * 8 + 8

    @property
    def inverse(self) -> float:
        """Bytes per row of the way back: coefficients, slopes, and the bands in the order of the rows."""
        return self.layout + 4 * 8 + 3 * 8 * self.n_scales + 2 * 8 + 8 + (8 * self.n_scales if self.scaled else 0)

    @property
    def grow(self) -> float:
        """Bytes per row while a ghost zone is built."""
        return 3 * 4 * self.entries + (2 * 8 * self.entries if self.weighted else 0) + 60 + 4 * self.entries

    @property
    def combine(self) -> float:
        """Bytes per row of all filters of a probe: in two orders, as sums, and while they are written."""
        return self.layout + 4 * 8 + 4.7 * 8 * self.n_filters

    @property
    def per_row(self) -> float:
        return max(self.forward, self.inverse, self.grow, self.combine)

    @property
    def disk(self) -> float:
        """Bytes per owned node of a run: coefficients, probes and noise levels, or all filters and candidates."""
        if self.n_filters:
            return 8 * (3 + 2 * self.n_filters + 6 * self.n_scales + 9 + 4)
        return 8 * (3 + (2 + self.scaled) * self.n_scales + 6 * self.scaled)


START = 2.5  # CPU seconds until a process has imported and loaded what it needs


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a run on one core, from measured seconds per edge, row and step of the recurrence."""

    edges: int
    rows: float  # of all partitions, ghosts included
    degree: int
    shape: Shape
    probes: int

    @property
    def prepare(self) -> float:
        """A look for small worlds, sorting edges, building rows, growing zones, the spectrum."""
        look = 0.35 * self.edges * (self.edges <= QUICK)
        return 1e-6 * (look + self.edges * 0.18 + self.rows * (0.2 + 0.17 * self.shape.entries))

    @property
    def denoise(self) -> float:
        """Steps of the recurrence there and back, for the signal and each probe, and what is done once per row."""
        shape = self.shape
        step = 0.35 + 0.25 * shape.entries * (2.0 if shape.weighted else 1.0)
        transforms, mixed = 1 + self.probes, 0.35 * shape.n_scales
        work = 2 * transforms * ((step + mixed) * self.degree + 20 + 34 * shape.n_scales) + 200 * shape.n_scales * shape.scaled
        if shape.n_filters:
            work = transforms * (step + 0.35 * shape.n_filters) * self.degree + 2 * shape.n_scales * (step + 0.35) * self.degree
            work += self.probes * (step + mixed) * self.degree + 150 * shape.n_filters
        return 1e-9 * self.rows * work


def nodes_per_partition(shape: Shape, memory: float | None, growth: float) -> int:
    """Owned nodes such that a task stays below the memory."""
    if memory is None:
        return USUAL
    return max(1, min(USUAL, int(0.9 * (memory - LEAST_MEMORY) / (shape.per_row * growth))))
