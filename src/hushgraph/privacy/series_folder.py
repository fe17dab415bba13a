"""The folder of a series: a table for each release, denoised with the help of the others, and a summary of what that gained.

It is post-processing of what was published, so it costs no budget and carries the guarantees of the releases.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._arrays import values_digest
from hushgraph.estimators import INTERVAL_LEVEL, Denoised
from hushgraph.privacy.certificate import CERTIFICATE, read_certificate
from hushgraph.privacy.map_file import map_rows, map_values, write_map
from hushgraph.privacy.releases import Release

SUMMARY = "summary"
FORMAT = 1  # of the summary; those from before 20 November 2026 do not state it
_COLUMNS = ("release", "created", "sigma", "typical_error_before", "typical_error", "file")


@dataclass(frozen=True, eq=False)
class SeriesMap:
    """One release of a series with its denoised map.

    Parameters
    ----------
    name : str
        The name of the release, and of its table.
    folder : Path
        The folder that it was read from.
    release : Release
        The release.
    denoised : Denoised
        Its map, denoised with the help of the others.
    """

    name: str
    folder: Path
    release: Release
    denoised: Denoised

    def facts(self) -> dict[str, Any]:
        """Return what a summary says of the map; errors that are not known are None.

        Returns
        -------
        dict
            Ready for JSON.
        """
        published = np.array([float(text or "nan") for (text,) in map_rows(self.folder, ["expected_error"])])
        return {
            "release": self.name,
            "created": self.release.created,
            "sigma": self.release.sigma,
            "typical_error_before": _typical(published),
            "typical_error": _typical(self.denoised.expected_error()),
            "file": f"{self.name}.csv",
            "epsilon": self.release.epsilon,
            "delta": self.release.delta,
            "dataset": self.release.ledger["dataset"],
            "ledger": {name: self.release.ledger[name] for name in ("identity", "entry", "head")},
            "values_sha256": values_digest(self.release.values),
            "attribution": self.release.attribution,
            "guides": [
                {"name": name, "made_from": one["made_from"], "risk_removed": one["risk_removed"]}
                for name, one in self.denoised.guide_accounts[0].items()
            ],
        }


def _typical(expected_errors: np.ndarray) -> float | None:
    """Return the root mean square of expected errors; None if they are not known."""
    size = float(np.sqrt(np.mean(expected_errors**2)))
    return size if np.isfinite(size) else None


def write_series(folder: Path, maps: Sequence[SeriesMap], *, direction: str) -> dict[str, Any]:
    """Write the tables of a series and its summary into a new folder, and return the summary.

    Parameters
    ----------
    folder : Path
        A folder that does not exist.
    maps : sequence of SeriesMap
        The maps in order of time.
    direction : str
        Which maps guided each: "all" or "past".

    Returns
    -------
    dict
        The summary, ready for JSON.
    """
    folder.mkdir()
    folder.chmod(0o755)
    graph = maps[0].release.graph
    safe = any(read_certificate(one.folder / CERTIFICATE).get("spreadsheet_safe") for one in maps)  # as the releases were published
    for one in maps:
        write_map(folder / f"{one.name}.csv", graph, None, map_values(one.release.values, one.denoised), spreadsheet_safe=safe)
    facts = [one.facts() for one in maps]
    summary = {
        "format": FORMAT,
        "made_from": "the noisy maps of the releases alone: no budget was charged, and their guarantees hold for these maps too",
        "method": maps[0].denoised.method,
        "direction": direction,
        "interval": INTERVAL_LEVEL,
        "spreadsheet_safe": safe,
        "graph": {"hash": graph.hash, "nodes": graph.n, "edges": graph.n_edges},
        "releases": facts,
    }
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / f"{SUMMARY}.json").write_text(text, encoding="utf-8")
    with (folder / f"{SUMMARY}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(facts)
    return summary
