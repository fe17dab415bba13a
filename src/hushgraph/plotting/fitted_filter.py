"""The figure of a fitted filter: the spectrum of the noisy signal with the fitted spectrum, and the filter below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import checked_count
from hushgraph.estimators import Denoised
from hushgraph.plotting.style import COLOURS, INK, QUIET, draw_suptitle, figure_style, pyplot, shown_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_EIGENVALUES = 4.0  # in a bin, so that its mean energy is worth drawing
_LEAST_RATIO = 1.12  # of the eigenvalues at the ends of neighboring bins, so that dots do not overlap


def plot_filter(result: Denoised, *, signal: int = 0, title: str | None = None) -> Figure:
    """Draw the filter that was fitted to a signal, and the spectrum that it was fitted to.

    The upper panel shows the mean energy of the noisy signal over the eigenvalues of the Laplacian, in units of the noise variance: noise
    alone has the energy 1. The line is the fitted spectrum of signal and noise together. The lower panel shows the filter: the share of
    each eigenvector that is kept, from 0 to 1.

    Parameters
    ----------
    result : Denoised
        A result of `denoise` with method "filter" or "auto".
    signal : int
        Which signal, where several were denoised.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If no filter was fitted.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(500)
    >>> noisy = hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
    >>> figure = plot_filter(hg.denoise(graph, noisy, sigma=1, method="filter"))  # doctest: +SKIP
    """
    account = _filter_of(result, signal)
    x, h = account["eigenvalues"][1:], account["response"][1:]
    places, energy = _mean_energies(account["energies"])
    with figure_style():
        figure, (above, below) = pyplot().subplots(2, 1, figsize=(5.2, 4.6), layout="constrained", sharex=True)
        above.plot(places, energy, "o", ms=3.5, color=QUIET, label="noisy signal")
        above.plot(x, 1 / np.maximum(1 - h, 1e-9), color=COLOURS[0], lw=1.8, label="fitted")
        above.axhline(1.0, color=INK, lw=0.8, ls=":", label="noise alone")
        largest = max(float(energy.max(initial=1.0)), 2.0)
        above.set(xscale="log", yscale="log", ylim=(0.3, 3 * largest), xlim=(max(float(places[0]) / 2, float(x[0])), float(x[-1])))
        above.set_ylabel("energy per eigenvalue\nover noise variance", fontsize=9)
        above.legend(frameon=False, fontsize=8)
        below.plot(x, h, color=COLOURS[0], lw=1.8)
        below.set(ylim=(-0.03, 1.05))
        below.set_xlabel("eigenvalue of the Laplacian", fontsize=9)
        below.set_ylabel("share kept", fontsize=9)
        draw_suptitle(figure, title)
    return shown_once(figure)


def _filter_of(result: Denoised, signal: int) -> dict[str, Any]:
    """Return what the details of the result say about the filter that was fitted to a signal."""
    shape = np.shape(result.signal)
    checked_count("signal", signal, 0, (shape[1] if len(shape) > 1 else 1) - 1)
    details = result.details
    if len(shape) > 1 and isinstance(details.get("combination"), list) and details["combination"][signal]:
        details = details["combination"][signal]
    elif len(shape) == 1:
        details = details.get("combination", details)
    account = details.get("filter")
    account = account[signal] if isinstance(account, list) else account
    if account is None:
        expected = "denoise with method 'filter' or 'auto', without columns= and guides="
        raise InputError.about(
            argument="result", verb="come from", expected=expected, got=f"a result of {result.method!r} without a filter"
        )
    return account


def _mean_energies(energies: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean eigenvalues and mean energies in few wide bins, each with several eigenvalues."""
    x, energy, count = (energies[name] for name in ("eigenvalues", "energy", "n_eigenvalues"))
    least_count = max(_LEAST_EIGENVALUES, float(count.sum()) ** 0.5 / 4)
    ends: list[int] = []  # the last narrow bin of each wide one
    in_bin = 0.0
    for k, number in enumerate(count):
        in_bin += float(number)
        is_wide = not ends or x[k] > _LEAST_RATIO * x[ends[-1]]
        if in_bin >= least_count and is_wide:
            ends.append(k)
            in_bin = 0.0
    if not ends:
        return np.array([x[-1]]), np.array([energy.sum() / max(count.sum(), 1e-300)])
    starts = [0, *(end + 1 for end in ends[:-1])]
    sums = [np.add.reduceat(part[: ends[-1] + 1], starts) for part in (x * count, energy, count)]
    return sums[0] / np.maximum(sums[2], 1e-300), sums[1] / np.maximum(sums[2], 1e-300)
