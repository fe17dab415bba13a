"""The methods on another hour that nothing was tuned on: New Year's night in Manhattan, analytic mechanism. Not in the paper."""

from __future__ import annotations

from pathlib import Path

from hushgraph.experiments.snr_table import Column, Table, render_table, run_table
from hushgraph.experiments.stage import Stage

NAME, TITLE = "table-nyc-newyear", "Beyond the paper: New Year's night in New York"
TABLE = Table(NAME, TITLE, tuple(Column("analytic", epsilon) for epsilon in (0.2, 0.3, 0.5, 1.0)), sensitivity=1)


def run(stage: Stage) -> list[dict]:
    return run_table(stage, TABLE, stage.manhattan_newyear)


def render(rows: list[dict], folder: Path) -> list[Path]:
    return render_table(rows, TABLE, "The hour is incomplete by construction.", folder)
