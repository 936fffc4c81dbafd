"""Kernels whose threads do not look at each other, compiled for the host: what they compute, without a GPU.

It is the text that NVRTC compiles, less the lines of machine code that read and write the smallest floats.
Threads run one after the other. What only a GPU shows (launches, memory, its compiler, speed) is not here.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from polyleaf.gpu.sources import source

_KERNEL = re.compile(r'extern "C" __global__ void\s+(\w+)\(([^)]*)\)')
_HEAD = """
#include <algorithm>
#include <cmath>
#define __device__
#define __global__
using std::max;
using std::min;
struct Index { unsigned x, y; };
static Index threadIdx, blockIdx, blockDim, gridDim;
"""
# Machine code of a GPU, and the C++ that it stands for.
_PLAIN = {
    r'asm\("cvt\.f64\.f32[^;]*;[^;]*;': "out = static_cast<double>(value);",
    r'asm\("cvt\.rn\.f32\.f64[^;]*;[^;]*;': "out = static_cast<float>(value);",
}
# Those that speak to other threads, or hold machine code, and that no kernel here needs.
_LEFT_OUT = re.compile(
    r"(?:template <class Number>\n)?__device__ inline (?:bool is_above|Number warp_sum|double warp_max|"
    r"int block_scan)\(.*?\n}\n",
    re.DOTALL,
)


def compiled(file: str, folder: Path) -> Callable[..., Any]:
    """Return what stands in for `polyleaf.gpu.runtime.kernel`, for the kernels of one file."""
    text = _LEFT_OUT.sub("", source(file))
    for machine_code, plain in _PLAIN.items():
        text, n = re.subn(machine_code, plain, text)
        assert n == 1, machine_code
    runs = []
    for name, arguments in _KERNEL.findall(text):
        types = [re.sub(r"\s*\w+$", "", one.strip()) for one in arguments.split(",")]
        values = ", ".join(f"*static_cast<{one}*>(a[{i}])" for i, one in enumerate(types))
        runs.append(
            f'extern "C" void run_{name}(void** a, unsigned nx, unsigned ny, unsigned n) {{\n'
            "  gridDim = {nx, ny}; blockDim = {n, 1};\n"
            "  for (blockIdx.y = 0; blockIdx.y < ny; ++blockIdx.y)\n"
            "    for (blockIdx.x = 0; blockIdx.x < nx; ++blockIdx.x)\n"
            f"      for (threadIdx.x = 0; threadIdx.x < n; ++threadIdx.x) ::{name}({values});\n}}\n"
        )
    path = folder / "kernels.cpp"
    path.write_text(_HEAD + text + "".join(runs), encoding="utf-8")
    library = folder / "kernels.so"
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["c++", *options, str(path), "-o", str(library)], check=True)
    functions = ctypes.CDLL(str(library))

    def kernel(asked: str, name: str) -> Any:
        assert asked == file
        run = functions[f"run_{name}"]

        def launched(grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
            assert shared_mem == 0
            held = [_argument(one) for one in arguments]
            pointers = (ctypes.c_void_p * len(held))(*(one.ctypes.data for one in held))
            x, y = (*grid, 1)[:2]
            run(pointers, ctypes.c_uint(x), ctypes.c_uint(y), ctypes.c_uint(block[0]))

        return launched

    return kernel


def _argument(value: Any) -> Any:
    """Return where a kernel reads an argument: the address of an array, or a number or struct itself."""
    if isinstance(value, HostArray):
        return np.array([value.data.ptr], dtype=np.uint64)
    return np.atleast_1d(np.asarray(value))


class HostArray(np.ndarray[Any, Any]):
    """An array of NumPy that has what polyleaf uses of CuPy's."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self, out: Any = None) -> Any:
        if out is None:
            return np.array(self)
        assert out.flags.c_contiguous
        out[...] = self
        return out


def numpy_as_cupy() -> ModuleType:
    """Return a module with the functions of CuPy that polyleaf.gpu.shap calls, by NumPy."""
    module = ModuleType("numpy_as_cupy")

    def owned(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: function(*args, **kwargs).view(HostArray)

    def empty(*args: Any, **kwargs: Any) -> Any:
        found = np.empty(*args, **kwargs)
        found.view(np.uint8)[...] = 0xFF  # what nobody writes is NaN
        return found.view(HostArray)

    for name in ("asarray", "ascontiguousarray", "zeros"):
        setattr(module, name, owned(getattr(np, name)))
    module.empty = empty  # type: ignore[attr-defined]
    module.abs = np.abs  # type: ignore[attr-defined]
    module.cuda = SimpleNamespace(Device=lambda: SimpleNamespace(id=0))  # type: ignore[attr-defined]
    return module
