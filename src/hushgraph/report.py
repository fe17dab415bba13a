"""write_report: a denoised signal as one HTML file that needs nothing else, for people who were not there.

The file holds maps to pan and zoom, the errors to expect, what was done in plain words, and for a release its certificate. It
asks no other machine for anything, and its policy forbids it to. A report of a release is made of the release alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

import hushgraph
from hushgraph._errors import InputError, InputTypeError
from hushgraph.app.charts import error_words, figure, histogram, spread
from hushgraph.app.explanation import explanation
from hushgraph.app.packing import MAP_SCRIPTS, checked_metres, decimal_step, drawing_order, pack_graph, pack_values
from hushgraph.app.wording import METHODS, certificate_table, window_names
from hushgraph.arrays import on_host
from hushgraph.checks import checked_number, shown
from hushgraph.graph import Graph, checked_graph
from hushgraph.observation import Noisy
from hushgraph.privacy.guarantee import guarantee_in_words
from hushgraph.privacy.release import Release
from hushgraph.result import Denoised, TypicalError
from hushgraph.text_files import replacing


def write_report(
    path, graph: Graph, noisy, result: Denoised, *, title: str | None = None, data: str | None = None,
    certificate: dict | None = None, epsilon: float | None = None, metres: float | None = None,
) -> Path:  # fmt: skip
    """Write what went in, what was done and what came out as one self-contained HTML file.

    Parameters
    ----------
    path : path
        The file, replaced if it exists; it appears only when it is complete.
    graph : Graph
        With coordinates for maps; without them the report shows how the values are distributed.
    noisy : array (n,) or (n, m), Series, dict, Noisy or Release
    result : Denoised
        What `denoise` made of `noisy`.
    title : str, optional
    data : str, optional
        What the values are and where they come from, in words: a place, a file name. Not shown for a release, whose report
        is made of the release alone.
    certificate : dict, optional
        That of a release; taken from `noisy` if it is one.
    epsilon : float, optional
        For noise that was added for privacy by other means, or simulated: the report says what it means.
    metres : float, optional
        Metres in one unit of planar coordinates, for the maps' scale bar; known for longitudes and latitudes.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(300)
    >>> noisy = hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
    >>> write_report("report.html", graph, noisy, hg.denoise(graph, noisy, sigma=1))  # doctest: +SKIP
    PosixPath('report.html')
    """
    story = Story.of(checked_graph(graph), noisy, result, title, data, certificate, epsilon, metres)
    with replacing(path) as file:  # whoever opens it sees all of it
        file.write(_page(story).encode())
    return Path(path)


@dataclass(frozen=True, eq=False)
class Story:
    """Everything the page is made of. Values are (n, m): nodes and signals."""

    graph: Graph
    noisy: np.ndarray = field(repr=False)
    result: Denoised = field(repr=False)
    denoised: np.ndarray = field(repr=False)
    error: np.ndarray | None = field(repr=False)
    columns: list[str]
    title: str
    data: str | None
    certificate: dict | None
    epsilon: float | None
    simulated: bool
    metres: float | None = None

    @classmethod
    def of(cls, graph: Graph, noisy, result: Denoised, title, data, certificate, epsilon, metres=None) -> Story:
        """Checked: the parts must belong together."""
        if not isinstance(result, Denoised):
            msg = f"result must be what denoise returns; got {type(result).__name__}"
            raise InputTypeError(msg)
        noisy, result = on_host(noisy), result.on_host()
        for name, text in (("title", title), ("data", data)):
            if text is not None and not isinstance(text, str):
                msg = f"{name} must be text; got {shown(text)}"
                raise InputTypeError(msg)
        if certificate is not None and not isinstance(certificate, dict):
            msg = f"certificate must be a dict, as release.certificate is; got {type(certificate).__name__}"
            raise InputTypeError(msg)
        released = isinstance(noisy, Noisy) and noisy.kind == "release"
        if isinstance(noisy, Release) and certificate is None:
            certificate = noisy.certificate
        values = noisy.opened(graph)[0] if isinstance(noisy, Noisy) else graph.aligned("noisy", noisy, missing_ok=True)
        denoised = graph.aligned("result.signal", result.signal, missing_ok=True)
        if values.shape != denoised.shape:
            msg = f"noisy and result.signal must have one shape; got {values.shape} and {denoised.shape}: pass what was denoised"
            raise InputError(msg)
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
        )

    @property
    def sigma(self) -> float:
        """Root mean square of the noise."""
        return float(np.sqrt(np.mean(np.square(self.result.sigma))))


def _column_names(noisy, denoised: np.ndarray) -> list[str]:
    if denoised.ndim == 1:
        return []
    windows = noisy.windows if isinstance(noisy, Noisy) else None
    if windows is not None:
        return window_names(windows)
    return [str(name) for name in getattr(noisy, "columns", [f"signal {k + 1}" for k in range(denoised.shape[1])])]


# ---- the page ---------------------------------------------------------------------------------------------------------


def _page(story: Story) -> str:
    static = files("hushgraph.app") / "static"
    script, style, page = (
        "\n".join((static / name).read_text(encoding="utf-8") for name in names)
        for names in ((*MAP_SCRIPTS, "report.js"), ("map.css", "report.css"), ("report.html",))
    )
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"  # no network, no other script, not even one that a hostile label might smuggle in
    sections = [
        _head(story),
        _maps(story),
        _done(story),
        _errors(story),
        _chosen(story),
        _privacy(story),
        _technical(story),
        _foot(story),
    ]
    return Template(page).substitute(
        policy=policy,
        title=escape(story.title),
        style=style,
        body="\n".join(section for section in sections if section),
        data=_safe_json(_packed(story)),
        script=script,
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _safe_json(data: dict) -> str:
    """JSON that no HTML parser can take for the end of its element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(story: Story) -> dict:
    if story.graph.coords is None or story.graph.n == 0:
        return {}
    order = drawing_order(story.graph)
    largest = float(np.nanmax(np.abs(np.concatenate([story.noisy, story.denoised])), initial=0.0))
    step = max(decimal_step(story.sigma), decimal_step(largest, parts=10**8))
    columns = []
    for k in range(story.noisy.shape[1]):
        parts = {
            "noisy": pack_values(story.noisy[order, k], step=step),
            "denoised": pack_values(story.denoised[order, k], step=step),
        }
        if story.error is not None:
            parts["error"] = pack_values(story.error[order, k], step=step / 10)
        columns.append(parts)
    return {
        "graph": pack_graph(story.graph, order, metres=story.metres),
        "columns": columns,
        "digits": max(0, -round(np.log10(step))),
        "fit": "Whole map",
        "notes": [
            f"{spread(story.sigma)} each",
            f"{error_words(story.result.typical_error)} typically",
            "",
        ],
    }


def _head(story: Story) -> str:
    graph, error = story.graph, story.result.typical_error
    facts = {
        "nodes": f"{graph.n:,}",
        "edges": f"{graph.n_edges:,}",
        "typical error, noisy": spread(story.sigma),
        "typical error, denoised (estimated)": error_words(error),
    }
    if len(story.columns) > 1:
        facts["time windows" if story.certificate else "signals"] = f"{len(story.columns):,}"
    blocks = "".join(
        f"<div{' class=gain' if 'denoised' in name else ''}><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts.items()
    )
    source = f"<p>{escape(story.data)}</p>" if story.data else ""
    lead = f"Every value carries noise of standard deviation {figure(story.sigma)}. "
    lead += _gain(error, story.sigma)
    return f'<h1>{escape(story.title)}</h1>{source}<p class="lead">{lead}</p>{_guarantee(story)}<dl class="facts">{blocks}</dl>'


def _gain(error: TypicalError, sigma: float) -> str:
    """What denoising removed, in a sentence."""
    if not error.is_known:
        return "How much of the error was removed is not known: the noise level is probably lower than that."
    gain = 1 - error.size / sigma
    if gain <= 0.005:
        return "Denoising found nothing that could safely be removed."
    return f"Denoising removes {'at least ' if error.is_bound else ''}an estimated {gain:.0%} of the typical error."


def _maps(story: Story) -> str:
    if story.graph.n == 0:
        return "<p>The graph has no nodes.</p>"
    if story.graph.coords is None:
        words = "The graph has no coordinates, so there is no map; these are the values of all nodes, before and after. Heights follow the root of the number of nodes."
        return f'<section><h2>Before and after</h2>{histogram(story.noisy.ravel(), story.denoised.ravel())}<p class="quiet">{words}</p></section>'
    choice = ""
    if len(story.columns) > 1:
        options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in enumerate(story.columns))
        choice = f'<p class="columns"><label for="column">Shown</label><select id="column">{options}</select></p>'
    return (
        f'<section>{choice}<div id="maps" class="map">Reading the maps</div>'
        "<noscript><p>The maps need JavaScript; the figures do not.</p></noscript>"
        '<p class="quiet">Drag to move, wheel or pinch to zoom, point at a node for its values; both maps move together and share '
        "their colours. Zero is pale, values below it are blue.</p></section>"
    )


def _done(story: Story) -> str:
    result = story.result
    words = [METHODS.get(result.method, f"The method was {result.method}.")]
    if len(story.columns) > 1 and "columns" in result.details:
        words.append("All columns were denoised together, since neighbouring ones are alike.")
    reasons = result.details.get("why")
    for reason in dict.fromkeys(reasons if isinstance(reasons, list) else [reasons]):
        if reason:
            words.append(f"Chosen: {reason}.")
    if np.ndim(result.details.get("low_scales", 0)) == 0 and result.details.get("low_scales"):
        words.append(f"It took {result.details['low_scales']} scales below the usual lowest one.")
    if "missing" in result.details:
        what = "nodes lacked a value in at least one column" if len(story.columns) > 1 else "nodes had no value"
        what = "values were missing" if "columns" in result.details else what
        words.append(f"{result.details['missing']:,} {what}.")
    if story.certificate is not None:
        words.append("Only the noisy map was used, so the denoised one is as private.")
    notes = "".join(
        f'<p class="note">{escape(str(note)[:1].upper() + str(note)[1:])}.</p>' for note in result.details.get("notes", [])
    )
    return f"<section><h2>What was done</h2><p>{escape(' '.join(words))}</p>{notes}</section>"


def _errors(story: Story) -> str:
    if story.error is None:
        return ""
    known = story.error[~np.isnan(story.error)]
    quantiles = np.quantile(known, [0.1, 0.5, 0.9]) if len(known) else np.zeros(3)
    rows = zip(("one node in ten", "half of the nodes", "nine in ten"), quantiles, strict=True)
    table = "".join(f"<div><dt>{name}, at most</dt><dd>{spread(size)}</dd></div>" for name, size in rows)
    words = (
        f'<dl class="spread">{table}</dl><p class="quiet">The error to expect of a node (root mean square), estimated from the noisy '
        "values alone and averaged over its surroundings. Darker is less certain.</p>"
    )
    if story.graph.coords is None or not story.graph.n:
        return f"<section><h2>How far to trust it</h2>{words}</section>"
    drawn = '<div id="error-map" class="map">Reading the map</div>'
    return f'<section><h2>Where to trust it</h2><div class="beside">{drawn}<div>{words}</div></div></section>'


def _chosen(story: Story) -> str:
    return explanation(story.graph, story.noisy[:, 0], story.result) if not story.columns else ""


# ---- privacy, figures, foot -------------------------------------------------------------------------------------------


def _guarantee(story: Story) -> str:
    """What an epsilon means, for a release or for noise that was added for privacy."""
    known = story.certificate or {}
    epsilon = known.get("epsilon", story.epsilon)
    if epsilon is None:
        return ""
    sentence = guarantee_in_words(epsilon, delta=known.get("delta"), unit=known.get("unit"), adjacency=known.get("adjacency"))
    if story.simulated:
        return f'<p class="note">The noise is simulated and protects nobody. In a release with such noise: {escape(sentence)}</p>'
    return f'<p class="guarantee">{escape(sentence)}</p>'


def _privacy(story: Story) -> str:
    known = story.certificate
    if known is None:
        return ""
    assumed = '<p class="note">That one unit changes the counts by no more than stated was assumed, not enforced.</p>'
    text = json.dumps(known, indent=2, ensure_ascii=False, default=str)
    return (
        f"<section><h2>Certificate</h2>{assumed if known.get('bound') == 'assumed' else ''}{certificate_table(known)}"
        f"<details><summary>The certificate as JSON</summary><pre>{escape(text)}</pre></details></section>"
    )


def _technical(story: Story) -> str:
    result, rows = story.result, []
    rows.append(("Method", result.method))
    rows.append(
        ("Noise level used (σ)", figure(story.sigma) + (" (root mean square of one per node)" if np.ndim(result.sigma) else ""))
    )
    risk, risk_se = float(np.sum(result.risk)), float(np.sqrt(np.sum(np.square(result.risk_se))))
    rows.append(("Estimated total squared error", f"{figure(risk)} (standard error {figure(risk_se)})"))
    if result.details.get("n_probes"):
        rows.append(("Random probes", f"{result.details['n_probes']:,}"))
    if "n_scales" in result.details and np.ndim(result.details["n_scales"]) == 0:
        rows.append(("Wavelet scales", str(result.details["n_scales"])))
    rows.append(("Graph, SHA-256", story.graph.hash))
    rows.append(("Seconds", ", ".join(f"{name} {seconds:.3f}" for name, seconds in result.timings.items())))
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return f'<section><h2>Figures and time taken</h2><table class="certificate">{body}</table></section>'


def _foot(story: Story) -> str:
    attribution = (story.certificate or {}).get("attribution")
    credit = f"<p>{escape(str(attribution))}</p>" if attribution else ""
    return f"<footer>{credit}<p>Made with hushgraph {escape(hushgraph.__version__)}. This file needs no network and sends nothing.</p></footer>"
