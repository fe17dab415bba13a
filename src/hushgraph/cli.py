"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="hushgraph",
    help="Denoise signals on very large graphs, and publish them privately.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,  # locals may hold private data
)


@app.callback()
def main() -> None:
    """Denoise signals on very large graphs, and publish them privately."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo"),
    nodes: Annotated[int, typer.Option(min=100, help="Junctions of the generated city.")] = 4600,
    sigma: Annotated[float, typer.Option(min=1e-6, help="Standard deviation of the noise.")] = 4.22,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city, its pickups and the noise.")] = 0,
) -> None:
    """Generate a city, add noise, denoise, print what was gained and draw the maps."""
    from rich.console import Console

    from hushgraph.experiments import demo as experiment

    console = Console()
    with console.status("Generating a city and denoising it (the very first run also compiles, up to a minute) ..."):
        result = experiment.run(n_nodes=nodes, sigma=sigma, seed=seed)
        picture = experiment.render(result, out)
    for table in _demo_tables(result, sigma):
        console.print(table)
    best = result.rows[-1]
    share = best.true_error / (result.graph.n * sigma**2)
    console.print(
        f"\n{best.method} removed {1 - share:.0%} of the noise energy. Its estimated error never saw the truth; it is a little "
        "optimistic, because the thresholds were chosen to make it small. Times are those of a second run."
    )
    console.print(f"Picture: [bold]{picture}[/bold]")


def _demo_tables(result, sigma: float):
    from rich.table import Table

    graph = result.graph
    gains = Table(title=f"Generated city, {graph.n:,} junctions, {graph.n_edges:,} streets, noise sigma = {sigma:g}")
    for column in ("method", "SNR in", "SNR out", "estimated error²", "true error²", "time"):
        gains.add_column(column, justify="left" if column == "method" else "right")
    stages = Table(title="Time per stage, milliseconds")
    names = [stage for stage in result.rows[-1].result.timings if stage != "total"]
    for column in ("method", *names, "total"):
        stages.add_column(column, justify="left" if column == "method" else "right", no_wrap=column == "method")
    for row in result.rows:
        found = row.result
        gains.add_row(
            row.method, f"{row.snr_in:.2f} dB", f"[bold]{row.snr_out:.2f} dB[/bold]", f"{found.risk:,.0f} ± {found.risk_se:,.0f}",
            f"{row.true_error:,.0f}", f"{found.timings['total'] * 1e3:.0f} ms",
        )  # fmt: skip
        stages.add_row(row.method, *(f"{found.timings.get(stage, 0.0) * 1e3:.1f}" for stage in (*names, "total")))
    return gains, stages
