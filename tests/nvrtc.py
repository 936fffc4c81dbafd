"""Compiles CUDA sources with NVRTC, which needs no GPU (``pip install nvidia-cuda-nvrtc``)."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

# What the kernels are compiled with where they run, for one recent architecture.
OPTIONS = ("--gpu-architecture=sm_90", "-std=c++17", "-default-device", "-fmad=false", "-ftz=true")


@functools.cache
def load() -> ctypes.CDLL | None:
    """NVRTC as its Python package or the system has it, or None."""
    spec = importlib.util.find_spec("nvidia")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    packaged = sorted(str(path) for place in places for path in Path(place).glob("*/lib/libnvrtc.so.*"))
    for name in (*reversed(packaged), "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_source(
    source: str,
    folders: Sequence[Path],
    macros: Mapping[str, int] = MappingProxyType({}),
    form: Literal["CUBIN", "PTX"] = "CUBIN",
) -> bytes:
    """Return the machine code of a source, or its text; raises with NVRTC's log if it has one."""
    nvrtc = load()
    assert nvrtc is not None
    program = ctypes.c_void_p()
    text = source.encode()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None))
    where = (f"-I{folder}" for folder in folders)
    defined = (f"-D{macro}={value}" for macro, value in macros.items())
    options = [option.encode() for option in (*OPTIONS, *where, *defined)]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).rstrip(b"\0").decode()
    code = b"" if failed else _read(program, nvrtc[f"nvrtcGet{form}Size"], nvrtc[f"nvrtcGet{form}"])
    _check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    if failed or log.strip():
        raise RuntimeError(log)
    return code


def _read(program: ctypes.c_void_p, get_size: ctypes._CFuncPtr, get: ctypes._CFuncPtr) -> bytes:
    size = ctypes.c_size_t()
    _check(get_size(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(get(program, buffer))
    return buffer.raw


def _check(error: int) -> None:
    if error:
        raise RuntimeError(f"NVRTC: error {error}")
