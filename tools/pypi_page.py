"""Make the README and the metadata ready for PyPI, in place: `python tools/pypi_page.py OWNER/NAME TAG`, before a wheel is built for a release.

A README on PyPI stands alone: links to files of the repository and pictures need whole addresses. This program writes them, and the addresses
of the project into pyproject.toml, where [project.urls] is empty as long as nobody knows where the repository is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def with_whole_links(text: str, repository: str, tag: str) -> str:
    """Return Markdown in which links to files are addresses of the repository at a tag.

    >>> with_whole_links("![map](docs/a.png) and [docs](docs/b.md), [web](https://example.org)", "us/it", "v1")
    '![map](https://raw.githubusercontent.com/us/it/v1/docs/a.png) and [docs](https://github.com/us/it/blob/v1/docs/b.md), [web](https://example.org)'
    """

    def whole(link: re.Match) -> str:
        picture, title, path = link.groups()
        place = (
            f"https://raw.githubusercontent.com/{repository}/{tag}" if picture else f"https://github.com/{repository}/blob/{tag}"
        )
        return f"{picture}[{title}]({place}/{path})"

    return LINK.sub(whole, text)


def with_addresses(pyproject: str, repository: str, tag: str) -> str:
    """Return pyproject.toml with the addresses of the project."""
    place, (owner, name) = f"https://github.com/{repository}", repository.split("/")
    addresses = {
        "Repository": place,
        "Documentation": f"https://{owner}.github.io/{name}/",
        "Changelog": f"{place}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{place}/issues",
    }
    lines = "".join(f'{name} = "{address}"\n' for name, address in addresses.items())
    return pyproject.replace("[project.scripts]", f"[project.urls]\n{lines}\n[project.scripts]", 1)


def main(repository: str, tag: str) -> None:
    """Rewrite both files."""
    for name, rewritten in (("README.md", with_whole_links), ("pyproject.toml", with_addresses)):
        path = ROOT / name
        path.write_text(rewritten(path.read_text(encoding="utf-8"), repository, tag), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
