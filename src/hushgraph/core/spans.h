// Where a text lies in a row of bytes, as one number: start << 32 | end.
#pragma once

#include <stdexcept>

#include "number_text.h"

namespace hushgraph {

struct Span {
    Index start, end;
};

inline Index join_span(Index start, Index end) { return start << 32 | end; }

// Start and end of a text; one outside the first `size` bytes is an error.
inline Span split_span(Index span, Index size) {
    const Span found = {span >> 32, span & 0xFFFFFFFF};
    if (found.start < 0 || found.start > found.end || found.end > size) throw std::out_of_range("a text lies outside its bytes");
    return found;
}

}  // namespace hushgraph
