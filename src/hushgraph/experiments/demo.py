"""The demo, a complete private release: a generated city and its trips, bounded counts, noise, denoising, certificate, pictures.

It needs no network and takes less than a minute. The trips are generated, so the truth may be shown; with real data nobody sees it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushgraph._errors import FileThereError
from hushgraph._extras import extra
from hushgraph._validation import checked_count
from hushgraph.datasets import SAMPLE_FILES, draw_sample, write_sample
from hushgraph.estimators import Denoised, denoise, snr
from hushgraph.graphs import Graph
from hushgraph.plotting import plot_maps
from hushgraph.privacy import Ledger, LedgerError, Release, count_events, release

DELTA = 1e-6
MAX_NODES, MAX_PER_NODE, MAX_DISTANCE = 2, 1, 200.0
BUDGET, DATASET = 2.0, "generated trips of the demo"


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demo; `files` are streets, trips and values, `truth` the bounded counts, which a real release would never show."""

    graph: Graph
    n_trips: int
    n_people: int
    ledger: Ledger
    release: Release
    denoised: Denoised = field(repr=False)
    folder: Path
    files: list[Path]
    truth: np.ndarray = field(repr=False)

    @property
    def snr_noisy(self) -> float:
        """SNR of the released map in dB."""
        return float(snr(self.truth, self.release.values))

    @property
    def snr_denoised(self) -> float:
        """SNR of the denoised map in dB."""
        return float(snr(self.truth, self.denoised.signal))

    @property
    def noise_energy_left(self) -> float:
        """Share of the noise energy that is left after denoising."""
        return float(np.sum((self.denoised.signal - self.truth) ** 2) / np.sum((self.release.values - self.truth) ** 2))


def run(folder: Path, *, n_nodes: int, epsilon: float, seed: int) -> Demo:
    """Do everything that a data owner does, in the folder; files of an earlier run are replaced."""
    extra("matplotlib.pyplot", name="plot", purpose="the demo")  # before anything is removed or charged
    folder = _cleared(Path(folder))
    sample = draw_sample(checked_count("n_nodes", n_nodes, 100), seed=seed)
    files = write_sample(folder, sample)
    graph, events = sample.graph, sample.trips
    counts = count_events(
        graph,
        events,
        unit="person",
        adjacency="add-remove",
        max_nodes=MAX_NODES,
        max_per_node=MAX_PER_NODE,
        max_distance=MAX_DISTANCE,
    )
    ledger = Ledger.create(
        folder / "budget.db",
        dataset=DATASET,
        unit="person",
        adjacency="add-remove",
        epsilon=max(BUDGET, epsilon),
        delta=DELTA,
    )
    published = release(counts, epsilon=epsilon, delta=DELTA, ledger=ledger, public_graph=True, not_protected="drivers")
    published.export(folder / "release")
    denoised = denoise(graph, published, nonnegative=True)
    people = len(np.unique(events["person"])) - 1  # without the empty id
    return Demo(graph, len(events["person"]), people, ledger, published, denoised, folder, files, counts.counts.astype(float))


def render(demo: Demo) -> list[Path]:
    """Draw the maps and the expected error of the published map, and return the paths of the pictures."""
    maps, trust = demo.folder / "maps.png", demo.folder / "expected_error.png"
    signals = {
        "Counts (private, never published)": demo.truth,
        f"Released: noise of sigma {demo.release.sigma:.2f}, SNR {demo.snr_noisy:.1f} dB": demo.release.values,
        f"Denoised from the release alone: {demo.snr_denoised:.1f} dB": demo.denoised.signal,
    }
    title = f"Trips in a generated city of {demo.graph.n:,} junctions, epsilon = {demo.release.epsilon:g} per person"
    plot_maps(demo.graph, signals, title=title, label="trips counted per junction", path=maps)
    errors = {
        "Denoised map": demo.denoised.signal,
        "Its expected error per junction, from the release alone": demo.denoised.expected_error(),
    }
    plot_maps(demo.graph, errors, title="Where the published map can be trusted", label="trips per junction", path=trust)
    return [maps, trust]


def _cleared(folder: Path) -> Path:
    """Return the folder, new or emptied of an earlier demo; raise an error if it holds anything else."""
    demo_files = {"budget.db", "release", "maps.png", "expected_error.png", "state", *SAMPLE_FILES}
    if folder.is_dir() and any(folder.iterdir()):
        if {path.name for path in folder.iterdir()} - demo_files or not _is_demo_ledger(folder / "budget.db"):
            msg = f"{str(folder)!r} holds other files; give the demo a folder of its own"
            raise FileThereError(msg)
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_demo_ledger(path: Path) -> bool:
    try:
        return Ledger.open(path).dataset == DATASET
    except LedgerError:
        return False
