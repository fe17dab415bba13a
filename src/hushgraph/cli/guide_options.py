"""Guides on the command line: public maps, in files or as folders of earlier releases, that make a denoised map better."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph._errors import InputError
from hushgraph.cli.guide_files import read_guide_files
from hushgraph.cli.terminal import Terminal

if TYPE_CHECKING:
    from hushgraph.estimators import Denoised, MethodName
    from hushgraph.graphs import Graph

_GUIDES = "Guides"


@dataclass(frozen=True, kw_only=True)
class Guides:
    """Public maps that guide the denoising: options of the commands that denoise."""

    guide: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Public map of the same places that helps: a file like SIGNAL (every column is a guide; rows may be missing), or the "
            "folder of another release. May be given several times; releases of one data set are taken together.",
            rich_help_panel=_GUIDES,
        ),
    ] = None
    street_guides: Annotated[
        bool,
        typer.Option(
            "--street-guides",
            help="Also use what the graph knows of its streets: number, length, centrality; class and lanes, if an OSMnx file says them.",
            rich_help_panel=_GUIDES,
        ),
    ] = False

    def read(self, terminal: Terminal, graph: Graph, method: MethodName) -> list[Any] | None:
        """Return the guides as `denoise` takes them; None without any. The method must take guides."""
        paths = self.guide or []
        if not paths and not self.street_guides:
            return None
        check_method(method, "--guide and --street-guides go")
        with terminal.working("Reading the guides"):
            guides = [read_guide_files(graph, paths), dict(graph.covariates()) if self.street_guides else {}]
        return [part for part in guides if part]


def check_method(method: MethodName, what: str) -> None:
    """Refuse a method that takes no guides; `what` begins the sentence."""
    from hushgraph.estimators import guided_methods

    if method not in guided_methods():
        msg = f"{what} with these methods: {', '.join(guided_methods())}; got --method {method}; choose one of them"
        raise InputError(msg)


# ---- what they gained -------------------------------------------------------------------------------------------------


def guide_facts(result: Denoised) -> list[dict[str, Any]]:
    """Return what each guide was made from and removed, for --json; one share for each signal."""
    signals, facts = result.guide_accounts, []
    for name in dict.fromkeys(name for one in signals for name in one):
        parts = [one.get(name) for one in signals]
        first = next(part for part in parts if part is not None)
        facts.append(
            {
                "name": name,
                "made_from": first["made_from"],
                "sha256": first["sha256"],
                "risk_removed": [None if part is None else part["risk_removed"] for part in parts],
                "in_words": [None if part is None else part["in_words"] for part in parts],
            }
        )
    return facts


def guide_line(result: Denoised) -> dict[str, str]:
    """Return a line of the story that says which guides helped and by how much; no line without guides."""
    words = [f"{fact['name']} ({fact['made_from']}) {_gain(fact)}" for fact in guide_facts(result)]
    return {"Guides": "; ".join(words) + "."} if words else {}


def _gain(fact: dict[str, Any]) -> str:
    """Return what a guide removed, in words; the smallest and the largest share for several signals."""
    shares = [share for share in fact["risk_removed"] if share is not None]
    if len(shares) == 1 or max(shares) < 0.005:
        return next(words for words in fact["in_words"] if words is not None)
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    share = low if low == high else f"{low} to {high}"
    return f"removed {share} of the squared error that was left without guides, by column"
