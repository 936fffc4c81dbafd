"""C compiled and called from Python."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

C_COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
CPP_COMPILER = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++") or shutil.which("clang++")
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wmissing-declarations")

needs_compilers = pytest.mark.skipif(
    C_COMPILER is None or CPP_COMPILER is None, reason="there is no compiler of C and C++"
)


def compile_c(*arguments: str | os.PathLike[str], strict: bool = True) -> None:
    """Compile C99, of which no warning is allowed."""
    assert C_COMPILER is not None
    _run([C_COMPILER, "-std=c99", *(STRICT if strict else ()), *arguments])


def compile_cpp(*arguments: str | os.PathLike[str], standard: str = "c++11") -> None:
    """Compile C++, of which no warning is allowed."""
    assert CPP_COMPILER is not None
    _run([CPP_COMPILER, f"-std={standard}", *STRICT, *arguments])


def _run(command: list[Any]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Exported:
    """The two functions of a compiled model."""

    def __init__(self, library: Path, n_outputs: int, n_columns: int, prefix: str = "polyleaf") -> None:
        loaded = ctypes.CDLL(str(library))
        self._raw, self._predict = loaded[f"{prefix}_raw"], loaded[f"{prefix}_predict"]
        for function in (self._raw, self._predict):
            function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        self._n_outputs, self._n_columns = n_outputs, n_columns

    def raw(self, table: np.ndarray) -> np.ndarray:
        return self._rows(self._raw, table, self._n_outputs)

    def predict(self, table: np.ndarray) -> np.ndarray:
        return self._rows(self._predict, table, self._n_columns)

    @staticmethod
    def _rows(function: Any, table: np.ndarray, width: int) -> np.ndarray:
        assert table.dtype == np.float64
        assert table.flags.c_contiguous
        # One more than is written: what lies behind must stay.
        out = np.full((len(table), width + 1), 12345.0)
        for row, to in zip(table, out, strict=True):
            function(row.ctypes.data, to.ctypes.data)
        assert (out[:, -1] == 12345.0).all()
        return out[:, :-1]


def bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
