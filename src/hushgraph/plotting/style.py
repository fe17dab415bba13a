"""What all figures share: colours, fonts, round tick values, and the import of matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from hushgraph._errors import InputTypeError
from hushgraph._extras import extra

INK, QUIET = "#1b2a3a", "#5b6b7a"  # text and strong lines; ticks, axes and remarks
COLOURS = ("#1f6f8b", "#d1495b", "#edae49", "#1d2b36", "#b49ad6", "#6b3f22")  # distinguishable with any colour vision
_ROUND = (1, 2, 5)  # a round number is one of these times a power of ten


def figure_style() -> AbstractContextManager:
    """Return a matplotlib context with the style of all figures other than maps: `with figure_style(): ...`."""
    plt = pyplot()
    return plt.rc_context({
        "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": QUIET, "axes.labelcolor": INK,
        "xtick.color": QUIET, "ytick.color": QUIET, "text.color": INK, "legend.frameon": False, "axes.prop_cycle": plt.cycler(color=COLOURS),
        "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlesize": 11, "pdf.fonttype": 42,
    })  # fmt: skip


def pyplot() -> Any:
    """Return the module matplotlib.pyplot, or raise an error that names the extra to install."""
    return extra("matplotlib.pyplot", name="plot", purpose="plotting")


def shown_once(figure: Any) -> Any:
    """Return a figure of pyplot that a notebook shows once.

    The inline backend shows all figures that pyplot holds when a cell ends, and IPython shows the value of the cell: a figure that is
    both would be shown twice. With this, pyplot lets go of the figure when IPython shows it.
    """
    figure._ipython_display_ = partial(_release_from_pyplot, figure)
    return figure


def _release_from_pyplot(figure: Any) -> None:
    plt = pyplot()
    if "inline" in plt.get_backend().lower():
        plt.close(figure)
    raise NotImplementedError  # IPython goes on to show the figure as usual


def draw_suptitle(figure: Any, title: str | None) -> None:
    """Draw a title above all panels of a figure, unless it is None."""
    if title is not None:
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")


def checked_axes(ax: Any) -> Any:
    """Return `ax` if it is None or matplotlib axes; raise InputTypeError for anything else."""
    if ax is not None and not hasattr(ax, "add_collection"):
        expected = "matplotlib axes, as plt.subplots returns them"
        raise InputTypeError.about(argument="ax", expected=expected, got=type(ax).__name__)
    return ax


def even_ticks(low: float, high: float) -> np.ndarray:
    """Return four to eight multiples of a round number between two values, for a linear axis.

    Examples
    --------
    >>> even_ticks(0.0, 1.0).tolist()
    [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
    """
    rough = max((high - low) / 4, 1e-300)
    decade = 10.0 ** np.floor(np.log10(rough))
    step = max(size for size in _ROUND if size * decade <= rough) * decade
    return np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1) * step + 0.0


def colour_bar_ticks(low: float, high: float, height: Callable[[Any], Any]) -> np.ndarray:
    """Return zero and round values of both signs whose places on a colour bar, `height(|value|)`, are well apart.

    Examples
    --------
    >>> import numpy as np
    >>> colour_bar_ticks(-10.0, 100.0, np.sqrt).tolist()
    [-10.0, -2.0, 0.0, 2.0, 10.0, 20.0, 50.0, 100.0]
    """
    largest = max(abs(low), abs(high))
    decade = 10.0 ** np.arange(np.floor(np.log10(largest)), np.floor(np.log10(largest)) - 3, -1)
    ticks = [0.0]
    for size in np.sort(np.outer(decade, _ROUND).ravel()):
        if height(size) - height(ticks[-1]) > 0.13 * height(largest):
            ticks.append(size)
    both = np.unique([-np.array(ticks), ticks])
    return both[(both >= low) & (both <= high)] + 0.0  # + 0.0: no minus zero
