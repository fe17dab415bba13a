// Parsing of lines of private events: fields, numbers and times. `privacy/text_lines.py` describes the rules.
//
// The meaning of a line depends only on its bytes: no state passes from one line to the next. The text of a field is its exact
// bytes. Only a field in which two quotation marks mean one is rewritten, in place.
#include <algorithm>
#include <limits>

#include "python.h"
#include "spans.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index NO_TIME = std::numeric_limits<Index>::min();
constexpr Index BEFORE = NO_TIME + 1, AFTER = std::numeric_limits<Index>::max();  // times whose nanoseconds do not fit into 64 bits

// ---- lines to fields ------------------------------------------------------------------------------------------------

// Returns the position of a byte between `place` and `end`, or `end`.
Byte* find_byte(Byte* place, Byte* end, Byte wanted) {
    void* position = std::memchr(place, wanted, static_cast<std::size_t>(end - place));
    return position ? static_cast<Byte*>(position) : end;
}

// Returns the number of lines. The last line may have no line break.
Index count_lines(Vector<const Byte> text) {
    const bool is_unfinished = text.size() > 0 && text[text.size() - 1] != '\n';
    return std::count(text.begin(), text.end(), '\n') + is_unfinished;
}

// Returns the number of bytes up to the last line break.
Index measure_lines(Vector<const Byte> text) {
    Index size = text.size();
    while (size > 0 && text[size - 1] != '\n') size--;
    return size;
}

// Returns the number of fields in text[i:stop], or -1 for a malformed line. Calls set_field(slot, span) for each field that has a
// slot.
template <typename F>
Index split_fields(Byte* text, Index i, Index stop, Vector<const Index> slots, Byte separator, F&& set_field) {
    for (Index field = 0;; field++, i++) {
        Index start = i, end;
        if (i < stop && text[i] == '"') {
            start = end = ++i;
            for (; i < stop && (text[i] != '"' || (i + 1 < stop && text[i + 1] == '"')); i++) {
                i += text[i] == '"';
                text[end++] = text[i];
            }
            if (i >= stop) return -1;
            i++;
            if (i < stop && text[i] != separator) return -1;
        } else {
            i = find_byte(text + i, text + stop, separator) - text;
            end = i;
        }
        if (field < slots.size()) {
            if (slots[field] >= 0) set_field(slots[field], join_span(start, end));
        } else if (end > start) {
            return -1;
        }
        if (i >= stop) return field + 1;
    }
}

// Throws an exception unless all slots are below `n_wanted`.
void check_slots(Vector<const Index> slots, Index n_wanted) {
    if (std::any_of(slots.begin(), slots.end(), [&](Index slot) { return slot >= n_wanted; }))
        throw std::out_of_range("the slot of a field is too large");
}

// Returns the number of fields of a line, or -1 for a malformed line. Writes the fields that have a slot into `spans`.
Index split_line(Vector<Byte> line, Vector<const Index> slots, Vector<Index> spans, Byte separator) {
    check_slots(slots, spans.size());
    std::fill(spans.begin(), spans.end(), 0);
    return split_fields(line.data, 0, line.size(), slots, separator, [&](Index slot, Index span) { spans[slot] = span; });
}

// Splits lines until `most` rows are split or dropped, or until the end of the text. Returns the start of the next line and the
// number of lines so far; the wanted fields (fields, rows), the line number of each row, and the numbers of dropped lines. A line
// longer than `longest` is dropped.
std::tuple<Index, Index, Owned<Index, 2>, Owned<Index>, Owned<Index>> split_lines(Vector<Byte> text, Index begin, Index line,
                                                                                  Vector<const Index> slots, Index n_wanted,
                                                                                  Index most, Index longest, Byte separator) {
    const Index end = text.size();
    check_slots(slots, n_wanted);
    if (begin < 0 || begin > end || n_wanted < 0 || most < 1) throw std::out_of_range("the lines are outside the buffer");
    Owned<Index, 2> spans(n_wanted, most);
    Owned<Index> numbers(most);
    GrowingList<1> dropped;
    Index n_rows = 0;
    while (begin < end && n_rows < most && dropped.count < most) {
        line++;
        Index stop = find_byte(text.data + begin, text.data + end, '\n') - text.data;
        const Index following = std::min(stop + 1, end);
        const bool is_too_long = stop - begin > longest;
        if (stop > begin && text[stop - 1] == '\r') stop--;
        if (stop > begin) {
            for (Index k = 0; k < n_wanted; k++) spans(k, n_rows) = 0;
            const auto set_field = [&](Index slot, Index span) { spans(slot, n_rows) = span; };
            if (!is_too_long && split_fields(text.data, begin, stop, slots, separator, set_field) >= 0)
                numbers[n_rows++] = line;
            else
                dropped.append(line);
        }
        begin = following;
    }
    for (Index k = 1; k < n_wanted && n_rows < most; k++) std::copy_n(spans.data + k * most, n_rows, spans.data + k * n_rows);
    spans.shape[1] = spans.strides[0] = n_rows;
    return {begin, line, std::move(spans).shortened(n_wanted), std::move(numbers).shortened(n_rows), dropped.take()};
}

// ---- fields to numbers and times ------------------------------------------------------------------------------------

struct Text {
    const Byte *begin, *end;
};

// Returns the text of a span without blanks at both ends.
Text without_blanks(Vector<const Byte> text, Index text_span) {
    Span span = split_span(text_span, text.size());
    const auto is_blank = [&](Index i) { return text[i] == ' ' || text[i] == '\t'; };
    while (span.start < span.end && is_blank(span.start)) span.start++;
    while (span.start < span.end && is_blank(span.end - 1)) span.end--;
    return {text.data + span.start, text.data + span.end};
}

// Returns each text as a number, or NaN if it is none, and the rows whose text Python must convert.
std::tuple<Owned<double>, Owned<Index>> read_numbers(Vector<const Byte> text, Vector<const Index> spans) {
    Owned<double> values(spans.size());
    GrowingList<1> doubtful;
    Interrupts interrupts;
    for (Index row = 0; row < spans.size(); row++) {
        interrupts.check_at(row);
        values[row] = std::numeric_limits<double>::quiet_NaN();
        auto [place, end] = without_blanks(text, spans[row]);
        const bool negative = place < end && *place == '-';
        if (negative || (place < end && *place == '+')) place++;
        if (place == end || *place == '+') continue;
        const Decimal number = parse_decimal(place, end, 18);
        if (number.rounding == Rounding::sure) values[row] = negative ? -number.value : number.value;
        if (number.rounding == Rounding::doubtful) doubtful.append(row);
    }
    return {std::move(values), doubtful.take()};
}

// Returns two digits as a number, or -1 if there are no two digits or the number is larger than `most`.
Index read_two(const Byte* place, const Byte* end, Index most) {
    if (end - place < 2 || !is_digit(place[0]) || !is_digit(place[1])) return -1;
    const Index value = 10 * (place[0] - '0') + (place[1] - '0');
    return value <= most ? value : -1;
}

// Returns the number of days since 1970-01-01, or NO_TIME for a day that does not exist. Years start at 1, months are 1 to 12.
Index count_days(Index year, Index month, Index day) {
    static constexpr Index before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1 || day > before_month[month] - before_month[month - 1] + (is_leap && month == 2)) return NO_TIME;
    const Index past = year - 1;
    return 365 * past + past / 4 - past / 100 + past / 400 + before_month[month - 1] + (is_leap && month > 2) + day - 719163;
}

struct Clock {
    Index seconds = 0, nanoseconds = 0;
};

// Reads HH[:MM[:SS[.fraction]]] at `place` and moves `place` to its end; returns whether it is a valid time of day.
bool read_clock(const Byte*& place, const Byte* end, Clock& clock) {
    const Index hours = read_two(place, end, 23);
    if (hours < 0) return false;
    clock.seconds = 3600 * hours;
    place += 2;
    for (const Index unit : {60, 1}) {
        if (place == end || *place != ':') return true;
        const Index value = read_two(place + 1, end, 59);
        if (value < 0) return false;
        clock.seconds += unit * value;
        place += 3;
    }
    if (place == end || *place != '.') return true;
    Index scale = 1000000000;
    for (place++; place < end && is_digit(*place) && scale > 1; place++) {
        scale /= 10;
        clock.nanoseconds += scale * (*place - '0');
    }
    return scale < 1000000000;
}

// Reads Z or +-HH[[:]MM[[:]SS]] from `place` to `end` as an offset in seconds; returns whether it is valid.
bool read_offset(const Byte* place, const Byte* end, Index& offset) {
    offset = 0;
    if (*place == 'Z') return place + 1 == end;
    if (*place != '+' && *place != '-') return false;
    const Index sign = *place == '+' ? 1 : -1, hours = read_two(place + 1, end, 23);
    if (hours < 0) return false;
    offset = 3600 * hours;
    place += 3;
    for (const Index unit : {60, 1}) {
        if (place == end) break;
        place += *place == ':';
        const Index value = read_two(place, end, 59);
        if (value < 0) return false;
        offset += unit * value;
        place += 2;
    }
    offset *= sign;
    return place == end;
}

// Returns a time in nanoseconds, or BEFORE or AFTER if it does not fit into 64 bits.
Index to_ticks(Index seconds, Index nanoseconds) {
    constexpr Index most = 9223372036;  // seconds whose nanoseconds fit into 64 bits
    return seconds < -most ? BEFORE : seconds < most ? seconds * 1000000000 + nanoseconds : AFTER;
}

// Returns the nanoseconds since 1970 (in UTC if the time has an offset) or NO_TIME, and whether the time has an offset.
std::pair<Index, bool> read_time(const Byte* place, const Byte* end) {
    constexpr std::pair<Index, bool> none = {NO_TIME, false};
    if (end - place < 10 || place[4] != '-' || place[7] != '-') return none;
    const Index century = read_two(place, end, 99), year = read_two(place + 2, end, 99);
    const Index month = read_two(place + 5, end, 12), day = read_two(place + 8, end, 31);
    if (century < 0 || year < 0 || month < 1 || day < 1) return none;
    const Index days = count_days(100 * century + year, month, day);
    if (days == NO_TIME) return none;
    place += 10;
    if (place == end) return {to_ticks(86400 * days, 0), false};
    if (*place != 'T' && *place != ' ') return none;
    Clock clock;
    place++;
    if (!read_clock(place, end, clock)) return none;
    const Index seconds = 86400 * days + clock.seconds;
    if (place == end) return {to_ticks(seconds, clock.nanoseconds), false};
    Index offset;
    if (!read_offset(place, end, offset)) return none;
    return {to_ticks(seconds - offset, clock.nanoseconds), true};
}

// Returns the results of `read_time` for all texts.
std::tuple<Owned<Index>, Owned<bool>> read_times(Vector<const Byte> text, Vector<const Index> spans) {
    Owned<Index> ticks(spans.size());
    Owned<bool> aware(spans.size());
    Interrupts interrupts;
    for (Index row = 0; row < spans.size(); row++) {
        interrupts.check_at(row);
        const Text trimmed = without_blanks(text, spans[row]);
        std::tie(ticks[row], aware[row]) = read_time(trimmed.begin, trimmed.end);
    }
    return {std::move(ticks), std::move(aware)};
}

}  // namespace

void bind_text_events(nb::module_& m) {
    m.def("count_lines", &count_lines, "text"_a, Unlocked());
    m.def("measure_lines", &measure_lines, "text"_a, Unlocked());
    m.def("split_line", &split_line, "line"_a, "slots"_a, "spans"_a, "separator"_a = Byte{','}, Unlocked());
    m.def("split_lines", &split_lines, "text"_a, "begin"_a, "line"_a, "slots"_a, "n_wanted"_a, "most"_a, "longest"_a,
          "separator"_a = Byte{','}, Unlocked());
    m.def("read_numbers", &read_numbers, "text"_a, "spans"_a, Unlocked());
    m.def("read_times", &read_times, "text"_a, "spans"_a, Unlocked());
}

}  // namespace hushgraph
