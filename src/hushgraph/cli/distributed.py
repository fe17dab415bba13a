"""The commands `hushgraph distributed`: graphs larger than one machine or its memory."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.util import find_spec
from signal import SIG_IGN, SIGINT, signal as on_signal
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hushgraph._errors import HushgraphError, InputError
from hushgraph.cli.failures import UNEXPECTED
from hushgraph.cli.graph_options import Duplicates
from hushgraph.cli.options import AsJson, Quiet, grouped
from hushgraph.cli.terminal import Terminal, open_terminal
from hushgraph.estimators import distributed_methods

if TYPE_CHECKING:
    from hushgraph.distributed import DenoisedFiles, DistributedMethod

distributed_commands = typer.Typer(
    name="distributed",
    help="Denoise graphs beyond one machine or its memory: from parquet files, in partitions, with the same result to the bit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_GRAPH, _CLUSTER, _FRAME = "How the graph is read and cut", "Where it runs", "The wavelets"
_SHRINKING = "How coefficients shrink"
_PATIENCE = 10.0  # seconds to wait for the answer of a scheduler


class By(StrEnum):
    """How nodes are cut into partitions, where the edges are in files."""

    coordinates = "coordinates"
    ordering = "ordering"


class Laplacian(StrEnum):
    """The Laplacian of the wavelets, where it is symmetric."""

    combinatorial = "combinatorial"
    normalized = "normalized"


class Rule(StrEnum):
    """How coefficients shrink, where SURE holds."""

    james_stein = "james_stein"
    soft = "soft"
    power = "power"


class Law(StrEnum):
    """Distribution of the probes."""

    rademacher = "rademacher"
    gaussian = "gaussian"


# typer lists the members of an enumeration as choices; type checkers cannot read one that is made from a table
if TYPE_CHECKING:
    Method = str
else:
    Method = StrEnum("Method", {name: name for name in distributed_methods()})
DEFAULT_METHOD = Method("sgwt_scaled")

Edges = Annotated[
    list[str],
    typer.Argument(metavar="EDGES", help="Parquet files with columns source and target, folders of them, or addresses (s3://...)."),
]
Work = Annotated[str, typer.Argument(metavar="WORKDIR", help="The folder of a prepared graph, or its address (s3://...).")]


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """How the graph is read and cut: options of `plan` and `prepare`."""

    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes. Default: up to the largest one named.", rich_help_panel=_GRAPH)
    ] = None
    coords: Annotated[str | None, typer.Option(help="A .npy file with the places of the nodes.", rich_help_panel=_GRAPH)] = None
    by: Annotated[By | None, typer.Option(help="Boxes of coordinates, or ranges of node numbers.", rich_help_panel=_GRAPH)] = None
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Default: as many as the memory asks for.", rich_help_panel=_GRAPH)
    ] = None
    weight: Annotated[
        str | None, typer.Option(help="Column of the weights. Default: weight, if there is one.", rich_help_panel=_GRAPH)
    ] = None
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Every edge weighs 1.", rich_help_panel=_GRAPH)] = False
    most_ghosts: Annotated[
        float | None,
        typer.Option(
            help="Ghosts per owned node above which the graph is refused. Default: 3, or three quarters of all other nodes where "
            "there are few partitions (0.75 for 2, 2.25 for 4).",
            rich_help_panel=_GRAPH,
        ),
    ] = None
    degree: Annotated[int, typer.Option(help="Degree of the polynomials.", rich_help_panel=_FRAME)] = 100
    n_scales: Annotated[
        int | None,
        typer.Option(min=1, help="Number of scales. Default: as many as the largest eigenvalue asks for.", rich_help_panel=_FRAME),
    ] = None
    method: Annotated[Method, typer.Option(help="The method that tasks must have room for.", rich_help_panel=_FRAME)] = (
        DEFAULT_METHOD
    )
    memory: Annotated[str | None, typer.Option(help="What one task may take: 3GB, say.", rich_help_panel=_CLUSTER)] = None

    def settings(self) -> dict[str, Any]:
        """Return the arguments of `hushgraph.distributed.plan` and `prepare`."""
        options = asdict(self)
        return {
            **{name: options[name] for name in ("coords", "partitions", "most_ghosts", "degree", "n_scales", "memory")},
            "n": self.nodes,
            "method": cast("DistributedMethod", str(self.method)),
            "by": None if self.by is None else self.by.value,
            "weight": False if self.unweighted else self.weight,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shrinking:
    """How coefficients shrink, and how the risk is estimated: options of `denoise`."""

    rule: Annotated[
        Rule,
        typer.Option(
            help="How coefficients shrink: james_stein takes little from large ones, soft takes the threshold from all; power lies "
            "between them or beyond, as --beta says.",
            rich_help_panel=_SHRINKING,
        ),
    ] = Rule.james_stein
    beta: Annotated[
        float | None,
        typer.Option(
            help="With --rule power: 1 is soft, 2 is james_stein; the larger, the less is taken from large ones.",
            rich_help_panel=_SHRINKING,
        ),
    ] = None
    n_probes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Random signals that estimate the weights and the risk. Default: by the number of nodes. More take more time and memory.",
            rich_help_panel=_SHRINKING,
        ),
    ] = None
    law: Annotated[
        Law, typer.Option(help="Distribution of the probes: random signs, or normal numbers.", rich_help_panel=_SHRINKING)
    ] = Law.rademacher
    seed: Annotated[int, typer.Option(help="Of the probes.", rich_help_panel=_SHRINKING)] = 0

    def settings(self) -> dict[str, Any]:
        """Return the arguments of `hushgraph.distributed.denoise`."""
        return {**asdict(self), "rule": self.rule.value, "law": self.law.value}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where tasks run: options of `prepare`, `denoise` and `resume`."""

    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler (tcp://...). Default: this process.", rich_help_panel=_CLUSTER)
    ] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Start so many worker processes here.", rich_help_panel=_CLUSTER)] = (
        None
    )

    @contextmanager
    def client(self, terminal: Terminal) -> Iterator[Any]:
        """Return a client, or None for this process; a lost scheduler ends the command with advice."""
        if self.scheduler is not None and self.workers is not None:
            msg = "--scheduler names a cluster and --workers starts one here; leave one of them out"
            raise InputError(msg)
        if self.scheduler is None and self.workers is None:
            yield None
            return
        from hushgraph.distributed import dask_distributed

        dask = dask_distributed()
        with _silent_logs(), self._local_cluster(dask) as cluster, self._connect(dask, cluster) as client:
            hint = "" if find_spec("bokeh") else " (the page needs `pip install bokeh` where the scheduler runs)"
            terminal.note(f"Watch the tasks at {client.dashboard_link}{hint}")
            address = client.scheduler.address
            try:
                yield client
            except (Exception, asyncio.CancelledError) as error:
                if not _is_lost(error, client):
                    raise
                what = "dropped the tasks" if client.status == "running" else "is gone"
                text = f"the Dask scheduler at {address} {what}; {terminal.text_when_interrupted}"
                raise terminal.fail(text, UNEXPECTED) from None

    @contextmanager
    def _local_cluster(self, dask: Any) -> Iterator[Any]:
        """Return a cluster of worker processes on this machine, or None."""
        if self.workers is None:
            yield None
            return
        with _interrupts_ignored():
            cluster = dask.LocalCluster(n_workers=self.workers, threads_per_worker=1, silence_logs=logging.CRITICAL)
        try:
            yield cluster
        finally:
            cluster.close()

    def _connect(self, dask: Any, cluster: Any) -> Any:
        """Return a client. A thread connects, and may be left behind: Dask waits for ever where another kind of server listens."""
        if cluster is not None:
            return dask.Client(cluster)
        clients: list[Any] = []

        def connect() -> None:
            with suppress(OSError, ValueError, TypeError):  # no answer, no address, no certificate
                clients.append(dask.Client(self.scheduler, timeout=_PATIENCE))

        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        thread.join(_PATIENCE + 2)
        if not clients:
            threading.excepthook = lambda _: None  # threads of Dask that are left waiting may end with errors
            msg = f"no Dask scheduler answers at {self.scheduler}; check the address, and that the scheduler runs"
            raise InputError(msg)
        return clients[0]


def _is_lost(error: BaseException, client: Any) -> bool:
    """Return whether an error only means that the scheduler is lost."""
    from distributed.comm.core import CommClosedError

    cut_off = client.status != "running" and not isinstance(error, HushgraphError)
    return cut_off or isinstance(error, concurrent.futures.CancelledError | asyncio.CancelledError | CommClosedError)


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Turn off the logs of Dask: its errors are raised, and reported in one sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Make processes that start inside ignore Ctrl-C: this process handles it, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = on_signal(SIGINT, SIG_IGN)
    try:
        yield
    finally:
        on_signal(SIGINT, handler)


@distributed_commands.command(epilog="Example: hushgraph distributed plan edges/ --coords places.npy --memory 3GB")
@grouped
def plan(
    edges: Edges,
    *,
    cutting: Cutting,
    workers: Annotated[int, typer.Option(min=1, help="Workers of one core each.", rich_help_panel=_CLUSTER)] = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what a run would take, and refuse graphs that partitions do not help; nothing is written."""
    with open_terminal("distributed plan", as_json=as_json, quiet=quiet) as terminal:
        with terminal.working("Counting ghosts"):
            from hushgraph.distributed import plan as estimate_plan

            # prepare and denoise are two commands: processes start twice
            estimate = estimate_plan(edges, workers=workers, starts=2, **cutting.settings())
        if not (as_json or quiet):
            typer.echo(str(estimate))
        terminal.result(asdict(estimate))


@distributed_commands.command(epilog="Example: hushgraph distributed prepare edges/ --work work --coords places.npy --workers 2")
@grouped
def prepare(
    edges: Edges,
    *,
    work: Annotated[
        str,
        typer.Option("--work", "-w", help="The folder for all files, or its address (s3://...): new, or one that was begun."),
    ],
    cutting: Cutting,
    duplicates: Annotated[
        Duplicates,
        typer.Option(
            help="Edges given twice with unequal weights: refuse them, or take their sum or maximum.", rich_help_panel=_GRAPH
        ),
    ] = Duplicates.error,
    laplacian: Annotated[
        Laplacian,
        typer.Option(
            help="The Laplacian of the wavelets; normalized divides by degrees, so that nodes with many edges do not dominate.",
            rich_help_panel=_FRAME,
        ),
    ] = Laplacian.combinatorial,
    cluster: Cluster,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cut a graph into partitions with ghost zones. Run it again to go on after a failure."""
    with open_terminal("distributed prepare", as_json=as_json, quiet=quiet) as terminal:
        terminal.text_when_interrupted = f"run the same command again to go on in {work}"
        with cluster.client(terminal) as client, terminal.watching("Preparing", stages=True):
            from hushgraph.distributed import prepare as prepare_graph

            prepared = prepare_graph(
                edges, work, client=client, duplicates=duplicates.value, laplacian=laplacian.value, **cutting.settings()
            )
        for note in prepared.notes:
            terminal.note(note)
        terminal.story(
            {
                "Graph": f"{prepared.n:,} nodes, {prepared.n_edges:,} edges, {prepared.n_scales} scales.",
                "Partitions": f"{prepared.partitions}, with {prepared.growth - 1:.2f} ghosts per node.",
                "Next": f"hushgraph distributed denoise {shlex.quote(work)} SIGNAL --sigma ...",
            }
        )
        terminal.result(asdict(prepared))


@distributed_commands.command(epilog="Example: hushgraph distributed denoise work noisy.parquet --sigma 2 -o clean --workers 2")
@grouped
def denoise(
    work: Work,
    signal: Annotated[
        list[str], typer.Argument(metavar="SIGNAL", help="A .npy file, or parquet files with columns node and value.")
    ],
    *,
    sigma: Annotated[str, typer.Option(help="Standard deviation of the noise, or a file like the signal with one per node.")],
    method: Annotated[
        Method, typer.Option(help="As in hushgraph denoise; auto is that of graphs of more than 131,072 nodes.")
    ] = DEFAULT_METHOD,
    refine: Annotated[
        bool | None,
        typer.Option("--refine/--no-refine", help="A second stage of auto and let. Default: for auto.", show_default=False),
    ] = None,
    guide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<path>",
            help="Public map that helps auto and let: a file like SIGNAL, without gaps. May be given several times.",
        ),
    ] = None,
    shrinking: Shrinking,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Negative values become 0.")] = False,
    integer: Annotated[bool, typer.Option("--integer", help="Round to whole numbers.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Folder or address for the parquet files. Default: in the work folder.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the files of all stages.")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Begin again, even if the same run was begun.")] = False,
    cluster: Cluster,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Denoise a signal on a prepared graph. Run it again, or `resume`, to go on after a failure."""
    with open_terminal("distributed denoise", as_json=as_json, quiet=quiet) as terminal:
        terminal.text_when_interrupted = _how_to_resume(work)
        with cluster.client(terminal) as client, terminal.watching("Denoising", stages=True):
            from hushgraph._validation import is_number
            from hushgraph.distributed import denoise as denoise_signal

            result = denoise_signal(
                work, signal[0] if len(signal) == 1 else signal, sigma=float(sigma) if is_number(sigma) else sigma, method=cast("DistributedMethod", str(method)),
                refine=refine, guides=guide or None, **shrinking.settings(), nonnegative=nonnegative, integer=integer, output=output,
                client=client, resume=not anew, keep=keep,
            )  # fmt: skip
        _report(terminal, result)


@distributed_commands.command(epilog="Example: hushgraph distributed resume work --workers 2")
@grouped
def resume(work: Work, *, cluster: Cluster, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Go on with the latest run that was cut off; if none was, say what the latest one found."""
    with open_terminal("distributed resume", as_json=as_json, quiet=quiet) as terminal:
        terminal.text_when_interrupted = _how_to_resume(work)
        with cluster.client(terminal) as client, terminal.watching("Denoising", stages=True):
            from hushgraph.distributed import resume as resume_run

            result = resume_run(work, client=client)
        _report(terminal, result)


def _how_to_resume(work: str) -> str:
    """Return what to do after a run that was stopped."""
    return f"hushgraph distributed resume {shlex.quote(work)} goes on with it (here, or with --workers N or --scheduler ADDRESS)"


def _report(terminal: Terminal, result: DenoisedFiles) -> None:
    """Report the result of a run: notes, sentences, and JSON."""
    seconds, details = sum(result.timings.values()), result.details
    for note in details.get("notes", ()):
        terminal.note(note)
    guides = [f"{name} ({one['made_from']}) {one['in_words']}" for name, one in details.get("guides", {}).items()]
    terminal.story(
        {
            "Files": result.address,
            "Risk": f"{result.risk:.6g} ± {result.risk_se:.3g} (sum of squared errors, estimated without the truth).",
            "Method": f"{result.method}, in {seconds:.1f} s: {details.get('why', result.method).removesuffix('.')}.",
            **({"Guides": "; ".join(guides) + "."} if guides else {}),
        }
    )
    facts = {
        name: getattr(result, name)
        for name in ("method", "sigma", "thresholds", "risk", "risk_se", "probe_se", "unchanged", "timings", "details")
    }
    terminal.result({"output": result.address, **facts})
