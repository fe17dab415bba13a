"""Graphs to try things on. The generated ones need no download and are the same for the same seed."""

from importlib import import_module

_HOME = {"city": "generated", "roads": "generated", "grid": "generated", "random_geometric": "generated"}
__all__ = list(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"hushgraph.datasets.{_HOME[name]}"), name)
    msg = f"module 'hushgraph.datasets' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__():
    return [*globals(), *__all__]
