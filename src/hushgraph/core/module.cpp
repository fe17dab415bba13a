#include "python.h"

#include <atomic>

#include "threads.h"

namespace hushgraph {
namespace {

// Returns the number of steps of a loop inside a loop. The tests of threads use this function.
Index count_nested_steps(Index outer, Index inner) {
    std::atomic<Index> steps{0};
    parallel_for(outer, MIN_PARALLEL_WORK, [&](Index) { parallel_for(inner, MIN_PARALLEL_WORK, [&](Index) { steps++; }); });
    return steps;
}

// Returns the name and version of the compiler that built this module.
const char* compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#else
    return "GCC " __VERSION__;
#endif
}

}  // namespace

void bind_blocks(nb::module_& m);
void bind_bounding(nb::module_& m);
void bind_chains(nb::module_& m);
void bind_clusters(nb::module_& m);
void bind_counts(nb::module_& m);
void bind_edges(nb::module_& m);
void bind_flow(nb::module_& m);
void bind_ids(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_messages(nb::module_& m);
void bind_nearest(nb::module_& m);
void bind_partitions(nb::module_& m);
void bind_patches(nb::module_& m);
void bind_recurrence(nb::module_& m);
void bind_shrinkage(nb::module_& m);
void bind_smoothing(nb::module_& m);
void bind_spectrum(nb::module_& m);
void bind_sums(nb::module_& m);
void bind_surroundings(nb::module_& m);
void bind_text_edges(nb::module_& m);
void bind_text_events(nb::module_& m);
void bind_text_graphml(nb::module_& m);
void bind_thresholds(nb::module_& m);

NB_MODULE(_loops, m) {
    nb::set_leak_warnings(false);  // a graph may live until the interpreter ends, with the kernels and trees in its cache
    m.doc() = "The compiled loops of hushgraph. They work on arrays and know nothing about graphs.";
    m.def("compiler", &compiler);
    m.def("count_nested_steps", &count_nested_steps, "outer"_a, "inner"_a, Unlocked());
    m.def("thread_count", &thread_count);
    m.def("set_threads", &set_threads, "count"_a);
    m.def("set_processors", &set_processors, "count"_a);
    m.def("close", &close);
    bind_blocks(m);
    bind_bounding(m);
    bind_chains(m);
    bind_clusters(m);
    bind_counts(m);
    bind_edges(m);
    bind_flow(m);
    bind_ids(m);
    bind_layout(m);
    bind_messages(m);
    bind_nearest(m);
    bind_partitions(m);
    bind_patches(m);
    bind_recurrence(m);
    bind_shrinkage(m);
    bind_smoothing(m);
    bind_spectrum(m);
    bind_sums(m);
    bind_surroundings(m);
    bind_text_edges(m);
    bind_text_events(m);
    bind_text_graphml(m);
    bind_thresholds(m);
}

}  // namespace hushgraph
