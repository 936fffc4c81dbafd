"""The boosting loop: the one place that knows data, losses, growth, model and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.constraints import InteractionGroups, SignMatrix
from polyleaf.data.binning import bin_table
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.growth.sampling import Sampler
from polyleaf.growth.structure import FloatMatrix, Hessian, StructurePlan
from polyleaf.growth.tree import SparseLabels, Tree, TreeGrower, TreeRules
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model import Forest
from polyleaf.progress import Progress


@dataclass(frozen=True)
class Dataset:
    """Rows with coded targets, as the loss reads them.

    Attributes
    ----------
    name : str
        Key in ``evals_result_``.
    X : ndarray of shape (rows, features)
        Any real dtype and strides.
    y : ndarray
        Class codes (int32), or float64 of shape (rows, outputs).
    weight : float64 ndarray of shape (rows,) or None
        Positive.
    """

    name: str
    X: Array
    y: Array
    weight: FloatArray | None


@dataclass(frozen=True)
class Settings:
    """The parameters of a run, checked and with every default filled in."""

    n_estimators: int
    learning_rate: float
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: int
    max_bins: int | None
    reg_lambda: float
    reg_alpha: float
    min_split_gain: float
    min_child_weight: float
    subsample: float
    sampling_method: str
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    multi_strategy: str
    sparse_leaves: int | None
    sparse_mode: str
    sketch: str | None
    sketch_size: int
    hessian: str
    scale_targets: bool
    base_score: FloatArray | None
    early_stopping_rounds: int | None
    seed: int
    n_threads: int
    monotone: SignMatrix | None = None
    interaction: InteractionGroups | None = None

    def rules(self) -> TreeRules:
        """Return the part that growth needs."""
        return TreeRules(
            max_depth=self.max_depth,
            max_leaves=self.max_leaves,
            min_samples_leaf=self.min_samples_leaf,
            min_split_gain=self.min_split_gain,
            min_child_weight=self.min_child_weight,
            reg_lambda=self.reg_lambda,
            reg_alpha=self.reg_alpha,
            sparse_leaves=self.sparse_leaves,
            sparse_mode=self.sparse_mode,
            hessian=self.hessian,
        )


@dataclass
class TrainingResult:
    """What a run leaves behind.

    Attributes
    ----------
    forest : Forest
        All rounds done.
    evals_result : dict
        ``{data set: {metric: [value after each round]}}``.
    best_iteration : int
        Round (from 0) with the best watched value if there is early stopping, else the last; -1: no round.
    interrupted : bool
        KeyboardInterrupt ended the run.
    """

    forest: Forest
    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int
    interrupted: bool = False


def train(
    data: Dataset,
    evals: Sequence[Dataset],
    loss: Loss,
    metrics: Sequence[Metric],
    settings: Settings,
    progress: Progress,
) -> TrainingResult:
    """Boost trees on `data`, measuring `metrics` on `evals` after each round.

    Early stopping watches the last metric of the last data set. An interrupt (Ctrl-C) ends the run with the
    rounds done so far; the caller decides what becomes of it.
    """
    base = loss.base_score(data.y, data.weight) if settings.base_score is None else settings.base_score
    kind = _SparseTrainer if scipy.sparse.issparse(data.y) else _Trainer
    trainer = kind(data, loss, settings, base)
    monitor = _Monitor(evals, loss, metrics, settings, base, trainer.unit)
    trees: list[tuple[Tree, int]] = []
    interrupted = False
    try:
        trainer.prepare()
        for number in range(settings.n_estimators):
            grown = trainer.round(number)
            if evals:
                monitor.measure(trainer.forest_of(grown))
            trees.extend(grown)  # a round counts once it is measured
            progress.update(monitor.latest() or trainer.measure(metrics, progress.wants_training_metric))
            if monitor.should_stop():
                break
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.close()
    forest = trainer.forest_of(trees)
    best_iteration = monitor.best_iteration(forest.n_rounds)
    trainer.share_gains(forest, trees[: (best_iteration + 1) * forest.trees_per_round])
    return TrainingResult(forest, monitor.result(forest.n_rounds), best_iteration, interrupted)


class _Trainer:
    """Gradients and trees, round by round."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings, base: FloatArray) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self._base = base
        self.unit, self._gain_weight = loss.scales(data.y, data.weight, base, settings.scale_targets)
        joint = settings.multi_strategy == "multi_output_tree"
        self.trees_per_round = 1 if joint else loss.n_outputs
        self._sampler = Sampler(
            n_rows=len(data.X),
            n_features=data.X.shape[1],
            seed=settings.seed,
            subsample=settings.subsample,
            gradient_based=settings.sampling_method == "gradient_based",
            bytree=settings.colsample_bytree,
            bylevel=settings.colsample_bylevel,
            bynode=settings.colsample_bynode,
            groups=settings.interaction,
        )
        self._plan = StructurePlan(
            settings.sketch, settings.sketch_size, settings.hessian == "shared", settings.seed
        )

    def prepare(self) -> None:
        """Bin the table and set up the scores."""
        settings = self._settings
        matrix = bin_table(self._data.X, self._data.weight, settings.max_bins, settings.n_threads)
        self._grower = TreeGrower(matrix, settings.rules(), settings.learning_rate, settings.n_threads)
        self._start()

    def _start(self) -> None:
        self._raw = np.tile(self._base, (len(self._data.X), 1))

    def round(self, number: int) -> list[tuple[Tree, int]]:
        """Grow one round's trees and add them to the training scores."""
        settings = self._settings
        gradient, hessian = self._gradients()
        rows = self._sampler.rows(number, gradient, self._gain_weight, self._data.weight, settings.n_threads)
        features = self._sampler.features(number)
        width = self._loss.n_outputs // self.trees_per_round
        grown = []
        try:
            for first in range(0, self._loss.n_outputs, width):
                part = slice(first, first + width)
                of_tree = gradient[:, part]
                hessian_of_tree = hessian[:, part] if isinstance(hessian, np.ndarray) else hessian
                scales = {"gain_weight": self._gain_weight[part], "unit": self.unit[part]}
                tree = self._grower.grow(
                    of_tree,
                    hessian_of_tree,
                    self._data.weight,
                    **scales,
                    structure=self._plan.make(
                        of_tree, hessian_of_tree, **scales, number=number, n_threads=settings.n_threads
                    ),
                    label=self._data.y if settings.hessian in ("exact", "exact_leaf") else None,
                    raw=self._raw[:, part],
                    rows=rows.rows,
                    sample_weight=rows.weight,
                    features=features,
                    monotone=None if settings.monotone is None else settings.monotone[:, part],
                )
                grown.append((tree, first))
        except OverflowError as error:
            raise ValueError(
                f"round {number}: {error}: targets or weights are too large, or learning_rate is"
            ) from error
        return grown

    def _gradients(self) -> tuple[FloatMatrix, Hessian]:
        """Return gradient and Hessian; the latter by its rule where no split looks at each output's own."""
        loss, n_threads = self._loss, self._settings.n_threads
        if loss.hessian_rule is not None and self._settings.hessian == "shared":
            return loss.gradient(self._data.y, self._raw, n_threads), loss.hessian_rule
        return loss.gradients(self._data.y, self._raw, n_threads)

    def measure(self, metrics: Sequence[Metric], wanted: bool) -> dict[str, float]:
        """Return the first metric on the training rows, if wanted."""
        if not wanted or not metrics:
            return {}
        prediction = self._loss.predict(self._raw)
        return {
            f"training {metrics[0].name}": metrics[0].function(self._data.y, prediction, self._data.weight)
        }

    def forest_of(self, trees: Sequence[tuple[Tree, int]]) -> Forest:
        """Return the forest of some trees of this run."""
        return Forest.from_trees(
            trees,
            n_features=self._data.X.shape[1],
            trees_per_round=self.trees_per_round,
            base_score=self._base,
            unit=self.unit,
        )

    def share_gains(self, forest: Forest, trees: Sequence[tuple[Tree, int]]) -> None:
        """Tell the forest what each output gains by each feature in these trees, where they know it."""
        features = [tree.gain_feature for tree, _ in trees if tree.gain_feature is not None]
        gains = [tree.output_gain for tree, _ in trees if tree.output_gain is not None]
        if len(features) < len(trees) or not trees:
            return
        used, row = np.unique(np.concatenate(features), return_inverse=True)
        total = np.zeros((len(used), self._loss.n_outputs))
        if self.trees_per_round == 1:
            np.add.at(total, row, np.concatenate(gains))
        else:
            output = np.repeat([first for _, first in trees], [len(of_tree) for of_tree in features])
            np.add.at(total, (row, output), np.concatenate(gains)[:, 0])
        largest = np.finfo(np.float32).max
        total = np.clip(np.nan_to_num(total * self._gain_weight), -largest, largest)
        forest.gain_feature = used
        forest.output_gain = total.astype(np.float32).ravel()


class _SparseTrainer(_Trainer):
    """The same with sparse labels: scores and gradients live in the core, and are never made dense."""

    def _start(self) -> None:
        y: Any = self._data.y
        self._labels = SparseLabels(y.indptr, y.indices, self._loss.n_outputs)

    def round(self, number: int) -> list[tuple[Tree, int]]:
        """Grow one round's tree and add it to the training scores."""
        rows = self._sampler.uniform_rows(number).rows
        features = self._sampler.features(number)
        return [(self._grower.grow_sparse(self._labels, self._data.weight, rows=rows, features=features), 0)]

    def measure(self, metrics: Sequence[Metric], wanted: bool) -> dict[str, float]:
        """Return nothing: the predictions of all training rows would be dense."""
        return {}


@dataclass
class _Monitor:
    """Metrics on the evaluation sets, and when to stop."""

    evals: Sequence[Dataset]
    loss: Loss
    metrics: Sequence[Metric]
    settings: Settings
    base: FloatArray
    unit: FloatArray
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scores = [np.tile(self.base / self.unit, (len(data.X), 1)) for data in self.evals]
        self.history = {data.name: {metric.name: [] for metric in self.metrics} for data in self.evals}

    def measure(self, latest_round: Forest) -> None:
        for data, score in zip(self.evals, self._scores, strict=True):
            latest_round.add_to(data.X, score, self.settings.n_threads)
            prediction = self.loss.predict(score * self.unit)
            for metric in self.metrics:
                self.history[data.name][metric.name].append(metric.function(data.y, prediction, data.weight))

    def latest(self) -> dict[str, float]:
        return {
            f"{name} {metric}": values[-1]
            for name, by_metric in self.history.items()
            for metric, values in by_metric.items()
        }

    def should_stop(self) -> bool:
        patience = self.settings.early_stopping_rounds
        if patience is None:
            return False
        n_rounds = len(self._watched())
        return n_rounds - 1 - self.best_iteration(n_rounds) >= patience

    def best_iteration(self, n_rounds: int) -> int:
        if self.settings.early_stopping_rounds is None or n_rounds == 0:
            return n_rounds - 1
        values = np.array(self._watched()[:n_rounds])
        if self.metrics[-1].greater_is_better:
            values = -values
        return int(np.argmin(np.where(np.isnan(values), np.inf, values)))

    def result(self, n_rounds: int) -> dict[str, dict[str, list[float]]]:
        return {
            name: {metric: values[:n_rounds] for metric, values in by_metric.items()}
            for name, by_metric in self.history.items()
        }

    def _watched(self) -> list[float]:
        return self.history[self.evals[-1].name][self.metrics[-1].name]
