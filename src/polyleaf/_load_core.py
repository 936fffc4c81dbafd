"""Loads the compiled core such that its threads sleep rather than spin while they wait.

GNU's OpenMP lets a waiting thread spin for milliseconds by default. Where another process holds a core, that
keeps the very thread that is waited for from running, and training becomes many times slower. The number of
spins is read from the environment once, when the library is loaded; what the user has set there stands.
"""

from __future__ import annotations

import importlib
import os

_SPINS = "GOMP_SPINCOUNT"
_FEW = "1000"  # some microseconds: the gap between two loops of one tree


def _load() -> None:
    if _SPINS in os.environ or "OMP_WAIT_POLICY" in os.environ:
        importlib.import_module("polyleaf._core")
        return
    os.environ[_SPINS] = _FEW
    try:
        importlib.import_module("polyleaf._core")
    finally:
        del os.environ[_SPINS]  # it is nobody else's business


_load()
