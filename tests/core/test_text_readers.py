"""Text readers refuse positions outside the text; and a short run of the fuzzing script."""

from __future__ import annotations

import random

import fuzz_readers
import numpy as np
import pytest

from hushgraph.core import _loops

TEXT = np.frombuffer(b"12,7,2026-03-02" + bytes(8), dtype=np.uint8)
OUTSIDE = [(0, 24), (5, 4), (-1, 3), (24, 24), (0, 2**32 - 1), (2**31 - 1, 2**31), (-(2**31), 0)]


@pytest.mark.parametrize(("start", "end"), OUTSIDE)
def test_spans_outside_the_text(start, end):
    spans = np.array([0 << 32 | 2, start << 32 | end], dtype=np.int64)
    for read in (_loops.read_numbers, _loops.read_times):
        with pytest.raises(IndexError):
            read(TEXT, spans)
    table = np.zeros(1024, np.uint64), np.zeros(1024, np.uint64), np.zeros(2, np.int64)
    with pytest.raises(IndexError):
        _loops.number_texts(TEXT, spans, np.zeros(2, np.int64), *table)
    places = np.array([0, start]), np.array([2, end - start])
    for read in (_loops.are_ascii, _loops.read_integers):
        with pytest.raises(IndexError):
            read(TEXT, *places)
    with pytest.raises(IndexError):
        _loops.spread_texts(TEXT, *places, np.ones(2, bool), np.zeros((2, 30), np.uint32))


def test_texts_that_end_in_the_padding():
    """Texts are read eight bytes at a time, so a text must end eight bytes before the end of the buffer."""
    table = np.zeros(1024, np.uint64), np.zeros(1024, np.uint64), np.zeros(2, np.int64)
    assert _loops.number_texts(TEXT, np.array([0 << 32 | 15]), np.zeros(1, np.int64), *table) == 1
    for end in range(16, 24):
        with pytest.raises(IndexError):
            _loops.number_texts(TEXT, np.array([0 << 32 | end]), np.zeros(1, np.int64), *table)


def test_tables_and_forms_that_do_not_fit():
    text, spans, numbers, store, used = (
        TEXT,
        np.array([0 << 32 | 2]),
        np.zeros(1, np.int64),
        np.zeros(64, np.uint64),
        np.zeros(2, np.int64),
    )
    for slots in (0, 3, 1000):
        with pytest.raises(ValueError, match="power of two"):
            _loops.number_texts(text, spans, numbers, np.zeros(slots, np.uint64), store, used)
    with pytest.raises(ValueError, match="power of two"):
        _loops.number_texts(text, spans, numbers[:0], np.zeros(64, np.uint64), store, used)
    store = np.array([3, 97, 1 << 32 | 1, 98], dtype=np.uint64)
    for slots in (0, 2, 6):
        with pytest.raises(ValueError, match="slots"):
            _loops.fill_slots(np.zeros(slots, np.uint64), store, 4)
    with pytest.raises(IndexError):
        _loops.fill_slots(np.zeros(64, np.uint64), store[:3], 4)
    for count in (3, 10**6):
        with pytest.raises(IndexError):
            _loops.text_places(store, count)
    with pytest.raises(IndexError):
        _loops.spread_texts(text, np.array([0]), np.array([15]), np.ones(1, bool), np.zeros((1, 14), np.uint32))
    line = TEXT.copy()
    with pytest.raises(IndexError):
        _loops.split_line(line, np.array([0, 1, 2]), np.zeros(2, np.int64))
    for begin, wanted, most in ((-1, 1, 1), (len(line) + 1, 1, 1), (0, 0, 1), (0, 1, 0), (0, -1, 1)):
        with pytest.raises(IndexError):
            _loops.split_lines(line, begin, 0, np.array([0]), wanted, most, 100)
    keys = np.zeros(8, np.uint8), np.array([1]), np.array([0]), np.array([0])
    with pytest.raises(ValueError, match="eight zeros"):
        _loops.parse_graphml(np.full(20, 32, np.uint8), *keys, 1)
    for bad in (
        (keys[0], np.array([9]), *keys[2:], 1),
        (*keys[:2], np.array([1]), keys[3], 1),
        (*keys[:3], np.zeros(2, np.int64), 1),
        (*keys, 9),
    ):
        with pytest.raises(ValueError, match="fit together"):
            _loops.parse_graphml(np.zeros(20, np.uint8), *bad)
    with pytest.raises(ValueError, match="each unit needs a key"):
        _loops.first_cells(np.array([7]), np.array([1]), np.zeros(1, np.uint64), 5, 1)


@pytest.mark.parametrize("reader", fuzz_readers.READERS)
def test_damaged_lines_and_files(reader):
    generator = random.Random(5)
    for run in fuzz_readers.READERS[reader]:
        for _ in range(2):
            assert run(400, lambda n: int(generator.random() * n)) > 20


def test_a_line_with_another_separator_has_the_fields_of_its_twin():
    """Semicolons and commas are exchanged in the line, and in its fields."""
    rng, swap = random.Random(0), bytes.maketrans(b",;", b";,")
    for _ in range(2000):
        line = bytes(rng.choices(b',,;""a\r ', k=rng.randrange(12)))
        fields = []
        for text, separator in ((line, ord(",")), (line.translate(swap), ord(";"))):
            content, spans = np.frombuffer(bytearray(text), dtype=np.uint8), np.zeros(4, np.int64)
            count = _loops.split_line(content, np.arange(4), spans, separator)
            fields.append((count, [content[span >> 32 : span & 0xFFFFFFFF].tobytes() for span in spans.tolist()]))
        assert fields[1][0] == fields[0][0]
        if fields[0][0] >= 0:
            assert fields[1][1] == [field.translate(swap) for field in fields[0][1]]
