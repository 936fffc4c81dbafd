"""Loads the compiled core such that its threads sleep rather than spin while they wait.

OpenMP lets a waiting thread spin by default, GNU's for some milliseconds, LLVM's (macOS, Windows) for
200. Where another process holds a core, that keeps the very thread that is waited for from running, and
training becomes many times slower. How long it is comes from the environment, once: GNU's reads it when
it is loaded, LLVM's when it is first asked for something. What the user has set there stands.
"""

from __future__ import annotations

import importlib
import os

_WAITING = {
    "GOMP_SPINCOUNT": "1000",  # some microseconds: the gap between two loops of one tree
    "KMP_BLOCKTIME": "0",
}


def _load() -> None:
    if "OMP_WAIT_POLICY" in os.environ:
        importlib.import_module("polyleaf._core")
        return
    ours = {name: value for name, value in _WAITING.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        importlib.import_module("polyleaf._core").max_threads()
    finally:
        for name in ours:
            del os.environ[name]  # it is nobody else's business


_load()
