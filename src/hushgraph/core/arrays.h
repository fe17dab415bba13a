// Views of NumPy arrays, and arrays that C++ allocates and Python receives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hushgraph {

using Index = std::int64_t;

// A view: a pointer, a shape and strides. Rows may be apart, as in a slice of a larger array; numbers along the last axis are
// adjacent.
template <typename T, int N> struct Array {
    T* data = nullptr;
    Index shape[N] = {};
    Index strides[N] = {};  // in numbers; the last one is 1

    Index size() const { return shape[0]; }

    template <int M = N, typename = std::enable_if_t<M == 1>> T& operator[](Index i) const {
        check(i, 0);
        return data[i];
    }

    template <int M = N, typename = std::enable_if_t<(M > 1)>> Array<T, (M > 1 ? M - 1 : 1)> operator[](Index i) const {
        check(i, 0);
        Array<T, (M > 1 ? M - 1 : 1)> row;
        row.data = data + i * strides[0];
        for (int axis = 1; axis < N; axis++) {
            row.shape[axis - 1] = shape[axis];
            row.strides[axis - 1] = strides[axis];
        }
        return row;
    }

    T& operator()(Index i, Index j) const {
        static_assert(N == 2, "two indices need two axes");
        check(i, 0), check(j, 1);
        return data[i * strides[0] + j];
    }

    T& operator()(Index i, Index j, Index k) const {
        static_assert(N == 3, "three indices need three axes");
        check(i, 0), check(j, 1), check(k, 2);
        return data[i * strides[0] + j * strides[1] + k];
    }

    operator Array<const T, N>() const {
        Array<const T, N> view;
        view.data = data;
        for (int axis = 0; axis < N; axis++) {
            view.shape[axis] = shape[axis];
            view.strides[axis] = strides[axis];
        }
        return view;
    }

    T* begin() const {
        static_assert(N == 1, "only vectors have iterators");
        return data;
    }
    T* end() const { return data + shape[0]; }

  private:
    // Stops a build with sanitizers at a wrong index. The sanitizers alone detect only an access outside the whole array.
    void check([[maybe_unused]] Index i, [[maybe_unused]] int axis) const {
#if defined(HUSHGRAPH_CHECKED)
        if (i < 0 || i >= std::max<Index>(shape[axis], 1)) {  // index 0 of an empty axis is allowed: it gives the start address
            std::fprintf(stderr, "index %lld of axis %d of size %lld\n", static_cast<long long>(i), axis,
                         static_cast<long long>(shape[axis]));
            std::abort();
        }
#endif
    }
};

template <typename T> using Vector = Array<T, 1>;
template <typename T> using Matrix = Array<T, 2>;
template <typename T> using Cube = Array<T, 3>;

// A view that may be absent: the argument None gives a null `data`.
template <typename T, int N> struct Optional : Array<T, N> {
    explicit operator bool() const { return this->data != nullptr; }
};

// An array that owns its memory. Only `zeros` and `filled` initialize the numbers. As a result for Python it becomes a NumPy array
// without a copy.
template <typename T, int N = 1> class Owned : public Array<T, N> {
  public:
    Owned() { allocate(false); }
    template <typename... Sizes, typename = std::enable_if_t<sizeof...(Sizes) == N>> explicit Owned(Sizes... sizes) {
        set_shape(sizes...);
        allocate(false);
    }
    template <typename... Sizes> static Owned zeros(Sizes... sizes) {
        Owned array(Unallocated{});
        array.set_shape(sizes...);
        array.allocate(true);
        return array;
    }
    template <typename... Sizes> static Owned filled(T value, Sizes... sizes) {
        Owned array(sizes...);
        for (Index i = 0; i < array.count(); i++) array.data[i] = value;
        return array;
    }

    Owned(Owned&& other) noexcept : Array<T, N>(other) { other.data = nullptr; }
    Owned& operator=(Owned&& other) noexcept {
        std::swap(static_cast<Array<T, N>&>(*this), static_cast<Array<T, N>&>(other));
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { std::free(this->data); }

    Index count() const {
        Index product = 1;
        for (int axis = 0; axis < N; axis++) product *= this->shape[axis];
        return product;
    }

    // Returns the memory; the caller must free it.
    T* release() {
        T* memory = this->data;
        this->data = nullptr;
        return memory;
    }

    // Returns the array cut to its first rows; frees the rest of the memory.
    Owned&& shortened(Index rows) && {
        this->shape[0] = rows;
        const std::size_t bytes = static_cast<std::size_t>(count()) * sizeof(T);
        if (void* smaller = std::realloc(this->data, bytes ? bytes : 1)) this->data = static_cast<T*>(smaller);
        return std::move(*this);
    }

    // Allocates memory for more rows and keeps the old ones.
    void grow(Index rows) {
        this->shape[0] = rows;
        void* larger = std::realloc(this->data, static_cast<std::size_t>(count()) * sizeof(T));
        if (!larger) throw std::bad_alloc();
        this->data = static_cast<T*>(larger);
    }

  private:
    struct Unallocated {};
    explicit Owned(Unallocated) {}

    template <typename... Sizes> void set_shape(Sizes... sizes) {
        const Index lengths[] = {static_cast<Index>(sizes)...};
        Index stride = 1;
        for (int axis = N - 1; axis >= 0; axis--) {
            this->shape[axis] = lengths[axis];
            this->strides[axis] = stride;
            stride *= lengths[axis];
        }
    }

    void allocate(bool zero) {
        const std::size_t bytes = static_cast<std::size_t>(count()) * sizeof(T);
        void* memory = zero ? std::calloc(bytes ? bytes : 1, 1) : std::malloc(bytes ? bytes : 1);
        if (!memory) throw std::bad_alloc();
        this->data = static_cast<T*>(memory);
#if defined(__linux__)
        constexpr std::size_t large = std::size_t(1) << 22, page = 4096;  // like NumPy: large arrays use large pages
        if (bytes >= large) {
            const std::size_t offset = page - reinterpret_cast<std::uintptr_t>(memory) % page;
            madvise(static_cast<char*>(memory) + offset, bytes - offset, MADV_HUGEPAGE);
        }
#endif
    }
};

// A list of integers, or of rows of COLUMNS integers, that grows at its end.
template <int COLUMNS> class GrowingList {
    static constexpr int AXES = COLUMNS > 1 ? 2 : 1;

  public:
    Index count = 0;

    template <typename... Values> void append(Values... values) {
        static_assert(sizeof...(Values) == COLUMNS, "one value for each column");
        if (count == rows_.size()) rows_.grow(2 * count + 16);
        const Index row[] = {values...};
        std::copy(row, row + COLUMNS, rows_.data + COLUMNS * count++);
    }

    // Returns the appended rows; the list must not be used afterwards.
    Owned<Index, AXES> take() { return std::move(rows_).shortened(count); }

  private:
    static Owned<Index, AXES> empty() {
        if constexpr (COLUMNS > 1)
            return Owned<Index, AXES>(0, COLUMNS);
        else
            return Owned<Index, AXES>(0);
    }
    Owned<Index, AXES> rows_ = empty();
};

// Turns the size of each group k, counts[k + 1], into the start of the group, in place (counts[0] is 0, and the last entry becomes
// the number of all members); returns a copy of the starts, for the caller to advance while it fills the groups.
inline Owned<Index> start_groups(Vector<Index> counts) {
    for (Index k = 0; k + 1 < counts.size(); k++) counts[k + 1] += counts[k];
    Owned<Index> next(counts.size());
    std::copy(counts.begin(), counts.end(), next.begin());
    return next;
}

}  // namespace hushgraph
