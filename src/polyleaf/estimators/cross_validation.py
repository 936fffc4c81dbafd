"""Cross-validation round by round: the table is binned once, and all folds advance together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils.validation import _num_samples

from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.binning import bin_data
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_groups import group_numbers
from polyleaf.data.sources import source_kind
from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.fit import patience_of
from polyleaf.estimators.parts import Indices, run_of_part, weights_of
from polyleaf.estimators.problem import Problem, check_measured, read_problem, training_rows
from polyleaf.metrics import Metric
from polyleaf.params import wording
from polyleaf.params.combinations import check
from polyleaf.params.rules import Boolean
from polyleaf.params.situation import Situation
from polyleaf.params.table import parameters_of
from polyleaf.params.validation import validate_params
from polyleaf.training.callbacks import EarlyStopping, all_callbacks
from polyleaf.training.folds import Folds
from polyleaf.training.loop import Run, TrainingResult, boost
from polyleaf.training.state import TrainingState

_SET_NAME = "validation"
# Rounds that a printed result has, but for the best one.
_ROUNDS_SHOWN = 10


@dataclass(frozen=True, repr=False)
class CVResult:
    """What the metrics were after each round, on the rows that a fold's model has not seen.

    It prints as a table of some rounds; `to_frame` has all of them.

    Attributes
    ----------
    mean, std : dict of str to ndarray of shape (n_rounds,)
        For each metric the mean over the folds, and the standard deviation (of these folds: ``ddof=0``). A
        fold without a value (NaN) is left out up to the round in which it has the first.
    folds : dict of str to ndarray of shape (n_folds, n_rounds)
        For each metric the values themselves.
    best_round : int
        The round, from 0, with the best mean of the last metric (or as an `EarlyStopping` has it).
    models : list of estimators or None
        One fitted estimator a fold, if asked for; each predicts with the rounds up to the best one.
    """

    mean: dict[str, FloatArray]
    std: dict[str, FloatArray]
    folds: dict[str, FloatArray]
    best_round: int
    models: list[Any] | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return len(next(iter(self.mean.values())))

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(next(iter(self.folds.values())))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: a row for each round, two columns "<metric> mean" and "<metric> std".

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        try:
            pd = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "to_frame() needs pandas, which is not installed (pip install pandas); mean, std and folds "
                "have the same figures as arrays."
            ) from error
        return pd.DataFrame(self._columns(), index=pd.RangeIndex(self.n_rounds, name="round"))

    def __repr__(self) -> str:
        """Return a table of some rounds, the best one among them."""
        n_rounds, columns = self.n_rounds, self._columns()
        shown = np.unique(np.linspace(0, n_rounds - 1, min(n_rounds, _ROUNDS_SHOWN)).round().astype(int))
        if n_rounds > 0:
            shown = np.union1d(shown, [self.best_round])
        rows = [
            [f"{number}{' *' if number == self.best_round else ''}"]
            + [f"{values[number]:.6g}" for values in columns.values()]
            for number in shown.tolist()
        ]
        head = ["round", *columns]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (head, *rows)
        ]
        best = f", the best (*) is round {self.best_round}" if n_rounds > 0 else ""
        return "\n".join([f"{self.n_folds} folds, {n_rounds} rounds{best}", *lines])

    def _columns(self) -> dict[str, FloatArray]:
        return {
            f"{metric} {what}": values[metric]
            for metric in self.mean
            for what, values in (("mean", self.mean), ("std", self.std))
        }


def cv(
    estimator: BasePolyleaf,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    shuffle: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    metrics: Any = None,
    return_models: bool = False,
) -> CVResult:
    """Train one model a fold, all of them round by round, and measure each on the rows it has not seen.

    The cut points of the features are found once, on all rows of `X`: the values of the features (never the
    targets) of a fold's test rows take part in them. All else comes from a fold's training rows alone. Where
    the cut points are the same, a fold's scores are those of the estimator fitted on these rows.

    With `early_stopping_rounds` (or an `EarlyStopping` in `callbacks`) all folds stop when the mean over the
    folds has not improved. Other callbacks get the means as the evaluation set "validation"; there is no
    single forest for them, so that a `Checkpoint` is refused.

    Parameters
    ----------
    estimator : PolyleafRegressor or PolyleafClassifier
        Whose parameters are used; it is not changed, and need not be fitted.
    X, y, sample_weight
        As in ``fit``; not what is read from files or batches. Classes are those of the whole `y`. Rows of a
        `polyleaf.BinnedTable` are numbered without those of no weight, which it does not have.
    cv : int, scikit-learn splitter, or iterable of (train, test) indices, default=5
        The folds. A number stands for as many of shuffled rows, stratified by class for a classifier.
    shuffle : bool, default=True
        Whether a number of folds is one of rows in random order, drawn with the estimator's `random_state`.
        False: consecutive rows, as ``cv=5`` of scikit-learn has them. A splitter knows that itself; for rows
        in order of time take `sklearn.model_selection.TimeSeriesSplit`.
    groups : array-like of shape (n_rows,), default=None
        Rows of a group are kept together: passed on to the splitter. A number of folds is then one of
        `sklearn.model_selection.GroupKFold`, which does not stratify.
    metrics : str, callable or list of these, default=None
        What to measure, as `eval_metric` of the estimator; None: that.
    return_models : bool, default=False
        Whether the result has the fitted estimators.

    Returns
    -------
    CVResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyleaf import PolyleafClassifier, cv
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cv(PolyleafClassifier(n_estimators=20), X, y, cv=3, metrics=["log_loss", "accuracy"])
    >>> result.mean["accuracy"].shape
    (20,)
    """
    if not isinstance(estimator, BasePolyleaf):
        raise TypeError(
            f"estimator must be a PolyleafRegressor or PolyleafClassifier; got {type(estimator).__name__}."
        )
    params = estimator.get_params(deep=False)
    if metrics is not None:
        parameters_of(estimator._kind)["eval_metric"].rule.check("metrics", metrics)
        params["eval_metric"] = metrics
    validate_params(params, estimator._kind)
    Boolean().check("shuffle", shuffle)
    if params["device"] == "cuda":
        from polyleaf.gpu.runtime import require_gpu

        require_gpu()
    streamed = source_kind(X) is not None
    check(Situation(params, cross_validation=True, table="stream" if streamed else None))
    # Folds are cut on the host.
    X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
    if y is None and not isinstance(X, BinnedTable):
        raise TypeError("cv() needs y: only a BinnedTable brings it along.")
    n_early_stopping = sum(isinstance(one, EarlyStopping) for one in params["callbacks"] or ())
    patience = patience_of(params, n_early_stopping)
    callbacks = all_callbacks(params["callbacks"], patience, int(params["verbose"]))

    problem = read_problem(estimator, params, training_rows(X, y, sample_weight))
    data, settings, measured = problem.data, problem.settings, problem.metrics
    with problem.names.used():
        own = replace(data, weights=weights_of(problem, problem.own_weight))
        check_measured(measured, own, problem.coding.words("y"))
    folds = folds_of(problem, cv, X, y, groups, shuffle=shuffle)

    def make_runs() -> Iterator[Run]:
        # All columns tell rows apart that are drawn.
        matrix = bin_data(data, settings, 0 if settings.draws_rows_alike else settings.min_samples_leaf)
        for i, (train, test) in enumerate(folds):
            yield run_of_part(problem, matrix, train, test, _SET_NAME, f"y of the train rows of fold {i}")

    together = Folds(make_runs, _SET_NAME, measured)
    state = TrainingState(
        n_rounds=settings.n_estimators,
        n_done=0,
        learning_rate=settings.learning_rate,
        evals_result=together.history,
        greater_is_better={metric.name: metric.greater_is_better for metric in measured},
    )
    error = boost(together, state, callbacks)
    if error is not None:
        raise error
    runs = together.runs
    values = {
        metric.name: np.array([run.history[_SET_NAME][metric.name] for run in runs]) for metric in measured
    }
    means = {name: np.array(of_rounds) for name, of_rounds in together.history[_SET_NAME].items()}
    best = state.best_iteration
    if best is None:
        best = _best(means[measured[-1].name], measured[-1])
    models = None
    if return_models:
        models = []
        for run in runs:
            model = clone(estimator)
            model._take(
                problem.fitted(TrainingResult(run.forest(), run.evals_result(), min(best, run.n_rounds - 1)))
            )
            models.append(model)
    return CVResult(
        mean=means,
        std={name: together.deviations(name) for name in values},
        folds=values,
        best_round=best,
        models=models,
    )


def folds_of(
    problem: Problem, cv: Any, X: Any, y: Any, groups: Any, *, shuffle: bool = True
) -> list[tuple[Indices, Indices]]:
    """Return the training and test rows of each fold, as numbers of the rows of a problem.

    Parameters
    ----------
    problem : Problem
        All rows.
    cv, X, y, groups, shuffle
        As :func:`cv` takes them.

    Raises
    ------
    TypeError, ValueError
        Where they are no folds, or one is empty.
    """
    given = not isinstance(cv, int | np.integer | str) and not hasattr(cv, "split")
    check(Situation(groups=groups is not None, asked=frozenset({"given folds"} if given else ())))
    if groups is not None:
        group_numbers(groups, None, _num_samples(X))
    if isinstance(X, BinnedTable):  # splitters count rows, and look at y
        y, X = X.y if y is None else y, range(X.shape[0])
    if isinstance(cv, int | np.integer):
        seed = problem.settings.seed if shuffle else None
        cv = _splitter(cv, y, groups, seed, problem.kind == "classifier")
    folds = [
        (_among(train, problem.kept), _among(test, problem.kept))
        for train, test in _read_folds(cv, X, y, groups, _num_samples(X))
    ]
    for i, fold in enumerate(folds):
        for name, part in zip(("train", "test"), fold, strict=True):
            if len(part) == 0:
                raise ValueError(f"cv: fold {i} has no {name} rows (rows of weight 0 do not count).")
    return folds


def _best(means: FloatArray, metric: Metric) -> int:
    """Return the round with the best mean; the last one, with a warning, where no round has any."""
    if len(means) == 0:
        return -1
    if np.isnan(means).all():
        warnings.warn(
            f"cv(): the metric {metric.name!r} is NaN after all rounds on the test rows of every fold: these "
            "have no such value, as rows of one class have no area under a curve. best_round is the last.",
            UserWarning,
            stacklevel=3,  # the caller of cv
        )
        return len(means) - 1
    values = -means if metric.greater_is_better else means
    return int(np.argmin(np.where(np.isnan(values), np.inf, values)))


def _among(rows: Indices, kept: npt.NDArray[np.bool_] | None) -> Indices:
    """Return the numbers of rows in the table without the rows of no weight."""
    if kept is None:
        return rows
    return (np.cumsum(kept) - 1)[rows[kept[rows]]]


def _splitter(n_folds: Any, y: Any, groups: Any, seed: int | None, classifier: bool) -> Any:
    """Return what cuts so many folds; seed None: of consecutive rows."""
    if isinstance(n_folds, bool | np.bool_) or n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds; got {wording.shown(n_folds)}.")
    drawn: dict[str, Any] = {} if seed is None else {"shuffle": True, "random_state": seed}
    if groups is not None:
        return GroupKFold(n_folds, **drawn)
    target = None if isinstance(y, Mapping) else _target(y)
    if target is not None and target.ndim == 2:  # no classes to stratify by, and values may be missing
        target = None
    return type(check_cv(n_folds, target, classifier=classifier))(n_folds, **drawn)


def _target(y: Any) -> Any:
    """Return y as splitters take it."""
    target: Any = y if scipy.sparse.issparse(y) else np.asarray(y)
    return target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target


def _read_folds(cv: Any, X: Any, y: Any, groups: Any, n_rows: int) -> Sequence[tuple[Indices, Indices]]:
    """Return the training and test rows of each fold."""
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise TypeError(
            "cv must be a number of folds, a splitter of scikit-learn, or an iterable of (train, test) rows; "
            f"got {cv!r:.80} of type {type(cv).__name__}."
        )
    pairs = cv
    if hasattr(cv, "split"):  # which does not know columns of several kinds
        pairs = cv.split(X, np.zeros(n_rows) if isinstance(y, Mapping) else _target(y), groups)
    folds = []
    for i, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"cv: fold {i} must be a pair (train, test) of rows.")
        train, test = pair
        train = _rows(train, n_rows, f"cv: the train rows of fold {i}")
        folds.append((train, _rows(test, n_rows, f"cv: the test rows of fold {i}")))
    if not folds:
        raise ValueError("cv has no folds.")
    return folds


def _rows(values: Any, n_rows: int, name: str) -> Indices:
    rows = np.asarray(values)
    if rows.ndim != 1:
        raise ValueError(f"{name} have shape {rows.shape}; they must be 1-D.")
    if rows.dtype.kind == "b":
        if len(rows) != n_rows:
            raise ValueError(f"{name} are a mask of {len(rows)} values, but X has {n_rows} rows.")
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu" and len(rows) > 0:
        raise ValueError(f"{name} have dtype {rows.dtype}; they must be integers or a mask.")
    rows = rows.astype(np.intp)
    wrong = (rows < -n_rows) | (rows >= n_rows)
    if wrong.any():
        raise ValueError(f"{name} contain {rows[wrong][0]}, but X has {n_rows} rows.")
    return np.where(rows < 0, rows + n_rows, rows)
