"""The documentation holds: links lead somewhere, code blocks run and print what the pages say, every public name has its page."""

import importlib.util
import re
import subprocess
import sys
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
RECIPES = [ROOT / "docs" / "contributing" / name for name in ("kernel.md", "candidate.md")]
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


@pytest.mark.parametrize("page", [*TUTORIALS, *RECIPES], ids=lambda path: path.stem)
def test_code_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("networkx")
    monkeypatch.setenv("MPLBACKEND", "agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.run(page, tmp_path)
    plt.close("all")
    missing = [name for name in run.pictures(page) if not (tmp_path / name).is_file()]
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


@pytest.mark.parametrize("package", [hg, *(getattr(hg, name) for name in hg._packages)], ids=lambda part: part.__name__)
def test_every_public_name_is_in_the_reference(package):
    page = pages.contents_page(package, "Title", pages.STAGES, "names")
    listed = [line.strip() for line in page.splitlines() if line.startswith("   ") and ":" not in line]
    assert listed == [name for names in package._CONTENTS.values() for name in names], "once each, in the order of data"


def test_every_public_name_has_a_docstring():
    for package in (hg, *(getattr(hg, name) for name in hg._packages)):
        bare = [name for names in package._CONTENTS.values() for name in names if not getattr(package, name).__doc__]
        assert not bare, f"{package.__name__}: {bare}"


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


def test_experiments_of_paper_to_code_exist():
    from hushgraph.experiments.reproduce import EXPERIMENTS

    text = (ROOT / "docs" / "paper_to_code.md").read_text("utf-8")
    assert set(re.findall(r"`((?:fig|table)-[a-z-]+|timing|corrections)`", text)) | {"fig-decay"} == set(EXPERIMENTS)
    assert all((ROOT / "src" / "hushgraph" / file).is_file() for file in re.findall(r"`(experiments/\w+\.py)`", text))
