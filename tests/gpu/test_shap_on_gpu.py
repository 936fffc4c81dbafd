"""Shapley values on the GPU have the bits of the CPU, for every forest and dense table, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from test_predict_on_gpu import FORESTS, SCORES, SMALL, fitted, on_gpu, rows

from polyleaf import PolyleafRegressor
from polyleaf.gpu import shap

pytestmark = pytest.mark.usefixtures("cupy")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORESTS)
def test_every_forest(cupy: Any, name: str, dtype: Any) -> None:
    model = fitted(name)
    gpu = on_gpu(model)
    table = FORESTS[name][1].astype(dtype)
    tables = [table, np.asfortranarray(table)]
    if "categories" not in name:
        table = np.concatenate([table, rows(300, dtype)])
        tables = [table, np.asfortranarray(table), cupy.asarray(table)]
    expected = model.shap_values(table)
    for given in tables:
        found = gpu.shap_values(given)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, expected)
    of_float32 = model.shap_values(table, dtype="float32")
    np.testing.assert_array_equal(gpu.shap_values(table, dtype="float32"), of_float32)
    mean = model.shap_values(table, reduce="mean_abs")
    np.testing.assert_allclose(gpu.shap_values(table, reduce="mean_abs"), mean, rtol=1e-12)
    np.testing.assert_array_equal(gpu.shap_values(table[:5], [0]), model.shap_values(table[:5], [0]))
    np.testing.assert_array_equal(gpu.expected_value_, model.expected_value_)


@pytest.mark.parametrize("n_rows", [1, 31, 129, 5000])
@pytest.mark.parametrize("room", [2**31, 2**20])
def test_few_rows_and_many_some_at_a_time(n_rows: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shap, "_MOST_BYTES", room)
    for name in ("targets", "sparse leaves", "one output a tree", "deep"):
        model = fitted(name)
        table = rows(n_rows)
        np.testing.assert_array_equal(on_gpu(model).shap_values(table), model.shap_values(table))


@pytest.mark.parametrize("n_outputs", [7, 33, 130])
def test_many_outputs(n_outputs: int) -> None:
    rng = np.random.default_rng(n_outputs)
    X = rng.normal(size=(400, 12))
    model = PolyleafRegressor(**SMALL, device="cpu").fit(X, X @ rng.normal(size=(12, n_outputs)))
    np.testing.assert_array_equal(on_gpu(model).shap_values(X), model.shap_values(X))


def test_importance_and_what_the_cpu_does(cupy: Any) -> None:
    model = fitted("missing values")
    gpu = on_gpu(model)
    table = rows(200)
    weight = np.arange(200.0)
    expected = model.importance("shap", True, X=table, sample_weight=weight)
    for given in (table, cupy.asarray(table)):
        found = gpu.importance("shap", True, X=given, sample_weight=weight)
        assert found["feature"].tolist() == expected["feature"].tolist()
        np.testing.assert_allclose(found["importance"], expected["importance"], rtol=1e-12)
    sparse = scipy.sparse.csr_array(table)
    np.testing.assert_array_equal(gpu.shap_values(sparse), model.shap_values(sparse))
    pairs = model.shap_values(table[:9], interactions=True)
    for given in (table[:9], cupy.asarray(table[:9])):
        np.testing.assert_array_equal(gpu.shap_values(given, interactions=True), pairs)


def test_another_fit_forgets_the_ways() -> None:
    X = FORESTS["targets"][1]
    model = PolyleafRegressor(**SMALL, device="cuda").fit(X, SCORES)
    before = model.shap_values(X)
    model.fit(X, -2 * SCORES)
    after = model.shap_values(X)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, model.set_params(device="cpu").shap_values(X))
