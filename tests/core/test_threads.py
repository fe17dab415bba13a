"""Threads: several calling threads, forked processes, limits of containers, Ctrl-C; the number of threads does not change a bit."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hushgraph._errors import InputError
from hushgraph.core import _loops
from hushgraph.core.threads import container_quota, processors, thread_count, use_threads

from ..support.interrupts import hears_interrupts


def run(code, *, timeout=120, **env):
    """Return the output of a new Python process, parsed as JSON."""
    environment = {**os.environ, **env}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=timeout
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


# ---- number of threads ------------------------------------------------------------------------------------------------------

COUNT = "import json; from hushgraph.core.threads import thread_count; print(json.dumps(thread_count()))"


@pytest.mark.parametrize(
    ("env", "count"),
    [
        ({"HUSHGRAPH_NUM_THREADS": "5", "OMP_NUM_THREADS": "3"}, 5),
        ({"HUSHGRAPH_NUM_THREADS": "", "OMP_NUM_THREADS": "3"}, 3),
        ({"HUSHGRAPH_NUM_THREADS": "", "OMP_NUM_THREADS": "7,2"}, 7),
        ({"HUSHGRAPH_NUM_THREADS": " 1 ", "OMP_NUM_THREADS": ""}, 1),
    ],
)
def test_environment_sets_the_number(env, count):
    assert run(COUNT, **env) == count


@pytest.mark.parametrize("value", ["0", "-2", "many", "1.5", "99999999999"])
def test_a_wrong_number_is_refused(value, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_NUM_THREADS", value)
    with pytest.raises(InputError, match="HUSHGRAPH_NUM_THREADS must be a whole number from 1 to 4096"):
        processors()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity masks")
def test_affinity_limits_the_number():
    code = f"import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); {COUNT}"
    assert run(code, HUSHGRAPH_NUM_THREADS="", OMP_NUM_THREADS="") == 1


@pytest.mark.parametrize(
    ("text", "quota"), [("150000 100000\n", 1.5), ("max 100000\n", math.inf), ("nonsense", math.inf), ("1 0", math.inf)]
)
def test_quota_of_a_container(tmp_path, text, quota):
    (tmp_path / "cpu.max").write_text(text)
    assert container_quota(tmp_path / "cpu.max", tmp_path / "none") == quota


@pytest.mark.parametrize(("text", "quota"), [("50000", 0.5), ("-1", math.inf)])
def test_quota_of_an_older_container(tmp_path, text, quota):
    (tmp_path / "cpu.cfs_quota_us").write_text(text)
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    assert container_quota(tmp_path / "none", tmp_path) == quota


def test_a_small_quota_leaves_one_thread(monkeypatch):
    monkeypatch.delenv("HUSHGRAPH_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("hushgraph.core.threads.container_quota", lambda: 0.5)
    assert processors() == 1


def test_use_threads_affects_its_block_and_its_thread_only():
    import threading

    default, counts = thread_count(), []
    with use_threads(3):
        assert thread_count() == 3
        thread = threading.Thread(target=lambda: counts.append(thread_count()))
        thread.start()
        thread.join()
        with use_threads(2):
            assert thread_count() == 2
        assert thread_count() == 3
    assert (thread_count(), counts) == (default, [default])


# ---- loops inside loops, many callers ------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_loops_inside_loops_run_each_step_once(threads):
    with use_threads(threads):
        assert _loops.count_nested_steps(40, 1000) == 40_000


WORK = """
import json, os, threading
import numpy as np, hushgraph as hg
from hushgraph.core.threads import use_threads
large = hg.datasets.grid(200, 200)
small = hg.datasets.city(1500)
z, y = np.random.default_rng(2).normal(size=large.n), np.random.default_rng(1).normal(size=small.n)
frame = hg.chebyshev_frame(large, degree=20)

def work():
    with use_threads(3):
        bands = hg.analyze(frame, z)
        results = [bands, hg.synthesize(frame, bands), hg.denoise(small, y, sigma=1.0, method="let").signal,
                   hg.denoise(small, y, sigma=1.0, method="sgwt_block").signal, np.array([hg.Graph.from_scipy(large.adjacency).lambda_upper])]
    return [float(np.sum(part * np.arange(part.size).reshape(part.shape))).hex() for part in results]
"""


def test_several_threads_at_once():
    code = f"""{WORK}
expected, results, ready = work(), [], threading.Barrier(4)
def repeat():
    ready.wait()
    results.extend(work() for _ in range(3))
threads = [threading.Thread(target=repeat) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps([len(results), all(result == expected for result in results)]))"""
    assert run(code) == [12, True]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_a_forked_child_computes_the_same():
    """The parent has used its threads before the fork, or another thread uses them during the fork."""
    code = f"""{WORK}
import warnings
warnings.simplefilter("ignore")
expected, stop = work(), threading.Event()
def child():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(work()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    return os.wait()[1] == 0 and json.loads(text) == expected
while_idle = [child() for _ in range(2)]
busy = threading.Thread(target=lambda: [hg.analyze(frame, z) for _ in iter(lambda: stop.is_set(), True)])
busy.start()
while_busy = [child() for _ in range(3)]
stop.set()
busy.join()
print(json.dumps([while_idle, while_busy, work() == expected]))"""
    assert run(code) == [[True] * 2, [True] * 3, True]


@needs_fork
@pytest.mark.parametrize("kind", ["loky", "multiprocessing", "threading"])
def test_joblib(kind):
    joblib = pytest.importorskip("joblib")
    del joblib
    code = f"""{WORK}
import joblib, warnings
warnings.simplefilter("ignore")
graph = hg.datasets.grid(150, 150)
signals = np.random.default_rng(0).normal(size=(4, graph.n))
def transform(x):
    return hg.analyze(hg.chebyshev_frame(graph, degree=10), x)
expected = [transform(x) for x in signals]
results = joblib.Parallel(n_jobs=2, backend={kind!r})(joblib.delayed(transform)(x) for x in signals)
print(json.dumps(all(np.array_equal(a, b) for a, b in zip(expected, results, strict=True))))"""
    assert run(code) is True


def test_a_home_that_cannot_be_written(tmp_path):
    """Nothing is compiled at run time, so no cache is needed."""
    (tmp_path / "home").mkdir(mode=0o500)
    env = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert len(run(f"{WORK}\nprint(json.dumps(work()))", **env)) == 5
    assert list((tmp_path / "home").iterdir()) == []


# ---- the interpreter ---------------------------------------------------------------------------------------


def test_python_runs_while_a_loop_does():
    code = f"""{WORK}
import time
x, ticks, done = np.random.default_rng(0).normal(size=(8, large.n)), [], threading.Event()
def tick():
    while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
watcher = threading.Thread(target=tick)
watcher.start()
start = time.perf_counter()
hg.analyze(hg.chebyshev_frame(large, degree=400), x.T)
end = time.perf_counter()
done.set()
watcher.join()
print(json.dumps(sum(start < moment < end for moment in ticks)))"""
    assert run(code) > 20


# What a call needs (with all that is computed once for a graph, by SciPy, which Ctrl-C waits for), and the call itself: one call of the compiled
# loops, of at least 5 seconds on a fast machine.
LONG_CALLS = {
    "one signal": (
        "graph, x = hg.datasets.roads(500_000), np.ones((500_000, 20)); hg.analyze(hg.chebyshev_frame(graph, degree=2), x[:, 0])",
        "hg.analyze(hg.chebyshev_frame(graph, degree=2000), x)",
    ),
    "many signals": (
        "graph, x = hg.datasets.grid(60, 60), np.ones((3600, 9999)); hg.analyze(hg.chebyshev_frame(graph, degree=2), x[:, 0])",
        "hg.analyze(hg.chebyshev_frame(graph, degree=2000), x)",
    ),
    "graph TV": (
        "graph, y = hg.datasets.grid(1000, 1000), np.random.default_rng(0).normal(size=10**6)",
        "hg.graph_tv(graph, y, penalty=30.0)",
    ),
    "many orders": (
        "orders, penalties = np.zeros((10**7, 9), np.int64), np.arange(200.0)",
        "_loops.score_chains(np.ones(9), orders, None, None, penalties, 1.0, 0.0, np.zeros((200, 3)))",
    ),
    "points of a plane": ("x = np.random.default_rng(0).random((2 * 10**7, 2))", "_loops.PointTree(x)"),
    "fused lasso": (
        "x, penalties = np.random.default_rng(0).normal(size=10**6), np.linspace(0.1, 9, 3000)",
        "hg.fused_lasso_path(x, penalties)",
    ),
}


def delay_of(setup: str, call: str) -> float:
    """Return the seconds from Ctrl-C to the KeyboardInterrupt of a long call. Python code can catch this exception."""
    code = f"""import sys
import numpy as np, hushgraph as hg
from hushgraph.core import _loops
{setup}
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, preexec_fn=hears_interrupts)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        assert child.poll() is None, "the call is too short for this test"
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        delay = time.perf_counter() - sent
        assert child.wait(timeout=60) == 7
        return delay
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize("name", LONG_CALLS)
def test_control_c_ends_a_long_call(name):
    """A call ends within three seconds in one of five tries, of which a busy machine may need several; 0.1 s is usual.

    The limit is no measurement of speed: a loop that does not look for interrupts ends only with its work, and with the same exception.
    """
    delays = []
    while len(delays) < 5 and min(delays, default=math.inf) > 3.0:
        delays.append(delay_of(*LONG_CALLS[name]))
    assert min(delays) <= 3.0, f"seconds from Ctrl-C to the end of the call: {delays}"


def test_daemon_threads_do_not_disturb_the_end_of_the_process():
    """Python ends threads that come back from a loop during its shutdown, and C++ then aborts; so they must not come back."""
    code = """import threading, time
import numpy as np, hushgraph as hg
graph = hg.datasets.city(4000)
frame, x = hg.chebyshev_frame(graph), np.ones(graph.n)
def work():
    while True:
        hg.analyze(frame, x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
garbage = [[] for _ in range(500_000)]  # makes the shutdown slow
time.sleep(0.2)
print(1)"""
    for _ in range(3):
        assert run(code) == 1


# ---- bits ----------------------------------------------------------------------------------------------------------

LARGEST = """
import json, hushgraph as hg
spectrum = hg.datasets.{graph}.spectrum({kind!r})
print(json.dumps([spectrum.lambda_max.hex(), spectrum.lambda_upper.hex()]))
"""


@pytest.mark.parametrize(("graph", "kind"), [("roads(200_000)", "combinatorial"), ("roads(200_000)", "normalized")])
def test_threads_do_not_change_a_bit_of_the_largest_eigenvalue(graph, kind):
    """With 200,000 nodes BLAS uses several threads, and its sums differ in the last bits."""
    code = LARGEST.format(graph=graph, kind=kind)
    one, three = (run(code, OPENBLAS_NUM_THREADS=threads, HUSHGRAPH_NUM_THREADS=threads) for threads in "13")
    assert one == three


def test_control_blas_sums_do_depend_on_its_threads():
    """If this test fails, the test above proves nothing."""
    code = "import json, numpy as np; x = np.random.default_rng(0).normal(size=(20, 200_000)); print(json.dumps([float(y @ y) for y in x]))"
    if "openblas" not in json.dumps(np.show_config(mode="dicts")["Build Dependencies"]):
        pytest.skip("NumPy has another BLAS")
    assert run(code, OPENBLAS_NUM_THREADS="1") != run(code, OPENBLAS_NUM_THREADS="2")


def test_processors_without_avx2_have_the_same_bits():
    """The variable HUSHGRAPH_NO_AVX2 selects the loops without AVX2 on a processor with AVX2."""
    folder = os.path.dirname(__file__)
    code = f"""import json, sys
sys.path.insert(0, {folder!r})
from corpus import cases_of, digest_of, known_digests, subjects
from hushgraph.core import _loops
known = known_digests()
print(json.dumps([f"{{subject}}: {{case.label}}" for subject in subjects() for case in cases_of(subject)
                  if digest_of(getattr(_loops, case.function), case.arguments) != known[subject][case.label]]))"""
    assert run(code, HUSHGRAPH_NO_AVX2="1", timeout=600) == []
