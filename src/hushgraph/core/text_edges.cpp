// Lines of an edge list to numbers (`edge_rows.py`).
#include <algorithm>

#include "python.h"
#include "spans.h"

namespace hushgraph {
namespace {

// Where things stand in a line: which fields are the ends and the value (-1: none) of an edge.
struct RowForm {
    Index n_fields, source, target, value;
    int delimiter;  // 0: runs of spaces and tabs
    int comment;    // 0: none; with a delimiter, only lines that begin with it
    bool positive;  // values are lengths: 0 only for self-loops
    bool is_text;   // ids are text, of which only the place is noted

    bool is_blank(Byte c) const { return c == ' ' || (c == '\t' && delimiter == 0); }
    bool ends_field(Byte c) const { return delimiter ? c == delimiter : c == ' ' || c == '\t'; }
};

struct Row {
    Index ends[2];
    double value;
    bool alone;            // it states a node
    const Byte* doubt[2];  // where a value stands that Python is to be asked about; null if there is none
};

// Where the line that begins at `begin` ends, at a line break or at the end of the text; `kept` is where it ends without comment,
// line break and blanks.
const Byte* find_line_end(const Byte* begin, const Byte* end, const RowForm& form, const Byte*& kept) {
    const Byte* place = begin;
    kept = nullptr;
    for (; place < end && *place != '\n'; place++)
        if (!kept && form.comment && *place == form.comment && (form.delimiter == 0 || place == begin)) kept = place;
    if (!kept) kept = place;
    while (kept > begin && (form.is_blank(kept[-1]) || kept[-1] == '\r')) kept--;
    return place;
}

struct Field {
    const Byte *start, *stop;  // without blanks
    const Byte* following;     // where the next one begins, or the end of the line
    bool is_last, is_bare;     // bare: no blanks around it
};

Field find_field(const Byte* begin, const Byte* end, const RowForm& form) {
    const Byte* start = begin;
    while (start < end && form.is_blank(*start)) start++;
    const Byte* stop = start;
    while (stop < end && !form.ends_field(*stop)) stop++;
    const bool is_last = stop == end;
    const Byte *following = is_last ? end : stop + 1, *separator = stop;
    if (!form.delimiter)
        while (following < end && form.is_blank(*following)) separator = following++;
    const Byte* kept = stop;
    while (kept > start && kept[-1] == ' ') kept--;
    return {start, kept, following, is_last, start == begin && kept == separator};
}

// Whether the line from `place` to `end` is a row, which is written to `row`. Spans count from `text` on.
bool parse_line(const Byte* text, const Byte* place, const Byte* end, const RowForm& form, Row& row) {
    Decimal number = {0.0, Rounding::sure};
    const Byte *start = end, *stop = end;
    bool at_end = false;
    row = {{0, 0}, 0.0, false, {nullptr, nullptr}};
    for (Index k = 0; k < form.n_fields; k++) {
        if (at_end) return false;
        const Field field = find_field(place, end, form);
        place = field.following;
        at_end = field.is_last;
        if (k == form.source || k == form.target) {
            if (k == form.target && field.start == field.stop && form.delimiter) {
                row.alone = true;
                continue;
            }
            Index& id = row.ends[k == form.source ? 0 : 1];
            if (form.is_text) {  // all are numbered later, at once
                if (!field.is_bare || field.stop == field.start) return false;
                id = join_span(field.start - text, field.stop - text);
            } else {
                const Integer found = parse_integer(field.start, field.stop, form.delimiter == 0);
                if (!found.good) return false;
                id = found.value;
            }
        } else if (k == form.value) {
            start = field.start;
            stop = field.stop;
            number = parse_decimal(start, stop);
        }
    }
    if (!at_end) return false;
    if (row.alone) row.ends[1] = row.ends[0];
    if (row.alone || form.value < 0) return true;
    row.value = number.value;
    const bool is_zero = number.rounding == Rounding::sure && number.value == 0;
    if (number.rounding == Rounding::doubtful || (is_zero && form.positive && form.is_text)) {
        row.doubt[0] = start;  // whether a text id is joined to itself is known when texts are numbered
        row.doubt[1] = stop;
        return true;
    }
    return number.rounding == Rounding::sure && (!is_zero || !form.positive || row.ends[0] == row.ends[1]);
}

// Ids, values and which rows state a node; rows whose value is in doubt, and where it lies; where the first line begins that is no
// row, or -1.
std::tuple<Owned<Index, 2>, Owned<double>, Owned<bool>, Owned<Index>, Owned<Index, 2>, Index> parse_edges(
    Vector<const Byte> text, Index n_fields, Index source, Index target, Index value, int delimiter, int comment, bool positive,
    bool is_text) {
    const RowForm form = {n_fields, source, target, value, delimiter, comment, positive, is_text};
    const Byte *first = text.data, *end = first + text.size();
    const Index most = std::count(first, end, '\n') + 1;
    Owned<Index, 2> ids(most, 2), places(0, 2);
    Owned<double> values(value >= 0 ? most : 0);
    Owned<bool> alone(most);
    Owned<Index> doubts(0);
    Index n_rows = 0, n_doubts = 0, stop = -1;
    for (const Byte* begin = first; begin < end;) {
        const Byte *kept, *line_end = find_line_end(begin, end, form, kept), *start = begin;
        while (start < kept && form.is_blank(*start)) start++;
        if (start < kept) {
            Row row;
            const bool padded = is_text && (start > begin || (kept < end && *kept == ' '));  // blanks around a text belong to it
            if (padded || !parse_line(first, start, kept, form, row)) {
                stop = begin - first;
                break;
            }
            ids(n_rows, 0) = row.ends[0];
            ids(n_rows, 1) = row.ends[1];
            alone[n_rows] = row.alone;
            if (value >= 0) values[n_rows] = row.value;
            if (row.doubt[0]) {
                if (n_doubts == doubts.size()) {
                    doubts.grow(2 * n_doubts + 16);
                    places.grow(2 * n_doubts + 16);
                }
                doubts[n_doubts] = n_rows;
                places(n_doubts, 0) = row.doubt[0] - first;
                places(n_doubts, 1) = row.doubt[1] - first;
                n_doubts++;
            }
            n_rows++;
        }
        begin = line_end < end ? line_end + 1 : end;
    }
    return {std::move(ids).shortened(n_rows),      std::move(values).shortened(value >= 0 ? n_rows : 0),
            std::move(alone).shortened(n_rows),    std::move(doubts).shortened(n_doubts),
            std::move(places).shortened(n_doubts), stop};
}

}  // namespace

void bind_text_edges(nb::module_& m) {
    m.def("parse_edges", &parse_edges, "text"_a, "n_fields"_a, "source"_a, "target"_a, "value"_a, "delimiter"_a, "comment"_a,
          "positive"_a, "is_text"_a, Unlocked());
}

}  // namespace hushgraph
