"""The compiled loops (`_loops`, made of the C++ sources beside this file) and the number of threads they use. They know arrays, no graphs."""

from __future__ import annotations

import atexit

from hushgraph._errors import MissingPackageError

try:
    from hushgraph.core import _loops
except ImportError as error:
    _msg = (
        f"the compiled loops of hushgraph cannot be loaded ({error}); install hushgraph for this Python: pip install hushgraph, or "
        "pip install . in a copy of its sources"
    )
    raise MissingPackageError(_msg) from error

from hushgraph.core.threads import processors, thread_count, use_threads

_loops.set_processors(processors())
atexit.register(_loops.close)

__all__ = ["_loops", "processors", "thread_count", "use_threads"]
