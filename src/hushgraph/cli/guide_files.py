"""Guides from files: public maps that help to denoise another map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hushgraph._errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from hushgraph.graphs import Graph


def read_guide_files(graph: Graph, paths: Sequence[Path]) -> dict[str, object]:
    """Return guides by name: each value column of a file of values, and the releases of each data set as one list."""
    from hushgraph.privacy import read_release

    folders = [path for path in paths if path.is_dir()]
    releases: dict[str, list[object]] = {}
    for release in (read_release(folder, graph) for folder in folders):
        releases.setdefault(release.dataset or str(release.ledger["dataset"]), []).append(release)
    guides: dict[str, object] = dict(releases)
    for path in (path for path in paths if path not in folders):
        for name, values in _columns(graph, path):
            title = name if name not in guides else f"{_stem(path)} {name}"
            if title in guides:
                msg = f"two guides are called {title!r}: {path} was given twice, or another file has the same columns; rename one"
                raise InputError(msg)
            guides[title] = values
    return guides


def _columns(graph: Graph, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and values of each column; one without a name of its own is called like the file."""
    from hushgraph.files import read_named_signal

    refuse_release_file(path)
    signal = read_named_signal(path, graph, missing_ok=True)
    columns = signal.values.reshape(graph.n, -1).T
    for k, values in enumerate(columns):
        name = signal.names[k] if signal.names else "value"
        own = _stem(path) if len(columns) == 1 else f"{_stem(path)} {k + 1}"
        yield own if name == "value" else name, values


def _stem(path: Path) -> str:
    """Return the name of a file without its endings: "pickups" for pickups.csv.gz."""
    return path.name.split(".")[0] or path.name


def refuse_release_file(path: Path) -> None:
    """Refuse the map of a release without its folder, which knows the noise, and a map of a series, which holds the noise of others."""
    if (path.parent / "summary.json").exists() and (path.parent / "summary.csv").exists():
        msg = (
            f"{path} was made by hushgraph series, from the noise of several releases; pass the folders of the releases themselves"
        )
        raise InputError(msg)
    if path.name == "map.csv" and (path.parent / "certificate.json").exists():
        msg = f"{path} belongs to a release, whose certificate knows the noise; pass the folder {path.parent}"
        raise InputError(msg)
