"""The GPU grows the CPU's trees, bit for bit, and the same ones every time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import polyleaf.gpu.grower
import polyleaf.gpu.histograms
from growing import settings, task
from least_memory import least_memory
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model, tune
from polyleaf._core import GrowSettings
from polyleaf.callbacks import Checkpoint
from polyleaf.data.binning import bin_table
from polyleaf.gpu.grower import GpuGrower, shape_of
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import COLUMN_CHUNK, LEAF_CHUNK, HistogramPlan, Layout, plan_histograms
from polyleaf.growth.contract import Grower
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample, RowSample
from polyleaf.growth.tree import Tree
from same_forest import (
    GAIN_TOLERANCE,
    GAIN_TOLERANCE_OF_MIXTURES,
    assert_same_array,
    assert_same_bits,
    assert_same_forest,
)
from training_cases import CASES as SMALL_CASES
from training_cases import Case as SmallCase
from training_cases import X as SMALL_X

pytestmark = pytest.mark.usefixtures("cupy")

N, M = 1200, 11


def signal(n: int, m: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """A table of float32, and outputs that depend on it in curves and products."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m), dtype=np.float32)
    first, second = rng.standard_normal((2, m, d))
    scores = np.tanh(X) @ first + 0.5 * (X * np.roll(X, 1, axis=1)) @ second
    return X, scores + rng.normal(size=(n, d))


def with_gaps(table: Any, share: float = 0.15) -> Any:
    return np.where(np.random.default_rng(5).random(table.shape) < share, np.nan, table).astype(table.dtype)


@dataclass(frozen=True)
class Case:
    """One training: estimator, table, targets, parameters, and what else is passed to fit."""

    estimator: Any
    X: Any
    y: Any
    params: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def fit(self, device: str, **params: Any) -> Any:
        common = {"n_estimators": 4, "random_state": 0, "min_samples_leaf": 5, "n_jobs": 1}
        # Mixtures of outputs are sums in float32, which devices order differently: only where asked for.
        common |= {"sketch": None, "colsample_bytree": 1.0}
        return self.estimator(device=device, **common | self.params | params).fit(
            self.X, self.y, **self.options
        )


X, SCORES = signal(N, M, 5)
GAPS = with_gaps(X)
CLASSES = SCORES[:, :4].argmax(axis=1)
LABELS = (SCORES > 0.5).astype(float)
SOME_TARGETS = np.where(np.random.default_rng(6).random(SCORES.shape) < 0.3, np.nan, SCORES)
SOME_LABELS = np.where(np.isnan(SOME_TARGETS), np.nan, LABELS)
WHOLE = {"sample_weight": np.random.default_rng(7).integers(1, 4, N).astype(float)}
WEIGHTS = {"sample_weight": np.random.default_rng(8).uniform(0.2, 3, N)}
CELLS = {"sample_weight": np.random.default_rng(9).uniform(0.2, 3, SCORES.shape)}
FAR_APART = {"sample_weight": np.where(np.arange(N) % 2 == 0, 1.0, 2.0**-40)}
WRONG = SCORES + 200.0 * (np.random.default_rng(10).random(SCORES.shape) < 0.002)
BY_GRADIENT = {"subsample": 0.4, "sampling_method": "gradient_based"}
SINGLE = {"multi_strategy": "one_output_per_tree"}
C, R = PolyleafClassifier, PolyleafRegressor


def quadratic(y: Any, raw: Any) -> tuple[Any, Any]:
    return 2 * (raw - y), 1 + np.abs(raw - y)


CASES = {
    "classes, own Hessians": Case(C, X, CLASSES, {"hessian": "diagonal"}),
    "classes, shared Hessian": Case(C, X, CLASSES, {"hessian": "shared"}),
    "labels": Case(C, X, LABELS),
    "labels, shared Hessian": Case(C, X, LABELS, {"hessian": "shared"}),
    "two classes": Case(C, X, CLASSES > 1),
    "targets": Case(R, X, SCORES),
    "one target": Case(R, X, SCORES[:, 0]),
    "missing values": Case(C, GAPS, CLASSES),
    "missing values, shared Hessian": Case(C, GAPS, CLASSES, {"hessian": "shared"}),
    "missing values, targets": Case(R, GAPS, SCORES),
    "whole weights": Case(C, X, CLASSES, {}, WHOLE),
    "weights": Case(C, X, CLASSES, {"hessian": "shared"}, WEIGHTS),
    "weights of targets": Case(R, X, SCORES, {}, WEIGHTS),
    "weights of cells": Case(R, X, SCORES, {}, CELLS),
    "class weights": Case(C, X, CLASSES, {"class_weight": "balanced"}),
    "output weights": Case(R, X, SCORES, {"output_weight": [1.0, 5.0, 0.5, 1.0, 0.0]}),
    "missing targets": Case(R, X, SOME_TARGETS),
    "missing labels": Case(C, X, SOME_LABELS, {"hessian": "shared"}),
    "targets of another size": Case(R, X, SCORES * [1e100, 1e-100, 1.0, 1e30, 1e-8]),
    "targets as they are": Case(R, X, SCORES * [1, 10, 100, 1, 1], {"scale_targets": False}),
    "wrong targets": Case(R, X, WRONG),
    "wrong targets, all outputs": Case(R, X, WRONG, {"sketch": None, "reg_alpha": 0.5}),
    "wrong target": Case(R, X, WRONG[:, 0], {"bounded_influence": True}),
    "wrong targets, weights": Case(R, X, WRONG, {}, WEIGHTS),
    "wrong targets, sampled": Case(R, X, WRONG, {"subsample": 0.5}),
    "wrong targets, sampled by gradients": Case(R, X, WRONG, BY_GRADIENT),
    "wrong targets, one output per tree": Case(R, X, WRONG, SINGLE),
    "wrong targets, weights far apart": Case(R, X, WRONG, {}, FAR_APART),
    "wrong targets, unbounded": Case(R, X, WRONG, {"bounded_influence": False}),
    "fixed base score": Case(R, X, SCORES, {"base_score": [0.0, 1.0, 2.0, 3.0, 4.0]}),
    "alpha": Case(R, X, SCORES, {"reg_alpha": 3.0}),
    "alpha, own Hessians": Case(C, X, CLASSES, {"reg_alpha": 0.5, "hessian": "diagonal"}),
    "no lambda": Case(C, X, CLASSES, {"reg_lambda": 0.0, "min_samples_leaf": 20}),
    "heavy children": Case(C, X, CLASSES, {"min_child_weight": 4.0, "hessian": "diagonal"}),
    "heavy children, shared Hessian": Case(C, X, CLASSES, {"min_child_weight": 4.0, "hessian": "shared"}),
    "heavy children, weights": Case(R, X, SCORES, {"min_child_weight": 30.0}, WEIGHTS),
    "large gains": Case(R, X, SCORES, {"min_split_gain": 0.5}),
    "few leaves": Case(C, X, CLASSES, {"max_leaves": 9}),
    "leaf-wise": Case(C, X, CLASSES, {"max_depth": None, "max_leaves": 20}),
    "leaf-wise, two leaves": Case(R, GAPS, SCORES, {"max_depth": None, "max_leaves": 2}),
    "leaf-wise, many leaves": Case(R, GAPS[:, :4], SCORES, {"max_depth": None, "max_leaves": 150}),
    "as many leaves as the depth allows": Case(R, X, SCORES, {"max_depth": 3, "max_leaves": 8}),
    "stumps": Case(R, X, SCORES, {"max_depth": 1}),
    "sampled": Case(C, X, CLASSES, {"subsample": 0.5}),
    "sampled, missing values": Case(C, GAPS, CLASSES, {"subsample": 0.5}),
    "sampled, weights": Case(R, GAPS, SCORES, {"subsample": 0.3}, WEIGHTS),
    "sampled by gradients": Case(C, X, CLASSES, BY_GRADIENT),
    "sampled by gradients, shared Hessian": Case(C, X, CLASSES, BY_GRADIENT | {"hessian": "shared"}),
    "sampled by gradients, missing values": Case(C, GAPS, CLASSES, BY_GRADIENT, WEIGHTS),
    "sampled columns": Case(C, X, CLASSES, {"colsample_bytree": 0.4}),
    "one sampled column": Case(R, X, SCORES, {"colsample_bytree": 0.05}),
    "sampled rows and columns": Case(R, GAPS, SCORES, {"colsample_bytree": 0.6, "subsample": 0.5}),
    "one output a tree": Case(C, X[:, :5], CLASSES, SINGLE),
    "one output a tree, targets": Case(R, GAPS[:, :5], SCORES, SINGLE | {"subsample": 0.7}),
    "projection": Case(C, X, CLASSES, {"sketch": "random_projection", "sketch_size": 2}),
    "projection, shared Hessian": Case(
        C, X, CLASSES, {"sketch": "random_projection", "sketch_size": 2, "hessian": "shared"}
    ),
    "projection, targets": Case(R, X, SCORES, {"sketch": "random_projection", "sketch_size": 3}, WEIGHTS),
    "top outputs": Case(R, X, SCORES, {"sketch": "top_outputs", "sketch_size": 2}),
    "drawn outputs": Case(R, X, SCORES, {"sketch": "random_sampling", "sketch_size": 2}, WEIGHTS),
    "curvature abs(p-y)": Case(C, X, CLASSES, {"softmax_curvature": "abs(p-y)"}),
    "curvature abs(p-y), shared Hessian": Case(
        C, X, CLASSES, {"softmax_curvature": "abs(p-y)", "hessian": "shared"}
    ),
    "curvature 2p(1-p)": Case(C, X, CLASSES, {"softmax_curvature": "2p(1-p)"}),
    "curvature 2p(1-p), shared Hessian": Case(
        C, X, CLASSES, {"softmax_curvature": "2p(1-p)", "hessian": "shared"}
    ),
    "huber": Case(R, X, SCORES, {"objective": "huber"}),
    "poisson": Case(R, X, np.exp(SCORES / 4), {"objective": "poisson"}),
    "gamma": Case(R, X, np.exp(SCORES / 4), {"objective": "gamma"}),
    "tweedie": Case(R, X, np.exp(SCORES / 4), {"objective": "tweedie"}, WEIGHTS),
    "callable": Case(R, X, SCORES, {"objective": quadratic}),
    "one feature": Case(R, X[:, :1], SCORES),
    "constant feature": Case(R, np.c_[X[:, :2], np.ones(N)], SCORES),
    "few rows": Case(R, X[:7], SCORES[:7], {"min_samples_leaf": 1}),
    "one row": Case(R, X[:1], SCORES[:1], {"min_samples_leaf": 1}),
    "fewer rows than a leaf needs": Case(R, X[:9], SCORES[:9], {"min_samples_leaf": 10}),
    "two bins": Case(R, X, SCORES, {"max_bins": 2}),
    "three bins and missing values": Case(R, GAPS, SCORES, {"max_bins": 3}),
    "ties": Case(R, np.repeat(X[:, :3].round(), 2, axis=1), SCORES),
    "float64": Case(R, with_gaps(X.astype(np.float64) + 1e-12), SCORES),
    "integers": Case(R, (8 * X).astype(np.int16), SCORES),
    "bool": Case(R, X > 0, SCORES),
    "cells below 1e-38": Case(R, GAPS * np.float32(1e-43), SCORES),
    "probabilities below 1e-38": Case(C, X, CLASSES, {"learning_rate": 40.0, "reg_lambda": 1e-6}),
    "columns side by side": Case(R, np.asfortranarray(GAPS), SCORES),
    "part of a table": Case(R, np.repeat(GAPS, 2, axis=0)[::2, ::-1], SCORES),
    "sparse table": Case(R, scipy.sparse.csr_array(np.where(np.abs(X) < 1, 0, X)), SCORES),
}


def gain_tolerance(params: dict[str, Any]) -> float:
    mixes = params.get("sketch") in ("random_projection", "auto")
    return GAIN_TOLERANCE_OF_MIXTURES if mixes else GAIN_TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_trees_and_predictions_are_those_of_the_cpu(name: str) -> None:
    case = CASES[name]
    cpu, gpu = case.fit("cpu"), case.fit("cuda")
    assert_same_forest(gpu, cpu, gain_tolerance(case.params))
    assert_same_bits(case.fit("cuda"), gpu)
    raw = gpu._raw(case.X, None)
    assert_same_array(raw, gpu._forest.predict_raw(case.X))
    assert_same_array(raw, cpu._raw(case.X, None))


def test_the_cases_differ() -> None:
    """Each option takes effect: no two of those on the same table and targets give one forest."""
    values: dict[tuple[Any, ...], list[tuple[str, bytes]]] = {}
    for name, case in CASES.items():
        forest = case.fit("cpu")._forest
        assert "row" in name or (forest.left >= 0).any(), name
        key = (case.estimator, id(case.X), id(case.y))
        values.setdefault(key, []).append((name, forest.values.tobytes() + forest.feature.tobytes()))
    for forests in values.values():
        assert len({forest for _, forest in forests}) == len(forests), [name for name, _ in forests]


def accepted_by_the_gpu(case: SmallCase) -> bool:
    params = case.params
    return not (
        scipy.sparse.issparse(case.y)
        or {"sparse_leaves", "colsample_bylevel", "colsample_bynode"} & set(params)
        or params.get("hessian") in ("exact", "exact_leaf")
    )


@pytest.mark.parametrize("name", [name for name, case in SMALL_CASES.items() if accepted_by_the_gpu(case)])
def test_small_trainings(name: str) -> None:
    """Those of the tests of the CPU."""
    case = SMALL_CASES[name]
    fitted = [
        case.make(**{"sketch": None} | case.params | {"n_estimators": 5, "device": device}).fit(
            SMALL_X, case.y, case.weight
        )
        for device in ("cuda", "cpu")
    ]
    assert_same_forest(*fitted, gain_tolerance(case.params))


def test_targets_of_several_kinds() -> None:
    targets = {
        "grade": "multiclass",
        "passed": "binary",
        "height": "regression",
        "visits": "poisson",
        "tags": {"kind": "multilabel", "columns": ["t1", "t2"]},
    }
    y = {"grade": CLASSES, "passed": SCORES[:, 0] > 0, "height": SCORES[:, 1], "visits": np.exp(SCORES[:, 2])}
    y |= {"t1": LABELS[:, 3], "t2": LABELS[:, 4]}
    models = [
        PolyleafMixed(targets, n_estimators=4, min_samples_leaf=5, device=device, n_jobs=1).fit(GAPS, y)
        for device in ("cuda", "cpu")
    ]
    assert_same_forest(*models)
    predicted, expected = (model.predict(GAPS) for model in models)
    for name in expected:
        np.testing.assert_array_equal(predicted[name], expected[name])


# --- many outputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_outputs", [65, 200, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_targets(n_outputs: int, weighted: bool) -> None:
    table, y = signal(250, 5, n_outputs, seed=n_outputs)
    options = {"sample_weight": np.linspace(0.3, 2, 250)} if weighted else {}
    case = Case(R, with_gaps(table), y, {"n_estimators": 2, "max_depth": 3}, options)
    assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize("params", [{"hessian": "diagonal"}, {"hessian": "shared"}, {"sketch": "auto"}])
def test_many_classes(params: dict[str, Any]) -> None:
    n_classes = 200
    table, scores = signal(1000, 5, n_classes)
    y = np.where(np.arange(1000) < n_classes, np.arange(1000) % n_classes, scores.argmax(axis=1))
    case = Case(C, table, y, {"n_estimators": 2, "max_depth": 3, "sketch": None} | params)
    assert_same_forest(case.fit("cuda"), case.fit("cpu"), gain_tolerance(params))


# --- borders -----------------------------------------------------------------------------------------------

CHANNELS = (7, 8, 9, 15, 16, 17, 31, 32, 33)


@pytest.mark.parametrize("kind", ["squared error", "weights", "own Hessians"])
@pytest.mark.parametrize("n_channels", CHANNELS)
def test_tiles_of_channels(n_channels: int, kind: str) -> None:
    """Full ones, and such with one channel too many or too few."""
    n = 400
    if kind == "own Hessians":
        heavy = n_channels % 2 == 0  # a channel of weights
        d = (n_channels - (2 if heavy else 1)) // 2
        layout = Layout(d, diagonal=True, weighted=heavy)
        params, options = {"hessian": "diagonal", "min_child_weight": 0.5 if heavy else 0.0}, {}
    else:
        weighted = kind == "weights"
        d = n_channels - (2 if weighted else 1)
        layout = Layout(d, diagonal=False, weighted=weighted)
        params, options = {}, {"sample_weight": np.linspace(0.3, 2, n)} if weighted else {}
    assert layout.weight_channel + 1 == n_channels
    table, y = signal(n, 5, d, seed=n_channels)
    y = (y > 0).astype(float) if kind == "own Hessians" else y
    estimator = C if kind == "own Hessians" else R
    case = Case(estimator, with_gaps(table), y, {"n_estimators": 2, "max_depth": 4} | params, options)
    assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 8, 9])
def test_quads_of_features(n_features: int) -> None:
    case = Case(R, GAPS[:, :n_features], SCORES, {"n_estimators": 2})
    assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize("per_block", [1, 2, 4])
@pytest.mark.parametrize("diagonal", [False, True])
def test_features_of_a_block(per_block: int, diagonal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many histograms the shared memory of a block holds."""
    monkeypatch.setattr(polyleaf.gpu.histograms, "features_per_block", lambda feature_bytes: per_block)
    case = Case(C, GAPS, CLASSES, {"n_estimators": 2, "hessian": "diagonal" if diagonal else "shared"})
    assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("max_bins", [31, 32, 33, 64, 65, 254, 255])
def test_bins_of_a_warp(max_bins: int, diagonal: bool) -> None:
    """A warp takes 32 bins; with the missing one there are up to 256."""
    table, y = signal(1500, 3, 3)
    table = with_gaps(table, 0.05)
    params = {"max_bins": max_bins, "min_samples_leaf": 1, "n_estimators": 2, "max_depth": 4}
    case = Case(C, table, (y > 0).astype(float), params) if diagonal else Case(R, table, y, params)
    cpu = case.fit("cpu")
    matrix = bin_table(table, None, max_bins, 1)
    assert all(len(matrix.cuts(feature)) + 1 == max_bins for feature in range(3))
    assert_same_forest(case.fit("cuda"), cpu)


@pytest.mark.parametrize("limit", [{}, {"max_leaves": 300}, {"max_depth": None, "max_leaves": 280}])
def test_deep_trees(limit: dict[str, Any]) -> None:
    """Levels of 256 nodes and more, which the host asks about: bits, each of which matters as much."""
    rng = np.random.default_rng(3)
    table = (rng.random((1400, 9)) < 0.5).astype(np.float32)
    y = np.c_[table.sum(axis=1), table @ rng.normal(size=9)] + 0.01 * rng.normal(size=(1400, 2))
    params = {"max_depth": 10, "min_samples_leaf": 1, "n_estimators": 1, "reg_lambda": 0.0} | limit
    case = Case(R, table, y, params)
    cpu = case.fit("cpu")
    left, level, widest = cpu._forest.left, [0], 1
    while level:
        level = [child for node in level if left[node] >= 0 for child in (left[node], left[node] + 1)]
        widest = max(widest, len(level))
    assert widest >= (256 if not limit else 128)
    assert_same_forest(case.fit("cuda"), cpu)


@pytest.mark.parametrize("precision", ["full", "packed"])
@pytest.mark.parametrize("hessian", ["diagonal", "shared"])
@pytest.mark.parametrize(
    ("n_rows", "n_classes"), [(900, 10), (9000, 8), (9000, 20), (9000, 45), (262_144, 10), (262_145, 10)]
)
def test_numbers_rounded_at_random(n_rows: int, n_classes: int, hessian: str, precision: str) -> None:
    """Where the CPU packs three of them into 64 bits (core/quantize/payload.hpp), and just beyond."""
    table, scores = signal(n_rows, 5, n_classes)
    params = {"max_bins": 40, "hessian": hessian, "sketch": None, "n_estimators": 6}
    params["histogram_precision"] = precision
    case = Case(C, with_gaps(table), scores.argmax(axis=1), params)
    assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize("n_rows", [2047, 2048, 2049, 4097, 8191, 8192, 8193, 16_384, 16_385])
def test_pieces_of_a_histogram(n_rows: int) -> None:
    table, y = signal(n_rows, 2, 2, seed=n_rows)
    for params in ({}, {"subsample": 0.5}):
        case = Case(R, with_gaps(table), y, {"n_estimators": 2, "max_depth": 3} | params)
        assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize(
    "n_rows", [1, COLUMN_CHUNK - 1, COLUMN_CHUNK, COLUMN_CHUNK + 1, 4 * COLUMN_CHUNK + 1]
)
def test_pieces_of_a_column(n_rows: int) -> None:
    """The sums that the grid of the gradients follows from."""
    table, y = signal(n_rows, 3, 4, seed=n_rows)
    for weight in (None, np.linspace(0.1, 3, n_rows)):
        case = Case(R, table, y, {"n_estimators": 2, "min_samples_leaf": 1}, {"sample_weight": weight})
        assert_same_forest(case.fit("cuda"), case.fit("cpu"))


@pytest.mark.parametrize(
    "n_left", [LEAF_CHUNK - 1, LEAF_CHUNK, LEAF_CHUNK + 1, 3 * LEAF_CHUNK, 3 * LEAF_CHUNK + 1]
)
def test_pieces_of_a_leaf(n_left: int) -> None:
    """Values are sums of pieces of rows, the bits of which depend on where they begin."""
    n = n_left + LEAF_CHUNK
    rng = np.random.default_rng(n_left)
    side = np.zeros((n, 1))
    side[rng.choice(n, size=LEAF_CHUNK, replace=False)] = 1
    y = 3 * side + rng.normal(size=(n, 3)) / 3
    for options in ({}, {"sample_weight": rng.uniform(0.1, 2, n)}):
        case = Case(R, side, y, {"n_estimators": 3}, options)
        gpu = case.fit("cuda")
        assert gpu._forest.count[:3].tolist() == [n, n_left, LEAF_CHUNK]
        assert_same_forest(gpu, case.fit("cpu"))


# --- slices of histograms ----------------------------------------------------------------------------------


def assert_same_tree(gpu: Tree, cpu: Tree) -> None:
    for name in Tree.__dataclass_fields__:
        one, other = getattr(gpu, name), getattr(cpu, name)
        if name == "gain":
            np.testing.assert_allclose(one, other, rtol=GAIN_TOLERANCE, err_msg=name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


@dataclass
class Growth:
    """Gradients on a table: a tree of a GPU with so much memory, or of the CPU."""

    diagonal: bool
    rules: GrowSettings
    features: FeatureSample = field(default_factory=FeatureSample)
    rows: Any = None

    def __post_init__(self) -> None:
        rng = np.random.default_rng(2)
        table, scores = signal(900, 22, 3, seed=4)
        self.matrix = bin_table(with_gaps(table), None, 20, 1)
        self.gradient = (-scores).astype(np.float32)
        self.hessian = rng.uniform(0.1, 2, scores.shape).astype(np.float32) if self.diagonal else None

    def _grow(self, grower: Grower, gradient: Any, hessian: Any) -> Tree:
        sample = RowSample(self.rows)
        return grower.grow(task(gradient, hessian, sample=sample, features=self.features, learning_rate=0.1))

    def on_cpu(self) -> Tree:
        return self._grow(DenseGrower(self.matrix, self.rules), self.gradient, self.hessian)

    def on_gpu(self, cupy: Any, memory_bytes: int | None) -> Tree:
        matrix = DeviceMatrix.of_table(self.matrix, 1)
        grower = GpuGrower(matrix, self.rules, memory_bytes)
        hessian = None if self.hessian is None else cupy.asarray(self.hessian)
        trees = [self._grow(grower, cupy.asarray(self.gradient), hessian) for _ in range(2)]
        assert_same_tree(*trees)  # memory that is used again does no harm
        return trees[0]

    def memory_for(self, n_quads: int) -> tuple[int, HistogramPlan]:
        """Return the memory that holds the histograms of so many quads of features, and the plan for it."""
        n_bins = max(len(self.matrix.cuts(f)) + 1 + self.matrix.has_missing(f) for f in range(22))
        layout = Layout(3, self.diagonal, weighted=False)
        shape = shape_of((900, 22, n_bins), 3, layout, self.rules)
        memory = least_memory(shape, n_quads * shape.quad_bytes)
        return memory, plan_histograms(shape, memory, with_data=False)


MASK = (np.arange(22) % 3 == 1).astype(np.uint8)
GROWTHS: dict[str, Callable[[], Growth]] = {
    "squared error": lambda: Growth(False, settings(max_depth=7, min_samples_leaf=3)),
    "own Hessians": lambda: Growth(True, settings(max_depth=7, min_samples_leaf=3)),
    "some features": lambda: Growth(True, settings(min_samples_leaf=3), FeatureSample(MASK)),
    "some rows": lambda: Growth(
        False, settings(min_samples_leaf=3), rows=np.arange(0, 900, 2, dtype=np.uint32)
    ),
    "leaf-wise": lambda: Growth(True, settings(max_depth=None, max_leaves=25, min_samples_leaf=3)),
}


@pytest.mark.parametrize("name", GROWTHS)
@pytest.mark.parametrize(
    ("n_quads", "slice_nodes", "slice_quads"),
    [(1, 1, 1), (2, 1, 2), (5, 1, 5), (6, 1, 6), (17, 2, 6), (150, 25, 6)],
)
def test_slices_give_the_same_tree(
    cupy: Any, name: str, n_quads: int, slice_nodes: int, slice_quads: int
) -> None:
    """Some nodes at a time, or some features of a node."""
    growth = GROWTHS[name]()
    memory, plan = growth.memory_for(n_quads)
    assert (plan.slice_nodes, plan.slice_quads) == (slice_nodes, slice_quads)
    assert_same_tree(growth.on_gpu(cupy, memory), growth.on_cpu())


@pytest.mark.parametrize("name", GROWTHS)
def test_all_memory_gives_the_same_tree(cupy: Any, name: str) -> None:
    growth = GROWTHS[name]()
    assert_same_tree(growth.on_gpu(cupy, None), growth.on_cpu())


@pytest.mark.parametrize("name", ["classes, own Hessians", "missing values, targets", "leaf-wise", "sampled"])
def test_slices_give_the_same_forest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also round by round, and for every choice of the features."""
    case = replace(CASES[name], params=CASES[name].params | {"colsample_bytree": 0.7})
    expected = case.fit("cpu")
    plan = polyleaf.gpu.grower.plan_histograms
    for n_quads in (1, 2, 10):

        def small(shape: Any, free: int, *, with_data: bool, n_quads: int = n_quads) -> HistogramPlan:
            assert plan(shape, free, with_data=with_data).n_bytes > n_quads * shape.quad_bytes
            memory = least_memory(shape, n_quads * shape.quad_bytes)
            return plan(shape, memory, with_data=False)

        monkeypatch.setattr(polyleaf.gpu.grower, "plan_histograms", small)
        assert_same_forest(case.fit("cuda"), expected)


# --- the rest of the engine --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "labels", "targets"])
def test_evaluation_and_early_stopping(kind: str) -> None:
    """The same metrics to the last bit, and so the same best round."""
    estimator, y = {"classes": (C, CLASSES), "labels": (C, LABELS), "targets": (R, SCORES)}[kind]
    params = {"n_estimators": 25, "early_stopping_rounds": 2, "learning_rate": 0.8, "max_depth": 4}
    eval_set = {"rest": (X[500:], y[500:]), "gaps": (GAPS[:500], y[:500])}
    case = Case(estimator, X[500:], y[500:], params, {"eval_set": eval_set})
    cpu, gpu = case.fit("cpu"), case.fit("cuda")
    assert gpu.n_estimators_ < 25
    assert_same_forest(gpu, cpu)
    assert_same_array(gpu.predict(GAPS), cpu.predict(GAPS))


@pytest.mark.parametrize("name", ["targets", "classes, shared Hessian", "sampled by gradients"])
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_training_goes_on_on_another_device(name: str, first: str, then: str, tmp_path: Any) -> None:
    case = CASES[name]
    whole = case.fit("cpu")
    path = tmp_path / "checkpoint"
    begun = case.fit(first, n_estimators=2, callbacks=[Checkpoint(path, every=2)])
    resumed = replace(case, options=case.options | {"resume": path}).fit(then)
    np.testing.assert_array_equal(resumed._forest.values, whole._forest.values)
    np.testing.assert_array_equal(resumed._forest.feature, whole._forest.feature)
    more = replace(case, options=case.options | {"init_model": begun}).fit(then, n_estimators=2)
    np.testing.assert_array_equal(more._forest.values, whole._forest.values)
    begun.set_params(device=then, warm_start=True, n_estimators=4).fit(case.X, case.y, **case.options)
    np.testing.assert_array_equal(begun._forest.values, whole._forest.values)


def test_cross_validation() -> None:
    results = [
        cv(R(n_estimators=4, sketch=None, device=device, n_jobs=1), GAPS, SCORES, cv=3, return_models=True)
        for device in ("cuda", "cpu")
    ]
    np.testing.assert_array_equal(results[0].folds["rmse"], results[1].folds["rmse"])
    for gpu, cpu in zip(results[0].models, results[1].models, strict=True):
        assert_same_forest(gpu, cpu)


def test_a_search_tries_the_same() -> None:
    """Without `space` a GPU draws features by tree, as it cannot by node."""
    space = {"max_depth": (2, 5), "colsample_bytree": (0.5, 1.0), "reg_lambda": (0.1, 10.0, "log")}
    results = [
        tune(R(n_estimators=4, sketch=None, device=device, n_jobs=1), GAPS, SCORES, n_trials=4, space=space)
        for device in ("cuda", "cpu")
    ]
    assert [one.params for one in results[0].trials] == [one.params for one in results[1].trials]
    assert_same_forest(*(result.best_estimator for result in results))
    usual = tune(R(n_estimators=4, device="cuda"), GAPS, SCORES, n_trials=2)
    assert "colsample_bytree" in usual.trials[0].params


def test_the_file_is_the_same(tmp_path: Any) -> None:
    """But for the last bits of gains, which are no part of a prediction."""
    case = CASES["missing values"]
    models = [case.fit(device) for device in ("cuda", "cpu")]
    for number, model in enumerate(models):
        model.save_model(tmp_path / str(number))
    loaded = [load_model(tmp_path / str(number)) for number in (0, 1)]
    assert_same_forest(*loaded)
    assert [model.device for model in loaded] == ["cpu", "cpu"]
    for model in loaded:
        assert_same_array(model.predict_proba(GAPS), models[1].predict_proba(GAPS))
