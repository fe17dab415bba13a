"""Cases for `text_edges.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from damaged_texts import EDGE_FORMS, IDS, MATRIX_FORMS, NUMBERS, WORDS, edge_line, mutated

OTHERS = [b"1 2", b"1,2,0.5", b"a,b", b"\t", *WORDS]


def cases() -> Iterator[Case]:
    random = np.random.RandomState(3)

    def below(n: int) -> int:
        return int(random.randint(n))

    def case(label: str, text: bytes, form: tuple) -> Case:
        return Case(label, "parse_edges", (np.frombuffer(text, dtype=np.uint8), *form))

    for name, form in (EDGE_FORMS | MATRIX_FORMS).items():
        separator = bytes([form[4] or 32])
        for k, text in enumerate(
            (b"", b"\n", b"\r\n\n", b" \t\n", b"#", b"%\n", separator, b"1", b"1" + separator + b"2", b"\n1" + separator + b"2")
        ):
            yield case(f"{name} small {k}", text, form)
        good = [edge_line(form, below) for _ in range(400)]
        yield case(f"{name} many", b"\n".join(line for line in good if b"9223372036854775808" not in line), form)
        for k in range(30):
            lines = [edge_line(form, below) for _ in range(1 + below(12))]
            place = below(len(lines))
            lines[place] = mutated(lines[place], below, OTHERS)
            yield case(f"{name} damaged {k}", b"\n".join(lines) + b"\n" * below(2), form)
    for k, number in enumerate(NUMBERS):
        for name in ("weighted", "lengths", "names"):
            separator = b"," if name == "names" else b" "
            yield case(
                f"value {k} {name}",
                separator.join([b"7", b"7", number]) + b"\n" + separator.join([b"7", b"8", number]),
                EDGE_FORMS[name],
            )
    for k, id_ in enumerate(IDS):
        for name, separator in (("snap", b"\t"), ("tab", b"\t")):
            yield case(f"id {k} {name}", separator.join([id_, b"1"]) + b"\n" + separator.join([b"1", id_]), EDGE_FORMS[name])
