"""hushgraph demo: a whole private release in a generated city."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushgraph.cli.options import AsJson, Quiet
from hushgraph.cli.sample import denoise_command
from hushgraph.cli.terminal import open_terminal

if TYPE_CHECKING:
    from hushgraph.experiments import Demo


def command(
    out: Annotated[Path, typer.Option(help="Folder for everything; files of an earlier demo are replaced.")] = Path("out/demo"),
    nodes: Annotated[int, typer.Option(min=100, help="Junctions of the generated city.")] = 4600,
    epsilon: Annotated[float, typer.Option(min=1e-3, max=10, help="Privacy budget of the release.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city and its trips; the noise of a release has none.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Generate a city and trips, count, release privately, denoise, certify, draw; and report what was gained."""
    with open_terminal("demo", as_json=as_json, quiet=quiet) as terminal:
        terminal.text_when_interrupted = f"a part of the demo may be in {out}; run it again to replace it"
        with terminal.working("A private release in a generated city"):
            from hushgraph.experiments import demo as experiment

            os.environ["HUSHGRAPH_STATE"] = str(out.absolute() / "state")  # the ledger of a demo leaves no trace outside its folder
            result = experiment.run(out, n_nodes=nodes, epsilon=epsilon, seed=seed)
            pictures = experiment.render(result)
        terminal.story(_summary(result, pictures))
        terminal.result(
            {
                "folder": result.folder,
                "files": result.files,
                "pictures": pictures,
                "nodes": result.graph.n,
                "edges": result.graph.n_edges,
                "trips": result.n_trips,
                "people": result.n_people,
                "epsilon": result.release.epsilon,
                "delta": result.release.delta,
                "sigma": result.release.sigma,
                "snr_noisy": result.snr_noisy,
                "snr_denoised": result.snr_denoised,
                "noise_energy_left": result.noise_energy_left,
            }
        )


def _summary(result: Demo, pictures: list[Path]) -> dict[str, str]:
    """Return what was done and gained, one line per key."""
    import numpy as np

    from hushgraph._geodesy import planar_coords
    from hushgraph.datasets import SAMPLE_SIGMA
    from hushgraph.privacy import guarantee_in_words

    graph, release, ledger = result.graph, result.release, result.ledger
    caps = release.caps
    coords = planar_coords(np.asarray(graph.coords), graph.crs)
    middle = np.linalg.norm(coords - np.median(coords, axis=0), axis=1) < 800
    return {
        "Data": f"{result.n_trips:,} generated trips of {result.n_people:,} people; {graph.n:,} junctions, {graph.n_edges:,} streets.",
        "Bound": f"each person counts in at most {caps['max_nodes']} junctions, {caps['max_per_node']} time in each: sensitivity² = "
        f"{release.sensitivity_squared}, enforced.",
        "Budget": f"charged before any noise was drawn: epsilon {ledger.spent:.3f} of {ledger.epsilon:g} spent (delta {ledger.delta:g}).",
        "Release": f"exact noise of sigma {release.sigma:.3f} on a lattice of {release.lattice:g}: SNR {result.snr_noisy:.1f} dB.",
        "Denoised": f"{result.snr_denoised:.1f} dB, from the release alone, in {result.denoised.timings['total']:.2f} s: "
        f"{1 - result.noise_energy_left:.0%} of the noise energy is gone.",
        "Totals": f"within 800 m of the middle, {middle.sum():,} junctions: {release.total(middle)} estimated, without bias (truth: "
        f"{result.truth[middle].sum():,.0f}).",
        "Guarantee": f"{guarantee_in_words(release.epsilon, delta=release.delta, unit=release.unit, adjacency=release.adjacency)} The "
        "truth was used for the numbers above only because these people do not exist.",
        "Files": f"{result.folder / 'release'}: map.csv (noisy, denoised, expected error, interval), certificate.json and report.html.",
        "Data files": f"{', '.join(map(str, result.files))}, as hushgraph sample writes them.",
        "Look at": f"{result.folder / 'release' / 'report.html'} (in a browser), {pictures[0]} and {pictures[1]}",
        "Try": denoise_command(result.files[0], result.files[2], sigma=SAMPLE_SIGMA),
    }
