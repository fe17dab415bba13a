"""Keys of units that depend on their ids alone, so that runs on neighbouring data, or on rows in another order, can be compared."""

import hashlib

import numpy as np

from hushgraph.privacy import bounding, event_rows as rows
from hushgraph.privacy.unit_ids import UnitCodes


def ids_of(codes: UnitCodes) -> list[tuple[str, bytes]]:
    """(kind, bytes) of every unit, by code."""
    ids = {}
    for kind, names in codes.tables.items():
        ids |= {int(code): (kind, text) for code, text in zip(codes.codes[kind], names.texts(), strict=False)}
    return [ids[code] for code in range(len(codes))]


def key_from_id(id_):
    return int.from_bytes(hashlib.sha256(repr(id_).encode()).digest()[:8])


def couple_keys(monkeypatch, key_of=key_from_id):
    """From now on a unit's key is `key_of((kind, bytes))` of its id."""
    made = []

    class Recorded(UnitCodes):
        def __init__(self, name):
            super().__init__(name)
            made.append(self)

    def draw_keys(n_units):
        return np.array([key_of(id_) for id_ in ids_of(made[-1])[len(made[-1]) - n_units :]], dtype=np.uint64)

    monkeypatch.setattr(rows, "UnitCodes", Recorded)
    monkeypatch.setattr(bounding, "draw_keys", draw_keys)
