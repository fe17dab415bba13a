// Texts to numbers: a hash table over a store of all texts (`names.py`).
//
// The store is a row of records, each a word with number and length and then the bytes of the text in words of eight. A slot of the
// table holds where the record begins plus 1 in its lower 40 bits and the upper bits of the hash above, so that other texts are
// hardly ever looked at. A table of millions lies far from the processor, but memory answers many questions in the time of one; so
// texts are looked up in batches, of which all slots are fetched first, then all records.
#include <algorithm>

#include "python.h"
#include "spans.h"
#include "threads.h"

namespace hushgraph {
namespace {

using Word = std::uint64_t;

constexpr Index BATCH = 128, PADDING = 8;
constexpr Word SEED = 0xD6E8FEB86659FD93, OFFSET = (Word(1) << 40) - 1, LOW = (Word(1) << 32) - 1;
constexpr int TAG = 40, HALF = 32;

// A hash with one more word in it. A product carries bits up only, so the upper half goes down before each and at the end.
Word mix(Word key, Word word) {
    key ^= word;
    key = (key ^ (key >> HALF)) * 0x9E3779B97F4A7C15;
    key = (key ^ (key >> HALF)) * SEED;
    return key ^ (key >> HALF);
}

// Eight bytes, of which only the first `left` count; the others may be any.
Word load_some(const Byte* text, Index left) {
    const Word word = load_word(text);
    return left >= 8 ? word : word & ((Word(1) << (8 * left)) - 1);
}

Word hash_of(const Byte* text, Index size) {
    Word key = SEED ^ static_cast<Word>(size);
    for (Index i = 0; i < size; i += 8) key = mix(key, load_some(text + i, size - i));
    return key;
}

Word tagged(Word key, Index record) { return (key >> TAG << TAG) | static_cast<Word>(record + 1); }
Index record_of(Word slot) { return static_cast<Index>(slot & OFFSET) - 1; }

struct Table {
    Vector<Word> slots, store;
    Vector<Index> used;  // texts, words of the store

    Word mask() const { return static_cast<Word>(slots.size() - 1); }

    // The number of a text whose hash is `key`; a new one if it has none.
    Index number_of(const Byte* text, Index size, Word key) const {
        Word place = key & mask();
        for (; slots[place]; place = (place + 1) & mask()) {
            if ((slots[place] ^ key) >> TAG) continue;
            const Index record = record_of(slots[place]);
            if ((store[record] & LOW) == static_cast<Word>(size) && is_stored(text, size, record + 1))
                return static_cast<Index>(store[record] >> HALF);
        }
        const Index number = used[0]++;
        slots[place] = tagged(key, used[1]);
        store[used[1]++] = static_cast<Word>(number) << HALF | static_cast<Word>(size);
        for (Index i = 0; i < size; i += 8) store[used[1]++] = load_some(text + i, size - i);
        return number;
    }

    bool is_stored(const Byte* text, Index size, Index record) const {
        for (Index i = 0; i < size; i += 8)
            if (store[record + i / 8] != load_some(text + i, size - i)) return false;
        return true;
    }
};

// Fills `found` with the numbers of texts, and returns for how many of them the table and the store had room. All texts must end at
// least `PADDING` bytes before the end of `text`. The table has a power of two of slots.
Index number_texts(Vector<const Byte> text, Vector<const Index> spans, Vector<Index> found, Vector<Word> slots, Vector<Word> store,
                   Vector<Index> used) {
    if (slots.size() < 1 || (slots.size() & (slots.size() - 1)) || used.size() != 2 || found.size() < spans.size())
        throw std::invalid_argument("a table of texts has a power of two of slots, and all numbers need room");
    const Table table = {slots, store, used};
    Interrupts interrupts;
    Word keys[BATCH];
    Span places[BATCH];
    for (Index first = 0; first < spans.size(); first += BATCH) {
        if (first % (1 << 16) == 0) interrupts.look();
        const Index size = std::min(BATCH, spans.size() - first);
        Index words = size;
        for (Index k = 0; k < size; k++) {
            places[k] = split_span(spans[first + k], text.size() - PADDING);
            words += (places[k].end - places[k].start + 7) / 8;
            keys[k] = hash_of(text.data + places[k].start, places[k].end - places[k].start);
            __builtin_prefetch(slots.data + (keys[k] & table.mask()));
        }
        if (2 * (used[0] + size) > slots.size() || used[1] + words > store.size()) return first;
        for (Index k = 0; k < size; k++) {
            Word place = keys[k] & table.mask();
            while (slots[place] && (slots[place] ^ keys[k]) >> TAG) place = (place + 1) & table.mask();
            if (slots[place]) __builtin_prefetch(store.data + record_of(slots[place]));
        }
        for (Index k = 0; k < size; k++)
            found[first + k] = table.number_of(text.data + places[k].start, places[k].end - places[k].start, keys[k]);
    }
    return spans.size();
}

// The length in bytes of the text whose record begins there; a record outside the store is an error.
Index length_of(Vector<const Word> store, Index record) {
    const Index size = record < store.size() ? static_cast<Index>(store[record] & LOW) : 0;
    if (record + (size + 7) / 8 >= store.size()) throw std::out_of_range("a text lies outside the store");
    return size;
}

// Puts all texts of the first `used` words of a store into an empty table of a power of two of slots, more than there are texts.
void fill_slots(Vector<Word> slots, Vector<const Word> store, Index used) {
    const Word mask = static_cast<Word>(slots.size() - 1);
    Index room = slots.size();
    if (room & static_cast<Index>(mask)) throw std::invalid_argument("a table of texts has a power of two of slots");
    for (Index record = 0; record < used;) {
        const Index size = length_of(store, record), words = (size + 7) / 8;
        if (--room < 1) throw std::invalid_argument("a table of texts needs more slots");
        Word key = SEED ^ static_cast<Word>(size);
        for (Index k = 0; k < words; k++) key = mix(key, store[record + 1 + k]);
        Word place = key & mask;
        while (slots[place]) place = (place + 1) & mask;
        slots[place] = tagged(key, record);
        record += words + 1;
    }
}

// Where each of `count` texts begins in the bytes of a store, and its length in bytes.
std::tuple<Owned<Index>, Owned<Index>> text_places(Vector<const Word> store, Index count) {
    Owned<Index> starts(count), lengths(count);
    Index record = 0;
    for (Index number = 0; number < count; number++) {
        starts[number] = 8 * (record + 1);
        lengths[number] = length_of(store, record);
        record += 1 + (lengths[number] + 7) / 8;
    }
    return {std::move(starts), std::move(lengths)};
}

void check_places(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    bool inside = starts.size() == lengths.size();
    for (Index k = 0; inside && k < starts.size(); k++)
        inside = starts[k] >= 0 && lengths[k] >= 0 && lengths[k] <= content.size() && starts[k] <= content.size() - lengths[k];
    if (!inside) throw std::out_of_range("a text lies outside its bytes");
}

// Whether each text has no byte above 127.
Owned<bool> are_ascii(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    check_places(content, starts, lengths);
    Owned<bool> plain(starts.size());
    for (Index number = 0; number < starts.size(); number++) {
        Byte bits = 0;
        for (Index k = 0; k < lengths[number]; k++) bits |= content[starts[number] + k];
        plain[number] = bits < 128;
    }
    return plain;
}

// Writes the bytes of texts that are `plain` as characters into the rows of `codes`.
void spread_texts(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths, Vector<const bool> plain,
                  Matrix<std::uint32_t> codes) {
    check_places(content, starts, lengths);
    if (plain.size() != starts.size() || codes.size() != starts.size()) throw std::invalid_argument("one row for each text");
    for (Index number = 0; number < starts.size(); number++) {
        if (!plain[number]) continue;
        if (lengths[number] > codes.shape[1]) throw std::out_of_range("a text is longer than its row");
        for (Index k = 0; k < lengths[number]; k++) codes(number, k) = content[starts[number] + k];
    }
}

// Texts as integers, and whether all are integers as one would write them: no leading zeros, which codes have.
std::tuple<bool, Owned<Index>> read_integers(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    check_places(content, starts, lengths);
    Owned<Index> numbers(starts.size());
    for (Index k = 0; k < starts.size(); k++) {
        const Byte* text = content.data + starts[k];
        const Integer found = parse_integer(text, text + lengths[k], false);
        if (!found.good) return {false, Owned<Index>(0)};
        numbers[k] = found.value;
    }
    return {true, std::move(numbers)};
}

}  // namespace

void bind_ids(nb::module_& m) {
    m.attr("BATCH") = BATCH;
    m.def("number_texts", &number_texts, "text"_a, "spans"_a, "found"_a, "slots"_a, "store"_a, "used"_a, Unlocked());
    m.def("fill_slots", &fill_slots, "slots"_a, "store"_a, "used"_a, Unlocked());
    m.def("text_places", &text_places, "store"_a, "count"_a, Unlocked());
    m.def("are_ascii", &are_ascii, "content"_a, "starts"_a, "lengths"_a, Unlocked());
    m.def("spread_texts", &spread_texts, "content"_a, "starts"_a, "lengths"_a, "plain"_a, "codes"_a, Unlocked());
    m.def("read_integers", &read_integers, "content"_a, "starts"_a, "lengths"_a, Unlocked());
}

}  // namespace hushgraph
