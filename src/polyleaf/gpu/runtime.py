"""CuPy, the device, and kernels compiled at run time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from polyleaf.gpu.sources import source
from polyleaf.gpu.structs import Record

_INSTALL = 'pip install "polyleaf[gpu]"'

# No fused multiply-adds, as on the CPU: the rules then give the same bits.
_OPTIONS = ("-std=c++17", "-default-device", "-fmad=false")


_NULL = np.uint64(0)
_CONVERT: dict[type, Callable[[Any], Any]] = {
    int: np.int32,
    bool: np.int32,
    float: np.float64,
    type(None): lambda _: _NULL,
    Record: lambda record: record.value,
}


class GpuError(RuntimeError):
    """There is no GPU that polyleaf could use."""


@cache
def cupy() -> Any:
    """Return CuPy, once there is a device to use it on.

    Raises
    ------
    ImportError
        CuPy is not installed.
    GpuError
        There is no NVIDIA GPU, or its driver does not work.
    """
    try:
        import cupy as module
    except ImportError as error:
        raise ImportError(
            f"device='cuda' needs CuPy, which cannot be imported ({error}); install it with {_INSTALL}."
        ) from error
    try:
        n_devices = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own kinds, of a missing driver or library
        raise GpuError(
            f"device='cuda' needs an NVIDIA GPU with a working driver: {error}. Use device='cpu' instead."
        ) from error
    if n_devices == 0:
        raise GpuError("device='cuda' needs an NVIDIA GPU, but there is none. Use device='cpu' instead.")
    return module


def require_gpu() -> None:
    """Raise an error that says what is missing unless there is CuPy and a GPU."""
    cupy()


@cache
def kernel(file: str, name: str, **defines: int) -> Any:
    """Return a kernel of one of the files in ``cuda/``.

    CuPy keeps what NVRTC compiles in the user's cache folder; only the first use of a version takes seconds.
    """
    macros = tuple(f"-D{macro}={value}" for macro, value in sorted(defines.items()))
    return _module(file, macros).get_function(name)


@cache
def _module(file: str, macros: tuple[str, ...]) -> Any:
    return cupy().RawModule(code=source(file), options=(*_OPTIONS, *macros), backend="nvrtc")


def launch(function: Any, grid: tuple[int, ...], block: int, *arguments: Any, shared: int = 0) -> None:
    """Run a kernel. Integers of Python have 32 bits, floats 64; None is a null pointer, a record a struct."""
    converted = [_CONVERT[type(one)](one) if type(one) in _CONVERT else one for one in arguments]
    function(grid, (block,), tuple(converted), shared_mem=shared)


def recorded(function: Callable[[], object]) -> Any:
    """Return a graph of the kernels that a function launches, which it must do without waiting for them."""
    stream = cupy().cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        function()
        return stream.end_capture()


def blocks(n: int, per_block: int) -> int:
    """Return how many blocks `n` things need."""
    return -(-n // per_block)


def free_memory() -> int:
    """Return the bytes that can be allocated on the present device."""
    module = cupy()
    return int(module.cuda.Device().mem_info[0] + module.get_default_memory_pool().free_bytes())
