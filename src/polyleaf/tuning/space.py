"""Which parameters are searched, and between which values."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyleaf.estimators.problem import Problem
from polyleaf.params.combinations import Refused
from polyleaf.params.rules import Rule
from polyleaf.params.table import EstimatorKind, Parameter, parameters_of
from polyleaf.params.validation import unknown_parameter
from polyleaf.params.wording import shown
from polyleaf.tuning.dimensions import Dimension, Drawn, Range, Values

# Parameters that no search changes, by the reason why.
_BINS = "all trials share one binned table"
_AIM = "scores would not be comparable; call tune() once for each"
_COURSE = "tune() finds the number of rounds by the estimator's own settings"
_SAME = "it makes no model better"
_FIXED = {
    **dict.fromkeys(("max_bins", "categorical_features", "class_weight"), _BINS),
    **dict.fromkeys(("targets", "objective", "huber_delta", "quantile_levels", "tweedie_power"), _AIM),
    **dict.fromkeys(("loss_weight", "eval_metric", "label_space"), _AIM),
    **dict.fromkeys(("n_estimators", "early_stopping_rounds", "validation_fraction", "refit"), _COURSE),
    **dict.fromkeys(("callbacks", "warm_start"), _COURSE),
    "n_bags": "trials measure single models; set it in the estimator that is fitted in the end",
    **dict.fromkeys(("importance_type", "columns_by_name", "device", "n_jobs", "verbose"), _SAME),
    "random_state": _SAME,
}
_FORMS = (
    "a list of values, a range (low, high) or (low, high, 'log'), or a distribution of scipy.stats with its "
    "parameters set"
)
# Where a distribution is looked at before the search.
_LOOKED_AT = np.linspace(0.001, 0.999, 33)
# Outputs up to which a tree for each of them is tried: a round then costs as many times more.
_MOST_SEPARATE = 16


def asked_space(space: object, kind: EstimatorKind) -> list[Dimension]:
    """Return the dimensions that a user asks for.

    Parameters
    ----------
    space : object
        Should be a mapping of parameters to what they may be: a list of values, a range, a distribution.
    kind : {"regressor", "classifier", "mixed"}
        Whose parameters they are.

    Raises
    ------
    TypeError, ValueError
        Naming what is wrong.
    """
    if not isinstance(space, Mapping):
        raise TypeError(f"space must be a dict of parameters and what they may be; got {shown(space):.80}.")
    if not space:
        raise ValueError("space is empty: there is nothing to search.")
    table = parameters_of(kind)
    dimensions = []
    for name, wanted in space.items():
        if not isinstance(name, str) or name not in table:
            raise ValueError(f"space: {unknown_parameter(str(name), kind, table)}")
        if name in _FIXED:
            raise ValueError(f"space: {name!r} is not searched: {_FIXED[name]}.")
        dimensions.append(_dimension(name, wanted, table[name].rule))
    return dimensions


def _dimension(name: str, wanted: Any, rule: Rule) -> Dimension:
    called = f"space[{name!r}]"
    if hasattr(wanted, "ppf") and hasattr(wanted, "cdf"):
        whole = not _takes(rule, 1.5) and _takes(rule, 10)
        drawn = Drawn(name, wanted, whole)
        for place in _LOOKED_AT:
            rule.check(f"{called} at its quantile {place:.3g}", drawn.at(float(place))[name])
        return drawn
    if isinstance(wanted, np.ndarray) and wanted.ndim == 1:
        wanted = wanted.tolist()
    if isinstance(wanted, list):
        if not wanted:
            raise ValueError(f"{called} is empty: it must have at least one value.")
        for i, value in enumerate(wanted):
            rule.check(f"{called}[{i}]", value)
        return Values((name,), tuple({name: value} for value in wanted))
    if isinstance(wanted, tuple) and 2 <= len(wanted) <= 3 and all(map(_is_number, wanted[:2])):
        return _range(name, wanted, rule)
    raise TypeError(f"{called} must be {_FORMS}; got {shown(wanted):.80} of type {type(wanted).__name__}.")


def _range(name: str, wanted: tuple[Any, ...], rule: Rule) -> Range:
    """Return all numbers between two."""
    called = f"space[{name!r}]"
    low, high, *how = wanted
    if how not in ([], ["log"]):
        raise ValueError(f"{called}: what follows low and high can only be 'log'; got {shown(how[0])}.")
    rule.check(f"{called}[0]", low)
    rule.check(f"{called}[1]", high)
    if not low < high:
        raise ValueError(f"{called}: low must be below high; got {shown(low)} and {shown(high)}.")
    if how and not low > 0:
        raise ValueError(f"{called}: low must be above 0 for 'log'; got {shown(low)}.")
    return Range(name, low, high, log=bool(how), whole=not _takes(rule, (low + high) / 2 + 1e-3))


def _takes(rule: Rule, value: object) -> bool:
    try:
        rule.check("", value)
    except (TypeError, ValueError):
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


# --- what is searched where nobody says ---------------------------------------------------------------------


def usual_space(problem: Problem) -> list[Dimension]:
    """Return the dimensions that matter for a problem, without parameters that its user has set.

    Raises
    ------
    ValueError
        When none is left.
    """
    table = parameters_of(problem.kind)
    found = []
    for dimension in _that_matter(problem):
        if all(_is_default(table, problem, name) for name in dimension.names):
            if isinstance(dimension, Values):
                settings = tuple(one for one in dimension.settings if _goes_with(problem, one))
                dimension = Values(dimension.names, settings)
                if len(settings) < 2:
                    continue
            found.append(dimension)
    if not found:
        raise ValueError(
            "no parameter is left to be searched: the estimator has other values than the defaults of all "
            "that tune() would try; name some in space."
        )
    return found


def _is_default(table: Mapping[str, Parameter], problem: Problem, name: str) -> bool:
    return name in table and bool(problem.params[name] == table[name].default)


def _goes_with(problem: Problem, setting: Mapping[str, Any]) -> bool:
    try:
        problem.with_params(problem.params | dict(setting))
    except Refused:
        return False
    return True


def _that_matter(problem: Problem) -> Sequence[Dimension]:
    """Return what is worth a search, most important first."""
    n_rows, n_features = problem.data.n_rows, problem.data.X.shape[1]
    n_outputs = problem.coding.n_outputs
    found: list[Dimension] = [
        Range("min_samples_leaf", 1, max(2, min(100, n_rows // 10)), log=True, whole=True),
        Range("max_depth", 2, 10, whole=True),
        Range("learning_rate", 0.02, 0.3, log=True),
        Range("reg_lambda", 0.01, 30.0, log=True),
        Range("subsample", 0.5, 1.0),
    ]
    if n_features > 1:
        # A GPU searches all nodes of a tree with the same features.
        by = "colsample_bytree" if problem.settings.device == "cuda" else "colsample_bynode"
        found.append(Range(by, max(0.2, 1 / n_features), 1.0))
    if n_outputs > 1:
        found.append(_sharing(problem, n_outputs))
    if "softmax_curvature" in problem.params and _has_softmax(problem):
        curvatures = ({"softmax_curvature": one} for one in ("p(1-p)", "abs(p-y)"))
        found.append(Values(("softmax_curvature",), tuple(curvatures)))
    return found


def _sharing(problem: Problem, n_outputs: int) -> Values:
    """Return ways in which outputs share a tree: splits for all, for mixtures of them, trees of their own."""
    settings: list[dict[str, Any]] = [{"sketch": None}]
    settings += [{"sketch": "random_projection", "sketch_size": k} for k in (1, 2, 5) if k < n_outputs]
    names: tuple[str, ...] = ("sketch", "sketch_size")
    if n_outputs <= _MOST_SEPARATE:
        settings.append({"multi_strategy": "one_output_per_tree"})
        names = (*names, "multi_strategy")
    return Values(names, tuple(settings))


def _has_softmax(problem: Problem) -> bool:
    groups = getattr(problem.loss, "groups", None)
    losses = [problem.loss] if groups is None else [group.loss for group in groups]
    return any(loss.name == "cross_entropy" for loss in losses)
