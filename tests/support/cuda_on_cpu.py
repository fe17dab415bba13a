"""CUDA kernels on the processor, by the small emulator of `cuda_on_cpu.h`: `compiled` as in `hushgraph.core.gpu`, for NumPy's memory."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from hushgraph.core import gpu

HERE, KERNELS = Path(__file__).parent, Path(gpu.__file__).parent / "cuda"
FLAGS = ("-O1", "-std=c++17", "-ffp-contract=off", "-fPIC", "-w")
NAMES = {"f": "float", "d": "double", "h": "short", "i": "int"}


def compiler() -> str | None:
    return shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")


def source_of(sources: str, name: str, kinds, more) -> str:
    """The kernel and a function that starts it with arguments behind pointers."""
    text = "\n".join((KERNELS / source).read_text() for source in sources.split())
    text = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1* \2 = (\1*)dynamic_shared.data();", text)
    header = re.search(
        rf"(template <[^>]*>\s*)?(extern \"C\" )?__global__ void[^;{{]*?\b{name}\((?P<list>[^{{]*?)\)\s*{{", text, re.DOTALL
    )
    words = [NAMES[kind.char] if isinstance(kind, np.dtype) else str(kind) for kind in kinds]
    parameters = [part.strip() for part in header["list"].split(",")]
    types = [re.match(r"(.*?[\s*&])\w+$", part, re.DOTALL)[1].strip() for part in parameters]
    if header[1]:
        letters = re.findall(r"(?:typename|int|bool)\s+(\w+)", header[1])
        for letter, word in zip(letters, words, strict=True):
            types = [re.sub(rf"\b{letter}\b", word, kind) for kind in types]
    types = [kind.replace("__restrict__", "") for kind in types]
    whole = f"{name}<{', '.join(words)}>" if kinds else name
    values = ", ".join(f"*({kind}*)arguments[{k}]" for k, kind in enumerate(types))
    defines = "\n".join(f"#define {one[2:].replace('=', ' ')}" for one in more if one.startswith("-D"))
    return f"""#include "{emulator()}"
{defines}
{text}
extern "C" void start(const int* grid, const int* block, int shared, void** arguments) {{
    launch(grid, block, shared, [=] {{ {whole}({values}); }});
}}
"""


def emulator() -> Path:
    """A copy of cuda_on_cpu.h with a compiled one beside it, which GCC takes instead."""
    text = (HERE / "cuda_on_cpu.h").read_text()
    folder = folder_of(text)
    place = folder / "cuda_on_cpu.h"
    if not place.exists():
        (draft := folder / f"{os.getpid()}.h").write_text(text)
        made(["-x", "c++-header", str(draft)], folder / "cuda_on_cpu.h.gch")
        draft.replace(place)
    return place


def folder_of(code: str) -> Path:
    """Where what is made of this code is kept."""
    folder = HERE.parent / ".pytest_cache" / "cuda-on-cpu" / hashlib.sha256(" ".join((code, *FLAGS)).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def made(arguments: list[str], target: Path) -> None:
    """Let the compiler write a file, which appears when it is complete."""
    draft = target.with_name(f"{os.getpid()}-{target.name}")
    done = subprocess.run([compiler(), *FLAGS, *arguments, "-o", str(draft)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    draft.replace(target)


def compiled(sources: str, name: str, *kinds, extra_options: tuple[str, ...] = ()):
    code = source_of(sources, name, kinds, extra_options)
    folder = folder_of(code)
    library = folder / "kernel.so"
    if not library.exists():
        (source := folder / f"{os.getpid()}.cpp").write_text(code)
        made(["-shared", str(source)], library)
    return Kernel(ctypes.CDLL(str(library)).start)


class Kernel:
    """Called like one of CuPy's; arrays give their addresses."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, start):
        self.start = start

    def __call__(self, grid, block, arguments, shared_mem=0):
        sizes = [(ctypes.c_int * 3)(*(*part, 1, 1)[:3]) for part in (grid, block)]
        held = [_word(one) for one in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        self.start(sizes[0], sizes[1], ctypes.c_int(shared_mem), pointers)


def _word(value):
    """A value where a pointer can point to it."""
    if value is None:
        return ctypes.c_void_p(0)
    if hasattr(value, "data") and hasattr(value.data, "ptr"):
        return ctypes.c_void_p(value.data.ptr)
    if isinstance(value, float | np.float64):
        return ctypes.c_double(float(value))
    if isinstance(value, np.float32):
        return ctypes.c_float(float(value))
    if isinstance(value, np.ndarray):  # a struct
        return (ctypes.c_char * value.nbytes).from_buffer_copy(value.tobytes())
    return {1: ctypes.c_int8, 4: ctypes.c_int32, 8: ctypes.c_int64}[np.asarray(value).itemsize](int(value))
