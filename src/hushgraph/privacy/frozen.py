"""Values that nobody can change, so that a certificate says what was done when counts or a release were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from hushgraph._errors import InputTypeError


class FrozenDict(dict):
    """A dict that cannot be changed; it is pickled and printed like a dict."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({name: FrozenDict(value) if isinstance(value, dict) else value for name, value in values.items()})

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        msg = "these values belong to counts or a release and cannot be changed; use dict(...) for a copy"
        raise InputTypeError(msg)

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict]]:
        return FrozenDict, (dict(self),)


def frozen_array(values: np.ndarray) -> np.ndarray:
    """Return a copy of an array on top of bytes, which nobody can make writeable again."""
    return np.frombuffer(values.tobytes(), dtype=values.dtype).reshape(values.shape)
