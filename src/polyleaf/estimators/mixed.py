"""One model for targets of several kinds: classes, labels and numbers from the same trees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.mixed_targets import CodedGroup, MixedCoding, make_table
from polyleaf.data.sources import source_kind
from polyleaf.data.tables import frame_kind
from polyleaf.data.weights import GroupClassWeight
from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.prediction import decided, probabilities, score_of_group
from polyleaf.estimators.target_groups import GroupedTargets
from polyleaf.estimators.targets import EvalMetric
from polyleaf.losses import make_link
from polyleaf.model.fitted import FittedModel
from polyleaf.params.constraints import InteractionConstraints, MonotoneConstraints
from polyleaf.params.documented import documented


@documented("mixed")
class PolyleafMixed(BasePolyleaf):
    """Gradient boosted trees for targets of several kinds, each leaf holding values for all of them.

    `targets` names groups of columns of y, each with a loss of its own; y is a table with these columns (a
    pandas or polars data frame, a pyarrow table, or a dict of arrays). In the choice of splits the groups are
    on a par, whatever their units and numbers of outputs (see `loss_weight`). A model of a single group is
    that of the plain estimator, to the last bit.

    {parameters}

    Attributes
    ----------
    classes_ : dict
        Class labels of each group of classes, sorted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when `X` had any.
    target_names_ : ndarray of str
        Columns of y that are predicted, in the order of y.
    n_outputs_ : int
        Number of raw scores per row, of all groups: in the order of y, one for each column, but one for each
        class of three and more (or of a "multiclass" target), and for each level of quantiles.
    n_estimators_ : int
        Number of rounds done.
    best_iteration_ : int
        The best round, from 0, with early stopping; otherwise the last. Predictions use the rounds up to it.
    evals_result_ : dict
        ``evals_result_["validation_0"]["grade/cross_entropy"]`` has the metric of the group "grade" after
        each round, ``["loss"]`` what early stopping watches: the mean over the groups, by `loss_weight`, of
        their metrics, each divided by its value for the best constant on the training rows.
    chosen_params_ : dict
        What was taken for the parameters that are "auto", by name; rounds are in `n_estimators_`.
    best_score_ : dict
        ``best_score_["validation_0"]`` has the metrics of the first evaluation set after the best round.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the gain or the splits of the trees.

    Examples
    --------
    >>> import numpy as np
    >>> from polyleaf import PolyleafMixed
    >>> X = np.arange(60.0)[:, np.newaxis]
    >>> y = {"size": X[:, 0] ** 2, "kind": np.where(X[:, 0] < 30, "small", "large")}
    >>> model = PolyleafMixed({"size": "regression", "kind": "binary"}, n_estimators=20).fit(X, y)
    >>> model.predict(X[:1])["kind"]
    array(['small'], dtype='<U5')
    """

    _kind = "mixed"
    _targets = GroupedTargets
    classes_: dict[str, Array]

    def __init__(
        self,
        targets: Mapping[str, str | Mapping[str, Any]] | None = None,
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
        base_score: float | Sequence[float] | FloatArray | None = None,
        multi_strategy: str = "multi_output_tree",
        sparse_leaves: int | None = None,
        sparse_mode: str = "restricted",
        sketch: str | None = "auto",
        sketch_size: int | None = None,
        softmax_curvature: str = "p(1-p)",
        scale_targets: bool = True,
        bounded_influence: bool | str = "auto",
        loss_weight: Mapping[str, float] | None = None,
        class_weight: GroupClassWeight = None,
        output_weight: Sequence[float] | FloatArray | None = None,
        monotone_constraints: MonotoneConstraints | None = None,
        interaction_constraints: InteractionConstraints | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        refit: bool = True,
        n_bags: int = 1,
        eval_metric: Mapping[str, EvalMetric | Sequence[EvalMetric] | None] | None = None,
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
        self.targets = targets
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
        self.base_score = base_score
        self.multi_strategy = multi_strategy
        self.sparse_leaves = sparse_leaves
        self.sparse_mode = sparse_mode
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.softmax_curvature = softmax_curvature
        self.scale_targets = scale_targets
        self.bounded_influence = bounded_influence
        self.loss_weight = loss_weight
        self.class_weight = class_weight
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
        tags.target_tags.multi_output = True
        tags.target_tags.required = True
        return tags

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        classes = {
            group.name: group.coding.classes
            for group in self._mixed_coding().groups
            if group.has_classes and group.coding.classes is not None
        }
        in_order = self._mixed_coding().groups_in_order()
        self.classes_ = {name: classes[name] for name in in_order if name in classes}

    def predict(
        self, X: Any, *, n_rounds: int | None = None, out: str | os.PathLike[str] | None = None
    ) -> Any:
        """Predict all targets.

        Parameters
        ----------
        X : array-like, data frame or source
            The features, as `PolyleafRegressor.predict` takes them.
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        out : str or os.PathLike, default=None
            A Parquet file to write the predictions to, batch by batch, in the place of returning them; its
            columns are those that a frame would have. It appears when it is complete.

        Returns
        -------
        data frame, table or dict; None with `out`
            Of the kind of `X` (pandas: with its index) if that is a frame, otherwise what y was in ``fit`` (a
            dict where its library is not installed). It has the columns of y that `targets` names, in the
            order of y. Classes are decoded, labels 0 or 1. Several quantiles of a column "a" are columns
            "a_q0.1", "a_q0.9" and so on, ascending in every row.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out)
            return self._by_parts(X, partial(self.predict, n_rounds=n_rounds), (), out)
        return self._predictions(X, on_host(self._raw(X, n_rounds)))

    def staged_predict(self, X: Any, *, n_rounds: int | None = None) -> Iterator[Any]:
        """Return an iterator over the predictions after each round; parameters as in `predict`."""
        return (self._predictions(X, raw) for raw in self._staged_raw(X, n_rounds))

    def predict_proba(
        self, X: Any, *, n_rounds: int | None = None, out: str | os.PathLike[str] | None = None
    ) -> Any:
        """Predict the probabilities of classes and labels; parameters as in `predict`.

        Returns
        -------
        dict; None with `out`
            By group, of those that have any: an array of shape (n_rows, n_classes), in the order of
            `classes_`, or (n_rows, n_labels). The columns of a file are called "grade=a" and so on for the
            classes of "grade", and like the labels.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out)
            return self._by_parts(
                X, partial(self._probabilities, n_rounds=n_rounds, flat=out is not None), (), out
            )
        return self._probabilities(X, n_rounds)

    def _probabilities(self, X: Any, n_rounds: int | None, flat: bool = False) -> dict[str, FloatArray]:
        """Return the probabilities of each group, or of each class and label (`flat`)."""
        raw = on_host(self._raw(X, n_rounds))
        found = {
            group.name: _probabilities_of(group, scores)
            for group, scores in self._of_groups(raw)
            if group.coding.kind != "regression"
        }
        in_order = {name: found[name] for name in self._mixed_coding().groups_in_order() if name in found}
        if not flat:
            return in_order
        columns = {group.name: _columns_of_probabilities(group) for group in self._mixed_coding().groups}
        return {
            column: values[:, j]
            for name, values in in_order.items()
            for j, column in enumerate(columns[name])
        }

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean over the groups of targets of what a plain estimator of each would score.

        That is the accuracy of classes, the share of rows whose labels are all right, and R2, the mean over
        the columns of a group; of quantiles it is D2, the share of the pinball loss of
        the best constants that is gone. Cells that are missing or have no weight do not count, nor do groups
        without any others.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features, a source or a `polyleaf.BinnedTable`, as in `predict`. Of a source, y and raw scores
            are held in memory, and the features are not.
        y : data frame, table or dict
            The targets, as in ``fit``; of files and LazyFrames, the columns that `targets` names if it is
            left out.
        sample_weight : str, array-like of shape (n_rows,) or (n_rows, n_columns of y), default=None
            Weights of rows or cells, the latter by name where they have names.
        """
        raw, y, sample_weight = self._beside_targets(
            X, y, sample_weight, lambda part: on_host(self._raw(part, None))
        )
        coding = self._mixed_coding()
        codes, weight = self._observed(y, sample_weight, len(raw))
        scores = [
            score_of_group(
                group,
                raw[:, outputs],
                codes[:, columns],
                weight if weight is None or weight.ndim == 1 else weight[:, columns],
            )
            for group, columns, outputs in coding.slices()
        ]
        found = [score for score in scores if score is not None]
        if not found:
            raise ValueError("y holds no observation: all of it is missing, or has weight 0.")
        return float(np.mean(found))

    def _target_reader(self) -> GroupedTargets:
        groups = {
            group.name: {"kind": group.coding.kind, "columns": group.columns}
            for group in self._mixed_coding().groups
        }
        return GroupedTargets({"targets": groups})

    def _mixed_coding(self) -> MixedCoding:
        assert isinstance(self._coding, MixedCoding)
        return self._coding

    def _predictions(self, X: Any, raw: FloatArray) -> Any:
        """Return what raw scores say about the targets, as a table."""
        coding, columns = self._mixed_coding(), {}
        for group, scores in self._of_groups(raw):
            columns.update(_columns_of(group, scores))
        in_order = {name: columns[name] for name in coding.columns_of_predictions()}
        kind = frame_kind(X)
        return make_table(in_order, kind or coding.table, X.index if kind == "pandas" else None)

    def _linked(self, raw: FloatArray) -> FloatArray:
        """Return the values and probabilities of raw scores, group after group."""
        linked = np.empty_like(raw)
        for group, _, outputs in self._mixed_coding().slices():
            own = np.ascontiguousarray(raw[:, outputs])
            linked[:, outputs] = make_link(group.objective, group.coding).predict(own)
        return linked

    def _of_groups(self, raw: FloatArray) -> Iterator[tuple[CodedGroup, FloatArray]]:
        for group, _, outputs in self._mixed_coding().slices():
            yield group, raw[:, outputs]


def _columns_of_probabilities(group: CodedGroup) -> list[str]:
    """Return what the columns of a group's probabilities are called in a file."""
    if group.has_classes:
        return [f"{group.columns[0]}={label}" for label in group.coding.columns_of_probabilities()]
    return list(group.columns)


def _probabilities_of(group: CodedGroup, scores: FloatArray) -> FloatArray:
    prediction = make_link(group.objective, group.coding).predict(scores)
    return probabilities(group.coding, group.objective, prediction)


def _columns_of(group: CodedGroup, scores: FloatArray) -> dict[str, Array]:
    """Return the predictions of a group, by column."""
    coding = group.coding
    if coding.kind == "regression":
        values: Array = make_link(group.objective, coding).predict(scores)
    else:
        values = decided(coding, group.objective, scores)
    if values.ndim == 1:  # classes
        return {group.columns[0]: values}
    names = coding.output_names(group.columns)
    return {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
