"""The built documentation in a real browser, light and dark, on a laptop and a phone. `make docs-check` builds it and runs this.

axe checks what can be checked without a person: contrast, names of links and buttons, texts of pictures, the order of headings.
"""

from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "out" / "docs"
if not (BUILT / "index.html").is_file():
    pytest.skip("the documentation is not built: make docs", allow_module_level=True)
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

PAGES = (
    "index",
    "install",
    "tutorials/data_owner",
    "tutorials/own_city",
    "privacy",
    "epsilon",
    "totals",
    "reference/generated/names/hushgraph.denoise",
    "reference/generated/command_line",
    "examples/plot_release",
)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["laptop", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(offline_tab, pictures, name, size, theme):
    page = offline_tab(size).page
    page.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
    page.goto((BUILT / f"{name}.html").as_uri())
    page.wait_for_timeout(300)
    page.screenshot(path=pictures / f"docs-{name.rpartition('/')[2]}-{size}-{theme}.png", full_page=True)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    found = axe.Axe().run(page).response["violations"]
    assert not found, "\n".join(f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in found for node in one["nodes"][:3])
