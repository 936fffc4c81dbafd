"""What the estimators share: reading the input, calling the boosting loop, keeping and saving the forest."""

from __future__ import annotations

import copy
import numbers
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polyleaf.data.category_values import (
    Categories,
    category_codes,
    learn_categories,
    resolve_categorical,
)
from polyleaf.data.dataset import Dataset
from polyleaf.data.device_arrays import chosen_rows, on_host
from polyleaf.data.inputs import (
    Array,
    EvalInput,
    FloatArray,
    check_features,
    read_eval_sets,
    read_table,
    table_numbers,
)
from polyleaf.data.sparse_tables import SparseTable
from polyleaf.data.tables import Table
from polyleaf.data.target_frames import FrameMaker, TargetInput, frame_maker, read_target_input
from polyleaf.data.targets import TargetCoding
from polyleaf.data.weights import (
    Mask,
    Weights,
    apply_class_weight,
    check_cell_weights,
    refuse_unobserved,
    rows_with_weight,
    set_unobserved_aside,
)
from polyleaf.growth.threads import effective_threads
from polyleaf.losses import Loss, LossDetails, make_link, make_loss
from polyleaf.metrics import Metric, make_metrics
from polyleaf.model.checkpoint import CheckpointNote, describe_data, describe_params
from polyleaf.model.file import read_model, write_model
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.model.forest import Forest
from polyleaf.model.importance import importance, output_importance
from polyleaf.params.combinations import check, refused
from polyleaf.params.constraints import interaction_groups, monotone_signs
from polyleaf.params.objectives import default_objective, link_of
from polyleaf.params.resolution import (
    base_score_vector,
    output_weight_vector,
    resolve_hessian,
    resolve_sketch,
)
from polyleaf.params.rules import Boolean, Integer
from polyleaf.params.settings import Settings, seed_of
from polyleaf.params.situation import Situation
from polyleaf.params.table import DEFAULT_SKETCH_SIZE, EstimatorKind, parameters_of, validate_params
from polyleaf.training.callbacks import all_callbacks
from polyleaf.training.continuation import Start
from polyleaf.training.loop import TrainingResult, train

Objective = Callable[[Array, FloatArray], tuple[Array, Array]]
EvalMetric = str | Callable[[Array, FloatArray], float]


@dataclass(frozen=True)
class Problem:
    """What there is to train on, read and checked.

    Attributes
    ----------
    data, coding, loss, metrics, settings
        Everything the boosting loop needs.
    feature_names : tuple of str or None
        Of the table.
    categories : mapping of int to CategoryValues
        Of the categorical columns.
    reader : BasePolyleaf
        A copy of the estimator that knows the features, to read evaluation sets with.
    kept : bool ndarray or None
        Which of the rows given are in `data`: those with any weight. None: all.
    own_weight : float64 ndarray or None
        Weights of the rows or cells of `data` without those of their classes.
    saved_loss : str
        What a model file calls the loss.
    """

    data: Dataset
    coding: TargetCoding
    loss: Loss
    metrics: list[Metric]
    settings: Settings
    feature_names: tuple[str, ...] | None
    categories: Categories
    reader: BasePolyleaf
    kept: Mask | None
    own_weight: FloatArray | None
    saved_loss: str

    def fitted(self, result: TrainingResult) -> FittedModel:
        """Return the model that some rounds are."""
        return FittedModel(
            result.forest,
            self.coding,
            self.saved_loss,
            self.feature_names,
            self.categories,
            result.best_iteration,
            result.evals_result,
        )


class BasePolyleaf(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: ``fit``, the fitted attributes, the way from a table to raw scores."""

    _kind: ClassVar[EstimatorKind]

    # Declared for readers and type checkers; __init__ of the estimators sets the parameters.
    n_estimators: int
    early_stopping_rounds: int | None
    warm_start: bool
    categorical_features: Any
    objective: str | Objective | None
    importance_type: str
    monotone_constraints: Any
    device: str
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    target_names_: npt.NDArray[np.object_]
    n_outputs_: int
    n_estimators_: int
    best_iteration_: int
    evals_result_: dict[str, dict[str, list[float]]]
    _forest: Forest
    _coding: TargetCoding
    _loss_name: str
    _seed: int | None

    def _target_input(self, y: object, name: str) -> TargetInput:
        """Return y taken apart: its values, and what its columns are called."""
        return read_target_input(y, name)

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
        *,
        init_model: Any = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table.

        Ctrl-C stops training within a round; the estimator is then fitted with the rounds done, and
        KeyboardInterrupt is raised. An error in a callback likewise comes through with the rounds done kept.
        A fit that fails otherwise leaves the estimator as it was.

        With `init_model`, `resume` or `warm_start` training goes on from trees that are there already. These
        count in `n_estimators_`, `best_iteration_` and `evals_result_`, for which they are measured again on
        the evaluation sets given. On the same data with the same parameters and seed, the trees to come are
        those of one run of all rounds, to the last bit.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features: numbers, with NaN (in a frame: null, too) for a missing value. Frames are those of
            pandas, polars and pyarrow. A SciPy sparse matrix is never made dense as a whole; its zeros are
            values.
        y : array-like or data frame of shape (n_rows,) or (n_rows, n_columns)
            The targets, the class labels, or a matrix of 0 and 1 with one column per label. NaN in a target
            or in a matrix of labels means "not observed": that cell takes no part in anything. The names of
            a frame's columns are kept in `target_names_`. Of a mixed model, a table with the columns that
            `targets` names.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_columns of y), default=None
            Weights of the rows, or of each target or label of each row, >= 0. A row of weight 0 is treated as
            if it were not there, a cell of weight 0 as if it were not observed.
        eval_set : tuple (X, y), list of such tuples, or dict of name and tuple, default=None
            Tables on which `eval_metric` is computed after each round. The names are the keys of
            `evals_result_`; without names they are "validation_0", "validation_1", ...
        eval_sample_weight : array-like, list or dict of array-like, default=None
            Weights of the evaluation sets: an array when `eval_set` is a tuple, a list when it is a list,
            a dict (which may leave out sets) when it is a dict.
        init_model : fitted estimator, str or os.PathLike, default=None
            A model, or the file of one, to which `n_estimators` rounds are added. Its base score is kept; it
            must have the same features, objective and kind of trees, the same number of targets, and all the
            classes of y. All its rounds are kept, also those after the best one.
        resume : str or os.PathLike, default=None
            The file of a `polyleaf.callbacks.Checkpoint`: the run that wrote it goes on until there are
            `n_estimators` rounds. Data and parameters must be those of that run, except for `n_estimators`,
            `callbacks`, `verbose`, `device`, `n_jobs`, `importance_type` and `warm_start`.

        Returns
        -------
        self
        """
        params = self.get_params(deep=False)
        validate_params(params, self._kind)
        if self.device == "cuda":
            from polyleaf.gpu.runtime import require_gpu

            require_gpu()
        evals = read_eval_sets(eval_set, eval_sample_weight)
        check(Situation(params, n_eval_sets=len(evals)))
        callbacks = all_callbacks(params["callbacks"], self.early_stopping_rounds, int(params["verbose"]))
        start = self._start(init_model, resume)
        problem = self._problem(X, y, sample_weight, params, start)
        eval_data = [problem.reader._eval_dataset(one, problem.coding, problem.loss) for one in evals]
        for one, given in zip(eval_data, evals, strict=True):
            problem.loss.check_targets(one.y, one.weights.whole(), given.y_name, training=False)
            check_measured(problem.metrics, one, given.y_name)
        if not evals:
            check_measured(problem.metrics, problem.data, "y", weighted=False)

        @cache
        def note() -> CheckpointNote:
            return CheckpointNote(
                seed=problem.settings.seed,
                init_rounds=0 if start is None else start.init_rounds,
                params=describe_params(params),
                data=describe_data(problem.data.arrays()),
            )

        def save(path: str | os.PathLike[str], result: TrainingResult) -> None:
            write_model(path, self._saved(params, problem.fitted(result), note()))

        result = train(
            problem.data,
            eval_data,
            problem.loss,
            problem.metrics,
            problem.settings,
            callbacks,
            initial=None if start is None else start.forest,
            save=save,
        )
        self._take(problem.fitted(result))
        self._seed = problem.settings.seed
        if result.error is not None:
            raise result.error
        return self

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], start: Start | None = None
    ) -> Problem:
        """Read and check what there is to train on."""
        reader = copy.copy(self)  # takes the features' number and names while the input is being read
        target = self._target_input(y, "y")
        rows = EvalInput("training", X, target.values, sample_weight, "X", "y", "sample_weight")
        reader._names_of_y = target.names
        table, labels, weight, kept = reader._read_rows(rows, reset=True, start=start)
        if start is None:
            coding = replace(self._learn_coding(labels), names=target.names, frame=target.frame)
        else:
            coding = start.fitted.coding
            coding.check_names(target.names, "y")
            self._check_continues(coding, start.source)
        loss = self._make_loss(coding)
        names = getattr(reader, "feature_names_in_", None)
        feature_names = None if names is None else tuple(names)
        n_features, n_outputs = table.shape[1], coding.n_outputs
        interaction = interaction_groups(params["interaction_constraints"], n_features, feature_names)
        check(
            Situation(
                params,
                device=params["device"],
                kind=coding.kind,
                loss=loss.name,
                n_outputs=n_outputs,
                leaf_quantiles=loss.leaf_levels is not None,
                sparse_labels=scipy.sparse.issparse(labels),
                categorical=bool(reader._categories),
                interaction=interaction is not None,
            )
        )
        signs = monotone_signs(params.get("monotone_constraints"), n_features, n_outputs, feature_names)
        settings = replace(
            self._settings(params, coding, loss.name, reader._categorical_mask()),
            monotone=signs,
            interaction=interaction,
        )
        codes = coding.encode(labels)
        own_weight = loss.output_weights(weight)
        weight = apply_class_weight(params.get("class_weight"), codes, coding, weight)
        data = Dataset(rows.name, table, codes, Weights.of(loss.output_weights(weight)))
        loss.check_targets(data.y, data.weights.whole(), rows.y_name, training=True)
        metrics = self._make_metrics(params, coding, loss, data)
        if start is not None:
            start.check_run(data, self._saved_loss(loss), params, settings, feature_names)
            settings = start.continued(settings)
        return Problem(
            data,
            coding,
            loss,
            metrics,
            settings,
            feature_names,
            reader._categories,
            reader,
            kept,
            own_weight,
            self._saved_loss(loss),
        )

    def _saved_loss(self, loss: Loss) -> str:
        """What a model file calls the loss."""
        return loss.name

    def _check_continues(self, coding: TargetCoding, source: str) -> None:
        """Raise ValueError where the outputs of the model to go on from mean something else than ours."""
        details = LossDetails.from_params(self.get_params(deep=False))
        levels = details.quantile_levels if self.objective == "quantile" else None
        if levels != coding.levels:
            raise ValueError(
                f"{source}: quantile_levels are {levels}, but those of the model are {coding.levels}."
            )

    def _categorical_mask(self) -> npt.NDArray[np.uint8] | None:
        if not self._categories:
            return None
        mask = np.zeros(self.n_features_in_, dtype=np.uint8)
        mask[list(self._categories)] = 1
        return mask

    def _start(self, init_model: Any, resume: str | os.PathLike[str] | None) -> Start | None:
        """Return what training goes on from, if anything."""
        go_on = bool(self.warm_start) and hasattr(self, "_forest")
        asked = {
            "init_model": init_model is not None,
            "resume": resume is not None,
            "warm_start=True on a fitted estimator": go_on,
        }
        check(Situation(going_on=tuple(name for name, is_asked in asked.items() if is_asked)))
        if resume is not None:
            model = read_model(resume)
            start = Start("resume", model, None if model.checkpoint is None else model.checkpoint.seed)
        elif init_model is not None:
            start = Start("init_model", _model_of(init_model))
        elif go_on:
            # An integer gives its seed again; otherwise the run goes on with the one it had.
            drawn = isinstance(self.random_state, numbers.Integral)
            start = Start("warm_start", _model_of(self), None if drawn else getattr(self, "_seed", None))
        else:
            return None
        start.check_estimator(self._kind)
        return start

    def _read_rows(
        self, rows: EvalInput, *, reset: bool, start: Start | None = None
    ) -> tuple[Array | SparseTable, Array, FloatArray | None, Mask | None]:
        """Return features, targets and weights of the rows that have any weight, and which rows these are."""
        table = read_table(self, rows.X, reset=reset, name=rows.X_name)
        y = self._read_y(rows.y, table.shape[0], rows.y_name, warn=reset)
        y, weight = self._weighed(y, rows)
        kept = rows_with_weight(weight)
        if reset:
            self._categories = self._learn_categories(table, kept, start)
        X = self._numbers(table)
        if kept is not None:
            X, y, weight = chosen_rows(X, kept), y[kept], None if weight is None else weight[kept]
        refuse_unobserved(X.shape[0], weight if reset else None, rows.y_name, self._columns_of_y())
        # Training and evaluation read a sparse table column by column.
        return scipy.sparse.csc_array(X) if scipy.sparse.issparse(X) else X, y, weight, kept

    def _weighed(self, y: Any, rows: EvalInput) -> tuple[Any, FloatArray | None]:
        """Return y without missing values, and the weights of rows or cells."""
        return set_unobserved_aside(y, check_cell_weights(rows.weight, y, rows.weight_name))

    def _columns_of_y(self) -> Sequence[str] | None:
        """What errors call the columns of y; None: their numbers."""
        names: Sequence[str] | None = self._names_of_y
        return names

    def _learn_categories(self, table: Table, kept: Mask | None, start: Start | None) -> Categories:
        """Return the categories of the table of ``fit``, or those of the model to go on from."""
        mask = resolve_categorical(self.categorical_features, table)
        if start is None:
            return learn_categories(table, mask, kept)
        start.check_categorical(np.flatnonzero(mask).tolist())
        return start.fitted.categories

    def _numbers(self, table: Table, n_threads: int = 1) -> Array | SparseTable:
        """Return a table's cells as numbers, categories as their codes."""
        codes = category_codes(table, self._categories) if self._categories else None
        return table_numbers(table, codes, n_threads)

    def _eval_dataset(self, rows: EvalInput, coding: TargetCoding, loss: Loss) -> Dataset:
        target = self._target_input(rows.y, rows.y_name)
        coding.check_names(target.names, rows.y_name)
        X, y, weight, _ = self._read_rows(replace(rows, y=target.values), reset=False)
        weights = Weights.of(loss.output_weights(weight))
        return Dataset(rows.name, X, coding.encode(y, rows.y_name), weights)

    def _make_loss(self, coding: TargetCoding) -> Loss:
        return make_loss(
            default_objective(coding.kind) if self.objective is None else self.objective,
            n_outputs=coding.n_outputs,
            kind=coding.kind,
            parameters=self.get_params(deep=False),
        )

    def _make_metrics(
        self, params: dict[str, Any], coding: TargetCoding, loss: Loss, data: Dataset
    ) -> list[Metric]:
        return make_metrics(
            params["eval_metric"],
            default=loss.default_metric,
            kind=coding.kind,
            n_labels=coding.width,
            details=LossDetails.from_params(params),
        )

    def _settings(
        self,
        params: dict[str, Any],
        coding: TargetCoding,
        loss_name: str,
        categorical: npt.NDArray[np.uint8] | None,
    ) -> Settings:
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
            histogram_precision=params["histogram_precision"],
            scale_targets=bool(params.get("scale_targets", False)),
            output_weight=output_weight_vector(params["output_weight"], coding.n_outputs),
            base_score=base_score_vector(params["base_score"], coding.n_outputs),
            categorical=categorical,
            seed=seed_of(params["random_state"]),
            n_threads=effective_threads(count("n_jobs")),
            device=params["device"],
        )

    def _take(self, fitted: FittedModel) -> None:
        """Set all that makes this estimator a fitted one, and nothing of a former fit."""
        forest, coding = fitted.forest, fitted.coding
        self._forest = forest
        self._coding = coding
        self._loss_name = fitted.loss
        self._categories = fitted.categories
        self.n_features_in_ = forest.n_features
        if fitted.feature_names is not None:
            self.feature_names_in_ = np.array(fitted.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if coding.names is not None:
            self.target_names_ = np.array(coding.names, dtype=object)
        elif hasattr(self, "target_names_"):
            del self.target_names_
        self.n_outputs_ = forest.n_outputs
        self.n_estimators_ = forest.n_rounds
        self.best_iteration_ = fitted.best_iteration
        self.evals_result_ = fitted.evals_result

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
        compute = output_importance if per_output else importance
        found = compute(self._forest, kind, self.best_iteration_ + 1)
        total = found.sum()
        return found / total if normalize and total > 0 else found

    def apply(self, X: Any, *, n_rounds: int | None = None) -> npt.NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
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
        return self._forest.apply(on_host(table), n_rounds=rounds, n_threads=threads)

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
        write_model(path, self._saved(params, self._fitted()))

    def _fitted(self) -> FittedModel:
        """Return what this estimator predicts with."""
        names = getattr(self, "feature_names_in_", None)
        return FittedModel(
            self._forest,
            self._coding,
            self._loss_name,
            None if names is None else tuple(names),
            self._categories,
            self.best_iteration_,
            self.evals_result_,
        )

    def _saved(
        self, params: dict[str, Any], fitted: FittedModel, note: CheckpointNote | None = None
    ) -> SavedModel:
        """Return what a file holds of a model."""
        # A file is read where there may be no other device.
        return SavedModel(self._kind, params | {"device": "cpu"}, fitted, note)

    def _link(self) -> Loss:
        """Return a loss whose `predict` is that of the fitted one; parameters may have been set since."""
        return make_link(self._loss_name, self._coding)

    def _score(self, metric: str, prediction: FloatArray, y: Any, sample_weight: Any) -> float:
        """Measure predictions of shape (rows, outputs) where targets were observed."""
        values = self._read_y(read_target_input(y, "y").values, len(prediction), "y", warn=False)
        values, weight = set_unobserved_aside(
            values, check_cell_weights(sample_weight, values, "sample_weight")
        )
        (measured,) = make_metrics(metric, default=metric, kind=self._coding.kind)
        return measured.function(self._coding.encode(values), prediction, weight)

    def _check_is_fitted(self) -> None:
        # scikit-learn's check looks at the whole estimator, which takes as long as predicting a row.
        if "_forest" not in self.__dict__:
            check_is_fitted(self)

    def _check_param(self, name: str) -> None:
        """Check a parameter that counts after fit too, and may have been set since."""
        parameters_of(self._kind)[name].rule.check(name, getattr(self, name))

    def _frame_maker(self, X: object, as_frame: object) -> FrameMaker | None:
        """Return what makes frames of predictions, None where arrays are wanted; before any work is done."""
        if not isinstance(as_frame, bool | np.bool_):
            raise TypeError(f"as_frame must be True or False; got {as_frame!r}.")
        if not as_frame:
            return None
        self._check_is_fitted()
        return frame_maker(X, self._coding.frame)

    def _ready(self, X: object, n_rounds: int | None) -> tuple[Array | SparseTable, int, int]:
        """Return the checked table, the number of rounds and the number of threads of a prediction."""
        self._check_is_fitted()
        self._check_param("n_jobs")
        threads = effective_threads(None if self.n_jobs is None else int(self.n_jobs))
        if self._categories:
            table = self._numbers(read_table(self, X, reset=False), threads)
        else:
            table = check_features(self, X, reset=False, n_threads=threads)
        rounds = self.best_iteration_ + 1
        if n_rounds is not None:
            Integer(1, self.n_estimators_).check("n_rounds", n_rounds)
            rounds = int(n_rounds)
        return table, rounds, threads

    def _raw(self, X: object, n_rounds: int | None) -> FloatArray:
        """Return the raw scores."""
        return self._scored(X, n_rounds, None)

    def _predicted(self, X: object, n_rounds: int | None) -> FloatArray:
        """Return values or probabilities of shape (rows, outputs)."""
        self._check_is_fitted()
        # Building the loss takes longer than predicting a row.
        is_raw = link_of(self._loss_name, self._coding.kind) == "identity"
        return self._scored(X, n_rounds, None if is_raw else self._link())

    def _scored(self, X: object, n_rounds: int | None, link: Loss | None) -> FloatArray:
        table, rounds, threads = self._ready(X, n_rounds)
        if self._uses_gpu(table):
            from polyleaf.gpu.predictor import linked, predict_raw  # which need CuPy

            predictions: FloatArray = linked(
                link, predict_raw(self._forest, table, rounds, n_threads=threads), threads
            )
            return predictions
        raw = self._forest.predict_raw(table, n_rounds=rounds, n_threads=threads)
        return raw if link is None else link.predict(raw, threads)

    def _uses_gpu(self, table: object) -> bool:
        """Whether the GPU predicts; the CPU does it for sparse tables, whose rows are made dense."""
        self._check_param("device")
        if self.device == "cpu":
            return False
        from polyleaf.gpu.runtime import require_gpu

        require_gpu()
        return not scipy.sparse.issparse(table)

    def _staged_raw(self, X: object, n_rounds: int | None) -> Iterator[FloatArray]:
        table, rounds, threads = self._ready(X, n_rounds)
        return self._forest.staged_raw(on_host(table), n_rounds=rounds, n_threads=threads)


def check_measured(metrics: Sequence[Metric], data: Dataset, y_name: str, *, weighted: bool = True) -> None:
    """Raise ValueError where a metric cannot measure some rows: their targets, or their weights."""
    for metric in metrics:
        if metric.check_targets is not None:
            metric.check_targets(data.y, data.weights.whole(), y_name)
        if weighted and not metric.takes_weight and not data.weights.are_ones:
            raise refused(Situation(blind_metric=metric.name, weighted=True, words={"y": y_name}))


def _model_of(model: Any) -> SavedModel:
    """Return the model of a fitted estimator or a file."""
    if isinstance(model, str | os.PathLike):
        return read_model(model)
    if not isinstance(model, BasePolyleaf):
        raise TypeError(
            "init_model must be a fitted PolyleafRegressor or PolyleafClassifier, or the path of a model "
            f"file; got {model!r:.80} of type {type(model).__name__}."
        )
    model._check_is_fitted()
    return model._saved(model.get_params(deep=False), model._fitted())
