"""What training asks of a device, answered by a GPU: see :class:`polyleaf.training.device.Device`."""

from __future__ import annotations

import scipy.sparse

from polyleaf._core import BinnedMatrix
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.device_arrays import is_device_array
from polyleaf.data.inputs import FloatArray
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.gpu.arrays import GpuArrays
from polyleaf.gpu.binning import bin_on_device
from polyleaf.gpu.grower import GpuGrower, shape_of
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import Layout, plan_histograms
from polyleaf.gpu.predictor import GpuScores, predict_raw
from polyleaf.gpu.runtime import cupy, free_memory
from polyleaf.gpu.score_pass import GpuScorePass
from polyleaf.growth.contract import settings_of
from polyleaf.growth.score_pass import PassPlan
from polyleaf.losses import Loss
from polyleaf.model.forest import Forest
from polyleaf.model.scores import HostScores, Scores
from polyleaf.params.settings import Settings

_BINNING_BYTES = 2**32  # of device memory to sort columns in


class GpuDevice:
    """The GPU on which table, scores, gradients and growing trees are.

    Parameters
    ----------
    data, loss, settings
        What a run trains on, and how.

    Raises
    ------
    MemoryError
        Before anything is copied, where the problem cannot be solved with the free memory.
    """

    def __init__(self, data: Dataset, loss: Loss, settings: Settings) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self.arrays = GpuArrays()
        self._check_memory()

    def grower(self, matrix: BinnedMatrix | None) -> GpuGrower:
        """Return what grows trees on the table, which is binned first where that is not done yet."""
        settings = self._settings
        on_device = self._binned() if matrix is None else DeviceMatrix.of_table(matrix, settings.n_threads)
        return GpuGrower(on_device, settings_of(settings))

    def score_pass(
        self, plan: PassPlan, base: FloatArray, initial: Forest | None, known: FloatArray | None = None
    ) -> GpuScorePass:
        """Return the scores of the training rows, which begin with `base` or with a forest."""
        assert known is None  # shards, which keep them, are of the CPU
        cp = cupy()
        data, n_threads = self._data, self._settings.n_threads
        if initial is None:
            scores = cp.empty((data.X.shape[0], self._loss.n_outputs))
            scores[:] = cp.asarray(base)
        elif isinstance(data.X, BinnedRows) or scipy.sparse.issparse(data.X):
            scores = cp.asarray(initial.predict_raw(data.X, n_threads=n_threads))
        else:
            scores = cp.asarray(predict_raw(initial, data.X, n_threads=n_threads))
        return GpuScorePass(self._loss, data.y, scores, plan, n_threads)

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""
        if isinstance(data.X, BinnedRows) or scipy.sparse.issparse(data.X):
            return HostScores(data.X, start, self._settings.n_threads)
        return GpuScores(data.X, start)

    def _binned(self) -> DeviceMatrix:
        """Return the table as bins: by the device where it can hold the table, else by the CPU."""
        settings, table = self._settings, self._data.X
        assert not isinstance(table, StreamedTable)  # which is refused
        if isinstance(table, BinnedRows) or scipy.sparse.issparse(table):
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
        settings, loss = self._settings, self._loss
        n_rows, n_features = self._data.X.shape
        n_bins = (255 if settings.max_bins is None else settings.max_bins) + 1
        d = loss.n_outputs if settings.multi_strategy == "multi_output_tree" else 1
        k = min(settings.sketch_size, d) if settings.sketch is not None else d
        layout = Layout(k, diagonal=settings.hessian != "shared" and not loss.unit_hessian, weighted=True)
        shape = shape_of((n_rows, n_features, n_bins), loss.n_outputs, layout, settings_of(settings))
        plan_histograms(shape, free_memory(), with_data=True)
