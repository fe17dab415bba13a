"""An hour of releases, denoisings, explorer requests and killed processes, in random order, against one ledger.

    make soak                                   one hour
    python tools/soak.py --minutes 2 --seed 7   shorter; the order of the work follows from the seed

At the end everything must be as counted:
- budget: the ledger has a charge for each release that was finished, at most one for each that was killed, and no other; what it says is spent is the
  sum of its charges;
- chain: the ledger opens, and its chain holds, from the file alone and with what this machine remembers;
- files: each finished folder verifies against graph and ledger; a killed process leaves a whole folder or none; no other file is left;
- memory: the explorer, and the process that makes releases, are not larger at the end than after the first quarter, but for 20 %.
Prints the counts; the exit status is 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

import hushgraph as hg
from hushgraph.explorer.guard import TOKEN_HEADER

HUSHGRAPH = [sys.executable, "-m", "hushgraph"]
RELEASE = shlex.split(  # the name of its folder follows
    "release streets.graphml trips.csv --ledger budget.db --epsilon 0.05 --delta 1e-9 --max-nodes 2 --max-per-node 1 --max-distance 200 "
    "--public-graph --quiet -o"
)
WORKER = """
import resource, sys
import hushgraph as hg
graph = hg.read_graph("streets.graphml")
for line in sys.stdin:  # one release for each line: the name of its folder
    counts = hg.privacy.count_events(graph, "trips.csv", unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200)
    ledger = hg.privacy.Ledger.open("budget.db")
    hg.privacy.release(counts, epsilon=0.05, delta=1e-9, ledger=ledger, public_graph=True).export(line.strip())
    print("done", flush=True)
"""


def resident(process: int) -> float:
    """Return the memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Soak:
    """The folder, the processes that live for the whole time, and the counts."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder, self.dice, self.counts = folder, dice, Counter()
        self.finished: list[str] = []  # folders of releases whose process ended well
        self.killed: list[str] = []  # folders of releases whose process was killed
        self.faults: list[str] = []
        self.sizes: dict[str, list[float]] = {"explorer": [], "worker": []}
        self.environment = {**os.environ, "HUSHGRAPH_STATE": str(folder / "state"), "BROWSER": "true"}
        self.command("sample", ".")
        self.command(
            "budget", "create", "budget.db", "--dataset", "trips", "--unit", "person", "--epsilon", "10", "--delta", "1e-6"
        )
        self.worker = self.start([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.explorer = self.start(
            [*HUSHGRAPH, "explore", "--graph", "streets.graphml", "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        address = next(found for line in self.explorer.stdout if (found := re.search(r"(http://\S+)#token=(\S+)", line)))
        self.web = httpx.Client(base_url=address[1], headers={TOKEN_HEADER: address[2]}, timeout=120)

    def start(self, words: list[str], **options) -> subprocess.Popen:
        return subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True, **options)

    def command(self, *words: str) -> str:
        """Run a command to its end and return what it printed; a failure is a fault."""
        answer = subprocess.run(
            [*HUSHGRAPH, *words], cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False
        )
        if answer.returncode:
            self.faults.append(f"{words[0]} ended with {answer.returncode}: {answer.stderr.strip()[-400:]}")
        return answer.stdout

    # ---- work ------------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """A release by the command."""
        name = f"release-{self.counts['release']}"
        self.command(*RELEASE, name)
        self.finished.append(name)

    def killed_release(self) -> None:
        """A release by the command, killed at a random moment."""
        name = f"killed-{self.counts['killed_release']}"
        process = self.start([*HUSHGRAPH, *RELEASE, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(self.dice.uniform(0.2, 5.0))
        except subprocess.TimeoutExpired:
            process.send_signal(self.dice.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        (self.finished if process.wait() == 0 else self.killed).append(name)

    def python_release(self) -> None:
        """A release in the process that makes many of them."""
        name = f"python-{self.counts['python_release']}"
        self.worker.stdin.write(name + "\n")
        self.worker.stdin.flush()
        if self.worker.stdout.readline() != "done\n":
            self.faults.append("the process that makes releases has ended")
        self.finished.append(name)
        self.sizes["worker"].append(resident(self.worker.pid))

    def denoise(self) -> None:
        """A denoising of a file, or of a release that was finished."""
        source = self.dice.choice(["values.csv", *self.finished[-5:]])
        sigma = ["--sigma", "5.3"] if source == "values.csv" else []
        self.command("denoise", "streets.graphml", source, *sigma, "-o", "denoised.csv", "--force", "--quiet")

    def request(self) -> None:
        """Ten requests to the explorer: some good, some that it must refuse."""
        for _ in range(10):
            body = {"epsilon": round(self.dice.uniform(0.1, 3), 4), "moving": self.dice.random() < 0.7}
            if self.web.post("/api/view", json=body).status_code != 200:
                self.faults.append("the explorer refused a good request")
            headers = self.dice.choice([{TOKEN_HEADER: "wrong"}, {"host": "evil.example"}, {"origin": "http://evil.example"}])
            if self.web.post("/api/view", json=body, headers=headers).status_code not in (401, 403, 421):
                self.faults.append(f"the explorer answered a request that it must refuse: {headers}")
        self.sizes["explorer"].append(resident(self.explorer.pid))

    def verify(self) -> None:
        """The verification of a release that was finished."""
        if self.finished:
            self.command("verify", self.dice.choice(self.finished), "streets.graphml", "--ledger", "budget.db", "--json")

    def run(self, minutes: float) -> None:
        """Do random work for some minutes."""
        work = [
            self.release,
            self.killed_release,
            self.killed_release,
            self.python_release,
            self.denoise,
            self.request,
            self.verify,
        ]
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            step = self.dice.choice(work)
            step()
            self.counts[step.__name__] += 1
            if sum(self.counts.values()) % 50 == 0:
                print(f"{time.strftime('%H:%M:%S')} {dict(self.counts)}, {len(self.faults)} faults", flush=True)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def check(self) -> dict:
        """Return the counts of the whole run; what does not hold is added to the faults."""
        self.worker.stdin.close()
        self.worker.wait(60)
        self.explorer.send_signal(signal.SIGINT)
        self.explorer.wait(60)
        os.environ["HUSHGRAPH_STATE"] = str(self.folder / "state")
        ledger = hg.privacy.Ledger.open(self.folder / "budget.db")
        charges = [entry for entry in ledger.entries() if entry["kind"] == "charge"]
        kept = [name for name in self.killed if (self.folder / name).exists()]
        if not len(self.finished) + len(kept) <= len(charges) <= len(self.finished) + len(self.killed):
            self.faults.append(
                f"{len(charges)} charges for {len(self.finished)} finished and {len(self.killed)} killed releases ({len(kept)} with a folder)"
            )
        spent = sum(entry["sensitivity_squared"] / entry["sigma"] ** 2 for entry in charges)
        if abs(float(ledger.mu_squared) / max(spent, 1e-300) - 1) > 1e-9:
            self.faults.append("what is spent is not the sum of the charges")
        for name in [*self.finished, *kept]:
            self.command("verify", name, "streets.graphml", "--ledger", "budget.db", "--json")
        known = {
            *self.finished,
            *kept,
            "state",
            "budget.db",
            "denoised.csv",
            "streets.graphml",
            "trips.csv",
            "values.csv",
            "README.txt",
        }
        left = sorted(path.name for path in self.folder.iterdir() if path.name not in known)
        if left:
            self.faults.append(f"files that nobody asked for: {left[:10]}")
        for name, sizes in self.sizes.items():
            quarter = sizes[len(sizes) // 4 :][:5]
            if len(sizes) >= 20 and sorted(sizes[-5:])[2] > 1.2 * sorted(quarter)[2]:
                self.faults.append(f"{name} grew from {sorted(quarter)[2]:.0f} to {sorted(sizes[-5:])[2]:.0f} MB")
        memory = {name: [round(sizes[len(sizes) // 4]), round(sizes[-1])] for name, sizes in self.sizes.items() if sizes}
        return {
            "work": dict(self.counts), "charges": len(charges), "finished": len(self.finished), "killed": len(self.killed),
            "killed_after_charge": len(charges) - len(self.finished), "killed_with_folder": len(kept), "left_files": left,
            "memory_mb_quarter_and_end": memory, "spent": ledger.spent, "faults": self.faults,
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), random.Random(arguments.seed))
        soak.run(arguments.minutes)
        report = soak.check()
    print(json.dumps(report, indent=1))
    return int(bool(report["faults"]))


if __name__ == "__main__":
    sys.exit(main())
