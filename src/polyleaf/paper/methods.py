"""The methods the paper compares, behind one interface; here those that polyleaf itself provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.paper.problems import Array, Kind, Split
from polyleaf.paper.settings import GBDT_MO, GBDT_SO, GBDT_SPARSE, REG_LAMBDA, Growth
from polyleaf.paper.stopping import EitherImproves, best_round

Model = PolyleafClassifier | PolyleafRegressor


@dataclass(frozen=True)
class Effort:
    """How long to boost (`patient`: classes by the patient rule as well), and with how many threads."""

    max_rounds: int
    patience: int
    patient: bool
    threads: int


@dataclass(frozen=True)
class Outcome:
    """What a training with early stopping on the test rows reached.

    Attributes
    ----------
    score, n_trees : float, int
        Best accuracy (0 to 1) or root mean squared error on the test rows by the paper's rule, and the trees
        up to there, those of all outputs together.
    patient_score, patient_trees : float, int
        The same by the patient rule (see `polyleaf.paper.stopping`), None where training ended before;
        without classes there is one rule.
    n_rounds : int
        Rounds done; the largest number where outputs stop by themselves.
    seconds : float
        The whole fit, measuring the scores included.
    train_curve, test_curve : sequence of float
        Where asked for: training loss (cross entropy or RMSE) and test score after each round.
    """

    score: float
    n_trees: int
    patient_score: float | None
    patient_trees: int | None
    n_rounds: int
    seconds: float
    train_curve: Sequence[float] = ()
    test_curve: Sequence[float] = ()


@dataclass(frozen=True)
class Timing:
    """Seconds of a training round, and of predicting the test rows per round of the model."""

    train_seconds: float
    predict_seconds: float


class Method(ABC):
    """A way of training. `name` is what a report calls it."""

    name: str

    @abstractmethod
    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        """Train until the test score has not improved for `effort.patience` rounds."""

    @abstractmethod
    def time(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Timing:
        """Train a first round that does not count, then `rounds` that do, and predict the test rows."""


# --- scores ------------------------------------------------------------------------------------------------


def score(kind: Kind, y: Array, prediction: Array) -> float:
    """Return accuracy, top-1 accuracy or root mean squared error of scores or values, (rows, outputs)."""
    if kind == "regression":
        return float(np.sqrt(np.mean((prediction - y.astype(np.float64)) ** 2)))
    best = prediction.argmax(axis=1)
    if kind == "multiclass":
        return float(np.mean(best == y))
    return float(np.mean(y[np.arange(len(y)), best] == 1))


def outcome_of_classes(
    accuracy: Sequence[float],
    effort: Effort,
    trees_per_round: int,
    seconds: float,
    train_curve: Sequence[float] | None = None,
) -> Outcome:
    """Return what both rules make of the accuracies after each round."""
    errors = [1 - one for one in accuracy]
    paper, patient = best_round(errors, effort.patience), int(np.argmin(errors))
    return Outcome(
        accuracy[paper],
        trees_per_round * (paper + 1),
        accuracy[patient] if effort.patient else None,
        trees_per_round * (patient + 1) if effort.patient else None,
        len(accuracy),
        seconds,
        train_curve or (),
        accuracy if train_curve else (),
    )


def outcome_of_values(value: float, n_trees: int, n_rounds: int, seconds: float) -> Outcome:
    """Return an outcome where there is one rule."""
    return Outcome(value, n_trees, value, n_trees, n_rounds, seconds)


def predict_seconds(predict: Callable[[], object], rounds: int) -> float:
    """Return the median time of three predictions, per round of the model."""
    seconds = []
    for _ in range(3):
        begin = perf_counter()
        predict()
        seconds.append(perf_counter() - begin)
    return median(seconds) / rounds


# --- polyleaf's methods ------------------------------------------------------------------------------------


class _Estimator(Method):
    """One of polyleaf's estimators with the paper's choices and some options."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        return _fit_together(_model(kind, self._options), split, kind, growth, effort, curves)

    def time(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Timing:
        return _time(_model(kind, self._options), split, growth, rounds, threads, split.y_train)

    def grow(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Model:
        """Train some rounds and return the model."""
        model = _model(kind, self._options)
        model.set_params(**_parameters(growth, rounds, threads))
        return model.fit(split.x_train, split.y_train)


class JointTrees(_Estimator):
    """GBDT-MO: one tree a round for all outputs; options make its sparse and exact variants."""

    def __init__(self, name: str = GBDT_MO, **options: Any) -> None:
        super().__init__(name, **options)


class TreePerOutput(_Estimator):
    """GBDT-SO: one tree a round for each output. Outputs of a separable loss stop one by one."""

    def __init__(self) -> None:
        super().__init__(GBDT_SO, multi_strategy="one_output_per_tree")

    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        # A curve over rounds needs outputs that stop together.
        if kind == "multiclass" or curves:
            return super().fit(split, kind, growth, effort, curves=curves)
        prediction = np.empty(split.y_test.shape)
        n_trees = n_rounds = 0
        begin = perf_counter()
        for output in range(split.y_train.shape[1]):
            model = _model("regression", {})
            model.set_params(**_parameters(growth, effort.max_rounds, effort.threads))
            model.set_params(early_stopping_rounds=effort.patience, eval_metric="rmse")
            target = np.ascontiguousarray(split.y_test[:, output])
            model.fit(split.x_train, split.y_train[:, output], eval_set=[(split.x_test, target)])
            prediction[:, output] = model.predict(split.x_test)
            n_trees += model.best_iteration_ + 1
            n_rounds = max(n_rounds, model.n_estimators_)
        seconds = perf_counter() - begin
        return outcome_of_values(score(kind, split.y_test, prediction), n_trees, n_rounds, seconds)


class SparseLabels(Method):
    """GBDT-sparse: first-order trees on a sparse matrix of labels, k outputs a leaf; a class is one label."""

    name = GBDT_SPARSE

    def __init__(self, k: int, n_outputs: int) -> None:
        self._k = k
        self._n_outputs = n_outputs

    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        model = self._model()
        model.set_params(**_parameters(growth, effort.max_rounds, effort.threads))
        model.set_params(early_stopping_rounds=effort.patience, eval_metric="top1_accuracy")
        # Not as a sparse matrix: the forest is the same to the last bit, and with labels as few as here the
        # histograms of all of them take less time.
        y_train, y_test = (self._labels(y, kind).toarray() for y in (split.y_train, split.y_test))
        begin = perf_counter()
        model.fit(split.x_train, y_train, eval_set=[(split.x_test, y_test)])
        seconds = perf_counter() - begin
        accuracy = model.evals_result_["validation_0"]["top1_accuracy"]
        return outcome_of_classes(accuracy, effort, 1, seconds)

    def time(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Timing:
        return _time(self._model(), split, growth, rounds, threads, self._labels(split.y_train, kind))

    def _model(self) -> PolyleafClassifier:
        options: dict[str, Any] = {"objective": "clipped_squared_error", "sparse_leaves": self._k}
        return PolyleafClassifier(base_score=0.0, random_state=0, **options)

    def _labels(self, y: Array, kind: Kind) -> csr_array[Any]:
        if kind == "multilabel":
            return csr_array(y)
        shape = (len(y), self._n_outputs)
        return csr_array((np.ones(len(y)), y, np.arange(len(y) + 1)), shape=shape)


def _model(kind: Kind, options: dict[str, Any]) -> Model:
    """Return an estimator with the paper's choices: base score 0, p(1-p), targets not scaled, no bounds."""
    if kind == "multiclass":
        paper = {"hessian": "diagonal", "softmax_curvature": "p(1-p)", "sketch": None}
        return PolyleafClassifier(base_score=0.0, random_state=0, **{**paper, **options})
    of_paper: dict[str, Any] = {"scale_targets": False, "bounded_influence": False, "sketch": None}
    return PolyleafRegressor(base_score=0.0, random_state=0, **{**of_paper, **options})


def _parameters(growth: Growth, rounds: int, threads: int) -> dict[str, Any]:
    return {
        "n_estimators": rounds,
        "learning_rate": growth.learning_rate,
        "max_depth": growth.max_depth,
        "max_leaves": growth.max_leaves,
        "min_samples_leaf": growth.min_samples_leaf,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "max_bins": growth.max_bins,
        "min_split_gain": growth.min_split_gain,
        "reg_lambda": REG_LAMBDA,
        "n_jobs": threads,
    }


def _fit_together(
    model: Model, split: Split, kind: Kind, growth: Growth, effort: Effort, curves: bool
) -> Outcome:
    """Train one model with one stopping rule for all its outputs."""
    model.set_params(**_parameters(growth, effort.max_rounds, effort.threads))
    model.set_params(early_stopping_rounds=effort.patience)
    if isinstance(model, PolyleafClassifier):
        return _fit_classes(model, split, effort, curves)
    evals = [(split.x_test, split.y_test)]
    if curves:
        evals.insert(0, (split.x_train, split.y_train))
    begin = perf_counter()
    model.set_params(eval_metric="rmse").fit(split.x_train, split.y_train, eval_set=evals)
    seconds = perf_counter() - begin
    best = model.best_iteration_
    test_curve = model.evals_result_[f"validation_{len(evals) - 1}"]["rmse"]
    value = test_curve[best]
    if kind == "multilabel":
        value = score(kind, split.y_test, model.predict(split.x_test))
    outcome = outcome_of_values(value, (best + 1) * _trees_per_round(model), model.n_estimators_, seconds)
    if not curves:
        return outcome
    return replace(outcome, train_curve=model.evals_result_["validation_0"]["rmse"], test_curve=test_curve)


def _fit_classes(model: PolyleafClassifier, split: Split, effort: Effort, curves: bool) -> Outcome:
    # A row whose class has no training row cannot be predicted: it counts as wrong.
    known = np.isin(split.y_test, split.y_train)
    begin = perf_counter()
    model.set_params(eval_metric=["accuracy", EitherImproves()] if effort.patient else "accuracy")
    model.fit(split.x_train, split.y_train, eval_set=[(split.x_test[known], split.y_test[known])])
    seconds = perf_counter() - begin
    accuracy = [one * float(known.mean()) for one in model.evals_result_["validation_0"]["accuracy"]]
    train_curve = _cross_entropies(model, split.x_train, split.y_train) if curves else None
    return outcome_of_classes(accuracy, effort, _trees_per_round(model), seconds, train_curve)


def _cross_entropies(model: PolyleafClassifier, x: Array, y: Array) -> list[float]:
    codes = np.searchsorted(model.classes_, y)
    rows = np.arange(len(y))
    stages = model.staged_predict_proba(x, n_rounds=model.n_estimators_)
    return [float(-np.log(np.clip(stage[rows, codes], 1e-300, None)).mean()) for stage in stages]


def _trees_per_round(model: Model) -> int:
    return 1 if model.multi_strategy == "multi_output_tree" else model.n_outputs_


def _time(model: Model, split: Split, growth: Growth, rounds: int, threads: int, y: Any) -> Timing:
    """Time rounds by a metric that looks at the clock: binning and the first round stay out of it."""
    ends: list[float] = []

    def clock(_y: Array, _prediction: Array) -> float:
        ends.append(perf_counter())
        return 0.0

    model.set_params(**_parameters(growth, rounds + 1, threads), eval_metric=clock)
    model.fit(split.x_train, y, eval_set=[(split.x_train[:1], y[:1])])
    if isinstance(model, PolyleafClassifier):
        seconds = predict_seconds(lambda: model.decision_function(split.x_test), rounds + 1)
    else:
        seconds = predict_seconds(lambda: model.predict(split.x_test), rounds + 1)
    return Timing((ends[-1] - ends[0]) / rounds, seconds)
