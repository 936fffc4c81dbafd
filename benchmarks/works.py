"""The works of the speed comparison: their data and the settings every system trains them with.

Settings are those of the paper on its data sets (its tables of searched hyper-parameters, lambda 1, at most
0.75 x 2^depth leaves, learning rate 0.1) and plain ones on the synthetic works. The paper's gain threshold is
left at 0: the libraries scale their gains differently, so no one number would stop them at the same node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LEARNING_RATE = 0.1
REG_LAMBDA = 1.0

Loss = Literal["softmax", "squared"]


@dataclass(frozen=True)
class Split:
    """Training and test rows of a work: X float32; y int32 classes (softmax) or float32 (rows, outputs)."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int32] | NDArray[np.float32]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int32] | NDArray[np.float32]

    def head(self, rows: int) -> Split:
        """Keep the first training rows only."""
        return Split(self.X_train[:rows], self.y_train[:rows], self.X_test, self.y_test)

    def save(self, folder: Path) -> None:
        for name in ("X_train", "y_train", "X_test", "y_test"):
            np.save(folder / f"{name}.npy", np.ascontiguousarray(getattr(self, name)))


@dataclass(frozen=True)
class Work:
    """One line of the comparison: where the rows come from and how the trees are bounded."""

    name: str
    loss: Loss
    n_outputs: int
    max_depth: int
    max_leaves: int
    max_bins: int
    min_samples_leaf: int
    make: Callable[[Path], Split]
    file: str | None = None  # in the data folder; None: the rows are generated

    def test_loss(self, y: NDArray[np.generic], prediction: NDArray[np.floating]) -> float:
        """Cross entropy of class probabilities, or root mean squared error over all cells.

        NaN where a system returned another number of outputs (a class that the training rows lack).
        """
        if prediction.shape != (len(y), self.n_outputs):
            return float("nan")
        if self.loss == "softmax":
            of_the_class = prediction[np.arange(len(y)), y.astype(np.intp)]
            return float(-np.log(np.clip(of_the_class, 1e-15, None)).mean())
        return float(np.sqrt(np.mean((prediction - y.astype(np.float64)) ** 2)))


def mnist(file: Path) -> Split:
    with np.load(file) as data:
        return Split(
            data["x_train"][:50_000].astype(np.float32),
            data["y_train"][:50_000].astype(np.int32),
            data["x_test"].astype(np.float32),
            data["y_test"].astype(np.int32),
        )


def mnist_inpaint(file: Path) -> Split:
    """Predict the 4 x 6 patch below the middle of a digit from its upper half."""
    with np.load(file) as data:
        x_train, y_train = _inpainting(data["x_train"][:50_000])
        x_test, y_test = _inpainting(data["x_test"])
    return Split(x_train, y_train, x_test, y_test)


def _inpainting(images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    centre = images.reshape(-1, 28, 28)[:, 4:24, 4:24]
    upper_half = centre[:, :10, :].reshape(len(images), 200)
    patch = centre[:, 10:14, 7:13].reshape(len(images), 24)
    # Pixels in [0, 1]: the scale on which the paper's RMSE of 0.26 is reached ([-1, 1] would double it).
    return upper_half.astype(np.float32) / np.float32(255), patch.astype(np.float32) / np.float32(255)


def caltech101(file: Path) -> Split:
    with np.load(file) as data:
        x, y = data["x"].astype(np.float32), data["y"].astype(np.int32)
    order = np.random.default_rng(0).permutation(len(x))
    train, test = np.split(order, [int(0.7 * len(x))])
    return Split(x[train], y[train], x[test], y[test])


def synthetic(
    kind: Literal["classes", "labels", "targets"], rows: int, features: int, outputs: int, test_rows: int
) -> Callable[[Path], Split]:
    """Scores made of 20 smooth and 20 product terms of the first 21 features, the rest noise."""

    def make(_: Path) -> Split:
        rng = np.random.default_rng(0)
        smooth, products = rng.standard_normal((2, 20, outputs))
        x = rng.standard_normal((rows + test_rows, features), dtype=np.float32)
        scores = np.tanh(x[:, :20]) @ smooth + 0.5 * (x[:, :20] * x[:, 1:21]) @ products
        y: NDArray[np.int32] | NDArray[np.float32]
        if kind == "classes":
            y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1).astype(np.int32)
        else:
            noisy = scores + rng.standard_normal(scores.shape)
            y = (noisy > 4 if kind == "labels" else noisy).astype(np.float32)
        return Split(x[:rows], y[:rows], x[rows:], y[rows:])

    return make


WORKS: dict[str, Work] = {
    work.name: work
    for work in (
        Work("mnist", "softmax", 10, 8, 192, 8, 16, mnist, "mnist.npz"),
        Work("mnist_inpaint", "squared", 24, 7, 96, 16, 4, mnist_inpaint, "mnist.npz"),
        Work("caltech101", "softmax", 101, 10, 768, 32, 16, caltech101, "caltech101_hog.npz"),
        # Shaped like NUS-WIDE, labels fitted by squared error on 0/1 as in the paper.
        Work("nuswide_like", "squared", 81, 8, 192, 64, 4, synthetic("labels", 161_789, 128, 81, 20_000)),
        Work("synth_d10", "softmax", 10, 6, 64, 255, 20, synthetic("classes", 100_000, 100, 10, 10_000)),
        Work("synth_d100", "softmax", 100, 6, 64, 255, 20, synthetic("classes", 50_000, 100, 100, 10_000)),
    )
}

# Beside them: ten times the rows of synth_d10, for many cores; a single target; few rows for so many features
# and bins; few classes and many.
THREAD_WORKS: dict[str, Work] = {
    **WORKS,
    "synth_1m": Work(
        "synth_1m", "softmax", 10, 6, 64, 255, 20, synthetic("classes", 1_000_000, 100, 10, 10_000)
    ),
    "one_target": Work(
        "one_target", "squared", 1, 6, 64, 255, 20, synthetic("targets", 400_000, 40, 1, 10_000)
    ),
    "few_rows": Work("few_rows", "softmax", 30, 6, 64, 255, 20, synthetic("classes", 2_000, 500, 30, 1_000)),
    "classes_10": Work(
        "classes_10", "softmax", 10, 6, 64, 255, 20, synthetic("classes", 20_000, 50, 10, 1_000)
    ),
    "classes_500": Work(
        "classes_500", "softmax", 500, 6, 64, 255, 20, synthetic("classes", 20_000, 50, 500, 1_000)
    ),
}


def _gpu_work(name: str, kind: Literal["classes", "targets"], rows: int, features: int, outputs: int) -> Work:
    """Depth 6, whose 64 leaves are no further bound, and 256 bins; a fifth more rows for the test."""
    loss: Loss = "softmax" if kind == "classes" else "squared"
    return Work(name, loss, outputs, 6, 64, 256, 20, synthetic(kind, rows, features, outputs, rows // 5))


GPU_WORKS: dict[str, Work] = {
    work.name: work
    for work in (
        _gpu_work("d10", "classes", 100_000, 100, 10),
        _gpu_work("d100", "classes", 100_000, 100, 100),
        _gpu_work("d100_squared", "targets", 100_000, 100, 100),
        _gpu_work("rows_1m", "classes", 1_000_000, 100, 20),
        _gpu_work("wide", "classes", 50_000, 784, 10),
        _gpu_work("d500", "classes", 100_000, 100, 500),
    )
}
