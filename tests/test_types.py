"""Types of the public names, as editors and type checkers see them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hushgraph

SOURCE = Path(hushgraph.__file__).parent.parent
HEAD = "import numpy as np\nimport hushgraph as hg\ng, y = hg.datasets.grid(3, 4), np.zeros(12)\n"
GOOD = """
hg.denoise(g, y, sigma=2)
hg.denoise(g, y, sigma=np.ones(12))
hg.denoise(g, y, sigma=[1.0] * 12)
hg.denoise(g, y, sigma=np.float32(2))
hg.denoise(g, dict(enumerate(y)), sigma=dict(enumerate(y)), method="sgwt_sure")
frame = hg.chebyshev_frame(g, plateau="meyer")
F = hg.analyze(frame, y)
t = hg.sure_thresholds(F, hg.monte_carlo_weights(frame), sigma=1.0, threshold_scale=True)
hg.synthesize(hg.exact_frame(g), hg.shrink(F, t[:, None], rule="soft")[0])
print(hg.Graph.from_edges([(0, 1)]).degrees, hg.estimate_sigma(g, y), hg.to_networkx(g))
"""
BAD = {
    "an unknown function": ("hg.denoize(g, y)", "denoize"),
    "sigma is no text": ('hg.denoise(g, y, sigma="two")', "sigma"),
    "an unknown method": ('hg.denoise(g, y, method="magic")', "method"),
    "an unknown argument": ("hg.denoise(g, y, sgima=2.0)", "sgima"),
    "an unknown rule": ('hg.shrink(y, 1.0, rule="gentle")', "rule"),
    "an old argument": ("hg.sure(y, 1.0, weights=y, sigma=1.0, scaled=True)", "scaled"),
    "a frame is no graph": ("hg.chebyshev_frame(hg.chebyshev_frame(g))", "Graph"),
}
REVEALED = {
    "hg.denoise(g, y)": "hushgraph.estimators.result.Denoised",
    "g": "hushgraph.graphs.graph.Graph",
    "hg.Graph.from_edges([(0, 1)])": "hushgraph.graphs.graph.Graph",
    "hg.chebyshev_frame(g)": "hushgraph.wavelets.frame.ChebyshevFrame",
    "hg.estimate_sigma(g, y)": "hushgraph.wavelets.noise_level.NoiseLevel",
}


def checked(tmp_path: Path, lines: list[str]) -> dict[int, str]:
    """What mypy says of each line after the head, numbered from 0."""
    file = tmp_path / "snippet.py"
    file.write_text(HEAD + "\n".join(lines) + "\n")
    options = ["--ignore-missing-imports", "--follow-imports=silent", "--no-error-summary", "--config-file="]
    cache = f"--cache-dir={tmp_path.parent / 'mypy'}"
    path = {} if SOURCE.name == "site-packages" else {"MYPYPATH": str(SOURCE)}  # mypy refuses a path that it searches anyway
    command = [sys.executable, "-m", "mypy", *options, cache, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **path})
    assert not done.stderr, done.stderr
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        place, _, text = line.partition(": ")
        if "snippet.py" not in place:
            continue
        number = int(place.rsplit(":", 1)[1]) - 1 - HEAD.count("\n")
        said[number] = f"{said.get(number, '')}{text}\n"
    return said


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says of all lines, in one run: it takes seconds."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    revealed = [f"reveal_type({expression})" for expression in REVEALED]
    lines = [line for line, _ in BAD.values()] + revealed + GOOD.strip().splitlines()
    return checked(tmp_path_factory.mktemp("types"), lines)


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_errors(said, case):
    text = said.get(list(BAD).index(case), "")
    assert "error: " in text
    assert BAD[case][1] in text


@pytest.mark.parametrize("expression", REVEALED)
def test_results_have_their_types(said, expression):
    text = said[len(BAD) + list(REVEALED).index(expression)]
    assert "Revealed type is" in text
    assert f'{REVEALED[expression]}"' in text


def test_right_calls_are_no_errors(said):
    assert {number: text for number, text in said.items() if number >= len(BAD) + len(REVEALED)} == {}


def test_pyright_agrees(tmp_path):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    file = tmp_path / "snippet.py"
    file.write_text(HEAD + 'hg.denoize(g, y)\nhg.denoise(g, y, sigma="two")\nreveal_type(hg.denoise(g, y))\n' + GOOD)
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{SOURCE}"], "reportMissingImports": false}}')
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    if "snippet.py" not in done.stdout:
        pytest.skip("pyright cannot start: it needs node")
    assert '"denoize"' in done.stdout
    assert '"sigma"' in done.stdout
    assert 'is "Denoised"' in done.stdout
    assert "2 errors" in done.stdout
