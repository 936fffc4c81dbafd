"""What the estimators share: reading the input, calling the boosting loop, keeping and saving the forest."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyleaf.boosting import Dataset, Settings, TrainingResult, train
from polyleaf.constraints import SignMatrix, has_signs, interaction_groups, monotone_signs
from polyleaf.data.inputs import (
    Array,
    EvalInput,
    FloatArray,
    check_features,
    check_weights,
    drop_weightless,
    read_eval_sets,
)
from polyleaf.data.targets import TargetCoding, TargetKind
from polyleaf.growth.threads import effective_threads
from polyleaf.losses import Loss, make_loss
from polyleaf.metrics import make_metrics
from polyleaf.model import Forest
from polyleaf.model_file import SavedModel, write_model
from polyleaf.params import (
    DEFAULT_SKETCH_SIZE,
    Boolean,
    EstimatorKind,
    Integer,
    base_score_vector,
    check_combination,
    parameters_of,
    resolve_hessian,
    resolve_sketch,
    validate_params,
)
from polyleaf.progress import Progress

Objective = Callable[[Array, FloatArray], tuple[Array, Array]]
EvalMetric = str | Callable[[Array, FloatArray], float]

DEFAULT_OBJECTIVES: dict[TargetKind, str] = {
    "regression": "squared_error",
    "multiclass": "cross_entropy",
    "binary": "binary_cross_entropy",
    "multilabel": "binary_cross_entropy",
}


class BasePolyleaf(BaseEstimator):  # type: ignore[misc]
    """What the two estimators share: ``fit``, the fitted attributes, the way from a table to raw scores."""

    _kind: ClassVar[EstimatorKind]

    # Declared for readers and type checkers; __init__ of the two estimators sets the parameters.
    n_estimators: int
    early_stopping_rounds: int | None
    objective: str | Objective | None
    importance_type: str
    monotone_constraints: Any
    n_jobs: int | None

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    n_outputs_: int
    n_estimators_: int
    best_iteration_: int
    evals_result_: dict[str, dict[str, list[float]]]
    _forest: Forest
    _coding: TargetCoding
    _loss_name: str

    @abstractmethod
    def _read_y(self, y: object, n_rows: int, name: str, warn: bool) -> Array:
        """Return y checked, as an array, before rows without weight are dropped."""

    @abstractmethod
    def _learn_coding(self, y: Array) -> TargetCoding:
        """Return what there is to know about a checked y."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_sample_weight: Any = None,
    ) -> Self:
        """Train on a table.

        Ctrl-C stops training within a round; the estimator is then fitted with the rounds done, and
        KeyboardInterrupt is raised. A fit that fails otherwise leaves the estimator as it was.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The features: numbers, with NaN for a missing value.
        y : array-like of shape (n_rows,) or (n_rows, n_columns)
            The targets, the class labels, or a matrix of 0 and 1 with one column per label.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, >= 0. A row of weight 0 is treated as if it were not there.
        eval_set : tuple (X, y) or list of such tuples, default=None
            Tables on which `eval_metric` is computed after each round.
        eval_sample_weight : array-like or list of array-like, default=None
            Row weights of the evaluation sets: an array when `eval_set` is a tuple, a list when it is a list.

        Returns
        -------
        self
        """
        params = self.get_params(deep=False)
        validate_params(params, self._kind)
        evals = read_eval_sets(eval_set, eval_sample_weight)
        if self.early_stopping_rounds is not None and not evals:
            raise ValueError(
                f"early_stopping_rounds={self.early_stopping_rounds!r} needs rows that are not trained on; "
                "pass eval_set to fit, or set early_stopping_rounds=None."
            )
        checked = copy.copy(self)  # takes the features' number and names while the input is being read
        rows = EvalInput("training", X, y, sample_weight, "X", "y", "sample_weight")
        table, labels, weight = checked._read_rows(rows, reset=True)
        coding = self._learn_coding(labels)
        loss = self._make_loss(coding)
        check_combination(params, loss.name, loss.n_outputs, scipy.sparse.issparse(labels))
        names = getattr(checked, "feature_names_in_", None)
        names = None if names is None else tuple(names)
        settings = replace(
            self._settings(params, coding, loss.name),
            monotone=self._monotone_signs(coding, table.shape[1], names),
            interaction=interaction_groups(params["interaction_constraints"], table.shape[1], names),
        )
        metrics = make_metrics(
            params["eval_metric"], default=loss.default_metric, kind=coding.kind, n_labels=coding.width
        )
        data = Dataset(rows.name, table, coding.encode(labels), weight)
        eval_data = [checked._eval_dataset(one, coding) for one in evals]
        for metric in metrics:
            if not metric.takes_weight and any(one.weight is not None for one in eval_data):
                raise ValueError(
                    f"eval_sample_weight was given, but eval_metric {metric.name!r} takes no sample_weight."
                )

        with Progress(settings.n_estimators, int(params["verbose"]), bool(evals)) as progress:
            result = train(data, eval_data, loss, metrics, settings, progress)
        self._take(result, coding, loss.name, names)
        if result.interrupted:
            raise KeyboardInterrupt
        return self

    def _read_rows(self, rows: EvalInput, *, reset: bool) -> tuple[Array, Array, FloatArray | None]:
        X = check_features(self, rows.X, reset=reset, name=rows.X_name)
        y = self._read_y(rows.y, len(X), rows.y_name, warn=reset)
        weight = check_weights(rows.weight, len(X), rows.weight_name)
        return drop_weightless(X, y, weight)

    def _eval_dataset(self, rows: EvalInput, coding: TargetCoding) -> Dataset:
        X, y, weight = self._read_rows(rows, reset=False)
        return Dataset(rows.name, X, coding.encode(y, rows.y_name), weight)

    def _make_loss(self, coding: TargetCoding) -> Loss:
        objective = DEFAULT_OBJECTIVES[coding.kind] if self.objective is None else self.objective
        curvature = getattr(self, "softmax_curvature", "p(1-p)")
        return make_loss(objective, n_outputs=coding.n_outputs, kind=coding.kind, softmax_curvature=curvature)

    def _monotone_signs(
        self, coding: TargetCoding, n_features: int, names: tuple[str, ...] | None
    ) -> SignMatrix | None:
        if coding.kind == "multiclass" and has_signs(self.monotone_constraints):  # by a callable objective
            raise ValueError(
                "monotone_constraints do not go with classes whose probabilities are a softmax: each depends "
                "on all scores."
            )
        return monotone_signs(self.monotone_constraints, n_features, coding.n_outputs, names)

    def _settings(self, params: dict[str, Any], coding: TargetCoding, loss_name: str) -> Settings:
        """Return the parameters as plain Python numbers, with seed and threads resolved."""

        def count(name: str) -> int | None:
            return None if params[name] is None else int(params[name])

        return Settings(
            n_estimators=int(params["n_estimators"]),
            learning_rate=float(params["learning_rate"]),
            max_depth=count("max_depth"),
            max_leaves=count("max_leaves"),
            min_samples_leaf=int(params["min_samples_leaf"]),
            max_bins=count("max_bins"),
            reg_lambda=float(params["reg_lambda"]),
            reg_alpha=float(params["reg_alpha"]),
            min_split_gain=float(params["min_split_gain"]),
            min_child_weight=float(params["min_child_weight"]),
            subsample=float(params["subsample"]),
            sampling_method=params["sampling_method"],
            colsample_bytree=float(params["colsample_bytree"]),
            colsample_bylevel=float(params["colsample_bylevel"]),
            colsample_bynode=float(params["colsample_bynode"]),
            multi_strategy=params["multi_strategy"],
            sparse_leaves=count("sparse_leaves"),
            sparse_mode=params["sparse_mode"],
            sketch=resolve_sketch(params, loss_name, coding.n_outputs),
            sketch_size=count("sketch_size") or DEFAULT_SKETCH_SIZE,
            hessian=resolve_hessian(params, loss_name, coding.n_outputs),
            scale_targets=bool(params.get("scale_targets", False)),
            base_score=base_score_vector(params["base_score"], coding.n_outputs),
            early_stopping_rounds=count("early_stopping_rounds"),
            seed=int(check_random_state(params["random_state"]).randint(np.iinfo(np.int32).max)),
            n_threads=effective_threads(count("n_jobs")),
        )

    def _take(
        self,
        result: TrainingResult,
        coding: TargetCoding,
        loss_name: str,
        feature_names: tuple[str, ...] | None,
    ) -> None:
        """Set all that makes this estimator a fitted one, and nothing of a former fit."""
        forest = result.forest
        self._forest = forest
        self._coding = coding
        self._loss_name = loss_name
        self.n_features_in_ = forest.n_features
        if feature_names is not None:
            self.feature_names_in_ = np.array(feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_outputs_ = forest.n_outputs
        self.n_estimators_ = forest.n_rounds
        self.best_iteration_ = min(result.best_iteration, forest.n_rounds - 1)
        self.evals_result_ = result.evals_result

    # --- using the forest ----------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gain, cover or number of splits (`importance_type`); the sum is 1.

        All shares are 0 when no tree has a split.
        """
        self._check_is_fitted()
        self._check_param("importance_type")
        return self.get_importance(self.importance_type, normalize=True)

    def get_importance(
        self, kind: str = "gain", per_output: bool = False, normalize: bool = False
    ) -> FloatArray:
        """Return how much the trees use each feature, up to the best round.

        Parameters
        ----------
        kind : {"gain", "cover", "split"}, default="gain"
            What is added up for each feature: the gain of its splits, the weight of the rows they tell apart,
            or their number.
        per_output : bool, default=False
            Whether to tell the outputs apart. The gain of a split is shared out to the outputs by what each
            of them gains (which may be less than 0); its cover and number count for each output of its tree.
        normalize : bool, default=False
            Whether to divide by the sum over all features (and outputs).

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n_outputs)

        Raises
        ------
        ValueError
            When the outputs' shares of the gain are not known: with sparse labels, ``hessian="exact"``, trees
            of more than 1,024 outputs, and of a model file that an older version of polyleaf wrote.
        """
        self._check_is_fitted()
        parameters_of(self._kind)["importance_type"].rule.check("kind", kind)
        Boolean().check("per_output", per_output)
        Boolean().check("normalize", normalize)
        compute = self._forest.output_importance if per_output else self._forest.importance
        importance = compute(kind, self.best_iteration_ + 1)
        total = importance.sum()
        return importance / total if normalize and total > 0 else importance

    def apply(self, X: Any, *, n_rounds: int | None = None) -> npt.NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The features.
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.

        Returns
        -------
        ndarray of shape (n_rows, n_trees)
            Node numbers within each tree. A round has one tree, or one per output, in the order of the
            outputs, with ``multi_strategy="one_output_per_tree"``.
        """
        table, rounds, threads = self._ready(X, n_rounds)
        return self._forest.apply(table, n_rounds=rounds, n_threads=threads)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to one file (safetensors, no pickle); `polyleaf.load_model` reads it.

        The loaded model predicts the same bits. Parameters that a file cannot hold (a callable objective or
        metric, a RandomState) are stored as None: they matter to another ``fit`` only.

        Parameters
        ----------
        path : str or os.PathLike
            The file. It appears only when it is complete, and replaces one of the same name.
        """
        self._check_is_fitted()
        params = self.get_params(deep=False)
        validate_params(params, self._kind)
        names = getattr(self, "feature_names_in_", None)
        model = SavedModel(
            estimator=self._kind,
            params=params,
            forest=self._forest,
            coding=self._coding,
            loss=self._loss_name,
            feature_names=None if names is None else tuple(names),
            best_iteration=self.best_iteration_,
            evals_result=self.evals_result_,
        )
        write_model(path, model)

    def _check_is_fitted(self) -> None:
        # scikit-learn's check looks at the whole estimator, which takes as long as predicting a row.
        if "_forest" not in self.__dict__:
            check_is_fitted(self)

    def _check_param(self, name: str) -> None:
        """Check a parameter that counts after fit too, and may have been set since."""
        parameters_of(self._kind)[name].rule.check(name, getattr(self, name))

    def _ready(self, X: object, n_rounds: int | None) -> tuple[Array, int, int]:
        """Return the checked table, the number of rounds and the number of threads of a prediction."""
        self._check_is_fitted()
        self._check_param("n_jobs")
        threads = effective_threads(None if self.n_jobs is None else int(self.n_jobs))
        table = check_features(self, X, reset=False, n_threads=threads)
        rounds = self.best_iteration_ + 1
        if n_rounds is not None:
            Integer(1, self.n_estimators_).check("n_rounds", n_rounds)
            rounds = int(n_rounds)
        return table, rounds, threads

    def _raw(self, X: object, n_rounds: int | None) -> FloatArray:
        table, rounds, threads = self._ready(X, n_rounds)
        return self._forest.predict_raw(table, n_rounds=rounds, n_threads=threads)

    def _staged_raw(self, X: object, n_rounds: int | None) -> Iterator[FloatArray]:
        table, rounds, threads = self._ready(X, n_rounds)
        return self._forest.staged_raw(table, n_rounds=rounds, n_threads=threads)
