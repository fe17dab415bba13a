"""hushgraph denoise: removes noise from the values in a file and writes them to another file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hushgraph._errors import InputError
from hushgraph.cli.graph_options import GraphFile, GraphReading
from hushgraph.cli.guide_files import refuse_release_file
from hushgraph.cli.guide_options import Guides, guide_facts, guide_line
from hushgraph.cli.options import AUTO, AsJson, Device, Force, Method, Metres, Quiet, Report, grouped, method_name
from hushgraph.cli.outputs import checked_file, checked_report, written
from hushgraph.cli.terminal import Terminal, open_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushgraph.estimators import Denoised, TypicalError
    from hushgraph.graphs import Graph

_NOISE, _OUTPUT, _SIGNAL = "What is known", "What comes out", "How the signal is read"


class Missing(StrEnum):
    error = "error"
    drop = "drop"
    fill = "fill"


@grouped
def command(
    graph_file: GraphFile,
    signal_file: Annotated[
        Path,
        typer.Argument(
            metavar="SIGNAL",
            help="Values: .csv, .tsv, .parquet (matched by node label), .npy (in node order), or a release's folder.",
        ),
    ],
    *,
    sigma: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise. Estimated if not given; known for a release.", rich_help_panel=_NOISE),
    ] = None,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="The true values are counts or cannot be negative.", rich_help_panel=_NOISE)
    ] = False,
    integer: Annotated[bool, typer.Option("--integer", help="Round to whole numbers.", rich_help_panel=_NOISE)] = False,
    method: Annotated[Method, typer.Option(help="auto is nearly always the right choice.", rich_help_panel=_NOISE)] = AUTO,
    device: Annotated[
        Device, typer.Option(help="gpu: an NVIDIA card, with the extra cuda; for large graphs.", rich_help_panel=_NOISE)
    ] = Device.cpu,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to denoise; may be given several times. Default: all but places and expected errors.",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of the node labels, if it is not found by itself.", rich_help_panel=_SIGNAL)
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="Nodes without a value or a row: an error, left out, or filled from their neighbours.", rich_help_panel=_SIGNAL
        ),
    ] = Missing.error,
    in_sequence: Annotated[
        bool | None,
        typer.Option(
            "--in-sequence/--separate",
            help="Whether each column is like the next, as hours of a day are. Default: of a release over windows.",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    guiding: Guides,
    reading: GraphReading,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .csv, .tsv, .parquet or .npy.", rich_help_panel=_OUTPUT)
    ],
    report: Report = None,
    metres: Metres = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Remove noise from values on the nodes of a graph, without training or tuning, and estimate the error that is left."""
    with open_terminal("denoise", as_json=as_json, quiet=quiet) as terminal:
        checked_file(output, force=force)
        _check_names(signal_file, output)
        checked_report(report, output, force=force)
        if device is Device.gpu:
            from hushgraph.core import current_device

            current_device()  # raises an error before anything is read
        graph = reading.graph(terminal, graph_file, streets=guiding.street_guides)
        with terminal.working("Reading the signal"):
            from hushgraph.estimators import denoise

            noisy, names = _read_noisy(terminal, graph, signal_file, column or [], label, missing_ok=missing is not Missing.error)
        _check_columns(output, names)
        guides = guiding.read(terminal, graph, method_name(method))
        gaps = missing is not Missing.error and guides is None
        columns = _column_ties(in_sequence, method, device, may_have_gaps=gaps)
        with terminal.watching(f"Denoising {graph.n:,} nodes"):
            run = _denoise_on_gpu if device is Device.gpu else denoise
            result = run(
                graph, noisy, sigma=sigma, method=method_name(method), missing=missing.value,
                columns=columns, nonnegative=nonnegative, integer=integer, guides=guides,
            )  # fmt: skip
        with terminal.working("Writing"):
            _write(output, graph, result, names, force=force)
            terminal.stopped = f"{output} was written"
            if report is not None:
                certificate = None
                if guides is not None and signal_file.is_dir():
                    from hushgraph.privacy import certificate_with_map

                    certificate = certificate_with_map(
                        noisy, result, method=result.method, nonnegative=nonnegative, integer=integer
                    )
                _write_report(report, graph, noisy, result, signal_file.name, metres, certificate, force=force)
        _report(terminal, graph, result, names, output, report)


def _column_ties(
    in_sequence: bool | None, method: str, device: Device, *, may_have_gaps: bool
) -> Literal["series", "path", "separate"] | None:
    """Return how columns belong together: in sequence each guides the others, as the windows of a release do.

    A node with gaps in some columns would be left out of all of them then; columns with gaps are denoised on one product graph.
    """
    from hushgraph.estimators import METHODS

    if in_sequence is None:
        return None
    can_guide = METHODS[method_name(method)].takes_guides and device is Device.cpu and not may_have_gaps
    return "separate" if not in_sequence else "series" if can_guide else "path"


def _denoise_on_gpu(graph: Graph, noisy: Any, *, sigma: Any, columns: Any, **settings: Any) -> Denoised:
    """Denoise on the GPU, and return the result in the memory of the computer."""
    from hushgraph.core import cupy
    from hushgraph.estimators import denoise
    from hushgraph.graphs import Noisy

    if isinstance(noisy, Noisy):
        columns = columns or ("separate" if noisy.windows is None else "path")
        noisy, sigma = noisy.opened(graph, sigma)
    return denoise(graph, cupy().asarray(noisy), sigma=sigma, columns=columns, **settings).on_host()


def _check_names(signal_file: Path, output: Path) -> None:
    """Raise an error for files that cannot be read or written, before any work is done."""
    from hushgraph.files import signal_format

    refuse_release_file(signal_file)
    signal_format(output)
    if not signal_file.is_dir():
        signal_format(signal_file)


def _read_noisy(
    terminal: Terminal, graph: Graph, path: Path, columns: list[str], label: str | None, *, missing_ok: bool
) -> tuple[Any, list[str]]:
    """Return the noisy signal, a release if `path` is a folder, and the names of its columns."""
    from hushgraph.files import read_named_signal

    if path.is_dir():
        from hushgraph.privacy import read_release

        if columns or label:
            msg = f"{path} is a folder, taken for a release, which has no columns to choose; leave --column and --label out"
            raise InputError(msg)
        release = read_release(path, graph)
        return release, ["denoised"] if release.windows is None else [str(start) for start in release.windows[:-1]]
    signal = read_named_signal(path, graph, columns=columns or None, label=label, missing_ok=missing_ok)
    if not columns and len(signal.names) + len(signal.left_out) > 1:
        left_out = f"left out: {', '.join(signal.left_out)}; " * bool(signal.left_out)
        terminal.note(f"Columns denoised: {', '.join(signal.names)}; {left_out}say --column for others")
    values = signal.values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1:
        return values, ["denoised"]
    return values, signal.names or [f"column_{k + 1}" for k in range(values.shape[1])]


def _error_names(names: list[str]) -> list[str]:
    """Return the names of the columns with expected errors in the output."""
    return ["expected_error"] if len(names) == 1 else [f"{name}_expected_error" for name in names]


def _check_columns(output: Path, names: list[str]) -> None:
    """Raise an error if a signal has the name of a column with expected errors."""
    taken = [name for name in _error_names(names) if name in names]
    if taken and ".npy" not in output.suffixes:
        msg = (
            f"the output would have two columns called {taken[0]}: the signal of that name, and the expected error of another; "
            "rename the column, or denoise it by itself with --column"
        )
        raise InputError(msg)


def _write(output: Path, graph: Graph, result: Denoised, names: list[str], *, force: bool) -> None:
    """Write the denoised values and the expected error of each; a .npy file holds the values alone."""
    from hushgraph.files import write_signal

    signal, errors = (part.reshape(graph.n, -1).T for part in (result.signal, result.expected_error()))
    table = dict(zip(names, signal, strict=True))
    if ".npy" not in output.suffixes:
        table |= dict(zip(_error_names(names), errors, strict=True))
    with written(output, force=force) as draft:
        write_signal(draft, graph, table)


def _write_report(
    report: Path,
    graph: Graph,
    noisy: Any,
    result: Denoised,
    name: str,
    metres: float | None,
    certificate: dict[str, Any] | None,
    *,
    force: bool,
) -> None:
    from hushgraph.plotting import write_report

    with written(report, force=force) as draft:
        write_report(draft, graph, noisy, result, data=name, metres=metres, certificate=certificate)


def _error_left(typical: Sequence[TypicalError], *, is_sigma_estimated: bool) -> str:
    """Return the error that is left as text; `typical` has one error per signal."""
    known = [error for error in typical if error.is_known]
    sizes = [error.size for error in known]
    if not known:
        return "how large the error is cannot be said: the noise level is probably too high (see the note)."
    left = f"{sizes[0]:.3g}" if len(typical) == 1 else f"{min(sizes):.3g} to {max(sizes):.3g}"
    about = "below" if all(error.is_bound for error in known) else "of about"
    rest = len(typical) - len(known)
    more = f" ({rest} of {len(typical)} columns: not known, the noise level is probably too high)" * bool(rest)
    if_right = " and with an estimated noise level" * is_sigma_estimated
    return f"an error {about} {left} per value, estimated without the truth{if_right}{more}."


def _report(terminal: Terminal, graph: Graph, result: Denoised, names: list[str], output: Path, report: Path | None) -> None:
    """Print what was done, or write it as JSON."""
    import numpy as np

    noise = float(np.sqrt(np.mean(np.square(result.sigma))))
    typical = result.typical_errors
    for note in result.details.get("notes", []):
        terminal.note(note)
    lines = {
        "Graph": f"{graph.n:,} nodes, {graph.n_edges:,} edges.",
        "Noise": f"{noise:.4g} per value (standard deviation).",
        "Left": _error_left(typical, is_sigma_estimated=result.details["sigma_estimated"]),
        **guide_line(result),
        "Method": f"{result.method}, in {result.timings['total']:.2f} s.",
        "Files": str(output) if report is None else f"{output}, {report}",
    }
    terminal.story(lines)
    terminal.result(
        {
            "output": output,
            "report": report,
            "nodes": graph.n,
            "edges": graph.n_edges,
            "signals": names,
            "method": result.method,
            "sigma": noise,
            "risk": np.atleast_1d(result.risk),
            "risk_se": np.atleast_1d(result.risk_se),
            "typical_error": [error.size for error in typical],
            "typical_error_is_bound": [error.is_bound for error in typical],
            "typical_error_is_known": [error.is_known for error in typical],
            "guides": guide_facts(result),
            "seconds": result.timings["total"],
        }
    )
