"""Tables that notebooks show: plain HTML with inline styles, in the colours of the notebook, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_TABLE = "border-collapse:collapse;margin:0.3em 0;color:inherit"  # pages without a doctype do not hand colours down to tables
_TITLE = "caption-side:top;text-align:left;font-weight:bold;padding:0.2em 0;color:inherit"
_FOOT = "margin:0.2em 0;opacity:0.75"


def notebook_table(
    rows: Sequence[Sequence[object]], *, title: str, head: Sequence[str] = (), foot: str = "", strong: Sequence[int] = ()
) -> str:
    """Return an HTML table; every text is escaped.

    Parameters
    ----------
    rows : sequence of sequence
        The cells of each row. The first cell of a row names it.
    title : str
        Text above the table.
    head : sequence of str
        Names of the columns.
    foot : str
        Text below the table.
    strong : sequence of int
        Numbers of the rows that are set in bold.

    Returns
    -------
    str
        The table. It sets no colours, so that it has those of the notebook.

    Examples
    --------
    >>> "<th" in notebook_table([("nodes", 3)], title="Graph"), "&lt;b&gt;" in notebook_table([("<b>", 3)], title="Graph")
    (True, True)
    """
    lines = ["".join(_cell("th", name, left=k == 0, bold=True) for k, name in enumerate(head))] if head else []
    for number, row in enumerate(rows):
        first, *others = row
        name = _cell("th", first, left=True, bold=number in strong)
        lines.append(name + "".join(_cell("td", cell, left=not head, bold=number in strong) for cell in others))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    below = f'<p style="{_FOOT}">{escape(foot)}</p>' if foot else ""
    return f'<div><table style="{_TABLE}"><caption style="{_TITLE}">{escape(title)}</caption>{body}</table>{below}</div>'


def _cell(tag: str, text: object, *, left: bool, bold: bool) -> str:
    align, weight = "left" if left else "right", "bold" if bold else "normal"
    return f'<{tag} style="text-align:{align};font-weight:{weight};padding:0.15em 0.8em 0.15em 0">{escape(str(text))}</{tag}>'
