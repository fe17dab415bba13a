"""An hour of releases, denoisings, explorer requests and killed processes, in random order, against one ledger.

    make soak                                   one hour
    python tools/soak.py --minutes 2 --seed 7   shorter; the order of the work and its random numbers follow from the seed

After each piece of work the ledger, read by SQLite alone, must have one more charge for each release, and none for anything else. A release
that was interrupted has a charge and a whole folder, or neither; only after SIGKILL may there be a charge without a folder. A process that fails
by itself, or does not end, is a fault. At the end everything must be as counted:
- budget: each folder names a charge of its own; the charges are of the epsilon, delta and bounds that were asked for, and what the ledger says
  is spent is what so many such releases cost;
- chain: the ledger opens, and its chain holds, from the file alone and with what this machine remembers;
- files: each folder verifies against graph and ledger; no other file is left, also not in the home folder and among the temporary files, but for
  hidden drafts and temporary folders of killed processes, which are counted;
- memory: the explorer, and the process that makes releases, are not larger at the end than after the first quarter, but for 20 %, nor have they more
  open files or threads.
Prints the counts; the exit status is 1 if something does not hold, and then the folder with all files stays for a look.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import re
import select
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import httpx

import hushgraph as hg
from hushgraph.explorer.guard import TOKEN_HEADER

HUSHGRAPH = [sys.executable, "-m", "hushgraph"]
BOUNDS = "--max-nodes 2 --max-per-node 1 --max-distance 200"
RELEASE = shlex.split(  # the name of its folder follows
    f"release streets.graphml trips.csv --ledger budget.db --epsilon 0.05 --delta 1e-9 {BOUNDS} --public-graph --quiet -o"
)
DELTAS = {
    1e-9: "release, python",
    1e-6: "explorer",
}  # of the charges: the command and the process ask for one, the explorer takes the ledger's
EPSILON, SENSITIVITY_SQUARED = 0.05, 2
DRAFT = re.compile(r"\.[0-9a-f]{12}-.+")  # a hidden name that a killed process can leave
TEMPORARY = re.compile("temporary/(hushgraph-|tmp)[a-z0-9_]{8}")  # temporary folders of explorers
EXPLORE = ["explore", "--graph", "streets.graphml", "--no-browser"]
EVENTS = shlex.split(f"--events trips.csv --ledger budget.db {BOUNDS} -o")  # the folder for its releases follows
WORKER = """
import sys
import hushgraph as hg
graph = hg.read_graph("streets.graphml")
for line in sys.stdin:  # one release for each line: the name of its folder
    counts = hg.privacy.count_events(graph, "trips.csv", unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200)
    ledger = hg.privacy.Ledger.open("budget.db")
    hg.privacy.release(counts, epsilon=0.05, delta=1e-9, ledger=ledger, public_graph=True).export(line.strip())
    print("done", flush=True)
"""


LIMIT = 300  # seconds after which a process that does not end, or does not answer, is a fault
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # how a command ends that was asked to stop
ROOM = {
    "MB": 0,
    "open files": 8,
    "threads": 4,
}  # what a process may need more than 20 % above what it needed after a quarter of the time
LEAST_SAMPLES, LONG = 20, 20  # samples of a process that lives for the whole time, if that is so many minutes


def needs_of(process: int) -> dict[str, float]:
    """Return what a process needs: memory in MB, open files, and threads."""
    status = Path(f"/proc/{process}/status").read_text()
    memory, threads = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads"))
    return {"MB": memory / 1024, "open files": len(os.listdir(f"/proc/{process}/fd")), "threads": threads}


def allowed_charges(number: int | None, *, has_folder: bool) -> tuple[int, ...]:
    """Return how many charges a release may have made: `number` is the signal that it was sent, None if it ended before."""
    if has_folder or number is None:
        return (1,)
    return (0, 1) if number == signal.SIGKILL else (0,)


class Soak:
    """The folder, the processes that live for the whole time, and the counts.

    Parameters
    ----------
    folder : Path
        An empty folder for all files.
    seed : int
        The order of the work and its random numbers follow from it.
    program : list of str, optional
        The words before those of a command.
    """

    def __init__(self, folder: Path, seed: int, program: Sequence[str] = HUSHGRAPH) -> None:
        self.folder, self.seed, self.program, self.counts = folder, seed, program, Counter()
        self.dice = random.Random(seed)  # of the piece of work that is being done
        self.finished: list[str] = []  # folders of releases whose process ended well
        self.killed: list[str] = []  # folders of releases whose process was sent a signal
        self.n_killed = 0  # processes that were sent a signal
        self.faults: list[str] = []
        self.seconds: dict[str, float] = {}  # that each command took the last time
        self.needs: dict[str, list[dict[str, float]]] = {"explorer": [], "worker": []}
        homes = {"HOME": "home", "TMPDIR": "temporary", "HUSHGRAPH_STATE": "state"}
        for name in homes.values():
            (folder / name).mkdir()
        elsewhere = {name: text for name, text in os.environ.items() if not name.startswith("XDG_")}
        self.environment = elsewhere | {name: str(folder / place) for name, place in homes.items()} | {"BROWSER": "true"}
        self.processes: list[subprocess.Popen] = []

    def begin(self) -> None:
        """Make the files and the ledger, and start the processes that live for the whole time."""
        self.command("sample", ".")
        self.command(
            "budget", "create", "budget.db", "--dataset", "trips", "--unit", "person", "--epsilon", "10", "--delta", "1e-6"
        )
        self.n_nodes = hg.read_graph(self.folder / "streets.graphml").n
        self.start_worker()
        self.explorer, self.web = self.start_explorer()

    def start(self, words: Sequence[str], **options) -> subprocess.Popen:
        """Start a process that `end` kills if it still runs then."""
        self.processes = [process for process in self.processes if process.poll() is None]
        self.processes.append(subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True, **options))
        return self.processes[-1]

    def start_command(self, *words: str) -> subprocess.Popen:
        """Start a command."""
        return self.start([*self.program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self) -> None:
        """Kill all processes that still run."""
        for process in self.processes:
            process.kill()
            process.wait()

    def start_worker(self) -> None:
        """Start the process that makes many releases."""
        self.worker = self.start([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def start_explorer(self, *words: str) -> tuple[subprocess.Popen, httpx.Client]:
        """Start an explorer, and return it with a client that knows its token."""
        process = self.start([*self.program, *EXPLORE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        limit = threading.Timer(LIMIT, process.kill)  # an explorer that says nothing must not stop the soak
        limit.start()
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if address := re.search(r"(http://\S+)#token=(\S+)", line):
                    break
            else:
                self.stop(process)
                msg = f"the explorer did not start: {''.join(lines)[-400:]}"
                raise RuntimeError(msg)
        finally:
            limit.cancel()
        return process, httpx.Client(base_url=address[1], headers={TOKEN_HEADER: address[2]}, timeout=LIMIT)

    def ended(self, process: subprocess.Popen, what: str) -> tuple[str, str]:
        """Return what a process printed until its end; one that does not end is killed, and a fault."""
        try:
            return process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{what} did not end within {LIMIT} seconds")
            process.kill()
            return process.communicate()

    def command(self, *words: str) -> bool:
        """Run a command to its end, and return whether it succeeded; a failure is a fault."""
        began = time.monotonic()
        is_good = self.succeeded(self.start_command(*words), words[0])
        self.seconds[words[0]] = time.monotonic() - began
        return is_good

    def succeeded(self, process: subprocess.Popen, what: str) -> bool:
        """Return whether a process ends well; another end is a fault."""
        _, errors = self.ended(process, what)
        if process.returncode:
            self.faults.append(f"{what} ended with {process.returncode}: {errors.strip()[-400:]}")
        return process.returncode == 0

    def killed_command(self, *words: str) -> int | None:
        """Run a command, and send it a signal at a random moment; return the signal, or None if the command ended well before.

        A command that ends otherwise, or in another way than the signal allows, is a fault.
        """
        delay, number = self.dice.uniform(0.05, 1.1) * self.seconds.get(words[0], 4.0), self.dice.choice(SIGNALS)
        process = self.start_command(*words)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        else:
            self.succeeded(process, words[0])
            return None
        self.n_killed += 1
        _, errors = self.ended(process, words[0])
        good = (0, -number) if number == signal.SIGKILL else (0, -number, INTERRUPTED)
        is_early = number == signal.SIGINT and "<frozen site>" in errors  # while Python itself begins, Ctrl-C ends it with 1
        if process.returncode not in good and not is_early:
            self.faults.append(f"{words[0]} ended with {process.returncode} after {number!r}: {errors.strip()[-400:]}")
        return number if process.returncode else None

    # ---- work ------------------------------------------------------------------------------------------------------
    # Each piece of work returns the numbers of charges that it may have made.

    def charges(self) -> list[dict]:
        """Return the charges in the ledger, without any code of hushgraph. A killed process can leave a journal, which reading takes back."""
        with closing(sqlite3.connect(f"file:{self.folder / 'budget.db'}?mode=rw", uri=True, timeout=60)) as connection:
            entries = [json.loads(fields) for (fields,) in connection.execute("SELECT fields FROM entries")]
        return [entry for entry in entries if entry["kind"] == "charge"]

    def release(self) -> tuple[int, ...]:
        """A release by the command."""
        name = f"release-{self.counts['release']}"
        return (self.keep(name, self.command(*RELEASE, name)),)

    def keep(self, name: str, is_finished: bool) -> int:
        """Add a release to those that are finished, if it is; return how many releases that are."""
        self.finished += [name] * is_finished
        return int(is_finished)

    def killed_release(self) -> tuple[int, ...]:
        """A release by the command, which is sent a signal at a random moment."""
        name = f"killed-{self.counts['killed_release']}"
        n_faults = len(self.faults)
        number = self.killed_command(*RELEASE, name)
        if number is None and len(self.faults) == n_faults:
            self.finished.append(name)
        else:
            self.killed.append(name)
        return allowed_charges(number, has_folder=(self.folder / name).exists())

    def python_release(self) -> tuple[int, ...]:
        """A release in the process that makes many of them."""
        name = f"python-{self.counts['python_release']}"
        return (self.keep(name, self.worker_made(name)),)

    def worker_made(self, name: str) -> bool:
        """Return whether the process that makes many releases made one; if not, it is a fault, and there is a new process."""
        with suppress(BrokenPipeError):  # it has ended, which is seen in the next lines
            self.worker.stdin.write(name + "\n")
            self.worker.stdin.flush()
        is_there, _, _ = select.select([self.worker.stdout], [], [], LIMIT)
        if is_there and self.worker.stdout.readline() == "done\n":
            self.needs["worker"].append(needs_of(self.worker.pid))
            return True
        self.faults.append(f"the process that makes releases {'has ended' if is_there else f'gave no answer in {LIMIT} seconds'}")
        self.stop(self.worker)
        self.start_worker()
        return False

    def stop(self, process: subprocess.Popen) -> None:
        """Kill a process that does not do its work, and close its pipes."""
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(AttributeError, BrokenPipeError):  # no such pipe, or words that nobody will read
                pipe.close()

    def compete(self) -> tuple[int, ...]:
        """Releases at the same time, each of which must succeed: one to three by the command, and some in the process that makes many."""
        begin = f"compete-{self.counts['compete']}"
        names = [f"{begin}-{k}" for k in range(self.dice.randint(1, 3))]
        processes = [self.start_command(*RELEASE, name) for name in names]
        n_made = 0
        for k in range(6):
            if all(process.poll() is not None for process in processes):
                break
            n_made += self.keep(f"{begin}-worker-{k}", self.worker_made(f"{begin}-worker-{k}"))
            time.sleep(0.3)
        n_made += sum(self.keep(name, self.succeeded(process, name)) for name, process in zip(names, processes, strict=True))
        return (n_made,)

    def explorer_release(self) -> tuple[int, ...]:
        """A release drawn in an explorer of the events; half of these explorers are killed at a random moment of the drawing."""
        folder = f"explorer-{self.counts['explorer_release']}"
        name = f"{folder}/release-1"
        is_killed, delay = self.dice.random() < 0.5, self.dice.uniform(0, 1)
        process, web = self.start_explorer(*EVENTS, folder)
        end = threading.Timer(delay, process.kill)
        if is_killed:
            self.n_killed += 1
            end.start()
        try:
            answer = web.post("/api/draw", json={"epsilon": EPSILON, "number": 1, "public_graph": True})
            if answer.status_code != 200:
                self.faults.append(f"the explorer did not draw: {answer.text[:400]}")
            allowed = (self.keep(name, answer.status_code == 200),)
        except httpx.TransportError as error:
            self.killed.append(name)
            if not is_killed:
                self.faults.append(f"an explorer that nobody killed gave no answer: {error!r}")
                process.kill()
            process.wait()  # it is dead, and what it charged is in the ledger
            allowed = allowed_charges(signal.SIGKILL, has_folder=(self.folder / name).exists())
        end.cancel()
        web.close()
        self.interrupt(process, allowed=[-signal.SIGKILL] if is_killed else [])
        return allowed

    def interrupt(self, process: subprocess.Popen, allowed: Sequence[int] = ()) -> None:
        """End an explorer as Ctrl-C does, which it must obey."""
        process.send_signal(signal.SIGINT)
        self.ended(process, "an explorer")
        if process.returncode not in (0, INTERRUPTED, -signal.SIGINT, *allowed):
            self.faults.append(f"an explorer ended with {process.returncode}")

    def denoising(self, output: str) -> list[str]:
        """Return the words of a denoising of a file, or of a release that was finished."""
        sources = ["values.csv", *self.finished[-5:]]
        source = sources[int(self.dice.random() * len(sources))]
        sigma = ["--sigma", "5.3"] if source == "values.csv" else []
        return ["denoise", "streets.graphml", source, *sigma, "-o", output, "--force", "--quiet"]

    def denoise(self) -> tuple[int, ...]:
        """A denoising."""
        self.command(*self.denoising("denoised.csv"))
        self.check_denoised("denoised.csv")
        return (0,)

    def killed_denoise(self) -> tuple[int, ...]:
        """A denoising that is sent a signal at a random moment: its file is whole, or as it was before."""
        name = self.dice.choice(["denoised.csv", "killed.csv"])
        was_there = (self.folder / name).exists()
        number = self.killed_command(*self.denoising(name))
        if was_there or number is None or (self.folder / name).exists():
            self.check_denoised(name)
        (self.folder / "killed.csv").unlink(missing_ok=True)
        return (0,)

    def check_denoised(self, name: str) -> None:
        """Add a fault if a file does not hold a number for each node in each of its columns."""
        try:
            with (self.folder / name).open(newline="", encoding="utf-8") as file:
                head, *rows = csv.reader(file)
            numbers = [float(text) for row in rows for title, text in zip(head, row, strict=True) if title != "node"]
            if "denoised" not in head or len(rows) != self.n_nodes or not all(map(math.isfinite, numbers)):
                self.faults.append(
                    f"{name} has {len(rows)} rows for {self.n_nodes} nodes with the columns {head}, or no number somewhere"
                )
        except (OSError, ValueError) as error:
            self.faults.append(f"{name} is not whole: {error!r}")

    def request(self) -> tuple[int, ...]:
        """Ten requests to the explorer: some good, some that it must refuse. One that gives no answer is a fault, and there is a new explorer."""
        try:
            self.ask()
            self.needs["explorer"].append(needs_of(self.explorer.pid))
        except (httpx.TransportError, OSError) as error:
            self.faults.append(f"the explorer gave no answer: {error!r}")
            self.stop(self.explorer)
            self.web.close()
            self.explorer, self.web = self.start_explorer()
        return (0,)

    def ask(self) -> None:
        """Send ten requests to the explorer; a wrong answer is a fault."""
        for _ in range(10):
            body = {"epsilon": round(self.dice.uniform(0.1, 3), 4), "moving": self.dice.random() < 0.7}
            if self.web.post("/api/view", json=body).status_code != 200:
                self.faults.append("the explorer refused a good request")
            headers = self.dice.choice([{TOKEN_HEADER: "wrong"}, {"host": "evil.example"}, {"origin": "http://evil.example"}])
            if self.web.post("/api/view", json=body, headers=headers).status_code not in (401, 403, 421):
                self.faults.append(f"the explorer answered a request that it must refuse: {headers}")

    def verify(self) -> tuple[int, ...]:
        """The verification of a release that was finished."""
        place = self.dice.random()
        if self.finished:
            name = self.finished[int(place * len(self.finished))]
            self.command("verify", name, "streets.graphml", "--ledger", "budget.db", "--json")
        return (0,)

    def do(self, step: Callable[[], tuple[int, ...]]) -> None:
        """Do a piece of work with random numbers of its own, and count its charges."""
        self.dice = random.Random(f"{self.seed} {self.counts.total()}")
        before, n_faults = len(self.charges()), len(self.faults)
        allowed = step()
        made = len(self.charges()) - before
        if made not in allowed:
            self.faults.append(
                f"{step.__name__} {self.counts[step.__name__]} made {made} charges, expected {' or '.join(map(str, allowed))}"
            )
        self.counts[step.__name__] += 1
        for fault in self.faults[n_faults:]:
            print(f"{time.strftime('%H:%M:%S')} {fault}", flush=True)

    def run(self, minutes: float) -> None:
        """Do random work for some minutes."""
        work = [
            self.release,
            self.killed_release,
            self.killed_release,
            self.python_release,
            self.compete,
            self.explorer_release,
            self.denoise,
            self.killed_denoise,
            self.request,
            self.verify,
        ]
        order, end = random.Random(self.seed), time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            self.do(order.choice(work))
            if self.counts.total() % 50 == 0:
                print(f"{time.strftime('%H:%M:%S')} {dict(self.counts)}, {len(self.faults)} faults", flush=True)
        if minutes >= LONG:
            few = {name: len(samples) for name, samples in self.needs.items() if len(samples) < LEAST_SAMPLES}
            self.faults += [
                f"{name} has {number} samples of what it needs, and {LEAST_SAMPLES} are needed" for name, number in few.items()
            ]

    # ---- the end ---------------------------------------------------------------------------------------------------

    def check(self) -> dict:
        """Return the counts of the whole run; what does not hold is added to the faults."""
        self.worker.stdin.close()
        self.worker.stdin = None  # which communicate would flush
        self.ended(self.worker, "the process that makes releases")
        self.interrupt(self.explorer)
        if self.worker.returncode:
            self.faults.append(f"the process that makes releases ended with {self.worker.returncode}")
        os.environ["HUSHGRAPH_STATE"] = str(self.folder / "new machine")
        hg.privacy.Ledger.open(self.folder / "budget.db")  # from the file alone
        os.environ["HUSHGRAPH_STATE"] = str(self.folder / "state")
        ledger = hg.privacy.Ledger.open(self.folder / "budget.db")
        kept = [name for name in self.killed if (self.folder / name).exists()]
        folders = [*self.finished, *kept]
        charges = self.check_budget(ledger, folders)
        graph = hg.read_graph(self.folder / "streets.graphml")
        for k, name in enumerate(folders):
            if k % 50 == 0:
                print(f"{time.strftime('%H:%M:%S')} {k} of {len(folders)} folders verified", flush=True)
            answer = hg.privacy.verify_release(self.folder / name, graph=graph, ledger=ledger)
            self.faults += [f"{name}: {check.claim}: {check.detail}" for check in answer.faults]
        left, drafts, temporary = self.left_files({*folders})
        if left:
            self.faults.append(f"files that nobody asked for: {left[:10]}")
        if len(drafts) > self.n_killed or len(temporary) > 2 * self.n_killed:
            self.faults.append(f"{len(drafts)} drafts and {len(temporary)} temporary folders of {self.n_killed} killed processes")
        needs = {name: self.growth(name, samples) for name, samples in self.needs.items()}
        return {
            "work": dict(self.counts), "charges": len(charges), "finished": len(self.finished), "killed_processes": self.n_killed,
            "killed_releases": len(self.killed), "killed_after_charge": len(charges) - len(self.finished), "killed_with_folder": len(kept),
            "left_files": left, "left_drafts": len(drafts), "left_temporary_folders": len(temporary), "verified_folders": len(folders), "needs": needs,
            "spent": ledger.spent, "faults": self.faults,
        }  # fmt: skip

    def check_budget(self, ledger: hg.privacy.Ledger, folders: list[str]) -> list[dict]:
        """Return all charges, which must be those of the work that was done."""
        charges = self.charges()
        named = Counter(json.loads((self.folder / name / "certificate.json").read_text())["ledger"]["entry"] for name in folders)
        if not set(named) <= {entry["entry"] for entry in charges} or named.total() != len(named):
            self.faults.append("a certificate names no charge, or two of them name one")
        cost = dict.fromkeys(DELTAS, 0.0)
        for delta in DELTAS:
            sigma = hg.privacy.analytic_sigma(epsilon=EPSILON, delta=delta, sensitivity_squared=SENSITIVITY_SQUARED)
            cost[delta] = SENSITIVITY_SQUARED / sigma**2
        claims = [entry["claims"] for entry in charges]
        if any(
            (one["epsilon"], one["sensitivity_squared"]) != (EPSILON, SENSITIVITY_SQUARED) or one["delta"] not in cost
            for one in claims
        ):
            self.faults.append("a charge is not of the epsilon, delta and bounds that were asked for")
        elif abs(float(ledger.mu_squared) / sum(cost[one["delta"]] for one in claims) - 1) > 1e-9:
            self.faults.append("what the ledger says is spent is not what its charges cost")
        return charges

    def growth(self, name: str, samples: list[dict[str, float]]) -> str:
        """Return what a process needed after a quarter of the time and at the end, in words; if it needs more and more, that is a fault."""
        if len(samples) < LEAST_SAMPLES:
            return f"not compared: {len(samples)} samples"
        words = []
        for unit, room in ROOM.items():
            sizes = [sample[unit] for sample in samples]
            quarter, end = sorted(sizes[len(sizes) // 4 :][:5])[2], sorted(sizes[-5:])[2]
            if end > 1.2 * quarter + room:
                self.faults.append(f"{name} grew from {quarter:.0f} to {end:.0f} {unit}")
            words.append(f"{quarter:.0f} and {end:.0f} {unit}")
        return f"{', '.join(words)} ({len(samples)} samples)"

    def left_files(self, releases: set[str]) -> tuple[list[str], list[str], list[str]]:
        """Return the files that nobody asked for, the hidden drafts, and the temporary folders; the rest are data, the memory of the machine and releases."""
        known = {
            "state",
            "new machine",
            "home",
            "temporary",
            "budget.db",
            "denoised.csv",
            "streets.graphml",
            "trips.csv",
            "values.csv",
            "README.txt",
            *releases,
        }
        parts = {f"{name}/{part}" for name in releases for part in ("map.csv", "certificate.json", "report.html")}
        explorers = {f"explorer-{k}" for k in range(self.counts["explorer_release"])}
        paths = [
            *self.folder.iterdir(),
            *self.folder.glob("explorer-*/*"),
            *self.folder.glob("home/*"),
            *self.folder.glob("temporary/*"),
            *(path for name in releases for path in (self.folder / name).iterdir()),
        ]
        names = sorted({str(path.relative_to(self.folder)) for path in paths} - known - parts - explorers)
        drafts = [name for name in names if DRAFT.fullmatch(name.split("/")[-1])]
        temporary = [name for name in names if TEMPORARY.fullmatch(name)]
        return [name for name in names if name not in (*drafts, *temporary)], drafts, temporary


def too_long(*_: object) -> None:
    """Raise the error of a soak that does not end."""
    msg = "the soak does not end"
    raise TimeoutError(msg)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hushgraph-soak-"))
    soak = Soak(folder, arguments.seed)
    for number in (signal.SIGINT, signal.SIGHUP):  # in the background both may be ignored, and the commands would ignore them too
        signal.signal(number, signal.default_int_handler)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(90 * arguments.minutes) + 1800)
    try:
        soak.begin()
        soak.run(arguments.minutes)
        report = soak.check()
    except Exception:
        report = {"work": dict(soak.counts), "faults": [*soak.faults, traceback.format_exc()]}
    finally:
        soak.end()
    print(json.dumps(report, indent=1))
    if report["faults"]:
        print(f"all files are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
