"""Gradients and trees on the device, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.sparse

from polyleaf._core import BinnedMatrix
from polyleaf.data.dataset import Dataset
from polyleaf.data.device_arrays import is_device_array
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.arrays import GpuArrays
from polyleaf.gpu.binning import bin_on_device
from polyleaf.gpu.grower import GpuTreeGrower, shape_of
from polyleaf.gpu.losses import DeviceLoss
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import Layout, plan_histograms
from polyleaf.gpu.predictor import GpuScores, predict_raw
from polyleaf.gpu.runtime import cupy, free_memory
from polyleaf.growth.arrays import Arrays, RowMixtures
from polyleaf.growth.tree import TreeRules
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model.forest import Forest
from polyleaf.params.settings import Settings
from polyleaf.training.monitor import HostScores, Scores
from polyleaf.training.trainer import Trainer, bin_data

_BINNING_BYTES = 2**32  # of device memory to sort columns in


class GpuTrainer(Trainer):
    """A trainer whose table, scores, gradients and growing trees are on the device."""

    def __init__(self, data: Dataset, loss: Loss, settings: Settings, base: FloatArray) -> None:
        super().__init__(data, loss, settings, base)
        self._check_memory()  # before anything is copied

    def _arrays(self) -> Arrays:
        return GpuArrays()

    def _adds_later(self) -> bool:
        return False

    def prepare(self, matrix: BinnedMatrix | None = None, initial: Forest | None = None) -> None:
        """Bin the table (unless it is binned already) and set up the scores, on the device."""
        settings = self._settings
        on_device = self._binned() if matrix is None else DeviceMatrix.of_table(matrix, settings.n_threads)
        self._grower: Any = GpuTreeGrower(on_device, TreeRules.of(settings), settings.learning_rate)
        self._device_loss = DeviceLoss(self._loss, self._data.y, settings.n_threads)
        if self._cell is not None:
            self._cell = cupy().asarray(self._cell)
        self._start(initial)

    def _binned(self) -> DeviceMatrix:
        """Return the table as bins: by the device where it can hold the table, else by the CPU."""
        settings, table = self._settings, self._data.X
        if scipy.sparse.issparse(table):
            return DeviceMatrix.of_table(bin_data(self._data, settings), settings.n_threads)
        n_bytes = 0 if is_device_array(table) else table.nbytes
        room = (free_memory() - n_bytes - table.size) // 2
        if room < min(_BINNING_BYTES, table.shape[0] * 100) and not is_device_array(table):
            return DeviceMatrix.of_table(bin_data(self._data, settings), settings.n_threads)
        assert settings.max_bins is not None
        rows = cupy().asarray(table)
        weight = self._data.weights.row
        codes, cuts = bin_on_device(rows, weight, settings.max_bins, memory_bytes=min(room, _BINNING_BYTES))
        return DeviceMatrix.of(codes, cuts)

    def _check_memory(self) -> None:
        """Raise MemoryError where the problem cannot be solved with the free memory."""
        settings, loss = self._settings, self._loss
        n_rows, n_features = self._data.X.shape
        n_bins = (255 if settings.max_bins is None else settings.max_bins) + 1
        d = loss.n_outputs // self.trees_per_round
        k = min(settings.sketch_size, d) if settings.sketch is not None else d
        layout = Layout(
            k, diagonal=settings.hessian != "shared" and loss.name != "squared_error", weighted=True
        )
        shape = shape_of((n_rows, n_features, n_bins), loss.n_outputs, layout, TreeRules.of(settings))
        plan_histograms(shape, free_memory(), with_data=True)

    def _start(self, initial: Forest | None) -> None:
        cp = cupy()
        n_rows = self._data.X.shape[0]
        if initial is None:
            self._raw = cp.empty((n_rows, self._loss.n_outputs))
            self._raw[:] = cp.asarray(self._base)
        elif scipy.sparse.issparse(self._data.X):
            self._raw = cp.asarray(initial.predict_raw(self._data.X, n_threads=self._settings.n_threads))
        else:
            self._raw = cp.asarray(predict_raw(initial, self._data.X, n_threads=self._settings.n_threads))

    def _of_loss(self, mixtures: RowMixtures | None, *, with_hessian: bool) -> tuple[Any, Any]:
        return self._device_loss.gradients(self._raw, with_hessian=with_hessian)

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""
        if scipy.sparse.issparse(data.X):
            return HostScores(data, start, self._settings.n_threads)
        return GpuScores(data.X, start)

    def measure(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return the first metric on the training rows."""
        on_device: Any = self._raw
        self._raw = on_device.get()
        try:
            return super().measure(metrics)
        finally:
            self._raw = on_device
