"""The paper's numerical section from one call: every table and figure, resumable, next to the paper's own numbers."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import hushgraph
from hushgraph.checks import choose
from hushgraph.denoise import Method
from hushgraph.experiments.cells import Cells
from hushgraph.experiments.output import write_text
from hushgraph.experiments.stage import Stage
from hushgraph.experiments.verdict import verdict

EXPERIMENTS = {
    "fig-plateaus": "fig_plateaus",
    "fig-partition": "fig_partition",
    "fig-decay": "fig_decay",
    "fig-weights": "fig_weights",
    "fig-sure": "fig_sure",
    "table-nyc": "table_nyc",
    "table-nyc-weighted": "table_nyc_weighted",
    "table-sf": "table_sf",
    "fig-large": "fig_large",
    "timing": "timing",
    "corrections": "corrections",
}


def reproduce(
    names: Iterable[str] = ("all",),
    out: str | Path = "out/reproduction",
    *,
    smoke: bool = False,
    methods: Iterable[str] = (),
    on_cell: Callable[[str], Any] | None = None,
) -> dict[str, list[dict]]:
    """Run experiments and write their tables and figures into `out`; cells that are finished there are not computed again.

    Parameters
    ----------
    names : names of experiments, or "all"
    smoke : bool
        Generated data and few repetitions, under a minute: it shows that everything runs.
    methods : further methods of `denoise` for tables and the large graph
    on_cell : callable, optional
        Called with the name of each cell when it is done.

    Returns
    -------
    dict
        The rows of each experiment.
    """
    wanted = [choose("experiment", name, ("all", *EXPERIMENTS)) for name in names]
    wanted = list(EXPERIMENTS) if "all" in wanted else list(dict.fromkeys(wanted))
    more = tuple(choose("method", method, get_args(Method)) for method in methods)
    folder = Path(out)
    stage = Stage(folder, Cells(folder / "cells", on_cell=on_cell), smoke=smoke, methods=more)
    found = {}
    for name in wanted:
        experiment = import_module(f"hushgraph.experiments.{EXPERIMENTS[name]}")
        found[name] = experiment.run(stage)
        experiment.render(found[name], folder)
    _write_page(folder, found, smoke=smoke)
    return found


def _write_page(folder: Path, found: dict[str, list[dict]], *, smoke: bool) -> Path:
    """One page of all these experiments: first what matches and what does not, then each with its table and figure."""
    parts = [(folder / f"{name}.md").read_text(encoding="utf-8") for name in found]
    head = "# Smoke test: generated data, no results" if smoke else "# The paper's numerical section, run again"
    where = f"{datetime.date.today().isoformat()}, {os.cpu_count()} cores of {_processor()}, Python {platform.python_version()}, "
    about = (
        f"{where}hushgraph {hushgraph.__version__}; written by `hushgraph reproduce {' '.join(found) if len(found) < len(EXPERIMENTS) else 'all'}`. The "
        "paper is Chedemail, de Loynes, Navarro and Olivier, *Large Graph Signal Denoising with Application to Differential Privacy*; its values "
        "stand in parentheses. Oracles are tuned on the truth and are no methods."
    )
    return write_text(folder / "reproduction.md", "\n\n".join([head, *filter(None, [verdict(found)]), about, *parts]))


def publish(folder: Path, docs: Path) -> Path:
    """Copy the page and its figures into a folder of documentation: reproduction.md and images/reproduction/."""
    images = docs / "images" / "reproduction"
    images.mkdir(parents=True, exist_ok=True)
    text = (folder / "reproduction.md").read_text(encoding="utf-8")
    for picture in sorted(folder.glob("*.png")):
        if f"({picture.name})" in text:
            shutil.copyfile(picture, images / picture.name)
            text = text.replace(f"({picture.name})", f"(images/reproduction/{picture.name})")
    return write_text(docs / "reproduction.md", text)


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.machine())
