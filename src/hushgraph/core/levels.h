// Levels of loops: on x86-64 some loops are compiled twice, for every processor and for processors with AVX2. Both levels have the
// same C++ code and the same order of operations, so the results have the same bits.
//
// A file `x.inc` holds functions that are faster with wider registers. `both_levels.h` includes it in a namespace `base` and again
// in a namespace `avx2`; HUSHGRAPH_LEVEL(f) selects the faster version that this processor can run. AVX2 does not include fused
// multiply-add, which rounds once instead of twice and would change bits.
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

// Returns whether this processor has AVX2 and the environment variable HUSHGRAPH_NO_AVX2 is not set. The variable selects the level
// `base`, for comparisons and tests.
bool has_avx2();

}  // namespace hushgraph
