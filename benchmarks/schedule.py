"""A simulation of the schedule of a distributed run: workers, stages with barriers, one file system, stragglers, deaths.

Every task reads its files, computes, writes its files. A worker runs one task at a time. The scheduler hands out one task after the other.
All who read or write at a time share the file system evenly, each up to its own limit. A stage begins when the one before has ended.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    """Seconds of work on one worker, and bytes in and out."""

    seconds: float
    read: float = 0.0
    written: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """What the tasks run on; bandwidths in bytes per second."""

    workers: int
    dispatch: float = 0.0  # seconds of the scheduler per task
    stage: float = 0.0  # seconds until the first task of a stage runs and the client knows of the last
    total: float = math.inf  # bandwidth of the file system
    each: float = math.inf  # bandwidth of one worker
    spread: float = 0.0  # of the logarithm of a task's time; its mean stays
    deaths: tuple[float, ...] = ()  # moments at which a worker dies, in seconds from the start
    hours: float = math.inf  # worker hours between deaths at random
    back: float = 30.0  # seconds until a dead worker is replaced
    seed: int = 0


@dataclass
class _Stage:
    """The state of one stage while it runs; `now` is the time of the whole run."""

    cluster: Cluster
    tasks: list[Task]
    now: float
    chance: random.Random
    deaths: list[float]
    away: dict[int, float]  # workers that are dead, and when they are back
    events: list[tuple] = field(default_factory=list)
    flows: list[tuple] = field(default_factory=list)  # (when it ends, counted in bytes that each flow had; worker, attempt)
    flowing: set[int] = field(default_factory=set)
    had: float = 0.0  # bytes that a flow from the beginning would have had by now
    doing: dict[int, int] = field(default_factory=dict)  # worker: task
    phase: dict[int, str] = field(default_factory=dict)
    attempt: dict[int, int] = field(default_factory=dict)
    scheduler: float = 0.0

    def run(self) -> float:
        """When the last task has ended."""
        waiting = deque(range(len(self.tasks)))
        idle = [worker for worker in range(self.cluster.workers) if worker not in self.away]
        for worker, moment in self.away.items():
            heapq.heappush(self.events, (moment, "back", worker, 0))
        self.scheduler, left = self.now, len(self.tasks)
        while left:
            while waiting and idle:
                self._start(idle.pop(), waiting.popleft())
            kind, worker = self._next()
            if kind == "done":
                left -= 1
                self.doing.pop(worker)
                idle.append(worker)
            elif kind == "death":
                if worker in self.doing:
                    waiting.append(self.doing.pop(worker))
                elif worker in idle:
                    idle.remove(worker)
                self.flowing.discard(worker)
                self.attempt[worker] = self.attempt.get(worker, 0) + 1
                self.away[worker] = self.now + self.cluster.back
                heapq.heappush(self.events, (self.away[worker], "back", worker, 0))
            elif kind == "back":
                del self.away[worker]
                idle.append(worker)
        return self.now

    def _start(self, worker: int, task: int) -> None:
        self.scheduler = max(self.scheduler, self.now) + self.cluster.dispatch
        self.doing[worker], self.phase[worker] = task, "wait"
        self._later(worker, self.scheduler - self.now)

    def _later(self, worker: int, seconds: float) -> None:
        heapq.heappush(self.events, (self.now + seconds, "phase", worker, self.attempt.get(worker, 0)))

    def _flow(self, worker: int, size: float) -> None:
        self.flowing.add(worker)
        heapq.heappush(self.flows, (self.had + size, worker, self.attempt.get(worker, 0)))

    def _next(self) -> tuple[str, int]:
        """Go on to whatever comes next: the end of a flow of bytes, a death, or an event that was set."""
        while self.flows and self.flows[0][2] != self.attempt.get(self.flows[0][1], 0):
            heapq.heappop(self.flows)
        while self.deaths and self.deaths[0] < self.now:  # nobody was left to die
            self.deaths.pop(0)
        rate = min(self.cluster.each, self.cluster.total / max(1, len(self.flowing)))
        ends = self.now + (self.flows[0][0] - self.had) / rate if self.flows else math.inf
        dies = self.deaths[0] if self.deaths and len(self.away) < self.cluster.workers else math.inf
        moment = max(self.now, min(ends, dies, self.events[0][0] if self.events else math.inf))
        flow = bool(self.flows) and moment >= ends
        self.had = self.flows[0][0] if flow else self.had + (moment - self.now) * rate if self.flows else self.had
        self.now = moment
        if moment >= dies:
            self.deaths.pop(0)
            return "death", self.chance.choice([w for w in range(self.cluster.workers) if w not in self.away])
        if flow:
            worker = heapq.heappop(self.flows)[1]
            self.flowing.discard(worker)
            return self._after(worker)
        _, kind, worker, attempt = heapq.heappop(self.events)
        if kind == "back":
            return kind, worker
        return self._after(worker) if attempt == self.attempt.get(worker, 0) else ("stale", worker)

    def _after(self, worker: int) -> tuple[str, int]:
        """The next phase of a worker's task."""
        task, phase = self.tasks[self.doing[worker]], self.phase[worker]
        spread = self.cluster.spread
        if phase == "wait":
            self.phase[worker] = "read"
            self._flow(worker, task.read)
        elif phase == "read":
            self.phase[worker] = "compute"
            self._later(worker, task.seconds * (self.chance.lognormvariate(-(spread**2) / 2, spread) if spread else 1.0))
        elif phase == "compute":
            self.phase[worker] = "write"
            self._flow(worker, task.written)
        else:
            return "done", worker
        return phase, worker


def simulate(stages: dict[str, list[Task]], cluster: Cluster) -> dict[str, float]:
    """Seconds of each stage. A stage that is the client's own is a single task, and is written client..."""
    chance, now, found = random.Random(cluster.seed), 0.0, {}
    deaths, away = sorted(cluster.deaths), {}
    if math.isfinite(cluster.hours):
        longest = 100 * sum(task.seconds for tasks in stages.values() for task in tasks) / cluster.workers + 3600
        moment = chance.expovariate(cluster.workers / (3600 * cluster.hours))
        while moment < longest:
            deaths.append(moment)
            moment += chance.expovariate(cluster.workers / (3600 * cluster.hours))
        deaths.sort()
    for name, tasks in stages.items():
        start = now
        if name.startswith("client"):
            now += sum(task.seconds + (task.read + task.written) / min(cluster.each, cluster.total) for task in tasks)
            deaths = [moment for moment in deaths if moment >= now]
            away = {worker: moment for worker, moment in away.items() if moment > now}
        else:
            stage = _Stage(cluster, tasks, now, chance, deaths, away)
            now = stage.run() + cluster.stage
        found[name] = now - start
    return found
