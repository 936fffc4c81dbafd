"""Gradients of the losses on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf._core import TERMS
from polyleaf.data.inputs import Array
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.losses import Loss
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.cross_entropy import CrossEntropy
from polyleaf.losses.squared_error import SquaredError

_THREADS = 256


class DeviceLoss:
    """A loss and its targets, where the scores are.

    The softmax, the logistic loss and the squared error have kernels. All others compute on the host, to
    which the scores travel and from which the gradients come back.

    Parameters
    ----------
    loss : Loss
        Its definition.
    y : ndarray
        Coded targets.
    n_threads : int
        Of what is computed on the host.
    """

    def __init__(self, loss: Loss, y: Array, n_threads: int) -> None:
        self._loss = loss
        self._y = y
        self._n_threads = n_threads
        self._on_host = not isinstance(loss, CrossEntropy | BinaryCrossEntropy | SquaredError)
        self._targets = None if self._on_host else cupy().asarray(y)
        self._buffers: dict[str, Any] = {}

    def gradients(self, raw: Any, *, with_hessian: bool) -> tuple[Any, Any]:
        """Return gradient and Hessian, float32 CuPy arrays; a Hessian of None is 1, or not asked for."""
        loss = self._loss
        if self._on_host:
            return self._host_gradients(raw, with_hessian)
        n_rows, n_outputs = raw.shape
        gradient = self._buffer("gradient", raw.shape)
        hessian = None
        if with_hessian and not isinstance(loss, SquaredError):
            hessian = self._buffer("hessian", raw.shape)
        grid = (blocks(raw.size, _THREADS),)
        if isinstance(loss, CrossEntropy):
            launch(
                kernel("gradients.cuh", "softmax"),
                (blocks(n_rows, _THREADS // 32),),
                _THREADS,
                raw,
                self._targets,
                np.uint64(n_rows),
                n_outputs,
                TERMS[loss.hessian_rule],
                gradient,
                hessian,
            )
        elif isinstance(loss, BinaryCrossEntropy):
            launch(
                kernel("gradients.cuh", "logistic"),
                grid,
                _THREADS,
                raw,
                self._targets,
                np.uint64(raw.size),
                gradient,
                hessian,
            )
        else:
            assert isinstance(loss, SquaredError)
            launch(
                kernel("gradients.cuh", "squared_error"),
                grid,
                _THREADS,
                raw,
                self._targets,
                cupy().asarray(loss.unit),
                np.uint64(raw.size),
                n_outputs,
                gradient,
            )
        return gradient, hessian

    def _host_gradients(self, raw: Any, with_hessian: bool) -> tuple[Any, Any]:
        cp = cupy()
        on_host = raw.get()
        if not with_hessian:
            return cp.asarray(self._loss.gradient(self._y, on_host, self._n_threads)), None
        gradient, hessian = self._loss.gradients(self._y, on_host, self._n_threads)
        return cp.asarray(gradient), None if hessian is None else cp.asarray(hessian)

    def _buffer(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self._buffers:
            self._buffers[name] = cupy().empty(shape, dtype=np.float32)
        return self._buffers[name]
