"""`tools/pypi_page.py` makes a README without broken links, and addresses in the metadata."""

import doctest
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "tools" / "pypi_page.py"))
pytestmark = pytest.mark.skipif(
    "[project.urls]" in (ROOT / "pyproject.toml").read_text(encoding="utf-8"), reason="these files are ready for PyPI already"
)


def test_no_relative_link_is_left():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(PAGE["LINK"].findall(text)) > 10
    whole = PAGE["with_whole_links"](text, "us/it", "v1")
    assert PAGE["LINK"].findall(whole) == []
    assert whole.count("raw.githubusercontent.com/us/it/v1/docs/images/") == text.count("](docs/images/")


def test_linked_files_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [path for _, _, path in PAGE["LINK"].findall(text) if not (ROOT / path.split("#")[0]).exists()]
    assert missing == []


def test_addresses_are_metadata():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    before, after = tomllib.loads(text), tomllib.loads(PAGE["with_addresses"](text, "us/it", "v1"))
    assert after["project"].pop("urls")["Changelog"] == "https://github.com/us/it/blob/v1/CHANGELOG.md"
    assert after == before


def test_examples():
    tests = doctest.DocTestFinder().find(PAGE["with_whole_links"], "with_whole_links", globs=PAGE)
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).failed for test in tests) == 0
    assert runner.tries > 0
