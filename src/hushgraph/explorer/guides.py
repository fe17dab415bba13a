"""Guides of the explorer: public maps that help to denoise the map on the page.

A guide is read once, when the program starts, and a noisy one is denoised once for each method, since all views use the same guides.
Guides are public and are never compared with private counts: only maps that are published, or generated, are denoised with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.estimators import INTERVAL_LEVEL, METHODS, Denoised, MethodName, denoise, draw_marks, read_guides
from hushgraph.files import write_signal
from hushgraph.graphs import Graph, Noisy

GUIDED_MAP, GUIDED_FACTS = "guided.csv", "guides.json"  # beside the files of a release
_ABOUT = (
    f"{GUIDED_MAP} is made from the column noisy of map.csv and the public maps named here, so it carries the guarantee of the release. "
    "The column denoised of map.csv is made without guides."
)


class PublicGuides:
    """The guides of one run of the explorer; `published`, if given, is the map that they are used on, whose noise they must not hold."""

    def __init__(self, graph: Graph, guides: Any, published: Noisy | None = None):
        draws = frozenset() if published is None else draw_marks(published.values)
        self.graph, self.guides = graph, [] if guides is None else read_guides(graph, guides, draws)
        self._maps: dict[tuple[MethodName, bool], dict[str, np.ndarray]] = {}

    def describe(self) -> list[dict[str, str]]:
        """Return name and origin of each guide, for the page."""
        return [{"name": guide.name, "made_from": guide.made_from} for guide in self.guides]

    def are_used_by(self, method: MethodName) -> bool:
        """Return whether there are guides and the method takes them."""
        return bool(self.guides) and METHODS[method].takes_guides

    def maps(self, method: MethodName, *, nonnegative: bool) -> dict[str, np.ndarray]:
        """Return the guides by name, without noise, as this method uses them."""
        if (method, nonnegative) not in self._maps:
            self._maps[method, nonnegative] = {
                guide.name: guide.values
                if guide.sigma is None
                else denoise(self.graph, guide.values, sigma=guide.sigma, method=method, nonnegative=nonnegative).signal
                for guide in self.guides
            }
        return self._maps[method, nonnegative]

    def accounts(self, result: Denoised) -> dict[str, dict[str, Any]]:
        """Return what `denoise` says of each guide, with its origin and the digests of the maps that were given."""
        effects = result.details["guides"]
        return {
            guide.name: {**effects[guide.name], "made_from": guide.made_from, "sha256": list(guide.digests)}
            for guide in self.guides
        }

    def effects(self, result: Denoised) -> dict[str, Any]:
        """Return the share of the squared error that all guides and that each of them removed, for the page."""
        accounts = self.accounts(result)
        return {
            "removed": sum(account["risk_removed"] for account in accounts.values()),
            "each": [
                {
                    "name": name,
                    "removed": account["risk_removed"],
                    "in_words": account["in_words"],
                    "made_from": account["made_from"],
                }
                for name, account in sorted(accounts.items(), key=lambda item: -item[1]["risk_removed"])
            ],
        }

    def write(self, folder: Path, published: Noisy, *, method: MethodName, nonnegative: bool, integer: bool) -> None:
        """Write the guided map of a release and the names of its guides into the folder of the release; nothing without guides."""
        if not self.are_used_by(method):
            return
        maps = self.maps(method, nonnegative=nonnegative)
        result = denoise(self.graph, published, method=method, nonnegative=nonnegative, integer=integer, guides=maps)
        facts = {
            "about": _ABOUT,
            "denoised": {"method": method, "nonnegative": nonnegative, "integer": integer, "interval": INTERVAL_LEVEL},
            "removed": self.effects(result)["removed"],
            "guides": self.accounts(result),
        }
        lower, upper = result.interval(INTERVAL_LEVEL)
        columns = {"denoised": result.signal, "expected_error": result.expected_error(), "lower": lower, "upper": upper}
        write_signal(folder / GUIDED_MAP, self.graph, columns)
        (folder / GUIDED_FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
