"""Classes, two or many, and several labels at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sources import source_kind
from polyleaf.data.target_frames import TargetInput
from polyleaf.data.targets import TargetCoding
from polyleaf.data.weights import ClassWeight
from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.prediction import decided, middle_of, probabilities, raw_blocks, read_observed
from polyleaf.estimators.targets import ClassTargets, EvalMetric, Objective
from polyleaf.metrics import make_metrics
from polyleaf.metrics.ranking import best_columns
from polyleaf.model.fitted import FittedModel
from polyleaf.params.combinations import check, refused
from polyleaf.params.constraints import InteractionConstraints, MonotoneConstraints
from polyleaf.params.documented import documented
from polyleaf.params.rules import Boolean, Integer
from polyleaf.params.situation import Situation


@documented("classifier")
class PolyleafClassifier(ClassifierMixin, BasePolyleaf):  # type: ignore[misc]
    """Gradient boosted trees for classes or labels, each leaf holding a score for all of them.

    The problem is multi-class (or binary) when y is 1-D or has one column: str, int, bool, or float labels
    that are whole numbers. It is multi-label when y is a matrix of 0 and 1 with two columns or more.

    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The sorted class labels; with several labels per row the numbers of the columns.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when `X` had any.
    target_names_ : ndarray of str
        Names of the labels, or of the one column of classes, when `y` had any.
    n_outputs_ : int
        Number of scores per row: one per class or label, one for two classes.
    n_estimators_ : int
        Number of rounds done.
    best_iteration_ : int
        The best round, from 0, with early stopping; otherwise the last. Predictions use the rounds up to it.
    evals_result_ : dict
        ``evals_result_["validation_0"]["cross_entropy"]`` has the metric of the first evaluation set after
        each round.
    chosen_params_ : dict
        What was taken for the parameters that are "auto", by name; rounds are in `n_estimators_`.
    best_score_ : dict
        ``best_score_["validation_0"]`` has the metrics of the first evaluation set after the best round.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the gain, the cover or the splits of the trees.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyleaf import PolyleafClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> PolyleafClassifier(n_estimators=10).fit(X, y).predict_proba(X).shape
    (150, 3)
    """

    _kind = "classifier"
    _targets = ClassTargets
    classes_: Array

    def __init__(
        self,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        max_depth: int | str | None = "auto",
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
        base_score: float | Sequence[float] | FloatArray | None = None,
        multi_strategy: str = "multi_output_tree",
        sparse_leaves: int | None = None,
        sparse_mode: str = "restricted",
        sketch: str | None = "auto",
        sketch_size: int | None = None,
        label_space: str | None = None,
        hessian: str = "auto",
        softmax_curvature: str = "p(1-p)",
        class_weight: ClassWeight = None,
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
        self.base_score = base_score
        self.multi_strategy = multi_strategy
        self.sparse_leaves = sparse_leaves
        self.sparse_mode = sparse_mode
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.label_space = label_space
        self.hessian = hessian
        self.softmax_curvature = softmax_curvature
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
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        if fitted.coding.classes is not None:
            self.classes_ = fitted.coding.classes

    def predict(
        self,
        X: Any,
        *,
        sparse: bool | None = None,
        top_k: int | None = None,
        as_labels: bool = False,
        n_rounds: int | None = None,
        as_frame: bool = False,
        out: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Predict the class of each row, or its labels.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features. A frame must have the columns of ``fit``, in the same order. Or a source, as in
            ``fit``, of which some rows are read at a time; in files and LazyFrames the columns of ``fit`` are
            found by name, and others do not matter. Batches are tables, or tuples that begin with one. Or a
            `polyleaf.BinnedTable` with the cut points of ``fit``: the one that the model was trained on.
        sparse : bool, default=None
            With several labels per row, whether 0 and 1 are returned as a SciPy CSR array. None: as y was in
            ``fit``, unless a frame is asked for.
        top_k : int, default=None
            With several classes or labels, return the numbers of the `top_k` columns (of `classes_`) with the
            largest scores instead, best first; of equal ones the lower column first.
        as_labels : bool, default=False
            With `top_k`, whether to return the classes themselves, or the names of the labels
            (`target_names_`, if there are any), in the place of numbers of columns.
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        as_frame : bool, default=False
            Whether to return a data frame: of the kind of `X` (pandas: with its index), or of the kind that y
            had in ``fit`` when `X` is none. Its columns are `target_names_`; without these "class", or
            "label_0", "label_1", ...; with `top_k` "top_1", "top_2", ...
        out : str or os.PathLike, default=None
            A Parquet file to write the predictions to, batch by batch, in the place of returning them; its
            columns are those that a frame would have. It appears when it is complete.

        Returns
        -------
        ndarray of shape (n_rows,), (n_rows, n_labels) or (n_rows, top_k), csr_array, or data frame
            None with `out`. No dense array of rows x labels is made for the third and the fourth.
        """
        if sparse is not None:
            Boolean().check("sparse", sparse)
        if out is not None or source_kind(X) is not None:
            self._check_out(out, as_frame=as_frame, sparse=sparse)
            whole = partial(
                self.predict,
                sparse=sparse if out is None else False,
                top_k=top_k,
                as_labels=as_labels,
                n_rounds=n_rounds,
                as_frame=as_frame,
            )
            names = _places(top_k) if top_k is not None else self._coding.columns_of_predictions()
            return self._by_parts(X, whole, names, out)
        make_frame = None if as_frame is False else self._frame_maker(X, as_frame)
        Boolean().check("as_labels", as_labels)
        if as_labels and top_k is None:
            raise refused(Situation(asked=frozenset({"as_labels"})))
        if top_k is not None:
            Integer(1, self._coding_of_fit().width).check("top_k", top_k)
            if sparse:
                raise refused(Situation(asked=frozenset({"sparse", "top_k"})))
            best = self._best(X, int(top_k), n_rounds)
            if as_labels:
                best = self._labels()[best]
            if make_frame is None:
                return best
            return make_frame(best, _places(best.shape[1]))
        if sparse is None:
            sparse = self._coding_of_fit().sparse and make_frame is None
        if not sparse:
            beside = 9 if self._coding.kind == "multilabel" else 0  # a comparison, and the labels
            prediction = self._decided(self._raw(X, n_rounds, beside))
            if make_frame is None:
                return prediction
            return make_frame(prediction, self._coding.columns_of_predictions())
        asked = frozenset({"sparse"} if make_frame is None else {"sparse", "as_frame"})
        check(Situation(kind=self._coding.kind, asked=asked))
        if self._forest.scores_are_sparse:
            return self._forest.outputs_above(*self._table_to_rank(X, middle_of(self._loss_name), n_rounds))
        blocks = [scipy.sparse.csr_array(self._decided(raw)) for raw in self._raw_blocks(X, n_rounds)]
        return scipy.sparse.csr_array(scipy.sparse.vstack(blocks, format="csr"))

    def predict_proba(
        self,
        X: Any,
        *,
        n_rounds: int | None = None,
        as_frame: bool = False,
        out: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Predict the probability of each class or label; parameters as in `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows, n_labels), or data frame
            In the order of `classes_`. The columns of a frame are the classes, written as str, or the names
            of the labels.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out, as_frame=as_frame)
            whole = partial(self.predict_proba, n_rounds=n_rounds, as_frame=as_frame)
            return self._by_parts(X, whole, self._coding.columns_of_probabilities(), out)
        make_frame = None if as_frame is False else self._frame_maker(X, as_frame)
        probability = self._probabilities(self._predicted(X, n_rounds))
        if make_frame is None:
            return probability
        return make_frame(probability, self._coding.columns_of_probabilities())

    def decision_function(
        self, X: Any, *, n_rounds: int | None = None, out: str | os.PathLike[str] | None = None
    ) -> Any:
        """Return the raw scores; parameters as in `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), (n_rows, n_labels), or (n_rows,) for two classes
            With two classes the second one is predicted where the score is greater than 0. The columns of a
            file are called like those of `predict_proba`; with two classes there is that of the second.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out)
            names = self._coding.columns_of_probabilities()
            one = self._coding.ndim == 1 and self._coding.width <= 2
            whole = partial(self.decision_function, n_rounds=n_rounds)
            return self._by_parts(X, whole, names[-1:] if one else names, out)
        raw = self._raw(X, n_rounds)
        if self._coding.ndim == 2 or self._coding.width > 2:
            return raw
        score: FloatArray = raw[:, 0] if self._coding.kind == "binary" else raw[:, 1] - raw[:, 0]
        return score

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; of several labels, the share of rows whose observed labels are all right.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features, a source or a `polyleaf.BinnedTable`, as in `predict`. Of a source, y and what is
            predicted are held in memory, and the features are not.
        y : str, list of str, array-like, data frame or sparse matrix
            Classes or labels, or names of columns of a source, as in ``fit``; NaN in a matrix of labels does
            not count. Left out where batches or a BinnedTable have them.
        sample_weight : str or array-like of shape (n_rows,) or (n_rows, n_labels), default=None
            Weights of rows or cells.
        """
        predicted, y, sample_weight = self._beside_targets(on_host(X), y, sample_weight, self.predict)
        values = y.values if isinstance(y, TargetInput) else y
        if self._coding.kind != "multilabel" or scipy.sparse.issparse(values):
            y, weight = read_observed(
                y, sample_weight, predicted.shape[0], self._target_reader(), self._coding
            )
            return float(accuracy_score(y, predicted, sample_weight=weight))
        if self._coding.sparse:
            predicted = predicted.toarray()
        prediction = predicted.astype(np.float64)
        (accuracy,) = make_metrics("accuracy", default="accuracy", kind=self._coding.kind)
        labels, weight = self._observed(y, sample_weight, len(prediction))
        return float(accuracy.function(labels, prediction, weight))

    def staged_predict(self, X: Any, *, n_rounds: int | None = None) -> Iterator[Array]:
        """Return an iterator over the predictions after each round; parameters as in `predict`."""
        return map(self._decided, self._staged_raw(X, n_rounds))

    def staged_predict_proba(self, X: Any, *, n_rounds: int | None = None) -> Iterator[FloatArray]:
        """Return an iterator over the probabilities after each round; parameters as in `predict`."""
        self._check_is_fitted()
        link = self._link()
        return (self._probabilities(link.predict(raw)) for raw in self._staged_raw(X, n_rounds))

    def _coding_of_fit(self) -> TargetCoding:
        self._check_is_fitted()
        return self._coding

    def _labels(self) -> Array:
        """Return the classes, or what the labels are called."""
        named = self._coding.kind == "multilabel" and self._coding.names is not None
        return self.target_names_ if named else self.classes_

    def _best(self, X: Any, k: int, n_rounds: int | None) -> Array:
        """Return the columns with the k largest scores of each row, best first."""
        if self._forest.scores_are_sparse:
            return self._forest.best_outputs(*self._table_to_rank(X, k, n_rounds)).astype(np.intp)
        binary = self._coding.kind == "binary"  # one score: that of the second class
        scores = (np.hstack([-raw, raw]) if binary else raw for raw in self._raw_blocks(X, n_rounds))
        return np.concatenate([best_columns(one, k) for one in scores])

    def _table_to_rank(self, X: Any, by: Any, n_rounds: int | None) -> tuple[Any, Any, int, int]:
        """Return what ranks the outputs of sparse scores: a table on the host, what by, rounds, threads."""
        table, rounds, n_threads = self._ready(X, n_rounds)
        return on_host(table), by, rounds, n_threads

    def _raw_blocks(self, X: Any, n_rounds: int | None) -> Iterator[FloatArray]:
        """Return the raw scores of some rows at a time."""
        return raw_blocks(self._forest, *self._ready(X, n_rounds))

    def _decided(self, raw: FloatArray) -> Array:
        return decided(self._coding, self._loss_name, raw)

    def _probabilities(self, prediction: FloatArray) -> FloatArray:
        return probabilities(self._coding, self._loss_name, prediction)


def _places(top_k: int) -> list[str]:
    """Return what the columns of the best classes or labels are called."""
    return [f"top_{place}" for place in range(1, int(top_k) + 1)]
