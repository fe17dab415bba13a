// The loops of the file HUSHGRAPH_LOOPS, compiled for every processor and for those with AVX2 (`levels.h`). Included once for each
// such file, so without a guard.
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
