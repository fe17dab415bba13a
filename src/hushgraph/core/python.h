// What the bindings of all subjects share: array arguments and results, and calls without the lock of the interpreter.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include "arrays.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace nanobind::detail {

// What stubs call an array of these numbers.
template <typename T> constexpr auto array_name() {
    using Number = std::remove_const_t<T>;
    constexpr auto whole = [](auto name) { return const_name("numpy.typing.NDArray[numpy.") + name + const_name("]"); };
    constexpr auto bits = const_name<sizeof(Number) * 8>();
    if constexpr (std::is_same_v<Number, bool>)
        return whole(const_name("bool_"));
    else if constexpr (std::is_floating_point_v<Number>)
        return whole(const_name("float") + bits);
    else
        return whole(const_name<std::is_unsigned_v<Number>>("uint", "int") + bits);
}

// Arrays are taken as they are: another dtype, number of axes, order or alignment is a TypeError, never a silent copy.
template <typename T, int N> struct type_caster<hushgraph::Array<T, N>> {
    using Held = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
    using View = hushgraph::Array<T, N>;
    NB_TYPE_CASTER(View, array_name<T>())

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        const uint32_t strict = flags & ~static_cast<uint32_t>(cast_flags::convert);
        if (!held.from_python(source, strict, cleanup)) return false;
        const Held& array = held.value;
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

    make_caster<Held> held;
};

template <typename T, int N> struct type_caster<hushgraph::Optional<T, N>> {
    using View = hushgraph::Optional<T, N>;
    using Given = hushgraph::Array<T, N>;
    NB_TYPE_CASTER(View, make_caster<Given>::Name)

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        if (source.is_none()) return true;
        if (!held.from_python(source, flags, cleanup)) return false;
        static_cast<Given&>(value) = held.value;
        return true;
    }

    make_caster<Given> held;
};

template <typename T, int N> struct type_caster<hushgraph::Owned<T, N>> {
    using Made = nb::ndarray<nb::numpy, T, nb::ndim<N>>;
    using Value = hushgraph::Owned<T, N>;
    static constexpr auto Name = array_name<T>();
    template <typename> using Cast = Value&&;
    static constexpr bool IsClass = false;

    static handle from_cpp(Value&& made, rv_policy, cleanup_list* cleanup) noexcept {
        size_t shape[N];
        for (int axis = 0; axis < N; axis++) shape[axis] = static_cast<size_t>(made.shape[axis]);
        T* memory = made.release();
        nb::capsule owner(memory, [](void* pointer) noexcept { std::free(pointer); });
        const handle array = make_caster<Made>::from_cpp(Made(memory, N, shape, owner), rv_policy::reference, cleanup);
        if constexpr (!std::is_same_v<T, hushgraph::Index>) return array;
        // NumPy has two integers of 64 bits; what came out is not the one that it calls int64
        PyObject* usual = array.is_valid() ? PyObject_CallMethod(array.ptr(), "view", "s", "int64") : nullptr;
        Py_XDECREF(array.ptr());
        return usual;
    }
};

}  // namespace nanobind::detail

namespace hushgraph {

// The lock of the interpreter is given up while this lives.
class GivenUp {
  public:
    GivenUp() : state_(PyEval_SaveThread()) {}
    ~GivenUp() {
        const Returning returning;
        PyEval_RestoreThread(state_);
    }
    GivenUp(const GivenUp&) = delete;
    GivenUp& operator=(const GivenUp&) = delete;

  private:
    PyThreadState* state_;
};

using Unlocked = nb::call_guard<GivenUp>;

}  // namespace hushgraph
