"""Maps of graph signals: every edge a line, coloured by the mean of its two ends, large values wider and on top.

Needs matplotlib, which is imported only when a map is drawn. Colours follow the signed square root of the value, so that a
busy place does not hide the rest; zero is always the same light warm grey, and negative values are blue. Lightness falls from
zero up, and blue never gets as dark as violet, so that the signs stay apart for readers who do not tell red from green.
The style of all other figures is here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._geodesy import LocalPlane
from hushgraph.arrays import on_host
from hushgraph.checks import as_number, checked_number, choose, shown
from hushgraph.contents import extra
from hushgraph.graph import Graph, checked_graph
from hushgraph.result import HOPS, Denoised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Transform = Literal["sqrt", "linear"]

INK, QUIET = "#1b2a3a", "#5b6b7a"
COLOURS = ("#1f6f8b", "#d1495b", "#edae49", "#1d2b36", "#b49ad6", "#6b3f22")  # told apart with any colour vision

_NEGATIVE = ["#3f78a8", "#7ba3c4", "#adc5d8", "#d0dae0"]  # from -vmax up to just below zero
_POSITIVE = ["#ddd6c8", "#eacb93", "#f4b45a", "#f2914a", "#de5238", "#b41f4c", "#7d1150", "#3a0a3f"]  # from zero up to vmax
_UNKNOWN = "#e3e1dc"  # edges without a value
_RASTERISED = 50_000  # edges; above this a vector file would be larger than the picture


def plot_graph_signal(
    graph: Graph, signal, *, ax: Axes | None = None, cmap=None, vmin: float | None = None, vmax: float | None = None,
    title: str | None = None, linewidth: float | None = None, colorbar: bool = True, transform: Transform = "sqrt",
    label: str | None = None, attribution: str | None = None,
) -> Axes:  # fmt: skip
    """Draw a signal as a map of coloured edges.

    Parameters
    ----------
    graph : Graph
        With coordinates; crs="lonlat" is drawn with the aspect of its mean latitude.
    signal : (n,) numbers, a Series or a dict
    ax : matplotlib axes, optional
        Where to draw; a new figure if not given.
    cmap : matplotlib colour map or its name, optional
        Its middle stands for zero unless `vmin` says otherwise.
    vmin, vmax : float, optional
        Values of the first and last colour. `vmax` is the 99.8 % quantile of what is drawn, `vmin` is -vmax.
    linewidth : float, optional
        Width in points at zero; chosen from the number of edges if not given.
    transform : {"sqrt", "linear"}
        Colours follow the signed square root, or the value itself.
    label : str, optional
        What the colours stand for, beside the bar.
    attribution : str, optional
        Whom to name, in small letters below the map: `attribution` of a real map, "© OpenStreetMap contributors".

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from hushgraph import datasets
    >>> graph = datasets.grid(5, 5)
    >>> ax = plot_graph_signal(graph, range(25), title="row by row")  # doctest: +SKIP
    """
    drawn = _edge_values(graph, signal)
    return _draw_map(
        graph, drawn, ax=ax, cmap=cmap, vmin=vmin, vmax=vmax, title=title, linewidth=linewidth, colorbar=colorbar,
        transform=transform, label=label, attribution=attribution,
    )  # fmt: skip


def plot_error(
    graph: Graph, result: Denoised, *, ax: Axes | None = None, hops: int = HOPS, vmax: float | None = None,
    title: str | None = None, colorbar: bool = True, attribution: str | None = None,
) -> Axes:  # fmt: skip
    """Draw the expected error of each node of a denoised signal as a map; it needs no truth.

    Parameters
    ----------
    graph : Graph
        The one that was denoised on, with coordinates.
    result : Denoised
        Of one signal. Edges at nodes that had no value are pale grey.
    hops : int
        How far SURE is averaged around each node, see `Denoised.expected_error`.
    ax, vmax, title, colorbar, attribution
        As in `plot_graph_signal`.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> noisy = hg.hotspot_counts(graph) + np.random.default_rng(0).normal(0, 5, graph.n)
    >>> ax = plot_error(graph, hg.denoise(graph, noisy, sigma=5), title="expected error")  # doctest: +SKIP
    """
    if not isinstance(result, Denoised):
        msg = f"result must be what denoise returned; got {type(result).__name__}"
        raise InputTypeError(msg)
    error = graph.aligned("the expected error", result.expected_error(hops=hops), missing_ok=True, one=True)
    if error.ndim != 1:
        msg = f"a map shows the error of one signal, and this result holds {error.shape[1]}; draw a column of result.expected_error() with plot_graph_signal"
        raise InputError(msg)
    return _draw_map(
        graph, _edge_values(graph, error, missing_ok=True), ax=ax, vmax=vmax, title=title, colorbar=colorbar,
        transform="linear", label="expected error (root mean square)", attribution=attribution,
    )  # fmt: skip


def plot_maps(
    graph: Graph,
    signals: Mapping[str, np.ndarray],
    *,
    suptitle: str | None = None,
    label: str | None = None,
    attribution: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Several signals on the same graph side by side, with one colour scale and one slim colour bar.

    Parameters
    ----------
    graph : Graph
        With coordinates.
    signals : dict
        Title of each map and its signal, in the order of drawing.
    suptitle : str, optional
    label : str, optional
        What the colours stand for, beside the bar.
    attribution : str, optional
        Whom to name, in small letters in the corner.
    path : str or Path, optional
        File to save to; its ending says the format.

    Returns
    -------
    matplotlib.figure.Figure
    """
    plt = pyplot()
    places(graph)  # complain before any figure is opened
    if not isinstance(signals, Mapping) or not signals:
        got = "an empty one" if isinstance(signals, Mapping) else type(signals).__name__
        msg = f"signals must be a dict of at least one title and signal, for example {{'Noisy': noisy}}; got {got}"
        raise InputError(msg)
    size = map_size(graph, len(signals), 1, 4.6, suptitle, attribution)
    figure = draw_maps(graph, signals, columns=len(signals), size=size, suptitle=suptitle, label=label, attribution=attribution)
    if path is not None:
        try:
            figure.savefig(path, dpi=200)
        except Exception:
            plt.close(figure)
            raise
    return figure


# ---- style ----------------------------------------------------------------------------------------------------------


def style():
    """What figures other than maps share, as a context for matplotlib: `with style(): ...`."""
    plt = pyplot()
    return plt.rc_context({
        "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": QUIET, "axes.labelcolor": INK,
        "xtick.color": QUIET, "ytick.color": QUIET, "text.color": INK, "legend.frameon": False, "axes.prop_cycle": plt.cycler(color=COLOURS),
        "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlesize": 11, "pdf.fonttype": 42,
    })  # fmt: skip


def pyplot():
    return extra("matplotlib.pyplot", name="plot", purpose="plotting")


def checked_axes(ax):
    """`ax` if it is None or something to draw into."""
    if ax is not None and not hasattr(ax, "add_collection"):
        msg = f"ax must be matplotlib axes, as plt.subplots returns them; got {type(ax).__name__}"
        raise InputTypeError(msg)
    return ax


# ---- maps -----------------------------------------------------------------------------------------------------------


def places(graph: Graph) -> np.ndarray:
    """The first two coordinates of every node; longitudes do not jump where a map passes 180 degrees."""
    checked_graph(graph)
    if graph.coords is None:
        msg = "a map needs the places of the nodes; this graph has no coords, so build it with coords= (one row per node)"
        raise InputError(msg)
    if graph.crs != "lonlat":
        return graph.coords[:, :2]
    plane = LocalPlane.around(graph.coords)
    return plane.degrees(plane.metres(graph.coords[:, 0], graph.coords[:, 1]))


def _edge_values(graph: Graph, signal, *, missing_ok: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Ends (m, 2) and mean end value (m,) of every edge, ascending, so that large values are drawn last and missing ones first."""
    places(graph)
    values = graph.aligned("signal", on_host(signal), missing_ok=missing_ok, one=True)
    if values.ndim != 1:
        msg = f"a map shows one signal: expected ({graph.n},), got {values.shape}; pick a column"
        raise InputError(msg)
    matrix = graph.adjacency.tocoo()
    upper = matrix.row < matrix.col
    ends = np.stack([matrix.row[upper], matrix.col[upper]], axis=1)
    middle = values[ends].mean(axis=1)
    order = np.argsort(np.nan_to_num(np.abs(middle), nan=-1.0), kind="stable")
    return ends[order], middle[order]


def _draw_map(
    graph: Graph, drawn, *, ax, cmap=None, vmin=None, vmax, title, linewidth=None, colorbar, transform: Transform = "sqrt", label, attribution
) -> Axes:  # fmt: skip
    """One map; everything is checked before a figure is opened."""
    plt, (ends, middle) = pyplot(), drawn
    known = middle[~np.isnan(middle)]
    low, high = _limits([known], vmin, vmax)
    choose("transform", transform, get_args(Transform))
    cmap = cmap if cmap is None else plt.get_cmap(cmap)
    if linewidth is not None:
        linewidth = checked_number("linewidth", linewidth, "a width in points of at least 0", least=0)
    credit = _checked_attribution(attribution)
    ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")[1] if checked_axes(ax) is None else ax
    lines = _draw_edges(ax, graph, ends, middle, _norm(low, high, transform), cmap, linewidth)
    _frame_map(ax, graph, title, credit)
    if colorbar:
        bar = _draw_bar(ax.figure, lines, [ax], _shown(known, low, high, vmin), high, known.max(initial=high))
        _label_bar(bar, label)
    return ax


def draw_maps(graph: Graph, signals: Mapping, *, columns: int, size, suptitle, label, attribution) -> Figure:
    """Maps in rows of that many, with one colour scale and bar."""
    drawn, credit = [_edge_values(graph, signal) for signal in signals.values()], _checked_attribution(attribution)
    low, high = _limits([middle for _, middle in drawn], None, None)
    rows = -(-len(drawn) // columns)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, facecolor="white")
    figure.get_layout_engine().set(wspace=0.02, w_pad=0.04, h_pad=0.06)
    for ax, title, (ends, middle) in zip(axes.flat, signals, drawn, strict=False):
        lines = _draw_edges(ax, graph, ends, middle, _norm(low, high, "sqrt"), None, None)
        _frame_map(ax, graph, title, None, small=rows > 1)
    for ax in axes.flat[len(drawn) :]:
        ax.set_axis_off()
    every = np.concatenate([middle for _, middle in drawn])
    bar = _draw_bar(figure, lines, list(axes.flat), _shown(every, low, high, None), high, every.max(initial=high))
    _label_bar(bar, label)
    if suptitle is not None:
        figure.suptitle(suptitle, x=0.004, ha="left", fontsize=15, fontweight="bold", color=INK)
    if credit is not None:
        figure.supxlabel(credit, x=0.996, ha="right", fontsize=6.5, color=QUIET)
    return figure


def _limits(drawn, vmin: float | None, vmax: float | None) -> tuple[float, float]:
    """Range of the colours. The top is a quantile, since a single busy edge would leave the rest pale."""
    if vmax is None:
        vmax = max((float(np.quantile(np.abs(middle), 0.998)) for middle in drawn if len(middle)), default=1.0)
        vmax = vmax if vmax > 0 else 1.0
    vmin = -abs(as_number(vmax)) if vmin is None else vmin
    if not as_number(vmin) < as_number(vmax):
        msg = f"vmin must be below vmax; got vmin={shown(vmin)} and vmax={shown(vmax)}, where finite numbers are expected"
        raise InputError(msg)
    return float(vmin), float(vmax)


def _shown(middle, low: float, high: float, vmin: float | None) -> float:
    """Where the colour bar begins: at the smallest value drawn, as an unused half of it would be a waste."""
    return low if vmin is not None else float(np.clip(middle.min(initial=0.0), low, 0.0))


def _norm(low: float, high: float, transform: Transform):
    from matplotlib.colors import FuncNorm, Normalize

    if choose("transform", transform, get_args(Transform)) == "linear":
        return Normalize(low, high, clip=True)
    return FuncNorm((lambda x: np.sign(x) * np.sqrt(np.abs(x)), lambda x: np.sign(x) * np.square(x)), low, high, clip=True)


def _draw_edges(ax: Axes, graph: Graph, ends, middle, norm, cmap, linewidth: float | None):
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap

    if cmap is None:
        stops = np.concatenate([np.linspace(0, 0.498, len(_NEGATIVE)), np.linspace(0.5, 1, len(_POSITIVE))])
        cmap = LinearSegmentedColormap.from_list("hush", list(zip(stops, _NEGATIVE + _POSITIVE, strict=True)), N=1024)
        cmap = cmap.with_extremes(bad=_UNKNOWN)
    if linewidth is None:
        linewidth = float(np.clip(58 / np.sqrt(max(len(ends), 1)), 0.12, 1.8))
    height = np.clip(2 * np.asarray(norm(middle)) - 1, 0, 1) if norm.vmin < 0 else np.asarray(norm(middle))
    height = np.nan_to_num(height)
    lines = LineCollection(
        places(graph)[ends], array=np.ma.masked_invalid(middle), cmap=cmap, norm=norm, linewidths=linewidth * (1 + 2.8 * height**1.3),
        capstyle="round", rasterized=len(ends) > _RASTERISED,
    )  # fmt: skip
    return ax.add_collection(lines)


def _aspect(graph: Graph) -> float:
    """Height of one unit of y over the width of one unit of x."""
    return 1 / LocalPlane.around(graph.coords).shrinkage if graph.crs == "lonlat" and graph.coords is not None else 1.0


def _frame_map(ax: Axes, graph: Graph, title: str | None, credit: str | None, *, small: bool = False):
    ax.set_aspect(_aspect(graph), adjustable="box")
    ax.margins(0.015)
    ax.autoscale_view()
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title, loc="left", fontsize=9.5 if small else 11, fontweight="bold", color=INK, pad=6)
    if credit is not None:
        below = ((1, 0), (0, -3))  # the corner, and points from it
        ax.annotate(
            credit, *below, xycoords="axes fraction", textcoords="offset points", ha="right", va="top", fontsize=6.5, color=QUIET
        )


def _checked_attribution(attribution: str | None) -> str | None:
    """Lines short enough for a small map; the sign itself for "(c)", which text files have."""
    if attribution is None:
        return None
    if not isinstance(attribution, str):
        msg = f"attribution must be a text, for example '© OpenStreetMap contributors'; got {shown(attribution)}"
        raise InputTypeError(msg)
    return "\n".join(fill(part.strip(), 70) for part in attribution.replace("(c)", "©").split(";"))


def map_size(graph: Graph, columns: int, rows: int, inches: float, suptitle, attribution) -> tuple[float, float]:
    """Inches: each map that wide and as high as its shape asks, within reason; side by side they fill the page."""
    width, height = np.ptp(places(graph), axis=0) if graph.n else (1.0, 1.0)
    shape = float(np.clip(height * _aspect(graph) / width if width > 0 else 1.0, 0.5, 1.9))
    below = 0.0 if attribution is None else 0.1 + 0.12 * len(str(_checked_attribution(attribution)).splitlines())
    return inches * columns + 0.7, (inches * shape + 0.4) * rows + 0.45 * (suptitle is not None) + below


def _draw_bar(figure, lines, axes, low: float, high: float, largest: float):
    extend = "max" if largest > high else "neither"
    bar = figure.colorbar(lines, ax=axes, fraction=0.03, aspect=38, pad=0.015, shrink=0.72, extend=extend)
    bar.ax.set_ylim(low, high)
    ticks = _round_ticks(low, high, np.abs if type(lines.norm).__name__ == "Normalize" else np.sqrt)
    bar.set_ticks(ticks, labels=[f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8.5, labelcolor=QUIET, pad=4)
    bar.minorticks_off()
    return bar


def _label_bar(bar, label: str | None):
    if label is not None:
        bar.set_label(label, fontsize=9, color=QUIET)


def _round_ticks(low: float, high: float, height) -> np.ndarray:
    """Zero and round values on either side (1, 2 or 5 times a power of ten), not too close on the bar, where they lie at `height`."""
    largest = max(abs(low), abs(high))
    decade = 10.0 ** np.arange(np.floor(np.log10(largest)), np.floor(np.log10(largest)) - 3, -1)
    ticks = [0.0]
    for size in np.sort(np.outer(decade, [1, 2, 5]).ravel()):
        if height(size) - height(ticks[-1]) > 0.13 * height(largest):
            ticks.append(size)
    both = np.unique([-np.array(ticks), ticks])
    return both[(both >= low) & (both <= high)] + 0.0  # no minus zero
