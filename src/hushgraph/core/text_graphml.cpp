// Nodes and edges of plain GraphML to numbers (`graphml_rows.py`). What is not plain is given up at once.
#include <algorithm>
#include <limits>

#include "python.h"
#include "spans.h"

namespace hushgraph {
namespace {

// Instead of a position: the block ends too early; this is not plain. `OTHER` is also the role of data that are not plain.
constexpr Index MORE = -1, OTHER = -2;
constexpr Index NOT_WANTED = -1;  // role of data; other roles are columns of places, and 0 for the value of an edge
constexpr Index AT_TAIL = 1;      // state where data of the graph follow, or its end
constexpr Index PADDING = 8;

struct Marks {
    bool is_blank[256] = {}, is_plain[256] = {};  // plain: means itself wherever it stands

    constexpr Marks() {
        for (int c = 32; c < 256; c++) is_plain[c] = true;
        for (const char c : {'<', '>', '&', '"', '\''}) is_plain[static_cast<Byte>(c)] = false;
        for (const char c : {' ', '\t', '\r', '\n'}) is_blank[static_cast<Byte>(c)] = true;
    }
};

constexpr Marks MARKS;

bool is_quote(Byte c) { return c == '"' || c == '\''; }

// Keys that matter, and what their data are in a node and in an edge; data of other keys are not wanted.
struct Keys {
    Vector<const Byte> ids;  // their bytes, one after the other
    Vector<const Index> ends, in_node, in_edge;
};

// Numbers that Python is to be asked about: row, column, start and end of each.
class Doubts {
  public:
    Index count = 0;

    void add(Index row, Index column, Index start, Index end) {
        if (count == rows_.size()) rows_.grow(2 * count + 16);
        const Index doubt[] = {row, column, start, end};
        std::copy(doubt, doubt + 4, &rows_(count++, 0));
    }
    Owned<Index, 2>&& found() { return std::move(rows_).shortened(count); }

  private:
    Owned<Index, 2> rows_{0, 4};
};

// Reads text[0:size], after which at least one byte stands that is neither blank nor plain.
class Parser {
  public:
    Parser(Byte* text, Index size, const Keys& keys, Index columns)
        : text_(text),
          size_(size),
          keys_(keys),
          nodes(size / shortest_node + 1),
          places(size / shortest_node + 1, columns),
          has_place(size / shortest_node + 1),
          edges(size / shortest_edge + 1, 2),
          values(size / shortest_edge + 1),
          has_value(size / shortest_edge + 1) {}

    // Where the first element begins that is not whole or no node or edge; `state` says which.
    Index parse(Index& state) {
        for (Index begin = 0;;) {
            begin = past_blanks(begin);
            bool is_node = false, is_open = false;
            Index spans[2] = {0, 0}, i = after(begin, "<edge");
            if (i == OTHER) {
                i = after(begin, "<node");
                is_node = true;
            }
            if (i == OTHER) {
                i = after(begin, "</graph");
                if (i == OTHER) i = after(begin, "<data key=");
                state = i == MORE ? 0 : i > 0 ? AT_TAIL : OTHER;
                return begin;
            }
            const Index place_doubts_before = place_doubts.count, value_doubts_before = value_doubts.count;
            if (i >= 0) i = read_attributes(i, is_node, spans, is_open);
            if (i >= 0) {
                has_place[n_nodes] = 0;
                has_value[n_edges] = false;
                for (Index column = 0; column < places.shape[1]; column++) places(n_nodes, column) = nothing;
                values[n_edges] = nothing;
                if (is_open) i = read_content(i, is_node);
            }
            if (i < 0) {
                place_doubts.count = place_doubts_before;
                value_doubts.count = value_doubts_before;
                state = i == MORE ? 0 : OTHER;
                return begin;
            }
            if (is_node) {
                nodes[n_nodes++] = spans[0];
            } else {
                edges(n_edges, 0) = spans[0];
                edges(n_edges++, 1) = spans[1];
            }
            begin = i;
        }
    }

  private:
    static constexpr Index shortest_node = sizeof("<node id=\"\"/>") - 1;
    static constexpr Index shortest_edge = sizeof("<edge source=\"\" target=\"\"/>") - 1;

    static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

    Byte* text_;
    Index size_;
    const Keys& keys_;

    // Where a literal ends that begins at i.
    template <std::size_t N> Index after(Index i, const char (&literal)[N]) const {
        constexpr Index length = N - 1;
        if (i + length <= size_) return std::memcmp(text_ + i, literal, length) == 0 ? i + length : OTHER;
        return std::memcmp(text_ + i, literal, static_cast<std::size_t>(size_ - i)) == 0 ? MORE : OTHER;
    }

    Index past_blanks(Index i) const {
        while (MARKS.is_blank[text_[i]]) i++;
        return i;
    }

    // Where the rest of a tag ends, after its name; spans are those of the id, or of source and target.
    Index read_attributes(Index i, bool is_node, Index* spans, bool& is_open) {
        const int needed = is_node ? 1 : 6;
        for (int seen = 0;;) {
            const Index start = i;
            i = past_blanks(i);
            if (i >= size_) return MORE;
            if (text_[i] == '>' || text_[i] == '/') {
                is_open = text_[i] == '>';
                i = is_open ? i + 1 : after(i, "/>");
                return (seen & needed) == needed ? i : i == MORE ? MORE : OTHER;
            }
            if (i == start) return OTHER;
            int which = 0;
            Index begin = after(i, "id=");
            if (begin == OTHER && !is_node) {
                which = 1;
                begin = after(i, "source=");
                if (begin == OTHER) {
                    which = 2;
                    begin = after(i, "target=");
                }
                if (begin == OTHER) {
                    which = 3;
                    begin = after(i, "directed=");
                }
            }
            if (begin < 0 || begin >= size_) return begin == OTHER ? OTHER : MORE;
            if ((seen >> which & 1) || !is_quote(text_[begin])) return OTHER;
            seen |= 1 << which;
            Index end;
            i = read_characters(begin + 1, text_[begin], end);
            if (i < 0) return i;
            i++;
            if (is_node || which == 1 || which == 2) spans[which < 2 ? 0 : 1] = join_span(begin + 1, end);
        }
    }

    // Where `stop` stands, from i on; what stands before it has references replaced in place, and then ends at `end`.
    Index read_characters(Index i, Byte stop, Index& end) {
        const bool in_text = stop == '<';
        while (MARKS.is_plain[text_[i]]) i++;
        end = i;
        while (i < size_) {
            const Byte c = text_[i];
            if (MARKS.is_plain[c] || (is_quote(c) && c != stop)) {
                text_[end++] = c;
                i++;
            } else if (c == stop) {
                return i;
            } else if (c == '&') {
                i = read_reference(i, end);
                if (i < 0) return i;
            } else if ((c == '>' && !(in_text && text_[i - 1] == ']')) || (in_text && MARKS.is_blank[c])) {
                text_[end++] = c;
                i++;
            } else {
                return OTHER;
            }
        }
        return MORE;
    }

    // Where a reference to a character ends that begins at i; the character is written at `end`, in fewer bytes.
    Index read_reference(Index i, Index& end) {
        int code = '&';
        Index stop = after(i, "&amp;");
        if (stop == OTHER) code = '<', stop = after(i, "&lt;");
        if (stop == OTHER) code = '>', stop = after(i, "&gt;");
        if (stop == OTHER) code = '"', stop = after(i, "&quot;");
        if (stop == OTHER) code = '\'', stop = after(i, "&apos;");
        if (stop == OTHER && text_[i + 1] == '#') {
            code = 0;
            stop = i + 2;
            for (; stop < size_ && is_digit(text_[stop]) && code < 0xD800; stop++) code = 10 * code + (text_[stop] - '0');
            if (stop >= size_) return MORE;
            const bool is_allowed = (code >= 32 && code < 0xD800) || code == '\t' || code == '\n' || code == '\r';
            if (text_[stop] != ';' || !is_allowed) return OTHER;
            stop++;
        }
        if (stop < 0) return stop;
        if (code < 0x80) {
            text_[end++] = static_cast<Byte>(code);
        } else if (code < 0x800) {
            text_[end++] = static_cast<Byte>(0xC0 | code >> 6);
            text_[end++] = static_cast<Byte>(0x80 | (code & 0x3F));
        } else {
            text_[end++] = static_cast<Byte>(0xE0 | code >> 12);
            text_[end++] = static_cast<Byte>(0x80 | (code >> 6 & 0x3F));
            text_[end++] = static_cast<Byte>(0x80 | (code & 0x3F));
        }
        return stop;
    }

    // Where a node or an edge ends, after its data.
    Index read_content(Index i, bool is_node) {
        for (bool found_value = false;;) {
            i = past_blanks(i);
            const Index begin = after(i, "<data key=");
            if (begin == OTHER) {
                has_value[n_edges] = found_value;
                return is_node ? after(i, "</node>") : after(i, "</edge>");
            }
            if (begin < 0 || begin >= size_) return MORE;
            if (!is_quote(text_[begin])) return OTHER;
            Index end;
            i = read_characters(begin + 1, text_[begin], end);
            if (i < 0 || i + 1 >= size_) return i == OTHER ? OTHER : MORE;
            const Index role = end == i ? role_of(begin + 1, end, is_node) : OTHER;
            const bool is_open = text_[i + 1] == '>';
            if (role == OTHER || !(is_open || text_[i + 1] == '/')) return OTHER;
            i = is_open ? i + 2 : after(i + 1, "/>");
            const Index start = i;
            end = i;
            if (i >= 0 && is_open) {
                i = read_characters(i, '<', end);
                if (i >= 0) i = after(i, "</data>");
            }
            if (i < 0) return i;
            bool good = true;
            if (role >= 0 && is_node) {
                good = keep_place(start, end, role);
            } else if (role >= 0) {
                good = !found_value && keep_value(start, end);
                found_value = true;
            }
            if (!good) return OTHER;
        }
    }

    // What data of that key are.
    Index role_of(Index start, Index end, bool is_node) const {
        Index first = 0;
        for (Index number = 0; number < keys_.ends.size(); number++) {
            const Index last = keys_.ends[number];
            if (last - first == end - start && std::equal(text_ + start, text_ + end, keys_.ids.data + first))
                return is_node ? keys_.in_node[number] : keys_.in_edge[number];
            first = last;
        }
        return NOT_WANTED;
    }

    void trim(Index& start, Index& end) const {
        while (start < end && MARKS.is_blank[text_[start]]) start++;
        while (end > start && MARKS.is_blank[text_[end - 1]]) end--;
    }

    // Whether a node has no place in that column yet; what is no number is NaN.
    bool keep_place(Index start, Index end, Index column) {
        if (has_place[n_nodes] >> column & 1) return false;
        has_place[n_nodes] |= static_cast<Byte>(1 << column);
        trim(start, end);
        const bool negative = start < end && text_[start] == '-';
        Decimal number = parse_decimal(text_ + start + negative, text_ + end);
        if (negative && text_[start + 1] == '+') number.rounding = Rounding::no_number;
        const bool is_number = number.rounding != Rounding::no_number;
        places(n_nodes, column) = !is_number ? nothing : negative ? -number.value : number.value;
        if (number.rounding == Rounding::doubtful) place_doubts.add(n_nodes, column, start, end);
        return true;
    }

    // Whether the value of an edge is a number of at least 0.
    bool keep_value(Index start, Index end) {
        trim(start, end);
        const Decimal number = parse_decimal(text_ + start, text_ + end);
        values[n_edges] = number.value;
        if (number.rounding == Rounding::doubtful) value_doubts.add(n_edges, 0, start, end);
        return number.rounding != Rounding::no_number;
    }

  public:
    Index n_nodes = 0, n_edges = 0;
    Owned<Index> nodes;
    Owned<double, 2> places;
    Owned<Byte> has_place;  // bit i: column i was given
    Owned<Index, 2> edges;
    Owned<double> values;
    Owned<bool> has_value;
    Doubts place_doubts, value_doubts;
};

using GraphmlRows = std::tuple<Index, Index, Owned<Index>, Owned<double, 2>, Owned<Byte>, Owned<Index, 2>, Owned<double>,
                               Owned<bool>, Owned<Index, 2>, Owned<Index, 2>>;

// How much of the text was read, and 1 where no nodes and edges follow or -2 for what is not plain; spans of node ids, places,
// which of them were given, spans of the ends of edges, values, whether they were given; and (row, column, start, end) of doubtful
// places and values. References to characters are replaced in the text, which ends in zeros that do not belong to it.
GraphmlRows parse_graphml(Vector<Byte> text, Vector<const Byte> key_ids, Vector<const Index> key_ends, Vector<const Index> in_node,
                          Vector<const Index> in_edge, Index columns) {
    const Index size = text.size() - PADDING;
    if (size < 0 || std::any_of(text.data + size, text.end(), [](Byte c) { return c != 0; }))
        throw std::invalid_argument("the text must end in eight zeros");
    bool good = in_node.size() == key_ends.size() && in_edge.size() == key_ends.size() && columns >= 0 && columns <= 8;
    Index last = 0;
    for (Index k = 0; good && k < key_ends.size(); k++) {
        good = last <= key_ends[k] && key_ends[k] <= key_ids.size() && in_node[k] < columns;
        last = key_ends[k];
    }
    if (!good) throw std::invalid_argument("the keys do not fit together");
    const Keys keys = {key_ids, key_ends, in_node, in_edge};
    Parser parser(text.data, size, keys, columns);
    Index state;
    const Index end = parser.parse(state);
    return {end,
            state,
            std::move(parser.nodes).shortened(parser.n_nodes),
            std::move(parser.places).shortened(parser.n_nodes),
            std::move(parser.has_place).shortened(parser.n_nodes),
            std::move(parser.edges).shortened(parser.n_edges),
            std::move(parser.values).shortened(parser.n_edges),
            std::move(parser.has_value).shortened(parser.n_edges),
            parser.place_doubts.found(),
            parser.value_doubts.found()};
}

}  // namespace

void bind_text_graphml(nb::module_& m) {
    m.def("parse_graphml", &parse_graphml, "text"_a, "key_ids"_a, "key_ends"_a, "in_node"_a, "in_edge"_a, "columns"_a, Unlocked());
}

}  // namespace hushgraph
