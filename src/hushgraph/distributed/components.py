"""Connected components over partitions: those inside each partition, then which of them belong together.

The group `constant` of candidates has a column for each large component, and one for all small ones together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.distributed.ghosts import RowFiles
from hushgraph.distributed.partitioning import read_owners
from hushgraph.distributed.store import Output, Place, mark_array, part_folder, read_marked, write_array
from hushgraph.distributed.stored_arrays import load_nodes
from hushgraph.graphs import LARGE_COMPONENT, MOST_CONSTANTS


def label_components(work: Place, part: int) -> dict[str, Any]:
    """Write the components of the owned nodes by paths inside the partition, and their neighbors in other partitions."""
    out = Output(part_folder(work, part), "labels")
    if (finished := out.read_facts()) is not None:
        return finished
    files = RowFiles(work)
    rows = files.rows(part)
    n, columns = len(rows.nodes), np.asarray(rows.columns)
    inside = files.owner[columns] == part
    source = np.repeat(np.arange(n, dtype=np.int32), np.diff(rows.starts))
    places = np.searchsorted(rows.nodes, columns[inside]).astype(np.int32)
    matrix = sparse.csr_array((np.ones(len(places), dtype=bool), (source[inside], places)), shape=(n, n))
    count, labels = csgraph.connected_components(matrix, directed=False)
    first = np.full(count, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(first, labels, rows.nodes)
    out.save("labels", labels.astype(np.int32))
    out.save("sizes", np.bincount(labels, minlength=count))
    out.save("first", first)
    out.save("links", np.unique(np.stack([labels[source[~inside]], columns[~inside]], axis=1), axis=0))
    return out.mark_done({"count": int(count)})


def join_components(work: Place, parts: int, counts: list[int]) -> list[int]:
    """Join the components of all partitions, write the group of each into the folder of its partition, and return the groups' columns.

    A group is a large component, or all small ones together, which come last.
    """
    owners, base = read_owners(work), np.concatenate([[0], np.cumsum(counts)])
    outputs = [Output(part_folder(work, part), "labels") for part in range(parts)]
    pairs = [np.empty((0, 2), np.int64)]
    for part, out in enumerate(outputs):
        links = out.load("links")
        owner = owners[links[:, 1]]
        for other in np.unique(owner):
            crossing = links[owner == other]
            nodes = load_nodes(Output(part_folder(work, int(other)), "rows"), "nodes", "nodes", len(owners))
            places = np.searchsorted(nodes, crossing[:, 1])
            labels = outputs[int(other)].load("labels", whole=False)[places]
            pairs.append(np.stack([base[part] + crossing[:, 0], base[int(other)] + labels], axis=1))
    joined = np.concatenate(pairs)
    total = int(base[-1])
    matrix = sparse.csr_array((np.ones(len(joined), dtype=bool), (joined[:, 0], joined[:, 1])), shape=(total, total))
    count, whole = csgraph.connected_components(matrix, directed=False)
    sizes = np.bincount(whole, np.concatenate([out.load("sizes") for out in outputs]), minlength=count).astype(np.int64)
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, whole, np.concatenate([out.load("first") for out in outputs]))
    group, columns = _columns(sizes, first)
    for part in range(parts):
        path = part_folder(work, part) / "groups.npy"
        mark_array(path, write_array(path, group[whole[base[part] : base[part + 1]]].astype(np.int32), safe=True))
    return columns.tolist()


def _columns(sizes: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each component, and the column of each group: the largest first, then the earliest, as on one machine."""
    order = np.lexsort((first, -sizes))
    large = order[sizes[order] >= LARGE_COMPONENT]
    group = np.full(len(sizes), len(large))
    group[large] = np.arange(len(large))
    columns = np.minimum(np.arange(len(large) + 1), MOST_CONSTANTS)
    columns[-1] = columns[:-1].max(initial=-1) + 1
    return group, columns if len(large) < len(sizes) else columns[:-1]


def component_groups(work: Place, part: int) -> np.ndarray:
    """Return the group of each owned node."""
    return read_marked(part_folder(work, part) / "groups.npy")[Output(part_folder(work, part), "labels").load("labels")]
