"""A plugin of Dask's workers for tests: it notes every task that begins, and kills processes in the middle of tasks."""

import os
import signal
import subprocess
import sys
import threading

from distributed import WorkerPlugin

NAMES = {"sort": "sorted", "zones": "zone"}  # of stages, in their files


class DiesOnce(WorkerPlugin):
    """In each of these stages the first task that is about to mark its work as done kills its process, or its whole process group.

    Its arrays are written then, and its mark is not. Files in `folder` say which tasks began where, and which of them died.
    """

    name = "dies once"

    def __init__(self, folder, stages, *, group=False):
        self.folder, self.stages, self.group = folder, [NAMES.get(stage, stage) for stage in stages], group

    def setup(self, worker):
        from hushgraph.distributed.store import Output

        self.usual = Output.read_facts, Output.mark_done

        def read_facts(out):
            (self.folder / f"{out.stage} {out.folder.name} {os.getpid()} {os.urandom(4).hex()}.began").touch()
            return self.usual[0](out)

        def mark_done(out, facts):
            if out.stage in self.stages:
                self._die_once(f"{out.stage} {out.folder.name} {os.getpid()}", self.folder / f"{out.stage}.died")
            return self.usual[1](out, facts)

        Output.read_facts, Output.mark_done = read_facts, mark_done

    def _die_once(self, task, mark):
        try:
            with mark.open("x") as file:
                file.write(task)
        except FileExistsError:
            return
        if self.group:
            os.killpg(os.getpgid(0), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def teardown(self, worker):
        from hushgraph.distributed.store import Output

        Output.read_facts, Output.mark_done = self.usual

    def ran_again(self):
        """The stages in which a task died, and began again in another process."""
        began = [path.stem.split() for path in self.folder.glob("*.began")]
        died = [path.read_text().split() for path in self.folder.glob("*.died")]
        return sorted(
            stage
            for stage, part, process in died
            if any((stage, part) == (other, there) and process != elsewhere for other, there, elsewhere, _ in began)
        )

    def all_stages(self):
        return sorted(self.stages)


class Workers(threading.Thread):
    """Worker processes of a scheduler; one that ends is started again. Dask's nannies give up workers that die young."""

    def __init__(self, address, folder, count, more=()):
        super().__init__(daemon=True)
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "2GB", "--local-directory", folder]
        self.command = [sys.executable, "-m", "distributed.cli.dask_worker", address, *options, *more]
        self.processes, self.ended = [self._begun() for _ in range(count)], threading.Event()

    def _begun(self):
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self):
        while not self.ended.wait(0.05):
            self.processes = [one if one.poll() is None else self._begun() for one in self.processes]

    def end(self):
        self.ended.set()
        self.join()
        for one in self.processes:
            one.kill()
            one.wait()
