"""All tables and figures of the paper's numerical section from one call, next to the paper's own numbers; a stopped run can go on."""

from __future__ import annotations

import datetime
import shutil
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import hushgraph
from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph._validation import choose
from hushgraph.estimators import METHODS
from hushgraph.experiments.cells import Cells
from hushgraph.experiments.output import read_csv, write_text
from hushgraph.experiments.snr_table import EVERY, OURS
from hushgraph.experiments.stage import Stage, machine
from hushgraph.experiments.verdicts import verdict

EXPERIMENTS = {
    "table-nyc": "table_nyc",
    "table-sf": "table_sf",
    "fig-large": "fig_large",
    "timing": "timing",
    "fig-weights": "fig_weights",
    "fig-sure": "fig_sure",
    "fig-plateaus": "fig_plateaus",
    "fig-partition": "fig_partition",
    "fig-decay": "fig_decay",
    "table-nyc-weighted": "table_nyc_weighted",
    "corrections": "corrections",
}
BEYOND = {  # not in the paper; run only by name
    "table-nyc-newyear": "table_nyc_newyear",
    "table-sf-dpw": "table_sf_dpw",
    "fig-candidates": "fig_candidates",
}


def reproduce(
    names: str | Iterable[str] = "all",
    out: str | Path = "out/reproduction",
    *,
    smoke: bool = False,
    methods: Iterable[str] = (),
    on_cell: Callable[[str], Any] | None = None,
    on_experiment: Callable[[str, int, float], Any] | None = None,
) -> dict[str, list[dict]]:
    """Run experiments and write their tables and figures into a folder; finished cells in the folder are not computed again.

    Parameters
    ----------
    names : str or iterable of str
        Names of experiments, or "all" for all of the paper.
    out : str or Path
        The folder; a smoke test goes into its subfolder "smoke". Eigenvectors are stored there too: 170 MB for each Manhattan, 800 MB
        for San Francisco.
    smoke : bool
        Whether to use generated data and few repetitions: under a minute, to show that everything runs.
    methods : iterable of str
        Further methods of `denoise` for tables and the large graph, or "all".
    on_cell : callable, optional
        Called with the name of each finished cell.
    on_experiment : callable, optional
        Called with the name, the number of rows and the seconds of each finished experiment.

    Returns
    -------
    dict
        The rows of each experiment.
    """
    chosen = [choose("experiment", name, ("all", *EXPERIMENTS, *BEYOND)) for name in ([names] if isinstance(names, str) else names)]
    order = list(dict.fromkeys(part for name in chosen for part in (EXPERIMENTS if name == "all" else [name])))
    more = tuple(name for method in methods for name in _methods(method))
    extra("matplotlib.pyplot", name="plot", purpose="every experiment")  # before hours of computing
    folder = folder_of(out, smoke=smoke)
    stage = Stage(folder, Cells(folder / "cells", on_cell=on_cell), smoke=smoke, methods=more)
    tables = {}
    for name in order:
        start = time.perf_counter()
        experiment = import_module(f"hushgraph.experiments.{(EXPERIMENTS | BEYOND)[name]}")
        tables[name] = experiment.run(stage)
        experiment.render(tables[name], folder)
        if on_experiment is not None:
            on_experiment(name, len(tables[name]), time.perf_counter() - start)
    _write_page(folder, smoke=smoke)
    return tables


def _methods(name: str) -> tuple[str, ...]:
    """Return the methods that a name stands for."""
    methods = dict.fromkeys((*METHODS, *OURS))
    return EVERY if choose("method", name, ("all", *methods)) == "all" else (name,)


def folder_of(out: str | Path, *, smoke: bool) -> Path:
    """Return the folder for files; that of a smoke test is never the folder of results."""
    return Path(out) / "smoke" if smoke else Path(out)


def _write_page(folder: Path, *, smoke: bool) -> Path:
    """Write one page of all finished experiments in the folder: first what matches the paper and what does not, then each experiment."""
    finished = [name for name in (*EXPERIMENTS, *BEYOND) if (folder / f"{name}.md").exists()]
    parts = [(folder / f"{name}.md").read_text(encoding="utf-8") for name in finished]
    rows = {name: read_csv(folder / f"{name}.csv") for name in finished}
    head = "# Smoke test: generated data, no results" if smoke else "# The paper's numerical section, run again"
    about = (
        f"Written on {datetime.date.today().isoformat()} by `hushgraph reproduce` (hushgraph {hushgraph.__version__}) on {machine()}. The paper is "
        "Chedemail, de Loynes, Navarro and Olivier, *Large Graph Signal Denoising with Application to Differential Privacy*. Oracles are "
        "tuned on the truth and are no methods; that of the wavelets minimises the error of the coefficients scale by scale, as the paper's "
        "does, so it does not bound the error of the signal. Different from the paper on purpose: thresholds are exact minimisers, not the "
        "best of 100 percentiles; Monte-Carlo weights use one fixed draw of probes for all realizations; noise is that of a private "
        "release, on a lattice. Different by necessity: the streets are of another snapshot of OpenStreetMap, New York's hour is another one, "
        "the paper's depth-first order came from igraph (a chain depends on the order of neighbours), and the large graph may not be its own: "
        "the list of data at the end says what was used."
    )
    text = [head, *filter(None, ["" if smoke else verdict(rows)]), about, *parts, _sources(rows)]
    return write_text(folder / "reproduction.md", "\n\n".join(part.strip("\n") for part in text))


def _sources(tables: dict[str, list[dict]]) -> str:
    """Return a list of all data with source and attribution."""
    sources = {(row["data"], row["source"], row["attribution"]) for rows in tables.values() for row in rows if "source" in row}
    return "## Data\n\n" + "\n".join(f"- {data}: {source}. {attribution}." for data, source, attribution in sorted(sources))


def publish(folder: Path, docs: Path) -> Path:
    """Copy the page of a whole run and its figures into documentation: reproduction.md and images/reproduction/."""
    missing = [name for name in EXPERIMENTS if not (folder / f"{name}.md").exists()]
    text = (folder / "reproduction.md").read_text(encoding="utf-8")
    if missing or text.startswith("# Smoke test"):
        msg = f"only a whole run on real data is published; missing: {', '.join(missing) or 'real data'}; run all, without --smoke"
        raise InputError(msg)
    images = docs / "images" / "reproduction"
    images.mkdir(parents=True, exist_ok=True)
    for picture in sorted(folder.glob("*.png")):
        if f"({picture.name})" in text:
            shutil.copyfile(picture, images / picture.name)
            text = text.replace(f"({picture.name})", f"(images/reproduction/{picture.name})")
    return write_text(docs / "reproduction.md", text)
