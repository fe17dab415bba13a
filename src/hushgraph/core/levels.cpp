#include "levels.h"

#include <cstdlib>

#if HUSHGRAPH_HAS_AVX2
#include <cpuid.h>
#endif

namespace hushgraph {
namespace {

// Whether processor and operating system both support AVX2. By hand: zig lacks what `__builtin_cpu_supports` needs.
bool find_avx2() {
#if HUSHGRAPH_HAS_AVX2
    constexpr unsigned os_saves_registers = 1u << 27, avx = 1u << 28, avx2 = 1u << 5, saved_registers = 6;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & os_saves_registers) || !(c & avx)) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    if ((a & saved_registers) != saved_registers) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & avx2);
#else
    return false;
#endif
}

}  // namespace

bool has_avx2() {
    const auto is_off = [] {
        const char* asked = std::getenv("HUSHGRAPH_NO_AVX2");
        return asked && *asked;
    };
    static const bool found = find_avx2() && !is_off();
    return found;
}

}  // namespace hushgraph
