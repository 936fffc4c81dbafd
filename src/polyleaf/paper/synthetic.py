"""Problems that are drawn rather than loaded: the paper's two, and one with the shape of NUS-WIDE."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def friedman1(n_rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the paper's first synthetic problem: five noisy observations of one function of ten inputs."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, size=(n_rows, 10))
    f = np.sin(np.pi * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + 0.5 * x[:, 4]
    return x, f[:, None] + 0.1 * generator.standard_normal((n_rows, 5))


def random_projection(n_rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the paper's second synthetic problem: eight linear functions of four inputs, without noise."""
    generator = np.random.default_rng(seed)
    weights = generator.uniform(-1, 1, size=(4, 8))
    x = generator.uniform(-1, 1, size=(n_rows, 4))
    return x, x @ weights


def nuswide_like(n_rows: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return 128 inputs and 81 labels (0 or 1): work for the timings where NUS-WIDE itself is not at hand.

    The scores behind the labels are 20 smooth and 20 product terms of the first 21 inputs; the rest is noise.
    """
    generator = np.random.default_rng(seed)
    smooth, products = generator.standard_normal((2, 20, 81))
    x = generator.standard_normal((n_rows, 128), dtype=np.float32)
    scores = np.tanh(x[:, :20]) @ smooth + 0.5 * (x[:, :20] * x[:, 1:21]) @ products
    return x, (scores + generator.standard_normal(scores.shape) > 4).astype(np.float32)
