"""Cases for `text_graphml.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from damaged_texts import EDGES, GRAPHML_TAILS, KEYS, NODES, NOT_PLAIN, element, mutated

PADDING = bytes(8)


def keys_of(roles: dict[str, tuple[int, int]]) -> tuple:
    """Return the arguments of `parse_graphml` for keys and their roles in nodes and edges."""
    ids = [key.encode() for key in roles]
    columns = np.array(list(roles.values()), np.int64).reshape(-1, 2)
    ends = np.cumsum([len(id_) for id_ in ids], dtype=np.int64).reshape(-1)
    return np.frombuffer(b"".join(ids) + PADDING, np.uint8), ends, columns[:, 0].copy(), columns[:, 1].copy()


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    keys = keys_of(KEYS)

    def below(n: int) -> int:
        return int(random.randint(n))

    def case(label: str, text: bytes, keys: tuple = keys, columns: int = 2) -> Case:
        return Case(label, "parse_graphml", (np.frombuffer(text + PADDING, dtype=np.uint8), *keys, columns))

    for k, text in enumerate(
        [
            *GRAPHML_TAILS,
            b"\n",
            b"\0",
            b"<nod",
            b"<edge",
            b"<node ",
            b'<node id="a',
            b'<node id="a">',
            b'<node id="a"><data key="x">1',
        ]
    ):
        yield case(f"small {k}", text)
    for k, text in enumerate([*NODES, *EDGES, *NOT_PLAIN]):
        yield case(f"alone {k}", text)
        yield case(f"whole {k}", text + b"</graph>")
        yield case(f"without keys {k}", text + b"</graph>", keys_of({}), 0)
    whole = b"\n".join([*NODES, *EDGES]) + b"</graph>"
    for size in range(0, len(whole), 7):
        yield case(f"cut at {size}", whole[:size])
    yield case("many", b"\n".join((NODES if below(2) else EDGES)[below(5)] for _ in range(3000)) + b"</graph>")
    for code in (8, 9, 10, 13, 31, 32, 38, 127, 128, 2047, 2048, 55295, 55296, 999999999):
        yield case(f"reference {code}", b'<node id="a&#%d;b"/></graph>' % code)
    for k in range(250):
        parts = [element(below) for _ in range(1 + below(5))]
        place = below(len(parts))
        parts[place] = mutated(parts[place], below, NODES + EDGES)
        yield case(f"damaged {k}", b"\n ".join(parts) + GRAPHML_TAILS[below(len(GRAPHML_TAILS))])
