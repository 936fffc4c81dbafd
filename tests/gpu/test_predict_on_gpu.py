"""Prediction on the GPU has the bits of the CPU, for every forest and table; CuPy in, CuPy out."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model
from polyleaf.callbacks import Checkpoint
from polyleaf.gpu import predictor, transfer
from same_forest import assert_same_array, assert_same_bits, assert_same_forest

pytestmark = pytest.mark.usefixtures("cupy")

RNG = np.random.default_rng(0)
N, M = 400, 7
X = RNG.normal(size=(N, M))
SCORES = np.c_[np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], X[:, 3] - X[:, 0], np.abs(X[:, 4])]
SCORES += 0.1 * RNG.normal(size=SCORES.shape)
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
CATEGORIES = np.c_[RNG.integers(0, 70, N), RNG.integers(0, 3, N), X[:, 2:]]
CLASSES = SCORES.argmax(axis=1)
WORDS = np.array(["a", "bb", "c", "ddd"])[CLASSES]
LABELS = (SCORES > 0.3).astype(np.int64)
SMALL = {"n_estimators": 12, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
C, R = PolyleafClassifier, PolyleafRegressor

# Forests of all kinds, most of which only the CPU grows: estimator, table, targets, parameters.
FORESTS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "targets": (R, X, SCORES, {}),
    "one target": (R, X, SCORES[:, 0], {}),
    "classes": (C, X, CLASSES, {}),
    "labels": (C, X, LABELS, {}),
    "missing values": (R, GAPS, SCORES, {}),
    "categories": (R, CATEGORIES, SCORES, {"categorical_features": [0, 1]}),
    "categories and missing values": (
        C,
        np.where(np.isnan(GAPS), np.nan, CATEGORIES),
        CLASSES,
        {"categorical_features": [0, 1]},
    ),
    "sparse leaves": (R, GAPS, SCORES, {"sparse_leaves": 2}),
    "sparse leaves of their own": (C, X, CLASSES, {"sparse_leaves": 1, "sparse_mode": "unrestricted"}),
    "one output a tree": (R, GAPS, SCORES, {"multi_strategy": "one_output_per_tree"}),
    "absolute error": (R, X, SCORES, {"objective": "absolute_error"}),
    "quantiles": (R, X, SCORES[:, :2], {"objective": "quantile", "quantile_levels": [0.1, 0.5, 0.9]}),
    "all thresholds": (R, X, SCORES, {"max_bins": None}),
    "stumps": (R, X, SCORES, {"max_depth": 1}),
    "deep": (R, GAPS, SCORES, {"max_depth": 30, "min_samples_leaf": 1}),
    "no split": (R, X, SCORES, {"min_split_gain": 1e30}),
    "targets of another size": (R, X, SCORES * [1e100, 1e-100, 1.0, 1e30], {}),
    "poisson": (R, X, np.exp(SCORES), {"objective": "poisson"}),
}


def rows(n: int, dtype: Any = np.float64, seed: int = 1) -> Any:
    """Rows that training has not seen: some missing, some far away, some no category, some whole."""
    rng = np.random.default_rng(seed)
    table = rng.normal(scale=2, size=(n, M))
    table[:, :2] = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 69.0, 70.0, 1e9], size=(n, 2))
    table[rng.random(table.shape) < 0.1] = np.nan
    table[rng.random(table.shape) < 0.05] *= 1e6
    return table.astype(dtype)


def fitted(name: str, **changes: Any) -> Any:
    estimator, table, y, params = FORESTS[name]
    return estimator(**SMALL | params | changes, device="cpu").fit(table, y)


def on_gpu(model: Any) -> Any:
    return copy.deepcopy(model).set_params(device="cuda")


def methods(model: Any) -> list[str]:
    return ["predict"] + (["predict_proba", "decision_function"] if isinstance(model, C) else [])


def assert_close(got: Any, expected: Any) -> None:
    """Arrays of NumPy; the exponentials of the two devices may differ in the last bits."""
    assert isinstance(got, np.ndarray)
    assert got.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-300)
    else:
        np.testing.assert_array_equal(got, expected)


# --- forests and tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORESTS)
def test_every_forest_predicts_the_same_bits(name: str, dtype: Any) -> None:
    model = fitted(name)
    gpu = on_gpu(model)
    table = FORESTS[name][1].astype(dtype)
    if "categories" not in name:
        table = np.concatenate([table, rows(300, dtype)])
    for n_rounds in (None, 1, 5):
        assert_same_array(gpu._raw(table, n_rounds), model._raw(table, n_rounds))
        for method in methods(model):
            expected = getattr(model, method)(table, n_rounds=n_rounds)
            assert_close(getattr(gpu, method)(table, n_rounds=n_rounds), expected)


@pytest.mark.parametrize("name", ["categories", "categories and missing values"])
def test_what_is_no_category_goes_with_missing_values(cupy: Any, name: str) -> None:
    """Codes as a kernel may get them: unseen, negative, between two, huge."""
    forest = fitted(name)._forest
    for dtype in (np.float32, np.float64):
        for n_rows in (600, 4200):
            table = rows(n_rows, dtype)
            raw = cupy.asarray(np.tile(forest.base_score, (n_rows, 1)))
            predictor.GpuPredictor(forest).add(cupy.asarray(table), 0, forest.n_trees, raw)
            assert_same_array(cupy.asnumpy(raw), forest.predict_raw(table))


@pytest.mark.parametrize(
    "name", ["targets", "missing values", "one output a tree", "sparse leaves", "classes"]
)
@pytest.mark.parametrize("n_rows", [1, 2, 31, 32, 33, 127, 129, 4095, 4096, 4097])
def test_few_rows_and_many(name: str, n_rows: int) -> None:
    """From 4096 rows on a thread takes all trees of a row."""
    model = fitted(name)
    table = rows(n_rows, np.float32)
    assert_same_array(on_gpu(model)._raw(table, None), model._raw(table, None))


@pytest.mark.parametrize("n_rows", [300, 5000])
@pytest.mark.parametrize("params", [{}, {"sparse_leaves": 1}, {"categorical_features": [1]}])
def test_the_smallest_numbers_count(params: dict[str, Any], n_rows: int) -> None:
    """Cells and thresholds below 1e-38, which float32 arithmetic of a GPU may take for 0."""
    smallest = np.finfo(np.float32).smallest_subnormal
    table = np.c_[np.arange(-40, 40), np.arange(80) % 7].astype(np.float32)
    y = np.c_[np.sin(table[:, 0]), np.cos(table[:, 1])]
    table[:, 0] *= smallest
    model = R(**SMALL | {"min_samples_leaf": 1} | params, device="cpu").fit(table, y)
    below = model._forest.threshold[np.abs(model._forest.threshold) < 1e-38]
    assert len(np.unique(below)) > 20
    rng = np.random.default_rng(0)
    cells = np.c_[rng.integers(-50, 50, n_rows) * smallest, rng.choice([0, 1, 6, smallest], n_rows)]
    assert_same_array(on_gpu(model)._raw(cells.astype(np.float32), None), model._raw(cells, None))


@pytest.mark.parametrize("n_outputs", [1, 2, 31, 32, 33, 63, 64, 65, 130])
def test_many_outputs(n_outputs: int) -> None:
    """With more than 64, leaves are looked up once for all."""
    y = X @ RNG.normal(size=(M, n_outputs)) + 0.1
    model = R(**SMALL | {"n_estimators": 5}, device="cpu").fit(X, y)
    for n_rows in (10, 4200):
        table = rows(n_rows)
        assert_same_array(on_gpu(model)._raw(table, None), model._raw(table, None))


@pytest.mark.parametrize("n_features", [1, 40, 300, 2000])
def test_wide_tables(n_features: int) -> None:
    """Whether or not rows fit the shared memory of a block."""
    table = np.random.default_rng(n_features).normal(size=(4200, n_features)).astype(np.float32)
    y = table[:300, :1] - table[:300, -1:] * np.array([1.0, 2.0, -1.0])
    model = R(**SMALL | {"n_estimators": 3}, device="cpu").fit(table[:300], y)
    gpu = on_gpu(model)
    for part in (table, table[:50], table.astype(np.float64)[:100], np.asfortranarray(table)):
        assert_same_array(gpu._raw(part, None), model._raw(part, None))


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float16]
)
def test_every_type_of_number(cupy: Any, dtype: Any) -> None:
    whole = (np.nan_to_num(rows(500)) * 10) % 100
    table = (whole > 50) if dtype is np.bool_ else whole.astype(dtype)
    model = R(**SMALL, device="cpu").fit(table[:400], SCORES)
    gpu = on_gpu(model)
    expected = model.predict(table)
    assert_same_array(gpu.predict(table), expected)
    assert_same_array(cupy.asnumpy(gpu.predict(cupy.asarray(table))), expected)
    trained = R(**SMALL, device="cuda").fit(cupy.asarray(table[:400]), cupy.asarray(SCORES))
    assert_same_forest(trained, model)


def test_integers_that_float32_does_not_hold(cupy: Any) -> None:
    table = 2**24 + np.arange(N * M).reshape(N, M) % 97
    model = R(**SMALL, device="cpu").fit(table, SCORES)
    expected = model.predict(table)
    assert_same_array(on_gpu(model).predict(table), expected)
    assert_same_array(cupy.asnumpy(on_gpu(model).predict(cupy.asarray(table))), expected)


@pytest.mark.parametrize("n_rows", [60, 4200])
def test_every_order_of_memory(cupy: Any, n_rows: int) -> None:
    model = fitted("missing values")
    gpu = on_gpu(model)
    table = rows(n_rows)
    expected = model.predict(table)
    wide = np.zeros((2 * n_rows, 2 * M))
    views = [wide[::2, ::2], wide[::-1, ::-1][:n_rows, :M], wide.T[:M, :n_rows].T]
    for view in views:
        view[...] = table
        assert_same_array(gpu.predict(view), expected)
        on_device = cupy.asarray(wide)
        for part in (on_device[::2, ::2], on_device[::-1, ::-1][:n_rows, :M], on_device.T[:M, :n_rows].T):
            part[...] = cupy.asarray(table)
            assert_same_array(cupy.asnumpy(gpu.predict(part)), expected)
    assert_same_array(gpu.predict(np.asfortranarray(table)), expected)


@pytest.mark.parametrize("n_jobs", [1, 3, 20])
@pytest.mark.parametrize("at_once", [1, 63, 64, 250, 499, 500])
def test_rows_are_copied_some_at_a_time(monkeypatch: pytest.MonkeyPatch, at_once: int, n_jobs: int) -> None:
    """And trees looked up some at a time: neither changes a bit."""
    model = fitted("one output a tree")
    gpu = on_gpu(model).set_params(n_jobs=n_jobs)
    table = rows(500)
    expected = model._raw(table, None)
    monkeypatch.setattr(transfer, "_PIECE_BYTES", at_once * M * 8)
    monkeypatch.setattr(predictor, "_LEAF_BYTES", 8 * 64 * 5)
    assert_same_array(gpu._raw(table, None), expected)
    assert_same_array(gpu._raw(np.asfortranarray(table), None), expected)
    assert_same_array(gpu._raw(table[::-1], None), expected[::-1])
    table = np.arange(N * M, dtype=np.int8).reshape(N, M)
    assert_same_array(gpu._raw(table, None), model._raw(table, None))


def test_rows_of_more_results_than_values(monkeypatch: pytest.MonkeyPatch) -> None:
    model = R(**SMALL, device="cpu").fit(X[:, :1], np.tile(SCORES, 10))
    monkeypatch.setattr(transfer, "_PIECE_BYTES", 40 * 8 * 7)
    assert_same_array(on_gpu(model)._raw(X[:, :1], None), model._raw(X[:, :1], None))


def test_a_system_that_locks_no_pages(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("targets")

    def refused(n_bytes: int) -> Any:
        raise cupy.cuda.runtime.CUDARuntimeError(2)  # as where memory is at an end

    monkeypatch.setattr(transfer, "_PIECE_BYTES", 100 * M * 8)
    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", refused)
    assert_same_array(on_gpu(model).predict(X), model.predict(X))


def test_an_error_between_pieces_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("targets")
    gpu = on_gpu(model)
    monkeypatch.setattr(transfer, "_PIECE_BYTES", 100 * M * 8)
    calls = []

    def out_of_memory(table: Any) -> Any:
        calls.append(len(table))
        if len(calls) == 3:
            raise MemoryError("no more")
        return device_table(table)

    device_table = predictor.device_table
    monkeypatch.setattr(predictor, "device_table", out_of_memory)
    with pytest.raises(MemoryError, match="no more"):
        gpu.predict(X)
    assert calls == [100, 100, 100]
    assert_same_array(gpu.predict(X), model.predict(X))


def test_sparse_tables(cupy: Any) -> None:
    table = scipy.sparse.csr_array(np.where(np.abs(X) < 1, 0.0, X))
    models = [R(**SMALL, device=device).fit(table, SCORES) for device in ("cuda", "cpu")]
    assert_same_forest(*models)
    assert_same_array(models[0].predict(table), models[1].predict(table))
    dense = cupy.asarray(table.toarray())
    assert_same_array(cupy.asnumpy(models[0].predict(dense)), models[1].predict(table))


def test_other_ways_to_use_a_forest(cupy: Any) -> None:
    """What the CPU does for both devices."""
    model = fitted("classes")
    gpu = on_gpu(model)
    table, on_device = rows(50), cupy.asarray(rows(50))
    for given in (table, on_device):
        assert_same_array(gpu.apply(given), model.apply(table))
        assert_same_array(gpu.predict(given, top_k=2), model.predict(table, top_k=2))
        for one, other in zip(
            gpu.staged_predict_proba(given), model.staged_predict_proba(table), strict=True
        ):
            assert_same_array(one, other)
    assert_same_array(gpu.feature_importances_, model.feature_importances_)


# --- CuPy in, CuPy out -------------------------------------------------------------------------------------


def assert_close_on_device(cupy: Any, got: Any, expected: Any) -> None:
    assert isinstance(got, cupy.ndarray)
    assert got.shape == expected.shape
    assert_close(cupy.asnumpy(got), expected)


TARGETS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "targets": (R, SCORES, {}),
    "one target": (R, SCORES[:, 0], {}),
    "one column": (R, SCORES[:, :1], {}),
    "poisson": (R, np.exp(SCORES), {"objective": "poisson"}),
    "two classes": (C, CLASSES % 2, {}),
    "two classes of bool": (C, CLASSES > 1, {}),
    "classes": (C, CLASSES, {}),
    "other numbers": (C, np.array([7, -3, 100, 5])[CLASSES], {}),
    "classes of floats": (C, CLASSES.astype(np.float64), {}),
    "labels": (C, LABELS, {}),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_arrays_of_the_gpu_give_arrays_of_the_gpu(cupy: Any, kind: str) -> None:
    """Trained on them it is the same forest, and of NumPy arrays the same model makes NumPy arrays."""
    estimator, y, params = TARGETS[kind]
    cpu = estimator(**SMALL | params, device="cpu").fit(GAPS, y)
    gpu = estimator(**SMALL | params, device="cuda").fit(cupy.asarray(GAPS), cupy.asarray(y))
    assert_same_forest(gpu, cpu)
    table = rows(200)
    on_device = cupy.asarray(table)
    for method in methods(cpu):
        expected = getattr(cpu, method)(table)
        assert_close_on_device(cupy, getattr(gpu, method)(on_device), expected)
        assert_close(getattr(gpu, method)(table), expected)
    np.testing.assert_array_equal(cupy.asnumpy(on_device), table)  # as it was
    assert gpu.score(cupy.asarray(GAPS), cupy.asarray(y)) == cpu.score(GAPS, y)
    assert gpu.score(GAPS, y) == cpu.score(GAPS, y)


@pytest.mark.parametrize("words", [WORDS, WORDS[CLASSES % 2]])
def test_classes_that_are_words(cupy: Any, words: Any) -> None:
    """CuPy has no words: they are NumPy's, the probabilities CuPy's."""
    cpu = C(**SMALL, device="cpu").fit(X, words)
    gpu = C(**SMALL, device="cuda").fit(cupy.asarray(X), words)
    assert_same_forest(gpu, cpu)
    table = rows(100)
    predicted = gpu.predict(cupy.asarray(table))
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, cpu.predict(table))
    for method in ("predict_proba", "decision_function"):
        got = getattr(gpu, method)(cupy.asarray(table))
        assert_close_on_device(cupy, got, getattr(cpu, method)(table))


def test_weights_and_evaluation_sets_of_the_gpu(cupy: Any) -> None:
    """Early stopping sees the same numbers as with arrays of NumPy."""
    weight = np.random.default_rng(3).uniform(0, 2, N)
    weight[::7] = 0.0  # such rows are dropped
    params = SMALL | {"n_estimators": 40, "learning_rate": 0.9, "early_stopping_rounds": 2}
    halves = slice(0, 250), slice(250, N)

    def fit(device: str, put: Any) -> Any:
        (table, y, w), (other, other_y, other_w) = (
            (put(X[part]), put(SCORES[part]), put(weight[part])) for part in halves
        )
        return R(**params, device=device).fit(
            table, y, w, eval_set={"rest": (other, other_y)}, eval_sample_weight={"rest": other_w}
        )

    expected = fit("cpu", np.asarray)
    assert expected.n_estimators_ < 40
    for put in (cupy.asarray, np.asarray):
        assert_same_forest(fit("cuda", put), expected)
    # A table of one memory, evaluation sets of the other.
    mixed = R(**params, device="cuda").fit(
        cupy.asarray(X[:250]), SCORES[:250], eval_set=[(X[250:], SCORES[250:])]
    )
    plain = R(**params, device="cpu").fit(X[:250], SCORES[:250], eval_set=[(X[250:], SCORES[250:])])
    assert_same_forest(mixed, plain)


def test_cross_validation_and_checkpoints_of_arrays_of_the_gpu(cupy: Any, tmp_path: Any) -> None:
    model = R(**SMALL, device="cuda")
    result = cv(model, cupy.asarray(X), cupy.asarray(SCORES), cv=2)
    expected = cv(R(**SMALL, device="cpu"), X, SCORES, cv=2)
    np.testing.assert_array_equal(result.folds["rmse"], expected.folds["rmse"])
    path = tmp_path / "checkpoint"
    whole = clone(model).fit(X, SCORES)
    clone(model).set_params(n_estimators=5, callbacks=[Checkpoint(path, every=5)]).fit(
        cupy.asarray(X), cupy.asarray(SCORES)
    )
    for table in (X, cupy.asarray(X)):
        resumed = clone(model).fit(table, SCORES, resume=path)
        np.testing.assert_array_equal(resumed._forest.values, whole._forest.values)


def test_targets_of_several_kinds(cupy: Any) -> None:
    targets = {"grade": "multiclass", "height": "regression", "passed": "binary"}
    y = {"grade": WORDS, "height": SCORES[:, 1], "passed": CLASSES > 1}
    cpu = PolyleafMixed(targets, **SMALL, device="cpu").fit(GAPS, y)
    gpu = PolyleafMixed(targets, **SMALL, device="cuda").fit(cupy.asarray(GAPS), y)
    assert_same_forest(gpu, cpu)
    for given in (GAPS, cupy.asarray(GAPS)):
        predicted, expected = gpu.predict(given), cpu.predict(GAPS)
        probability, expected_probability = gpu.predict_proba(given), cpu.predict_proba(GAPS)
        for name in expected:
            np.testing.assert_array_equal(predicted[name], expected[name])
        for name in expected_probability:
            assert_close(probability[name], expected_probability[name])


# --- models travel -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["targets", "classes", "labels"])
def test_a_model_of_the_gpu_is_used_without_one(kind: str, tmp_path: Any) -> None:
    estimator, y, params = TARGETS[kind]
    gpu = estimator(**SMALL | params, device="cuda").fit(GAPS, y)
    table = rows(100)
    expected = gpu.predict(table)  # packed for the GPU by now
    gpu.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.device == "cpu"
    assert_same_array(loaded.predict(table), expected)
    assert_same_array(loaded.set_params(device="cuda").predict(table), expected)
    for other in (pickle.loads(pickle.dumps(gpu)), copy.deepcopy(gpu)):
        assert_same_bits(other, gpu)
        assert_same_array(other.predict(table), expected)
        assert_same_array(other.set_params(device="cpu").predict(table), expected)


def test_another_fit_forgets_the_packed_forest() -> None:
    model = R(**SMALL, device="cuda").fit(X, SCORES)
    before = model.predict(X)
    model.fit(X, -2 * SCORES)
    after = model.predict(X)
    assert not np.array_equal(before, after)
    assert_same_array(after, model.set_params(device="cpu").predict(X))
    model.set_params(device="cuda", warm_start=True, n_estimators=20).fit(X, -2 * SCORES)
    more = model.predict(X)
    assert not np.array_equal(more, after)
    assert_same_array(more, model.set_params(device="cpu").predict(X))
