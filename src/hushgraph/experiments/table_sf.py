"""Table II: taxi pickups of one day in San Francisco, analytic mechanism, sensitivity 2, three budgets."""

from __future__ import annotations

from pathlib import Path

from hushgraph.experiments.snr_table import Column, Table, render_table, run_table
from hushgraph.experiments.stage import Stage

NAME, TITLE = "table-sf", "Table II: San Francisco"
TABLE = Table(
    NAME,
    TITLE,
    tuple(Column("analytic", epsilon) for epsilon in (0.2, 0.5, 1.0)),
    sensitivity=2,
    paper={
        "SNR_in": (-11.95, -4.51, 1.1),
        "SGWT_MSE": (0.80, 4.34, 8.24),
        "SGWT_SURE": (0.77, 4.32, 8.22),
        "SGWT_SURE_MC": (0.76, 4.34, 8.22),
        "DFS_MSE": (0.22, 3.02, 6.77),
        "DFS_SURE": (0.17, 2.99, 6.76),
    },
)


def run(stage: Stage) -> list[dict]:
    return run_table(stage, TABLE, stage.san_francisco)


def render(rows: list[dict], folder: Path) -> list[Path]:
    text = "It is the paper's day and source of pickups, on another snapshot of the streets."
    return render_table(rows, TABLE, text, folder)
