"""The report: a denoised signal as one HTML file, for readers who did not run the program.

The file holds maps to pan and zoom, the expected errors, a description of the method and, for a release, its certificate. It loads
nothing from other machines, and its content security policy forbids it. The report of a release is made from the release alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import hushgraph
from hushgraph._arrays import on_host
from hushgraph._atomic import atomic_open
from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import checked_number, shown
from hushgraph.estimators import INTERVAL_LEVEL, Denoised, TypicalError, sentence_of
from hushgraph.graphs import Graph, Noisy, as_graph
from hushgraph.plotting.report.charts import format_error, format_interval, format_number, format_spread, histogram
from hushgraph.plotting.report.guides import guide_digests, guides_section, has_outside_guides
from hushgraph.plotting.report.method_charts import method_sections
from hushgraph.plotting.report.packing import (
    INTERVAL_HALF_WIDTH,
    MAP_FOLDER,
    MAP_SCRIPTS,
    checked_metres,
    decimal_step,
    drawing_order,
    pack_graph,
    pack_interval,
    pack_values,
)
from hushgraph.plotting.report.text import certificate_table, extent_in_words, named_texts, window_texts
from hushgraph.privacy import Release, guarantee_in_words


def write_report(
    path: str | Path, graph: Graph, noisy: Any, result: Denoised, *, title: str | None = None, label: str | None = None,
    unit: str | None = None, data: str | None = None, attribution: str | None = None, outlines: Any = None,
    certificate: dict[str, Any] | None = None, epsilon: float | None = None, metres: float | None = None,
) -> Path:  # fmt: skip
    """Write the noisy signal, the method and the denoised signal as one HTML file that needs no network.

    Parameters
    ----------
    path : str or Path
        The file to write; it is replaced if it exists, and appears only when it is complete.
    graph : Graph
        The graph of the signal. Without coordinates the report has histograms in place of maps.
    noisy : array_like, Series, dict, Noisy or Release
        The noisy signal, (n,) or (n, m).
    result : Denoised
        The result of `denoise` for `noisy`.
    title : str, optional
        Title of the page.
    label : str, optional
        What the values are, "pickups" for example: it is written beside the legend, and behind numbers if there is no `unit`.
    unit : str, optional
        Unit of the values, written behind numbers: "pickups per hour", "dB".
    data : str, optional
        Where the values come from: a place, a file name. Not shown for a release, whose report is made from the release alone.
    attribution : str, optional
        Source of the graph; by default that of the certificate, or `graph.attribution`.
    outlines : str, Path, dict, GeoDataFrame or list, optional
        Water, parks and districts to draw beneath the maps: paths of .geojson files or their content, in the coordinates of the graph.
        The property "kind" ("water", "park" or "district"), the tags of OpenStreetMap or the name of the file say what they are.
    certificate : dict, optional
        Certificate of a release; taken from `noisy` if that is a release.
    epsilon : float, optional
        Privacy loss of noise that was simulated, or added for privacy by other means; the report says what it means.
    metres : float, optional
        Metres in one unit of planar coordinates, for the scale bar of the maps; not needed for longitudes and latitudes.

    Returns
    -------
    pathlib.Path
        The path of the file.

    Raises
    ------
    TypeError
        If `result` is not a result of `denoise`.
    ValueError
        If `noisy` and `result` have different shapes.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(300)
    >>> noisy = hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
    >>> write_report("report.html", graph, noisy, hg.denoise(graph, noisy, sigma=1))  # doctest: +SKIP
    PosixPath('report.html')
    """
    page = report_page(
        graph, noisy, result, title=title, label=label, unit=unit, data=data, attribution=attribution, outlines=outlines,
        certificate=certificate, epsilon=epsilon, metres=metres,
    )  # fmt: skip
    with atomic_open(path) as file:  # no reader sees a part of the file
        file.write(page.encode())
    return Path(path)


def report_page(
    graph: Graph, noisy: Any, result: Denoised, *, title: str | None = None, label: str | None = None, unit: str | None = None,
    data: str | None = None, attribution: str | None = None, outlines: Any = None, certificate: dict[str, Any] | None = None,
    epsilon: float | None = None, metres: float | None = None,
) -> str:  # fmt: skip
    """Return the text of the HTML file that `write_report` writes."""
    texts = ReportTexts(title=title, label=label, unit=unit, data=data, attribution=attribution)
    report = ReportData.of(
        as_graph(graph), noisy, result, texts, outlines=outlines, certificate=certificate, epsilon=epsilon, metres=metres
    )
    return _page(report)


@dataclass(frozen=True, kw_only=True)
class ReportTexts:
    """What the caller says about the values; the arguments of `write_report`."""

    title: str | None = None
    label: str | None = None
    unit: str | None = None
    data: str | None = None
    attribution: str | None = None

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if text is not None and not isinstance(text, str):
                raise InputTypeError.about(argument=name, expected="text", got=shown(text))

    @property
    def legend(self) -> str:
        """What the values are, for the legend: "Speed (km/h)"."""
        return (
            f"{self.label} ({self.unit})" if self.label and self.unit and self.unit != self.label else self.unit or self.label or ""
        )

    @property
    def behind_numbers(self) -> str:
        """What follows a number: the unit, or what was counted."""
        return self.unit or self.label or ""


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that the page shows. Values are (n, m): one row per node, one column per signal."""

    graph: Graph
    noisy: np.ndarray = field(repr=False)
    result: Denoised = field(repr=False)
    denoised: np.ndarray = field(repr=False)
    error: np.ndarray | None = field(repr=False)
    interval: tuple[np.ndarray, np.ndarray] | None = field(repr=False)
    columns: list[dict[str, str]]
    texts: ReportTexts
    outlines: Any
    certificate: dict[str, Any] | None
    epsilon: float | None
    simulated: bool
    metres: float | None = None
    has_windows: bool = False

    @classmethod
    def of(
        cls, graph: Graph, noisy: Any, result: Denoised, texts: ReportTexts, *, outlines: Any, certificate: dict[str, Any] | None,
        epsilon: float | None, metres: float | None,
    ) -> ReportData:  # fmt: skip
        """Return the data of a report, after a check that noisy signal and result belong together."""
        _check_types(result, certificate)
        noisy, result = on_host(noisy), result.on_host()
        released = isinstance(noisy, Noisy) and noisy.kind == "release"
        if isinstance(noisy, Release) and certificate is None:
            certificate = noisy.certificate
        values = noisy.opened(graph)[0] if isinstance(noisy, Noisy) else graph.aligned("noisy", noisy, missing_ok=True)
        denoised = graph.aligned("result.signal", result.signal, missing_ok=True)
        if values.shape != denoised.shape:
            got = f"{values.shape} and {denoised.shape}: pass what was denoised"
            raise InputError.about(argument="noisy and result.signal", verb="have", expected="one shape", got=got)
        error = None
        if result.node_risk is not None:
            error = graph.aligned("the expected error", result.expected_error(), missing_ok=True).reshape(graph.n, -1)
            error = None if graph.n and np.isnan(error).all() else error
        private = released or certificate is not None
        return cls(
            graph=graph,
            noisy=values.reshape(graph.n, -1).astype(np.float64),
            result=result,
            denoised=denoised.reshape(graph.n, -1).astype(np.float64),
            error=error,
            interval=None if error is None else _interval(graph, result, error),
            columns=_column_texts(noisy, denoised),
            texts=_completed(texts, graph, certificate, private=private),
            outlines=outlines,
            certificate=certificate,
            epsilon=epsilon if epsilon is None else checked_number("epsilon", epsilon, "a number of at least 0", least=0),
            simulated=isinstance(noisy, Noisy) and noisy.kind == "simulation",
            metres=checked_metres(metres),
            has_windows=isinstance(noisy, Noisy) and noisy.windows is not None,
        )

    @property
    def columns_name(self) -> str:
        """What several signals are called."""
        return "time windows" if self.has_windows else "signals"

    @property
    def sigma(self) -> float:
        """Root mean square of the noise."""
        return float(np.sqrt(np.mean(np.square(self.result.sigma))))


def _interval(graph: Graph, result: Denoised, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the interval of each value, NaN where the error is not known."""
    ends = result.interval(INTERVAL_LEVEL)
    lower, upper = (graph.aligned("the interval", end, missing_ok=True).reshape(error.shape) for end in ends)
    return np.where(np.isnan(error), np.nan, lower), np.where(np.isnan(error), np.nan, upper)


def _completed(texts: ReportTexts, graph: Graph, certificate: dict[str, Any] | None, *, private: bool) -> ReportTexts:
    """Return the texts with what the graph and the certificate know; the report of a release says nothing else of the data."""
    dataset = ((certificate or {}).get("ledger") or {}).get("dataset")
    return replace(
        texts,
        title=texts.title or ("A private map" if private else "A denoised signal"),
        data=(None if dataset is None else str(dataset)) if private else texts.data,
        attribution=texts.attribution or (certificate or {}).get("attribution") or graph.attribution,
    )


def _check_types(result: Any, certificate: Any) -> None:
    if not isinstance(result, Denoised):
        raise InputTypeError.about(argument="result", expected="what denoise returns", got=type(result).__name__)
    if certificate is not None and not isinstance(certificate, dict):
        expected = "a dict, as release.certificate is"
        raise InputTypeError.about(argument="certificate", expected=expected, got=type(certificate).__name__)


def _column_texts(noisy: Any, denoised: np.ndarray) -> list[dict[str, str]]:
    """Return the texts of several signals (see `window_texts`), from time windows or columns of a table; none for one signal."""
    if denoised.ndim == 1:
        return []
    windows = noisy.windows if isinstance(noisy, Noisy) else None
    if windows is not None:
        return window_texts(windows)
    return named_texts([str(name) for name in getattr(noisy, "columns", [f"signal {k + 1}" for k in range(denoised.shape[1])])])


# ---- the page ---------------------------------------------------------------------------------------------------------


def _page(report: ReportData) -> str:
    script, style, page = (
        "\n".join((MAP_FOLDER / name).read_text(encoding="utf-8") for name in names)
        for names in ((*MAP_SCRIPTS, "report.js"), ("map.css", "report.css"), ("report.html",))
    )
    # no network and no other script, not even one that a hostile label might contain
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    sections = [
        _head(report),
        _map_section(report),
        _method_section(report),
        guides_section(report.result, report.columns_name),
        _error_section(report),
        _choice_section(report),
        _certificate_section(report),
        _technical_section(report),
        _foot(report),
    ]
    return Template(page).substitute(
        policy=policy,
        title=escape(report.texts.title or ""),
        style=style,
        body="\n".join(section for section in sections if section),
        data=_safe_json(_packed(report)),
        script=script,
    )


def _digest(text: str) -> str:
    """Return the hash of a script or style sheet as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _safe_json(data: dict[str, Any]) -> str:
    """Return JSON text in which no HTML parser finds the end of its element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(report: ReportData) -> dict[str, Any]:
    """Return graph and values as report.js reads them; nothing if there is no map."""
    if report.graph.coords is None or report.graph.n == 0:
        return {}
    order = drawing_order(report.graph)
    step, columns = _value_step(report), []
    for k in range(report.noisy.shape[1]):
        parts = {
            "noisy": pack_values(report.noisy[order, k], step=step),
            "denoised": pack_values(report.denoised[order, k], step=step),
        }
        if report.error is not None:
            parts["error"] = pack_values(report.error[order, k], step=step / 10)
        if report.interval is not None:
            lower, upper = (end[order, k] for end in report.interval)
            parts |= pack_interval(
                report.denoised[order, k], lower, upper, step=max(step, decimal_step(_typical_width(report), parts=20))
            )
        columns.append(parts)
    return {
        "graph": pack_graph(report.graph, order, metres=report.metres, outlines=report.outlines),
        "columns": columns,
        "windows": report.columns,
        "windows_name": report.columns_name,
        "half_width": INTERVAL_HALF_WIDTH,
        "digits": _digits(step),
        "fit": "Whole map",
        "title": report.texts.title,
        "label": report.texts.legend,
        "unit": report.texts.behind_numbers,
        "credit": report.texts.attribution or "",
        "notes": [
            f"{format_spread(report.sigma)} each",
            f"{format_error(report.result.typical_error)} typically",
            "",
        ],
    }


def _value_step(report: ReportData) -> float:
    """Return the distance between two packed values: a fraction of the noise, and not too fine for the largest value."""
    largest = float(np.nanmax(np.abs(np.concatenate([report.noisy, report.denoised])), initial=0.0))
    return max(decimal_step(report.sigma), decimal_step(largest, parts=10**8))


def _digits(step: float) -> int:
    """Return how many decimals a value has that is packed with this step."""
    return max(0, -round(np.log10(step)))


def _typical_width(report: ReportData) -> float:
    """Return the median width of the intervals; NaN if none is known."""
    lower, upper = report.interval or (np.array([]), np.array([]))
    known = (upper - lower)[~np.isnan(upper - lower)]
    return float(np.median(known)) if len(known) else np.nan


def _head(report: ReportData) -> str:
    graph, error = report.graph, report.result.typical_error
    facts = {
        _nodes(report): f"{graph.n:,}",
        "edges" if graph.outlines is None else "common borders": f"{graph.n_edges:,}",
        "typical error, noisy": format_spread(report.sigma),
        "typical error, denoised (estimated)": format_error(error),
    }
    if len(report.columns) > 1:
        facts[report.columns_name] = f"{len(report.columns):,}"
    if report.texts.behind_numbers:
        facts = {
            f"{name}, {escape(report.texts.behind_numbers)}" if "error" in name else name: text for name, text in facts.items()
        }
    blocks = "".join(
        f"<div{' class=gain' if 'denoised' in name else ''}><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts.items()
    )
    lead = f"Every value carries noise of standard deviation {format_number(report.sigma)}. "
    lead += _gain(error, report.sigma)
    return (
        f'<header><h1>{escape(report.texts.title or "")}</h1>{_title_page(report)}</header><p class="lead">{lead}</p>'
        f'{_guarantee(report)}<dl class="facts">{blocks}</dl>'
    )


def _title_page(report: ReportData) -> str:
    """Return what the page is about, where and when, and from which data, as far as that is known."""
    certificate, texts = report.certificate or {}, report.texts
    rows = {
        "What": f"{texts.legend} at each {_nodes(report)[:-1]}" if texts.legend else "",
        "Where": extent_in_words(report.graph, report.metres),
        "When": f"{report.columns[0]['name']} to {report.columns[-1]['name']}" if report.has_windows and report.columns else "",
        "Drawn": str(certificate.get("created", ""))[:10],
        "Data": texts.data or "",
        "Map": texts.attribution or "",
    }
    parts = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in rows.items() if text)
    return f'<dl class="about">{parts}</dl>' if parts else ""


def _nodes(report: ReportData) -> str:
    """Return what the nodes are called."""
    return "nodes" if report.graph.outlines is None else "zones"


def _gain(error: TypicalError, sigma: float) -> str:
    """Return a sentence that says how much of the error denoising removed."""
    if not error.is_known:
        return "How much of the error was removed is not known: the real noise level is probably lower."
    gain = 1 - error.size / sigma
    if gain <= 0.005:
        return "Denoising removed nothing: no change was safe."
    return f"Denoising removes {'at least ' if error.is_bound else ''}an estimated {gain:.0%} of the typical error."


def _map_section(report: ReportData) -> str:
    if report.graph.n == 0:
        return "<p>The graph has no nodes.</p>"
    if report.graph.coords is None:
        words = (
            "The graph has no coordinates, so there is no map. The bars show how many nodes have which value, before and after; their "
            "heights follow the square root of the number of nodes."
        )
        return f'<section><h2>Before and after</h2>{histogram(report.noisy.ravel(), report.denoised.ravel())}<p class="quiet">{words}</p></section>'
    overview = '<div id="windows"></div>' if len(report.columns) > 1 else ""
    values = "its values" if report.interval is None else "its values and an interval, which is explained below"
    more = "" if report.interval is None else ", also expected errors and both ends of the intervals"
    return (
        f'<section><div id="maps" class="map">Reading the maps</div>'
        "<noscript><p>The maps need JavaScript; everything else does not.</p></noscript>"
        f'<p class="quiet">Drag to move, wheel or pinch to zoom, point at a {_nodes(report)[:-1]} for {values}. Both maps move together and share '
        f"their colours; values below zero are blue. <b>Show</b> offers a divider to swipe between them, and each map alone{more}.{_window_words(report)}</p>{overview}</section>"
    )


def _window_words(report: ReportData) -> str:
    """Return how the windows are chosen and compared; nothing for one signal."""
    if len(report.columns) < 2:
        return ""
    limits = "" if report.error is None else ", with limits that take the errors of the two as independent"
    return (
        f" The slider chooses one of the {report.columns_name}; all have the same colours. <b>Compare with</b> shows by how much the values "
        f"differ from those of another one{limits}."
    )


def _method_section(report: ReportData) -> str:
    result = report.result
    words = [sentence_of(result.method)]
    if len(report.columns) > 1 and "columns" in result.details:
        words.append(f"All {report.columns_name} were denoised together, since neighbouring ones are similar.")
    reasons = result.details.get("why")
    for reason in dict.fromkeys(reasons if isinstance(reasons, list) else [reasons]):
        if reason:
            words.append(f"{'Chosen without guides' if 'experts' in result.details else 'Chosen'}: {reason}.")
    if np.ndim(result.details.get("low_scales", 0)) == 0 and result.details.get("low_scales"):
        words.append(f"It used {result.details['low_scales']} scales below the usual lowest scale.")
    if "missing" in result.details:
        what = (
            f"{_nodes(report)} lacked a value in at least one of the {report.columns_name}"
            if len(report.columns) > 1
            else f"{_nodes(report)} had no value"
        )
        what = "values were missing" if "parts" in result.details else what  # all columns as one signal on a product graph
        words.append(f"{result.details['missing']:,} {what}.")
    if report.certificate is not None:
        used = "the noisy map and public guides were" if has_outside_guides(result) else "the noisy map was"
        words.append(f"Only {used} used, so the denoised map is just as private.")
    notes = "".join(
        f'<p class="note">{escape(str(note)[:1].upper() + str(note)[1:])}.</p>' for note in result.details.get("notes", [])
    )
    return f"<section><h2>What was done</h2><p>{escape(' '.join(words))}</p>{notes}</section>"


def _error_section(report: ReportData) -> str:
    if report.error is None:
        return ""
    known = report.error[~np.isnan(report.error)]
    quantiles = np.quantile(known, [0.1, 0.5, 0.9]) if len(known) else np.zeros(3)
    nodes = _nodes(report)
    rows = zip((f"one {nodes[:-1]} in ten", f"half of the {nodes}", "nine in ten"), quantiles, strict=True)
    table = "".join(f"<div><dt>{name}, at most</dt><dd>{format_spread(size)}</dd></div>" for name, size in rows)
    source = "values and the guides" if has_outside_guides(report.result) else "values alone"
    words = (
        f'<dl class="spread">{table}</dl><p class="quiet">The expected error of a {nodes[:-1]} (root mean square), estimated from the noisy '
        f"{source}. The stronger the colour, the less certain.</p>{_column_errors(report)}{_interval_words(report)}"
    )
    if report.graph.coords is None or not report.graph.n:
        return f"<section><h2>How far to trust it</h2>{words}</section>"
    drawn = '<div id="error-map" class="map">Reading the map</div>'
    return f'<section><h2>Where to trust it</h2><div class="beside">{drawn}<div>{words}</div></div></section>'


def _interval_words(report: ReportData) -> str:
    """Return what the interval of a value means, with an example, in words that can be printed; nothing without intervals."""
    if report.interval is None:
        return ""
    lower, upper = report.interval
    values = np.where(np.isnan(upper - lower), np.nan, report.denoised)[:, 0]
    if np.isnan(values).all():
        return ""
    node = int(np.nanargmin(np.abs(values - np.nanquantile(values, 0.99))))  # a large value, for an interval that does not end at 0
    example = escape(
        format_interval(values[node], lower[node, 0], upper[node, 0], _digits(_value_step(report)), report.texts.behind_numbers)
    )
    share, rest = 10 * INTERVAL_LEVEL, 10 * (1 - INTERVAL_LEVEL)
    if_right = ", if the estimated noise level is right" * bool(report.result.details.get("sigma_estimated"))
    has_maps = report.graph.coords is not None
    nodes = _nodes(report)
    source = (
        f"Point at a {nodes[:-1]} of the maps above: its value is shown with an interval"
        if has_maps
        else "Each value has an interval"
    )
    words = (
        f"{source}, such as <q>{example}</q>. At about {share:g} {nodes} in 10 the true value lies in the interval, at about {rest:.2g} in 10 "
        f"outside{if_right}. Intervals are for single {nodes} and cannot be added up."
    )
    return f'<p class="interval">{words}</p>'


def _column_errors(report: ReportData) -> str:
    """Return a sentence on the signals with the smallest and the largest typical error, where each has its own."""
    named = zip((column["name"] for column in report.columns), report.result.typical_errors, strict=False)
    known = sorted(((error, name) for name, error in named if error.is_known), key=lambda pair: pair[0].size)
    if len(known) < 2 or np.ndim(report.result.risk) == 0:
        return ""
    (least, best), (most, worst) = known[0], known[-1]
    words = f"Of the {report.columns_name}, {best} is known best ({format_error(least)} typically) and {worst} least ({format_error(most)})."
    return f'<p class="quiet">{escape(words).replace("± ", "±&nbsp;")}</p>'


def _choice_section(report: ReportData) -> str:
    """Return how the result was chosen, folded: it is for readers who know the method."""
    sections = method_sections(report.graph, report.noisy[:, 0], report.result) if not report.columns else ""
    return f'<details class="experts"><summary><h2>For experts</h2></summary>{sections}</details>' if sections else ""


# ---- privacy, numbers, foot -------------------------------------------------------------------------------------------


def _guarantee(report: ReportData) -> str:
    """Return what epsilon means, for a release or for noise that was added for privacy; empty if there is none."""
    certificate = report.certificate or {}
    epsilon = certificate.get("epsilon", report.epsilon)
    if epsilon is None:
        return ""
    sentence = guarantee_in_words(
        epsilon, delta=certificate.get("delta"), unit=certificate.get("unit"), adjacency=certificate.get("adjacency")
    )
    if report.simulated:
        return f'<p class="note">The noise is simulated and protects nobody. In a release with such noise: {escape(sentence)}</p>'
    return f'<p class="guarantee">{escape(sentence)}</p>'


def _certificate_section(report: ReportData) -> str:
    certificate = report.certificate
    if certificate is None:
        return ""
    assumed = '<p class="note">That one unit changes the counts by no more than stated was assumed, not enforced.</p>'
    text = json.dumps(certificate, indent=2, ensure_ascii=False, default=str)
    return (
        f"<section><h2>Certificate</h2>{assumed if certificate.get('bound') == 'assumed' else ''}{certificate_table(certificate)}"
        f"<details><summary>The certificate as JSON</summary><pre>{escape(text)}</pre></details></section>"
    )


def _technical_section(report: ReportData) -> str:
    result = report.result
    level = format_number(report.sigma) + (" (root mean square over the nodes)" if np.ndim(result.sigma) else "")
    rows = [("Method", result.method), ("Noise level used (σ)", level)]
    risk, risk_se = float(np.sum(result.risk)), float(np.sqrt(np.sum(np.square(result.risk_se))))
    rows.append(("Estimated total squared error", f"{format_number(risk)} (standard error {format_number(risk_se)})"))
    if result.details.get("n_probes"):
        rows.append(("Random probes", f"{result.details['n_probes']:,}"))
    if "n_scales" in result.details and np.ndim(result.details["n_scales"]) == 0:
        rows.append(("Wavelet scales", str(result.details["n_scales"])))
    rows.append(("Graph, SHA-256", report.graph.hash))
    if guide_digests(result):
        rows.append(("Guides, SHA-256 (beginnings)", guide_digests(result)))
    rows.append(("Seconds", ", ".join(f"{name} {seconds:.3f}" for name, seconds in result.timings.items())))
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return f'<section><h2>Numbers and time taken</h2><table class="certificate">{body}</table></section>'


def _foot(report: ReportData) -> str:
    credit = f"<p>{escape(report.texts.attribution)}</p>" if report.texts.attribution else ""
    return f"<footer>{credit}<p>Made with hushgraph {escape(hushgraph.__version__)}. This file needs no network and sends nothing.</p></footer>"
