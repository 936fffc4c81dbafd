"""One adapter per library: train a work with its settings, saying what setup and a round cost, then predict.

Every adapter boosts `warm_up` rounds that are not timed (first allocations, lazy configuration), then
`rounds` that are. A library is imported when its adapter is made, so that a process pays for one only.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from works import LEARNING_RATE, REG_LAMBDA, Work

Array = NDArray[Any]


@dataclass(frozen=True)
class TrainingTime:
    """Seconds from raw arrays to binned data, and seconds per boosting round over all outputs."""

    setup: float
    per_round: float


class System(ABC):
    """A library with the settings of one work."""

    package: ClassVar[str]

    def __init__(self, work: Work, threads: int) -> None:
        self.work = work
        self.threads = threads
        self.library: Any = importlib.import_module(self.package)

    @abstractmethod
    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        """Bin the rows and boost warm_up + rounds rounds; the model is kept for `predict`."""

    @abstractmethod
    def predict(self, X: Array) -> Array:
        """Class probabilities or target values, (rows, outputs), from all rounds trained."""


class Polyleaf(System):
    """All outputs in every split; the rest by default."""

    package = "polyleaf"
    of_classifier: ClassVar[dict[str, Any]] = {"sketch": None}
    histogram_precision: ClassVar[str] = "full"

    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        # The estimator's fit does everything at once, so a round comes from a long and a short fit. The first
        # fit of a process also pays for fresh memory and thread start: that belongs to setup, as with the
        # others, and would make the rounds look cheaper if the difference were taken from it.
        first, _ = self._fit(X, y, warm_up)
        short, _ = self._fit(X, y, warm_up)
        long, self.model = self._fit(X, y, warm_up + rounds)
        per_round = (long - short) / rounds
        return TrainingTime(max(first - warm_up * per_round, 0.0), per_round)

    def predict(self, X: Array) -> Array:
        if self.work.loss == "softmax":
            return np.asarray(self.model.predict_proba(X))
        return np.asarray(self.model.predict(X))

    def _fit(self, X: Array, y: Array, rounds: int) -> tuple[float, Any]:
        settings: dict[str, Any] = {
            "n_estimators": rounds,
            "learning_rate": LEARNING_RATE,
            "max_depth": self.work.max_depth,
            "max_leaves": self.work.max_leaves,
            "min_samples_leaf": self.work.min_samples_leaf,
            "colsample_bytree": 1.0,
            "max_bins": self.work.max_bins,
            "reg_lambda": REG_LAMBDA,
            "histogram_precision": self.histogram_precision,
            "n_jobs": self.threads,
        }
        if self.work.loss == "softmax":
            model = self.library.PolyleafClassifier(**settings, **self.of_classifier)
        else:
            model = self.library.PolyleafRegressor(**settings, scale_targets=False, sketch=None)
        gc.collect()
        start = perf_counter()
        model.fit(X, y)
        return perf_counter() - start, model


class PolyleafDiagonal(Polyleaf):
    """The paper's objective: a diagonal Hessian however many outputs there are."""

    of_classifier: ClassVar[dict[str, Any]] = {"sketch": None, "hessian": "diagonal"}


class PolyleafSketch(Polyleaf):
    """Splits found on five mixtures of the outputs."""

    of_classifier: ClassVar[dict[str, Any]] = {"sketch": "random_projection"}


class PolyleafPacked(Polyleaf):
    """Sums of 20 bits where they suit, gradients rounded at random."""

    histogram_precision = "packed"


class LightGBM(System):
    """One tree per output. Several targets: one booster each on a shared Dataset, their times added."""

    package = "lightgbm"
    extra: ClassVar[dict[str, Any]] = {}

    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        settings = self._settings()
        targets = [y] if self.work.loss == "softmax" else list(np.ascontiguousarray(y.T))
        start = perf_counter()
        data = self.library.Dataset(X, label=targets[0], params=settings).construct()
        setup = perf_counter() - start
        seconds = 0.0
        self.models: list[Any] = []
        for target in targets:
            # One after the other: boosters read the labels from the Dataset they share.
            data.set_label(target)
            booster = self.library.Booster(settings, data)
            for _ in range(warm_up):
                booster.update()
            start = perf_counter()
            for _ in range(rounds):
                booster.update()
            seconds += perf_counter() - start
            # As lightgbm.train does: keep the trees, let go of the training state (gradients, histograms).
            self.models.append(self.library.Booster(model_str=booster.model_to_string()))
        return TrainingTime(setup, seconds / rounds)

    def predict(self, X: Array) -> Array:
        predictions = [model.predict(X, num_threads=self.threads) for model in self.models]
        return np.asarray(predictions[0] if self.work.loss == "softmax" else np.column_stack(predictions))

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "objective": "regression",
            "learning_rate": LEARNING_RATE,
            "num_leaves": self.work.max_leaves,
            "max_depth": self.work.max_depth,
            "max_bin": self.work.max_bins,
            "min_data_in_leaf": self.work.min_samples_leaf,
            # Its default, far below the Hessian of min_data_in_leaf rows: it hardly binds. With 0, version
            # 4.7.0 stops on synth_d100 with an error of its own ("left_count > 0").
            "min_sum_hessian_in_leaf": 1e-3,
            "lambda_l2": REG_LAMBDA,
            "feature_pre_filter": False,
            "num_threads": self.threads,
            "verbosity": -1,
        }
        if self.work.loss == "softmax":
            settings |= {"objective": "multiclass", "num_class": self.work.n_outputs}
        return settings | self.extra


class LightGBMQuantized(LightGBM):
    """LightGBM with gradients rounded to a few integers (its defaults: 4 levels, stochastic rounding)."""

    extra: ClassVar[dict[str, Any]] = {"use_quantized_grad": True}


class XGBoost(System):
    """One tree per output and round in a single booster; several targets are a 2-D label."""

    package = "xgboost"
    multi_strategy: ClassVar[str] = "one_output_per_tree"

    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        start = perf_counter()
        # Binned here rather than in the first round, and the smaller of its two data structures.
        data = self.library.QuantileDMatrix(X, label=y, max_bin=self.work.max_bins, nthread=self.threads)
        setup = perf_counter() - start
        self.model = self.library.Booster(self._settings(), [data])
        for i in range(warm_up):
            self.model.update(data, i)
        start = perf_counter()
        for i in range(warm_up, warm_up + rounds):
            self.model.update(data, i)
        return TrainingTime(setup, (perf_counter() - start) / rounds)

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.inplace_predict(X))

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "objective": "reg:squarederror",
            "tree_method": "hist",
            "multi_strategy": self.multi_strategy,
            "grow_policy": "lossguide",
            "learning_rate": LEARNING_RATE,
            "max_leaves": self.work.max_leaves,
            "max_depth": self.work.max_depth,
            "max_bin": self.work.max_bins,
            "min_child_weight": self._min_child_weight(),
            "reg_lambda": REG_LAMBDA,
            "nthread": self.threads,
            "verbosity": 0,
        }
        if self.work.loss == "softmax":
            settings |= {"objective": "multi:softprob", "num_class": self.work.n_outputs}
        return settings

    def _min_child_weight(self) -> float:
        """The Hessian of min_samples_leaf rows: XGBoost bounds a leaf by its Hessian, not by its rows.

        Exact for squared error (1 a row). For softmax, whose Hessian it takes as 2p(1-p), it is the value at
        equal probabilities; in the first rounds that gives trees of about LightGBM's size. Later it binds
        more, as rows become certain: XGBoost is then spared work, not burdened.
        """
        if self.work.loss == "squared":
            return float(self.work.min_samples_leaf)
        p = 1 / self.work.n_outputs
        return self.work.min_samples_leaf * 2 * p * (1 - p)


class XGBoostMulti(XGBoost):
    """XGBoost's vector leaves."""

    multi_strategy = "multi_output_tree"


class CatBoost(System):
    """Vector leaves: MultiClass or MultiRMSE."""

    package = "catboost"

    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        start = perf_counter()
        data = self.library.Pool(X, label=y, thread_count=self.threads)
        data.quantize(border_count=self.work.max_bins - 1)
        setup = perf_counter() - start
        clock = _RoundClock()
        self.model = self.library.CatBoost(self._settings(warm_up + rounds))
        self.model.fit(data, callbacks=[clock])
        if len(clock.ends) != warm_up + rounds:
            raise RuntimeError(f"CatBoost boosted {len(clock.ends)} rounds, not {warm_up + rounds}")
        return TrainingTime(setup, (clock.ends[-1] - clock.ends[warm_up - 1]) / rounds)

    def predict(self, X: Array) -> Array:
        kind = "Probability" if self.work.loss == "softmax" else "RawFormulaVal"
        return np.asarray(self.model.predict(X, prediction_type=kind, thread_count=self.threads))

    def _settings(self, rounds: int) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "iterations": rounds,
            "learning_rate": LEARNING_RATE,
            "depth": self.work.max_depth,
            "border_count": self.work.max_bins - 1,
            "l2_leaf_reg": REG_LAMBDA,
            # Plain boosting on all rows with one Newton step a leaf, like everyone else here.
            "boosting_type": "Plain",
            "bootstrap_type": "No",
            "random_strength": 0.0,
            "leaf_estimation_iterations": 1,
            # No training metric: the others compute none.
            "metric_period": rounds,
            "thread_count": self.threads,
            "logging_level": "Silent",
            "allow_writing_files": False,
        }
        if self.work.loss == "squared":
            # Its other policies silently stop MultiRMSE after one split (1.2.10): full depth needs symmetric
            # trees, which share one split a level and are less work than the trees of the others.
            return settings | {"loss_function": "MultiRMSE", "grow_policy": "SymmetricTree"}
        return settings | {
            "loss_function": "MultiClass",
            "grow_policy": "Lossguide",
            "max_leaves": self.work.max_leaves,
            "min_data_in_leaf": self.work.min_samples_leaf,
        }


class _RoundClock:
    """CatBoost callback that notes when each round ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_iteration(self, _: Any) -> bool:
        self.ends.append(perf_counter())
        return True


SYSTEMS: dict[str, type[System]] = {
    "polyleaf": Polyleaf,
    "polyleaf_diagonal": PolyleafDiagonal,
    "polyleaf_sketch": PolyleafSketch,
    "lightgbm": LightGBM,
    "xgboost_multi": XGBoostMulti,
    "xgboost": XGBoost,
    "catboost": CatBoost,
    "polyleaf_packed": PolyleafPacked,
    "lightgbm_quantized": LightGBMQuantized,
}


def version(system: str) -> str | None:
    """The installed version of the library behind a system; None where it is not installed."""
    package = SYSTEMS[system].package
    for name in (package, f"{package}-cpu"):  # XGBoost without CUDA is a package of its own
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
