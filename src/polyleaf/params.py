"""The one table of parameters: name, what is allowed, default, meaning, and whose parameter it is.

Validation, the "Parameters" section of the estimators' docstrings and anything else that lists parameters
read this table; nothing about a parameter is written down twice. (scikit-learn needs the defaults in the
signature of ``__init__`` as well; a test holds the two together.)
"""

from __future__ import annotations

import math
import numbers
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from polyleaf.constraints import GROUPS_ALLOWED, MONOTONE_ALLOWED, check_groups, check_monotone, has_signs
from polyleaf.target_specs import TargetSpecs

EstimatorKind = Literal["regressor", "classifier", "mixed"]

# Counts travel to the compiled core as 32-bit integers.
_LARGEST_COUNT = 2**31 - 1

DEFAULT_SKETCH_SIZE = 5
# What "auto" stands for; docs/convergence.md has the measurements behind it.
AUTO_SKETCH_OUTPUTS = 64
AUTO_SHARED_OUTPUTS = 33

OBJECTIVES: dict[EstimatorKind, tuple[str, ...]] = {
    "regressor": ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"),
    "classifier": ("cross_entropy", "binary_cross_entropy", "clipped_squared_error"),
}
METRICS: dict[EstimatorKind, tuple[str, ...]] = {
    "regressor": ("rmse", "mse", "mae", "r2", "huber", "quantile", "poisson", "gamma", "tweedie"),
    "classifier": (
        "cross_entropy",
        "binary_cross_entropy",
        "log_loss",
        "accuracy",
        "error",
        "top1_accuracy",
        "precision@k",
        "ndcg@k",
    ),
}


def metric_family(name: str) -> tuple[str, int | None]:
    """Return the name of a metric in `METRICS` and its k: "precision@5" is a "precision@k", with 5."""
    if found := re.fullmatch("(.*@)([1-9][0-9]{0,8})", name):
        return f"{found[1]}k", int(found[2])
    return name, None


class Rule(Protocol):
    """What a parameter may be: a sentence for people, and a check that raises TypeError or ValueError."""

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""

    def check(self, name: str, value: object) -> None:
        """Raise TypeError or ValueError, naming the parameter, the value and what is allowed."""


def _wrong_type(name: str, value: object, allowed: str) -> TypeError:
    return TypeError(f"{name} must be {allowed}; got {value!r} of type {type(value).__name__}.")


def _wrong_value(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"{name} must be {allowed}; got {value!r}.")


def _quoted(options: Iterable[str]) -> str:
    return ", ".join(f'"{option}"' for option in options)


@dataclass(frozen=True)
class Boolean:
    """True or False."""

    allowed = "bool"

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, bool | np.bool_):
            raise _wrong_type(name, value, self.allowed)


@dataclass(frozen=True)
class Integer:
    """An integer in [low, high]; a bool is none."""

    low: int
    high: int = _LARGEST_COUNT
    or_none: bool = False

    @property
    def allowed(self) -> str:
        # The 32-bit limit is told only to the one who passes it: it says nothing about the parameter.
        extent = f">= {self.low}" if self.high == _LARGEST_COUNT else f"in [{self.low}, {self.high}]"
        return f"int {extent}" + (" or None" if self.or_none else "")

    def check(self, name: str, value: object) -> None:
        if value is None and self.or_none:
            return
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
            raise _wrong_type(name, value, self.allowed)
        if int(value) > self.high == _LARGEST_COUNT:
            raise _wrong_value(name, value, f"{self.allowed} and at most {_LARGEST_COUNT}")
        if not self.low <= int(value) <= self.high:
            raise _wrong_value(name, value, self.allowed)


@dataclass(frozen=True)
class Real:
    """A finite number, at least `low` and at most `high`; if `open_low` or `open_high`, not equal to it."""

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    @property
    def allowed(self) -> str:
        if self.high == math.inf:
            return f"float {'>' if self.open_low else '>='} {self.low:g}"
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"float in {left}{self.low:g}, {self.high:g}{right}"

    def check(self, name: str, value: object) -> None:
        if not _is_number(value):
            raise _wrong_type(name, value, self.allowed)
        number = _as_float(value)
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        if not (above and below and math.isfinite(number)):
            raise _wrong_value(name, value, f"a finite {self.allowed}")


@dataclass(frozen=True)
class Choice:
    """One of some words; if `or_none`, or None; if `or_callable`, or a function or None."""

    options: tuple[str, ...]
    or_callable: bool = False
    or_none: bool = False

    @property
    def allowed(self) -> str:
        words = f"{{{_quoted(self.options)}}}"
        if self.or_callable:
            return f"{words}, callable or None"
        return f"{words} or None" if self.or_none else words

    def check(self, name: str, value: object) -> None:
        if value is None and (self.or_none or self.or_callable):
            return
        if self.or_callable and callable(value):
            return
        if not isinstance(value, str):
            raise _wrong_type(name, value, self.allowed)
        if value not in self.options:
            raise _wrong_value(name, value, self.allowed)


@dataclass(frozen=True)
class ChoiceList:
    """None, the name of one of some metrics, a function, or a list of names and functions."""

    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"{{{_quoted(self.options)}}}, callable, list of these, or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, list | tuple):
            self._check_one(name, value)
            return
        if not value:
            raise _wrong_value(name, value, self.allowed)
        for i, one in enumerate(value):
            if one is None:
                raise _wrong_type(f"{name}[{i}]", one, f"{{{_quoted(self.options)}}} or callable")
            self._check_one(f"{name}[{i}]", one)

    def _check_one(self, name: str, value: object) -> None:
        if not (isinstance(value, str) and metric_family(value)[0] in self.options):
            Choice(self.options, or_callable=True).check(name, value)


@dataclass(frozen=True)
class NumberOrVector:
    """None, a finite number, or a vector of finite numbers, one per output."""

    allowed = "float, array-like of shape (n_outputs,) or None"

    def check(self, name: str, value: object) -> None:
        if value is not None:
            _as_vector(name, value, self.allowed)


@dataclass(frozen=True)
class Shares:
    """None, or a vector of numbers >= 0, one per output, not all 0."""

    allowed = "array-like of shape (n_outputs,) or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        shares = _as_vector(name, value, self.allowed)
        if shares.ndim != 1:
            raise _wrong_type(name, value, self.allowed)
        if (shares < 0).any() or not shares.any():
            raise ValueError(f"{name} must hold numbers >= 0, not all of them 0; got {value!r}.")


@dataclass(frozen=True)
class ClassWeights:
    """None, "balanced", a dict from classes to weights, or a list of such dicts."""

    allowed = '"balanced", dict, list of dict, or None'

    def check(self, name: str, value: object) -> None:
        if value is None or (isinstance(value, str) and value == "balanced"):
            return
        if isinstance(value, str):
            raise _wrong_value(name, value, self.allowed)
        if isinstance(value, list | tuple):
            for i, one in enumerate(value):
                self._check_one(f"{name}[{i}]", one)
            return
        self._check_one(name, value)

    def _check_one(self, name: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise _wrong_type(name, value, self.allowed)
        for label, weight in value.items():
            if not _is_number(weight) or not 0 < _as_float(weight) < math.inf:
                raise ValueError(
                    f"{name}: the weight of {label!r} must be a finite number > 0; got {weight!r}."
                )


@dataclass(frozen=True)
class Columns:
    """None, "from_dtype", or a list of column names, of column numbers, or a mask over the columns."""

    allowed = (
        '"from_dtype", array-like of column names or indices, boolean mask of shape (n_features,) or None'
    )

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if isinstance(value, str):
            if value != "from_dtype":
                raise _wrong_value(name, value, self.allowed)
            return
        if not isinstance(value, np.ndarray | Sequence) or isinstance(value, bytes):
            raise _wrong_type(name, value, self.allowed)
        if np.ndim(np.asarray(value, dtype=object)) != 1:
            raise _wrong_value(name, value, self.allowed)
        kinds = {
            "name" if isinstance(one, str) else "mask" if isinstance(one, bool | np.bool_) else "index"
            for one in value
            if isinstance(one, str | bool | np.bool_ | numbers.Integral)
        }
        if len(kinds) > 1 or not all(isinstance(one, str | np.bool_ | numbers.Integral) for one in value):
            raise _wrong_type(name, value, self.allowed)


@dataclass(frozen=True)
class Levels:
    """A level between 0 and 1, or several in ascending order."""

    allowed = "float in (0, 1), or ascending sequence of such"

    def check(self, name: str, value: object) -> None:
        levels = np.atleast_1d(_as_vector(name, value, self.allowed))
        if not ((levels > 0) & (levels < 1)).all() or (np.diff(levels) <= 0).any():
            raise _wrong_value(name, value, self.allowed)


@dataclass(frozen=True)
class GroupWeights:
    """None, or a dict of numbers above 0 by the names of groups."""

    allowed = "dict of float > 0, or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping):
            raise _wrong_type(name, value, self.allowed)
        for group, weight in value.items():
            Real(0, open_low=True).check(f"{name}[{group!r}]", weight)


@dataclass(frozen=True)
class Threads:
    """None or an integer other than 0, with joblib's meaning of the negative ones."""

    allowed = "int other than 0, or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
            raise _wrong_type(name, value, self.allowed)
        if int(value) == 0 or abs(int(value)) > _LARGEST_COUNT:
            raise _wrong_value(name, value, self.allowed)


# What a callback may have; src/polyleaf/callbacks.py says when they are called.
CALLBACK_METHODS = ("before_training", "before_round", "after_round", "after_training")


@dataclass(frozen=True)
class Callbacks:
    """None, or a sequence of callbacks."""

    allowed = "sequence of callbacks or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise _wrong_type(name, value, self.allowed)
        for i, one in enumerate(value):
            self._check_one(f"{name}[{i}]", one)

    def _check_one(self, name: str, value: object) -> None:
        allowed = f"callable, or an object with one of the methods {', '.join(CALLBACK_METHODS)}"
        if isinstance(value, type):
            raise TypeError(f"{name} is the class {value.__name__}; it must be an object of it.")
        methods = [method for method in CALLBACK_METHODS if hasattr(value, method)]
        if not methods and not callable(value):
            raise _wrong_type(name, value, allowed)
        for method in methods:
            if not callable(getattr(value, method)):
                raise TypeError(f"{name}.{method} must be a method; got {getattr(value, method)!r}.")


@dataclass(frozen=True)
class Seed:
    """What scikit-learn takes for a random state."""

    allowed = "int in [0, 2**32 - 1], RandomState instance or None"

    def check(self, name: str, value: object) -> None:
        if value is None or isinstance(value, np.random.RandomState):
            return
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
            raise _wrong_type(name, value, self.allowed)
        if not 0 <= int(value) < 2**32:
            raise _wrong_value(name, value, self.allowed)


@dataclass(frozen=True)
class Verbosity:
    """A bool or an integer >= 0."""

    allowed = "bool or int >= 0"

    def check(self, name: str, value: object) -> None:
        if isinstance(value, bool | np.bool_):
            return
        if not isinstance(value, numbers.Integral):
            raise _wrong_type(name, value, self.allowed)
        if not 0 <= int(value) <= _LARGEST_COUNT:
            raise _wrong_value(name, value, self.allowed)


@dataclass(frozen=True)
class MonotoneSigns:
    """None, signs per feature (and output), or a mapping from features to signs."""

    allowed = MONOTONE_ALLOWED

    def check(self, name: str, value: object) -> None:
        check_monotone(name, value)


@dataclass(frozen=True)
class FeatureGroups:
    """None, or groups of features by index or name."""

    allowed = GROUPS_ALLOWED

    def check(self, name: str, value: object) -> None:
        check_groups(name, value)


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    rule: Rule
    default: object
    meaning: str
    estimators: tuple[EstimatorKind, ...] = ("regressor", "classifier", "mixed")


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "targets",
        TargetSpecs(),
        None,
        'The groups of targets: names, and what they are. "regression", "binary" (two classes, one output), '
        '"multiclass" (one output per class) or the name of an objective ("huber", "poisson", ...); or a '
        'dict with "kind" or "objective" and, where needed, "columns" (of y; otherwise the one called '
        'like the group; required for "multilabel": two columns or more of 0 and 1), and "huber_delta", '
        '"quantile_levels" or "tweedie_power".',
        ("mixed",),
    ),
    Parameter(
        "n_estimators",
        Integer(1),
        300,
        "Number of boosting rounds. A round grows one tree for all outputs, or one tree per output (see "
        "`multi_strategy`).",
    ),
    Parameter(
        "learning_rate",
        Real(0, open_low=True),
        0.1,
        "Factor applied to the leaf values of every tree.",
    ),
    Parameter(
        "max_depth",
        Integer(1, or_none=True),
        6,
        "Most splits between the root and a leaf. None: no limit, then `max_leaves` must be set.",
    ),
    Parameter(
        "max_leaves",
        Integer(2, or_none=True),
        None,
        "Most leaves of a tree, grown best-first. None: no limit, then `max_depth` must be set.",
    ),
    Parameter("min_samples_leaf", Integer(1), 20, "Smallest number of training rows in a leaf."),
    Parameter(
        "max_bins",
        Integer(2, 65534, or_none=True),
        255,
        "Most bins per feature; the bin of missing values is not counted. Up to 255, a cell of the binned "
        "table takes one byte, otherwise two. None: a bin for each distinct value (exact split finding), for "
        "columns of at most 65,535 of them.",
    ),
    Parameter(
        "reg_lambda",
        Real(0),
        1.0,
        "L2 penalty on the leaf values. (Where these are quantiles of the residuals, for the absolute error "
        "and quantiles, it acts on the choice of splits only.)",
    ),
    Parameter("reg_alpha", Real(0), 0.0, "L1 penalty on the leaf values; see `reg_lambda`."),
    Parameter(
        "min_split_gain",
        Real(0),
        0.0,
        "A node is split only when the gain of its best split, averaged over the outputs, is greater. (Of a "
        "regressor with `scale_targets`, gains are in units of the targets' variance.)",
    ),
    Parameter(
        "min_child_weight",
        Real(0),
        0.0,
        "Smallest sum of the Hessian in a child, averaged over the outputs.",
    ),
    Parameter(
        "subsample",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the rows drawn, without replacement, for each round (see `sampling_method`).",
    ),
    Parameter(
        "sampling_method",
        Choice(("uniform", "gradient_based")),
        "uniform",
        'How rows are drawn when `subsample` is below 1. "uniform": all alike; the rest takes no part in the '
        'round. "gradient_based": in proportion to the norm of their gradient over all outputs, weighted so '
        "that sums stay unbiased; the splits come from these rows, the leaf values from all rows.",
    ),
    Parameter(
        "colsample_bytree",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the features drawn, without replacement, for each round.",
    ),
    Parameter(
        "colsample_bylevel",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the round's features drawn for each level of a tree.",
    ),
    Parameter(
        "colsample_bynode",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the level's features drawn for each node.",
    ),
    Parameter(
        "objective",
        Choice(OBJECTIVES["regressor"], or_callable=True),
        None,
        'The loss that is minimised, for each target. None: "squared_error". "absolute_error": the median. '
        '"huber": squared error near the target, absolute error further away (`huber_delta`). "quantile": '
        'quantiles of each target (`quantile_levels`). "poisson" (counts; y >= 0), "gamma" (amounts; y > 0) '
        'and "tweedie" (amounts that are often 0; y >= 0, `tweedie_power`) predict the exponential of the '
        "raw score, which is always positive. A callable `(y, raw_prediction) -> (gradient, "
        "hessian)` gets and returns float64 arrays of shape (n_rows, n_outputs).",
        ("regressor",),
    ),
    Parameter(
        "huber_delta",
        Real(0, open_low=True),
        1.0,
        'For "huber": the distance from the target, in its own unit, beyond which the loss is a straight '
        "line.",
        ("regressor",),
    ),
    Parameter(
        "quantile_levels",
        Levels(),
        0.5,
        'For "quantile": the level, or several. With m levels a model of t targets has t * m outputs: the '
        "first target's levels, then the second's, and so on; `predict` returns them in ascending order, so "
        "that they never cross.",
        ("regressor",),
    ),
    Parameter(
        "tweedie_power",
        Real(1, 2, open_low=True, open_high=True),
        1.5,
        'For "tweedie": the power of the mean that the variance grows with.',
        ("regressor",),
    ),
    Parameter(
        "objective",
        Choice(OBJECTIVES["classifier"], or_callable=True),
        None,
        'The loss that is minimised. None: "cross_entropy" (softmax) for three classes and more, '
        '"binary_cross_entropy" for two classes (one output) and for several labels. With two classes, '
        '"cross_entropy" fits a softmax over two outputs. "clipped_squared_error" (GBDT-sparse) is '
        "for several labels, also as a SciPy sparse matrix. A callable `(y, raw_prediction) -> (gradient, "
        "hessian)` gets raw predictions of shape (n_rows, n_outputs) and the class codes of shape (n_rows,), "
        "or with two classes or several labels zeros and ones of shape (n_rows, n_outputs).",
        ("classifier",),
    ),
    Parameter(
        "base_score",
        NumberOrVector(),
        None,
        "Raw prediction before the first tree. None: the best constant of each output (mean, log-prior or "
        "log-odds); a number or a vector fixes it.",
    ),
    Parameter(
        "multi_strategy",
        Choice(("multi_output_tree", "one_output_per_tree")),
        "multi_output_tree",
        "Whether each tree predicts all outputs, or each round grows one tree per output.",
    ),
    Parameter(
        "sparse_leaves",
        Integer(1, or_none=True),
        None,
        "Number of outputs a leaf says something about, at most `n_outputs_`; which ones is found with each "
        "split. None: all of them.",
    ),
    Parameter(
        "sparse_mode",
        Choice(("restricted", "unrestricted")),
        "restricted",
        "With `sparse_leaves`, whether the children of a split share their outputs, or each chooses its own.",
    ),
    Parameter(
        "sketch",
        Choice(("auto", "random_projection", "random_sampling", "top_outputs"), or_none=True),
        "auto",
        "Find the splits on `sketch_size` numbers a row instead of all gradients, which takes the number of "
        'outputs out of the cost of a split. "random_projection": as many random groups of outputs, '
        "summed with random signs; "
        '"random_sampling": outputs drawn in proportion to their gradients; "top_outputs": those with the '
        'largest gradients. Each round anew; leaf values always come from all outputs. "auto": a random '
        f"projection for the cross entropy of {AUTO_SKETCH_OUTPUTS} classes and more, otherwise none. None: "
        "all outputs.",
    ),
    Parameter(
        "sketch_size",
        Integer(1, or_none=True),
        None,
        f"Outputs of the sketch. None: {DEFAULT_SKETCH_SIZE}. As many as there are outputs is no sketch.",
    ),
    Parameter(
        "hessian",
        Choice(("auto", "diagonal", "shared", "exact", "exact_leaf")),
        "auto",
        'What stands for the Hessian of the loss. "diagonal": one number for each output, in splits and in '
        'leaf values. "shared": splits are found with one number a row, the mean over the outputs, which '
        f'halves their cost; leaf values are those of "diagonal". "auto": shared from {AUTO_SHARED_OUTPUTS} '
        'outputs on (not for a callable). For the softmax cross entropy also "exact", the full matrix in '
        'splits and leaf values (up to 32 classes), and "exact_leaf", in leaf values only; these two need '
        "`reg_lambda > 0` and `reg_alpha = 0`.",
        ("classifier",),
    ),
    Parameter(
        "softmax_curvature",
        Choice(("p(1-p)", "2p(1-p)", "abs(p-y)")),
        "p(1-p)",
        "The diagonal that stands for the Hessian of the softmax cross entropy: its true diagonal, twice "
        "that (an upper bound of the whole Hessian), or the absolute gradient.",
        ("classifier", "mixed"),
    ),
    Parameter(
        "scale_targets",
        Boolean(),
        True,
        "Whether each target enters the choice of splits divided by the variance of its gradient (of the "
        "squared error: by its own variance), so that the units of the targets do not matter.",
        ("regressor", "mixed"),
    ),
    Parameter(
        "loss_weight",
        GroupWeights(),
        None,
        "Share of each group in the split score and in the watched loss, by name, relative to the others; a "
        "group that is not named has 1. None: 1 for all, which puts the groups on a par.",
        ("mixed",),
    ),
    Parameter(
        "class_weight",
        ClassWeights(),
        None,
        'Weights of the classes, on top of `sample_weight`. "balanced": all classes have the same total '
        "weight; of several labels, the 0s and the 1s of each. A dict has the weight of each class (0 and 1 "
        "for labels; 1 where it names none); several labels may have a list with a dict for each.",
        ("classifier",),
    ),
    Parameter(
        "output_weight",
        Shares(),
        None,
        "Share of each target, class or label in the choice of splits, on top of `scale_targets`. An output "
        "of share 0 has leaf values like any other, but no say in the structure. None: all have the same.",
    ),
    Parameter(
        "monotone_constraints",
        MonotoneSigns(),
        None,
        "Whether the raw score of an output may only rise (1) or only fall (-1) as a feature grows; 0: no "
        "constraint. One sign per feature holds for all outputs; a matrix or the sequences of a dict have "
        "one per output. Features of a dict are indices or column names; those left out are free. Missing "
        "values are not ordered.",
        ("regressor", "classifier"),
    ),
    Parameter(
        "interaction_constraints",
        FeatureGroups(),
        None,
        "Groups of features: only features of one group are used together on the way from the root to a "
        "leaf. A feature in no group is on its own; one in several may meet the features of each. None: any "
        "features.",
    ),
    Parameter(
        "early_stopping_rounds",
        Integer(1, or_none=True),
        None,
        "Stop when the last metric of the last evaluation set (of groups of targets: their loss) has not "
        "improved for this many rounds. Needs `eval_set` in `fit`. None: all rounds are done. "
        "(`polyleaf.callbacks.EarlyStopping` can watch another metric or set.)",
    ),
    Parameter(
        "eval_metric",
        ChoiceList(METRICS["regressor"]),
        None,
        'What is computed on the evaluation sets after each round. None: the loss ("rmse" for the squared, '
        '"mae" for the absolute error). "huber", "quantile" (the pinball loss), "poisson", "gamma" and '
        '"tweedie" (deviances, for predictions that are positive) take the parameters of the objectives of '
        "the same name. A callable "
        "`(y, prediction) -> float` is minimised; one with an argument `sample_weight` gets the row weights.",
        ("regressor",),
    ),
    Parameter(
        "eval_metric",
        ChoiceList(METRICS["classifier"]),
        None,
        'What is computed on the evaluation sets after each round. None: the loss. "log_loss" is the cross '
        'entropy that suits the problem, "error" is 1 - accuracy; with several labels a row is right when '
        'all of its labels are. "top1_accuracy" (several labels) is the share of rows whose highest-scored '
        'label is true. "precision@k" and "ndcg@k" (several labels, three classes and more) look at the k '
        'highest scores, for any k up to the number of labels: "precision@5" is the share of true labels '
        "among 5, which with classes is at most 1/5. A callable `(y, prediction) -> float` gets "
        "probabilities and is minimised.",
        ("classifier",),
    ),
    Parameter(
        "callbacks",
        Callbacks(),
        None,
        "What is called before and after each round: objects of `polyleaf.callbacks` or of the same form, or "
        "functions that get the state of the training after each round and return True to end it.",
    ),
    Parameter(
        "warm_start",
        Boolean(),
        False,
        "Whether `fit` on a fitted estimator keeps its trees and adds rounds until there are `n_estimators`.",
    ),
    Parameter(
        "categorical_features",
        Columns(),
        None,
        "Columns whose values are categories, text or numbers whose order means nothing, at most 10,000 of "
        'them in a column: by name, by number, as a mask, or "from_dtype": the columns of a categorical '
        "dtype. Splits tell sets of categories apart; those that training did not see go where missing "
        'values go. None: as "from_dtype".',
    ),
    Parameter(
        "importance_type",
        Choice(("gain", "cover", "split")),
        "gain",
        "What `feature_importances_` adds up for each feature: the gain of its splits, the weight of the "
        "rows they tell apart, or their number.",
    ),
    Parameter(
        "n_jobs",
        Threads(),
        None,
        "Number of threads. None: as many as OpenMP would use. -1: all processors, -2: all but one, and so "
        "on. The result does not depend on it.",
    ),
    Parameter("random_state", Seed(), None, "Seed of the row and column samples."),
    Parameter(
        "verbose",
        Verbosity(),
        0,
        "0: silent. 1: a progress bar with the watched metric. n >= 2: a line every n rounds as well.",
    ),
)


def parameters_of(kind: EstimatorKind) -> dict[str, Parameter]:
    """Return the rows of one estimator, by name, in the order of its signature."""
    return {row.name: row for row in PARAMETERS if kind in row.estimators}


def validate_params(params: Mapping[str, object], kind: EstimatorKind) -> None:
    """Check all parameters of an estimator.

    Parameters
    ----------
    params : mapping
        Values by name, as ``get_params`` returns them.
    kind : {"regressor", "classifier"}
        Whose parameters they are.

    Raises
    ------
    TypeError
        For a value of the wrong type.
    ValueError
        For a value out of range, or a name that is no parameter.
    """
    table = parameters_of(kind)
    for name, value in params.items():
        if name not in table:
            raise ValueError(f"{name!r} is not a parameter of the {kind}; allowed are {', '.join(table)}.")
        table[name].rule.check(name, value)
    if params.get("max_depth", 1) is None and params.get("max_leaves") is None:
        raise ValueError("max_depth and max_leaves are both None; one of them must bound the trees.")


# Cholesky factors of larger matrices, one per candidate split, would take too long to be of use.
_MOST_EXACT_OUTPUTS = 32


def check_combination(params: Mapping[str, Any], loss: str, n_outputs: int, sparse_labels: bool) -> None:
    """Check parameters that exclude each other, or do not fit the loss or the number of outputs.

    Raises
    ------
    ValueError
        Naming the parameters at odds.
    """
    _check_loss_parameters(params, loss)
    k = params["sparse_leaves"]
    if sparse_labels:
        if loss != "clipped_squared_error":
            raise ValueError(
                f"a sparse y needs objective='clipped_squared_error'; the objective here is {loss!r}."
            )
        if k is None:
            raise ValueError(
                "a sparse y needs sparse_leaves, the number of labels a leaf speaks of; it is None."
            )
        if np.any(params["base_score"] if params["base_score"] is not None else 0):
            raise ValueError(f"a sparse y needs base_score=0 or None; got {params['base_score']!r}.")
    joint = params["multi_strategy"] == "multi_output_tree"
    if k is not None:
        if k > n_outputs:
            raise ValueError(f"sparse_leaves={k} is more than the number of outputs, {n_outputs}.")
        if not joint:
            raise ValueError(
                f"sparse_leaves={k} needs trees of all outputs, not multi_strategy='one_output_per_tree'."
            )
    hessian = params.get("hessian", "diagonal")
    if params["sketch"] not in (None, "auto"):
        refused = {
            f"sparse_leaves={k}": k is not None,
            "multi_strategy='one_output_per_tree'": not joint,
            "hessian='exact'": hessian == "exact",
            "a sparse y": sparse_labels,
        }
        for what, found in refused.items():
            if found:
                raise ValueError(
                    f"sketch={params['sketch']!r} does not go with {what}: splits need all outputs."
                )
    if params["sketch_size"] is not None and params["sketch"] is None:
        raise ValueError(f"sketch_size={params['sketch_size']} needs a sketch; sketch is None.")
    if has_signs(params.get("monotone_constraints")):
        reasons = {
            "the softmax: a probability depends on all scores": loss == "cross_entropy",
            f"sparse_leaves={k}: an output that is left out takes no part in the order": k is not None,
            f"hessian={hessian!r}: values are ordered output by output": hessian in ("exact", "exact_leaf"),
            f"sketch={params['sketch']!r}: splits need all outputs": params["sketch"] not in (None, "auto"),
            "a sparse y": sparse_labels,
        }
        for reason, found in reasons.items():
            if found:
                raise ValueError(f"monotone_constraints do not go with {reason}.")
    if params["sampling_method"] == "gradient_based" and sparse_labels:
        raise ValueError("sampling_method='gradient_based' does not go with a sparse y.")
    if params["output_weight"] is not None:
        if k is not None and not np.all(np.asarray(params["output_weight"], dtype=float) > 0):
            raise ValueError(
                "output_weight holds 0, but with sparse_leaves outputs are chosen by their share: such an "
                "output would be in no leaf."
            )
        if sparse_labels:
            raise ValueError("output_weight does not go with a sparse y.")
        if hessian == "exact":
            raise ValueError("output_weight does not go with hessian='exact', whose score has no shares.")
        if not joint:
            raise ValueError(
                "output_weight needs trees of all outputs, not multi_strategy='one_output_per_tree': a tree "
                "of one output has no shares."
            )
    if hessian == "shared" and sparse_labels:
        raise ValueError("hessian='shared' does not go with a sparse y, whose Hessian is 1 everywhere.")
    if hessian == "shared" and not joint:
        raise ValueError(
            "hessian='shared' needs trees of all outputs, not multi_strategy='one_output_per_tree'."
        )
    if hessian in ("auto", "diagonal", "shared"):
        return
    if loss != "cross_entropy":
        raise ValueError(
            f"hessian={hessian!r} needs the softmax cross entropy; the Hessian of the loss here ({loss}) is "
            "diagonal or not known."
        )
    problems = {
        "sparse_leaves must be None": k is not None,
        "multi_strategy must be 'multi_output_tree'": not joint,
        "reg_lambda must be greater than 0 (the softmax's Hessian is singular)": not params["reg_lambda"] > 0,
        "reg_alpha must be 0": params["reg_alpha"] != 0,
        f"at most {_MOST_EXACT_OUTPUTS} outputs are possible, here are {n_outputs}": hessian == "exact"
        and n_outputs > _MOST_EXACT_OUTPUTS,
    }
    for problem, found in problems.items():
        if found:
            raise ValueError(f"hessian={hessian!r}: {problem}.")


# Parameters of losses and metrics, and the name that makes use of them.
_DETAILS = {"huber_delta": "huber", "quantile_levels": "quantile", "tweedie_power": "tweedie"}
_LOG_LINK = ("poisson", "gamma", "tweedie")
_ONE_PER_TARGET = ("rmse", "mse", "mae", "r2", "huber")


def _check_loss_parameters(params: Mapping[str, Any], loss: str) -> None:
    """Check what belongs to certain losses only, and metrics that do not suit the loss."""
    wanted = params.get("eval_metric")
    names = [
        one for one in (wanted if isinstance(wanted, list | tuple) else [wanted]) if isinstance(one, str)
    ]
    table = parameters_of("regressor")
    for parameter, name in _DETAILS.items():
        default: Any = table[parameter].default
        value = params.get(parameter, default)
        if name not in (loss, *names) and not np.array_equal(value, default):
            raise ValueError(
                f"{parameter}={value!r} is of no use: it belongs to objective={name!r} (or the metric), and "
                f"the objective here is {loss!r}."
            )
    for name in names:
        if name in _LOG_LINK and loss not in _LOG_LINK:
            raise ValueError(
                f"eval_metric {name!r} needs positive predictions, which those of objective {loss!r} need "
                f"not be; the objectives for it are {', '.join(_LOG_LINK)}."
            )
    n_levels = np.size(params.get("quantile_levels", 0.5))
    for name in names:
        if (
            n_levels > 1
            and (name == "quantile") != (loss == "quantile")
            and name in ("quantile", *_ONE_PER_TARGET)
        ):
            raise ValueError(
                f"eval_metric {name!r} does not go with quantile_levels={params['quantile_levels']!r} and "
                f"objective {loss!r}: a target has {n_levels if loss == 'quantile' else 1} prediction(s)."
            )


def resolve_sketch(params: Mapping[str, Any], loss: str, n_outputs: int) -> str | None:
    """Return the sketch that is used; None: none."""
    sketch: str | None = params["sketch"]
    if sketch != "auto":
        return sketch
    possible = (
        loss == "cross_entropy"
        and params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
        and params.get("hessian") != "exact"
        and not has_signs(params.get("monotone_constraints"))
    )
    return "random_projection" if possible and n_outputs >= AUTO_SKETCH_OUTPUTS else None


def resolve_hessian(params: Mapping[str, Any], loss: str, n_outputs: int) -> str:
    """Return the Hessian that is used."""
    hessian = str(params.get("hessian", "auto"))
    if hessian != "auto":
        return hessian
    possible = (
        loss in ("cross_entropy", "binary_cross_entropy")  # a callable's Hessian may be negative
        and params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
    )
    return "shared" if possible and n_outputs >= AUTO_SHARED_OUTPUTS else "diagonal"


def output_weight_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Return `output_weight` with a mean of 1; None stays None."""
    if value is None:
        return None
    vector = _as_vector("output_weight", value, Shares.allowed)
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"output_weight has {vector.size} values, but the model has {n_outputs} output(s); it must have "
            "one for each."
        )
    relative = vector / vector.max()
    return np.asarray(relative / relative.mean(), dtype=np.float64)


def base_score_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Spread `base_score` over the outputs; None stays None."""
    if value is None:
        return None
    vector = _as_vector("base_score", value, f"float, {n_outputs} floats (one per output) or None")
    if vector.ndim == 0:
        return np.full(n_outputs, float(vector))
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"base_score has {vector.size} values, but the model has {n_outputs} output(s); "
            "it must be a number or hold one value per output."
        )
    return vector


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of float64
        return math.inf


def _as_vector(name: str, value: object, allowed: str) -> npt.NDArray[np.float64]:
    """Return a number as a 0-d array and a vector as a 1-d array, or raise."""
    if _is_number(value):
        vector = np.asarray(_as_float(value), dtype=np.float64)
    elif isinstance(value, np.ndarray) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    ):
        entries = np.asarray(value, dtype=object)
        if entries.ndim != 1 or entries.size == 0:
            raise _wrong_value(name, value, allowed)
        if not all(_is_number(entry) for entry in entries):
            raise _wrong_type(name, value, allowed)
        vector = np.array([_as_float(entry) for entry in entries], dtype=np.float64)
    else:
        raise _wrong_type(name, value, allowed)
    if not np.isfinite(vector).all():
        raise _wrong_value(name, value, f"finite: {allowed}")
    return vector


# --- documentation -----------------------------------------------------------------------------------------

_Class = TypeVar("_Class", bound=type)


def parameters_section(kind: EstimatorKind) -> str:
    """Return the numpydoc "Parameters" section of one estimator."""
    lines = ["Parameters", "----------"]
    for row in parameters_of(kind).values():
        default = f'"{row.default}"' if isinstance(row.default, str) else repr(row.default)
        lines.append(f"{row.name} : {row.rule.allowed}, default={default}")
        indent = "    "
        lines.extend(
            textwrap.wrap(
                row.meaning, 105, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def documented(kind: EstimatorKind) -> Callable[[_Class], _Class]:
    """Return a class decorator that puts the table in the place of ``{parameters}`` in the docstring."""

    def fill(cls: _Class) -> _Class:
        if cls.__doc__ is not None:  # python -OO removes docstrings
            section = textwrap.indent(parameters_section(kind), "    ", lambda line: bool(line.strip()))
            cls.__doc__ = cls.__doc__.replace("    {parameters}", section)
        return cls

    return fill
