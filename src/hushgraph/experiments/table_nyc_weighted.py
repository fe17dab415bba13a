"""Table I again with edges weighted by the inverse of their length, which the paper leaves out (the DFS fused lasso knows no weights)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hushgraph.experiments import table_nyc
from hushgraph.experiments.snr_table import render_table, run_table
from hushgraph.experiments.stage import Stage

NAME, TITLE = "table-nyc-weighted", "Table I on the weighted graph"
TABLE = replace(table_nyc.TABLE, name=NAME, title=TITLE, paper={})


def run(stage: Stage) -> list[dict]:
    return run_table(stage, TABLE, stage.manhattan_weighted)


def render(rows: list[dict], folder: Path) -> list[Path]:
    text = "A street counts mean length / its length. Not in the paper, whose fused lasso knows no weights; ours ignores them too."
    return render_table(rows, TABLE, text, folder)
