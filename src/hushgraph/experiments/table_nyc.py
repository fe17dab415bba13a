"""Table I: taxi pickups of one hour in Manhattan, both mechanisms, four budgets."""

from __future__ import annotations

from pathlib import Path

from hushgraph.experiments.snr_table import Column, Table, render_table, run_table
from hushgraph.experiments.stage import Stage

NAME, TITLE = "table-nyc", "Table I: New York"
TABLE = Table(
    NAME,
    TITLE,
    tuple(Column(mechanism, epsilon) for mechanism in ("classical", "analytic") for epsilon in (0.2, 0.3, 0.5, 1.0)),
    sensitivity=1,
    paper={
        "SNR_in": (-12.48, -8.96, -4.52, 1.5, -9.59, -6.29, -2.14, 3.47),
        "SGWT_MSE": (0.23, 1.61, 3.55, 7.0, 1.36, 2.73, 4.79, 8.29),
        "SGWT_SURE": (0.1, 1.5, 3.52, 6.94, 1.25, 2.71, 4.75, 8.24),
        "SGWT_SURE_MC": (0.1, 1.51, 3.52, 6.92, 1.3, 2.71, 4.74, 8.24),
        "DFS_MSE": (0.88, 1.18, 2.33, 5.58, 1.09, 1.72, 3.43, 6.96),
        "DFS_SURE": (0.85, 1.11, 2.26, 5.55, 1.02, 1.65, 3.4, 6.95),
    },
)


def run(stage: Stage) -> list[dict]:
    return run_table(stage, TABLE, stage.manhattan)


def render(rows: list[dict], folder: Path) -> list[Path]:
    text = "The paper's hour is 2014-09-24, 00:00-01:00, on an earlier snapshot of the streets."
    return render_table(rows, TABLE, text, folder)
