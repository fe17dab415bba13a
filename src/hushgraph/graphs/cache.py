"""Cache: values that were computed from a graph and are kept with it, such as spectra, row orders and filters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """Values by key; each has a version, and only the latest version is kept.

    Keys of values on a GPU contain the text "device".

    Examples
    --------
    >>> cache = Cache()
    >>> cache.value("square", lambda: 9, version=3), cache.value("square", lambda: 0, version=3), cache.value("square", lambda: 16, version=4)
    (9, 9, 16)
    >>> list(cache)
    ['square']
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[Hashable, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._entries))

    def value(self, key: Hashable, make: Callable[[], T], *, version: Hashable = None) -> T:
        """Return the cached value for `key`, computing it with `make` on a miss or if the cached value has another version."""
        entry = self._entries.get(key)
        if entry is None or entry[0] != version:
            entry = self._entries[key] = version, make()
        return entry[1]

    def get(self, key: Hashable) -> Any:
        """Return the cached value for `key`, or None."""
        return self._entries.get(key, (None, None))[1]

    def put(self, key: Hashable, value: Any) -> None:
        """Cache a value that was computed elsewhere."""
        self._entries[key] = None, value

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()

    def drop_device_values(self) -> list[Any]:
        """Drop the values that are on a GPU, and return all others."""
        for key in self:
            if "device" in str(key):
                del self._entries[key]
        return [value for _, value in self._entries.values()]
