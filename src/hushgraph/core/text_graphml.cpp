// Parsing of the nodes and edges of plain GraphML (`files/graphml_fast.py`). The parser stops at the first element that is not
// plain.
#include <algorithm>
#include <limits>

#include "python.h"
#include "spans.h"

namespace hushgraph {
namespace {

// Results of functions that return a position otherwise. MORE: the block ends inside an element. OTHER: the element is not plain;
// also the role of data that are not plain.
constexpr Index MORE = -1, OTHER = -2;
constexpr Index NOT_WANTED = -1;  // role of data; other roles are the column of a place, or 0 for the value of an edge
constexpr Index AT_TAIL = 1;      // state: data or the end of the graph follow
constexpr Index PADDING = 8;

struct Marks {
    bool is_blank[256] = {}, is_plain[256] = {};  // plain: has no special meaning anywhere

    constexpr Marks() {
        for (int c = 32; c < 256; c++) is_plain[c] = true;
        for (const char c : {'<', '>', '&', '"', '\''}) is_plain[static_cast<Byte>(c)] = false;
        for (const char c : {' ', '\t', '\r', '\n'}) is_blank[static_cast<Byte>(c)] = true;
    }
};

constexpr Marks MARKS;

bool is_quote(Byte c) { return c == '"' || c == '\''; }

// The wanted keys, and the roles of their data in nodes and in edges.
struct Keys {
    Vector<const Byte> ids;                      // the bytes of all ids
    Vector<const Index> ends, in_node, in_edge;  // end of each id, roles
};

// Numbers that Python must convert: row, column, start and end of each.
using Doubts = GrowingList<4>;

// Reads text[0:size]. The next byte must be neither blank nor plain, so that loops over such bytes end.
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

    // Reads nodes and edges; returns the start of the first other or incomplete element. `state` becomes AT_TAIL, OTHER, or 0 for
    // an incomplete element.
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
                for (Index column = 0; column < places.shape[1]; column++) places(n_nodes, column) = missing;
                values[n_edges] = missing;
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

    static constexpr double missing = std::numeric_limits<double>::quiet_NaN();

    Byte* text_;
    Index size_;
    const Keys& keys_;

    // Returns the end of a literal that starts at i; OTHER if there is another text, MORE if the block ends inside the literal.
    template <std::size_t N> Index after(Index i, const char (&literal)[N]) const {
        constexpr Index length = N - 1;
        if (i + length <= size_) return std::memcmp(text_ + i, literal, length) == 0 ? i + length : OTHER;
        return std::memcmp(text_ + i, literal, static_cast<std::size_t>(size_ - i)) == 0 ? MORE : OTHER;
    }

    // Returns the position of the first byte from i on that is not blank.
    Index past_blanks(Index i) const {
        while (MARKS.is_blank[text_[i]]) i++;
        return i;
    }

    // Reads the attributes of a tag; returns the end of the tag. Writes the span of the id, or the spans of source and target.
    // `is_open`: the element has content.
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

    // Reads characters from i up to the byte `stop`, and returns its position. References are replaced in place; `end` is the end
    // of the resulting text.
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

    // Reads a reference to a character; returns its end. Writes the character at `end`; it has fewer bytes than the reference.
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

    // Reads the data of a node or an edge; returns the end of the element.
    Index read_content(Index i, bool is_node) {
        for (bool has_edge_value = false;;) {
            i = past_blanks(i);
            const Index begin = after(i, "<data key=");
            if (begin == OTHER) {
                has_value[n_edges] = has_edge_value;
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
            bool is_plain = true;
            if (role >= 0 && is_node) {
                is_plain = set_place(start, end, role);
            } else if (role >= 0) {
                is_plain = !has_edge_value && set_value(start, end);
                has_edge_value = true;
            }
            if (!is_plain) return OTHER;
        }
    }

    // Returns the role of the data of a key.
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

    // Removes blanks at both ends of a text.
    void trim(Index& start, Index& end) const {
        while (start < end && MARKS.is_blank[text_[start]]) start++;
        while (end > start && MARKS.is_blank[text_[end - 1]]) end--;
    }

    // Sets a coordinate of the present node; a text that is no number becomes NaN. Returns false if the coordinate is already set.
    bool set_place(Index start, Index end, Index column) {
        if (has_place[n_nodes] >> column & 1) return false;
        has_place[n_nodes] |= static_cast<Byte>(1 << column);
        trim(start, end);
        const bool negative = start < end && text_[start] == '-';
        Decimal number = parse_decimal(text_ + start + negative, text_ + end);
        if (negative && text_[start + 1] == '+') number.rounding = Rounding::no_number;
        const bool is_number = number.rounding != Rounding::no_number;
        places(n_nodes, column) = !is_number ? missing : negative ? -number.value : number.value;
        if (number.rounding == Rounding::doubtful) place_doubts.append(n_nodes, column, start, end);
        return true;
    }

    // Sets the value of the present edge; returns false if the text is no number >= 0.
    bool set_value(Index start, Index end) {
        trim(start, end);
        const Decimal number = parse_decimal(text_ + start, text_ + end);
        values[n_edges] = number.value;
        if (number.rounding == Rounding::doubtful) value_doubts.append(n_edges, Index(0), start, end);
        return number.rounding != Rounding::no_number;
    }

  public:
    Index n_nodes = 0, n_edges = 0;
    Owned<Index> nodes;
    Owned<double, 2> places;
    Owned<Byte> has_place;  // bit i: column i is set
    Owned<Index, 2> edges;
    Owned<double> values;
    Owned<bool> has_value;
    Doubts place_doubts, value_doubts;
};

using GraphmlRows = std::tuple<Index, Index, Owned<Index>, Owned<double, 2>, Owned<Byte>, Owned<Index, 2>, Owned<double>,
                               Owned<bool>, Owned<Index, 2>, Owned<Index, 2>>;

// Returns the number of bytes that were read, and a state: 1 if no nodes and edges follow, -2 if the next element is not plain, 0
// if it is incomplete; the spans of node ids, the places, and which of them are set; the spans of the ends of edges, the values,
// and which of them are set; and (row, column, start, end) of doubtful places and values. References to characters are replaced in
// the text. The last PADDING bytes of the text are zeros and are not parsed.
GraphmlRows parse_graphml(Vector<Byte> text, Vector<const Byte> key_ids, Vector<const Index> key_ends, Vector<const Index> in_node,
                          Vector<const Index> in_edge, Index columns) {
    const Index size = text.size() - PADDING;
    if (size < 0 || std::any_of(text.data + size, text.end(), [](Byte c) { return c != 0; }))
        throw std::invalid_argument("the text must end in eight zeros");
    bool is_valid = in_node.size() == key_ends.size() && in_edge.size() == key_ends.size() && columns >= 0 && columns <= 8;
    Index last = 0;
    for (Index k = 0; is_valid && k < key_ends.size(); k++) {
        is_valid = last <= key_ends[k] && key_ends[k] <= key_ids.size() && in_node[k] < columns;
        last = key_ends[k];
    }
    if (!is_valid) throw std::invalid_argument("the arrays of keys do not fit together");
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
            parser.place_doubts.take(),
            parser.value_doubts.take()};
}

}  // namespace

void bind_text_graphml(nb::module_& m) {
    m.def("parse_graphml", &parse_graphml, "text"_a, "key_ids"_a, "key_ends"_a, "in_node"_a, "in_edge"_a, "columns"_a, Unlocked());
}

}  // namespace hushgraph
