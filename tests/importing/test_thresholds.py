"""The threshold of a float32 rule: the largest double that rounds to less, for every float32."""

from __future__ import annotations

import numpy as np
import pytest

from polyleaf.importing.thresholds import largest_below

pytestmark = [pytest.mark.cpu_only("arithmetic"), pytest.mark.python_only("arithmetic in NumPy")]


def test_the_threshold_goes_left_and_the_next_double_does_not() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 50_000, dtype=np.uint32)
    largest, tiny = np.finfo(np.float32).max, np.finfo(np.float32).tiny
    edges = [0.0, -0.0, 1e-45, -1e-45, tiny, -tiny, 1.0, -1.0, 2.0, largest, -largest]
    t = np.concatenate([bits.view(np.float32), np.array(edges, dtype=np.float32)])
    t = t[np.isfinite(t)]
    found = largest_below(t.astype(np.float64))
    with np.errstate(over="ignore"):
        assert (found.astype(np.float32) < t).all()
        assert not (np.nextafter(found, np.inf).astype(np.float32) < t).any()
