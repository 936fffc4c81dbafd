"""The boosting loop: the one place that knows data, losses, growth, model and metrics."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf._core import BinnedMatrix
from polyleaf.callbacks import CallbackError, CallbackList
from polyleaf.constraints import InteractionGroups, SignMatrix
from polyleaf.data.binning import bin_table
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_tables import SparseTable
from polyleaf.data.weights import Weights
from polyleaf.growth.sampling import Sampler
from polyleaf.growth.structure import FloatMatrix, Hessian, StructurePlan
from polyleaf.growth.tree import Renewal, SparseLabels, Tree, TreeGrower, TreeRules
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model import Forest
from polyleaf.training_state import TrainingState


@dataclass(frozen=True)
class Dataset:
    """Rows with coded targets, as the loss reads them.

    Attributes
    ----------
    name : str
        Key in ``evals_result_``.
    X : ndarray or csc_array of shape (rows, features)
        Any real dtype and strides.
    y : ndarray
        Class codes (int32), or float64 of shape (rows, outputs).
    weights : Weights
        Of rows and cells.
    """

    name: str
    X: Array | SparseTable
    y: Array
    weights: Weights

    def arrays(self) -> dict[str, Array | SparseTable | None]:
        """Return all values, by the names users know."""
        return {"X": self.X, "y": self.y, "sample_weight": self.weights.whole()}


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
    output_weight: FloatArray | None
    base_score: FloatArray | None
    categorical: npt.NDArray[np.uint8] | None
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
    error : BaseException or None
        What ended the run: KeyboardInterrupt, or whatever a callback raised.
    """

    forest: Forest
    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int
    error: BaseException | None = None


SaveCheckpoint = Callable[[str | os.PathLike[str], TrainingResult], None]


def train(
    data: Dataset,
    evals: Sequence[Dataset],
    loss: Loss,
    metrics: Sequence[Metric],
    settings: Settings,
    callbacks: Sequence[Any] = (),
    initial: Forest | None = None,
    save: SaveCheckpoint | None = None,
) -> TrainingResult:
    """Boost trees on `data`, measuring `metrics` on `evals` after each round.

    An interrupt (Ctrl-C) or an error in a callback ends the run with the rounds done so far; the caller
    decides what becomes of it. Any other error comes through.

    Parameters
    ----------
    data, evals, loss, metrics, settings
        What to train on, and how.
    callbacks : sequence
        See :mod:`polyleaf.callbacks`.
    initial : Forest or None
        Trees to begin with. ``settings.n_estimators`` counts their rounds, and the random choices go on from
        them: the rounds to come are those that a run of all rounds would do.
    save : callable or None
        Writes a checkpoint.
    """
    run = Run(data, evals, loss, metrics, settings, initial)

    def result(error: BaseException | None = None) -> TrainingResult:
        last = run.n_rounds - 1
        best = last if state.best_iteration is None else min(max(state.best_iteration, 0), last)
        return TrainingResult(run.forest(best), run.evals_result(), best, error)

    state = TrainingState(
        n_rounds=settings.n_estimators,
        n_done=run.n_rounds,
        learning_rate=settings.learning_rate,
        evals_result=run.history,
        greater_is_better={metric.name: metric.greater_is_better for metric in metrics},
        forest=run.forest,
        training_metric=run.training_metric,
        save=None if save is None else lambda path: save(path, result()),
    )
    calls = CallbackList(callbacks)
    error: BaseException | None = None
    try:
        calls.before_training(state)
    except CallbackError as failed:
        error = failed.error
    if error is not None:  # here, so that it keeps the causes it has
        raise error
    try:
        run.replay()
        while run.n_rounds < settings.n_estimators:
            state.begin_round()
            if calls.before_round(state):
                break
            run.step(state.learning_rate)
            state.n_done = run.n_rounds
            if calls.after_round(state):
                break
    except CallbackError as failed:
        error = failed.error
    except KeyboardInterrupt as interrupt:
        error = interrupt
    finally:
        state.n_done = run.n_rounds
        at_the_end = calls.after_training(state)
    if error is None and at_the_end is not None:
        error = at_the_end.error
    return result(error)


def bin_data(data: Dataset, settings: Settings) -> BinnedMatrix:
    """Return the table of the training rows as bins."""
    return bin_table(data.X, data.weights.row, settings.max_bins, settings.n_threads, settings.categorical)


class Run:
    """A forest in the making, and its metrics on the evaluation sets.

    Parameters
    ----------
    data, evals, loss, metrics, settings, initial
        As of :func:`train`.
    matrix : BinnedMatrix or None
        The table of `data` as bins; None: it is made before the first round.

    Attributes
    ----------
    history : dict
        ``{data set: {metric: [value after each round]}}``.
    n_rounds : int
        Rounds the forest has.
    """

    def __init__(
        self,
        data: Dataset,
        evals: Sequence[Dataset],
        loss: Loss,
        metrics: Sequence[Metric],
        settings: Settings,
        initial: Forest | None = None,
        matrix: BinnedMatrix | None = None,
    ) -> None:
        if initial is not None:
            base = initial.base_score
        elif settings.base_score is not None:
            base = settings.base_score
        else:
            base = loss.base_score(data.y, data.weights.whole())
        kind = _SparseTrainer if scipy.sparse.issparse(data.y) else _Trainer
        self._trainer = kind(data, loss, settings, base)
        if initial is not None and not np.array_equal(initial.unit, self._trainer.unit):
            raise ValueError(
                "the targets are of another size than those of the model to go on from: its leaf values are "
                f"in units of {initial.unit.max():g}, here they would be in {self._trainer.unit.max():g}."
            )
        self._monitor = _Monitor(evals, loss, metrics, settings, base, self._trainer.unit)
        self._metrics = metrics
        self._initial = initial
        self._matrix = matrix
        self._prepared = False
        self._trees: list[tuple[Tree, int]] = []
        self.history = self._monitor.history
        self.n_rounds = 0 if initial is None else initial.n_rounds

    def replay(self) -> None:
        """Measure the rounds that the forest began with."""
        if self._initial is not None:
            self._monitor.replay(self._initial)

    def step(self, learning_rate: float) -> None:
        """Do one round."""
        if not self._prepared:
            self._trainer.prepare(self._matrix, self._initial)
            self._prepared = True
        grown = self._trainer.round(self.n_rounds, learning_rate)
        if self.history:
            self._monitor.measure(self._trainer.forest_of(grown))
        self._trees.extend(grown)  # a round counts once it is measured
        self.n_rounds += 1

    def forest(self, best: int | None = None) -> Forest:
        """Return the trees of all rounds done, with each output's share of the gains up to round `best`.

        The shares are left out where the forest began with trees of another run.
        """
        grown = self._trainer.forest_of(self._trees)
        if self._initial is not None:
            return self._initial.followed_by(grown)
        n_rounds = grown.n_rounds if best is None else best + 1
        self._trainer.share_gains(grown, self._trees[: n_rounds * grown.trees_per_round])
        return grown

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the metrics of the rounds done."""
        return self._monitor.result(self.n_rounds)

    def training_metric(self) -> dict[str, float]:
        """Return the first metric on the training rows; nothing before the first round."""
        return self._trainer.measure(self._metrics) if self._prepared else {}


class _Trainer:
    """Gradients and trees, round by round."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings, base: FloatArray) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self._base = base
        self._weight = data.weights.row
        self._cell_weight = None if data.weights.cell is None else data.weights.whole()
        self.unit, self._gain_weight = loss.scales(data.y, data.weights.whole(), base, settings.scale_targets)
        if settings.output_weight is not None:
            self._gain_weight = self._gain_weight * settings.output_weight
        joint = settings.multi_strategy == "multi_output_tree"
        self.trees_per_round = 1 if joint else loss.n_outputs
        self._sampler = Sampler(
            n_rows=data.X.shape[0],
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

    def prepare(self, matrix: BinnedMatrix | None = None, initial: Forest | None = None) -> None:
        """Bin the table (unless it is binned already) and set up the scores."""
        settings = self._settings
        if matrix is None:
            matrix = bin_data(self._data, settings)
        self._grower = TreeGrower(matrix, settings.rules(), settings.learning_rate, settings.n_threads)
        self._start(initial)

    def _start(self, initial: Forest | None) -> None:
        if initial is None:
            self._raw = np.tile(self._base, (self._data.X.shape[0], 1))
        else:  # the same sums in the same order as in training
            self._raw = initial.predict_raw(self._data.X, n_threads=self._settings.n_threads)

    def round(self, number: int, learning_rate: float) -> list[tuple[Tree, int]]:
        """Grow one round's trees and add them to the training scores."""
        settings = self._settings
        gradient, hessian = self._gradients()
        rows = self._sampler.rows(number, gradient, self._gain_weight, self._weight, settings.n_threads)
        features = self._sampler.features(number)
        width = self._loss.n_outputs // self.trees_per_round
        renewal = self._renewal()
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
                    self._weight,
                    **scales,
                    structure=self._plan.make(
                        of_tree,
                        hessian_of_tree,
                        **scales,
                        number=number,
                        n_threads=settings.n_threads,
                        weight=self._weight,
                    ),
                    label=self._data.y if settings.hessian in ("exact", "exact_leaf") else None,
                    raw=self._raw[:, part],
                    rows=rows.rows,
                    sample_weight=rows.weight,
                    features=features,
                    learning_rate=learning_rate,
                    renewal=None if renewal is None else renewal.of_outputs(part),
                    monotone=None if settings.monotone is None else settings.monotone[:, part],
                )
                grown.append((tree, first))
        except OverflowError as error:
            raise ValueError(
                f"round {number}: {error}: targets or weights are too large, or learning_rate is"
            ) from error
        return grown

    def _renewal(self) -> Renewal | None:
        """Return which leaf values come from the residuals."""
        if self._loss.leaf_levels is None:
            return None
        return Renewal(self._loss.leaf_levels, self._data.y, self._loss.target_columns(), self._cell_weight)

    def _gradients(self) -> tuple[FloatMatrix, Hessian]:
        """Return gradient and Hessian; the latter by its rule where no split looks at each output's own."""
        loss, n_threads = self._loss, self._settings.n_threads
        cell = self._data.weights.cell
        if cell is None and loss.hessian_rule is not None and self._settings.hessian == "shared":
            return loss.gradient(self._data.y, self._raw, n_threads), loss.hessian_rule
        gradient, hessian = loss.gradients(self._data.y, self._raw, n_threads)
        if cell is None:
            return gradient, hessian
        return gradient * cell, cell if hessian is None else hessian * cell

    def measure(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return the first metric on the training rows."""
        if not metrics:
            return {}
        prediction = self._loss.predict(self._raw)
        weight = self._data.weights.whole()
        return {f"training {metrics[0].name}": metrics[0].function(self._data.y, prediction, weight)}

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

    def _start(self, initial: Forest | None) -> None:
        y: Any = self._data.y
        self._labels = SparseLabels(y.indptr, y.indices, self._loss.n_outputs)
        if initial is not None:
            initial.add_to_sparse(self._data.X, self._labels, self._settings.n_threads)

    def round(self, number: int, learning_rate: float) -> list[tuple[Tree, int]]:
        """Grow one round's tree and add it to the training scores."""
        tree = self._grower.grow_sparse(
            self._labels,
            self._weight,
            rows=self._sampler.uniform_rows(number).rows,
            features=self._sampler.features(number),
            learning_rate=learning_rate,
        )
        return [(tree, 0)]

    def measure(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return nothing: the predictions of all training rows would be dense."""
        return {}


@dataclass
class _Monitor:
    """Metrics on the evaluation sets."""

    evals: Sequence[Dataset]
    loss: Loss
    metrics: Sequence[Metric]
    settings: Settings
    base: FloatArray
    unit: FloatArray
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights = [data.weights.whole() for data in self.evals]
        self._scores = [np.tile(self.base / self.unit, (data.X.shape[0], 1)) for data in self.evals]
        self.history = {data.name: {metric.name: [] for metric in self.metrics} for data in self.evals}

    def measure(self, latest_round: Forest) -> None:
        self._add(latest_round, 0)

    def replay(self, forest: Forest) -> None:
        for number in range(forest.n_rounds if self.evals else 0):
            self._add(forest, number)

    def _add(self, forest: Forest, number: int) -> None:
        for data, weight, score in zip(self.evals, self._weights, self._scores, strict=True):
            forest.add_round_to(data.X, number, score, self.settings.n_threads)
            prediction = self.loss.predict(score * self.unit)
            for metric in self.metrics:
                value = metric.function(data.y, prediction, weight)
                self.history[data.name][metric.name].append(value)

    def result(self, n_rounds: int) -> dict[str, dict[str, list[float]]]:
        return {
            name: {metric: values[:n_rounds] for metric, values in by_metric.items()}
            for name, by_metric in self.history.items()
        }
