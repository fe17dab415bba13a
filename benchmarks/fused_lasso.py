"""The 1-D fused lasso against prox-tv's taut string and Johnson solvers, in one run; a path of 50 penalties; a depth-first order.

    make bench-fused-lasso        needs a C++ compiler and prox-tv's source distribution, which pip fetches

prox-tv is compiled from its own source with the flags of its own build (-O3), without LAPACK, which its 1-D solvers do not use. Writes
Markdown to the screen and to benchmarks/results/fused_lasso.md.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from bench import RESULTS, best_of

import hushgraph as hg
from hushgraph.estimators.baselines.chain_fused_lasso import chain_scores
from hushgraph.experiments.stage import machine
from hushgraph.graphs.orders import depth_first_order

SOURCES = ("TVL1opt_tautstring.cpp", "johnsonRyanTV.cpp")
WRAPPER = """
#include "TVopt.h"
#include "johnsonRyanTV.h"
extern "C" int taut(double *y, int n, double lam, double *x) { return classicTautString_TV1(y, n, lam, x); }
extern "C" void johnson(double *y, int n, double lam, double *x) { dp(n, y, lam, x); }
"""


def prox_tv(folder: Path):
    """prox-tv's two exact solvers as functions (signal, penalty) -> solution."""
    fetch = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        "prox_tv==3.2.1",
        "-d",
        str(folder),
    ]
    subprocess.run(fetch, check=False, capture_output=True)  # pip may fail to build what it has fetched
    archive = next(folder.glob("prox_tv-*.tar.gz"), None)
    if archive is None:
        sys.exit("prox-tv's source distribution could not be fetched; this comparison needs it")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    source = next(path for path in folder.glob("prox_tv-*/src"))
    (folder / "lapacke.h").write_text("")
    (folder / "wrapper.cpp").write_text(WRAPPER)
    library = folder / "proxtv.so"
    files = [str(source / name) for name in SOURCES] + [str(folder / "wrapper.cpp")]
    flags = ["-O3", "-fPIC", "-shared", "-DNOMATLAB=1", f"-I{source}", f"-I{folder}"]
    subprocess.run(["g++", *flags, *files, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
    pointer = ctypes.POINTER(ctypes.c_double)

    def solver(function):
        def solve(y: np.ndarray, penalty: float) -> np.ndarray:
            x = np.empty_like(y)
            function(y.ctypes.data_as(pointer), len(y), ctypes.c_double(penalty), x.ctypes.data_as(pointer))
            return x

        return solve

    return {"taut string": solver(loaded.taut), "Johnson": solver(loaded.johnson)}


def main():
    n = 1_000_000
    rng = np.random.default_rng(0)
    y = np.repeat(rng.normal(0, 3, n // 1000), 1000) + rng.normal(size=n)
    lines = [
        "| 1,000,000 points, penalty | hushgraph, ms | prox-tv taut string, ms | prox-tv Johnson, ms | over the taut string |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        rivals = prox_tv(Path(folder))
        for penalty in (0.1, 1.0, 10.0, 100.0, 1e4):
            ours = best_of(lambda p=penalty: hg.fused_lasso(y, p), repeats=9)
            theirs = {name: best_of(lambda p=penalty, s=solve: s(y, p), repeats=9) for name, solve in rivals.items()}
            for name, solve in rivals.items():
                assert np.allclose(solve(y, penalty), hg.fused_lasso(y, penalty), rtol=0, atol=1e-9), name
            ratio = ours / theirs["taut string"]
            assert ratio < 3
            cells = [f"{1e3 * seconds:.1f}" for seconds in (ours, theirs["taut string"], theirs["Johnson"])]
            lines.append(f"| {penalty:g} | {' | '.join(cells)} | {ratio:.2f} |")
    penalties = np.geomspace(0.1, 1e4, 50)
    path = best_of(lambda: chain_scores(y, np.arange(n)[None], penalties), repeats=2)
    roads = hg.datasets.roads(1_100_000)
    order = best_of(lambda: depth_first_order(roads), repeats=3)
    lines += [
        "",
        f"A path of 50 penalties on them: {path:.2f} s. Depth-first order of generated roads of 1,100,000 nodes: {order:.2f} s.",
        "",
    ]
    assert path < 10
    text = "\n".join([f"{datetime.date.today().isoformat()}, {machine()}; the solutions agree to 1e-9.", "", *lines])
    print(text)
    (RESULTS / "fused_lasso.md").write_text(text)


if __name__ == "__main__":
    main()
