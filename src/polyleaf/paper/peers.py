"""XGBoost and LightGBM with the paper's settings: one tree per output and round."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import lightgbm
import numpy as np
import xgboost

from polyleaf.paper.methods import (
    Effort,
    Method,
    Outcome,
    Timing,
    outcome_of_classes,
    outcome_of_values,
    predict_seconds,
    score,
)
from polyleaf.paper.problems import Array, Kind, Split
from polyleaf.paper.settings import LIGHTGBM, REG_LAMBDA, XGBOOST, Growth
from polyleaf.paper.stopping import Watch, best_round

# Both libraries' gains lack the factor 1/2 of the paper's.
_GAIN_FACTOR = 2.0


def _targets(split: Split, kind: Kind) -> list[tuple[Array, Array]]:
    """Return the (training, test) labels of each model to train: all classes at once, targets one by one."""
    if kind == "multiclass":
        return [(split.y_train, split.y_test)]
    return [
        (np.ascontiguousarray(split.y_train[:, j]), np.ascontiguousarray(split.y_test[:, j]))
        for j in range(split.y_train.shape[1])
    ]


# The losses of the test rows after each round, by the library's name for them; and predictions by round.
_Losses = dict[str, list[float]]
_Predict = Callable[[int], Array]


def _fit_each(
    split: Split,
    kind: Kind,
    n_outputs: int,
    effort: Effort,
    train: Callable[[Array, Array], tuple[_Losses, _Predict]],
) -> Outcome:
    """Train all models, one after the other, and return the outcome."""
    begin = perf_counter()
    if kind == "multiclass":
        losses, _ = train(split.y_train, split.y_test)
        error = losses.get("multi_error") or losses["merror"]
        accuracy = [1 - one for one in error]
        return outcome_of_classes(accuracy, effort, n_outputs, perf_counter() - begin)
    prediction = np.empty(split.y_test.shape)
    n_trees = n_rounds = 0
    for output, (y_train, y_test) in enumerate(_targets(split, kind)):
        losses, predict = train(y_train, y_test)
        best = best_round(losses["rmse"], effort.patience)
        prediction[:, output] = predict(best + 1)
        n_trees += best + 1
        n_rounds = max(n_rounds, len(losses["rmse"]))
    value = score(kind, split.y_test, prediction)
    return outcome_of_values(value, n_trees, n_rounds, perf_counter() - begin)


class _StopLightGBM:
    """A callback that ends training when none of the test losses has improved for a while."""

    order = 30  # after the one that records

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._watch = Watch()

    def __call__(self, env: Any) -> None:
        self._watch.update([result[2] for result in env.evaluation_result_list])
        if self._watch.rounds_without >= self._patience:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)


class _StopXGBoost(xgboost.callback.TrainingCallback):  # type: ignore[misc, unused-ignore]
    """The same for XGBoost."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self._patience = patience
        self._watch = Watch()

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self._watch.update([values[-1] for values in evals_log["test"].values()])
        return self._watch.rounds_without >= self._patience


class LightGBM(Method):
    """LightGBM; several targets: one booster each on a shared data set."""

    name = LIGHTGBM

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs

    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        settings = self._settings(kind, growth, effort.threads, patient=effort.patient)
        data = lightgbm.Dataset(split.x_train, params=settings, free_raw_data=False)
        test = lightgbm.Dataset(split.x_test, reference=data, params=settings, free_raw_data=False)

        def train(y_train: Array, y_test: Array) -> tuple[_Losses, _Predict]:
            data.set_label(y_train)
            test.set_label(y_test)
            recorded: dict[str, _Losses] = {}
            record: Callable[..., Any] = lightgbm.record_evaluation(recorded)
            model = lightgbm.train(
                settings,
                data,
                effort.max_rounds,
                valid_sets=[test],
                valid_names=["test"],
                callbacks=[record, _StopLightGBM(effort.patience)],
            )
            return recorded["test"], lambda rounds: np.asarray(model.predict(split.x_test, 0, rounds))

        return _fit_each(split, kind, self._n_outputs, effort, train)

    def time(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Timing:
        settings = self._settings(kind, growth, threads)
        targets = _targets(split, kind)
        data = lightgbm.Dataset(split.x_train, label=targets[0][0], params=settings).construct()
        seconds = 0.0
        models = []
        for y, _ in targets:
            # One after the other: boosters read the labels from the data set they share.
            data.set_label(y)
            booster = lightgbm.Booster(settings, data)
            booster.update()
            begin = perf_counter()
            for _round in range(rounds):
                booster.update()
            seconds += perf_counter() - begin
            models.append(lightgbm.Booster(model_str=booster.model_to_string()))

        def predict() -> None:
            for model in models:
                model.predict(split.x_test, raw_score=True, num_threads=threads)

        return Timing(seconds / rounds, predict_seconds(predict, rounds + 1))

    def _settings(self, kind: Kind, growth: Growth, threads: int, *, patient: bool = True) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "objective": "regression",
            "metric": "rmse",
            "learning_rate": growth.learning_rate,
            "max_depth": growth.max_depth,
            "num_leaves": growth.max_leaves,
            "min_data_in_leaf": growth.min_samples_leaf,
            "max_bin": growth.max_bins,
            "min_gain_to_split": _GAIN_FACTOR * growth.min_split_gain,
            "lambda_l2": REG_LAMBDA,
            "feature_pre_filter": False,
            "num_threads": threads,
            "verbosity": -1,
        }
        if kind == "multiclass":
            settings |= {
                "objective": "multiclass",
                "num_class": self._n_outputs,
                "metric": ["multi_error", "multi_logloss"] if patient else ["multi_error"],
            }
        return settings


class XGBoost(Method):
    """XGBoost; several targets: one booster each where they stop one by one, a single one in the timings."""

    name = XGBOOST

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs

    def fit(self, split: Split, kind: Kind, growth: Growth, effort: Effort, *, curves: bool) -> Outcome:
        settings = self._settings(kind, growth, effort.threads, patient=effort.patient)
        data = self._data(split.x_train, growth, effort.threads)
        test = self._data(split.x_test, growth, effort.threads, data)

        def train(y_train: Array, y_test: Array) -> tuple[_Losses, _Predict]:
            data.set_label(y_train)
            test.set_label(y_test)
            recorded: dict[str, _Losses] = {}
            model = xgboost.train(
                settings,
                data,
                effort.max_rounds,
                evals=[(test, "test")],
                evals_result=recorded,
                verbose_eval=False,
                callbacks=[_StopXGBoost(effort.patience)],
            )
            return recorded["test"], lambda rounds: model.predict(test, iteration_range=(0, rounds))

        return _fit_each(split, kind, self._n_outputs, effort, train)

    def time(self, split: Split, kind: Kind, growth: Growth, rounds: int, threads: int) -> Timing:
        data = self._data(split.x_train, growth, threads)
        data.set_label(split.y_train)
        model = xgboost.Booster(self._settings(kind, growth, threads), [data])
        model.update(data, 0)
        begin = perf_counter()
        for i in range(1, rounds + 1):
            model.update(data, i)
        seconds = (perf_counter() - begin) / rounds
        margin = predict_seconds(
            lambda: model.inplace_predict(split.x_test, predict_type="margin"), rounds + 1
        )
        return Timing(seconds, margin)

    @staticmethod
    def _data(x: Array, growth: Growth, threads: int, reference: Any = None) -> Any:
        return xgboost.QuantileDMatrix(x, max_bin=growth.max_bins, nthread=threads, ref=reference)

    def _settings(self, kind: Kind, growth: Growth, threads: int, *, patient: bool = True) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "objective": "reg:squarederror",
            "eval_metric": "rmse",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "learning_rate": growth.learning_rate,
            "max_depth": growth.max_depth,
            "max_leaves": growth.max_leaves,
            "max_bin": growth.max_bins,
            # XGBoost bounds a leaf by its Hessian, not by its rows: the Hessian of that many rows, which is 1
            # a row for squared error, and for softmax (where XGBoost takes 2p(1-p)) that at equal odds.
            "min_child_weight": growth.min_samples_leaf,
            "gamma": _GAIN_FACTOR * growth.min_split_gain,
            "reg_lambda": REG_LAMBDA,
            "nthread": threads,
            "verbosity": 0,
        }
        if kind == "multiclass":
            p = 1 / self._n_outputs
            settings |= {
                "objective": "multi:softprob",
                "num_class": self._n_outputs,
                "eval_metric": ["merror", "mlogloss"] if patient else ["merror"],
                "min_child_weight": growth.min_samples_leaf * 2 * p * (1 - p),
            }
        return settings
