"""The graph of a guided run: that of the work folder with edges that are weak where a prediction jumps, in the same partitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushgraph.core import block_sum
from hushgraph.distributed.adjacency_rows import write_part_rows
from hushgraph.distributed.ghosts import RowFiles, grow_zone
from hushgraph.distributed.partitioning import has_owners, read_owners, write_owners
from hushgraph.distributed.preparing import most_ghosts_of, settings_of, write_frame, zone_settings
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.store import Output, Place, part_folder, read_json, read_manifest, read_marked, write_json
from hushgraph.estimators import edge_factors

STAGES = {"jumps": 0.5, "rows": 1.0, "zones": 12.0}  # rough shares of the time


def sum_jumps(work: Place, part: int, folder: Place, prediction: Place) -> dict[str, Any]:
    """Return the sum of the squared differences of a prediction along the edges of owned nodes, and the number of these edges."""
    out = Output(part_folder(folder, part), "jumps")
    if (finished := out.read_facts()) is not None:
        return finished
    square = _squares(work, part, prediction)
    return out.mark_done({"square": float(block_sum(square)), "count": len(square)})


def reweigh_rows(work: Place, part: int, folder: Place, prediction: Place, mean: float) -> dict[str, Any]:
    """Write the rows of a partition with the weights that the prediction leaves; `mean` is that of the squared differences of all edges."""
    out = Output(part_folder(folder, part), "rows")
    if (finished := out.read_facts()) is not None:
        return finished
    rows = RowFiles(work).rows(part)
    weights = rows.all_weights * edge_factors(_squares(work, part, prediction), mean)
    return write_part_rows(out, rows.nodes, np.asarray(rows.starts), np.asarray(rows.columns), weights)


def _squares(work: Place, part: int, prediction: Place) -> np.ndarray:
    """Return the squared difference of the prediction along each entry of the rows of a partition."""
    rows, values = RowFiles(work).rows(part), read_marked(prediction, whole=False)
    return (np.repeat(values[rows.nodes], np.diff(rows.starts)) - values[rows.columns]) ** 2


def reweighted(work: Place, runner: Runner, folder: Place, prediction: Place) -> Place:
    """Write the reweighted graph into a folder and return the folder; `prediction` is a file with a value for each node."""
    facts = read_manifest(work)
    parts, n = facts["partitions"], facts["n"]
    if not has_owners(folder):
        owner = read_owners(work)
        write_owners(folder, n, owner.dtype, [owner])
    jumps = runner.run_parts("jumps", sum_jumps, parts, work, folder, prediction)
    count = sum(part["count"] for part in jumps)
    mean = math.fsum(part["square"] for part in jumps) / count if count else 0.0
    rows = runner.run_parts("rows", reweigh_rows, parts, work, folder, prediction, mean)
    settings = settings_of(facts, lambda_max=None)
    zone = zone_settings(rows, settings, most_ghosts_of(parts, facts["most_ghosts"]))
    zones = runner.run_parts("zones", grow_zone, parts, folder, zone)
    if read_json(folder / "manifest.json") is None or not (folder / "frame.npy").exists():
        write_json(folder / "manifest.json", {**facts, **write_frame(folder, n, settings, rows, zones, zone)})
    return folder
