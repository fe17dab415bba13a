"""The report: a denoised signal as one HTML file, for readers who did not run the program.

The file holds maps to pan and zoom, the expected errors, a description of the method and, for a release, its certificate. It loads
nothing from other machines, and its content security policy forbids it. The report of a release is made from the release alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
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
from hushgraph.estimators import Denoised, TypicalError, sentence_of
from hushgraph.graphs import Graph, Noisy, checked_graph
from hushgraph.plotting.report.charts import format_error, format_number, format_spread, histogram
from hushgraph.plotting.report.guides import guide_digests, guides_section, has_outside_guides
from hushgraph.plotting.report.method_charts import method_sections
from hushgraph.plotting.report.packing import (
    MAP_FOLDER,
    MAP_SCRIPTS,
    checked_metres,
    decimal_step,
    drawing_order,
    pack_graph,
    pack_values,
)
from hushgraph.plotting.report.text import certificate_table, window_names
from hushgraph.privacy import Release, guarantee_in_words


def write_report(
    path: str | Path, graph: Graph, noisy: Any, result: Denoised, *, title: str | None = None, data: str | None = None,
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
    data : str, optional
        What the values are and where they come from: a place, a file name. Not shown for a release, whose report is made from the
        release alone.
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
    report = ReportData.of(
        checked_graph(graph), noisy, result, title=title, data=data, certificate=certificate, epsilon=epsilon, metres=metres
    )
    with atomic_open(path) as file:  # no reader sees a part of the file
        file.write(_page(report).encode())
    return Path(path)


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that the page shows. Values are (n, m): one row per node, one column per signal."""

    graph: Graph
    noisy: np.ndarray = field(repr=False)
    result: Denoised = field(repr=False)
    denoised: np.ndarray = field(repr=False)
    error: np.ndarray | None = field(repr=False)
    columns: list[str]
    title: str
    data: str | None
    certificate: dict[str, Any] | None
    epsilon: float | None
    simulated: bool
    metres: float | None = None
    has_windows: bool = False

    @classmethod
    def of(
        cls, graph: Graph, noisy: Any, result: Denoised, *, title: str | None, data: str | None, certificate: dict[str, Any] | None,
        epsilon: float | None, metres: float | None,
    ) -> ReportData:  # fmt: skip
        """Return the data of a report, after a check that noisy signal and result belong together."""
        _check_types(result, certificate, title=title, data=data)
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
            columns=_column_names(noisy, denoised),
            title=title or ("A private map" if private else "A denoised signal"),
            data=None if private else data,
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


def _check_types(result: Any, certificate: Any, **texts: Any) -> None:
    if not isinstance(result, Denoised):
        raise InputTypeError.about(argument="result", expected="what denoise returns", got=type(result).__name__)
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InputTypeError.about(argument=name, expected="text", got=shown(text))
    if certificate is not None and not isinstance(certificate, dict):
        expected = "a dict, as release.certificate is"
        raise InputTypeError.about(argument="certificate", expected=expected, got=type(certificate).__name__)


def _column_names(noisy: Any, denoised: np.ndarray) -> list[str]:
    """Return the names of several signals, from time windows or columns of a table; none for one signal."""
    if denoised.ndim == 1:
        return []
    windows = noisy.windows if isinstance(noisy, Noisy) else None
    if windows is not None:
        return window_names(windows)
    return [str(name) for name in getattr(noisy, "columns", [f"signal {k + 1}" for k in range(denoised.shape[1])])]


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
        title=escape(report.title),
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
    largest = float(np.nanmax(np.abs(np.concatenate([report.noisy, report.denoised])), initial=0.0))
    step = max(decimal_step(report.sigma), decimal_step(largest, parts=10**8))
    columns = []
    for k in range(report.noisy.shape[1]):
        parts = {
            "noisy": pack_values(report.noisy[order, k], step=step),
            "denoised": pack_values(report.denoised[order, k], step=step),
        }
        if report.error is not None:
            parts["error"] = pack_values(report.error[order, k], step=step / 10)
        columns.append(parts)
    return {
        "graph": pack_graph(report.graph, order, metres=report.metres),
        "columns": columns,
        "digits": max(0, -round(np.log10(step))),
        "fit": "Whole map",
        "notes": [
            f"{format_spread(report.sigma)} each",
            f"{format_error(report.result.typical_error)} typically",
            "",
        ],
    }


def _head(report: ReportData) -> str:
    graph, error = report.graph, report.result.typical_error
    facts = {
        "nodes": f"{graph.n:,}",
        "edges": f"{graph.n_edges:,}",
        "typical error, noisy": format_spread(report.sigma),
        "typical error, denoised (estimated)": format_error(error),
    }
    if len(report.columns) > 1:
        facts[report.columns_name] = f"{len(report.columns):,}"
    blocks = "".join(
        f"<div{' class=gain' if 'denoised' in name else ''}><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts.items()
    )
    source = f"<p>{escape(report.data)}</p>" if report.data else ""
    lead = f"Every value carries noise of standard deviation {format_number(report.sigma)}. "
    lead += _gain(error, report.sigma)
    return f'<h1>{escape(report.title)}</h1>{source}<p class="lead">{lead}</p>{_guarantee(report)}<dl class="facts">{blocks}</dl>'


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
    choice = ""
    if len(report.columns) > 1:
        options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in enumerate(report.columns))
        choice = f'<p class="columns"><label for="column">Shown</label><select id="column">{options}</select></p>'
    return (
        f'<section>{choice}<div id="maps" class="map">Reading the maps</div>'
        "<noscript><p>The maps need JavaScript; everything else does not.</p></noscript>"
        '<p class="quiet">Drag to move, wheel or pinch to zoom, point at a node for its values; both maps move together and share '
        "their colours. Zero is pale, values below it are blue.</p></section>"
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
            f"nodes lacked a value in at least one of the {report.columns_name}"
            if len(report.columns) > 1
            else "nodes had no value"
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
    rows = zip(("one node in ten", "half of the nodes", "nine in ten"), quantiles, strict=True)
    table = "".join(f"<div><dt>{name}, at most</dt><dd>{format_spread(size)}</dd></div>" for name, size in rows)
    source = "values and the guides" if has_outside_guides(report.result) else "values alone"
    words = (
        f'<dl class="spread">{table}</dl><p class="quiet">The expected error of a node (root mean square), estimated from the noisy '
        f"{source} and averaged over the nodes around it. Darker means less certain.</p>{_column_errors(report)}"
    )
    if report.graph.coords is None or not report.graph.n:
        return f"<section><h2>How far to trust it</h2>{words}</section>"
    drawn = '<div id="error-map" class="map">Reading the map</div>'
    return f'<section><h2>Where to trust it</h2><div class="beside">{drawn}<div>{words}</div></div></section>'


def _column_errors(report: ReportData) -> str:
    """Return a sentence on the signals with the smallest and the largest typical error, where each has its own."""
    named = zip(report.columns, report.result.typical_errors, strict=False)
    known = sorted(((error, name) for name, error in named if error.is_known), key=lambda pair: pair[0].size)
    if len(known) < 2 or np.ndim(report.result.risk) == 0:
        return ""
    (least, best), (most, worst) = known[0], known[-1]
    words = f"Of the {report.columns_name}, {best} is known best ({format_error(least)} typically) and {worst} least ({format_error(most)})."
    return f'<p class="quiet">{escape(words).replace("± ", "±&nbsp;")}</p>'


def _choice_section(report: ReportData) -> str:
    return method_sections(report.graph, report.noisy[:, 0], report.result) if not report.columns else ""


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
    attribution = (report.certificate or {}).get("attribution")
    credit = f"<p>{escape(str(attribution))}</p>" if attribution else ""
    return f"<footer>{credit}<p>Made with hushgraph {escape(hushgraph.__version__)}. This file needs no network and sends nothing.</p></footer>"
