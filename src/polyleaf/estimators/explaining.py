"""What the estimators say about why they predict what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.joined_parts import joined
from polyleaf.data.row_weights import check_weights
from polyleaf.data.sources import source_kind
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.prediction import TableToPredict
from polyleaf.estimators.streamed_prediction import parts_to_predict
from polyleaf.explain.explanation import as_explanation, need_shap, readable_cells
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.explain.shap import ForestShap
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.fitted import FittedModel
from polyleaf.model.forest import Forest
from polyleaf.params.rules import Boolean
from polyleaf.params.wording import shown

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Explaining:
    """The part of the estimators that explains predictions."""

    n_outputs_: int
    best_iteration_: int
    device: str
    _forest: Forest
    _coding: TargetCoding

    if TYPE_CHECKING:  # of the estimators

        def _check_is_fitted(self) -> None: ...
        def _check_param(self, name: str) -> None: ...
        def _fitted(self) -> FittedModel: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[TableToPredict, int, int]: ...

    @property
    def expected_value_(self) -> FloatArray:
        """What the raw scores are on average, of shape (n_outputs,): `shap_values` are added to this.

        The mean is over the leaves of each tree, by the weight of the training rows in them; outputs are in
        the order of y.
        """
        self._check_is_fitted()
        return self._explainer(ForestShap, None).expected

    def shap_values(
        self,
        X: Any,
        outputs: Any = None,
        *,
        dtype: npt.DTypeLike = "float64",
        reduce: str | None = None,
        interactions: bool = False,
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
        interactions : bool, default=False
            Whether to share the values out to pairs of features: half of what two do together goes to either,
            and the pair of a feature with itself keeps the rest of its value. Takes features times the
            memory: choose `outputs`.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs) or (n_rows, n_features)
            Without the last dimension where the model has one output. With `reduce`, without the first one.
            With `interactions`, n_features twice: a symmetric matrix whose rows add up to the plain values.

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
        Boolean().check("interactions", interactions)
        shap = self._shap(outputs, interactions=bool(interactions))
        tables = self._checked_tables(X)
        found: npt.NDArray[Any]
        if reduce is None:
            found = joined([shap.values(table, number, threads) for table, threads in tables], "X")
        else:
            found = _mean_absolute(shap, tables, 'reduce="mean_abs"').astype(number, copy=False)
        return found[..., 0] if self.n_outputs_ == 1 else found

    def explanation(self, X: Any, outputs: Any = None, *, dtype: npt.DTypeLike = "float64") -> Any:
        """Return Shapley values as a `shap.Explanation`, which the plots of the shap package draw.

        Parameters
        ----------
        X, outputs, dtype
            As in `shap_values`.

        Returns
        -------
        shap.Explanation
            With ``values`` of shape (n_rows, n_features, n_outputs), ``base_values`` (n_rows, n_outputs),
            ``feature_names``, ``output_names``, and ``data``: the cells of `X` as the model reads them, where
            categories have their names and what it does not know is NaN. Of one output, whether the model has
            one or one is asked for, without the last dimension. There are no ``data`` of a `BinnedTable`.

        Raises
        ------
        ImportError
            When shap is not installed.
        ValueError, MemoryError
            As in `shap_values`.
        """
        self._check_is_fitted()
        need_shap()
        number = _checked_dtype(dtype)
        fitted = self._fitted()
        names = NamedTrees(fitted)
        chosen = [names.outputs[k] for k in chosen_outputs(outputs, names.outputs).tolist()]
        shap = self._shap(outputs)
        values, data = [], []
        for table, threads in self._checked_tables(X):
            values.append(shap.values(table, number, threads))
            if not isinstance(table, BinnedRows):
                data.append(readable_cells(on_host(table), fitted.categories))
        cells = joined(data, "X") if data else None
        return as_explanation(joined(values, "X"), shap.expected, cells, names.features, chosen)

    def _mean_absolute_shap(self, X: Any, sample_weight: Any) -> FloatArray:
        """Return the mean of the absolute values over rows, by their weight, of shape (features, outputs)."""
        if sample_weight is not None and source_kind(X) is not None:
            raise TypeError(
                'sample_weight with kind="shap" is of the rows of a table in memory: X must be an array, a '
                f"data frame or a sparse matrix; got {type(X).__name__}."
            )
        return _mean_absolute(self._shap(None), self._checked_tables(X), 'kind="shap"', sample_weight)

    def _shap(self, outputs: Any, *, interactions: bool = False) -> ForestShap:
        """Return what explains these outputs, which are in the order of y, on the device of the model."""
        self._check_param("device")
        return self._explainer(device_shap(self.device), outputs, interactions=interactions)

    def _explainer(self, kind: type[ForestShap], outputs: Any, *, interactions: bool = False) -> ForestShap:
        chosen = chosen_outputs(outputs, NamedTrees(self._fitted()).outputs)
        places = self._coding.in_order_of_y(np.arange(self.n_outputs_, dtype=np.intp))[chosen]
        return kind(self._forest, self.best_iteration_ + 1, places, interactions=interactions)

    def _checked_tables(self, X: Any) -> Iterator[tuple[Any, int]]:
        """Yield the checked parts of a table, where they are, and the number of threads."""
        for part in parts_to_predict(X, getattr(self, "feature_names_in_", None)):
            table, _, threads = self._ready(part, None)
            yield table, threads

    def _tables(self, X: Any) -> Iterator[tuple[Any, int]]:
        """Yield the checked parts of a table on the host, and the number of threads."""
        for table, threads in self._checked_tables(X):
            yield on_host(table), threads


def device_shap(device: str) -> type[ForestShap]:
    """Return what explains a forest on this device."""
    if device == "cpu":
        return ForestShap
    from polyleaf.gpu.runtime import require_gpu
    from polyleaf.gpu.shap import GpuShap  # which needs CuPy

    require_gpu()
    return GpuShap


def _checked_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if dtype is None or found is None or found not in _DTYPES:
        raise ValueError(f'dtype must be "float64" or "float32"; got {shown(dtype):.80}.')
    return found


def _mean_absolute(
    shap: ForestShap, tables: Iterator[tuple[Any, int]], who: str, weight: Any = None
) -> FloatArray:
    """Return the mean of the absolute values over the rows of all tables; rows of one table have weights."""
    n_rows, total, sums = 0, 0.0, None
    for table, threads in tables:
        weights: FloatArray | None = check_weights(weight, table.shape[0]) if weight is not None else None
        of_part = shap.absolute_sums(table, threads, weights)
        sums = of_part if sums is None else sums + of_part
        n_rows += table.shape[0]
        total += table.shape[0] if weights is None else float(weights.sum())
    if sums is None or n_rows == 0:
        raise ValueError(f"{who} takes the mean over the rows of X, and X has none.")
    mean: FloatArray = sums / total
    return mean
