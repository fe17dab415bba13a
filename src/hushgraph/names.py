"""Texts to numbers and back, many at a time: a hash table over a store of all texts. Knows bytes and arrays only.

The store is a row of records, each a word with number and length and then the bytes of the text in words of eight. A slot of the
table holds where the record begins, with some bits of the hash, so that other texts are hardly ever looked at. A table of millions
lies far from the processor, but memory answers many questions in the time of one; so texts are looked up in batches, of which all
slots are fetched first, then all records.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PADDING = bytes(8)  # what must follow the bytes in which texts lie, since they are read eight at a time
_BATCH = 128
_OFFSET, _TAG = np.uint64((1 << 40) - 1), np.uint64(40)  # a slot: bits of the hash above, place of the record plus 1 below
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_ODD, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)


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
        found = np.empty(len(flat), dtype=np.int64)
        for start in range(0, len(flat), 1 << 18):  # little is set aside for texts that are known already
            part = flat[start : start + (1 << 18)]
            self._make_room(len(part), int(_bytes_of(part)))
            _number(text, part, found[start : start + len(part)], self._slots, self._store, self._used)
        return found.reshape(spans.shape)

    def _make_room(self, texts: int, size: int):
        count, used = map(int, self._used)
        words = used + 2 * texts + size // 8
        if words > len(self._store):
            self._store = np.concatenate([self._store[:used], np.empty(2 * words - used, np.uint64)])
        if 2 * (count + texts) > len(self._slots):
            self._slots = np.zeros(1 << int(2 * (count + texts)).bit_length(), np.uint64)
            _fill(self._slots, self._store, used)

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(all bytes, where each text begins, its length in bytes)."""
        starts, lengths = _places(self._store, len(self))
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
        plain = _are_ascii(content, starts, lengths)
        others = {
            number: content[starts[number] : starts[number] + lengths[number]].tobytes().decode()
            for number in np.flatnonzero(~plain).tolist()
        }
        longest = max(int(np.max(lengths, initial=0, where=plain)), max(map(len, others.values()), default=0))
        if longest > most_characters or 4 * longest * len(self) > most_bytes:
            return None, longest
        codes = np.zeros((len(self), max(longest, 1)), dtype=np.uint32)
        _spread(content, starts, lengths, plain, codes)
        texts = codes.view(f"U{max(longest, 1)}")[:, 0]
        for number, text in others.items():
            texts[number] = text
        return texts, longest


def span(start: int, end: int) -> int:
    """Where a text lies, as one number."""
    return start << 32 | end


@njit(cache=True)
def _bytes_of(spans):
    total = 0
    for place in spans:
        total += (place & 0xFFFFFFFF) - (place >> 32)
    return total


@njit(cache=True)
def _word(text, i, left):
    """Eight bytes from i, of which only the first `left` count."""
    word = _ZERO
    for k in range(8):
        word |= np.uint64(text[i + np.uint64(k)]) << np.uint64(8 * k)
    return word if left >= _EIGHT else word & ((_ONE << (_EIGHT * left)) - _ONE)


@njit(cache=True)
def _mixed(key, word):
    """A hash with one more word in it; a product carries bits up only, so the upper half goes down before each and at the end."""
    key ^= word
    key = (key ^ (key >> _HALF)) * _ODD
    key = (key ^ (key >> _HALF)) * _SEED
    return key ^ (key >> _HALF)


@njit(cache=True)
def _number(text, spans, found, slots, store, used):
    keys, mask, touched = np.empty(_BATCH, np.uint64), np.uint64(len(slots) - 1), _ZERO
    for first in range(0, len(spans), _BATCH):
        size = min(_BATCH, len(spans) - first)
        for k in range(size):
            i, end = np.uint64(spans[first + k] >> 32), np.uint64(spans[first + k]) & _LOW
            key = _SEED ^ (end - i)
            while i < end:
                key = _mixed(key, _word(text, i, end - i))
                i += _EIGHT
            keys[k] = key
        for k in range(size):
            touched ^= slots[keys[k] & mask]
        for k in range(size):
            place = keys[k] & mask
            while slots[place] and (slots[place] ^ keys[k]) >> _TAG:
                place = (place + _ONE) & mask
            if slots[place]:
                touched ^= store[(slots[place] & _OFFSET) - _ONE]
        for k in range(size):
            i, end = np.uint64(spans[first + k] >> 32), np.uint64(spans[first + k]) & _LOW
            found[first + k] = _number_of(text, i, end, keys[k], slots, store, used)
    return touched  # or the compiler would see that nobody needs what was fetched


@njit(cache=True)
def _number_of(text, i, end, key, slots, store, used):
    """The number of text[i:end], whose hash is `key`; a new one if it has none."""
    mask = np.uint64(len(slots) - 1)
    place = key & mask
    while slots[place]:
        if (slots[place] ^ key) >> _TAG == _ZERO:
            record = (slots[place] & _OFFSET) - _ONE
            if store[record] & _LOW == end - i and _same(text, i, end, store, record + _ONE):
                return np.int64(store[record] >> _HALF)
        place = (place + _ONE) & mask
    number, record = used[0], np.uint64(used[1])
    slots[place] = (key >> _TAG << _TAG) | (record + _ONE)
    store[record] = np.uint64(number) << _HALF | (end - i)
    record += _ONE
    while i < end:
        store[record] = _word(text, i, end - i)
        record += _ONE
        i += _EIGHT
    used[0], used[1] = number + 1, np.int64(record)
    return number


@njit(cache=True)
def _same(text, i, end, store, record):
    while i < end:
        if store[record] != _word(text, i, end - i):
            return False
        record += _ONE
        i += _EIGHT
    return True


@njit(cache=True)
def _fill(slots, store, used):
    """Puts all texts of a store into an empty table."""
    mask, record = np.uint64(len(slots) - 1), _ZERO
    while record < np.uint64(used):
        size = store[record] & _LOW
        words, key = (size + np.uint64(7)) // _EIGHT, _SEED ^ size
        for k in range(words):
            key = _mixed(key, store[record + _ONE + np.uint64(k)])
        place = key & mask
        while slots[place]:
            place = (place + _ONE) & mask
        slots[place] = (key >> _TAG << _TAG) | (record + _ONE)
        record += words + _ONE


@njit(cache=True)
def _places(store, count):
    starts, lengths = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    record = 0
    for number in range(count):
        starts[number], lengths[number] = 8 * (record + 1), np.int64(store[record] & _LOW)
        record += 1 + (lengths[number] + 7) // 8
    return starts, lengths


@njit(cache=True)
def _are_ascii(content, starts, lengths):
    plain = np.ones(len(starts), dtype=np.bool_)
    for number in range(len(starts)):
        bits = 0
        for k in range(starts[number], starts[number] + lengths[number]):
            bits |= content[k]
        plain[number] = bits < 128
    return plain


@njit(cache=True)
def _spread(content, starts, lengths, plain, codes):
    for number in range(len(starts)):
        if plain[number]:
            for k in range(lengths[number]):
                codes[number, k] = content[starts[number] + k]
