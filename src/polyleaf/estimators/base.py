"""What the estimators share: ``fit``, the fitted attributes, the way from a table to raw scores."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.category_values import Categories
from polyleaf.data.device_arrays import on_host
from polyleaf.data.eval_sets import one_eval_set, read_eval_sets
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sources import opened, refuse_names, source_kind
from polyleaf.data.target_frames import FrameMaker, frame_maker
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.binned_input import brings_targets, rows_to_score, with_own_targets
from polyleaf.estimators.dependence import Depending
from polyleaf.estimators.explaining import Explaining
from polyleaf.estimators.fit import fit_of, train_on
from polyleaf.estimators.inspecting import Inspecting
from polyleaf.estimators.prediction import (
    TableToPredict,
    check_room,
    observed,
    predicted_by_gpu,
    read_features,
)
from polyleaf.estimators.problem import Problem, read_problem, training_rows
from polyleaf.estimators.reporting import Reporting
from polyleaf.estimators.spread import Spread
from polyleaf.estimators.streamed_prediction import Predict, predict_beside_targets, predict_by_parts
from polyleaf.estimators.targets import Objective, Targets
from polyleaf.estimators.weighing import Weighing
from polyleaf.files.binary_objects import WrittenTo
from polyleaf.losses import Loss, make_link
from polyleaf.model.bags import Bag
from polyleaf.model.file import read_model, write_model
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.model.forest import Forest
from polyleaf.model.importance import importance, output_importance
from polyleaf.params.combinations import check
from polyleaf.params.objectives import link_of
from polyleaf.params.rules import Boolean, Integer
from polyleaf.params.situation import Situation
from polyleaf.params.table import EstimatorKind, parameters_of
from polyleaf.params.threads import effective_threads
from polyleaf.params.validation import refuse_fit_arguments, unknown_parameter, validate_params
from polyleaf.params.wording import shown
from polyleaf.training.continuation import Start


class BasePolyleaf(Inspecting, Explaining, Spread, Reporting, Weighing, Depending, BaseEstimator):  # type: ignore[misc]
    """What the estimators share; they say what y is, and what to make of raw scores."""

    _kind: ClassVar[EstimatorKind]
    _targets: ClassVar[type[Targets]]

    # Declared for readers and type checkers; __init__ of the estimators sets the parameters.
    n_estimators: int | str
    early_stopping_rounds: int | None
    warm_start: bool
    categorical_features: Any
    objective: str | Objective | None
    importance_type: str
    columns_by_name: bool
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
    chosen_params_: dict[str, Any]
    _forest: Forest
    _coding: TargetCoding
    _loss_name: str
    _categories: Categories
    _bags: tuple[Bag, ...] = ()
    _seed: int | None
    # Whether the model comes from a file, which may not hold all that it was trained with.
    _loaded: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_sample_weight: Any = None,
        *,
        init_model: Any = None,
        resume: str | os.PathLike[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        **other: Any,
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
            values. Or where to read them from, some columns at a time: the path of a Parquet file, of a
            folder of them or a pattern (str or os.PathLike), a `pyarrow.dataset.Dataset`, a polars LazyFrame,
            or an iterable of batches (X, y) or (X, y, weight), which can be gone through more than once. Or a
            `polyleaf.BinnedTable`, which is not binned again. The model is the same, bit for bit.
        y : str, list of str, array-like or data frame of shape (n_rows,) or (n_rows, n_columns)
            The targets, the class labels, or a matrix of 0 and 1 with one column per label. NaN in a target
            or in a matrix of labels means "not observed": that cell takes no part in anything. The names of
            a frame's columns are kept in `target_names_`. Of a mixed model, a table with the columns that
            `targets` names, in any order; also classes may be missing there (None or NaN). Where `X` is read
            from files or a LazyFrame, the name of a column of it, or a list of names; left out for batches,
            and for a BinnedTable that was made with y.
        sample_weight : str, array-like of shape (n_rows,) or (n_rows, n_columns of y), default=None
            Weights of the rows, or of each target or label of each row, >= 0. A row of weight 0 is treated as
            if it were not there, a cell of weight 0 as if it were not observed. Columns with names (a data
            frame, or a dict of arrays) are matched with those of y by name, others by their order in y. A
            str names a column of `X` where that is read from files or a LazyFrame.
        eval_set : tuple (X, y), list of such tuples, or dict of name and tuple, default=None
            Tables on which `eval_metric` is computed after each round. The names are the keys of
            `evals_result_`; without names they are "validation_0", "validation_1", ... X and y may be what
            they may be for training (an iterable of batches without y, not in a tuple); what is read from
            files or batches is held in memory, as numbers. Beside a `polyleaf.BinnedTable` also one that was
            made with ``like`` it, not in a tuple where it has y.
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
            `callbacks`, `verbose`, `device`, `n_jobs`, `importance_type`, `columns_by_name` and `warm_start`.
        groups : array-like of shape (n_rows,), default=None
            Where rows are held out (`n_estimators="auto"` or `early_stopping_rounds`, without an evaluation
            set, or `n_bags`): the group of each row, a number or text. Rows of a group are held out together.
        eval_X, eval_y : array-like or tuple of array-like, default=None
            Other names for evaluation sets: the tables of one, or of several in tuples.
        **other : dict
            Refused, by what was meant: parameters are those of the estimator.

        Returns
        -------
        self
        """
        params = self.get_params(deep=False)
        refuse_fit_arguments(other, params)
        validate_params(params, self._kind)
        if self.device == "cuda":
            from polyleaf.gpu.runtime import require_gpu

            require_gpu()
        if source_kind(X) is not None:
            check(Situation(params, device=self.device, table="stream"))
        eval_set = one_eval_set(eval_set, eval_X, eval_y)
        evals = read_eval_sets(eval_set, eval_sample_weight, brings_targets)
        start = self._start(init_model, resume)
        going_on = () if start is None else (start.source,)
        fit = fit_of(params, len(evals), groups=groups is not None, going_on=going_on)
        if fit.stopping is not None:  # rows are taken apart on the host
            X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
        given = self._targets(params).naming_columns(training_rows(X, y, sample_weight))
        with opened(given, self.categorical_features) as given:
            problem = read_problem(self, params, given, start, holds_out=fit.stopping is not None)
            self._warn_of_another_loss(params, problem)
            fitted, error = train_on(problem, evals, fit, start, groups)
        self._take(fitted)
        self._seed = problem.settings.seed
        self._loaded = False
        if error is not None:
            raise error
        return self

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters.

        Parameters
        ----------
        **params : dict
            New values by name.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a name that is no parameter; the error says which one is meant by it.
        """
        allowed = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in allowed:
                unknown = unknown_parameter(name, self._kind, allowed)
                raise ValueError(f"Invalid parameter for {type(self).__name__}: {unknown}")
        super().set_params(**params)
        return self

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

    def _warn_of_another_loss(self, params: Mapping[str, Any], problem: Problem) -> None:
        """Warn where a model from a file would be trained for something else than it was."""
        loss = problem.reader.targets.saved_loss(problem.loss)
        if self._loaded and params.get("objective") is None and loss != self._loss_name:
            was = "a function of yours" if self._loss_name == "custom" else repr(self._loss_name)
            warnings.warn(
                f"the model from the file was trained with the objective {was}; this fit trains a new "
                f"one with {loss!r}, which is what objective=None means for this y. Set objective to choose.",
                UserWarning,
                stacklevel=3,  # the caller of fit
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
        self._bags = fitted.bags
        self.chosen_params_ = fitted.chosen

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
            self._bags,
            self.chosen_params_,
        )

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """What the metrics of each evaluation set were after the best round, as ``[set][metric]``.

        With `n_bags`, that is the best round of the model that the set stopped.
        """
        self._check_is_fitted()
        return {
            name: {metric: values[best] for metric, values in self.evals_result_[name].items() if values}
            for name, best in self._fitted().best_rounds.items()
        }

    # --- using the forest ----------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gain, cover or number of splits (`importance_type`); the sum is 1.

        All shares are 0 when no tree has a split.
        """
        self._check_is_fitted()
        self._check_param("importance_type")
        shares: FloatArray = self.get_importance(self.importance_type, normalize=True)
        return shares

    def get_importance(
        self,
        kind: str = "gain",
        per_output: bool = False,
        normalize: bool = False,
        *,
        as_frame: bool = False,
    ) -> Any:
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
        as_frame : bool, default=False
            Whether to return a pandas DataFrame with names: a row for each feature (its number where it has
            no name), a column for each output, or one called `kind`.

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n_outputs), or DataFrame
            Outputs are in the order of y. In a frame they are called like its columns, those of classes like
            these; of a mixed model, "grade=a" and so on for the classes of a column "grade".

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
        Boolean().check("as_frame", as_frame)
        compute = output_importance if per_output else importance
        found = compute(self._forest, kind, self.best_iteration_ + 1)
        total = found.sum()
        if normalize and total > 0:
            found = found / total
        if per_output:
            found = self._coding.in_order_of_y(found)
        if not as_frame:
            return found
        columns = self._coding.columns_of_outputs() if per_output else (kind,)
        pandas = import_module("pandas")
        return pandas.DataFrame(found, index=getattr(self, "feature_names_in_", None), columns=list(columns))

    def apply(self, X: Any, *, n_rounds: int | None = None, out: str | os.PathLike[str] | None = None) -> Any:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix, source or BinnedTable
            The features, as in `predict`.
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        out : str or os.PathLike, default=None
            A Parquet file to write the leaves to, batch by batch, in the place of returning them; its columns
            are "tree_0", "tree_1", ... It appears when it is complete.

        Returns
        -------
        int32 ndarray of shape (n_rows, n_trees); None with `out`
            Node numbers within each tree. A round has one tree, or one per output, in the order of the
            outputs, with ``multi_strategy="one_output_per_tree"``. `get_leaf` says what a leaf holds.
        """
        if out is not None or source_kind(X) is not None:
            self._check_out(out)
            n_trees = self._forest.trees_up_to(self._rounds(n_rounds))
            names = [f"tree_{number}" for number in range(n_trees)]
            return self._by_parts(X, partial(self.apply, n_rounds=n_rounds), names, out)
        table, rounds, threads = self._ready(X, n_rounds)
        return self._forest.apply(on_host(table), n_rounds=rounds, n_threads=threads)

    def save_model(self, path: WrittenTo) -> None:
        """Save the fitted model to one file (safetensors, no pickle); `polyleaf.load_model` reads it.

        The loaded model predicts the same bits. Parameters that a file cannot hold (a callable objective or
        metric, a RandomState) are stored as None: they matter to another ``fit`` only.

        Parameters
        ----------
        path : str, os.PathLike or binary file object
            The file. It appears only when it is complete, and replaces one of the same name, whose mode it
            takes over; through a link, the file that the link leads to. Or an object whose ``write`` takes
            bytes, such as a ``BytesIO``: it gets the same bytes, none before all of them are known to be
            right, and is neither flushed nor closed.

        Raises
        ------
        TypeError
            For an object that is open for text.
        ValueError
            When the path is that of a device, a FIFO or the like; or when `polyleaf.load_model` would refuse
            the file, as there are more names, classes or categories than it allows.
        """
        self._check_is_fitted()
        params = self.get_params(deep=False)
        validate_params(params, self._kind)
        write_model(path, SavedModel(self._kind, params, self._fitted()))

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

    def _ready(self, X: object, n_rounds: int | None) -> tuple[TableToPredict, int, int]:
        """Return the checked table, the number of rounds and the number of threads of a prediction."""
        self._check_is_fitted()
        self._check_param("n_jobs")
        threads = effective_threads(None if self.n_jobs is None else int(self.n_jobs))
        table: TableToPredict
        if isinstance(X, BinnedTable):
            table = rows_to_score(self, X, self._forest, self._categories)
        else:
            table = read_features(self, X, self._categories, threads)
        return table, self._rounds(n_rounds), threads

    def _rounds(self, n_rounds: int | None) -> int:
        """Return how many rounds to use; None: up to the best one."""
        if n_rounds is None:
            return self.best_iteration_ + 1
        self._check_one_model()
        Integer(1, self.n_estimators_).check("n_rounds", n_rounds)
        return int(n_rounds)

    def _raw(self, X: object, n_rounds: int | None, beside: int = 0) -> FloatArray:
        """Return the raw scores; there is to be room for some bytes a cell beside them."""
        return self._scored(X, n_rounds, None, beside)

    def _staged_raw(self, X: object, n_rounds: int | None) -> Iterator[FloatArray]:
        """Return an iterator over the raw scores after each round."""
        if source_kind(X) is not None:
            check(Situation(table="stream", asked=frozenset({"stages"})))
        self._check_is_fitted()
        self._check_one_model()
        table, rounds, threads = self._ready(X, n_rounds)
        check_room(table.shape[0], self._forest.n_outputs, 16)
        return self._forest.staged_raw(on_host(table), n_rounds=rounds, n_threads=threads)

    def _predicted(self, X: object, n_rounds: int | None) -> FloatArray:
        """Return values or probabilities of shape (rows, outputs)."""
        self._check_is_fitted()
        # Building the loss takes longer than predicting a row.
        is_raw = link_of(self._loss_name, self._coding.kind) == "identity"
        # What is no probability yet becomes one in another array.
        beside = 0 if self._coding.kind == "regression" else 8
        return self._scored(X, n_rounds, None if is_raw else self._link(), beside)

    def _check_out(self, out: object, **asked: object) -> None:
        """Raise unless this is a fitted model, and what is asked for goes with writing a file."""
        self._check_is_fitted()
        if out is not None:
            check(Situation(asked=frozenset({"out", *(name for name, value in asked.items() if value)})))

    def _by_parts(
        self, X: Any, predict: Predict, columns: Sequence[str], out: str | os.PathLike[str] | None
    ) -> Any:
        """Return the predictions of a source, or write those of any table to a file."""
        return predict_by_parts(X, getattr(self, "feature_names_in_", None), predict, columns, out)

    def _link(self) -> Loss:
        """Return a loss whose `predict` is that of the fitted one; parameters may have been set since."""
        return make_link(self._loss_name, self._coding)

    def _scored(self, X: object, n_rounds: int | None, link: Loss | None, beside: int = 0) -> FloatArray:
        """Return what `link` makes of the raw scores, which takes as much room; None: these themselves."""
        table, rounds, threads = self._ready(X, n_rounds)
        if self._uses_gpu(table):
            assert not isinstance(table, BinnedRows)
            return predicted_by_gpu(self._forest, table, rounds, threads, link)
        check_room(table.shape[0], self._forest.n_outputs, 8 + (beside if link is None else 8))
        raw = self._forest.predict_raw(table, n_rounds=rounds, n_threads=threads)
        return raw if link is None else link.predict(raw, threads)

    def _uses_gpu(self, table: object) -> bool:
        """Whether the GPU predicts; the CPU does it for bins, and for sparse tables, as dense rows."""
        self._check_param("device")
        if self.device == "cpu":
            return False
        from polyleaf.gpu.runtime import require_gpu

        require_gpu()
        return not (isinstance(table, BinnedRows) or scipy.sparse.issparse(table))

    def _beside_targets(self, X: Any, y: Any, sample_weight: Any, predict: Predict) -> tuple[Any, Any, Any]:
        """Return predictions, y and weights of rows; a source or a binned table may have the latter."""
        self._check_is_fitted()
        given = training_rows(X, on_host(y), on_host(sample_weight))
        if source_kind(X) is not None:
            given = self._target_reader().naming_columns(given)
            return predict_beside_targets(given, getattr(self, "feature_names_in_", None), predict)
        if y is None and not isinstance(X, BinnedTable):
            raise TypeError("score() needs y: only a BinnedTable, files and batches bring it along.")
        refuse_names(given)
        given = with_own_targets(given)
        return predict(X), given.y, given.weight

    def _target_reader(self) -> Targets:
        """Return what reads y of rows that are not trained on."""
        return self._targets(self.get_params(deep=False))

    def _observed(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[Any, FloatArray | None]:
        """Return coded targets of this many rows, and weights that are 0 where one was not observed."""
        return observed(y, sample_weight, n_rows, self._target_reader(), self._coding)


def _model_of(model: Any) -> SavedModel:
    """Return the model of a fitted estimator or a file."""
    if isinstance(model, str | os.PathLike):
        return read_model(model)
    if not isinstance(model, BasePolyleaf):
        raise TypeError(
            "init_model must be a fitted PolyleafRegressor or PolyleafClassifier, or the path of a model "
            f"file; got {shown(model):.80} of type {type(model).__name__}."
        )
    model._check_is_fitted()
    return SavedModel(model._kind, model.get_params(deep=False), model._fitted())
