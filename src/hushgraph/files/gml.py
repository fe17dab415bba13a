"""GML files, read as a stream of tokens."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from hushgraph._errors import InputError
from hushgraph._validation import shown
from hushgraph.files.attributed import Collected, labels_of_ids
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.text import numbered_lines
from hushgraph.graphs import EdgeTable, is_integer, text_labels

# ---- GML ------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r'\s*(?:(?P<string>"[^"]*")|(?P<bracket>[\[\]])|(?P<word>[^\s\[\]"]+))')
_DEEPEST = 64
_LONGEST_TEXT = 1 << 23  # characters


def read_gml(path: Path, *, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    """Return the edges of a GML file; labels are the attribute label of the nodes, or else their id."""
    collected, inside = Collected(path, weight, distance), False
    labels: list[str | None] = []
    for kind, values, line in _gml_items(path):
        if kind == "graph":
            inside = True
        elif kind == "node":
            if not is_integer(values.get("id", "")):
                msg = f"the node that ends on line {line} of {path} has no integer id; the file is garbled"
                raise InputError(msg)
            labels.append(values.get("label"))
            collected.add_node(int(values["id"]), int(values["id"]), values, line)
        elif not all(is_integer(values.get(end, "")) for end in ("source", "target")):
            msg = f"the edge that ends on line {line} of {path} has no integer source and target; the file is garbled"
            raise InputError(msg)
        else:
            value = {name: text for name, text in values.items() if name == collected.wanted}
            collected.add_edge((int(values["source"]), int(values["target"])), value, line)
    if not inside:
        msg = f"{path} must be GML, which begins with 'graph ['; it is empty or something else"
        raise InputError(msg)
    given = [label for label in labels if label is not None]
    if len(given) == len(labels) and any(label.startswith('"') for label in given):
        return collected.table(text_labels([html.unescape(label.strip('"')) for label in given], path))
    numbers = given if len(given) == len(labels) and all(map(is_integer, given)) else list(map(str, collected.names))
    return collected.table(labels_of_ids(numbers, path))


def _gml_items(path: Path) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield ("graph", {}, line) at the start of a graph and ("node" or "edge", attributes, line) at the end of each of them.

    Texts have their quotation marks.
    """
    stack: list[tuple[str, dict[str, str]]] = []
    key, line = None, 0
    for token, line in _gml_tokens(path):
        if token == "[" and key is not None and len(stack) < _DEEPEST:
            stack.append((key, {}))
            if key == "graph" and len(stack) == 1:
                yield "graph", {}, line
            key = None
        elif token == "]" and key is None and stack:
            name, values = stack.pop()
            if name in ("node", "edge") and [outer for outer, _ in stack] == ["graph"]:
                yield name, values, line
        elif token in "[]" or (key is None and token.startswith('"')):
            msg = f"line {line} of {path} is no GML: {shown(token)} is out of place; the file is truncated or garbled"
            raise InputError(msg)
        elif key is None:
            key = token
        else:
            if stack:
                stack[-1][1].setdefault(key, token)
            key = None
    if stack or key is not None:
        msg = f"{path} ends within its graph after line {line}; it is truncated; copy or download it again"
        raise InputError(msg)


def _gml_tokens(path: Path) -> Iterator[tuple[str, int]]:
    held: list[str] = []  # lines of a text that goes on
    size, within = 0, False
    for number, line in numbered_lines(path):
        if not within and line.lstrip().startswith("#"):
            continue
        within ^= bool(line.count('"') % 2)
        held.append(line)
        size += len(line)
        if within and size < _LONGEST_TEXT:
            continue
        if within:
            break
        for match in _TOKEN.finditer("".join(held)):
            yield match[match.lastgroup or 0], number
        held, size = [], 0
    if within:
        msg = f"{path} ends within quotation marks, or has a text of many megabytes; it is truncated or garbled"
        raise InputError(msg)
