"""hushgraph: denoise signals on very large graphs, and publish them privately.

Every name is loaded when it is first used; `__init__.pyi` says where each one lives. `__all__` lists what most people need. The other
names, which researchers use, have their home in `wavelets`, `baselines`, `graphs`, `datasets` and `plotting`, and can be imported from
here too.
"""

from typing import Any

from hushgraph._extras import face

_load, __dir__, __all__ = face(__name__, __file__)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name != "app":
        return _load(name)
    from hushgraph._deprecation import warn_renamed

    warn_renamed("hushgraph.app", "hushgraph.explorer", removed_in="0.3")
    return _load("explorer")
