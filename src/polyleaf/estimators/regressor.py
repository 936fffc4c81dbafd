"""One or many regression targets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sources import source_kind
from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.targets import EvalMetric, Objective, RegressionTargets
from polyleaf.metrics.quantiles import d2_pinball
from polyleaf.metrics.regression import r2
from polyleaf.params.constraints import InteractionConstraints, MonotoneConstraints
from polyleaf.params.documented import documented


@documented("regressor")
class PolyleafRegressor(RegressorMixin, BasePolyleaf):  # type: ignore[misc]
    """Gradient boosted trees for one or many regression targets, each leaf holding a value for all of them.

    {parameters}

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when `X` had any.
    target_names_ : ndarray of str
        Names of the targets, when `y` had any.
    n_outputs_ : int
        Number of targets, times the number of `quantile_levels` for quantiles.
    n_estimators_ : int
        Number of rounds done.
    best_iteration_ : int
        The best round, from 0, with early stopping; otherwise the last. Predictions use the rounds up to it.
    evals_result_ : dict
        ``evals_result_["validation_0"]["rmse"]`` has the metric of the first evaluation set after each round.
    chosen_params_ : dict
        What was taken for the parameters that are "auto", by name; rounds are in `n_estimators_`.
    best_score_ : dict
        ``best_score_["validation_0"]`` has the metrics of the first evaluation set after the best round.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the gain, the cover or the splits of the trees.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from polyleaf import PolyleafRegressor
    >>> X, y = load_linnerud(return_X_y=True)
    >>> PolyleafRegressor(n_estimators=10, min_samples_leaf=2).fit(X, y).predict(X).shape
    (20, 3)
    """

    _kind = "regressor"
    _targets = RegressionTargets

    def __init__(
        self,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        min_samples_leaf: int | str = "auto",
        max_bins: int | None = 255,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        min_split_gain: float = 0.0,
        min_child_weight: float = 0.0,
        subsample: float | str = "auto",
        sampling_method: str = "uniform",
        colsample_bytree: float | str = "auto",
        colsample_bylevel: float = 1.0,
        colsample_bynode: float = 1.0,
        objective: str | Objective | None = None,
        huber_delta: float = 1.0,
        quantile_levels: float | Sequence[float] | FloatArray = 0.5,
        tweedie_power: float = 1.5,
        base_score: float | Sequence[float] | FloatArray | None = None,
        multi_strategy: str = "multi_output_tree",
        sparse_leaves: int | None = None,
        sparse_mode: str = "restricted",
        sketch: str | None = "auto",
        sketch_size: int | None = None,
        scale_targets: bool = True,
        bounded_influence: bool | str = "auto",
        output_weight: Sequence[float] | FloatArray | None = None,
        monotone_constraints: MonotoneConstraints | None = None,
        interaction_constraints: InteractionConstraints | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        refit: bool = True,
        n_bags: int = 1,
        eval_metric: EvalMetric | Sequence[EvalMetric] | None = None,
        callbacks: Sequence[Any] | None = None,
        warm_start: bool = False,
        categorical_features: str | Sequence[str] | Sequence[int] | Sequence[bool] | Array | None = None,
        importance_type: str = "gain",
        columns_by_name: bool = False,
        histogram_precision: str = "full",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_split_gain = min_split_gain
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.sampling_method = sampling_method
        self.colsample_bytree = colsample_bytree
        self.colsample_bylevel = colsample_bylevel
        self.colsample_bynode = colsample_bynode
        self.objective = objective
        self.huber_delta = huber_delta
        self.quantile_levels = quantile_levels
        self.tweedie_power = tweedie_power
        self.base_score = base_score
        self.multi_strategy = multi_strategy
        self.sparse_leaves = sparse_leaves
        self.sparse_mode = sparse_mode
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.scale_targets = scale_targets
        self.bounded_influence = bounded_influence
        self.output_weight = output_weight
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.n_bags = n_bags
        self.eval_metric = eval_metric
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.importance_type = importance_type
        self.columns_by_name = columns_by_name
        self.histogram_precision = histogram_precision
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def predict(
        self,
        X: Any,
        *,
        n_rounds: int | None = None,
        as_frame: bool = False,
        out: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features. A frame must have the columns of ``fit``, in the same order. Or a source, as in
            ``fit``, of which some rows are read at a time; in files and LazyFrames the columns of ``fit`` are
            found by name, and others do not matter. Batches are tables, or tuples that begin with one. Or a
            `polyleaf.BinnedTable` with the cut points of ``fit``: the one that the model was trained on.
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        as_frame : bool, default=False
            Whether to return a data frame: of the kind of `X` (pandas: with its index), or of the kind that y
            had in ``fit`` when `X` is none. Its columns are `target_names_`, or "target_0", "target_1", ...
        out : str or os.PathLike, default=None
            A Parquet file to write the predictions to, batch by batch, in the place of returning them; its
            columns are those that a frame would have. It appears when it is complete.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), or data frame; None with `out`
            float64, with the dimension that y had in ``fit``. With m > 1 `quantile_levels` the shape is
            (n_rows, n_targets * m), the levels of the first target first.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out, as_frame=as_frame)
            names = self._coding.columns_of_predictions()
            return self._by_parts(X, partial(self.predict, n_rounds=n_rounds, as_frame=as_frame), names, out)
        make_frame = None if as_frame is False else self._frame_maker(X, as_frame)
        prediction = self._shaped(self._predicted(X, n_rounds))
        if make_frame is None:
            return prediction
        return make_frame(prediction, self._coding.columns_of_predictions())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2, the mean over the targets; missing targets (NaN) do not count.

        Of ``objective="quantile"`` it is D2, the same with the pinball loss: the share that the model saves
        of the loss of the best constant, the mean over targets and levels.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features, a source or a `polyleaf.BinnedTable`, as in `predict`. Of a source, y and what is
            predicted are held in memory, and the features are not.
        y : str, list of str, array-like or data frame of shape (n_rows,) or (n_rows, n_targets)
            The targets, or names of columns of a source, as in ``fit``; left out where batches or a
            BinnedTable have them.
        sample_weight : str or array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Weights of rows or cells.
        """
        prediction, y, sample_weight = self._beside_targets(X, y, sample_weight, self._means)
        targets, weight = self._observed(y, sample_weight, len(prediction))
        levels = self._coding.levels
        if levels is None:
            return r2(targets, prediction, weight)
        return d2_pinball(targets, prediction, weight, levels)

    def staged_predict(self, X: Any, *, n_rounds: int | None = None) -> Iterator[FloatArray]:
        """Return an iterator over the predictions after each round; parameters as in `predict`."""
        self._check_is_fitted()
        link = self._link()
        return (self._shaped(link.predict(raw)) for raw in self._staged_raw(X, n_rounds))

    def _means(self, X: Any) -> FloatArray:
        """Return what is predicted for a table, of shape (rows, outputs), in the memory of the host."""
        prediction: FloatArray = on_host(self._predicted(X, None))
        return prediction

    def _shaped(self, prediction: FloatArray) -> FloatArray:
        return prediction[:, 0] if self._coding.ndim == 1 and prediction.shape[1] == 1 else prediction
