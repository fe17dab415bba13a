"""Texts to numbers and back, many at a time: a hash table over a store of all texts. Knows bytes and arrays only.

What the table and the store look like says `core/ids.cpp`.
"""

from __future__ import annotations

import numpy as np

from hushgraph.core import _loops

PADDING = bytes(8)  # what must follow the bytes in which texts lie, since they are read eight at a time


class Names:
    """Texts, numbered in the order in which they are first met.

    Examples
    --------
    >>> names = Names()
    >>> names.numbers(b"oak,elm,oak" + PADDING, np.array([span(0, 3), span(4, 7), span(8, 11)])).tolist()
    [0, 1, 0]
    >>> names.text(1)
    b'elm'
    """

    def __init__(self):
        self._slots, self._store = np.zeros(1 << 10, np.uint64), np.empty(1 << 10, np.uint64)
        self._used = np.zeros(2, np.int64)  # texts, words of the store

    def __len__(self) -> int:
        return int(self._used[0])

    def numbers(self, padded, spans: np.ndarray) -> np.ndarray:
        """The number of each text, of which `spans` says where it lies in bytes that end in `PADDING`."""
        text, flat = np.frombuffer(padded, dtype=np.uint8), np.ascontiguousarray(spans, dtype=np.int64).ravel()
        found, done = np.empty(len(flat), dtype=np.int64), 0
        while True:
            done += _loops.number_texts(text, flat[done:], found[done:], self._slots, self._store, self._used)
            if done == len(flat):
                return found.reshape(spans.shape)
            self._make_room()

    def _make_room(self):
        count, used = self._used.tolist()
        if 2 * (count + _loops.BATCH) > len(self._slots):
            self._slots = np.zeros(4 * len(self._slots), np.uint64)
            _loops.fill_slots(self._slots, self._store, used)
        else:
            self._store = np.concatenate([self._store[:used], np.empty(2 * len(self._store) - used, np.uint64)])

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(all bytes, where each text begins, its length in bytes)."""
        starts, lengths = _loops.text_places(self._store, len(self))
        content = self._store[: int(self._used[1])].astype("<u8", copy=False).view(np.uint8)
        return content, starts, lengths

    def text(self, number: int) -> bytes:
        content, starts, lengths = self.places()
        return content[starts[number] : starts[number] + lengths[number]].tobytes()

    def texts(self) -> list[bytes]:
        """All texts, by number."""
        content, starts, lengths = self.places()
        whole = content.tobytes()
        return [whole[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]

    def decoded(self, most_characters: int, most_bytes: int) -> tuple[np.ndarray | None, int]:
        """(all texts as an array of str, None if there is no room for that; length of the longest).

        Not all being UTF-8 is a UnicodeDecodeError.
        """
        content, starts, lengths = self.places()
        plain = _loops.are_ascii(content, starts, lengths)
        others = {
            number: content[starts[number] : starts[number] + lengths[number]].tobytes().decode()
            for number in np.flatnonzero(~plain).tolist()
        }
        longest = max(int(np.max(lengths, initial=0, where=plain)), max(map(len, others.values()), default=0))
        if longest > most_characters or 4 * longest * len(self) > most_bytes:
            return None, longest
        codes = np.zeros((len(self), max(longest, 1)), dtype=np.uint32)
        _loops.spread_texts(content, starts, lengths, plain, codes)
        texts = codes.view(f"U{max(longest, 1)}")[:, 0]
        for number, text in others.items():
            texts[number] = text
        return texts, longest


def span(start: int, end: int) -> int:
    """Where a text lies, as one number."""
    return start << 32 | end
