"""release: counts with a proven sensitivity become a noisy map that may be published. One charge, one draw.

The order is fixed: check everything, charge the ledger, draw the noise once, bind the noisy values to the charge, forget the
counts. A crash in between costs budget, never privacy. What is not protected, and the proofs: docs/privacy.md.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Reference, Sentence, argument
from hushgraph.adjacency import checked_nodes
from hushgraph.checks import checked_count, checked_seed, shown
from hushgraph.graph import Graph, checked_graph
from hushgraph.observation import Noisy
from hushgraph.privacy.calibration import (
    Mechanism,
    checked_squared,
    mechanism_sigma,
)
from hushgraph.privacy.claims import ROOM, FrozenDict, caps_sensitivity, claims_of, largest_count
from hushgraph.privacy.counting import CountMap
from hushgraph.privacy.guarantee import checked_guarantee
from hushgraph.privacy.ledger import Charge, Ledger, LedgerError
from hushgraph.privacy.noise import checked_lattice_sigma, lattice_noise, lattice_step, steps_from
from hushgraph.privacy.places import Windows

_MADE_HERE = object()


@dataclass(frozen=True)
class Total:
    """A sum over a region, unbiased for the counts after truncation, with the standard error that the noise gives it."""

    estimate: float
    standard_error: float
    n_values: int

    def __str__(self):
        return f"{self.estimate:,.1f} ± {self.standard_error:,.1f}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Noisy):
    """A noisy map that may be published, with its guarantee; made by `release`. It holds no reference to the counts.

    Attributes
    ----------
    values : (n,) or (n, windows) array
        Counts plus noise, multiples of `lattice`.
    sigma, lattice : float
        Noise of the mechanism and spacing of its lattice; `noise_level` is that of both together.
    epsilon, delta, sensitivity_squared, adjacency, unit, bound, caps, rules, mechanism
        The guarantee and what it rests on.
    unit_column, dataset : str or None
        The column of the ids, and the name of the data that was given when they were counted.
    graph : Graph
        The public graph.
    ledger : dict
        Which budget was charged: identity, data set, entry, head, the budget after the charge, and which ledger it replaces, if any.
    """

    epsilon: float
    delta: float
    sensitivity_squared: Any
    adjacency: str
    unit: str | None
    bound: str
    caps: dict
    rules: dict
    mechanism: str
    ledger: dict
    created: str
    not_protected: str | None = None
    attribution: str | None = None
    unit_column: str | None = None
    dataset: str | None = None
    graph: Graph = field(repr=False)
    made_by: InitVar[object] = None

    def __post_init__(self, made_by):
        if made_by is not _MADE_HERE:
            msg = "a Release is made by release() and read_release() only: its certificate speaks for values that were charged for"
            raise InputTypeError(msg)
        super().__post_init__()
        for name in ("caps", "rules", "ledger"):
            object.__setattr__(self, name, FrozenDict(getattr(self, name)))
        self._fix_values()

    def __setstate__(self, state):
        vars(self).update(state)
        self._fix_values()

    def _fix_values(self):
        """Nobody can make bytes writeable again."""
        fixed = np.frombuffer(self.values.tobytes(), dtype=self.values.dtype).reshape(self.values.shape)
        object.__setattr__(self, "values", fixed)

    @property
    def largest_count(self) -> int:
        """Counts were clamped to this size, a public rule."""
        return largest_count(self.sigma)

    @property
    def certificate(self) -> dict:
        """Everything a reader needs to judge the guarantee, ready for JSON; no private value."""
        from hushgraph.privacy.certificate import certificate_of

        return certificate_of(self)

    def total(self, nodes=None, *, labels=None, windows=None) -> Total:
        """Sum over a region, unbiased for the counts as they were bounded, with its standard error.

        The region is a mask or node numbers, or `labels` of nodes; all nodes by default. The sum is taken from the noisy map: a denoised map is biased for totals, since shrinking moves mass around. The region must
        not be chosen by looking at this release: the busiest places of a noisy map are partly those with the most noise.
        `windows` are numbers of time windows from 0 (default all).
        """
        chosen = np.arange(self.graph.n) if nodes is None else checked_nodes(nodes, self.graph.n)
        if labels is not None:
            chosen = self._numbers_of(labels, nodes)
        values = self.values[chosen]
        if windows is not None:
            values = values[:, self._checked_windows(windows)]
        return Total(float(values.sum()), self.noise_level * float(np.sqrt(values.size)), int(values.size))

    def _numbers_of(self, labels, nodes) -> np.ndarray:
        if nodes is not None or self.graph.labels is None:
            fault = "nodes= or labels=, not both" if nodes is not None else "nodes=: this graph has no labels"
            msg = f"name a region by {fault}"
            raise InputError(msg)
        position = {label: i for i, label in enumerate(self.graph.labels.tolist())}
        found = [position.get(label, -1) for label in labels]
        if min(found, default=0) < 0:
            msg = f"{found.count(-1)} of the {len(found)} labels are no nodes of the graph; the first is number {found.index(-1)}"
            raise InputError(msg)
        return checked_nodes(found, self.graph.n)

    def _checked_windows(self, windows) -> list[int]:
        if self.windows is None:
            msg = "this release has no time windows; leave windows= out"
            raise InputError(msg)
        given = [windows] if np.ndim(windows) == 0 else list(windows)
        numbers = [checked_count("windows", one, 0, self.values.shape[1] - 1) for one in given]
        if len(set(numbers)) != len(numbers):
            msg = "windows names a window twice, which would count it twice; pass each once"
            raise InputError(msg)
        return numbers

    def export(
        self, folder, *, method="auto", nonnegative: bool = True, integer: bool = False, spreadsheet_safe: bool = False
    ):  # fmt: skip
        """Write the noisy map, the denoised map with its expected error, and the certificate into a new folder.

        The denoised map is computed here, from the release alone; unlike that of `denoise` it has no negative values unless
        `nonnegative=False`. Spreadsheets take labels that begin with =, +, - or @ for formulas: `spreadsheet_safe=True` writes an
        apostrophe before them, and before labels with an apostrophe in front or with a semicolon, tab or line end in them, and puts all
        text in quotation marks. The certificate says so, and `read_release` expects it. Returns the path of the folder.
        """
        from hushgraph.privacy.certificate import export

        return export(
            self, folder, method=method, nonnegative=nonnegative, integer=integer, spreadsheet_safe=spreadsheet_safe
        )  # fmt: skip


def release(
    counts: CountMap,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    ledger: Ledger | None = None,
    public_graph: bool = False,
    mechanism: Mechanism = "analytic",
    weak_guarantee: bool = False,
    not_protected: str | None = None,
    attribution: str | None = None,
    note: str | None = None,
    **refused,
) -> Release:
    """Charge the budget, add exact lattice noise to the counts once, and return what may be published.

    Parameters
    ----------
    counts : CountMap
        From `count_events` or `declare_counts`.
    epsilon, delta : float
        The guarantee for one unit (person, vehicle, ...) under the adjacency of the counts; delta is at most 1/1000.
    ledger : Ledger
        The budget that is charged, before any noise is drawn.
    public_graph : bool
        Your attestation that graph, windows and caps were fixed without looking at the data. Must be True.
    mechanism : {"analytic", "classical"}
        The analytic one adds less noise for the same guarantee.
    weak_guarantee : bool
        Needed for an epsilon above 10, which protects nobody in practice.
    not_protected : str, optional
        Who the guarantee does not cover, in words for the certificate ("drivers", say).
    attribution : str, optional
        Source of the graph, for the certificate ("© OpenStreetMap contributors").
    note : str, optional
        A public remark for the ledger.

    Notes
    -----
    There is no seed: noise that can be repeated can be removed. For experiments on generated data see `simulate`.
    """
    _refuse_unknown(refused)
    epsilon, delta, sigma = _checked_request(counts, epsilon, delta, ledger, public_graph, mechanism, weak_guarantee)
    texts = {"not_protected": not_protected, "attribution": attribution, "note": note}
    for name, text in texts.items():
        if text is not None and not (isinstance(text, str) and text.isprintable()):
            raise InputTypeError(Sentence("{} must be text in one line; got {}", argument(name), shown(text)))
    assert ledger is not None
    terms = {
        "epsilon": epsilon,
        "delta": delta,
        "sigma": sigma,
        "mechanism": mechanism,
        "unit": ledger.unit,
        "not_protected": not_protected,
        "attribution": attribution,
        **{name: getattr(counts, name) for name in _COUNTED},
    }
    cost = {"sensitivity_squared": counts.sensitivity_squared, "sigma": sigma, "epsilon": epsilon, "delta": delta}
    charge = ledger.charge(**cost, note=note, claims=claims_of(**terms))
    values = _draw(counts, charge)
    ledger.bind(charge, values)
    return Release(
        values=values,
        kind="release",
        graph_hash=counts.graph.hash,
        exportable=True,
        lattice=lattice_step(sigma),
        ledger=charge.stamp,
        created=charge.state.time,
        made_by=_MADE_HERE,
        **terms,
    )


_COUNTED = ("graph", "windows", "sensitivity_squared", "adjacency", "bound", "caps", "rules", "unit_column", "dataset")


def simulate(
    graph: Graph,
    values,
    *,
    epsilon=None,
    delta=None,
    sensitivity=None,
    sensitivity_squared=None,
    seed: int,
    windows=None,
    mechanism: Mechanism = "analytic",
    paper_compat: bool = False,
) -> Noisy:
    """The noise a release would have, from a seed, on generated or already public values: for experiments.

    The result can be denoised but not exported: seeded noise protects nobody. A `CountMap` is refused, since trying releases
    out on private counts would be releases without a charge. `windows` are the edges of time windows, if columns are such.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.datasets.city(400)
    >>> counts = hg.hotspot_counts(graph, total=4000)
    >>> noisy = hg.privacy.simulate(graph, counts, epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    >>> noisy.kind, noisy.exportable
    ('simulation', False)
    """
    if isinstance(values, CountMap):
        msg = (
            "a CountMap holds private counts, and noise on them is drawn once, by release(); simulate takes generated or public "
            "values, and plan_release says what an epsilon buys"
        )
        raise InputTypeError(msg)
    signal = checked_graph(graph).align(values)
    squared = checked_squared(sensitivity, sensitivity_squared)
    sigma = mechanism_sigma(mechanism, epsilon=epsilon, delta=delta, sensitivity_squared=squared, paper_compat=paper_compat)
    step = lattice_step(sigma)
    noise = steps_from(np.random.default_rng(checked_seed(seed)).bytes, signal.size, sigma).reshape(signal.shape)
    noisy = step * (np.rint(signal.astype(np.float64) / step) + noise)
    edges = None if windows is None else Windows(windows).edges
    return Noisy(noisy, sigma=sigma, kind="simulation", graph_hash=graph.hash, lattice=step, windows=edges)


# ---- the private part -------------------------------------------------------------------------------------------------


def _draw(counts: CountMap, charge: Charge) -> np.ndarray:
    """Counts plus noise, exactly, as multiples of the lattice's step. The charge pays for this one draw."""
    charge.spend()
    step = lattice_step(charge.sigma)
    per_unit, largest = round(1 / step), int(2.0**ROOM * step)
    steps = np.clip(counts.counts, -largest, largest) * per_unit
    steps += lattice_noise(steps.size, sigma=charge.sigma).reshape(steps.shape)
    return steps * step  # at most 53 bits: exact


def _checked_request(counts, epsilon, delta, ledger, public_graph, mechanism, weak_guarantee) -> tuple[float, float, float]:
    """epsilon, delta and sigma, after every check that can be made before the budget is touched."""
    if type(counts) is not CountMap:  # a subclass could say anything of its counts
        msg = (
            f"release takes a CountMap, whose sensitivity is known; got {type(counts).__name__}; count events with "
            "privacy.count_events, or state the sensitivity of your own counts with privacy.declare_counts"
        )
        raise InputTypeError(msg)
    epsilon, delta = checked_guarantee(epsilon, delta, weak_guarantee=weak_guarantee)
    if public_graph is not True:
        msg = (
            "{public_graph=True} is needed: you attest that graph, windows and caps were fixed without looking at the data; a graph "
            "that was cut to the places with events gives these away"
        )
        raise InputError(Sentence(msg))
    if type(ledger) is not Ledger:
        msg = (
            "{ledger} must be a privacy.Ledger, which keeps count of what was spent; got {}; make one with "
            "{privacy.Ledger.create(path, dataset=..., unit=..., adjacency=..., epsilon=..., delta=...)}"
        )
        raise LedgerError(Sentence(msg, shown(ledger)))
    check_ledger(counts, ledger)
    squared = Fraction(counts.sensitivity_squared)
    if (counts.caps or counts.bound == "enforced") and squared != caps_sensitivity(
        counts.caps, counts.adjacency, windows=counts.windows is not None
    ):
        msg = "the sensitivity of these counts is not the one that their caps and adjacency enforce: they were changed; count again"
        raise InputError(msg)
    sigma = mechanism_sigma(mechanism, epsilon=epsilon, delta=delta, sensitivity_squared=squared)
    return epsilon, delta, checked_lattice_sigma(sigma)


def check_ledger(counts: CountMap, ledger: Ledger) -> None:
    """Refuse a ledger for another unit, adjacency or data set than that of the counts, as far as these name them."""
    for name in ("unit", "adjacency", "dataset"):
        stored, counted = getattr(ledger, name), getattr(counts, name)
        if counted not in (None, stored):
            hint = Sentence(" (and {unit_column=} if the column has another name)") if name == "unit" else ""
            msg = "the ledger protects {} {!r}, the counts {!r}; count again with {}{!r}{}, or use the ledger for {!r}"
            raise LedgerError(Sentence(msg, name, stored, counted, Reference(f"{name}="), stored, hint, counted))


def _refuse_unknown(arguments: dict):
    for name, value in arguments.items():
        if name in ("seed", "rng", "random_state", "generator") or isinstance(value, np.random.Generator | np.random.RandomState):
            msg = (
                f"a release takes no {name}: noise that can be repeated can be removed; use simulate(..., seed=) for experiments on "
                "generated data"
            )
            raise InputTypeError(msg)
        msg = f"release() has no argument {name!r}"
        raise InputTypeError(msg)
