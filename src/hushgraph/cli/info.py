"""hushgraph info: facts about a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hushgraph.cli.graph_options import GraphFile, GraphReading
from hushgraph.cli.options import AsJson, Quiet, grouped
from hushgraph.cli.terminal import open_terminal

if TYPE_CHECKING:
    import numpy as np

    from hushgraph.graphs import Graph


@grouped
def command(
    graph_file: GraphFile,
    *,
    reading: GraphReading,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show size, components, degrees, spectrum, weights, coordinates, labels and memory of a graph."""
    with open_terminal("info", as_json=as_json, quiet=quiet) as terminal:
        graph = reading.graph(terminal, graph_file)
        with terminal.working("Computing the spectrum"):
            facts = graph_facts(graph)
        terminal.story(_summary(facts))
        terminal.result(facts)


def graph_facts(graph: Graph) -> dict[str, Any]:
    """Return all facts as numbers, for JSON."""
    import numpy as np

    from hushgraph.wavelets import chebyshev_frame

    sizes = np.bincount(graph.components) if graph.n else np.zeros(0, dtype=int)
    neighbours = np.diff(graph.adjacency.indptr)
    spectrum, weights = graph.spectrum(), graph.adjacency.data
    return {
        "nodes": graph.n,
        "edges": graph.n_edges,
        "components": {"count": len(sizes), "largest": sizes.max(initial=0)},
        "degrees": _range(neighbours) | {"isolated": (neighbours == 0).sum()},
        "weights": None if graph.is_unweighted else _range(weights),
        "lambda_max": spectrum.lambda_max,
        "lambda_max_from": spectrum.lambda_max_from,
        "lambda_upper": spectrum.lambda_upper,
        "lambda_upper_from": spectrum.lambda_upper_from,
        "scales": chebyshev_frame(graph).n_scales if graph.n_edges else 1,
        "coordinates": _coordinates(graph),
        "labels": None if graph.labels is None else "whole numbers" if graph.labels.dtype.kind in "iu" else "text",
        "label_column": graph.origin and graph.origin.label_column,
        "zones": graph.outlines is not None,
        "names": graph.names is not None,
        "bends": graph.curves is not None,
        "bytes": _bytes(graph),
        "hash": graph.hash,
    }


def _range(values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return {"least": 0, "mean": 0.0, "most": 0}
    return {"least": values.min(), "mean": float(values.mean()), "most": values.max()}


def _coordinates(graph: Graph) -> dict[str, Any] | None:
    if graph.coords is None:
        return None
    low, high = (graph.coords.min(axis=0), graph.coords.max(axis=0)) if graph.n else ([], [])
    converted_from = None if graph.origin is None else graph.origin.crs
    return {
        "crs": graph.crs or "planar",
        "converted_from": converted_from,
        "dimensions": graph.coords.shape[1],
        "from": low,
        "to": high,
    }


def _bytes(graph: Graph) -> int:
    matrix = graph.adjacency
    return sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr, graph.coords, graph.labels) if part is not None)


def _format_bytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB." if size >= 1e6 else f"{size / 1e3:,.1f} kB."


def _labels(facts: dict[str, Any]) -> str:
    if facts["labels"] is None:
        return (
            "none: events need places, or name the column of ids: --zone-label."
            if facts["zones"]
            else "none: nodes are 0, 1, 2, ..."
        )
    return f"{facts['labels']}{'' if facts['label_column'] is None else ', of the column ' + facts['label_column']}."


def _summary(facts: dict[str, Any]) -> dict[str, str]:
    degrees, weights, coordinates, components = (facts[name] for name in ("degrees", "weights", "coordinates", "components"))
    is_connected = components["count"] == 1
    box = (
        "" if coordinates is None else " to ".join(f"({', '.join(f'{x:.6g}' for x in coordinates[end])})" for end in ("from", "to"))
    )
    kind = "" if coordinates is None else "degrees of longitude and latitude" if coordinates["crs"] == "lonlat" else "a plane"
    if coordinates is not None and coordinates["converted_from"] is not None:
        kind += f", converted from {coordinates['converted_from']}"
    return {
        "Size": f"{facts['nodes']:,} nodes, {facts['edges']:,} edges.",
        "Components": "one: every node can be reached from every other."
        if is_connected
        else f"{components['count']:,}; the largest has {components['largest']:,} nodes.",
        "Degrees": f"{degrees['least']:,} to {degrees['most']:,}, {degrees['mean']:.2f} on average; {degrees['isolated']:,} nodes without any edge.",
        "Weights": "every edge weighs 1."
        if weights is None
        else f"{weights['least']:.4g} to {weights['most']:.4g}, {weights['mean']:.4g} on average.",
        "Spectrum": f"largest eigenvalue {facts['lambda_max']:.6g} ({facts['lambda_max_from']}), at most {facts['lambda_upper']:.6g} "
        f"({facts['lambda_upper_from']}).",
        "Scales": f"{facts['scales']} in the wavelet frame.",
        "Coordinates": "none: no maps, and events need node labels." if coordinates is None else f"{kind}, {box}.",
        "Labels": _labels(facts),
        "Streets": f"names {'are known' if facts['names'] else 'are not known'}; edges {'bend' if facts['bends'] else 'are straight lines'}.",
        "Memory": _format_bytes(facts["bytes"]),
        "Hash": facts["hash"],
    }
