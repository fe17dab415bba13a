#include "levels.h"

#include <cstdlib>

#if HUSHGRAPH_HAS_AVX2
#include <cpuid.h>
#endif

namespace hushgraph {
namespace {

// Returns whether the processor and the operating system support AVX2. `__builtin_cpu_supports` would do the same, but it does not
// link with zig.
bool supports_avx2() {
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
    const auto is_disabled = [] {
        const char* value = std::getenv("HUSHGRAPH_NO_AVX2");
        return value && *value;
    };
    static const bool is_usable = supports_avx2() && !is_disabled();
    return is_usable;
}

}  // namespace hushgraph
