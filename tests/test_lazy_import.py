"""Importing the package costs nothing, and names stay what they are."""

import json
import os
import pickle
import subprocess
import sys
from importlib import metadata
from types import ModuleType

import pytest

import hushgraph as hg

OPTIONAL = ["matplotlib", "pandas", "sklearn", "networkx", "igraph"]
PACKAGES = ("baselines", "datasets", "distributed", "explorer", "plotting", "privacy", "wavelets")
HEAVY = ["numpy", "scipy", "typer", "rich", *OPTIONAL]


def run(code, **env):
    """Return what a new Python process prints, read as JSON; warnings are errors there too. The timeout only ends a process that hangs."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env}, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- the cost of an import -----------------------------------------------------------------------------------------


def test_an_import_loads_nothing_heavy():
    loaded = run(
        "import json, sys, hushgraph, hushgraph.datasets; dir(hushgraph); hushgraph.__version__; hushgraph.__all__\n"
        f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    )
    assert loaded == []


def test_the_core_loads_no_extra():
    code = "import hushgraph as hg, json, sys; [hg.Graph, hg.denoise, hg.sure, hg.datasets.grid, hg.plot_maps]"
    assert run(f"{code}; print(json.dumps([name for name in {[*OPTIONAL, 'typer', 'rich']} if name in sys.modules]))") == []


def test_a_graph_needs_few_modules():
    """In place of seconds: modules of ours and of others that are loaded for `Graph`, beyond NumPy and SciPy."""
    code = (
        "import json, sys, numpy, scipy.linalg, scipy.sparse.linalg, scipy.sparse.csgraph\n"
        "before = set(sys.modules)\n"
        "import hushgraph as hg; hg.Graph\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = run(code)
    ours = [name for name in loaded if name.partition(".")[0] == "hushgraph"]
    assert "hushgraph.graphs.graph" in ours
    assert not {
        "hushgraph.estimators.denoising",
        "hushgraph.wavelets.frame",
        "hushgraph.files.signals",
        "hushgraph.plotting.maps",
        "hushgraph.distributed",
    } & set(ours)
    assert len(ours) < 28, ours
    assert len(loaded) - len(ours) < 10, sorted(set(loaded) - set(ours))


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hg.__all__)
def test_every_name_resolves_and_is_listed(name):
    value = getattr(hg, name)
    assert value.__doc__
    assert name in dir(hg)
    assert isinstance(value, ModuleType) == (name in PACKAGES)


@pytest.mark.parametrize("name", hg.datasets.__all__)
def test_every_data_set_resolves_and_is_listed(name):
    assert callable(getattr(hg.datasets, name))
    assert name in dir(hg.datasets)


def test_names_are_unique_and_star_imports_them():
    assert len(set(hg.__all__)) == len(hg.__all__)
    missing = run(
        "import json; space = {}; exec('from hushgraph import *', space); import hushgraph\n"
        "print(json.dumps([name for name in hushgraph.__all__ if name not in space]))"
    )
    assert missing == []


@pytest.mark.parametrize("module", [hg, hg.datasets])
def test_unknown_names_are_attribute_errors(module):
    assert not hasattr(module, "nowhere")


def test_the_old_name_of_the_explorer_still_works():
    with pytest.deprecated_call(match="hushgraph.explorer"):
        assert hg.app is hg.explorer


@pytest.mark.parametrize("name", ["denoise", "partition", "shrink", "Graph", "Denoised"])
def test_names_survive_pickling(name):
    assert pickle.loads(pickle.dumps(getattr(hg, name))) is getattr(hg, name)


def test_version_is_the_installed_one():
    assert hg.__version__ == metadata.version("hushgraph")


# ---- extras --------------------------------------------------------------------------------------------------------

WITHOUT = """
import json, sys
sys.modules.update(dict.fromkeys({names}))
import numpy as np, hushgraph as hg
grid, y = hg.datasets.grid(3, 3), np.arange(9.0) ** 2
try:
    {call}
except ImportError as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps("worked"))
"""


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("matplotlib", "hg.plot_graph_signal(grid, y)", "plot"),
        ("matplotlib", "hg.plot_maps(grid, {'noisy': y})", "plot"),
        ("sklearn", "hg.WaveletDenoiser", "sklearn"),
        ("sklearn", "from hushgraph.estimators.sklearn import WaveletDenoiser", "sklearn"),
        ("pandas", "hg.denoise(grid, y, sigma=1.0, method='sgwt_exact').to_series()", "pandas"),
    ],
)
def test_a_missing_extra_is_named(module, call, extra):
    text = run(WITHOUT.format(names=[module], call=call))
    assert f"hushgraph[{extra}]" in text
    assert "pip install" in text
    assert extra in metadata.metadata("hushgraph").get_all("Provides-Extra")


COMMAND = """
import json, os, sys
sys.modules.update(dict.fromkeys({names}))
from typer.testing import CliRunner
from hushgraph.cli import app
done = CliRunner().invoke(app, {words!r})
print(json.dumps([done.exit_code, done.output]))
"""


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("matplotlib", ["demo", "--out", "FOLDER", "--nodes", "100"], "plot"),
        ("matplotlib", ["reproduce", "table-nyc", "--smoke", "--out", "FOLDER"], "plot"),
        ("uvicorn", ["explore", "--events", "e.csv", "--graph", "g.csv", "--ledger", "l.db", "--node", "node"], "app"),
        ("starlette", ["explore"], "app"),
    ],
)
def test_a_command_asks_for_its_extra_before_it_does_anything(module, words, extra, tmp_path):
    """Nothing is charged, computed or written first; the files that explore is given do not even exist."""
    words = [word.replace("FOLDER", str(tmp_path / "out")) for word in words]
    code, text = run(COMMAND.format(names=[module], words=words))
    assert code == 2
    assert f"pip install 'hushgraph[{extra}]'" in " ".join(text.split())
    assert list(tmp_path.iterdir()) == []


def test_an_old_scikit_learn_is_told_from_a_missing_one():
    old = "import sklearn.utils.validation as v; del v.validate_data\n    hg.WaveletDenoiser"
    assert "scikit-learn 1.6 or newer" in run(WITHOUT.format(names=[], call=old))


def test_the_core_needs_no_extra():
    calls = [
        "hg.denoise(grid, y, sigma=1.0)",
        "hg.denoise(grid, dict(enumerate(y)), sigma=1.0)",
        "hg.Graph.from_edges([(0, 1)], labels=['a', 'b']).align({'a': 1, 'b': 2})",
        "dir(hg)",
    ]
    assert run(WITHOUT.format(names=OPTIONAL, call="; ".join(calls))) == "worked"
