"""Write the list of all parts of hushgraph (CycloneDX): `python tools/sbom.py PYTHON FILE`.

PYTHON is the interpreter of an environment in which `hushgraph[all]` is installed, and nothing else. The list has its packages, without pip and setuptools, which
brought them there, and the C++ libraries that are compiled into the loops: nanobind, in the version of this environment, and robin-map inside it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALLERS = ("pip", "setuptools", "hushgraph")  # hushgraph is the subject of the list


def compiled_parts() -> list[dict]:
    """Return the libraries inside the compiled loops; the license of each is in licenses/."""
    nanobind, robin_map = metadata.version("nanobind"), robin_map_version()
    return [
        {
            "type": "library",
            "bom-ref": f"{name}, compiled",
            "name": name,
            "version": version,
            "purl": f"pkg:{place}@{tag}",
            "licenses": [{"license": {"id": license_id}}],
            "description": "compiled into hushgraph.core._loops",
        }
        for name, version, place, tag, license_id in (
            ("nanobind", nanobind, "pypi/nanobind", nanobind, "BSD-3-Clause"),
            ("robin-map", robin_map, "github/tessil/robin-map", f"v{robin_map}", "MIT"),
        )
    ]


def robin_map_version() -> str:
    """Return the version of robin-map that nanobind brings."""
    header = next(file for file in metadata.files("nanobind") if file.name == "robin_growth_policy.h")
    text = header.locate().read_text(encoding="utf-8")
    return ".".join(re.search(rf"TSL_RH_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def main(python: str, file: str) -> None:
    """Write the list."""
    words = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--mc-type",
        "library",
        "--pyproject",
        str(ROOT / "pyproject.toml"),
        python,
    ]
    bom = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    bom["metadata"]["component"]["version"] = metadata.version("hushgraph")  # dynamic in pyproject.toml
    compiled, root = compiled_parts(), bom["metadata"]["component"]["bom-ref"]
    bom["components"] = [part for part in bom["components"] if part["name"] not in INSTALLERS] + compiled
    refs = {root, *(part["bom-ref"] for part in bom["components"])}
    needs = {
        one["ref"]: [ref for ref in one.get("dependsOn", []) if ref in refs] for one in bom["dependencies"] if one["ref"] in refs
    }
    needs[root] += [part["bom-ref"] for part in compiled]
    bom["dependencies"] = [{"ref": ref, "dependsOn": others} for ref, others in needs.items()]
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(json.dumps(bom, indent=1) + "\n")
    print(f"{len(bom['components'])} parts of {bom['metadata']['component']['name']} in {file}")


if __name__ == "__main__":
    main(*sys.argv[1:])
