"""The documentation holds: links lead somewhere, code blocks run and print what the pages say, every public name has its page."""

import ast
import importlib.util
import math
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import hushgraph as hg

ROOT = Path(__file__).parents[1]
MADE_BY_THE_BUILD = ("examples/",)  # pages of the gallery
if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}|:{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = loaded(ROOT / "docs" / "tutorials" / "run.py")
pages = loaded(ROOT / "docs" / "reference" / "pages.py")
TUTORIALS = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if run.blocks(path.read_text("utf-8")))
RECIPES = [
    ROOT / "docs" / name
    for name in (
        "guides.md",
        "totals.md",
        "zones.md",
        "error_bars.md",
        "assumptions.md",
        "install.md",
        "epsilon.md",
        "coming_from.md",
        "contributing/kernel.md",
        "contributing/candidate.md",
    )
]
SOURCES = ("docs", "docs/tutorials", "docs/contributing", "docs/reference", ".")
TEXTS = sorted(path for folder in SOURCES for path in (ROOT / folder).glob("*.md"))


def anchors(text):
    """What a heading is called in a link to it."""
    titles = re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(text, folder):
    """Links of a page in `folder` that lead nowhere."""
    bad = []
    for target in LINK.findall(re.sub(r"^```(?:python|text|\n).*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        place, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or place.startswith(MADE_BY_THE_BUILD):
            continue
        path = folder / place
        known = anchors(text if not place else path.read_text("utf-8")) if anchor and (not place or path.is_file()) else {anchor}
        if (place and not path.exists()) or anchor not in known:
            bad.append(target)
    return bad


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken(page.read_text("utf-8"), page.parent) == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "here.md").write_text("# One title\n", encoding="utf-8")
    text = "[a](here.md#one-title) [b](here.md#another) [c](gone.md) [d](#none) [e](https://example.org) ![f](no.png)\n"
    assert broken(text, tmp_path) == ["here.md#another", "gone.md", "#none", "no.png"]


FOLDERS = ("src", "tests", "docs", "benchmarks", "tools", ".ci")
FILES = ["/" + path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
FILE_NAME = re.compile(r"(?<![\w/:<>*.-])(?!https?:)((?:\.?\w[\w-]*/)*\w+\.(?:py|pyi|cpp|h|inc|cu|js))\b")


def missing_files(text):
    """Files of the repository that a page names and that do not exist; a page may leave out the first folders of a path."""
    names = set(FILE_NAME.findall(text))
    return sorted(name for name in names if not any(path.endswith(f"/{name}") for path in FILES))


@pytest.mark.parametrize(
    "page", [page for page in TEXTS if page.name != "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_that_a_page_names_exist(page):
    assert missing_files(page.read_text("utf-8")) == []


def test_a_file_that_does_not_exist_is_noticed():
    text = "`core/sums.py`, core/gone.py and sums.cpp, but no/such/sums.py, (`tests/test_gone.py`)\n  _gone.py  what it holds"
    assert missing_files(text) == ["_gone.py", "core/gone.py", "no/such/sums.py", "tests/test_gone.py"]


def missing_imports(path):
    """Imports from hushgraph of a program that fail."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hushgraph":
            for name in (alias.name for alias in node.names):
                try:
                    exec(f"from {node.module} import {name}", {})
                except ImportError:
                    yield f"{node.module}.{name}"


PROGRAMS = sorted(path for folder in ("benchmarks", "docs/gallery", "docs/tutorials") for path in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_benchmarks_and_examples_import_what_exists(program):
    pytest.importorskip("starlette")
    pytest.importorskip("pyarrow")
    assert list(missing_imports(program)) == []


def test_an_import_that_fails_is_noticed(tmp_path):
    (tmp_path / "program.py").write_text(
        "from hushgraph.core import _loops\nfrom hushgraph.core import gone\nfrom hushgraph.gone import a\n"
    )
    assert list(missing_imports(tmp_path / "program.py")) == ["hushgraph.core.gone", "hushgraph.gone.a"]


@pytest.mark.parametrize(
    "page",
    [*TUTORIALS, *RECIPES, pytest.param(ROOT / "docs" / "scaling.md", marks=[pytest.mark.slow, pytest.mark.cluster])],
    ids=lambda path: path.stem,
)
def test_code_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("networkx")
    if page.stem == "own_city":
        pytest.importorskip("geopandas")
    monkeypatch.setenv("MPLBACKEND", "agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.run(page, tmp_path)
    plt.close("all")
    missing = [name for name in run.pictures(page) if page in TUTORIALS and not (tmp_path / name).is_file()]
    assert not missing, "the page shows pictures that its code does not make"


@pytest.mark.data
def test_the_block_about_the_real_file_is_what_its_script_prints(data_folder):
    pytest.importorskip("pyarrow")
    script = ROOT / "docs" / "tutorials" / "real_file.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip()
    assert printed in (ROOT / "docs" / "tutorials" / "before_you_spend.md").read_text("utf-8")
    assert printed.count("$ hushgraph check") == 4


def test_a_wrong_output_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1, 'and more')\n```\n```text\n2 ...\n```\n", encoding="utf-8")
    run.run(page, tmp_path)
    page.write_text("\n```python\nprint(1 + 1)\n```\n```text\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md, line 3"):
        run.run(page, tmp_path)


@pytest.mark.parametrize("name", pages.HEADINGS)
def test_every_public_name_is_in_the_reference(name):
    page = pages.contents_page(name, pages.packages()[name], "Title", "names")
    listed = [line.strip() for line in page.splitlines() if re.fullmatch(r"   \w+", line)]
    assert listed == pages.public_names(pages.packages()[name]), "once each, in the order of data"


@pytest.mark.parametrize("name", pages.HEADINGS)
def test_every_public_name_has_a_docstring(name):
    package = pages.packages()[name]
    assert not [public for public in pages.public_names(package) if not getattr(package, public).__doc__]
    assert all(public in pages.public_names(package) for public in pages.HEADINGS[name].values())


def test_paper_to_code_names_what_exists():
    """Names in the right-hand columns that look public are."""
    text = (ROOT / "docs" / "paper_to_code.md").read_text("utf-8")
    names = set(re.findall(r"`((?:privacy|datasets)\.\w+(?:\.\w+)?|[a-z]+_\w+|[A-Z]\w+(?:\.\w+)?)(?=[`(])", text))
    words = {"random_walk", "n_scales"}
    assert len(names) > 50
    for name in sorted(names - words):
        home = hg
        for part in name.split("."):
            found = hasattr(home, part) or part in getattr(home, "__dataclass_fields__", {})
            assert found, f"{name} is no public name"
            home = getattr(home, part, None)


@pytest.mark.parametrize(("file", "line"), [("CITATION.cff", "version: {}"), ("conda/recipe.yaml", '  version: "{}"')])
def test_the_version_is_the_same_everywhere(file, line):
    assert line.format(hg.__version__) in (ROOT / file).read_text("utf-8").splitlines()


def test_the_conda_package_has_the_same_requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    lines = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1].splitlines()
    stated = {line.strip().removeprefix("- ").replace(" ", "") for line in lines}
    assert stated == {"python" + project["requires-python"], *project["dependencies"]}


def test_tables_about_assumptions_are_those_of_the_benchmark():
    """Rows with three numbers in each cell are copied from the file that the benchmark writes."""
    page, results = ((ROOT / name).read_text("utf-8") for name in ("docs/assumptions.md", "benchmarks/results/assumptions.md"))
    rows = [line for line in page.splitlines() if line.startswith("|") and line.count(" / ") == 6]
    assert len(rows) > 20
    assert not set(rows) - set(results.splitlines())


def test_tables_of_coming_from_are_those_of_the_benchmark():
    page, results = ((ROOT / name).read_text("utf-8") for name in ("docs/coming_from.md", "benchmarks/results/coming_from.md"))
    rows = [line for line in page.splitlines() if re.match(r"\| .* \| \d+\.\d\d", line)]
    assert len(rows) == 19
    assert not set(rows) - set(results.splitlines())


def test_experiments_of_paper_to_code_exist():
    from hushgraph.experiments.reproduction import EXPERIMENTS

    text = (ROOT / "docs" / "paper_to_code.md").read_text("utf-8")
    assert set(re.findall(r"`((?:fig|table)-[a-z-]+|timing|corrections)`", text)) | {"fig-decay"} == set(EXPERIMENTS)
    assert all((ROOT / "src" / "hushgraph" / file).is_file() for file in re.findall(r"`(experiments/\w+\.py)`", text))


def test_install_lists_every_extra_for_users_with_its_packages():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for_developers = {"docs", "demo", "test", "test-tools", "browser", "lint", "dev"}
    packages = {
        name: sorted(part for one in needs for part in re.sub(r"^hushgraph\[|>=.*|\]$", "", one).split(","))
        for name, needs in extras.items()
        if name not in for_developers
    }
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (ROOT / "docs" / "install.md").read_text("utf-8"), re.MULTILINE)
    assert {name: sorted(re.findall(r"`([^`]+)`", cell)) for name, cell in rows} == packages


def test_the_table_of_words_bounds_the_chance_of_a_right_guess():
    """(exp(epsilon) + delta) / (1 + exp(epsilon)), rounded up, for the largest delta that a release may have."""
    rows = re.findall(r"^\| up to (\d+) \| ([\d.]+) % \|", (ROOT / "docs" / "privacy.md").read_text("utf-8"), re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "3", "10"]
    for epsilon, percent in ((float(row[0]), float(row[1])) for row in rows):
        bound = 100 * (math.exp(epsilon) + 1e-3) / (1 + math.exp(epsilon))
        assert bound <= percent < bound + 0.1


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CHANGELOG.md"])
def test_a_page_that_the_documentation_includes_has_no_relative_link(name):
    """Such a link would lead elsewhere from the page that includes it, and `make docs` would fail."""
    form = re.compile(r"\]\((?!https?:|#)[^)\s]+\)")
    assert form.search("see [the page](SECURITY.md)")
    assert form.findall((ROOT / name).read_text(encoding="utf-8")) == []
