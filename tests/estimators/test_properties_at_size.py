"""What is promised holds on both sides of every size at which the code does something else.

The sizes, and where they come from:

- 1,024, 2,048 and 8,192 rows: blocks of leaf sums, of payloads and coded tables, of a partition.
- 262,144 rows: kMostPackedRows (quantize/payload.hpp), kParallelGathers (base/threads.hpp); a few thousand
  rows of several columns pass kParallelWork (2**20).
- 7, 11, 15 | 22, 30 | 23, 31 outputs: the last that fit 16, 24 and 32 channels, with Hessians of their own,
  a shared one, none; from there on rows are cut into pieces (quantize/payload.cpp).
- 32 and 64 outputs: kFewNumbers (kernels/sum.cpp), AUTO_SHARED_OUTPUTS, kFewOutputs (kernels/gradient.cpp),
  AUTO_SKETCH_OUTPUTS.
- 1,024 outputs: kMostEstimated (search/estimates.cpp), the chunk of a softmax (kernels/gradient.cpp),
  MOST_OUTPUT_GAINS.
- 255 bins: codes of one byte or two. 16 bins: pairs of features with at most kMostCombinations (256), in
  tiles of at most kMostCombinationBytes. 32 bins: kLeastBounded (kernels/bin_bounds.hpp).
- Nodes with fewer rows than about twice the bins are searched without a histogram: every table here has some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.params.table import AUTO_SHARED_OUTPUTS, AUTO_SKETCH_OUTPUTS
from same_forest import assert_same_bits

ROWS = (5_119, 5_121, 8_191, 8_192, 50_000, 262_144, 262_145, 300_000)
CLASSES = (7, 8, 11, 12, 15, 16, AUTO_SHARED_OUTPUTS - 1, AUTO_SHARED_OUTPUTS)
CLASSES += (AUTO_SKETCH_OUTPUTS - 1, AUTO_SKETCH_OUTPUTS, AUTO_SKETCH_OUTPUTS + 1)
TARGETS = (2, 23, 24, 31, 32, 1_024, 1_025)
BINS = (16, 17, 31, 32, 33, 255, 256)


@dataclass(frozen=True)
class Size:
    """A problem of one size; the rest is small."""

    rows: int = 5_000
    outputs: int = 10
    bins: int = 20
    classes: bool = True
    precision: str = "full"

    @property
    def features(self) -> int:
        return 2 if self.rows > 100_000 or self.outputs > 1_000 else 4

    def fit(self, rows: Any = None, weight: Any = None, outputs: Any = None, **params: Any) -> Any:
        """Return the model of these rows in this order, with the outputs in this order."""
        X, y = data(self)
        if outputs is not None:
            y = np.argsort(outputs)[y] if self.classes else y[:, outputs]
        if rows is not None:
            X, y = X[rows], y[rows]
        many = self.rows > 100_000 or self.outputs > 1_000
        settings = {"n_estimators": 1 if many else 2, "max_depth": 3, "min_samples_leaf": 1, "n_jobs": 1}
        settings |= {"max_bins": self.bins, "histogram_precision": self.precision, "learning_rate": 0.5}
        estimator = PolyleafClassifier if self.classes else PolyleafRegressor
        return estimator(**(settings | params)).fit(X, y, weight)


@cache
def data(size: Size) -> tuple[Any, Any]:
    rng = np.random.default_rng([size.rows, size.outputs, size.bins])
    X = rng.normal(size=(size.rows, size.features)).astype(np.float32)
    X[:, -1] = np.where(rng.random(size.rows) < 0.7, 0, X[:, -1])  # a bin that most rows share
    X[rng.random(size.rows) < 0.1, 0] = np.nan
    filled = np.nan_to_num(X)
    scores = np.tanh(filled) @ rng.normal(size=(size.features, size.outputs)) + filled[:, :1] * filled[:, 1:2]
    scores += 0.5 * rng.normal(size=scores.shape)
    if not size.classes:
        return X, scores
    y = scores.argmax(axis=1)
    y[: size.outputs] = np.arange(size.outputs)  # none is missing
    return X, y


@cache
def reference(size: Size) -> Any:
    return size.fit()


SIZES = {f"{n:,} rows": Size(rows=n) for n in ROWS}
SIZES |= {f"{n} classes": Size(outputs=n) for n in CLASSES}
SIZES |= {f"{n:,} targets": Size(outputs=n, classes=False) for n in TARGETS}
SIZES |= {f"{n} bins": Size(bins=n) for n in BINS}
PACKED = {f"{n:,} rows, packed": Size(rows=n, precision="packed") for n in (8_191, 8_192, 262_144, 262_145)}
PACKED |= {f"{n} classes, packed": Size(outputs=n, precision="packed") for n in (7, 8, 11, 12, 16, 33)}
PACKED |= {
    f"{n} targets, packed": Size(outputs=n, classes=False, precision="packed") for n in (15, 16, 23, 24, 32)
}
ALL = SIZES | PACKED


def raw(model: Any, size: Size) -> Any:
    return model._forest.predict_raw(data(size)[0][:20_000])


@pytest.mark.parametrize("name", SIZES)
def test_permuting_the_rows_gives_the_same_model(name: str) -> None:
    """Bit for bit. (Packed sums are exempt: their rounding is keyed by the place of a row.)"""
    size = SIZES[name]
    order = np.random.default_rng(1).permutation(size.rows)
    assert_same_bits(size.fit(rows=order), reference(size))


@pytest.mark.parametrize("name", SIZES)
def test_a_row_twice_is_weight_two(name: str) -> None:
    size = SIZES[name]
    times = np.random.default_rng(2).integers(1, 3, size.rows)
    weighted = size.fit(weight=times)
    repeated = size.fit(rows=np.repeat(np.arange(size.rows), times))
    for array in ("feature", "threshold", "missing_left", "left"):
        ours, theirs = getattr(weighted._forest, array), getattr(repeated._forest, array)
        np.testing.assert_array_equal(ours, theirs, err_msg=array)
    np.testing.assert_array_equal(weighted._forest.cover, repeated._forest.count)
    np.testing.assert_allclose(raw(weighted, size), raw(repeated, size), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_threads_do_not_change_a_bit(name: str) -> None:
    size = ALL[name]
    assert_same_bits(size.fit(n_jobs=4), reference(size))


@pytest.mark.cpu_only("selects the CPU's instructions")
@pytest.mark.parametrize("name", ALL)
def test_instruction_sets_do_not_change_a_bit(name: str) -> None:
    size = ALL[name]
    expected, before = reference(size), _core.kernels()
    try:
        for instructions in ("baseline", "avx2", "avx512"):
            if instructions != before and _core.select_kernels(instructions):
                assert_same_bits(size.fit(), expected)
    finally:
        assert _core.select_kernels(before)


@pytest.mark.parametrize("rows", ROWS)
def test_one_output_is_the_scalar_case(rows: int) -> None:
    X, y = data(Size(rows=rows, outputs=1, classes=False))
    settings = {"n_estimators": 1, "max_depth": 3, "max_bins": 20, "n_jobs": 1}
    one, scalar = (PolyleafRegressor(**settings).fit(X, target) for target in (y, y[:, 0]))
    assert_same_bits(one, scalar)


@pytest.mark.parametrize("name", [name for name in SIZES if SIZES[name].outputs < AUTO_SKETCH_OUTPUTS])
def test_permuting_the_outputs_permutes_the_predictions(name: str) -> None:
    """To the last bits of a softmax, whose sum is in another order. (A sketch draws its outputs by place.)"""
    size = SIZES[name]
    order = np.random.default_rng(3).permutation(size.outputs)
    expected = raw(size.fit(sketch=None), size)[:, order]
    actual = raw(size.fit(outputs=order, sketch=None), size)
    tolerance = 1e-5 if size.classes else 1e-12
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("rows", ROWS)
def test_the_frame_of_reference_does_not_matter(rows: int) -> None:
    """Targets in a unit of another power of two: the same splits, and values in that unit."""
    X, y = data(Size(rows=rows, outputs=3, classes=False))
    settings = {"n_estimators": 1, "max_depth": 3, "max_bins": 20, "n_jobs": 1}
    unit = np.array([8.0, 0.25, 1024.0])
    plain, scaled = (PolyleafRegressor(**settings).fit(X, targets) for targets in (y, y * unit))
    for array in ("feature", "threshold", "missing_left", "left", "count"):
        np.testing.assert_array_equal(getattr(plain._forest, array), getattr(scaled._forest, array))
    np.testing.assert_array_equal(scaled.predict(X[:5_000]), plain.predict(X[:5_000]) * unit)
