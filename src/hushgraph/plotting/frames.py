"""Figures of a wavelet frame: its bands, its polynomials, the scales of a signal, SURE over the threshold.

Matplotlib is imported only when a figure is drawn. Scales are ordered, so their colours are ordered too, from dark (the lowest
frequencies) to light, and each curve has its number.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hushgraph._deprecation import renamed
from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import checked_count, choose
from hushgraph.plotting.maps import draw_maps, map_size, places
from hushgraph.plotting.style import COLOURS, INK, QUIET, checked_axes, draw_suptitle, figure_style, pyplot, shown_once
from hushgraph.wavelets import TOP, Bands, ChebyshevFrame, Frame, KernelBands, Rule, SureCurve, analyze, checked_frame, sure_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 1601  # of a curve over the spectrum
_MAX_LINEAR_SCALES = 7  # more scales do not fit on a linear axis


def plot_partition(frame: Frame | Bands, *, ax: Axes | None = None, log: bool | None = None, title: str | None = None) -> Axes:
    """Draw the band functions psi_j of a frame over the spectrum, and their sum.

    Parameters
    ----------
    frame : Frame or Bands
        The bands. Bands without a graph are drawn up to the largest eigenvalue that they are made for.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure if not given.
    log : bool, optional
        Whether the axis of the eigenvalues is logarithmic; if not given, it is with `low_scales` or with many scales.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curves.

    Examples
    --------
    >>> import hushgraph as hg
    >>> ax = plot_partition(hg.chebyshev_frame(hg.datasets.grid(20, 20), plateau="meyer"))  # doctest: +SKIP
    """
    bands, upper = (
        (frame, _largest_eigenvalue(frame)) if isinstance(frame, Bands) else (checked_frame(frame).bands, frame.lambda_max)
    )
    log = _is_log(bands, log)
    x = _spectrum(bands, upper, log)
    psi = _psi(bands, x)
    plt, ax = pyplot(), checked_axes(ax)
    with figure_style():
        ax = plt.subplots(figsize=(5.2, 3.0), layout="constrained")[1] if ax is None else ax
        _draw_bands(ax, x, psi, bands, log)
        ax.plot(x, psi.sum(axis=0), color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        ax.annotate("sum", (1, 1), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=9)
        ax.set(xlabel="eigenvalue λ", ylabel="$\\psi_j(\\lambda)$", ylim=(-0.03, 1.2), yticks=[0, 0.5, 1])
        if title is not None:
            ax.set_title(title)
    return ax


def plot_frame(frame: ChebyshevFrame, *, log: bool | None = None, title: str | None = None) -> Figure:
    """Draw the polynomials rho_j of a frame with the functions that they approximate, and the frame's deviation from tightness.

    Above: rho_j in colour, sqrt(psi_j) as thin dashes. Below: sum_j rho_j^2 - 1, whose largest size is
    `frame.tightness_defect`; it is zero everywhere for a tight frame.

    Parameters
    ----------
    frame : ChebyshevFrame
        The frame.
    log : bool, optional
        Whether the axis of the eigenvalues is logarithmic; if not given, it is with `low_scales` or with many scales.
    title : str, optional
        Title of the figure; degree, damping and plateau if not given.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    TypeError
        If the frame is exact: it has no polynomials.

    Examples
    --------
    >>> import hushgraph as hg
    >>> figure = plot_frame(hg.chebyshev_frame(hg.datasets.grid(20, 20), degree=50))  # doctest: +SKIP
    """
    if not isinstance(checked_frame(frame), ChebyshevFrame):
        text = "plot_frame shows polynomials, and an exact frame has none: its filters are the ideal ones; use plot_partition"
        raise InputTypeError.about(
            argument="frame",
            verb="come from",
            expected="chebyshev_frame",
            got="an exact frame",
            hint="use plot_partition",
            text=text,
        )
    log = _is_log(frame.bands, log)
    x = _spectrum(frame.bands, frame.lambda_upper, log)
    rho, ideal = frame.filters(x), frame.bands.filters(x)
    with figure_style():
        figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(5.2, 4.2), layout="constrained", sharex=True, height_ratios=(2, 1))
        _draw_bands(top, x, rho, frame.bands, log)
        top.plot(x, np.transpose([_without_zeros(curve) for curve in ideal]), color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        top.set(ylabel="$\\rho_j(\\lambda)$", ylim=(min(-0.05, rho.min() - 0.02), max(1.2, rho.max() + 0.15)), yticks=[0, 0.5, 1])
        top.set_title(_frame_title(frame) if title is None else title)
        bottom.axhline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        bottom.plot(x, np.sum(rho**2, axis=0) - 1, color=COLOURS[1], linewidth=1.4)
        bottom.set(xlabel="eigenvalue λ", ylabel="sum of $\\rho_j^2$, less 1")
        bottom.set_title(f"tightness defect {frame.tightness_defect:.2g}", fontsize=9.5, fontweight="normal")
    return shown_once(figure)


@renamed(removed_in="0.3", suptitle="title")
def plot_scales(
    frame: Frame,
    signal: Any,
    *,
    columns: int | None = None,
    title: str | None = None,
    label: str | None = None,
    attribution: str | None = None,
) -> Figure:
    """Draw the wavelet coefficients of a signal as small maps, one for each scale, with one colour scale.

    Parameters
    ----------
    frame : Frame
        Frame of a graph with coordinates.
    signal : array_like, Series or dict
        One number per node, (n,).
    columns : int, optional
        Number of maps in a row; 3 or 4 if not given.
    title : str, optional
        Title above all maps.
    label : str, optional
        What the values are; written beside the colour bar.
    attribution : str, optional
        Source of the map, in small letters in the corner.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    ValueError
        If the graph has no coordinates, or the signal has more than one column.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> figure = plot_scales(hg.chebyshev_frame(graph), hg.hotspot_counts(graph))  # doctest: +SKIP
    """
    graph = checked_frame(frame).graph
    places(graph)
    F = analyze(frame, signal)
    if F.ndim != 2:
        got, hint = (graph.n, *F.shape[2:]), "pick a column"
        text = f"the maps show one signal: expected ({graph.n},), got {got}; {hint}"
        raise InputError.about(argument="signal", expected=f"({graph.n},)", got=got, hint=hint, text=text)
    columns = min(3 if len(F) in (3, 5, 6) else 4, len(F)) if columns is None else checked_count("columns", columns, 1)
    columns, titles = min(columns, len(F)), [f"scale {j}:  {interval}" for j, interval in enumerate(_band_intervals(frame))]
    size = map_size(graph, columns, -(-len(F) // columns), 2.5, title, attribution)
    maps = dict(zip(titles, F, strict=True))
    return draw_maps(graph, maps, columns=columns, size=size, suptitle=title, label=label, attribution=attribution)


def _band_intervals(frame: Frame) -> list[str]:
    """Return the part of the spectrum of each scale as text."""
    if isinstance(frame.bands, KernelBands):
        x = _spectrum(frame.bands, frame.lambda_max, log=False)
        return [f"λ around {x[place]:.3g}" for place in np.abs(frame.bands.filters(x)).argmax(axis=1)]
    edges = frame.base ** np.arange(-1.0, frame.n_scales) / frame.base**frame.bands.low_scales
    low, high = [f"{edge:.3g}" for edge in edges[:-1]], [f"{edge:.3g}" for edge in edges[1:]]
    last = frame.n_scales - 1
    others = [f"λ from {low[j - 1]} to {high[j]}" if j < last else f"λ from {low[j - 1]} up" for j in range(1, last + 1)]
    return [f"λ up to {high[0]}" if last else "all λ", *others]


@renamed(removed_in="0.3", suptitle="title")
def plot_sure(
    frame: Frame, noisy: Any, *, sigma: Any = None, rule: Rule = "james_stein", beta: float | None = None, truth: Any = None,
    n_probes: int | None = None, seed: int = 0, title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw SURE of each scale's coefficients over the threshold, with its standard error and its minimum.

    Each panel is a scale. SURE is drawn as a share of the noise in that scale: 1 is the error of unchanged coefficients. The band
    is two standard errors of SURE as an estimate of the actual squared error, with the error of the probes. Errors at different
    thresholds are correlated: the place of the minimum is known better than the height of the curve.

    Parameters
    ----------
    frame : Frame
        The frame.
    noisy : array_like, Series, dict or Noisy
        The noisy signal, (n,).
    sigma : float or (n,) array, optional
        Standard deviation of the noise; taken from a Noisy signal, estimated if not given.
    rule : str
        Shrinkage rule, as in `sure_thresholds`.
    beta : float, optional
        Exponent of the rule "power", as in `sure_thresholds`.
    truth : array_like, optional
        The true signal (n,), if it is known: the actual squared error is drawn too. Not allowed with a private release.
    n_probes : int, optional
        Number of random signals for the weights, at least 2; chosen from n if not given.
    seed : int
        Seed of the random signals.
    title : str, optional
        Title above all panels.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> noisy = hg.hotspot_counts(graph) + np.random.default_rng(0).normal(0, 5, graph.n)
    >>> figure = plot_sure(hg.chebyshev_frame(graph), noisy, sigma=5)  # doctest: +SKIP
    """
    curves = sure_curves(frame, noisy, sigma=sigma, rule=rule, beta=beta, truth=truth, n_probes=n_probes, seed=seed)
    cells = len(curves) + 1  # the last cell holds the legend
    columns = 2 if cells <= 2 else 3 if cells <= 6 else 4
    rows = -(-cells // columns)
    size = 7.2 if columns > 2 else 5.2, (1.9 if columns < 4 else 1.6) * rows + 0.35 * (title is not None)
    with figure_style():
        figure, axes = pyplot().subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=True)
        for j, (ax, curve, colour) in enumerate(zip(axes.flat, curves, _scale_colours(len(curves)), strict=False)):
            _draw_sure(ax, curve, colour)
            ax.set_title(f"scale {j}", fontsize=10)
        lowest = min(float(curve.sure.min()) / (curve.noise or 1.0) for curve in curves)
        axes[0, 0].set(ylim=(min(-0.25, lowest - 0.3), TOP), yticks=[0, 0.5, 1, 1.5])
        for ax in axes[:, 0]:
            ax.set_ylabel("squared error\nper squared noise", fontsize=9)
        for ax in axes.flat[max(0, len(curves) - columns) : len(curves)]:
            ax.set_xlabel("threshold t", fontsize=9)
        for ax in axes.flat[len(curves) :]:
            ax.set_axis_off()
        _draw_legend(axes.flat[len(curves)], with_truth=truth is not None)
        draw_suptitle(figure, title)
    return shown_once(figure)


# ---- bands ----------------------------------------------------------------------------------------------------------


def _largest_eigenvalue(bands: Bands) -> float:
    """Return the largest eigenvalue that bands are made for, b^(J - 1)."""
    return bands.base ** (max(bands.n_scales - 2, 0) - bands.low_scales)


def _is_log(bands: Bands | KernelBands, log: bool | None) -> bool:
    """Return whether the axis of the eigenvalues is logarithmic."""
    if log is None:
        return bands.low_scales > 0 or bands.n_scales > _MAX_LINEAR_SCALES
    return choose("log", log, (True, False))


def _spectrum(bands: Bands | KernelBands, upper: float, log: bool) -> np.ndarray:
    """Return points from 0, or on a logarithmic axis from well inside the lowest band, to `upper`."""
    upper = upper or 1.0  # a graph without edges: any interval will do
    if log:
        return np.geomspace(min(bands.base ** (-bands.low_scales - 3.0), upper / 2), upper, _POINTS)
    return np.linspace(0, upper, _POINTS)


def _psi(bands: Bands | KernelBands, x: np.ndarray) -> np.ndarray:
    """Return the band functions psi_j at x, (n_scales, len(x))."""
    return np.square(bands.filters(x))


def _scale_colours(count: int) -> list[Any]:
    """Return colours of rising lightness for the scales; the lightest is still visible on white."""
    return list(pyplot().get_cmap("viridis")(np.linspace(0.0, 0.8, max(count, 2)))[:count])


def _draw_bands(ax: Axes, x: np.ndarray, values: np.ndarray, bands: Bands | KernelBands, log: bool) -> None:
    """Draw one curve per scale, with its number above the middle of its highest part."""
    for j, (curve, colour) in enumerate(zip(values, _scale_colours(len(values)), strict=True)):
        ax.plot(x, _without_zeros(curve), color=colour, linewidth=1.8)
        high = np.flatnonzero(curve >= curve.max() - 0.02)
        place, at_end = x[high[len(high) // 2]], high[-1] == len(x) - 1 and len(high) < len(x) / 20
        if curve.max() > 0.05:  # else the band lies above the spectrum
            ax.annotate(
                f"{j}", (place, curve.max()), (0, 3), textcoords="offset points", ha="right" if at_end else "center", va="bottom",
                color=colour, fontweight="bold",
            )  # fmt: skip
    ax.set_xlim(x[0], x[-1])
    if log:
        ax.set_xscale("log")
        powers = np.arange(np.ceil(np.log(x[0]) / np.log(bands.base)), np.log(x[-1]) / np.log(bands.base))
        ticks = bands.base ** powers[:: 1 + len(powers) // 8]
        ax.set_xticks(ticks, [str(Fraction(t)) if bands.base == int(bands.base) else f"{t:.2g}" for t in ticks])
        ax.minorticks_off()


def _without_zeros(curve: np.ndarray) -> np.ndarray:
    """Return the curve with NaN where it and its neighbours are 0: lines on top of each other would show the colour of the last."""
    near = np.convolve(np.abs(curve) > 1e-9, np.ones(3), mode="same") > 0
    return np.where(near, curve, np.nan)


def _frame_title(frame: ChebyshevFrame) -> str:
    damping = "no damping" if frame.damping is None else f"{frame.damping.capitalize()} damping"
    return f"degree {frame.degree}, {damping}, {frame.bands.plateau} {'plateau' if isinstance(frame.bands, Bands) else 'kernels'}"


# ---- SURE -----------------------------------------------------------------------------------------------------------


def _draw_sure(ax: Axes, curve: SureCurve, colour: Any) -> None:
    """Draw the curve of one scale; all errors are shares of the noise in that scale."""
    unit = curve.noise or 1.0  # a scale without noise, on a graph without edges
    share = np.interp(curve.at, curve.thresholds, curve.sure) / unit
    ax.axhline(1, color=QUIET, linewidth=0.6, linestyle=(0, (1, 2)))
    ax.fill_between(
        curve.at,
        share - 2 * curve.standard_error / unit,
        share + 2 * curve.standard_error / unit,
        color=colour,
        alpha=0.25,
        linewidth=0,
    )
    ax.plot(curve.thresholds, curve.sure / unit, color=colour, linewidth=1.6)
    if curve.actual is not None:
        ax.plot(curve.thresholds, curve.actual / unit, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
    lowest = float(curve.sure.min()) / unit
    ax.plot(
        curve.best, lowest, "o", color=colour, markersize=5, markeredgecolor="white", markeredgewidth=0.8, clip_on=False, zorder=5
    )
    end = float(curve.thresholds[-1]) or 1.0
    side = "left" if curve.best < 0.2 * end else "right" if curve.best > 0.8 * end else "center"
    ax.annotate(f"{curve.best:.3g}", (curve.best, lowest), (0, -6), textcoords="offset points", ha=side, va="top", fontsize=8)
    ax.set_xlim(0, end)
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(labelsize=8.5)


def _draw_legend(ax: Axes, *, with_truth: bool) -> None:
    """Draw the legend in the free cell."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    parts = [
        (Line2D([], [], color=QUIET, linewidth=1.6), "SURE"),
        (Patch(color=QUIET, alpha=0.25, linewidth=0), "± 2 standard errors"),
        (Line2D([], [], color=QUIET, marker="o", linestyle="", markersize=5), "its minimum"),
    ]
    parts += [(Line2D([], [], color=INK, linewidth=1.1, linestyle=(0, (4, 2))), "actual squared error")] * with_truth
    parts += [(Line2D([], [], color=QUIET, linewidth=0.6, linestyle=(0, (1, 2))), "no threshold")]
    ax.legend(*zip(*parts, strict=True), loc="center left", fontsize=8.5, handlelength=1.8, borderaxespad=0)
