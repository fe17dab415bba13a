// Parsing of the lines of an edge list (`edge_rows.py`).
#include <algorithm>

#include "python.h"
#include "spans.h"

namespace hushgraph {
namespace {

// The format of a line: the numbers of the fields with the ends and the value (-1: none) of an edge.
struct RowForm {
    Index n_fields, source, target, value;
    int delimiter;  // 0: runs of spaces and tabs
    int comment;    // 0: none; with a delimiter, a comment is a whole line
    bool positive;  // values are lengths: only a self-loop may have length 0
    bool is_text;   // ids are texts; the result has their spans

    bool is_blank(Byte c) const { return c == ' ' || (c == '\t' && delimiter == 0); }
    bool ends_field(Byte c) const { return delimiter ? c == delimiter : c == ' ' || c == '\t'; }
};

struct Row {
    Index ends[2];
    double value;
    bool is_node;          // the line has a node without an edge
    const Byte* doubt[2];  // start and end of a value that Python must convert; null if there is none
};

// Returns the end of the line at `begin`: a line break or the end of the text. `content_end` becomes the end of the line without
// comment, line break and blanks.
const Byte* find_line_end(const Byte* begin, const Byte* end, const RowForm& form, const Byte*& content_end) {
    const Byte* place = begin;
    content_end = nullptr;
    for (; place < end && *place != '\n'; place++)
        if (!content_end && form.comment && *place == form.comment && (form.delimiter == 0 || place == begin)) content_end = place;
    if (!content_end) content_end = place;
    while (content_end > begin && (form.is_blank(content_end[-1]) || content_end[-1] == '\r')) content_end--;
    return place;
}

struct Field {
    const Byte *start, *stop;  // without blanks
    const Byte* following;     // start of the next field, or the end of the line
    bool is_last, is_bare;     // bare: no blanks before and after the field
};

// Returns the field at `begin`.
Field find_field(const Byte* begin, const Byte* end, const RowForm& form) {
    const Byte* start = begin;
    while (start < end && form.is_blank(*start)) start++;
    const Byte* stop = start;
    while (stop < end && !form.ends_field(*stop)) stop++;
    const bool is_last = stop == end;
    const Byte *following = is_last ? end : stop + 1, *separator = stop;
    if (!form.delimiter)
        while (following < end && form.is_blank(*following)) separator = following++;
    const Byte* content_end = stop;
    while (content_end > start && content_end[-1] == ' ') content_end--;
    return {start, content_end, following, is_last, start == begin && content_end == separator};
}

// Returns whether the line from `place` to `end` is a row, and writes it into `row`. Spans are relative to `text`.
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
                row.is_node = true;
                continue;
            }
            Index& id = row.ends[k == form.source ? 0 : 1];
            if (form.is_text) {  // texts are numbered later, all together
                if (!field.is_bare || field.stop == field.start) return false;
                id = join_span(field.start - text, field.stop - text);
            } else {
                const Integer integer = parse_integer(field.start, field.stop, form.delimiter == 0);
                if (!integer.is_valid) return false;
                id = integer.value;
            }
        } else if (k == form.value) {
            start = field.start;
            stop = field.stop;
            number = parse_decimal(start, stop);
        }
    }
    if (!at_end) return false;
    if (row.is_node) row.ends[1] = row.ends[0];
    if (row.is_node || form.value < 0) return true;
    row.value = number.value;
    const bool is_zero = number.rounding == Rounding::sure && number.value == 0;
    if (number.rounding == Rounding::doubtful || (is_zero && form.positive && form.is_text)) {
        row.doubt[0] = start;  // whether an edge between texts is a self-loop is known only when texts are numbered
        row.doubt[1] = stop;
        return true;
    }
    return number.rounding == Rounding::sure && (!is_zero || !form.positive || row.ends[0] == row.ends[1]);
}

// Returns ids, values, and whether each row is a node without an edge; the rows with a doubtful value, and the start and end of
// this value; the start of the first line that is no row, or -1.
std::tuple<Owned<Index, 2>, Owned<double>, Owned<bool>, Owned<Index>, Owned<Index, 2>, Index> parse_edges(
    Vector<const Byte> text, Index n_fields, Index source, Index target, Index value, int delimiter, int comment, bool positive,
    bool is_text) {
    const RowForm form = {n_fields, source, target, value, delimiter, comment, positive, is_text};
    const Byte *first = text.data, *end = first + text.size();
    const Index n_lines = std::count(first, end, '\n') + 1;
    Owned<Index, 2> ids(n_lines, 2);
    Owned<double> values(value >= 0 ? n_lines : 0);
    Owned<bool> is_node(n_lines);
    GrowingList<1> doubtful_rows;
    GrowingList<2> doubtful_values;
    Index n_rows = 0, stop = -1;
    for (const Byte* begin = first; begin < end;) {
        const Byte *content_end, *line_end = find_line_end(begin, end, form, content_end), *start = begin;
        while (start < content_end && form.is_blank(*start)) start++;
        if (start < content_end) {
            Row row;
            const bool has_blanks = start > begin || (content_end < end && *content_end == ' ');
            const bool is_padded_text = is_text && has_blanks;  // the blanks would belong to the text
            if (is_padded_text || !parse_line(first, start, content_end, form, row)) {
                stop = begin - first;
                break;
            }
            ids(n_rows, 0) = row.ends[0];
            ids(n_rows, 1) = row.ends[1];
            is_node[n_rows] = row.is_node;
            if (value >= 0) values[n_rows] = row.value;
            if (row.doubt[0]) {
                doubtful_rows.append(n_rows);
                doubtful_values.append(row.doubt[0] - first, row.doubt[1] - first);
            }
            n_rows++;
        }
        begin = line_end < end ? line_end + 1 : end;
    }
    return {std::move(ids).shortened(n_rows),
            std::move(values).shortened(value >= 0 ? n_rows : 0),
            std::move(is_node).shortened(n_rows),
            doubtful_rows.take(),
            doubtful_values.take(),
            stop};
}

}  // namespace

void bind_text_edges(nb::module_& m) {
    m.def("parse_edges", &parse_edges, "text"_a, "n_fields"_a, "source"_a, "target"_a, "value"_a, "delimiter"_a, "comment"_a,
          "positive"_a, "is_text"_a, Unlocked());
}

}  // namespace hushgraph
