"""What training asks of a device, and the CPU's answers; those of a GPU are in :mod:`polyleaf.gpu.device`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from polyleaf._core import BinnedMatrix
from polyleaf.data import memory
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.data.mapped_array import mapped_array
from polyleaf.growth.arrays import Arrays, CpuArrays
from polyleaf.growth.contract import Grower, settings_of
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.label_hashed import HashedScorePass, LabelHashedGrower, LabelMixtures
from polyleaf.growth.label_sparse import LabelScorePass, LabelSparseGrower, SparseLabels
from polyleaf.growth.score_pass import CpuScorePass, PassPlan, ScorePass
from polyleaf.losses import Loss
from polyleaf.model.forest import Forest
from polyleaf.model.scores import HostScores, LabelScores, Scores
from polyleaf.params.settings import Settings
from polyleaf.training.run_memory import needs_of, possible_savings


class Device(Protocol):
    """Where the table, the scores and the growing trees of a run are."""

    @property
    def arrays(self) -> Arrays:
        """What computes with gradients."""

    def grower(self, matrix: BinnedMatrix | None) -> Grower:
        """Return what grows trees on the table, which is binned first where that is not done yet."""

    def score_pass(
        self, plan: PassPlan, base: FloatArray, initial: Forest | None, known: FloatArray | None = None
    ) -> ScorePass:
        """Return the scores of the training rows, which begin with `base` or with a forest.

        The `scales` of the loss have been asked for. `known` are the scores by that forest of the first rows,
        which are binned; they are changed from now on.
        """

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""


class CpuDevice:
    """The CPU.

    Parameters
    ----------
    data, loss, settings
        What a run trains on, and how.
    """

    def __init__(self, data: Dataset, loss: Loss, settings: Settings) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self.arrays = CpuArrays(settings.n_threads)

    def grower(self, matrix: BinnedMatrix | None) -> Grower:
        """Return what grows trees on the table, which is binned first where that is not done yet."""
        if matrix is None:
            matrix = bin_data(self._data, self._settings, self._settings.min_samples_leaf)
        return self._grower_on(matrix)

    def _grower_on(self, matrix: BinnedMatrix) -> Grower:
        return DenseGrower(matrix, settings_of(self._settings))

    def score_pass(
        self, plan: PassPlan, base: FloatArray, initial: Forest | None, known: FloatArray | None = None
    ) -> ScorePass:
        """Return the scores of the training rows, which begin with `base` or with a forest."""
        data, n_threads = self._data, self._settings.n_threads
        savings = self._savings()
        shape = (data.X.shape[0], self._loss.n_outputs)
        scores = mapped_array(shape, "scores") if savings.mapped_scores else np.empty(shape)
        if initial is None:
            scores[:] = base
        elif known is not None:
            assert isinstance(data.X, BinnedRows)
            rest = data.X.take(np.arange(len(known), data.X.shape[0]), n_threads)
            scores[: len(known)] = known
            initial.predict_raw(rest, n_threads=n_threads, out=scores[len(known) :])
        else:  # the same sums in the same order as in training
            initial.predict_raw(data.X, n_threads=n_threads, out=scores)
        plan = replace(plan, stores_gradients=not savings.made_gradients)
        return CpuScorePass(self._loss.formula(data.y), scores, plan, n_threads)

    def _savings(self) -> memory.Savings:
        """Return what the rounds must do without, now that all else is in memory."""
        data, loss, settings = self._data, self._loss, self._settings
        return memory.least_savings(
            possible_savings(data, loss, settings),
            lambda savings: sum(needs_of(data, loss, settings, savings).rounds.values()),
            memory.available(),
        )

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""
        return HostScores(data.X, start, self._settings.n_threads)


class LabelSparseDevice(CpuDevice):
    """The CPU for sparse labels, whose scores and gradients live in the core and are never made dense."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings) -> None:
        super().__init__(data, loss, settings)
        y: Any = data.y
        self._labels = SparseLabels(y.indptr, y.indices, loss.n_outputs)

    def _grower_on(self, matrix: BinnedMatrix) -> Grower:
        return LabelSparseGrower(matrix, self._labels, settings_of(self._settings))

    def score_pass(
        self, plan: PassPlan, base: FloatArray, initial: Forest | None, known: FloatArray | None = None
    ) -> ScorePass:
        """Return the scores of the labels, which begin with 0 or with a forest."""
        if initial is not None:
            initial.add_to_sparse(self._data.X, self._labels, self._settings.n_threads)
        return self._label_pass(plan)

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with 0; rounds are added to them."""
        return LabelScores(data.X, len(start), self._settings.n_threads)

    def _label_pass(self, plan: PassPlan) -> ScorePass:
        return LabelScorePass(self._labels, self._data.X.shape[0], self._settings.n_threads)


class LabelHashedDevice(LabelSparseDevice):
    """The same for labels that are hashed while splits are found."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings) -> None:
        super().__init__(data, loss, settings)
        self._mixtures = LabelMixtures(
            self._labels, data.X.shape[0], settings.sketch_size, settings.n_threads
        )

    def _grower_on(self, matrix: BinnedMatrix) -> Grower:
        of_splits = settings_of(replace(self._settings, sparse_leaves=None))
        return LabelHashedGrower(matrix, self._labels, self._mixtures, of_splits, self._settings)

    def _label_pass(self, plan: PassPlan) -> ScorePass:
        n_rows, n_threads = self._data.X.shape[0], self._settings.n_threads
        return HashedScorePass(self._labels, n_rows, n_threads, self._mixtures, plan.splits, plan.gain_weight)


def make_device(data: Dataset, loss: Loss, settings: Settings) -> Device:
    """Return the device that the settings name."""
    if settings.label_space == "hashed":
        return LabelHashedDevice(data, loss, settings)
    if scipy.sparse.issparse(data.y):
        return LabelSparseDevice(data, loss, settings)
    if settings.device == "cpu":
        return CpuDevice(data, loss, settings)
    from polyleaf.gpu.device import GpuDevice  # which needs CuPy

    return GpuDevice(data, loss, settings)
