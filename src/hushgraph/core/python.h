// Shared code of all bindings: array arguments and results, and calls that release the interpreter lock.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include "arrays.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace nanobind::detail {

// Returns the type of an array of T in the stub file.
template <typename T> constexpr auto array_name() {
    using Number = std::remove_const_t<T>;
    constexpr auto full_name = [](auto name) { return const_name("numpy.typing.NDArray[numpy.") + name + const_name("]"); };
    constexpr auto bits = const_name<sizeof(Number) * 8>();
    if constexpr (std::is_same_v<Number, bool>)
        return full_name(const_name("bool_"));
    else if constexpr (std::is_floating_point_v<Number>)
        return full_name(const_name("float") + bits);
    else
        return full_name(const_name<std::is_unsigned_v<Number>>("uint", "int") + bits);
}

// Accepts an array without conversion: a wrong dtype, number of axes, order or alignment is a TypeError, never a silent copy.
template <typename T, int N> struct type_caster<hushgraph::Array<T, N>> {
    using Source = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
    using View = hushgraph::Array<T, N>;
    NB_TYPE_CASTER(View, array_name<T>())

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        const uint32_t strict = flags & ~static_cast<uint32_t>(cast_flags::convert);
        if (!caster.from_python(source, strict, cleanup)) return false;
        const Source& array = caster.value;
        value.data = array.data();
        if (reinterpret_cast<std::uintptr_t>(value.data) % alignof(T) != 0) return false;
        bool empty = false;
        for (int axis = 0; axis < N; axis++) {
            value.shape[axis] = static_cast<hushgraph::Index>(array.shape(axis));
            value.strides[axis] = array.stride(axis);
            empty |= value.shape[axis] == 0;
        }
        const bool adjacent = value.strides[N - 1] == 1 || value.shape[N - 1] <= 1 || empty;
        value.strides[N - 1] = 1;
        return adjacent;
    }

    make_caster<Source> caster;
};

template <typename T, int N> struct type_caster<hushgraph::Optional<T, N>> {
    using View = hushgraph::Optional<T, N>;
    using Base = hushgraph::Array<T, N>;
    NB_TYPE_CASTER(View, make_caster<Base>::Name)

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        if (source.is_none()) return true;
        if (!caster.from_python(source, flags, cleanup)) return false;
        static_cast<Base&>(value) = caster.value;
        return true;
    }

    make_caster<Base> caster;
};

template <typename T, int N> struct type_caster<hushgraph::Owned<T, N>> {
    using Result = nb::ndarray<nb::numpy, T, nb::ndim<N>>;
    using Value = hushgraph::Owned<T, N>;
    static constexpr auto Name = array_name<T>();
    template <typename> using Cast = Value&&;
    static constexpr bool IsClass = false;

    static handle from_cpp(Value&& source, rv_policy, cleanup_list* cleanup) noexcept {
        size_t shape[N];
        for (int axis = 0; axis < N; axis++) shape[axis] = static_cast<size_t>(source.shape[axis]);
        T* memory = source.release();
        nb::capsule owner(memory, [](void* pointer) noexcept { std::free(pointer); });
        const handle array = make_caster<Result>::from_cpp(Result(memory, N, shape, owner), rv_policy::reference, cleanup);
        if constexpr (!std::is_same_v<T, hushgraph::Index>) return array;
        // NumPy has two integer types of 64 bits, and nanobind chooses the one that is not named int64
        PyObject* renamed = array.is_valid() ? PyObject_CallMethod(array.ptr(), "view", "s", "int64") : nullptr;
        Py_XDECREF(array.ptr());
        return renamed;
    }
};

}  // namespace nanobind::detail

namespace hushgraph {

// Releases the interpreter lock for the life of this object.
class ReleasedLock {
  public:
    ReleasedLock() : state_(PyEval_SaveThread()) {}
    ~ReleasedLock() {
        const PythonEntry entry;
        PyEval_RestoreThread(state_);
    }
    ReleasedLock(const ReleasedLock&) = delete;
    ReleasedLock& operator=(const ReleasedLock&) = delete;

  private:
    PyThreadState* state_;
};

using Unlocked = nb::call_guard<ReleasedLock>;

}  // namespace hushgraph
