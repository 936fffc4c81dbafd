"""Gradients and trees, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyleaf._core import BinnedMatrix, TreeOfRows
from polyleaf.data.binning import bin_table
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.arrays import Arrays, CpuArrays, FloatMatrix, RowMixtures
from polyleaf.growth.sampling import Sampler
from polyleaf.growth.structure import Hessian, StructurePlan
from polyleaf.growth.tree import Renewal, SparseLabels, Tree, TreeGrower, TreeRules
from polyleaf.losses import Loss
from polyleaf.losses.base import Gradients, OnTheWay
from polyleaf.metrics import Metric
from polyleaf.model.forest import Forest
from polyleaf.params.settings import Settings
from polyleaf.training.monitor import HostScores, Scores


def bin_data(data: Dataset, settings: Settings) -> BinnedMatrix:
    """Return the table of the training rows as bins."""
    return bin_table(data.X, data.weights.row, settings.max_bins, settings.n_threads, settings.categorical)


class Trainer:
    """Gradients and trees, round by round."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings, base: FloatArray) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self._base = base
        self._weight = data.weights.row
        self._cell = data.weights.cell
        self._cell_weight = None if data.weights.cell is None else data.weights.whole()
        self.unit, self._gain_weight = loss.scales(data.y, data.weights.whole(), base, settings.scale_targets)
        if settings.output_weight is not None:
            self._gain_weight = self._gain_weight * settings.output_weight
        joint = settings.multi_strategy == "multi_output_tree"
        self.trees_per_round = 1 if joint else loss.n_outputs
        arrays = self._arrays()
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
            arrays=arrays,
        )
        self._plan = StructurePlan(
            settings.sketch, settings.sketch_size, settings.hessian == "shared", settings.seed, arrays
        )
        self._leaf_of_row = np.empty(data.X.shape[0], dtype=np.uint32) if self._adds_later() else None
        self._last_tree: TreeOfRows | None = None  # that has not been added to the scores yet

    def _arrays(self) -> Arrays:
        """Return what computes with the gradients, where they are."""
        return CpuArrays(self._settings.n_threads)

    def _adds_later(self) -> bool:
        """Whether a round's tree is added to the scores by the next pass over them, which saves one."""
        return (
            self.trees_per_round == 1
            and self._settings.sparse_leaves is None
            and self._loss.leaf_levels is None  # for which the scores are needed while trees grow
        )

    def prepare(self, matrix: BinnedMatrix | None = None, initial: Forest | None = None) -> None:
        """Bin the table (unless it is binned already) and set up the scores."""
        settings = self._settings
        if matrix is None:
            matrix = bin_data(self._data, settings)
        self._grower = TreeGrower(matrix, TreeRules.of(settings), settings.learning_rate, settings.n_threads)
        self._start(initial)

    def _start(self, initial: Forest | None) -> None:
        if initial is None:
            self._raw = np.tile(self._base, (self._data.X.shape[0], 1))
        else:  # the same sums in the same order as in training
            self._raw = initial.predict_raw(self._data.X, n_threads=self._settings.n_threads)

    def round(self, number: int, learning_rate: float) -> list[tuple[Tree, int]]:
        """Grow one round's trees and add them to the training scores, now or later."""
        settings = self._settings
        mixtures = self._mixtures(number)
        gradient, hessian = self._gradients(mixtures)
        rows = self._sampler.rows(number, gradient, self._gain_weight, self._weight)
        features = self._sampler.features(number)
        width = self._loss.n_outputs // self.trees_per_round
        renewal = self._renewal()
        grown = []
        try:
            for first in range(0, self._loss.n_outputs, width):
                part = slice(first, first + width)
                of_tree = gradient[:, part]
                hessian_of_tree = hessian if hessian is None or isinstance(hessian, str) else hessian[:, part]
                scales: dict[str, Any] = {"gain_weight": self._gain_weight[part], "unit": self.unit[part]}
                scores: dict[str, Any] = {"leaf_of_row": self._leaf_of_row}
                if self._leaf_of_row is None:
                    scores = {"raw": self._raw[:, part]}
                structure = self._plan.make(
                    of_tree,
                    hessian_of_tree,
                    **scales,
                    number=number,
                    weight=self._weight,
                    mixtures=mixtures,
                )
                tree = self._grower.grow(
                    of_tree,
                    hessian_of_tree,
                    self._weight,
                    **scales,
                    **scores,
                    structure=structure,
                    label=self._data.y if settings.hessian in ("exact", "exact_leaf") else None,
                    rows=rows.rows,
                    sample_weight=rows.weight,
                    features=features,
                    learning_rate=learning_rate,
                    renewal=None if renewal is None else renewal.of_outputs(part),
                    monotone=None if settings.monotone is None else settings.monotone[:, part],
                )
                if self._leaf_of_row is not None:
                    self._last_tree = TreeOfRows(self._leaf_of_row, tree.values, self.unit)
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

    def _hessian_rule(self) -> str | None:
        """Return how the Hessian follows from the gradient, where no split looks at each output's own."""
        shared = self._settings.hessian == "shared" and self._cell is None
        return self._loss.hessian_rule if shared else None

    def _mixtures(self, number: int) -> RowMixtures | None:
        """Return what the pass that makes the gradients is to make of them for the structure."""
        rule = self._hessian_rule()
        if rule is None or self.trees_per_round > 1:
            return None
        return self._plan.mixtures(self._data.X.shape[0], self._gain_weight, rule, number)

    def _gradients(self, mixtures: RowMixtures | None) -> tuple[FloatMatrix, Hessian]:
        """Return gradient and Hessian, the latter by its rule where that is enough."""
        rule, cell = self._hessian_rule(), self._cell
        if rule is not None:
            return self._of_loss(mixtures, with_hessian=False)[0], rule
        gradient, hessian = self._of_loss(None, with_hessian=True)
        if cell is None:
            return gradient, hessian
        return gradient * cell, cell if hessian is None else hessian * cell

    def _of_loss(self, mixtures: RowMixtures | None, *, with_hessian: bool) -> Gradients:
        """Return the gradient of the loss at the present scores, and the Hessian if it is wanted."""
        tree, self._last_tree = self._last_tree, None
        return self._loss.gradients_with(
            OnTheWay(tree, None if mixtures is None else mixtures.core),
            self._data.y,
            self._raw,
            self._settings.n_threads,
            with_hessian=with_hessian,
        )

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""
        return HostScores(data, start, self._settings.n_threads)

    def measure(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return the first metric on the training rows."""
        if not metrics:
            return {}
        if self._last_tree is not None:
            self._last_tree.add_to(self._raw, self._settings.n_threads)
            self._last_tree = None
        prediction = self._loss.predict(self._raw, self._settings.n_threads)
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


class SparseTrainer(Trainer):
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
