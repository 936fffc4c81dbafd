"""Features that change a small problem, alone or in pairs; what the table of combinations refuses of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.params import options
from polyleaf.params.combinations import COMBINATIONS
from polyleaf.params.options import Option

KINDS = ("regression", "classes", "labels")
N_ROWS, N_TARGETS = 300, 3


@dataclass
class Case:
    """What is passed to an estimator; features change it."""

    kind: str
    X: Any
    y: Any
    sample_weight: Any = None
    params: dict[str, Any] = field(default_factory=dict)


def plain(kind: str) -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, 0] = rng.integers(0, 6, N_ROWS)
    by_category = np.array([2.0, -1.0, 1.5, -2.0, 0.5, -1.5])[X[:, 0].astype(int)]
    score = np.c_[by_category - X[:, 1], X[:, 2] * X[:, 3] - X[:, 1], by_category + np.sin(2 * X[:, 2])]
    score += 0.3 * rng.normal(size=score.shape)
    y = {
        "regression": np.exp(0.5 * score),
        "classes": score.argmax(axis=1),
        "labels": (score > 0).astype(float),
    }
    params = {"n_estimators": 15, "min_samples_leaf": 5, "max_bins": 24, "random_state": 0, "n_jobs": 1}
    params |= {"sketch": None, "learning_rate": 0.1}
    return Case(kind, X, y[kind], params=params)


@dataclass(frozen=True)
class Feature:
    """A feature: how it changes a case, the kinds of problem there it is, and the options it brings.

    The options are those of the table of combinations. They are written down here once more, so that a row
    which is blind to one of them, or sees it where it is not, does not go unnoticed.
    """

    apply: Callable[[Case], None]
    kinds: tuple[str, ...] = KINDS
    options: tuple[Option, ...] = ()


def param(**params: Any) -> Callable[[Case], None]:
    return lambda case: case.params.update(params)


def with_gaps(case: Case) -> None:
    X = np.array(case.X.todense() if scipy.sparse.issparse(case.X) else case.X, dtype=float)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    case.X = X


def with_missing_targets(case: Case) -> None:
    case.y = np.where(np.random.default_rng(2).random(case.y.shape) < 0.3, np.nan, case.y)


def row_weights(case: Case) -> None:
    case.sample_weight = np.random.default_rng(3).uniform(0.2, 3, N_ROWS)


def cell_weights(case: Case) -> None:
    case.sample_weight = np.random.default_rng(4).uniform(0.2, 3, (N_ROWS, N_TARGETS))


def sparse_table(case: Case) -> None:
    case.X = scipy.sparse.csr_array(np.where(np.abs(np.nan_to_num(case.X)) < 0.5, 0.0, case.X))


def sparse_labels(case: Case) -> None:
    case.y = scipy.sparse.csr_array(np.nan_to_num(case.y))
    case.params.update(objective="clipped_squared_error", sparse_leaves=2)


def hashed_labels(case: Case) -> None:
    case.params.update(label_space="hashed", sketch="auto", sketch_size=2)


def own_objective(case: Case) -> None:
    def function(y: Any, raw: Any) -> Any:
        target = np.eye(N_TARGETS)[y] if y.ndim == 1 else y
        return 2 * (raw - target), 1.0 + np.abs(raw - target)

    case.params["objective"] = function


def shares(case: Case) -> None:
    levels = 2 if case.params.get("objective") == "quantile" else 1
    case.params["output_weight"] = np.repeat([1.0, 5.0, 0.5], levels)


def wrong_target(case: Case) -> None:
    case.y = np.where(np.arange(N_ROWS)[:, np.newaxis] == 7, 1000.0, case.y)
    case.params["bounded_influence"] = True


def quantiles(case: Case) -> None:
    case.params.update(objective="quantile", quantile_levels=[0.2, 0.8])
    if "output_weight" in case.params:
        shares(case)


REGRESSION, CLASSES, LABELS = ("regression",), ("classes",), ("labels",)
FEATURES: dict[str, Feature] = {
    "categories": Feature(param(categorical_features=[0]), options=(options.CATEGORIES,)),
    "missing values": Feature(with_gaps),
    "missing targets": Feature(with_missing_targets, ("regression", "labels"), (options.UNEVEN_CELLS,)),
    "sparse X": Feature(sparse_table, options=(options.SPARSE_TABLE,)),
    "sparse y": Feature(sparse_labels, LABELS, (options.SPARSE_LABELS, options.SPARSE_LEAVES)),
    "hashed labels": Feature(hashed_labels, LABELS, (options.LABEL_SPACE, options.SPARSE_LABELS)),
    "row weights": Feature(row_weights),
    "cell weights": Feature(
        cell_weights, ("regression", "labels"), (options.CELL_WEIGHTS, options.UNEVEN_CELLS)
    ),
    "class_weight": Feature(param(class_weight="balanced"), ("classes", "labels"), (options.CLASS_WEIGHT,)),
    "output_weight": Feature(shares, options=(options.OUTPUT_WEIGHT,)),
    "sketch": Feature(
        param(sketch="random_projection", sketch_size=2), options=(options.SKETCH, options.SKETCH_SIZE)
    ),
    "sparse leaves": Feature(param(sparse_leaves=2), options=(options.SPARSE_LEAVES,)),
    "unrestricted sparse leaves": Feature(
        param(sparse_leaves=2, sparse_mode="unrestricted"), options=(options.SPARSE_LEAVES,)
    ),
    "exact Hessian": Feature(param(hessian="exact"), CLASSES, (options.FULL_HESSIAN, options.EXACT_HESSIAN)),
    "exact leaf values": Feature(param(hessian="exact_leaf"), CLASSES, (options.FULL_HESSIAN,)),
    "shared Hessian": Feature(param(hessian="shared"), ("classes", "labels"), (options.SHARED_HESSIAN,)),
    "one output per tree": Feature(
        param(multi_strategy="one_output_per_tree"), options=(options.ONE_OUTPUT_PER_TREE,)
    ),
    "bounded influence": Feature(wrong_target, REGRESSION, (options.BOUNDED_INFLUENCE,)),
    "monotone": Feature(param(monotone_constraints=[0, 1, 0, 0]), options=(options.MONOTONE,)),
    "interaction": Feature(param(interaction_constraints=[[0], [1, 2], [3]]), options=(options.INTERACTION,)),
    "row sampling": Feature(param(subsample=0.6)),
    "gradient sampling": Feature(
        param(subsample=0.6, sampling_method="gradient_based"), options=(options.GRADIENT_SAMPLING,)
    ),
    "column sampling": Feature(param(colsample_bynode=0.5), options=(options.COLSAMPLE_BYNODE,)),
    "few leaves": Feature(param(max_leaves=6)),
    "exact split finding": Feature(param(max_bins=None), options=(options.MANY_BINS,)),
    "absolute error": Feature(
        param(objective="absolute_error"), REGRESSION, (options.LEAF_QUANTILES, options.NOT_SQUARED)
    ),
    "huber": Feature(
        param(objective="huber", huber_delta=0.5),
        REGRESSION,
        (options.OF_ONE_LOSS["huber_delta"][0], options.NOT_SQUARED),
    ),
    "quantile": Feature(
        quantiles,
        REGRESSION,
        (
            options.LEAF_QUANTILES,
            options.SEVERAL_QUANTILES,
            options.NOT_SQUARED,
            options.OF_ONE_LOSS["quantile_levels"][0],
        ),
    ),
    "poisson": Feature(param(objective="poisson"), REGRESSION, (options.NOT_SQUARED,)),
    "gamma": Feature(param(objective="gamma"), REGRESSION, (options.NOT_SQUARED,)),
    "tweedie": Feature(param(objective="tweedie"), REGRESSION, (options.NOT_SQUARED,)),
    "callable objective": Feature(own_objective, options=(options.NO_SOFTMAX, options.NOT_SQUARED)),
}
# Options that a kind of problem brings, whatever is asked for.
OPTIONS_OF_KIND: dict[str, tuple[Option, ...]] = {
    "regression": (options.NO_SOFTMAX,),
    "classes": (options.SOFTMAX, options.ONE_COLUMN_OF_CLASSES),
    "labels": (options.NO_SOFTMAX,),
}
LOSSES = (
    "absolute error",
    "huber",
    "quantile",
    "poisson",
    "gamma",
    "tweedie",
    "callable objective",
    "sparse y",
    "hashed labels",
)
HESSIANS = ("exact Hessian", "exact leaf values", "shared Hessian")

# Two features that set the same parameter are no pair: there is one loss, one Hessian, one weight argument.
EITHER_OR = [
    set(LOSSES),
    set(HESSIANS),
    {"row weights", "cell weights"},
    {"sparse leaves", "unrestricted sparse leaves", "sparse y"},
    {"row sampling", "gradient sampling"},
    {"missing values", "sparse X"},  # NaN in a sparse table: tests/table/test_sparse_input.py
    {"missing targets", "sparse y"},  # what is not stored is a 0
]


def fitted(case: Case) -> Any:
    estimator = PolyleafRegressor if case.kind == "regression" else PolyleafClassifier
    return estimator(**case.params).fit(case.X, case.y, case.sample_weight)


def outcome(case: Case) -> np.ndarray:
    """Return what a fitted model predicts on a fixed table, all of it finite."""
    model = fitted(case)
    assert (model._forest.left >= 0).any()
    table = plain(case.kind).X
    predicted = model.predict(table) if case.kind == "regression" else model.decision_function(table)
    assert np.isfinite(predicted).all()
    return np.asarray(predicted)


def case_of(kind: str, *names: str) -> Case:
    case = plain(kind)
    for name in FEATURES:  # in one order, whoever asks
        if name in names:
            FEATURES[name].apply(case)
    return case


def refusals(kind: str, *names: str, device: str = "cpu") -> set[str]:
    """Return the rows of the table of combinations that refuse these features together."""
    brought = {options.CUDA if device == "cuda" else options.CPU, *OPTIONS_OF_KIND[kind]}
    for name in names:
        brought.update(FEATURES[name].options)
    return {row.name for row in COMBINATIONS if {row.option, row.other} <= brought}
