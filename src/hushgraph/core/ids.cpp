// Numbering of texts: a hash table and a store of all texts (`core/string_table.py`).
//
// The store is an array of words of 64 bits with one record after the other. A record is a word with the number and the length of a
// text, then the bytes of the text, eight in each word. A slot of the table holds the position of a record plus 1 in its lower 40
// bits, and the upper bits of the hash above them, so that a comparison with a different text is rare. A table of millions of texts
// does not fit into the cache, but memory can serve many requests at the same time. So texts are processed in batches: first all
// slots of a batch are fetched, then all records.
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

// Returns a hash with one more word mixed in. A product carries bits upwards only, so the upper half is folded down before each
// product and at the end.
Word mix(Word key, Word word) {
    key ^= word;
    key = (key ^ (key >> HALF)) * 0x9E3779B97F4A7C15;
    key = (key ^ (key >> HALF)) * SEED;
    return key ^ (key >> HALF);
}

// Returns the first `left` bytes of a text as a word, at most eight. The function reads eight bytes in any case.
Word load_bytes(const Byte* text, Index left) {
    const Word word = load_word(text);
    return left >= 8 ? word : word & ((Word(1) << (8 * left)) - 1);
}

Word hash_of(const Byte* text, Index size) {
    Word key = SEED ^ static_cast<Word>(size);
    for (Index i = 0; i < size; i += 8) key = mix(key, load_bytes(text + i, size - i));
    return key;
}

// Returns the slot for a record.
Word make_slot(Word key, Index record) { return (key >> TAG << TAG) | static_cast<Word>(record + 1); }

// Returns the record of a slot.
Index record_of(Word slot) { return static_cast<Index>(slot & OFFSET) - 1; }

struct Table {
    Vector<Word> slots, store;
    Vector<Index> used;  // number of texts, number of words in the store

    Word mask() const { return static_cast<Word>(slots.size() - 1); }

    // Returns the number of a text whose hash is `key`. A new text is stored and gets the next number.
    Index number_of(const Byte* text, Index size, Word key) const {
        Word slot = key & mask();
        for (; slots[slot]; slot = (slot + 1) & mask()) {
            if ((slots[slot] ^ key) >> TAG) continue;
            const Index record = record_of(slots[slot]);
            if ((store[record] & LOW) == static_cast<Word>(size) && is_stored(text, size, record + 1))
                return static_cast<Index>(store[record] >> HALF);
        }
        const Index number = used[0]++;
        slots[slot] = make_slot(key, used[1]);
        store[used[1]++] = static_cast<Word>(number) << HALF | static_cast<Word>(size);
        for (Index i = 0; i < size; i += 8) store[used[1]++] = load_bytes(text + i, size - i);
        return number;
    }

    // Returns whether the words from `record` on hold this text.
    bool is_stored(const Byte* text, Index size, Index record) const {
        for (Index i = 0; i < size; i += 8)
            if (store[record + i / 8] != load_bytes(text + i, size - i)) return false;
        return true;
    }
};

// Writes the numbers of texts into `numbers`; returns how many texts were numbered before the table or the store was full. All
// texts must end at least PADDING bytes before the end of `text`. The number of slots is a power of two.
Index number_texts(Vector<const Byte> text, Vector<const Index> spans, Vector<Index> numbers, Vector<Word> slots,
                   Vector<Word> store, Vector<Index> used) {
    if (slots.size() < 1 || (slots.size() & (slots.size() - 1)) || used.size() != 2 || numbers.size() < spans.size())
        throw std::invalid_argument("the number of slots must be a power of two, and `numbers` needs an entry for each text");
    const Table table = {slots, store, used};
    Interrupts interrupts;
    Word keys[BATCH];
    Span texts[BATCH];
    for (Index first = 0; first < spans.size(); first += BATCH) {
        interrupts.check_at(first);
        const Index size = std::min(BATCH, spans.size() - first);
        Index n_words = size;
        for (Index k = 0; k < size; k++) {
            texts[k] = split_span(spans[first + k], text.size() - PADDING);
            n_words += (texts[k].end - texts[k].start + 7) / 8;
            keys[k] = hash_of(text.data + texts[k].start, texts[k].end - texts[k].start);
            __builtin_prefetch(slots.data + (keys[k] & table.mask()));
        }
        if (2 * (used[0] + size) > slots.size() || used[1] + n_words > store.size()) return first;
        for (Index k = 0; k < size; k++) {
            Word slot = keys[k] & table.mask();
            while (slots[slot] && (slots[slot] ^ keys[k]) >> TAG) slot = (slot + 1) & table.mask();
            if (slots[slot]) __builtin_prefetch(store.data + record_of(slots[slot]));
        }
        for (Index k = 0; k < size; k++)
            numbers[first + k] = table.number_of(text.data + texts[k].start, texts[k].end - texts[k].start, keys[k]);
    }
    return spans.size();
}

// Returns the length in bytes of the text of a record. A record outside the store is an error.
Index length_of(Vector<const Word> store, Index record) {
    const Index size = record < store.size() ? static_cast<Index>(store[record] & LOW) : 0;
    if (record + (size + 7) / 8 >= store.size()) throw std::out_of_range("a text is outside the store");
    return size;
}

// Fills an empty table with all texts of the first `used` words of a store. The number of slots is a power of two and larger than
// the number of texts.
void fill_slots(Vector<Word> slots, Vector<const Word> store, Index used) {
    const Word mask = static_cast<Word>(slots.size() - 1);
    Index room = slots.size();
    if (room & static_cast<Index>(mask)) throw std::invalid_argument("the number of slots must be a power of two");
    for (Index record = 0; record < used;) {
        const Index size = length_of(store, record), n_words = (size + 7) / 8;
        if (--room < 1) throw std::invalid_argument("the table has fewer slots than texts");
        Word key = SEED ^ static_cast<Word>(size);
        for (Index k = 0; k < n_words; k++) key = mix(key, store[record + 1 + k]);
        Word slot = key & mask;
        while (slots[slot]) slot = (slot + 1) & mask;
        slots[slot] = make_slot(key, record);
        record += n_words + 1;
    }
}

// Returns the start of each of `count` texts in the bytes of a store, and its length in bytes.
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

// Throws an exception unless all texts are inside the content.
void check_texts(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    bool is_inside = starts.size() == lengths.size();
    for (Index k = 0; is_inside && k < starts.size(); k++)
        is_inside = starts[k] >= 0 && lengths[k] >= 0 && lengths[k] <= content.size() && starts[k] <= content.size() - lengths[k];
    if (!is_inside) throw std::out_of_range("a text is outside the buffer");
}

// Returns for each text whether all its bytes are below 128.
Owned<bool> are_ascii(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    check_texts(content, starts, lengths);
    Owned<bool> is_ascii(starts.size());
    for (Index number = 0; number < starts.size(); number++) {
        Byte bits = 0;
        for (Index k = 0; k < lengths[number]; k++) bits |= content[starts[number] + k];
        is_ascii[number] = bits < 128;
    }
    return is_ascii;
}

// Writes the bytes of `plain` (ASCII) texts into the rows of `codes`, one character for each byte.
void spread_texts(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths, Vector<const bool> plain,
                  Matrix<std::uint32_t> codes) {
    check_texts(content, starts, lengths);
    if (plain.size() != starts.size() || codes.size() != starts.size())
        throw std::invalid_argument("`plain` and `codes` need one row for each text");
    for (Index number = 0; number < starts.size(); number++) {
        if (!plain[number]) continue;
        if (lengths[number] > codes.shape[1]) throw std::out_of_range("a text is longer than its row");
        for (Index k = 0; k < lengths[number]; k++) codes(number, k) = content[starts[number] + k];
    }
}

// Returns whether all texts are integers, and the integers. Texts with leading zeros are no integers here, but codes.
std::tuple<bool, Owned<Index>> read_integers(Vector<const Byte> content, Vector<const Index> starts, Vector<const Index> lengths) {
    check_texts(content, starts, lengths);
    Owned<Index> numbers(starts.size());
    for (Index k = 0; k < starts.size(); k++) {
        const Byte* text = content.data + starts[k];
        const Integer integer = parse_integer(text, text + lengths[k], false);
        if (!integer.is_valid) return {false, Owned<Index>(0)};
        numbers[k] = integer.value;
    }
    return {true, std::move(numbers)};
}

}  // namespace

void bind_ids(nb::module_& m) {
    m.attr("BATCH") = BATCH;
    m.def("number_texts", &number_texts, "text"_a, "spans"_a, "numbers"_a, "slots"_a, "store"_a, "used"_a, Unlocked());
    m.def("fill_slots", &fill_slots, "slots"_a, "store"_a, "used"_a, Unlocked());
    m.def("text_places", &text_places, "store"_a, "count"_a, Unlocked());
    m.def("are_ascii", &are_ascii, "content"_a, "starts"_a, "lengths"_a, Unlocked());
    m.def("spread_texts", &spread_texts, "content"_a, "starts"_a, "lengths"_a, "plain"_a, "codes"_a, Unlocked());
    m.def("read_integers", &read_integers, "content"_a, "starts"_a, "lengths"_a, Unlocked());
}

}  // namespace hushgraph
