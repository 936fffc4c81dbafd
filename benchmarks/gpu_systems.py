"""One adapter per library that boosts on an NVIDIA GPU: what a round costs with the binned data there.

Like the adapters of `systems.py`; but here the clock runs from the end of the last warm-up round to the end
of the last round, each time once the device has nothing left to do. Binning, copies to the device and the
compilation of kernels happen before that.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from systems import Array, System, TrainingTime, XGBoost
from works import LEARNING_RATE, REG_LAMBDA, Work

SKETCH_SIZE = 5


def cupy() -> Any:
    return importlib.import_module("cupy")


def wait_for_device() -> None:
    """Return when all that was started on the device, by whichever library, is done."""
    cupy().cuda.runtime.deviceSynchronize()


def release_memory() -> None:
    """Give the memory that nothing uses any more back to the device, for the next library."""
    gc.collect()
    cupy().get_default_memory_pool().free_all_blocks()
    cupy().get_default_pinned_memory_pool().free_all_blocks()


class RoundClock:
    """Notes when the last warm-up round and the last round ended. It starts when it is made."""

    def __init__(self, warm_up: int, rounds: int) -> None:
        self._warm_up = warm_up
        self._rounds = rounds
        self._done = 0
        self._ends: dict[int, float] = {}
        wait_for_device()
        self._start = perf_counter()

    def round_ended(self) -> None:
        self._done += 1
        if self._done in (self._warm_up, self._warm_up + self._rounds):
            wait_for_device()
            self._ends[self._done] = perf_counter()

    def time(self) -> TrainingTime:
        """Setup is what the way from the host's arrays to the end of the warm-up takes beyond its rounds."""
        if self._done != self._warm_up + self._rounds:
            raise RuntimeError(f"{self._done} rounds were boosted, not {self._warm_up + self._rounds}")
        warm, end = self._ends[self._warm_up], self._ends[self._done]
        per_round = (end - warm) / self._rounds
        return TrainingTime(max(warm - self._start - self._warm_up * per_round, 0.0), per_round)


class GpuSystem(System):
    """A library that trains on the device, with the settings of one work."""

    def train(self, X: Array, y: Array, warm_up: int, rounds: int) -> TrainingTime:
        clock = RoundClock(warm_up, rounds)
        self._boost(X, y, warm_up + rounds, clock)
        return clock.time()

    @abstractmethod
    def _boost(self, X: Array, y: Array, rounds: int, clock: RoundClock) -> None:
        """Train `rounds` rounds from arrays of the host; `clock` hears of the end of each."""

    @classmethod
    def applies(cls, work: Work) -> bool:
        """Whether this is something of its own on that work."""
        return True


class PolyleafGpu(GpuSystem):
    """All outputs in every split, each with its own Hessian."""

    package = "polyleaf"
    device: ClassVar[dict[str, Any]] = {"device": "cuda"}
    of_all: ClassVar[dict[str, Any]] = {"sketch": None}
    of_classifier: ClassVar[dict[str, Any]] = {"hessian": "diagonal"}

    def predict(self, X: Array) -> Array:
        if self.work.loss == "softmax":
            return np.asarray(self.model.predict_proba(X))
        return np.asarray(self.model.predict(X))

    def _boost(self, X: Array, y: Array, rounds: int, clock: RoundClock) -> None:
        settings: dict[str, Any] = {
            "n_estimators": rounds,
            "learning_rate": LEARNING_RATE,
            "max_depth": self.work.max_depth,
            "min_samples_leaf": self.work.min_samples_leaf,
            "colsample_bytree": 1.0,
            # Missing values have a bin beside these: 256 in all, as with the others.
            "max_bins": self.work.max_bins - 1,
            "reg_lambda": REG_LAMBDA,
            # After a round its trees are on the host: nothing runs on the device.
            "callbacks": [lambda _: clock.round_ended()],
            "n_jobs": self.threads,
            "random_state": 0,
            **self.device,
            **self.of_all,
        }
        if self.work.loss == "softmax":
            self.model = self.library.PolyleafClassifier(**settings, **self.of_classifier)
        else:
            self.model = self.library.PolyleafRegressor(**settings, scale_targets=False)
        self.model.fit(X, y)


class PolyleafGpuShared(PolyleafGpu):
    """The outputs of a row share one Hessian in the splits; leaf values still have each its own."""

    of_classifier: ClassVar[dict[str, Any]] = {"hessian": "shared"}

    @classmethod
    def applies(cls, work: Work) -> bool:
        return work.loss == "softmax"  # squared error's Hessian is 1 for every output anyway


class PolyleafGpuSketch(PolyleafGpu):
    """Splits found on five mixtures of the outputs, which share one Hessian."""

    of_all: ClassVar[dict[str, Any]] = {"sketch": "random_projection", "sketch_size": SKETCH_SIZE}
    of_classifier: ClassVar[dict[str, Any]] = {"hessian": "shared"}


class XGBoostGpu(GpuSystem, XGBoost):
    """One tree per output and round in a single booster."""

    device: ClassVar[str] = "cuda"

    def predict(self, X: Array) -> Array:
        # On the host: not every kind of its trees is predicted on the device in every version.
        self.model.set_param({"device": "cpu"})
        return np.asarray(self.model.inplace_predict(X))

    def _boost(self, X: Array, y: Array, rounds: int, clock: RoundClock) -> None:
        # From arrays of the device it bins there, once, before the first round.
        data = self.library.QuantileDMatrix(
            self._on_device(X), label=self._on_device(y), max_bin=self.work.max_bins, nthread=self.threads
        )
        self.model = self.library.Booster(self._settings(), [data])
        for i in range(rounds):
            self.model.update(data, i)
            clock.round_ended()
        used = json.loads(self.model.save_config())["learner"]["generic_param"]["device"]
        if not used.startswith(self.device):  # it goes on without a GPU, with a mere warning
            raise RuntimeError(f"XGBoost trained on {used}, not on {self.device}")

    def _settings(self) -> dict[str, Any]:
        settings = super()._settings() | {"device": self.device}
        # Level by level, as the others: best-first growth has only one node at a time for the whole device.
        return settings | {"grow_policy": "depthwise", "max_leaves": 0}

    def _on_device(self, array: Array) -> Any:
        return cupy().asarray(array)


class XGBoostMultiGpu(XGBoostGpu):
    """XGBoost's vector leaves."""

    multi_strategy = "multi_output_tree"


class PyBoost(GpuSystem):
    """All outputs in every split, each with its own Hessian."""

    package = "py_boost"

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))

    def _boost(self, X: Array, y: Array, rounds: int, clock: RoundClock) -> None:
        self.model = self._model(
            loss="crossentropy" if self.work.loss == "softmax" else "mse",
            ntrees=rounds,
            lr=LEARNING_RATE,
            lambda_l2=REG_LAMBDA,
            max_depth=self.work.max_depth,
            min_data_in_leaf=self.work.min_samples_leaf,
            max_bin=self.work.max_bins,
            es=0,
            verbose=rounds + 1,  # 0 is an error of its own
            callbacks=[_PyBoostClock(clock)],
        )
        with _quiet():
            self.model.fit(X, y)

    def _model(self, **settings: Any) -> Any:
        return self.library.GradientBoosting(**settings)


class PyBoostSketch(PyBoost):
    """Its own way to sketch, SketchBoost: splits found on five mixtures of the outputs, without Hessians."""

    def _model(self, **settings: Any) -> Any:
        return self.library.SketchBoost(sketch_method="proj", sketch_outputs=SKETCH_SIZE, **settings)


class _PyBoostClock:
    """Py-Boost callback that tells the clock when a round ended."""

    def __init__(self, clock: RoundClock) -> None:
        self._clock = clock

    def before_train(self, _: Any) -> None: ...

    def before_iteration(self, _: Any) -> None: ...

    def after_iteration(self, _: Any) -> bool:
        self._clock.round_ended()
        return False

    def after_train(self, _: Any) -> None: ...


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back what Py-Boost logs while it trains."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)


GPU_SYSTEMS: dict[str, type[GpuSystem]] = {
    "polyleaf_diagonal": PolyleafGpu,
    "polyleaf_shared": PolyleafGpuShared,
    "polyleaf_sketch": PolyleafGpuSketch,
    "xgboost_multi": XGBoostMultiGpu,
    "xgboost": XGBoostGpu,
    "py_boost": PyBoost,
    "py_boost_sketch": PyBoostSketch,
}
