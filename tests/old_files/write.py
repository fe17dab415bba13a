"""Write the files whose formats are versioned, with an older version of hushgraph: `python write.py FOLDER`.

`tests/test_old_files.py` opens the folders beside this file with the version of today. A folder is named after the day of the version that wrote it:

- 2026-11-17: commit ede925b, the last one with ledgers of format 1 and certificates "hushgraph release 1";
- 2026-11-18: commit ffb503e, ledgers of format 2 and certificates "hushgraph release 2", before intervals and reports were part of a release;
- 2026-11-18-reports: commit e5391c7, the same formats, with intervals, places and reports; from here on also a release by name, a series and what the
  machine remembers of the ledger (`state`).

Run it again, with a new folder, before a change of a format.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import hushgraph as hg


def write(folder: Path) -> None:
    folder.mkdir()
    os.environ["HUSHGRAPH_STATE"] = str(folder / "state")
    graph = hg.datasets.city(100)
    hg.write_graph(folder / "streets.graphml", graph)
    trips = hg.datasets.trips(graph, n_people=400)
    bounds = {"unit": "person", "adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1, "max_distance": 200}
    counts = hg.privacy.count_events(graph, trips, **bounds)
    ledger = hg.privacy.Ledger.create(
        folder / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=2.0, delta=1e-6
    )
    for name in ("first", "second"):
        release = hg.privacy.release(counts, epsilon=0.5, delta=1e-7, ledger=ledger, public_graph=True, note=name)
        release.export(folder / name)
    hg.privacy.release(counts, epsilon=0.5, delta=1e-7, ledger=ledger, public_graph=True, name="april")
    series = ["series", "streets.graphml", "first", "second", "-o", "series", "--quiet"]
    subprocess.run([sys.executable, "-m", "hushgraph", *series], cwd=folder, check=True)

    noisy = np.random.default_rng(0).normal(3.0, 1.0, graph.n)
    np.save(folder / "noisy.npy", noisy)
    np.save(folder / "denoised.npy", hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure", n_probes=4).signal)
    hg.distributed.prepare(graph, folder / "work", partitions=2, most_ghosts=2)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
