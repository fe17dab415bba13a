"""Print the lowest versions that pyproject.toml allows of the core's requirements and those of some extras, as constraints for pip.

python .ci/floors.py all dev > floors.txt
"""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def requirements(extra: str) -> list[str]:
    """What an extra asks for, with what the extras inside it ask for."""
    found = []
    for requirement in project["optional-dependencies"][extra]:
        inside = re.fullmatch(r"hushgraph\[(.+)\]", requirement)
        found += [one for name in inside[1].split(",") for one in requirements(name)] if inside else [requirement]
    return found


for requirement in sorted({*project["dependencies"], *(one for extra in sys.argv[1:] for one in requirements(extra))}):
    name, floor = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement).groups()  # anything else has no floor to try
    print(f"{name}=={floor}")
