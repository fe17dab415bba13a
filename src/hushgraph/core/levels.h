// Loops compiled twice on x86-64: for every processor, and for those with AVX2. The same C++, the same order of operations, the
// same bits.
//
// A file `x.inc` holds functions that gain from wider registers. `both_levels.h` includes it once in a namespace `base`, and once
// more in a namespace `avx2`; HUSHGRAPH_LEVEL(f) is the one of the two that this processor can run. Fused multiply-add, which
// rounds once instead of twice, is not among what AVX2 allows the compiler to use.
#pragma once

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HUSHGRAPH_HAS_AVX2 1
#else
#define HUSHGRAPH_HAS_AVX2 0
#endif

#if HUSHGRAPH_HAS_AVX2 && defined(__clang__)
#define HUSHGRAPH_BEGIN_AVX2 _Pragma("clang attribute push(__attribute__((target(\"avx2\"))), apply_to = function)")
#define HUSHGRAPH_END_AVX2 _Pragma("clang attribute pop")
#elif HUSHGRAPH_HAS_AVX2
#define HUSHGRAPH_BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2\")")
#define HUSHGRAPH_END_AVX2 _Pragma("GCC pop_options")
#endif

#if HUSHGRAPH_HAS_AVX2
#define HUSHGRAPH_LEVEL(...) (::hushgraph::has_avx2() ? avx2::__VA_ARGS__ : base::__VA_ARGS__)
#else
#define HUSHGRAPH_LEVEL(...) (base::__VA_ARGS__)
#endif

namespace hushgraph {

// Whether this processor has AVX2, and nobody said HUSHGRAPH_NO_AVX2 (to compare, or to test the other half).
bool has_avx2();

}  // namespace hushgraph
