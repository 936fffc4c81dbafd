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

EstimatorKind = Literal["regressor", "classifier"]

# Counts travel to the compiled core as 32-bit integers.
_LARGEST_COUNT = 2**31 - 1

DEFAULT_SKETCH_SIZE = 5
# What "auto" stands for; docs/convergence.md has the measurements behind it.
AUTO_SKETCH_OUTPUTS = 64
AUTO_SHARED_OUTPUTS = 33

OBJECTIVES: dict[EstimatorKind, tuple[str, ...]] = {
    "regressor": ("squared_error",),
    "classifier": ("cross_entropy", "binary_cross_entropy", "clipped_squared_error"),
}
METRICS: dict[EstimatorKind, tuple[str, ...]] = {
    "regressor": ("rmse", "mse", "mae", "r2"),
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
    """A finite number, at least (or, if `open_low`, above) `low` and at most `high`."""

    low: float
    high: float = math.inf
    open_low: bool = False

    @property
    def allowed(self) -> str:
        if self.high == math.inf:
            return f"float {'>' if self.open_low else '>='} {self.low:g}"
        return f"float in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"

    def check(self, name: str, value: object) -> None:
        if not _is_number(value):
            raise _wrong_type(name, value, self.allowed)
        number = _as_float(value)
        above = number > self.low if self.open_low else number >= self.low
        if not (above and number <= self.high and math.isfinite(number)):
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
    estimators: tuple[EstimatorKind, ...] = ("regressor", "classifier")


PARAMETERS: tuple[Parameter, ...] = (
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
    Parameter("reg_lambda", Real(0), 1.0, "L2 penalty on the leaf values."),
    Parameter("reg_alpha", Real(0), 0.0, "L1 penalty on the leaf values."),
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
        'The loss that is minimised. None: "squared_error". A callable `(y, raw_prediction) -> (gradient, '
        "hessian)` gets and returns float64 arrays of shape (n_rows, n_outputs).",
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
        ("classifier",),
    ),
    Parameter(
        "scale_targets",
        Boolean(),
        True,
        "Whether each target enters the choice of splits divided by its variance, so that the units of the "
        "targets do not matter.",
        ("regressor",),
    ),
    Parameter(
        "monotone_constraints",
        MonotoneSigns(),
        None,
        "Whether the raw score of an output may only rise (1) or only fall (-1) as a feature grows; 0: no "
        "constraint. One sign per feature holds for all outputs; a matrix or the sequences of a dict have "
        "one per output. Features of a dict are indices or column names; those left out are free. Missing "
        "values are not ordered.",
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
        "Stop when the last metric of the last evaluation set has not improved for this many rounds. Needs "
        "`eval_set` in `fit`. None: all rounds are done.",
    ),
    Parameter(
        "eval_metric",
        ChoiceList(METRICS["regressor"]),
        None,
        'What is computed on the evaluation sets after each round. None: "rmse". A callable '
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
