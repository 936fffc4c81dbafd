"""Small trainings of every kind, for tests that compare one way of running them with another."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor

_RNG = np.random.default_rng(7)
N = 160
X = _RNG.normal(size=(N, 6))
X[_RNG.random(X.shape) < 0.05] = np.nan
_FILLED = np.nan_to_num(X)
SIGNAL = _FILLED[:, :4] @ _RNG.normal(size=(4, 7)) + 0.3 * _RNG.normal(size=(N, 7))
CLASSES = np.array([f"class {i}" for i in SIGNAL.argmax(axis=1)])
LABELS = (SIGNAL > 0.5).astype(int)
WEIGHT = _RNG.integers(0, 4, size=N).astype(float) / 2


def squared(y, raw):
    return raw - y, np.ones_like(raw)


@dataclass
class Case:
    """One training: the estimator's class, its parameters, and what is passed to fit."""

    estimator: Any
    y: Any
    params: dict[str, Any] = field(default_factory=dict)
    weight: Any = None

    def make(self, **params):
        common = {"n_estimators": 300, "min_samples_leaf": 4, "max_depth": 3, "learning_rate": 0.3}
        common |= {"random_state": 3, "n_jobs": 1}
        return self.estimator(**(common | self.params | params))


TARGETS = SIGNAL[:, :3]
SAMPLED = {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bylevel": 0.8, "colsample_bynode": 0.8}
CASES = {
    "regression": Case(PolyleafRegressor, TARGETS),
    "one target": Case(PolyleafRegressor, TARGETS[:, 0]),
    "classes": Case(PolyleafClassifier, CLASSES),
    "two classes": Case(PolyleafClassifier, LABELS[:, 0]),
    "labels": Case(PolyleafClassifier, LABELS),
    "sampled": Case(PolyleafRegressor, TARGETS, SAMPLED),
    "gradient-based": Case(
        PolyleafClassifier, CLASSES, {"subsample": 0.5, "sampling_method": "gradient_based"}
    ),
    "projection": Case(PolyleafClassifier, CLASSES, {"sketch": "random_projection", "sketch_size": 3}),
    "drawn outputs": Case(PolyleafClassifier, CLASSES, {"sketch": "random_sampling", "sketch_size": 2}),
    "top outputs": Case(PolyleafRegressor, SIGNAL, {"sketch": "top_outputs", "sketch_size": 2}),
    "one output a tree": Case(
        PolyleafRegressor, TARGETS, {"multi_strategy": "one_output_per_tree"} | SAMPLED
    ),
    "sparse leaves": Case(PolyleafRegressor, SIGNAL, {"sparse_leaves": 2}),
    "own sparse leaves": Case(
        PolyleafClassifier, CLASSES, {"sparse_leaves": 3, "sparse_mode": "unrestricted"}
    ),
    "exact": Case(PolyleafClassifier, CLASSES, {"hessian": "exact"}),
    "exact leaves": Case(PolyleafClassifier, CLASSES, {"hessian": "exact_leaf"}),
    "shared": Case(PolyleafClassifier, LABELS, {"hessian": "shared"}),
    "weights": Case(PolyleafRegressor, TARGETS, SAMPLED, WEIGHT),
    "huge and tiny targets": Case(PolyleafRegressor, TARGETS * [1e100, 1e-100, 1.0]),
    "best first": Case(PolyleafRegressor, TARGETS, {"max_depth": None, "max_leaves": 6}),
    "few bins": Case(PolyleafRegressor, TARGETS, {"max_bins": 4}),
    "callable": Case(PolyleafRegressor, TARGETS, {"objective": squared, "base_score": [0.0, 1.0, 2.0]}),
    "sparse labels": Case(
        PolyleafClassifier,
        scipy.sparse.csr_array(LABELS),
        {"objective": "clipped_squared_error", "sparse_leaves": 3} | SAMPLED,
        WEIGHT,
    ),
    "all labels in sparse leaves": Case(
        PolyleafClassifier,
        scipy.sparse.csr_array(LABELS),
        {"objective": "clipped_squared_error", "sparse_leaves": LABELS.shape[1]},
    ),
}


def assert_same_model(one, other):
    """Every array of the forest has the same bits, and so has everything else that fit sets."""
    arrays, others = one._forest.to_arrays(), other._forest.to_arrays()
    for name, values in arrays.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)
        assert values.tobytes() == others[name].tobytes(), name
    assert one.evals_result_ == other.evals_result_
    assert one.best_iteration_ == other.best_iteration_
    assert one.n_estimators_ == other.n_estimators_
