"""Cases for `ids.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case

PADDING = bytes(8)


def packed(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all texts, and the span of each text."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64).reshape(-1)
    starts = ends - np.array([len(text) for text in texts], dtype=np.int64)
    return np.frombuffer(b"".join(texts) + PADDING, dtype=np.uint8), starts << 32 | ends


def collections(random) -> Iterator[tuple[str, list[bytes]]]:
    """Yield lists of texts with labels."""
    yield "nothing", []
    yield "one", [b"a"]
    yield "empty", [b"", b"", b"a", b""]
    yield "nuls", [b"a", b"a\0", b"a\0\0", b"\0", b"\0\0", b"", b"\0" * 8, b"\0" * 9]
    yield "words of eight", [b"12345678"[:k] + b"9" * j for k in range(9) for j in range(9)]
    yield "integers", [b"%d" % k for k in random.randint(0, 500, 4000)]
    yield "negative integers", [b"%d" % k for k in random.randint(-(2**62), 2**62, 300)]
    yield "largest integers", [b"9223372036854775807", b"-9223372036854775807", b"0", b"-1"]
    for bad in (b"9223372036854775808", b"-9223372036854775808", b"-0", b"00", b"+1", b"", b"-", b"1.0", b"1" * 20, b"1\0", b"0x1"):
        yield f"integers and {bad!r}", [b"1", b"2", bad]
    for count in (127, 128, 129, 256, 300):
        yield f"{count} of all lengths", [bytes(random.randint(0, 256, k % 40, dtype=np.uint8)) for k in range(count)]
    yield "few of many", [b"person-%07d" % k for k in random.randint(0, 50, 5000)]
    yield "many", [b"person-%07d" % k for k in random.randint(0, 10**7, 3000)]
    yield "long", [bytes(random.randint(97, 99, k, dtype=np.uint8)) for k in (1000, 70_000, 1000, 8, 65_536)]
    yield "characters", [text.encode() for text in ("élève", "a", "日本", "", "\U0001f600", "plain", "ä")]


def cases() -> Iterator[Case]:
    random = np.random.RandomState(2)
    for label, texts in collections(random):
        text, spans = packed(texts)
        n_words = sum(1 + (len(item) + 7) // 8 for item in texts)
        for more, slots in (("", 1 << max(10, (2 * len(texts) + 256).bit_length())), (" in a large table", 1 << 15)):
            table = (np.zeros(slots, np.uint64), np.zeros(n_words + 3, np.uint64), np.zeros(2, np.int64))
            yield Case(f"number {label}{more}", "number_texts", (text, spans, np.zeros(len(spans), np.int64), *table))
        for what, slots, room in (("few slots", 256, n_words + 3), ("little store", 1 << 14, n_words // 2)):
            table = (np.zeros(slots, np.uint64), np.zeros(room, np.uint64), np.zeros(2, np.int64))
            yield Case(f"number {label} in {what}", "number_texts", (text, spans, np.zeros(len(spans), np.int64), *table))
        known = list(dict.fromkeys(texts))
        store = np.zeros(n_words + 3, np.uint64)
        used = 0
        for number, item in enumerate(known):
            store[used] = number << 32 | len(item)
            content = np.frombuffer(item + bytes(-len(item) % 8), dtype="<u8")
            store[used + 1 : used + 1 + len(content)] = content
            used += 1 + len(content)
        yield Case(f"fill {label}", "fill_slots", (np.zeros(1 << 14, np.uint64), store, used))
        yield Case(f"places {label}", "text_places", (store, len(known)))
        lengths = np.array([len(item) for item in texts], dtype=np.int64)
        starts = spans >> 32
        plain = np.array([item.isascii() for item in texts], dtype=bool)
        yield Case(f"ascii {label}", "are_ascii", (text, starts, lengths))
        codes = np.zeros((len(texts), max(lengths.max(initial=0) if len(texts) < 1000 else 40, 1)), dtype=np.uint32)
        if codes.size < 1 << 20:
            yield Case(f"spread {label}", "spread_texts", (text, starts, lengths, plain, codes))
        yield Case(f"read integers {label}", "read_integers", (text, starts, lengths))
