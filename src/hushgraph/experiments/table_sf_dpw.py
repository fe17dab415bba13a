"""The methods on another graph of the same city: San Francisco's own street centrelines, analytic mechanism. Not in the paper."""

from __future__ import annotations

from pathlib import Path

from hushgraph.experiments.snr_table import Column, Table, render_table, run_table
from hushgraph.experiments.stage import Stage

NAME, TITLE = "table-sf-dpw", "Beyond the paper: San Francisco's street centrelines"
TABLE = Table(NAME, TITLE, tuple(Column("analytic", epsilon) for epsilon in (0.2, 0.5, 1.0)), sensitivity=2)


def run(stage: Stage) -> list[dict]:
    return run_table(stage, TABLE, stage.san_francisco_dpw)


def render(rows: list[dict], folder: Path) -> list[Path]:
    return render_table(rows, TABLE, "The day is the paper's.", folder)
