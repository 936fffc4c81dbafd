"""What a parameter may be: rules that check a value and say in words what is allowed."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyleaf.params.constraints import GROUPS_ALLOWED, MONOTONE_ALLOWED, check_groups, check_monotone
from polyleaf.params.wording import shown

# Counts travel to the compiled core as 32-bit integers.
_LARGEST_COUNT = 2**31 - 1


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
    return TypeError(f"{name} must be {allowed}; got {shown(value)} of type {type(value).__name__}.")


def _wrong_value(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"{name} must be {allowed}; got {shown(value)}.")


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
class OrAuto:
    """What another rule allows, or "auto"."""

    rule: Boolean | Integer | Real

    @property
    def allowed(self) -> str:
        return f'{self.rule.allowed} or "auto"'

    def check(self, name: str, value: object) -> None:
        if isinstance(value, str) and value == "auto":
            return
        try:
            self.rule.check(name, value)
        except TypeError:
            raise _wrong_type(name, value, self.allowed) from None


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
            as_vector(name, value, self.allowed)


@dataclass(frozen=True)
class Shares:
    """None, or a vector of numbers >= 0, one per output, not all 0."""

    allowed = "array-like of shape (n_outputs,) or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        shares = as_vector(name, value, self.allowed)
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
                    f"{name}: the weight of {shown(label)} must be a finite number > 0; got {shown(weight)}."
                )


@dataclass(frozen=True)
class GroupClassWeights:
    """None, "balanced", or a dict from groups of targets to what `ClassWeights` allows."""

    allowed = '"balanced", dict {group: "balanced", dict or list of dict}, or None'

    def check(self, name: str, value: object) -> None:
        if value is None or (isinstance(value, str) and value == "balanced"):
            return
        if isinstance(value, str):
            raise _wrong_value(name, value, self.allowed)
        if not isinstance(value, Mapping):
            raise _wrong_type(name, value, self.allowed)
        for group, wanted in value.items():
            ClassWeights().check(f"{name}[{group!r}]", wanted)


@dataclass(frozen=True)
class GroupMetrics:
    """None, or a dict from groups of targets to metrics."""

    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return "dict {group: metric, callable, list of these, or None} or None"

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping):
            raise _wrong_type(name, value, self.allowed)
        for group, wanted in value.items():
            ChoiceList(self.options).check(f"{name}[{group!r}]", wanted)


@dataclass(frozen=True)
class Columns:
    """None, "from_dtype", "auto", or a list of column names, of column numbers, or a mask of the columns."""

    allowed = (
        '"from_dtype", "auto", array-like of column names or indices, boolean mask of shape (n_features,) or '
        "None"
    )

    def check(self, name: str, value: object) -> None:
        if value is None:
            return
        if isinstance(value, str):
            if value not in ("from_dtype", "auto"):
                error = _wrong_value(name, value, self.allowed)
                raise ValueError(f"{error} A column of that name is [{value!r}], a list.")
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
        levels = np.atleast_1d(as_vector(name, value, self.allowed))
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


# What a callback may have; polyleaf.callbacks says when they are called.
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


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of float64
        return math.inf


def as_vector(name: str, value: object, allowed: str) -> npt.NDArray[np.float64]:
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


# --- parameters of one loss --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossParameter:
    """A parameter of one loss, and of the metric of that name: whose it is, what it may be, its default."""

    objective: str
    rule: Rule
    default: float


LOSS_PARAMETERS: dict[str, LossParameter] = {
    "huber_delta": LossParameter("huber", Real(0, open_low=True), 1.0),
    "quantile_levels": LossParameter("quantile", Levels(), 0.5),
    "tweedie_power": LossParameter("tweedie", Real(1, 2, open_low=True, open_high=True), 1.5),
}
