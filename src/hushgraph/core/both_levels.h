// Compiles the loops of the file HUSHGRAPH_LOOPS twice: for every processor, and for processors with AVX2 (`levels.h`). This header
// has no include guard, because it is included once for each file of loops.
namespace base {
#include HUSHGRAPH_LOOPS
}  // namespace base

#if HUSHGRAPH_HAS_AVX2
HUSHGRAPH_BEGIN_AVX2
namespace avx2 {
#include HUSHGRAPH_LOOPS
}  // namespace avx2
HUSHGRAPH_END_AVX2
#endif

#undef HUSHGRAPH_LOOPS
