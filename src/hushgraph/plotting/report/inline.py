"""The report inside a notebook: the page of `write_report` in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from hushgraph._errors import InputError
from hushgraph._validation import checked_count
from hushgraph.estimators import Denoised
from hushgraph.plotting.report.page import report_page


@dataclass(frozen=True)
class InlineReport:
    """A report that a notebook shows as the output of a cell; `inline_report` makes it."""

    page: str = field(repr=False)
    height: int

    def _repr_html_(self) -> str:
        # the frame may run the scripts of the page, and reach neither the notebook nor, by the policy of the page, the network
        style = f"width:100%;height:{self.height}px;border:0;background:#fff"
        # on one line: who indents or strips lines, as documentation builders do, would change scripts, which the policy names by their hash
        page = escape(self.page).replace("\n", "&#10;").replace("\t", "&#9;")
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


def inline_report(result: Denoised, *, title: str | None, height: int) -> InlineReport:
    """Return the report of a result that remembers what it was made from."""
    if result.origin is None:
        msg = "this result does not hold the noisy signal that it was made from; use write_report, which takes the graph and the signal too"
        raise InputError(msg)
    height = checked_count("height", height, 100)
    result = result.on_host()
    problem, noisy = result.origin.problem, result.origin.noisy
    noisy = result.in_form_of_signal(problem.values) if noisy is None else noisy
    return InlineReport(report_page(problem.graph, noisy, result, title=title), height)
