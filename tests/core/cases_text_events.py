"""Cases for `text_events.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases_ids import packed
from corpus import Case
from damaged_texts import NUMBERS, QUOTED, TIMES, WORDS, event_line, mutated

LONGEST = 1 << 16
BLANKS = [b"", b" ", b"\t", b" \t "]


def cases() -> Iterator[Case]:
    random = np.random.RandomState(5)

    def below(n: int) -> int:
        return int(random.randint(n))

    def array(text: bytes) -> np.ndarray:
        return np.frombuffer(text, dtype=np.uint8)

    lines = [event_line(below) for _ in range(300)]
    lines += [mutated(event_line(below), below, QUOTED + TIMES).replace(b"\n", b"") for _ in range(700)]
    lines += [b"", b"\r", b"\r\r", b",", b",,,", b",,,,", b'"', b'"\r', b"a", b" ", b"\0"]
    lines += [b"x" * (LONGEST + k) for k in (-1, 0, 1)] + [
        b"y" * LONGEST + b"\r",
        b"y" * (LONGEST - 1) + b"\r",
        b'"' + b"z" * 70_000,
    ]
    slots = {
        "all": np.arange(4),
        "none": np.full(4, -1),
        "two": np.array([-1, 1, -1, 0]),
        "one column": np.arange(1),
        "no columns": np.arange(0),
    }
    for k, line in enumerate(lines[::20] + lines[-17:]):
        for name in ("all", "two"):
            yield Case(f"line {k} {name}", "split_line", (array(line), slots[name].astype(np.int64), np.full(4, 9, np.int64)))
    texts = {
        "nothing": b"",
        "a line break": b"\n",
        "no line break": b"a,1,2,2026-03-02",
        "all": b"\n".join(lines),
        "closed": b"\n".join(lines[::-1]) + b"\n",
    }
    for label, text in texts.items():
        yield Case(f"count {label}", "count_lines", (array(text),))
        yield Case(f"measure {label}", "measure_lines", (array(text),))
        for name, wanted in slots.items():
            n_wanted = int(wanted.max(initial=-1)) + 1
            for most in (1, 3, 10, 2000):
                for begin in sorted({0, len(text) // 2}):
                    arguments = (array(text), begin, begin + 5, wanted.astype(np.int64), n_wanted, most, LONGEST)
                    yield Case(f"split {label} {name} {most} from {begin}", "split_lines", arguments)
    numbers = [
        blank + sign + number + after
        for number in NUMBERS
        for sign in (b"", b"-", b"+")
        for blank in BLANKS
        for after in BLANKS[:2]
    ]
    numbers += [repr(value).encode() for value in np.ldexp(random.uniform(-1, 1, size=2000), random.randint(-100, 100, size=2000))]
    numbers += [b"%.25e" % value for value in np.ldexp(random.uniform(-1, 1, size=300), random.randint(-1000, 1000, size=300))]
    numbers += [b"%d.%d" % (below(10**9), below(10**9)) for _ in range(2000)] + [
        b"%de%d" % (below(2**62), below(46) - 23) for _ in range(2000)
    ]
    numbers += [mutated(text, below, NUMBERS) for text in numbers[::2]]
    times = [blank + text for text in TIMES for blank in BLANKS] + [mutated(TIMES[below(20)], below, TIMES) for _ in range(6000)]
    times += [b"%04d-%02d-%02d" % (below(10_000), below(14), below(33)) for _ in range(2000)]
    times += [
        b"2026-03-02T%02d:%02d:%02d.%d%s%02d:%02d"
        % (below(25), below(61), below(61), below(10**9), b"+-"[below(2) :][:1], below(25), below(61))
        for _ in range(2000)
    ]
    for label, collection in {"nothing": [], "words": WORDS + QUOTED, "numbers": numbers, "times": times}.items():
        text, spans = packed(collection)
        for start in range(0, max(len(spans), 1), 500):
            yield Case(f"numbers of {label} {start}", "read_numbers", (text, spans[start : start + 500]))
            yield Case(f"times of {label} {start}", "read_times", (text, spans[start : start + 500]))
