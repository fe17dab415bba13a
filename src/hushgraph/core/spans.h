// Spans: the position of a text in an array of bytes, as one number: start << 32 | end.
#pragma once

#include <stdexcept>

#include "number_text.h"

namespace hushgraph {

struct Span {
    Index start, end;
};

inline Index join_span(Index start, Index end) { return start << 32 | end; }

// Returns the start and the end of a text. A span outside the first `size` bytes is an error.
inline Span split_span(Index span, Index size) {
    const Span text = {span >> 32, span & 0xFFFFFFFF};
    if (text.start < 0 || text.start > text.end || text.end > size) throw std::out_of_range("a text is outside the buffer");
    return text;
}

}  // namespace hushgraph
