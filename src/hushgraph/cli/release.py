"""hushgraph release: events and a public graph in, a folder that may be published out. One charge, one draw."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph._atomic import atomic_file
from hushgraph._errors import HushgraphError, StateError
from hushgraph.cli.event_options import Counting, Windows
from hushgraph.cli.failures import BAD_INPUT, sentence_of
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.guide_options import Guides, guide_facts, guide_line
from hushgraph.cli.options import (
    AUTO,
    Adjacency,
    AsJson,
    Force,
    KeyFile,
    MapTexts,
    Mechanism,
    Method,
    Quiet,
    Report,
    WeakGuarantee,
    grouped,
    key_of,
    method_name,
    words_of,
)
from hushgraph.cli.outputs import checked_folder, checked_report, written, written_folder
from hushgraph.cli.terminal import Terminal, open_terminal

if TYPE_CHECKING:
    from hushgraph.estimators import Denoised, MethodName
    from hushgraph.graphs import Graph
    from hushgraph.privacy import CountMap, Ledger, Release, ReleaseRequest

_Places = Sequence[
    Callable[[], str | Path]
]  # folders for a paid release if its own place fails; asked for one at a time, since that may fail too
_BUDGET, _OUTPUT = "Budget", "What comes out"
_CHECK_FIRST = (  # whatever the events are: a release says nothing that depends on them
    "rows that are not understood are left out, and a release never tells how many; to see it on your screen before anything is charged: "
)
_SIGNALS_TO_END = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_SIMPLER_METHODS = ("auto", "let", "sgwt_sure")  # tried in this order if the method fails after the charge
_STOPPING = b"\nStopping. If the budget was charged a moment ago, the files are finished first. Ctrl-C again stops at once.\n"
_FINISHING = b"\nThe budget is charged: the files are finished first, so that nothing is lost. Ctrl-C again drops the release.\n"


@grouped
def command(
    graph_file: GraphFile,
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS", help="Private events, one row each: .csv, .csv.gz or .parquet; may be larger than memory."
        ),
    ],
    *,
    epsilon: Annotated[
        float, typer.Option(help="What this release spends: smaller is more private; 0.1 to 2 are usual.", rich_help_panel=_BUDGET)
    ],
    ledger_file: Annotated[
        Path, typer.Option("--ledger", help="The budget, made by hushgraph budget create; charged first.", rich_help_panel=_BUDGET)
    ],
    public_graph: Annotated[
        bool,
        typer.Option(
            "--public-graph",
            help="You confirm that graph, windows and bounds were fixed without looking at the events. Needed.",
            rich_help_panel=_BUDGET,
        ),
    ] = False,
    delta: Annotated[
        float | None,
        typer.Option(help="Far smaller than one in the number of people. Default: the budget's.", rich_help_panel=_BUDGET),
    ] = None,
    mechanism: Annotated[
        Mechanism, typer.Option(help="analytic adds less noise for the same guarantee.", rich_help_panel=_BUDGET)
    ] = Mechanism.analytic,
    weak_guarantee: WeakGuarantee = False,
    adjacency: Annotated[
        Adjacency | None, typer.Option(help="What is hidden; must be what the ledger says, its default.", rich_help_panel=_BUDGET)
    ] = None,
    key_file: KeyFile = None,
    counting: Counting,
    windowed: Windows,
    guiding: Guides,
    reading: GraphReading,
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder for the release.", rich_help_panel=_OUTPUT)],
    method: Annotated[Method, typer.Option(help="How the denoised map is made.", rich_help_panel=_OUTPUT)] = AUTO,
    not_protected: Annotated[
        str | None, typer.Option(help="Who is not covered, for the certificate: drivers, say.", rich_help_panel=_OUTPUT)
    ] = None,
    attribution: Annotated[
        str | None, typer.Option(help="Source of the graph: '© OpenStreetMap contributors', say.", rich_help_panel=_OUTPUT)
    ] = None,
    note: Annotated[str | None, typer.Option(help="A remark for the ledger. Public.", rich_help_panel=_OUTPUT)] = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe",
            help="Write an apostrophe before labels that a spreadsheet could take for formulas (=, +, -, @) or split (semicolons).",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    report: Report = None,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Leave report.html out of the folder.", rich_help_panel=_OUTPUT)
    ] = False,
    maps: MapTexts,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count private events, charge the budget, add noise once, denoise, and write a folder that may be published."""
    with open_terminal("release", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.estimators import check_method
        from hushgraph.privacy import ReleaseRequest

        terminal.text_when_interrupted = "nothing was charged, nothing was written"
        check_graph_first("release", graph_file, events)
        checked_folder(output, force=force)
        checked_report(report, output, force=force)
        maps.check()
        ledger = _opened(ledger_file, counting, adjacency, key_file)
        budget = ledger.last_snapshot
        request = ReleaseRequest(
            epsilon=epsilon,
            delta=budget.delta if delta is None else delta,
            mechanism=mechanism.value,
            public_graph=public_graph,
            weak_guarantee=weak_guarantee,
        ).checked(budget)  # before minutes of counting; the charge checks again
        graph = reading.graph(terminal, graph_file, streets=guiding.street_guides)
        graph_words = [str(graph_file), *words_of(reading)]  # how other commands read the same graph
        check_method(graph, method_name(method))
        guides = _checked_guides(terminal, guiding, graph, method_name(method))
        checked = replace(counting, unit=None if counting.assume_bound else ledger.unit)
        terminal.note(
            _CHECK_FIRST + shlex.join(["hushgraph", "check", str(graph_file), str(events), *words_of(checked, windowed, reading)])
        )
        counts = counting.counts(terminal, events, graph, ledger, windowed=windowed)
        with DeferredInterrupt() as interrupt:
            texts = {"not_protected": not_protected, "attribution": attribution, "note": note}
            published = _drawn(terminal, counts, request, ledger, texts, interrupt)
            del counts
            spare_places = (lambda: output.absolute().parent, tempfile.gettempdir, lambda: ledger.path.parent, Path.home, Path.cwd)
            with terminal.watching("Denoising and writing"):
                result = _denoised(terminal, published, method_name(method), guides, spare_places)
                folder = _exported(
                    terminal, published, result, output, spare_places, force=force, spreadsheet_safe=spreadsheet_safe
                )
            done = f"the budget was charged, and the whole release is in {folder}"
            terminal.already_done, terminal.text_when_interrupted = "", done
            wanted = _wanted_reports(folder, report, graph, no_report=no_report)
            pages: list[Path] = []
            if wanted and not interrupt.requested:
                terminal.text_when_interrupted = "the report was not finished"
                terminal.already_done = f"{done}: only the report is missing ({shlex.join(['hushgraph', 'denoise', *graph_words, str(folder)])} --report ...)"
                with terminal.working("Writing the report"):
                    pages = _write_reports(folder, wanted, published, result, maps, force=force)
                terminal.already_done, terminal.text_when_interrupted = "", done
        if interrupt.requested:
            missing = " and ".join(str(path) for path in wanted if path not in pages)
            terminal.text_when_interrupted += f", without {missing}" * bool(missing)
            raise KeyboardInterrupt
        key_words = [] if key_file is None else ["--key-file", str(key_file)]
        verify = shlex.join(["hushgraph", "verify", str(folder), *graph_words, "--ledger", str(ledger.path), *key_words])
        _show(terminal, published, result, ledger, folder, pages, verify, is_guided=guides is not None)
        if folder != output:
            raise typer.Exit(BAD_INPUT)  # a script that goes on with `output` must stop


def _checked_guides(terminal: Terminal, guiding: Guides, graph: Graph, method: MethodName) -> list[Any] | None:
    """Return the guides, or None without any; those that could not be used are an error now, before the charge."""
    from hushgraph.privacy import check_guides

    guides = guiding.read(terminal, graph, method)
    if guides is not None:
        check_guides(graph, guides, method=method)
    return guides


def _opened(path: Path, counting: Counting, adjacency: Adjacency | None, key_file: Path | None) -> Ledger:
    """Open the ledger, which must protect whom the command says."""
    from hushgraph.privacy import Ledger

    relation = None if adjacency is None else adjacency.value
    return Ledger.open(path, dataset=counting.dataset, unit=counting.unit, adjacency=relation, key=key_of(key_file))


def _drawn(
    terminal: Terminal,
    counts: CountMap,
    request: ReleaseRequest,
    ledger: Ledger,
    texts: dict[str, Any],
    interrupt: DeferredInterrupt,
) -> Release:
    """Charge the ledger and draw the noise; the terminal is told whether the budget was charged, whatever goes wrong here or later."""
    from hushgraph._progress import watching
    from hushgraph.privacy import release

    text_before = terminal.text_when_interrupted

    def watch(share: float, what: str) -> None:
        if share > 0:  # release() reports 0 until the budget is charged, also while it waits for another process
            interrupt.is_charged = True
            charge = f"the budget was charged for it (entry {ledger.last_snapshot.entry} of {ledger.path.name})"
            terminal.already_done = f"{charge}, and the charge stays"
        elif interrupt.requested and not interrupt.is_charged:
            terminal.already_done, terminal.text_when_interrupted = "", text_before
            raise KeyboardInterrupt
        show(share, what)

    with terminal.working("Charging the budget and drawing the noise", total=1.0) as show, watching(watch):
        terminal.text_when_interrupted = "the release was not finished"
        terminal.already_done = (
            f"whether the budget was charged is not known; hushgraph budget show {shlex.quote(str(ledger.path))} tells it"
        )
        try:
            return release(counts, **asdict(request), ledger=ledger, **texts)
        except HushgraphError:
            if not interrupt.is_charged:  # all errors of release() before the charge are of this kind, and say what is wrong
                terminal.already_done = ""
            raise


class DeferredInterrupt:
    """Defers Ctrl-C, SIGTERM and SIGHUP while a release is charged and its files are written. A second Ctrl-C stops at once.

    Whoever waits before the charge asks for `requested` and stops; after the charge the files are finished first.
    """

    def __init__(self) -> None:
        self.requested = self.is_charged = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS_TO_END:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):  # None: a handler that Python cannot put back
                    self._before[number] = signal.signal(number, self._defer)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _defer(self, number: int, *_: object) -> None:
        if self.requested:
            if number == signal.SIGINT:  # a shell passes SIGHUP on, so that it comes twice; only a person says Ctrl-C twice
                raise KeyboardInterrupt
            return
        self.requested = True
        try:
            os.write(2, _FINISHING if self.is_charged else _STOPPING)  # print is not for signal handlers
        except OSError:  # the terminal is gone, and everything that is printed from now on would fail
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


# ---- after the charge -------------------------------------------------------------------------------------------------


def _denoised(
    terminal: Terminal, published: Release, method: MethodName, guides: list[Any] | None, spare_places: _Places
) -> Denoised:
    """Return the denoised map. The release is paid for: if guides or method fail, simpler methods are tried, and then the noisy values are saved."""
    from hushgraph.estimators import denoise

    options: list[dict[str, Any]] = [{"method": method}, *({"method": name} for name in _SIMPLER_METHODS if name != method)]
    if guides is not None:
        options.insert(0, {"method": method, "guides": guides})
    failures: list[str] = []
    for chosen in options:
        try:
            result = denoise(published.graph, published, nonnegative=True, **chosen)
        except Exception as error:
            failures.append(
                f"{'the guides' if 'guides' in chosen else chosen['method']} failed ({sentence_of(error, 'release')[0]})"
            )
            continue
        if failures:
            means = "without guides, " * (guides is not None) + f"by the method {chosen['method']}"
            terminal.note(f"the release is paid for, so it was denoised {means}: {'; '.join(failures)}", always=True)
        return result
    msg = f"the release could not be denoised: {'; '.join(failures)}; {_values_saved(published, spare_places)}"
    raise StateError(msg)


def _exported(
    terminal: Terminal,
    published: Release,
    result: Denoised,
    output: Path,
    spare_places: _Places,
    *,
    force: bool,
    spreadsheet_safe: bool,
) -> Path:
    """Write the release and return its folder: `output`, or, since it is paid for, a new folder in another place if that fails now."""
    from hushgraph.privacy import export

    options: dict[str, Any] = {"method": result.method, "denoised": result, "spreadsheet_safe": spreadsheet_safe}
    try:
        with written_folder(output, force=force) as folder:
            export(published, folder, **options)
    except Exception as error:
        reason = "it exists by now" if isinstance(error, FileExistsError) else sentence_of(error, "release")[0]
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
    else:
        return output
    spare = _saved_elsewhere(spare_places, lambda folder: export(published, folder / output.name, **options))
    if spare is None:
        msg = f"{output} could not be written ({reason}), nor could the whole release elsewhere; {_values_saved(published, spare_places)}"
        raise StateError(msg)
    terminal.note(f"{output} could not be written ({reason}); the release is paid for, so it was saved in {spare}", always=True)
    return spare


def _values_saved(published: Release, spare_places: _Places) -> str:
    """Save the noisy values alone, a small file, and return where they are, in words."""
    import numpy as np

    def save(folder: Path) -> Path:
        with atomic_file(folder / "noisy.npy", sync=True) as draft:
            np.save(draft, published.values, allow_pickle=False)
        return folder / "noisy.npy"

    file = _saved_elsewhere(spare_places, save)
    if file is None:
        places = "beside the output, with the temporary files, beside the ledger, in the home folder, in the current folder"
        return f"the noisy values could not be saved either ({places}) and are lost; make room before the next release"
    command = f"hushgraph denoise GRAPH {shlex.quote(str(file))} --sigma {published.noise_level:.6g} --nonnegative -o FILE"
    return f"the noisy values are in {file}, in the order of the nodes; {command} denoises them"


def _saved_elsewhere(spare_places: _Places, save: Callable[[Path], Path]) -> Path | None:
    """Return what `save` wrote into a new folder, in the first place where that works; None if it works nowhere."""
    for place in spare_places:
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="hushgraph-release-", dir=place()))
            return save(folder)
        except BaseException as error:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, Exception):
                raise
    return None


def _wanted_reports(folder: Path, report: Path | None, graph: Graph, *, no_report: bool) -> list[Path]:
    """Return the paths of the reports: in the folder of the release, where --report says, or both; --report may also name the one in the folder."""
    from hushgraph.privacy import REPORT

    if report is not None and report.absolute() == (folder / REPORT).absolute():
        return [folder / REPORT]
    in_folder = [] if no_report or graph.coords is None else [folder / REPORT]
    return in_folder if report is None else [*in_folder, report]


def _write_reports(
    folder: Path, wanted: list[Path], published: Release, result: Denoised, maps: MapTexts, *, force: bool
) -> list[Path]:
    """Write the reports, and return the paths of those written.

    A report in the folder that fails is a note: the release is complete without it.
    """
    from hushgraph.plotting import write_report
    from hushgraph.privacy import REPORT, add_report, certificate_with_map

    inside = folder / REPORT
    page = add_report(folder, published, result, maps.arguments()) if inside in wanted else None
    for elsewhere in (path for path in wanted if path != inside):
        with written(elsewhere, force=force) as draft:
            if page is not None:
                shutil.copyfile(page, draft)
            else:
                certificate = certificate_with_map(published, result, method=result.method, nonnegative=True, integer=False)
                write_report(draft, published.graph, published, result, certificate=certificate, **maps.arguments())
    return [path for path in wanted if path != inside or page is not None]


# ---- words ------------------------------------------------------------------------------------------------------------


def _show(
    terminal: Terminal,
    published: Release,
    result: Denoised,
    ledger: Ledger,
    folder: Path,
    pages: list[Path],
    verify: str,
    *,
    is_guided: bool,
) -> None:
    """Show what was done, for the data owner; every word follows from public choices, those on guides from the public map too."""
    budget, left = ledger.last_snapshot.budget(), ledger.last_snapshot.remaining()  # as the charge left it
    files = [folder / "map.csv", folder / "certificate.json", *pages]
    lines = _lines(published, budget, left)
    terminal.story({**lines, **(guide_line(result) if is_guided else {}), "Files": ", ".join(map(str, files)), "Verify": verify})
    terminal.result(
        {
            "output": folder,
            "files": files,
            "epsilon": published.epsilon,
            "delta": published.delta,
            "sigma": published.sigma,
            "unit": published.unit,
            "adjacency": published.adjacency,
            "bound": published.bound,
            "sensitivity_squared": str(published.sensitivity_squared),
            "ledger": {"path": ledger.path, "entry": published.ledger["entry"], "head": published.ledger["head"]},
            "budget": {**budget, "remaining": left},
            "attribution": published.attribution,
            "guides": guide_facts(result) if is_guided else [],
        }
    )


def _lines(published: Release, budget: dict[str, Any], left: float) -> dict[str, str]:
    """Return titles and sentences on a release."""
    from hushgraph.estimators import INTERVAL_LEVEL
    from hushgraph.privacy import guarantee_in_words

    unit = published.unit
    most, each = published.caps.values()
    places = "nodes" if published.windows is None else "pairs of node and window"
    grounds = "enforced while counting" if published.bound == "enforced" else "ASSUMED, since there are no ids: nothing was cut"
    example = "if the streets are OpenStreetMap's, add --attribution '© OpenStreetMap contributors'"
    if published.graph.outlines is not None:
        example = "if the zones have a source that is to be named, add it with --attribution"
    return {
        "Guarantee": guarantee_in_words(published.epsilon, delta=published.delta, unit=unit, adjacency=published.adjacency),
        "Bound": f"each {unit} counts in at most {most:,} {places}, {'once' if each == 1 else f'{each:,} times'} in each; {grounds}.",
        "Not covered": published.not_protected
        or "not stated; say with --not-protected who else appears in the data (drivers, say).",
        "Noise": f"{published.sigma:.4g} per value (standard deviation), from the operating system's entropy, drawn once.",
        "Intervals": f"about {100 * INTERVAL_LEVEL:g} % of the true counts are expected between lower and upper of map.csv, an estimate.",
        "Budget": f"epsilon {budget['spent']:.4g} of {budget['epsilon']:g} is spent (delta {budget['delta']:g}); "
        + (f"one more release of epsilon {left:.4g} at most." if left > 0 else "nothing is left."),
        "Attribution": published.attribution or f"none given; {example} and publish that with the map.",
    }
