"""Texts to numbers and back, many at a time: a hash table over a store of all texts.

`core/ids.cpp` describes the table and the store.
"""

from __future__ import annotations

import numpy as np

from hushgraph.core import _loops

PADDING = bytes(8)  # follows the bytes of texts, since they are read eight at a time


class Names:
    """Texts, numbered in the order of their first occurrence.

    Examples
    --------
    >>> names = Names()
    >>> names.numbers(b"oak,elm,oak" + PADDING, np.array([span(0, 3), span(4, 7), span(8, 11)])).tolist()
    [0, 1, 0]
    >>> names.text(1)
    b'elm'
    """

    def __init__(self) -> None:
        self._slots, self._store = np.zeros(1 << 10, np.uint64), np.empty(1 << 10, np.uint64)
        self._used = np.zeros(2, np.int64)  # texts, words of the store

    def __len__(self) -> int:
        return int(self._used[0])

    def numbers(self, padded: bytes | np.ndarray, spans: np.ndarray) -> np.ndarray:
        """Return the number of each text; `spans` has their starts and ends in bytes that end in `PADDING`."""
        text, flat = np.frombuffer(padded, dtype=np.uint8), np.ascontiguousarray(spans, dtype=np.int64).ravel()
        result, done = np.empty(len(flat), dtype=np.int64), 0
        while True:
            done += _loops.number_texts(text, flat[done:], result[done:], self._slots, self._store, self._used)
            if done == len(flat):
                return result.reshape(spans.shape)
            self._make_room()

    def _make_room(self) -> None:
        count, used = self._used.tolist()
        if 2 * (count + _loops.BATCH) > len(self._slots):
            self._slots = np.zeros(4 * len(self._slots), np.uint64)
            _loops.fill_slots(self._slots, self._store, used)
        else:
            self._store = np.concatenate([self._store[:used], np.empty(2 * len(self._store) - used, np.uint64)])

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all bytes, the start of each text, and its length in bytes."""
        starts, lengths = _loops.text_places(self._store, len(self))
        content = self._store[: int(self._used[1])].astype("<u8", copy=False).view(np.uint8)
        return content, starts, lengths

    def text(self, number: int) -> bytes:
        """Return the text of a number."""
        content, starts, lengths = self.places()
        return content[starts[number] : starts[number] + lengths[number]].tobytes()

    def texts(self) -> list[bytes]:
        """Return all texts, by number."""
        content, starts, lengths = self.places()
        whole = content.tobytes()
        return [whole[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]

    def decoded(self, most_characters: int, most_bytes: int) -> tuple[np.ndarray | None, int]:
        """Return all texts as an array of str, None if it would be too large, and the length of the longest.

        A text that is not UTF-8 is a UnicodeDecodeError.
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
    """Return the start and end of a text as one number."""
    return start << 32 | end
