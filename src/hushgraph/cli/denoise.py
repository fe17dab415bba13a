"""hushgraph denoise: removes noise from the values in a file and writes them to another file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hushgraph._errors import InputError
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.guide_files import refuse_release_file
from hushgraph.cli.guide_options import Guides, guide_facts, guide_line
from hushgraph.cli.options import AUTO, AsJson, Device, Force, MapTexts, Method, Quiet, Report, grouped, method_name
from hushgraph.cli.outputs import checked_file, checked_report, written
from hushgraph.cli.pictures import Picture, check_places, checked_picture, draw_picture
from hushgraph.cli.terminal import Terminal, open_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushgraph.estimators import Denoised, Totals, TypicalError
    from hushgraph.graphs import Graph, Regions

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
            metavar="<name>",
            help="Column to denoise; may be given several times. Default: all but places, expected errors and intervals.",
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
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .csv, .tsv, .parquet (a plain table, without shapes) or .npy; or .geojson or .gpkg, for QGIS and other map programs.",
            rich_help_panel=_OUTPUT,
        ),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Also write an interval for each value, as lower and upper; 0.9: it holds the true value of about 90 % of the nodes.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    report: Report = None,
    picture: Picture = None,
    regions: Annotated[
        Path | None,
        typer.Option(
            help="Regions for totals with errors: .geojson (polygons), or .csv with columns node and region. "
            "Written next to the output, as OUTPUT_regions.csv, with intervals of the level of --interval (default: 0.9).",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    maps: MapTexts,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Remove noise from values on the nodes of a graph, without training or tuning, and estimate the error that is left."""
    with open_terminal("denoise", as_json=as_json, quiet=quiet) as terminal:
        check_graph_first("denoise", graph_file, signal_file)
        checked_file(output, force=force)
        _check_names(signal_file, output)
        _check_interval(interval, output)
        checked_report(report, output, force=force)
        checked_picture(picture, output, force=force)
        maps.check()
        _check_regions(regions, output, device, force=force)
        if device is Device.gpu:
            from hushgraph.core import current_device

            current_device()  # raises an error before anything is read
        graph = reading.graph(terminal, graph_file, streets=guiding.street_guides)
        check_places(picture, graph)
        if is_layer := _is_layer(output, graph):
            interval = interval or _level()
        with terminal.working("Reading the signal"):
            from hushgraph.estimators import INTERVAL_LEVEL, denoise

            noisy, names = read_noisy(terminal, graph, signal_file, column or [], label, missing_ok=missing is not Missing.error)
        _check_columns(output, names, has_interval=interval is not None, has_noisy=is_layer)
        places = None if regions is None else _read_regions(terminal, regions, graph)
        guides = guiding.read(terminal, graph, method_name(method))
        gaps = missing is not Missing.error and guides is None
        columns = _column_ties(in_sequence, method, device, may_have_gaps=gaps)
        with terminal.watching(f"Denoising {graph.n:,} nodes"):
            run = _denoise_on_gpu if device is Device.gpu else denoise
            result = run(
                graph, noisy, sigma=sigma, method=method_name(method), missing=missing.value,
                columns=columns, nonnegative=nonnegative, integer=integer, guides=guides,
            )  # fmt: skip
        totals = None
        if places is not None:
            with terminal.watching(f"Denoising again for the errors of {len(places.names):,} totals"):
                totals = result.totals(places)
        with terminal.working("Writing"):
            _write(output, graph, noisy if is_layer else None, result, names, interval, force=force)
            terminal.text_when_interrupted, terminal.already_done = "the rest was not written", f"{output} is complete"
            if report is not None:
                certificate = None
                if guides is not None and signal_file.is_dir():
                    from hushgraph.privacy import certificate_with_map

                    certificate = certificate_with_map(
                        noisy, result, method=result.method, nonnegative=nonnegative, integer=integer
                    )
                _write_report(report, graph, noisy, result, signal_file.name, maps, certificate, force=force)
            if picture is not None:
                credit = getattr(noisy, "attribution", None)
                draw_picture(picture, graph, _drawn(graph, noisy, result, names), maps, attribution=credit, force=force)
            if totals is not None:
                _write_totals(_totals_file(output), totals, names, interval or INTERVAL_LEVEL, force=force)
        _report(terminal, graph, result, names, output, report, picture, interval, totals)


def _totals_file(output: Path) -> Path:
    """Return the file with the totals that belongs to an output."""
    return output.with_name(f"{output.stem}_regions.csv")


def _check_regions(regions: Path | None, output: Path, device: Device, *, force: bool) -> None:
    """Raise an error, before any work is done, if totals of regions cannot be computed or written."""
    if regions is None:
        return
    from hushgraph.files import check_region_file

    check_region_file(regions)
    target = _totals_file(output)
    if target.absolute() in (output.absolute(), regions.absolute()):
        msg = f"the totals are written to {target}, which is also the {'output' if target == output else 'file of regions'}; rename that one"
        raise InputError(msg)
    if device is Device.gpu:
        msg = "totals of --regions are computed on the CPU; leave --device gpu out"
        raise InputError(msg)
    checked_file(target, force=force)


def _read_regions(terminal: Terminal, path: Path, graph: Graph) -> Regions:
    """Return the regions of a file; a note says how many of them hold no node."""
    import numpy as np

    from hushgraph.files import read_regions

    regions = read_regions(path, graph)
    sizes = np.diff(regions.members.indptr)
    if not sizes.any():
        msg = f"no node of the graph is in a region of {path}; are both in the same coordinates?"
        raise InputError(msg)
    if not sizes.all():
        terminal.note(f"{int((sizes == 0).sum()):,} of {len(sizes):,} regions hold no node")
    return regions


def _totals_facts(output: Path, totals: Totals, level: float) -> dict[str, Any]:
    """Return the totals for JSON."""
    return {"regions": _totals_file(output), "totals_level": level, "totals": totals.table(level)}


def _write_totals(path: Path, totals: Totals, names: list[str], level: float, *, force: bool) -> None:
    """Write the totals as a table, with intervals of this level."""
    import csv

    columns = totals.table(level)
    if "column" in columns:
        columns["column"] = [names[k] for k in columns["column"]]
    with written(path, force=force) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            zip(*(getattr(column, "tolist", lambda column=column: column)() for column in columns.values()), strict=True)
        )


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
    from hushgraph.files import check_feature_file, is_feature_file, signal_format

    refuse_release_file(signal_file)
    signal_format(output, writing=True)
    if is_feature_file(output):
        check_feature_file(output)
    if not signal_file.is_dir():
        signal_format(signal_file)


def _is_layer(output: Path, graph: Graph) -> bool:
    """Return whether the output is a layer of a map; an error if the graph has no places for it."""
    from hushgraph.files import check_feature_file, is_feature_file

    if not is_feature_file(output):
        return False
    check_feature_file(output, graph)
    return True


def _level() -> float:
    from hushgraph.estimators import INTERVAL_LEVEL

    return INTERVAL_LEVEL


def _noisy_columns(graph: Graph, noisy: Any) -> Any:
    """Return the noisy values (n, m)."""
    from hushgraph.graphs import Noisy

    return (noisy.values if isinstance(noisy, Noisy) else noisy).reshape(graph.n, -1)


def _drawn(graph: Graph, noisy: Any, result: Denoised, names: list[str]) -> dict[str, Any]:
    """Return titles and signals of a picture: one noisy signal and its denoised one, or all denoised ones."""
    denoised = result.signal.reshape(graph.n, -1).T
    if len(names) == 1:
        return {"Noisy": _noisy_columns(graph, noisy)[:, 0], "Denoised": denoised[0]}
    return dict(zip(names, denoised, strict=True))


def read_noisy(
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


def _noisy_names(names: list[str]) -> list[str]:
    """Return the names of the columns with noisy values in a layer of a map."""
    return ["noisy"] if len(names) == 1 else [f"{name}_noisy" for name in names]


def _interval_names(names: list[str]) -> list[list[str]]:
    """Return the names of the columns with lower and with upper ends of intervals in the output."""
    return [[end] if len(names) == 1 else [f"{name}_{end}" for name in names] for end in ("lower", "upper")]


def _check_interval(level: float | None, output: Path) -> None:
    """Raise an error for a level that is no share, and for a file that has no place for intervals."""
    if level is None:
        return
    if not 0 < level < 1:
        hint = f"--interval {level / 100:g} is {level:g} %" if 1 < level < 100 else "--interval 0.9 is 90 %"
        raise InputError.about(argument="interval", expected="a share between 0 and 1", got=f"{level:g}", hint=hint)
    if ".npy" in output.suffixes:
        msg = f"--interval adds columns, and {output.name} holds the values alone; write .csv, .tsv or .parquet, or leave --interval out"
        raise InputError(msg)


def _check_columns(output: Path, names: list[str], *, has_interval: bool, has_noisy: bool) -> None:
    """Raise an error if a signal has the name of a column with expected errors, intervals or noisy values."""
    added = dict.fromkeys(_error_names(names), "the expected error")
    if has_noisy:
        added |= dict.fromkeys(_noisy_names(names), "the noisy value")
    if has_interval:
        added |= {name: "the interval" for ends in _interval_names(names) for name in ends}
    taken = [name for name in added if name in names]
    if taken and ".npy" not in output.suffixes:
        msg = (
            f"the output would have two columns called {taken[0]}: the signal of that name, and {added[taken[0]]} of another; "
            "rename the column, or denoise it by itself with --column"
        )
        raise InputError(msg)


def _write(output: Path, graph: Graph, noisy: Any, result: Denoised, names: list[str], level: float | None, *, force: bool) -> None:
    """Write the denoised values with the expected error and the interval of each; a .npy file holds the values alone.

    A layer of a map begins with the noisy values, which are None for other files.
    """
    from hushgraph.files import write_signal

    parts = [] if noisy is None else [(_noisy_names(names), _noisy_columns(graph, noisy))]
    parts.append((names, result.signal))
    if ".npy" not in output.suffixes:
        parts.append((_error_names(names), result.expected_error()))
    if level is not None:
        parts.extend(zip(_interval_names(names), result.interval(level), strict=True))
    table = {name: column for group, values in parts for name, column in zip(group, values.reshape(graph.n, -1).T, strict=True)}
    with written(output, force=force) as draft:
        write_signal(draft, graph, table)


def _write_report(
    report: Path,
    graph: Graph,
    noisy: Any,
    result: Denoised,
    name: str,
    maps: MapTexts,
    certificate: dict[str, Any] | None,
    *,
    force: bool,
) -> None:
    from hushgraph.plotting import write_report

    with written(report, force=force) as draft:
        write_report(draft, graph, noisy, result, data=name, certificate=certificate, **maps.arguments())


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


def _interval_line(level: float | None, result: Denoised) -> dict[str, str]:
    """Return a title and a sentence on what intervals mean; nothing without any."""
    if level is None:
        return {}
    if not any(error.is_known for error in result.typical_errors):
        return {"Intervals": "they cannot be trusted, since the error is not known (see the note)."}
    if_right = ", if the estimated noise level is right" * bool(result.details["sigma_estimated"])
    share, rest = f"{100 * level:g} %", f"{100 * (1 - level):.4g} %"
    return {
        "Intervals": f"the true value of about {share} of the nodes lies between lower and upper, that of about {rest} outside{if_right}."
    }


def _report(
    terminal: Terminal,
    graph: Graph,
    result: Denoised,
    names: list[str],
    output: Path,
    report: Path | None,
    picture: Path | None,
    level: float | None,
    totals: Totals | None,
) -> None:
    """Print what was done, or write it as JSON."""
    import numpy as np

    from hushgraph.estimators import INTERVAL_LEVEL

    noise = float(np.sqrt(np.mean(np.square(result.sigma))))
    typical = result.typical_errors
    for note in result.details.get("notes", []):
        terminal.note(note)
    lines = {
        "Graph": f"{graph.n:,} nodes, {graph.n_edges:,} edges.",
        "Noise": f"{noise:.4g} per value (standard deviation).",
        "Left": _error_left(typical, is_sigma_estimated=result.details["sigma_estimated"]),
        **_interval_line(level, result),
        **guide_line(result),
        "Method": f"{result.method}, in {result.timings['total']:.2f} s.",
        "Files": ", ".join(map(str, filter(None, (output, report, picture, totals and _totals_file(output))))),
    }
    terminal.story(lines)
    if totals is not None:
        head, *rows = totals.rows(names, level or INTERVAL_LEVEL)
        terminal.table(head, rows)
    terminal.result(
        {
            "output": output,
            "report": report,
            "picture": picture,
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
            "interval": level,
            "guides": guide_facts(result),
            "seconds": result.timings["total"],
            **({} if totals is None else _totals_facts(output, totals, level or INTERVAL_LEVEL)),
        }
    )
