"""Graphs and events to try things on. The generated ones need no download and are the same for the same seed."""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {"generated": ["city", "roads", "grid", "path", "random_geometric"], "trips": ["trips"]}
__all__ = lazily(__name__, _CONTENTS)

if TYPE_CHECKING:  # type checkers do not see the names that are loaded lazily

    def __getattr__(name: str) -> Any: ...
