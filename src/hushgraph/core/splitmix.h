// SplitMix64: a sequence of pseudo-random integers, the same on every machine.
#pragma once

#include <cstdint>

namespace hushgraph {

constexpr std::uint64_t SPLITMIX_STEP = 0x9E3779B97F4A7C15;  // the state grows by this for each number of the sequence

// Returns the number of the sequence that belongs to `state`.
inline std::uint64_t splitmix_output(std::uint64_t state) {
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
    return state ^ (state >> 31);
}

}  // namespace hushgraph
