"""hushgraph plan-release: what an epsilon buys, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hushgraph.cli.graph_options import GraphReading
from hushgraph.cli.options import AUTO, Adjacency, AsJson, Mechanism, Method, Quiet, grouped, method_name
from hushgraph.cli.terminal import open_terminal

GUIDED = ("error_guided", "snr_guided")  # facts of plans with --after alone


@grouped
def command(
    graph_file: Annotated[
        Path | None, typer.Argument(metavar="[GRAPH]", help="The public graph of the map. Default: a generated city.")
    ] = None,
    *,
    epsilon: Annotated[
        list[float] | None, typer.Option(metavar="<float>", help="May be given several times. Default: 0.1, 0.2, 0.5, 1, 2.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Far smaller than one in the number of people.")] = 1e-6,
    adjacency: Annotated[Adjacency, typer.Option(help="As in hushgraph release.")] = Adjacency.add_remove,
    max_nodes: Annotated[int | None, typer.Option(help="Places one person may count in. Default: 1.")] = None,
    max_per_node: Annotated[int | None, typer.Option(help="Times one person may count in each. Default: 1.")] = None,
    n_windows: Annotated[int | None, typer.Option(min=1, help="Number of time windows, if there are any.")] = None,
    max_cells: Annotated[
        int | None, typer.Option(help="With windows: places and windows one person may count in. Default: 1.")
    ] = None,
    max_per_cell: Annotated[int | None, typer.Option(help="With windows: times one person may count in each. Default: 1.")] = None,
    expected_total: Annotated[
        float | None, typer.Option(help="A public guess of the number of events. Default: 3 per place.")
    ] = None,
    reliable: Annotated[float, typer.Option(help="Relative error at which a total counts as reliable.")] = 0.1,
    mechanism: Annotated[Mechanism, typer.Option(help="analytic adds less noise for the same guarantee.")] = Mechanism.analytic,
    method: Annotated[Method, typer.Option(help="Method of denoising.")] = AUTO,
    after: Annotated[
        int | None,
        typer.Option(
            min=1, help="Also say what this many earlier maps of the same kind gain as guides (--guide of hushgraph release)."
        ),
    ] = None,
    reading: GraphReading,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what errors to expect of a release, from public inputs and generated counts: no data is read, nothing is charged."""
    with open_terminal("plan-release", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.privacy import PLANNED_EPSILONS, cap_names, plan_release

        terminal.text_when_interrupted = "nothing was charged"
        graph = None if graph_file is None else reading.graph(terminal, graph_file)
        caps = {"max_nodes": max_nodes, "max_per_node": max_per_node, "max_cells": max_cells, "max_per_cell": max_per_cell}
        names = cap_names(windows=n_windows is not None)
        missing = [name for name in names if caps[name] is None]
        if missing:
            options = " and ".join("--" + name.replace("_", "-") for name in names)
            terminal.note(f"1 is taken where {options} are not given; plan with those of the release")
        caps |= dict.fromkeys(missing, 1)
        with terminal.watching("Trying releases on generated counts"):
            plan = plan_release(
                graph, epsilon=epsilon or PLANNED_EPSILONS, delta=delta, adjacency=adjacency.value, max_nodes=caps["max_nodes"],
                max_per_node=caps["max_per_node"], max_cells=caps["max_cells"], max_per_cell=caps["max_per_cell"],
                n_windows=n_windows, expected_total=expected_total, reliable=reliable, mechanism=mechanism.value, method=method_name(method),
                after=after,
            )  # fmt: skip
        if not (as_json or quiet):
            typer.echo(str(plan))
        facts = asdict(plan)
        if after is None:
            del facts["after"]
            facts["rows"] = [{name: value for name, value in row.items() if name not in GUIDED} for row in facts["rows"]]
        terminal.result(facts)
