"""The compiled loops (`_loops`, built from the C++ sources in this folder) and the number of their threads.

The loops work on arrays and know nothing about graphs.
"""

from __future__ import annotations

import atexit

from hushgraph._errors import MissingPackageError
from hushgraph._extras import face

try:
    from hushgraph.core import _loops
except ImportError as error:
    _msg = (
        f"the compiled loops of hushgraph cannot be loaded ({error}); install hushgraph for this Python: pip install hushgraph, or "
        "pip install . in a copy of its sources"
    )
    raise MissingPackageError(_msg) from error

from hushgraph.core.threads import processors

_loops.set_processors(processors())
atexit.register(_loops.close)

__getattr__, __dir__, __all__ = face(__name__, __file__)
