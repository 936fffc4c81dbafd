"""What the estimators say about why they predict what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.joined_parts import joined
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.prediction import TableToPredict
from polyleaf.estimators.streamed_prediction import parts_to_predict
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.explain.shap import ForestShap
from polyleaf.model.forest import Forest
from polyleaf.params.wording import shown

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Explaining:
    """The part of the estimators that explains predictions."""

    n_outputs_: int
    best_iteration_: int
    _forest: Forest
    _coding: TargetCoding

    if TYPE_CHECKING:  # of the estimators

        def _check_is_fitted(self) -> None: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[TableToPredict, int, int]: ...

    @property
    def expected_value_(self) -> FloatArray:
        """What the raw scores are on average, of shape (n_outputs,): `shap_values` are added to this.

        The mean is over the leaves of each tree, by the weight of the training rows in them; outputs are in
        the order of y.
        """
        self._check_is_fitted()
        return self._shap(None).expected

    def shap_values(
        self,
        X: Any,
        outputs: Any = None,
        *,
        dtype: npt.DTypeLike = "float64",
        reduce: str | None = None,
    ) -> npt.NDArray[Any]:
        """Return what each feature adds to each raw score: exact Shapley values, up to the best round.

        Over the features of a row, they and `expected_value_` add up to its raw scores: predictions, log-odds
        of classes or labels, or logarithms, before the link of the objective. What a tree predicts where a
        feature is not known is the mean over both sides of its splits, by their cover ("path-dependent").

        Parameters
        ----------
        X : array-like, data frame, sparse matrix, source or BinnedTable
            The features, as in `predict`.
        outputs : int, str, or sequence of these, default=None
            Which outputs, in this order: numbers from 0 on in the order of y, or names: those of targets and
            labels ("target_0", "label_0", ... without names), of classes as text, of a mixed model
            "grade=a" and so on, of quantiles "a_q0.1". None: all. Time and memory are those of these alone.
        dtype : {"float64", "float32"}, default="float64"
            Of the result. Sums are float64 in any case.
        reduce : {"mean_abs"}, default=None
            Return the mean of the absolute values over the rows of `X` instead, without ever holding those
            of all rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs) or (n_rows, n_features)
            Without the last dimension where the model has one output. With `reduce`, without the first one.

        Raises
        ------
        ValueError
            When `X` has another number of features, an output does not exist, or there is no row to take the
            mean of.
        MemoryError
            When the result takes more memory than there is; the error has the numbers.
        """
        self._check_is_fitted()
        number = _checked_dtype(dtype)
        if reduce is not None and reduce != "mean_abs":
            raise ValueError(f'reduce must be None or "mean_abs"; got {shown(reduce):.80}.')
        shap = self._shap(outputs)
        tables = self._tables(X)
        found: npt.NDArray[Any]
        if reduce is None:
            found = joined([shap.values(table, number, threads) for table, threads in tables], "X")
        else:
            found = _mean_absolute(shap, tables).astype(number, copy=False)
        return found[..., 0] if self.n_outputs_ == 1 else found

    def _shap(self, outputs: Any) -> ForestShap:
        """Return what explains these outputs, which are in the order of y."""
        chosen = chosen_outputs(outputs, self._coding.columns_of_outputs())
        places = self._coding.in_order_of_y(np.arange(self.n_outputs_, dtype=np.intp))[chosen]
        return ForestShap(self._forest, self.best_iteration_ + 1, places)

    def _tables(self, X: Any) -> Iterator[tuple[Any, int]]:
        """Yield the checked parts of a table on the host, and the number of threads."""
        for part in parts_to_predict(X, getattr(self, "feature_names_in_", None)):
            table, _, threads = self._ready(part, None)
            yield on_host(table), threads


def _checked_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if dtype is None or found not in _DTYPES:
        raise ValueError(f'dtype must be "float64" or "float32"; got {shown(dtype):.80}.')
    return found


def _mean_absolute(shap: ForestShap, tables: Iterator[tuple[Any, int]]) -> FloatArray:
    """Return the mean of the absolute values over the rows of all tables."""
    n_rows, sums = 0, None
    for table, threads in tables:
        n_rows += table.shape[0]
        of_part = shap.absolute_sums(table, threads)
        sums = of_part if sums is None else sums + of_part
    if sums is None or n_rows == 0:
        raise ValueError('reduce="mean_abs" takes the mean over the rows of X, and X has none.')
    return sums / n_rows
