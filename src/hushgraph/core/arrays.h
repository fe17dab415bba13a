// Views of NumPy arrays, and memory that becomes one.
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

// A pointer with a shape. Rows may lie apart, as in a slice of a larger array; numbers along the last axis are adjacent.
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
        static_assert(N == 1, "only vectors are walked through");
        return data;
    }
    T* end() const { return data + shape[0]; }

  private:
    // Builds with sanitizers end here, since those see only what lies outside of a whole array.
    void check([[maybe_unused]] Index i, [[maybe_unused]] int axis) const {
#if defined(HUSHGRAPH_CHECKED)
        if (i < 0 || i >= std::max<Index>(shape[axis], 1)) {  // 0 is where an empty one would begin
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

// An argument that may be None: then `data` is null.
template <typename T, int N> struct Optional : Array<T, N> {
    explicit operator bool() const { return this->data != nullptr; }
};

// Memory of its own, not initialised unless made by `zeros` or `filled`. Returned to Python it becomes a NumPy array, without a
// copy.
template <typename T, int N = 1> class Owned : public Array<T, N> {
  public:
    Owned() { allocate(false); }
    template <typename... Sizes, typename = std::enable_if_t<sizeof...(Sizes) == N>> explicit Owned(Sizes... sizes) {
        set_shape(sizes...);
        allocate(false);
    }
    template <typename... Sizes> static Owned zeros(Sizes... sizes) {
        Owned made(Unallocated{});
        made.set_shape(sizes...);
        made.allocate(true);
        return made;
    }
    template <typename... Sizes> static Owned filled(T value, Sizes... sizes) {
        Owned made(sizes...);
        for (Index i = 0; i < made.count(); i++) made.data[i] = value;
        return made;
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

    // Give the memory up to whoever frees it.
    T* release() {
        T* memory = this->data;
        this->data = nullptr;
        return memory;
    }

    // Only the first rows; memory that is no longer needed is given back.
    Owned&& shortened(Index rows) && {
        this->shape[0] = rows;
        const std::size_t bytes = static_cast<std::size_t>(count()) * sizeof(T);
        if (void* smaller = std::realloc(this->data, bytes ? bytes : 1)) this->data = static_cast<T*>(smaller);
        return std::move(*this);
    }

    // Room for more rows; what is there stays.
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
        const Index given[] = {static_cast<Index>(sizes)...};
        Index stride = 1;
        for (int axis = N - 1; axis >= 0; axis--) {
            this->shape[axis] = given[axis];
            this->strides[axis] = stride;
            stride *= given[axis];
        }
    }

    void allocate(bool zero) {
        const std::size_t bytes = static_cast<std::size_t>(count()) * sizeof(T);
        void* memory = zero ? std::calloc(bytes ? bytes : 1, 1) : std::malloc(bytes ? bytes : 1);
        if (!memory) throw std::bad_alloc();
        this->data = static_cast<T*>(memory);
#if defined(__linux__)
        constexpr std::size_t large = std::size_t(1) << 22, page = 4096;  // as NumPy does: large arrays on large pages
        if (bytes >= large) {
            const std::size_t offset = page - reinterpret_cast<std::uintptr_t>(memory) % page;
            madvise(static_cast<char*>(memory) + offset, bytes - offset, MADV_HUGEPAGE);
        }
#endif
    }
};

}  // namespace hushgraph
