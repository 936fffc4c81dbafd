"""Without row sampling the order of the rows changes no bit of a model, nor of what is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from mixed_table import mixed, table
from pairs import FEATURES, KINDS, case_of, fitted
from polyleaf import PolyleafClassifier, PolyleafRegressor
from same_forest import assert_same_bits

# Samples of rows depend on the rows' places.
SAMPLED = {"row sampling", "gradient sampling"}
CASES = [
    (kind, name)
    for kind in KINDS
    for name in ("", *FEATURES)
    if name not in SAMPLED
    and (name == "" or kind in FEATURES[name].kinds)
    and not (kind == "classes" and name == "monotone")
]


def permuted(values: Any, order: np.ndarray) -> Any:
    if values is None:
        return None
    return values[order] if not scipy.sparse.issparse(values) else scipy.sparse.csr_array(values)[order]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_rows_changes_no_bit(kind: str, name: str, weighted: bool) -> None:
    case = case_of(kind, name)
    rng = np.random.default_rng(8)
    n = case.X.shape[0]
    if weighted and case.sample_weight is None:
        case.sample_weight = rng.uniform(0.1, 3, n)
    model = fitted(case)
    order = rng.permutation(n)
    other = replace(
        case,
        X=permuted(case.X, order),
        y=permuted(case.y, order),
        sample_weight=permuted(case.sample_weight, order),
    )
    other.params = case.params | {"n_jobs": 2}
    again = fitted(other)
    assert_same_bits(model, again)


@pytest.mark.parametrize("n_rows", [700, 5_000, 40_000])
@pytest.mark.parametrize(
    ("n_classes", "params"),
    [
        (4, {}),
        (4, {"softmax_curvature": "abs(p-y)", "class_weight": "balanced"}),
        (10, {}),
        (70, {}),
        (70, {"sketch": "top_outputs"}),
        (70, {"sketch": "random_sampling"}),
        (6, {"hessian": "exact"}),
        (6, {"hessian": "exact_leaf"}),
    ],
)
def test_at_size(n_rows: int, n_classes: int, params: dict[str, Any]) -> None:
    if n_rows > 5_000 and "hessian" in params:
        n_rows = 8_000
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 5))
    y = (X[:, :3].sum(axis=1) * 2 + rng.normal(size=n_rows)).argsort().argsort() * n_classes // n_rows
    weight = rng.uniform(0, 2, n_rows)
    order = rng.permutation(n_rows)
    evals = (X[:500], y[:500])
    shuffled = rng.permutation(500)
    models = []
    for rows, of_evals in ((np.arange(n_rows), np.arange(500)), (order, shuffled)):
        model = PolyleafClassifier(n_estimators=4, max_depth=4, max_bins=32, **params)
        eval_set = (evals[0][of_evals], evals[1][of_evals])
        model.fit(X[rows], y[rows], weight[rows], eval_set=eval_set)
        models.append(model)
    assert_same_bits(models[0], models[1])
    assert models[0].evals_result_ == models[1].evals_result_


@pytest.mark.parametrize("metric", ["rmse", "mae", "r2", "huber", "poisson"])
@pytest.mark.parametrize("cells", [False, True])
def test_metrics(metric: str, cells: bool) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 3))
    y = np.exp(np.c_[X[:, 0] + 0.1 * rng.normal(size=3000), X[:, 1] * X[:, 2]])
    weight = rng.uniform(0, 1, size=(3000, 2) if cells else 3000)
    order = rng.permutation(3000)
    objective = "poisson" if metric == "poisson" else "squared_error"
    found = [
        PolyleafRegressor(n_estimators=5, objective=objective, eval_metric=metric)
        .fit(X[rows], y[rows], weight[rows], eval_set=(X[rows], y[rows]), eval_sample_weight=weight[rows])
        .evals_result_
        for rows in (np.arange(3000), order)
    ]
    assert found[0] == found[1]


def test_targets_of_several_kinds() -> None:
    X, y = table()
    order = np.random.default_rng(0).permutation(len(X))
    weight = np.random.default_rng(1).uniform(0.2, 2, len(X))
    one = mixed().fit(X, y, sample_weight=weight)
    two = mixed().fit(
        X[order], {name: values[order] for name, values in y.items()}, sample_weight=weight[order]
    )
    assert_same_bits(one, two)
