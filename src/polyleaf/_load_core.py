"""Loads the compiled core such that its threads sleep rather than spin while they wait.

OpenMP lets a waiting thread spin by default, GNU's for some milliseconds, LLVM's (macOS, Windows) for
200. Where another process holds a core, that keeps the very thread that is waited for from running, and
training becomes many times slower. How long it is comes from the environment, once: GNU's reads it when
it is loaded, LLVM's when it is first asked for something. What the user has set there stands.

Where LLVM's or Intel's OpenMP is there already, LLVM's ends the process unless it is told that this is meant.
scikit-learn, which polyleaf imports later, tells it so, too.
"""

from __future__ import annotations

import importlib
import os

_WAITING = {
    "GOMP_SPINCOUNT": "1000",  # some microseconds: the gap between two loops of one tree
    "KMP_BLOCKTIME": "0",
}
_BESIDE_OTHERS = {"KMP_DUPLICATE_LIB_OK": "True"}


def _load() -> None:
    wanted = _BESIDE_OTHERS if "OMP_WAIT_POLICY" in os.environ else _WAITING | _BESIDE_OTHERS
    ours = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        importlib.import_module("polyleaf._core").max_threads()
    finally:
        for name in ours:
            del os.environ[name]  # it is nobody else's business


_load()
