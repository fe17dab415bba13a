"""release: counts with a proven sensitivity become a noisy map that may be published. One charge, one draw.

The order is fixed: check everything, charge the ledger, draw the noise once, bind the noisy values to the charge. A release holds no
reference to the counts, which the caller still has and can delete. A crash in between costs budget, never privacy. What is not
protected, and the proofs: docs/privacy.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushgraph._errors import HushgraphError, InputError, InputTypeError, Reference, Sentence, warn_without_raising
from hushgraph._progress import between, reached
from hushgraph._validation import checked_count, checked_seed, shown
from hushgraph.estimators import MethodName, Totals, denoise
from hushgraph.graphs import Graph, Noisy, as_graph, checked_nodes, notebook_table, signal_frame
from hushgraph.privacy.calibration import Mechanism, mechanism_sigma
from hushgraph.privacy.certificate import CERTIFICATE, Terms, certificate_of, check_size, largest_count, read_certificate
from hushgraph.privacy.counting import CountMap
from hushgraph.privacy.frozen import FrozenDict, frozen_array
from hushgraph.privacy.guarantee import guarantee_in_words
from hushgraph.privacy.lattice import lattice_noise, lattice_step, steps_from
from hushgraph.privacy.ledger.budget import Charge, Ledger
from hushgraph.privacy.ledger.chain import LedgerError, LedgerSnapshot, OtherMapError, fraction_of
from hushgraph.privacy.map_file import noisy_values, row_columns
from hushgraph.privacy.named_draws import drawn_before, keep_draw, make_folder
from hushgraph.privacy.publication import export
from hushgraph.privacy.release_request import ReleaseRequest
from hushgraph.privacy.sensitivity import caps_sensitivity, checked_squared
from hushgraph.privacy.verification import KNOWN_FORMAT, verify_release
from hushgraph.privacy.windows import Windows

_COUNTED = (
    "graph",
    "windows",
    "sensitivity_squared",
    "adjacency",
    "bound",
    "caps",
    "rules",
    "unit_column",
    "dataset",
)  # terms of a release that counts bring along
_CREATOR = object()  # known to `release` and `read_release` alone


@dataclass(frozen=True)
class Total:
    """A sum over a region, unbiased for the counts after truncation, with the standard error that the noise gives it.

    Parameters
    ----------
    estimate : float
        The sum of the noisy values.
    standard_error : float
        Its standard deviation.
    n_values : int
        How many values were added up.
    """

    estimate: float
    standard_error: float
    n_values: int

    def __str__(self) -> str:
        return f"{self.estimate:,.1f} ± {self.standard_error:,.1f}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Noisy):
    """A noisy map that may be published, with its guarantee; made by `release` and `read_release`. It holds no reference to the counts.

    Parameters
    ----------
    values : (n,) or (n, windows) array
        Counts plus noise, multiples of `lattice`.
    sigma : float
        Noise of the mechanism; `noise_level` is that of noise and rounding together.
    kind : str
        "release".
    graph_hash : str
        `Graph.hash` of the graph.
    exportable : bool
        True.
    lattice : float
        Spacing of the lattice.
    windows : tuple or None
        The edges of the time windows.
    epsilon, delta : float
        The guarantee.
    sensitivity_squared : int or Fraction
        Exact square of the sensitivity that sigma was computed for.
    adjacency, unit, bound, caps, rules : str, str or None, str, dict, dict
        What the guarantee rests on, as in `CountMap`.
    mechanism : str
        "analytic" or "classical".
    ledger : dict
        Which budget was charged: identity, data set, entry, head, the budget after the charge, and which ledger it replaces, if any.
    created : str
        Time of the charge.
    not_protected, attribution : str or None
        Who is not covered, and the source of the graph, as `release` was told.
    unit_column, dataset : str or None
        The column of the ids, and the name of the data that was given when they were counted.
    graph : Graph
        The public graph.
    creator : object
        Known to `release` and `read_release` alone; any other is refused.
    """

    epsilon: float
    delta: float
    sensitivity_squared: int | Fraction
    adjacency: str
    unit: str | None
    bound: str
    caps: dict[str, int]
    rules: dict[str, Any]
    mechanism: str
    ledger: dict[str, Any]
    created: str
    not_protected: str | None = None
    attribution: str | None = None
    unit_column: str | None = None
    dataset: str | None = None
    graph: Graph = field(repr=False)
    creator: InitVar[object] = None

    def __post_init__(self, creator: object) -> None:
        if creator is not _CREATOR:
            msg = "a Release is made by release() and read_release() only: its certificate speaks for values that were charged for"
            raise InputTypeError(msg)
        super().__post_init__()
        for name in ("caps", "rules", "ledger"):
            object.__setattr__(self, name, FrozenDict(getattr(self, name)))
        object.__setattr__(self, "values", frozen_array(self.values))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        object.__setattr__(self, "values", frozen_array(self.values))

    def _repr_html_(self) -> str:
        windows = "" if self.windows is None else f" in {len(self.windows) - 1:,} time windows"
        budget = self.ledger["budget"]
        rows = [
            ("values", f"{self.graph.n:,} {'nodes' if self.graph.outlines is None else 'zones'}{windows}"),
            (
                "guarantee",
                f"epsilon = {self.epsilon:g}, delta = {self.delta:g} for each {self.unit or 'unit'} ({self.adjacency}, {self.bound})",
            ),
            ("not protected", self.not_protected or "not stated"),
            ("noise of each value", f"{self.noise_level:.4g}"),
            (
                "budget",
                f"{budget['spent']:.4g} of {budget['epsilon']:g} spent for {self.ledger['dataset']!r}, entry {self.ledger['entry']}",
            ),
            ("released", self.created),
        ]
        words = guarantee_in_words(self.epsilon, delta=self.delta, unit=self.unit, adjacency=self.adjacency)
        return notebook_table(rows, title="Release", foot=words)

    @property
    def largest_count(self) -> int:
        """Counts were clamped to this size, a public rule."""
        return largest_count(self.sigma)

    @property
    def certificate(self) -> dict[str, Any]:
        """Everything a reader needs to judge the guarantee, ready for JSON; no private value."""
        return certificate_of(self)

    def total(
        self, nodes: ArrayLike | None = None, *, labels: Iterable | None = None, windows: int | Iterable[int] | None = None
    ) -> Total:
        """Sum over a region, unbiased for the counts as they were bounded, with its standard error.

        The sum is taken from the noisy map: a denoised map is biased for totals, since shrinking moves mass around. The region must
        not be chosen by looking at this release: the busiest places of a noisy map are partly those with the most noise.

        Parameters
        ----------
        nodes : array, optional
            The region: a mask, or node numbers; all nodes by default.
        labels : iterable, optional
            The region by labels of nodes, in place of `nodes`.
        windows : int or several, optional
            Numbers of time windows, from 0; all by default.

        Returns
        -------
        Total
            `estimate`, `standard_error` and `n_values`.
        """
        chosen = np.arange(self.graph.n) if nodes is None else checked_nodes(nodes, self.graph.n)
        if labels is not None:
            chosen = self._nodes_of(labels, nodes)
        values = self.values[chosen]
        if windows is not None:
            values = values[:, self._checked_windows(windows)]
        return Total(float(values.sum()), self.noise_level * float(np.sqrt(values.size)), int(values.size))

    def totals(self, regions: Any, *, method: MethodName = "auto", nonnegative: bool = True, guides: Any = None) -> Totals:
        """Return better totals over several regions, with errors that hold.

        The map is denoised inside, which costs no budget: `value` is between the sum of `total`, which is `noisy` here, and that of the
        denoised map, whichever is measured to be better for regions of this size. It takes about seven times as long as `denoise`. For
        totals of several sets of regions, denoise once: `denoise(release.graph, release, nonnegative=True).totals(regions)`.

        Parameters
        ----------
        regions : dict of name to labels, Series of label to region, or GeoDataFrame
            As in `Denoised.totals`. They must not be chosen by looking at this release.
        method : str
            Method of `denoise`.
        nonnegative : bool
            Whether totals cannot be negative: estimates and intervals are cut at 0.
        guides : optional
            Public maps that make the totals better, as in `denoise`.

        Returns
        -------
        Totals
            A row for each region, and for each time window.
        """
        return denoise(self.graph, self, method=method, nonnegative=nonnegative, guides=guides).totals(regions)

    def to_geopandas(self) -> Any:
        """Return the noisy map as a GeoDataFrame; the denoised one is `denoise(release.graph, release, nonnegative=True).to_geopandas()`.

        Returns
        -------
        geopandas.GeoDataFrame
            Columns node (the label), from and to of the window, if there are windows, and noisy; a row for each node and window, with a
            point, or the polygons of a zone. The crs is EPSG:4326 for a graph in longitude and latitude; otherwise there is none.
        """
        columns = row_columns(self.graph, self.windows, spreadsheet_safe=False)
        del columns["node"]
        n_windows = 1 if self.windows is None else len(self.windows) - 1
        return signal_frame(
            self.graph, {**columns, "noisy": self.values.ravel()}, nodes=np.repeat(np.arange(self.graph.n), n_windows)
        )

    def _nodes_of(self, labels: Iterable, nodes: ArrayLike | None) -> np.ndarray:
        if nodes is not None or self.graph.labels is None:
            fault = "nodes= or labels=, not both" if nodes is not None else "nodes=: this graph has no labels"
            msg = f"name a region by {fault}"
            raise InputError(msg)
        position = {label: i for i, label in enumerate(self.graph.labels.tolist())}
        numbers = [position.get(label, -1) for label in labels]
        if min(numbers, default=0) < 0:
            msg = f"{numbers.count(-1)} of the {len(numbers)} labels are no nodes of the graph; the first is number {numbers.index(-1)}"
            raise InputError(msg)
        return checked_nodes(numbers, self.graph.n)

    def _checked_windows(self, windows: int | Iterable[int]) -> list[int]:
        if self.windows is None:
            msg = "this release has no time windows; leave windows= out"
            raise InputError(msg)
        given: Iterable = [windows] if np.ndim(windows) == 0 else list(windows)  # type: ignore[arg-type]
        numbers = [checked_count("windows", one, 0, self.values.shape[1] - 1) for one in given]
        if len(set(numbers)) != len(numbers):
            text = "windows names a window twice, which would count it twice; pass each once"
            raise InputError.about(argument="windows", expected="different windows", hint="pass each once", text=text)
        return numbers

    def export(
        self,
        folder: str | os.PathLike,
        *,
        method: MethodName = "auto",
        nonnegative: bool = True,
        integer: bool = False,
        spreadsheet_safe: bool = False,
        guides: Any = None,
        report: bool = True,
    ) -> Path:
        """Write noisy map, denoised map with expected errors and 90 % intervals, certificate and report into a new folder.

        The denoised map is computed here, from the release and from public guides, if there are any. Neither costs budget.

        Parameters
        ----------
        folder : path
            A folder that does not exist.
        method : str
            Method of `denoise`.
        nonnegative : bool
            Whether the denoised map has no negative values; unlike that of `denoise` it has none by default.
        integer : bool
            Whether the denoised map is rounded to whole numbers.
        spreadsheet_safe : bool
            Spreadsheets take labels that begin with =, +, - or @ for formulas. If True, an apostrophe is written before them, and
            before labels with an apostrophe in front or with a semicolon, tab or line end in them, and all text is in quotation marks.
            The certificate says so, and `read_release` expects it.
        guides : array, table, mapping, Release, Denoised, or a list of these, optional
            Public maps that make the denoised map better, as in `denoise`: earlier releases, say, or `graph.covariates()`. They must be
            public: the map that is published depends on them. The certificate lists their names and SHA-256.
        report : bool
            Whether the folder has `report.html`, a page with maps for the browser, and the certificate its SHA-256. It is made from what
            is published and costs no budget. If it fails, there is a warning and a folder without it. A graph without coordinates has no
            map, so the folder has no report; `write_report` writes one with histograms.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            If the guides cannot be used; nothing is written then.
        """
        return export(
            self, folder, method=method, nonnegative=nonnegative, integer=integer, spreadsheet_safe=spreadsheet_safe, guides=guides,
            report=report,
        )  # fmt: skip


def release(
    counts: CountMap,
    *,
    epsilon: float,
    delta: float,
    ledger: Ledger,
    public_graph: bool = False,
    mechanism: Mechanism = "analytic",
    weak_guarantee: bool = False,
    not_protected: str | None = None,
    attribution: str | None = None,
    note: str | None = None,
    name: str | None = None,
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
        Source of the graph, for the certificate ("© OpenStreetMap contributors"); by default that of the graph.
    note : str, optional
        A public remark for the ledger.
    name : str, optional
        A public name of this release. If the ledger has a release of this name, on the same terms, that one is returned, with a warning, and
        nothing is charged: a cell of a notebook may be run again. The counts are not looked at then, so counts that changed since need
        another name. What was drawn is kept in the folder LEDGER.releases beside the ledger.

    Returns
    -------
    Release
        The noisy map with its guarantee.

    Raises
    ------
    BudgetExceeded
        If the budget does not allow it; nothing is charged.
    LedgerError
        If the ledger is for something else, cannot be written or does not verify; if the name belongs to a release on other terms, or to
        one that was lost by a crash. Nothing is charged.
    InputTypeError
        If `ledger` is not a Ledger, or `counts` is not a CountMap.

    Notes
    -----
    There is no seed: noise that can be repeated can be removed. For experiments on generated data see `simulate`.

    The counts stay as they are; delete them (`del counts`) when you need them no more. The release does not refer to them.

    Examples
    --------
    >>> import os, tempfile
    >>> import hushgraph as hg
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.environ["HUSHGRAPH_STATE"] = folder.name
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    >>> counts = hg.privacy.declare_counts(graph, [4, 0, 7], unit="person", adjacency="add-remove", sensitivity=1)
    >>> ledger = hg.privacy.Ledger.create(
    ...     f"{folder.name}/budget.db", dataset="visits", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6
    ... )
    >>> public = hg.privacy.release(counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
    >>> public.epsilon, round(public.sigma, 2), public.values.shape, public.ledger["entry"]
    (0.5, 8.06, (3,), 2)
    >>> del os.environ["HUSHGRAPH_STATE"]
    >>> folder.cleanup()
    """
    _check_counts(counts)
    request = ReleaseRequest(
        epsilon=epsilon, delta=delta, mechanism=mechanism, public_graph=public_graph, weak_guarantee=weak_guarantee
    ).checked()
    _check_ledger_type(ledger)
    check_ledger(counts, ledger)
    sigma = request.sigma(counts.sensitivity_squared)
    attribution = counts.graph.attribution if attribution is None else attribution
    texts = {"not_protected": not_protected, "attribution": attribution, "note": note, "name": name}
    for field_name, text in texts.items():
        if text is not None and not (isinstance(text, str) and text.isprintable()):
            raise InputTypeError.about(argument=field_name, expected="text in one line", got=shown(text))
    terms = Terms(
        epsilon=request.epsilon,
        delta=request.delta,
        sigma=sigma,
        mechanism=mechanism,
        unit=ledger.unit,
        not_protected=not_protected,
        attribution=attribution,
        **{name: getattr(counts, name) for name in _COUNTED},
    )
    check_size(terms.claims())
    if name is not None:
        kept = drawn_before(ledger, name, terms.claims())
        if kept is not None:
            msg = (
                f"already released on {kept.state.time} under the name {name!r}: that release is returned, and nothing was charged"
            )
            warnings.warn(msg, UserWarning, stacklevel=2)
            return _assembled(replace(terms, sigma=kept.sigma), kept.values, kept.state)
        make_folder(ledger)
    reached(0.0, "charging the budget")
    charge = ledger.charge(
        sensitivity_squared=counts.sensitivity_squared,
        sigma=sigma,
        epsilon=request.epsilon,
        delta=request.delta,
        note=note,
        claims=terms.claims(),
        name=name,
    )
    with suppress(Exception):  # a watcher that stops the work now is too late: the release is paid for
        reached(0.5, "drawing the noise")
    with between(0.5, 1.0):
        values = _draw(counts, charge)
        is_kept = name is not None and keep_draw(ledger, charge, values)
        _bind(ledger, charge, values, is_kept=is_kept)
    return _assembled(terms, values, charge.state)


def _bind(ledger: Ledger, charge: Charge, values: np.ndarray, *, is_kept: bool) -> None:
    """Write the SHA-256 of the values into the ledger; if that fails, warn: the release was paid for and is still good.

    Ctrl-C is an error only if the name returns the values later (`is_kept`); otherwise they would be lost with it.
    """
    try:
        ledger.bind(charge, values)
    except OtherMapError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if is_kept and isinstance(error, KeyboardInterrupt):
            raise
        reason = error if isinstance(error, HushgraphError | OSError) else type(error).__name__  # other texts may quote data
        later = "; asking for the name again tries to record it once more" if is_kept else ""
        msg = (
            f"the release was charged and is returned, but its map could not be recorded in the ledger ({reason}): export it now; verify may "
            f"say that no map is bound to entry {charge.entry}{later}"
        )
        warn_without_raising(msg, stacklevel=3)


def _assembled(terms: Terms, values: np.ndarray, state: LedgerSnapshot) -> Release:
    """Return the release of values that were charged for; `state` is the ledger right after that charge."""
    return Release(
        values=values,
        kind="release",
        graph_hash=terms.graph.hash,
        exportable=True,
        lattice=lattice_step(terms.sigma),
        ledger=state.stamp(),
        created=state.time,
        creator=_CREATOR,
        **vars(terms),
    )


def read_release(folder: str | os.PathLike, graph: Graph, *, ledger: Ledger | None = None) -> Release:
    """Return the release that was exported into a folder, for totals and for denoising again.

    Everything is checked that `verify_release` checks; a fault is an error. Certificates are not signed: whether the ledger was
    charged for this one only the ledger can tell.

    Parameters
    ----------
    folder : path
        The folder, as `Release.export` wrote it.
    graph : Graph
        The public graph it was made on.
    ledger : Ledger, optional
        The ledger that was charged, if you have it.

    Returns
    -------
    Release
        The release, as it was exported.

    Raises
    ------
    ValueError
        If the folder does not verify.
    """
    graph = as_graph(graph)
    fault = next(iter(verify_release(folder, graph, ledger).faults), None)
    folder = Path(folder)
    if fault is not None and fault.claim == KNOWN_FORMAT:
        msg = f"{folder.name!r} cannot be read: {fault.detail}"
        raise InputError(msg)
    if fault is not None:
        advice = "get the folder again from the publisher"
        if fault.subject == "graph":  # the same file has other labels or weights if other columns are taken
            advice = "give the graph of the release, and read it with the same options (column of labels, weights)"
        msg = f"{folder.name!r} is not a release on this graph: {fault.detail}; {advice}"
        raise InputError(msg)
    certificate = read_certificate(folder / CERTIFICATE)
    windows = None if certificate["windows"] is None else tuple(certificate["windows"])
    same = ("epsilon", "delta", "adjacency", "unit", "bound", "caps", "rules", "ledger", "created", "attribution", "not_protected")
    squared = fraction_of(certificate["sensitivity_squared"])
    return Release(
        values=noisy_values(folder, certificate),
        sigma=certificate["sigma"],
        kind="release",
        graph_hash=graph.hash,
        exportable=True,
        lattice=certificate["lattice"],
        windows=windows,
        sensitivity_squared=int(squared) if squared.denominator == 1 else squared,
        mechanism=certificate["mechanism"].split()[0],
        graph=graph,
        creator=_CREATOR,
        unit_column=certificate.get("unit_column"),
        dataset=certificate.get("dataset"),
        **{name: certificate[name] for name in same},
    )


def simulate(
    graph: Graph,
    values: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float | None = None,
    sensitivity_squared: int | Fraction | None = None,
    seed: int,
    windows: Sequence | None = None,
    mechanism: Mechanism = "analytic",
    paper_compat: bool = False,
) -> Noisy:
    """Return values with the noise that a release would have, from a seed: for experiments on generated or already public values.

    The result can be denoised but not exported: seeded noise protects nobody. A `CountMap` is refused, since trying releases
    out on private counts would be releases without a charge.

    Parameters
    ----------
    graph : Graph
        The graph.
    values : (n,) or (n, h) array, Series, DataFrame or dict by label
        Generated or public values.
    epsilon, delta : float
        The guarantee that a release with this noise would have.
    sensitivity, sensitivity_squared : number
        One of the two, as in `analytic_sigma`.
    seed : int
        Seed of the noise.
    windows : h + 1 increasing edges, optional
        Edges of time windows, if columns are such.
    mechanism : {"analytic", "classical"}
        Which theorem sigma comes from.
    paper_compat : bool
        Whether the classical mechanism is allowed at epsilon = 1, as in the paper's tables.

    Returns
    -------
    Noisy
        `values`, `sigma` and `lattice`; not exportable.

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
    graph = as_graph(graph)
    signal = graph.align(values)
    squared = checked_squared(sensitivity, sensitivity_squared)
    sigma = mechanism_sigma(mechanism, epsilon=epsilon, delta=delta, sensitivity_squared=squared, paper_compat=paper_compat)
    step = lattice_step(sigma)
    noise = steps_from(np.random.default_rng(checked_seed(seed)).bytes, signal.size, sigma).reshape(signal.shape)
    noisy = step * (np.rint(signal.astype(np.float64) / step) + noise)
    edges = None if windows is None else Windows(windows).edges
    return Noisy(noisy, sigma=sigma, kind="simulation", graph_hash=graph.hash, lattice=step, windows=edges)


# ---- the private part -------------------------------------------------------------------------------------------------


def _draw(counts: CountMap, charge: Charge) -> np.ndarray:
    """Return counts plus noise, exactly, as multiples of the lattice's step. The charge pays for this one draw."""
    charge.spend()
    step = lattice_step(charge.sigma)
    per_unit, largest = round(1 / step), largest_count(charge.sigma)
    steps = np.clip(counts.counts, -largest, largest) * per_unit
    steps += lattice_noise(steps.size, sigma=charge.sigma).reshape(steps.shape)
    return steps * step  # at most 53 bits: exact


def _check_counts(counts: CountMap) -> None:
    """Refuse what is no CountMap, and counts whose sensitivity is not the one that their caps enforce."""
    if type(counts) is not CountMap:  # a subclass could say anything of its counts
        expected, got = "a CountMap, whose sensitivity is known", type(counts).__name__
        hint = "count events with privacy.count_events, or state the sensitivity of your own counts with privacy.declare_counts"
        text = f"release takes {expected}; got {got}; {hint}"
        raise InputTypeError.about(argument="counts", expected=expected, got=got, hint=hint, text=text)
    if counts.caps or counts.bound == "enforced":
        enforced = caps_sensitivity(counts.caps, counts.adjacency, windows=counts.windows is not None)
        if Fraction(counts.sensitivity_squared) != enforced:
            msg = "the sensitivity of these counts is not the one that their caps and adjacency enforce: they were changed; count again"
            raise InputError(msg)


def _check_ledger_type(ledger: Ledger) -> None:
    if type(ledger) is not Ledger:
        expected = "a privacy.Ledger, which keeps count of what was spent"
        hint = Sentence("make one with {privacy.Ledger.create(path, dataset=..., unit=..., adjacency=..., epsilon=..., delta=...)}")
        raise InputTypeError.about(argument="ledger", expected=expected, got=shown(ledger), hint=hint)


def check_ledger(counts: CountMap, ledger: Ledger) -> None:
    """Refuse a ledger for another unit, adjacency or data set than that of the counts, as far as these name them.

    Parameters
    ----------
    counts : CountMap
        The counts.
    ledger : Ledger
        The ledger.
    """
    for name in ("unit", "adjacency", "dataset"):
        stored, counted = getattr(ledger, name), getattr(counts, name)
        if counted not in (None, stored):
            hint = Sentence(" (and {unit_column=} if the column has another name)") if name == "unit" else ""
            msg = "the ledger protects {} {!r}, the counts {!r}; count again with {}{!r}{}, or use the ledger for {!r}"
            raise LedgerError(Sentence(msg, name, stored, counted, Reference(f"{name}="), stored, hint, counted))
