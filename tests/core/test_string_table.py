"""Numbers of texts are those of a dict, and labels those that NumPy makes of Python's texts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushgraph.core.string_table import PADDING, Names, span
from hushgraph.graphs.construction import checked_labels
from hushgraph.graphs.edge_table import LONGEST_LABEL, MOST_LABEL_BYTES, checked_names


def numbers_of(names, texts):
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    spans = [span(int(end) - len(text), int(end)) for end, text in zip(ends, texts, strict=True)]
    return names.numbers(b"".join(texts) + PADDING, np.array(spans, dtype=np.int64)).tolist()


@given(
    blocks=st.lists(st.lists(st.binary(max_size=20) | st.sampled_from([b"", b"a", b"a\0", b"12345678", b"123456789"])), max_size=4)
)
def test_numbers_are_those_of_a_dict(blocks):
    names, known = Names(), {}
    for block in blocks:
        assert numbers_of(names, block) == [known.setdefault(text, len(known)) for text in block]
    assert [names.text(number) for number in range(len(names))] == list(known)


SEED, ODD, WORD = 0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15, 2**64  # of the hash in core/ids.cpp


def folded(key):
    return key ^ key >> 32


def mixed(key, word):
    return folded(folded(folded(key ^ word) * ODD % WORD) * SEED % WORD)


def text_of_hash(first, key):
    """A text of sixteen bytes that begins with the word `first` and has the hash `key`: each step of the hash can be undone."""
    last = folded(folded(folded(key) * pow(SEED, -1, WORD) % WORD) * pow(ODD, -1, WORD) % WORD) ^ mixed(SEED ^ 16, first)
    return first.to_bytes(8, "little") + last.to_bytes(8, "little")


def test_texts_with_the_same_hash_are_told_apart():
    """With one hash for all of them, everything is compared with everything, also when the table grows."""
    key = 0x123456789ABCDEF0
    texts, names = [text_of_hash(number, key) for number in range(1500)], Names()
    assert numbers_of(names, texts * 2) == list(range(1500)) * 2
    slots = names._slots[names._slots > 0]
    assert len(slots) == 1500
    assert set((slots >> np.uint64(40)).tolist()) == {key >> 40}


def test_a_table_grows_without_forgetting():
    names = Names()
    texts = [b"node %d" % number for number in range(50_000)]
    for start in range(0, 50_000, 9_000):
        numbers_of(names, texts[start : start + 9_000])
    assert numbers_of(names, texts[::-1]) == list(range(50_000))[::-1]


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True))
def test_labels_are_those_of_numpy(texts):
    names = Names()
    numbers_of(names, [text.encode() for text in texts])
    found, longest = names.decoded(LONGEST_LABEL, MOST_LABEL_BYTES)
    expected = np.array(texts, dtype=str)
    assert (found.dtype, found.tolist(), longest) == (expected.dtype, expected.tolist(), max(map(len, texts), default=0))


def test_bytes_that_are_no_text():
    names = Names()
    numbers_of(names, [b"a", b"\xff"])
    with pytest.raises(UnicodeDecodeError):
        names.decoded(LONGEST_LABEL, MOST_LABEL_BYTES)
    assert Names().decoded(LONGEST_LABEL, 0)[0].tolist() == []


@given(texts=st.lists(st.text(max_size=4), min_size=1), width=st.integers(1, 9), swapped=st.booleans())
def test_text_labels_are_checked_as_one_by_one(texts, width, swapped):
    labels = np.array(texts, dtype=f"{'>' if swapped else '='}U{width}")
    outcomes = []
    for check in (checked_names, checked_labels):
        try:
            made = check(labels, len(labels))
            outcomes.append((made.dtype, made.tolist(), made.flags.writeable))
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    assert labels.flags.writeable
