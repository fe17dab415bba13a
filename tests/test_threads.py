"""Threads: callers in several threads take turns on all cores, and the number of threads changes no bit."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import hushgraph as hg


def run(code, **env):
    """What a fresh Python prints, read as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


# ---- callers take turns --------------------------------------------------------------------------------------------


def parallel_loops(values):
    """Names of compiled functions with parallel loops that Python can call without taking turns."""
    return [name for name, value in values if isinstance(value, Dispatcher) and value.targetoptions.get("parallel")]


def test_no_parallel_loop_can_be_called_out_of_turn():
    names = [name for _, name, _ in pkgutil.walk_packages(hg.__path__, "hushgraph.") if not name.endswith("__main__")]
    modules = [importlib.import_module(name) for name in names if name.startswith(("hushgraph.kernels", "hushgraph.distributed"))]
    modules += [importlib.import_module(name) for name in names if name.count(".") == 1 and name != "hushgraph.estimator"]
    values = [(f"{module.__name__}.{name}", value) for module in modules for name, value in vars(module).items()]
    assert parallel_loops(values) == []
    inside = {name: value.compiled for name, value in values if isinstance(getattr(value, "compiled", None), Dispatcher)}
    assert parallel_loops(inside.items()) == list(inside)
    assert "hushgraph.distributed.cut._walked" in inside
    assert len(inside) >= 30


TWO_THREADS = """
import json, threading
import numpy as np, numba, hushgraph as hg
from hushgraph.distributed.cut import cut_for
from hushgraph.kernels import quads
numba.set_num_threads(2)
graph = hg.datasets.city(1500)
coords, y = np.random.default_rng(0).random((200_000, 2)), np.random.default_rng(1).normal(size=graph.n)
large = hg.datasets.grid(200, 200)
frame, z = hg.chebyshev_frame(large, degree=20), np.random.default_rng(2).normal(size=large.n)
calls = [
    lambda: cut_for("coordinates", len(coords), 16, coords, None)[1](slice(0, len(coords))),
    lambda: quads.prepare(*large.symmetric_parts("combinatorial")),
    lambda: hg.Graph.from_scipy(large.adjacency).lambda_upper,
    lambda: hg.synthesize(frame, hg.analyze(frame, z)),
    lambda: hg.denoise(graph, y, sigma=1.0, method="sgwt_scaled"),
    lambda: hg.denoise(graph, y, sigma=1.0, method="let"),
    lambda: hg.denoise(graph, y, sigma=1.0, method="sgwt_block"),
]
for call in calls:
    call()  # compiled
failed = []
for k, call in enumerate(calls):
    ready = threading.Barrier(2)
    def repeat():
        ready.wait()
        try:
            for _ in range(100 if k == 0 else 3):
                call()
        except Exception as error:
            failed.append(repr(error))
    threads = [threading.Thread(target=repeat) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(json.dumps([numba.threading_layer(), failed]))
"""


def test_two_threads_survive_the_pool_that_bears_one_caller():
    """Numba's fallback pool ends the process when two threads meet in it; cutting by coordinates did that."""
    assert run(TWO_THREADS, NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="2") == ["workqueue", []]


# ---- bits ----------------------------------------------------------------------------------------------------------

LARGEST = """
import json, hushgraph as hg
spectrum = hg.datasets.{graph}.spectrum({kind!r})
print(json.dumps([spectrum.lambda_max.hex(), spectrum.lambda_upper.hex()]))
"""


@pytest.mark.parametrize(("graph", "kind"), [("roads(200_000)", "combinatorial"), ("roads(200_000)", "normalized")])
def test_threads_do_not_change_a_bit_of_the_largest_eigenvalue(graph, kind):
    """200,000 nodes are enough for BLAS to use several threads, whose sums differ in the last bits."""
    one, two = (
        run(LARGEST.format(graph=graph, kind=kind), OPENBLAS_NUM_THREADS=threads, NUMBA_NUM_THREADS=threads) for threads in "12"
    )
    assert one == two


def test_control_blas_sums_do_depend_on_its_threads():
    """Where this fails, the test above proves nothing."""
    code = "import json, numpy as np; x = np.random.default_rng(0).normal(size=(20, 200_000)); print(json.dumps([float(y @ y) for y in x]))"
    if "openblas" not in json.dumps(np.show_config(mode="dicts")["Build Dependencies"]):
        pytest.skip("NumPy has another BLAS")
    assert run(code, OPENBLAS_NUM_THREADS="1") != run(code, OPENBLAS_NUM_THREADS="2")
