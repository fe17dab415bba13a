"""hushgraph: denoise signals on very large graphs, and publish them privately."""

from importlib import import_module

_HOME = {"Graph": "graph"}
__all__ = [*_HOME]
__version__ = "0.1.0"


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"hushgraph.{_HOME[name]}"), name)
    raise AttributeError(f"module 'hushgraph' has no attribute {name!r}")
