"""The shape of the package: rooms, their faces, and the names that everybody may use."""

import ast
import importlib
from pathlib import Path

import pytest

import hushgraph

HOME = Path(hushgraph.__file__).parent
ROOMS = sorted(path.name for path in HOME.iterdir() if (path / "__init__.py").exists())
FACES = [room for room in ROOMS if (HOME / room / "__init__.pyi").exists()]


def imports_of(path: Path):
    """Every module of hushgraph that a file imports from, with the names it imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hushgraph."):
            yield node.module.split(".")[1:], [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[1:], []) for alias in node.names if alias.name.startswith("hushgraph."))


def test_there_are_twelve_rooms_and_nine_small_files():
    files = sorted(path.name for path in HOME.glob("*.py") if path.name != "__init__.py")
    assert len(ROOMS) == 12
    assert len(files) <= 9, files


def inside_imports(path: Path) -> list[str]:
    room = path.relative_to(HOME).parts[0]
    return [".".join(parts) for parts, _ in imports_of(path) if len(parts) > 1 and parts[0] != room]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_the_faces_of_other_rooms_only(room):
    wrong = {str(path.relative_to(HOME)): found for path in (HOME / room).rglob("*.py") if (found := inside_imports(path))}
    assert not wrong


def test_the_test_of_faces_can_fail(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "module.py"
    file.write_text("from hushgraph.graphs.graph import Graph\nfrom hushgraph.graphs import Graph\nimport hushgraph.core.sums\n")
    monkeypatch.setattr(__import__(__name__, fromlist=["HOME"]), "HOME", tmp_path)
    assert inside_imports(file) == ["graphs.graph", "core.sums"]


def names_in(stub: Path) -> dict[str, str]:
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {alias.name: node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


@pytest.mark.parametrize("room", FACES)
def test_a_face_offers_only_names_that_another_room_or_a_user_needs(room):
    """Every name of a face can be loaded, and is public or used by another room."""
    module = importlib.import_module(f"hushgraph.{room}")
    used = {name for path in HOME.rglob("*.py") for parts, names in imports_of(path) if parts == [room] for name in names}
    public = set(getattr(module, "__all__", ())) if room not in ("core", "experiments") else set()
    offered = names_in(HOME / room / "__init__.pyi")
    for name in offered:
        getattr(module, name)
    assert not set(offered) - used - public
    assert public <= set(offered)


@pytest.mark.parametrize("path", sorted(HOME.rglob("*.py")), ids=lambda path: str(path.relative_to(HOME)))
def test_no_module_has_the_name_of_a_function_in_it(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert path.stem not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
