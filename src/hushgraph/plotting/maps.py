"""Maps of graph signals: every edge is a line, coloured by the mean of its two ends; large values are wider and on top. Zones are filled.

Matplotlib is imported only when a map is drawn. Colours follow the signed square root of the value, so that a busy place does not
hide the rest; zero is always the same light warm grey, and negative values are blue. Lightness falls from zero up, and blue never
gets as dark as violet, so that readers who cannot distinguish red from green still see the sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from hushgraph._arrays import on_host
from hushgraph._deprecation import renamed
from hushgraph._errors import InputError, InputTypeError
from hushgraph._geodesy import LocalPlane
from hushgraph._validation import as_number, checked_number, choose, shown
from hushgraph.estimators import Denoised
from hushgraph.graphs import Graph, as_graph
from hushgraph.plotting.style import INK, QUIET, checked_axes, colour_bar_ticks, pyplot, shown_once

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

Transform = Literal["sqrt", "linear"]

_NEGATIVE = ["#3f78a8", "#7ba3c4", "#adc5d8", "#d0dae0"]  # from -vmax up to just below zero
_POSITIVE = ["#ddd6c8", "#eacb93", "#f4b45a", "#f2914a", "#de5238", "#b41f4c", "#7d1150", "#3a0a3f"]  # from zero up to vmax
_NO_VALUE = "#e3e1dc"  # edges without a value
_MAPS_IN_A_ROW, _MOST_MAPS = 4, 48
_MAX_VECTOR_CORNERS = 500_000
_MAX_VECTOR_EDGES = 50_000  # with more edges a vector file would be larger than an image


def plot_graph_signal(
    graph: Graph, signal: Any, *, ax: Axes | None = None, cmap: Colormap | str | None = None, vmin: float | None = None, vmax: float | None = None,
    title: str | None = None, linewidth: float | None = None, colorbar: bool = True, transform: Transform = "sqrt",
    label: str | None = None, attribution: str | None = None,
) -> Axes:  # fmt: skip
    """Draw a signal as a map of coloured edges, or of coloured zones if the graph has `outlines`.

    Parameters
    ----------
    graph : Graph
        Graph with coordinates; with crs="lonlat" the aspect is that of the mean latitude.
    signal : array_like, Series or dict
        One number per node, (n,).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure if not given.
    cmap : matplotlib colour map or its name, optional
        Colours; the middle of the colour map stands for zero unless `vmin` says otherwise.
    vmin : float, optional
        Value of the first colour; -vmax if not given.
    vmax : float, optional
        Value of the last colour; the 99.8 % quantile of the absolute values of edges or zones if not given.
    title : str, optional
        Title above the map.
    linewidth : float, optional
        Width in points of edges with value zero, or of the lines between zones; chosen from their number if not given.
    colorbar : bool
        Whether to draw a colour bar.
    transform : {"sqrt", "linear"}
        Whether colours follow the signed square root of the value, or the value itself.
    label : str, optional
        What the values are; written beside the colour bar.
    attribution : str, optional
        Source of the map, in small letters below it: `attribution` of a real map, "© OpenStreetMap contributors".

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the map.

    Raises
    ------
    ValueError
        If the graph has no coordinates, or the signal has more than one column.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> graph = datasets.grid(5, 5)
    >>> ax = plot_graph_signal(graph, range(25), title="row by row")  # doctest: +SKIP
    """
    graph = as_graph(graph)
    return _draw_map(
        graph, _drawn_values(graph, signal), ax=ax, cmap=cmap, vmin=vmin, vmax=vmax, title=title, linewidth=linewidth, colorbar=colorbar,
        transform=transform, label=label, attribution=attribution,
    )  # fmt: skip


def plot_error(
    graph: Graph, result: Denoised, *, ax: Axes | None = None, hops: int | None = None, vmax: float | None = None,
    title: str | None = None, colorbar: bool = True, attribution: str | None = None,
) -> Axes:  # fmt: skip
    """Draw the expected error of each node of a denoised signal as a map; no truth is needed.

    Parameters
    ----------
    graph : Graph
        The graph of the signal, with coordinates.
    result : Denoised
        Result for one signal. Edges at nodes without a value, and zones without a value, are pale grey.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure if not given.
    hops : int, optional
        Length of the walk that variances are averaged over, see `Denoised.expected_error`.
    vmax : float, optional
        Value of the last colour; the 99.8 % quantile of the edge values if not given.
    title : str, optional
        Title above the map.
    colorbar : bool
        Whether to draw a colour bar.
    attribution : str, optional
        Source of the map, in small letters below it.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the map.

    Raises
    ------
    TypeError
        If `result` is not a result of `denoise`.
    ValueError
        If the result has more than one column.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> noisy = hg.hotspot_counts(graph) + np.random.default_rng(0).normal(0, 5, graph.n)
    >>> ax = plot_error(graph, hg.denoise(graph, noisy, sigma=5), title="expected error")  # doctest: +SKIP
    """
    if not isinstance(result, Denoised):
        raise InputTypeError.about(argument="result", expected="what denoise returned", got=type(result).__name__)
    graph = as_graph(graph)
    error = graph.aligned("the expected error", result.expected_error(hops=hops), missing_ok=True, one=True)
    if error.ndim != 1:
        got, hint = error.shape[1], "draw a column of result.expected_error() with plot_graph_signal"
        text = f"a map shows the error of one signal, and this result holds {got}; {hint}"
        raise InputError.about(argument="result", verb="hold", expected="one signal", got=got, hint=hint, text=text)
    return _draw_map(
        graph, _drawn_values(graph, error, missing_ok=True), ax=ax, vmax=vmax, title=title, colorbar=colorbar,
        transform="linear", label="expected error (root mean square)", attribution=attribution,
    )  # fmt: skip


@renamed(removed_in="0.3", suptitle="title")
def plot_maps(
    graph: Graph,
    signals: Mapping[str, np.ndarray],
    *,
    title: str | None = None,
    label: str | None = None,
    unit: str | None = None,
    attribution: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw several signals on one graph side by side, four at most in a row, with one colour scale and one colour bar.

    Parameters
    ----------
    graph : Graph
        Graph with coordinates; zones are filled if it has `outlines`.
    signals : dict
        Title of each map and its signal, in the order of drawing; 48 at most. Nodes with NaN have no value and are pale grey.
    title : str, optional
        Title above all maps.
    label : str, optional
        What the values are; written beside the colour bar.
    unit : str, optional
        Unit of the values, written behind the label: "Speed (km/h)".
    attribution : str, optional
        Source of the map, in small letters in the corner; by default that of the graph.
    path : str or Path, optional
        File to save the figure to; the ending of its name sets the format.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    ValueError
        If the graph has no coordinates, or `signals` is empty or more than 48.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> truth = hg.hotspot_counts(graph)
    >>> noisy = truth + np.random.default_rng(0).normal(0, 5, graph.n)
    >>> figure = plot_maps(graph, {"Truth": truth, "Noisy": noisy}, path="maps.png")  # doctest: +SKIP
    """
    plt, graph = pyplot(), as_graph(graph)
    places(graph)  # an error before any figure is opened
    if not isinstance(signals, Mapping) or not signals:
        got = "an empty one" if isinstance(signals, Mapping) else type(signals).__name__
        expected = "a dict of at least one title and signal, for example {'Noisy': noisy}"
        raise InputError.about(argument="signals", expected=expected, got=got)
    if len(signals) > _MOST_MAPS:
        expected = f"at most {_MOST_MAPS} maps"
        raise InputError.about(argument="signals", verb="hold", expected=expected, got=len(signals), hint="choose some of them")
    if label is not None and unit is not None:
        label = f"{label} ({unit})"
    attribution = graph.attribution if attribution is None else attribution
    columns = min(len(signals), _MAPS_IN_A_ROW)
    rows = -(-len(signals) // columns)
    size = map_size(graph, columns, rows, 4.6 if rows == 1 else 3.2, title, attribution)
    figure = draw_maps(graph, signals, columns=columns, size=size, suptitle=title, label=label or unit, attribution=attribution)
    if path is not None:
        try:
            figure.savefig(path, dpi=200)
        except Exception:
            plt.close(figure)
            raise
    return figure


# ---- maps -----------------------------------------------------------------------------------------------------------


def places(graph: Graph) -> np.ndarray:
    """Return the first two coordinates of every node (n, 2); longitudes do not jump where a map passes 180 degrees."""
    if graph.coords is None:
        hint = "build it with coords= (one row per node)"
        text = f"a map needs the places of the nodes; this graph has no coords, so {hint}"
        raise InputError.about(argument="graph", verb="have", expected="coords", hint=hint, text=text)
    return _unbroken(graph, graph.coords)


def _unbroken(graph: Graph, points: np.ndarray) -> np.ndarray:
    """Return points (k, 2) with longitudes on the side of the graph."""
    if graph.crs != "lonlat" or graph.coords is None:
        return points[:, :2]
    plane = LocalPlane.around(graph.coords)
    return plane.degrees(plane.metres(points[:, 0], points[:, 1]))


class _Drawn(NamedTuple):
    """What a map shows: the ends (m, 2) of the edges, or None for zones, and the values (m,) of the edges or (n,) of the zones."""

    ends: np.ndarray | None
    values: np.ndarray


def _drawn_values(graph: Graph, signal: Any, *, missing_ok: bool = False) -> _Drawn:
    """Return the zones with their values; or the edges with the means of their ends, by ascending size: missing values are drawn first."""
    places(graph)
    values = graph.aligned("signal", on_host(signal), missing_ok=missing_ok, one=True)
    if values.ndim != 1:
        text = f"a map shows one signal: expected ({graph.n},), got {values.shape}; pick a column"
        raise InputError.about(argument="signal", expected=f"({graph.n},)", got=values.shape, hint="pick a column", text=text)
    if graph.outlines is not None:
        return _Drawn(None, values)
    matrix = graph.adjacency.tocoo()
    upper = matrix.row < matrix.col
    ends = np.stack([matrix.row[upper], matrix.col[upper]], axis=1)
    middle = values[ends].mean(axis=1)
    order = np.argsort(np.nan_to_num(np.abs(middle), nan=-1.0), kind="stable")
    return _Drawn(ends[order], middle[order])


def _draw_map(
    graph: Graph, drawn: _Drawn, *, ax: Axes | None, cmap: Colormap | str | None = None, vmin: float | None = None,
    vmax: float | None, title: str | None, linewidth: float | None = None, colorbar: bool, transform: Transform = "sqrt",
    label: str | None, attribution: str | None,
) -> Axes:  # fmt: skip
    """Draw one map; all arguments are checked before a figure is opened."""
    plt = pyplot()
    known = drawn.values[~np.isnan(drawn.values)]
    low, high = _limits([known], vmin, vmax)
    choose("transform", transform, get_args(Transform))
    colours = None if cmap is None else plt.get_cmap(cmap)
    if linewidth is not None:
        linewidth = checked_number("linewidth", linewidth, "a width in points of at least 0", least=0)
    credit = _checked_attribution(attribution)
    target = checked_axes(ax)
    target = plt.subplots(figsize=(6.4, 6.4), layout="constrained")[1] if target is None else target
    shapes = _draw_values(target, graph, drawn, _norm(low, high, transform), colours, linewidth)
    _frame_map(target, graph, title, credit)
    if colorbar:
        bar = _draw_bar(target.figure, shapes, [target], _bar_start(known, low, vmin), high, known.max(initial=high))
        _label_bar(bar, label)
    return target


def draw_maps(
    graph: Graph, signals: Mapping[str, Any], *, columns: int, size: tuple[float, float], suptitle: str | None, label: str | None,
    attribution: str | None,
) -> Figure:  # fmt: skip
    """Draw maps in rows of `columns` maps, with one colour scale and one colour bar."""
    maps = [_drawn_values(graph, signal, missing_ok=True) for signal in signals.values()]
    known, credit = [drawn.values[~np.isnan(drawn.values)] for drawn in maps], _checked_attribution(attribution)
    low, high = _limits(known, None, None)
    rows = -(-len(maps) // columns)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, facecolor="white")
    figure.get_layout_engine().set(wspace=0.02, w_pad=0.04, h_pad=0.06)
    for ax, title, drawn in zip(axes.flat, signals, maps, strict=False):
        shapes = _draw_values(ax, graph, drawn, _norm(low, high, "sqrt"), None, None)
        shapes.set_rasterized(_is_large(graph, n_maps=len(maps)))
        _frame_map(ax, graph, title, None, small=rows > 1)
    for ax in axes.flat[len(maps) :]:
        ax.set_axis_off()
    everything = np.concatenate(known)
    bar = _draw_bar(figure, shapes, list(axes.flat), _bar_start(everything, low, None), high, everything.max(initial=high))
    _label_bar(bar, label)
    if suptitle is not None:
        figure.suptitle(suptitle, x=0.004, ha="left", fontsize=15, fontweight="bold", color=INK)
    if credit is not None:
        figure.supxlabel(credit, x=0.996, ha="right", fontsize=6.5, color=QUIET)
    return shown_once(figure)


def _limits(values_of_maps: Iterable[np.ndarray], vmin: float | None, vmax: float | None) -> tuple[float, float]:
    """Return the values of the first and last colour. The last is a quantile: a single busy place would leave the rest pale."""
    if vmax is None:
        vmax = max((float(np.quantile(np.abs(values), 0.998)) for values in values_of_maps if len(values)), default=1.0)
        vmax = vmax if vmax > 0 else 1.0
    vmin = -abs(as_number(vmax)) if vmin is None else vmin
    if not as_number(vmin) < as_number(vmax):
        got = f"vmin={shown(vmin)} and vmax={shown(vmax)}, where finite numbers are expected"
        raise InputError.about(argument="vmin", expected="below vmax", got=got)
    return float(vmin), float(vmax)


def _bar_start(means: np.ndarray, low: float, vmin: float | None) -> float:
    """Return the value at the lower end of the colour bar: `vmin`, or the smallest value drawn, so that no part of the bar is unused."""
    return low if vmin is not None else float(np.clip(means.min(initial=0.0), low, 0.0))


def _norm(low: float, high: float, transform: Transform) -> Normalize:
    """Return the map from values to colours, which clips values outside the range."""
    from matplotlib.colors import FuncNorm, Normalize

    if choose("transform", transform, get_args(Transform)) == "linear":
        return Normalize(low, high, clip=True)
    return FuncNorm((lambda x: np.sign(x) * np.sqrt(np.abs(x)), lambda x: np.sign(x) * np.square(x)), low, high, clip=True)


def _draw_values(
    ax: Axes, graph: Graph, drawn: _Drawn, norm: Normalize, cmap: Colormap | None, linewidth: float | None
) -> LineCollection | PathCollection:
    """Draw all edges or all zones."""
    from matplotlib.colors import LinearSegmentedColormap

    if cmap is None:
        stops = np.concatenate([np.linspace(0, 0.498, len(_NEGATIVE)), np.linspace(0.5, 1, len(_POSITIVE))])
        cmap = LinearSegmentedColormap.from_list("hush", list(zip(stops, _NEGATIVE + _POSITIVE, strict=True)), N=1024)
        cmap = cmap.with_extremes(bad=_NO_VALUE)
    if drawn.ends is None:
        return _draw_zones(ax, graph, drawn.values, norm, cmap, linewidth)
    return _draw_edges(ax, graph, drawn.ends, drawn.values, norm, cmap, linewidth)


def _is_large(graph: Graph, *, n_maps: int = 1) -> bool:
    """Return whether so many maps of a graph are drawn as images inside a vector file."""
    if graph.outlines is not None:
        return n_maps * len(graph.outlines.corners) > _MAX_VECTOR_CORNERS
    return n_maps * graph.n_edges > _MAX_VECTOR_EDGES


def _draw_zones(
    ax: Axes, graph: Graph, values: np.ndarray, norm: Normalize, cmap: Colormap, linewidth: float | None
) -> PathCollection:
    """Fill the outlines of all zones, with thin pale lines between them."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    assert graph.outlines is not None
    assert graph.coords is not None
    outlines = graph.outlines
    if graph.crs == "lonlat":
        outlines = outlines.around(LocalPlane.around(graph.coords).longitude)
    rings: list[list[Outline]] = [[] for _ in range(graph.n)]
    for node, ring in outlines.rings():
        rings[node].append(Outline(np.concatenate([ring, ring[:1]]), closed=True))
    if linewidth is None:
        linewidth = float(np.clip(9 / np.sqrt(graph.n), 0.1, 0.8))
    shapes = PathCollection(
        [Outline.make_compound_path(*paths) for paths in rings], array=np.ma.masked_invalid(values), cmap=cmap, norm=norm,
        linewidths=linewidth, edgecolors="white", rasterized=_is_large(graph),
    )  # fmt: skip
    ax.add_collection(shapes)
    ax.update_datalim(outlines.corners)
    return shapes


def _draw_edges(
    ax: Axes, graph: Graph, ends: np.ndarray, means: np.ndarray, norm: Normalize, cmap: Colormap, linewidth: float | None
) -> LineCollection:
    """Draw all edges as lines, wider with their value, along their curves if the graph has any."""
    from matplotlib.collections import LineCollection

    if linewidth is None:
        linewidth = float(np.clip(58 / np.sqrt(max(len(ends), 1)), 0.12, 1.8))
    shares = np.asarray(norm(means))
    height = np.nan_to_num(np.clip(2 * shares - 1, 0, 1) if norm.vmin is not None and norm.vmin < 0 else shares)
    paths: Any = places(graph)[ends]
    if graph.curves is not None:
        paths = graph.curves.moved_to(_unbroken(graph, graph.curves.points)).lines(ends, places(graph))
    lines = LineCollection(
        paths, array=np.ma.masked_invalid(means), cmap=cmap, norm=norm, linewidths=linewidth * (1 + 2.8 * height**1.3),
        capstyle="round", rasterized=_is_large(graph),
    )  # fmt: skip
    ax.add_collection(lines)
    return lines


def _aspect(graph: Graph) -> float:
    """Return the height of one unit of y over the width of one unit of x."""
    return 1 / LocalPlane.around(graph.coords).shrinkage if graph.crs == "lonlat" and graph.coords is not None else 1.0


def _frame_map(ax: Axes, graph: Graph, title: str | None, credit: str | None, *, small: bool = False) -> None:
    """Set aspect and margins of a map, and write its title and its source."""
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
    """Return the attribution in lines short enough for a small map, with the sign © in place of "(c)"."""
    if attribution is None:
        return None
    if not isinstance(attribution, str):
        expected = "a text, for example '© OpenStreetMap contributors'"
        raise InputTypeError.about(argument="attribution", expected=expected, got=shown(attribution))
    return "\n".join(fill(part.strip(), 70) for part in attribution.replace("(c)", "©").split(";"))


def map_size(
    graph: Graph, columns: int, rows: int, inches: float, suptitle: str | None, attribution: str | None
) -> tuple[float, float]:
    """Return width and height in inches of a figure of maps: each map is `inches` wide and as high as its shape needs, within limits."""
    drawn = places(graph) if graph.outlines is None else graph.outlines.corners
    width, height = np.ptp(drawn, axis=0) if graph.n else (1.0, 1.0)
    shape = float(np.clip(height * _aspect(graph) / width if width > 0 else 1.0, 0.5, 1.9))
    below = 0.0 if attribution is None else 0.1 + 0.12 * len(str(_checked_attribution(attribution)).splitlines())
    return inches * columns + 0.7, (inches * shape + 0.4) * rows + 0.45 * (suptitle is not None) + below


def _draw_bar(
    figure: Any, shapes: LineCollection | PathCollection, axes: list[Axes], low: float, high: float, largest: float
) -> Colorbar:
    """Draw a slim colour bar from `low` to `high`, with an arrow if some value is larger."""
    extend = "max" if largest > high else "neither"
    bar = figure.colorbar(shapes, ax=axes, fraction=0.03, aspect=38, pad=0.015, shrink=0.72, extend=extend)
    bar.ax.set_ylim(low, high)
    ticks = colour_bar_ticks(low, high, np.abs if type(shapes.norm).__name__ == "Normalize" else np.sqrt)
    bar.set_ticks(ticks, labels=[f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8.5, labelcolor=QUIET, pad=4)
    bar.minorticks_off()
    return bar


def _label_bar(bar: Colorbar, label: str | None) -> None:
    if label is not None:
        bar.set_label(label, fontsize=9, color=QUIET)
