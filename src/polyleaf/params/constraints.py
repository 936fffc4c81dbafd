"""Monotone and interaction constraints: from what people write to what the core reads."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.params.wording import shown

MONOTONE_ALLOWED = (
    "array-like of -1, 0 and 1 of shape (n_features,) or (n_features, n_outputs), dict {feature: sign, one "
    "sign per output, or dict {output: sign}} or None"
)
GROUPS_ALLOWED = "list of lists of features (indices or names) or None"

_HOW_MANY_TO_NAME = 10

# As users write them.
MonotoneConstraints = Sequence[Any] | npt.NDArray[Any] | Mapping[Any, Any]
InteractionConstraints = Sequence[Collection[int | str]]
# As the core reads them: features x outputs.
SignMatrix = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class InteractionGroups:
    """Groups of features that may meet on the way from the root to a leaf; each feature is in one or more.

    Attributes
    ----------
    begin : int64 ndarray of shape (groups + 1,)
        Where each group begins in `feature`.
    feature : int32 ndarray
        The features of one group after the other.
    """

    begin: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]


# --- what may be written -----------------------------------------------------------------------------------


def check_monotone(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` could be monotone constraints of some table."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        _sign_array(name, value, name, 2)
        return
    for key, signs in value.items():
        _check_feature(name, key, MONOTONE_ALLOWED)
        if isinstance(signs, Mapping):
            for output, sign in signs.items():
                if not isinstance(output, str):
                    raise _wrong_type(f"an output in {name}[{shown(key)}]", output, "a name")
                _sign_array(name, [sign], f"{name}[{shown(key)}][{shown(output)}]", 1)
            continue
        _sign_array(name, [signs] if _is_number(signs) else signs, f"{name}[{shown(key)}]", 1)


def check_groups(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` could be interaction constraints of some table."""
    if value is None:
        return
    if not isinstance(value, list | tuple):
        raise _wrong_type(name, value, GROUPS_ALLOWED)
    for i, group in enumerate(value):
        if not isinstance(group, list | tuple | set | frozenset | np.ndarray):
            raise _wrong_type(f"{name}[{i}]", group, "a list of features (indices or names)")
        if len(group) == 0:
            raise ValueError(f"{name}[{i}] must be a list of at least one feature; got {group!r}.")
        for feature in group:
            _check_feature(f"{name}[{i}]", feature, "a list of features (indices or names)")


def has_signs(value: object) -> bool:
    """Return whether checked monotone constraints constrain anything."""
    if value is None:
        return False
    if isinstance(value, Mapping):
        return any(
            has_signs(list(part.values()) if isinstance(part, Mapping) else part) for part in value.values()
        )
    return bool(np.any(np.asarray(value, dtype=np.float64)))


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _wrong_type(name: str, value: object, allowed: str) -> TypeError:
    return TypeError(f"{name} must be {allowed}; got {shown(value)} of type {type(value).__name__}.")


def _check_feature(name: str, key: object, allowed: str) -> None:
    if isinstance(key, str):
        return
    if isinstance(key, bool | np.bool_) or not isinstance(key, numbers.Integral):
        raise TypeError(
            f"{name} must be {allowed}; a feature in it is {shown(key)} of type {type(key).__name__}, "
            "neither an index nor a name."
        )


def _sign_array(name: str, value: Any, place: str, most_dimensions: int) -> npt.NDArray[np.int8]:
    """Return signs as an array of one dimension, or two if allowed; `place` is where they stand."""
    if not isinstance(value, np.ndarray) and (
        not isinstance(value, Sequence) or isinstance(value, str | bytes)
    ):
        raise _wrong_type(name, value, MONOTONE_ALLOWED)
    entries = np.asarray(value, dtype=object)
    if not 1 <= entries.ndim <= most_dimensions or entries.size == 0:
        raise ValueError(f"{name} must be {MONOTONE_ALLOWED}; {place} has shape {entries.shape}.")
    for at in np.ndindex(entries.shape):
        sign: Any = entries[at]
        where = f"{place}[{', '.join(map(str, at))}]"
        if isinstance(sign, list | tuple | np.ndarray):
            raise ValueError(f"{name} must be {MONOTONE_ALLOWED}; the rows of {place} differ in length.")
        if not _is_number(sign):
            raise TypeError(f"{name} must be {MONOTONE_ALLOWED}; {where} is {shown(sign)}.")
        if sign not in (-1, 0, 1):
            raise ValueError(f"{name} must be {MONOTONE_ALLOWED}; {where} is {shown(sign)}.")
    return entries.astype(np.int8)


# --- what it means for a table -----------------------------------------------------------------------------


def monotone_signs(
    value: Any, n_features: int, outputs: Sequence[str], names: Sequence[str] | None
) -> SignMatrix | None:
    """Return the signs of checked constraints, features x outputs; None where none is other than 0.

    `outputs` are the names of the outputs, `names` those of the features, if they have any.

    Raises
    ------
    ValueError
        When they do not fit the table: another number of features or outputs, an unknown or repeated feature.
    """
    if value is None:
        return None
    name, n_outputs = "monotone_constraints", len(outputs)
    signs = np.zeros((n_features, n_outputs), dtype=np.int8)
    if isinstance(value, Mapping):
        given: dict[int, object] = {}
        for key, of_feature in value.items():
            feature = _find(name, key, n_features, names)
            if feature in given:
                raise ValueError(
                    f"{name} has feature {feature} twice, as {shown(given[feature])} and as {shown(key)}."
                )
            given[feature] = key
            if _is_number(of_feature):
                signs[feature] = int(of_feature)
                continue
            if isinstance(of_feature, Mapping):
                for output, sign in of_feature.items():
                    signs[feature, _find_output(f"{name}[{key!r}]", output, outputs)] = int(sign)
                continue
            if len(of_feature) != n_outputs:
                raise ValueError(
                    f"{name}[{shown(key)}] has {len(of_feature)} sign(s), but the model has {n_outputs} "
                    "output(s)."
                )
            signs[feature] = _sign_array(name, of_feature, name, 1)
    else:
        array = _sign_array(name, value, name, 2)
        if array.shape not in ((n_features,), (n_features, n_outputs)):
            raise ValueError(
                f"{name} has shape {array.shape}; for this table it must be ({n_features},), one sign per "
                f"feature, or ({n_features}, {n_outputs}), one per feature and output."
            )
        signs[:] = array.reshape(n_features, -1)
    return signs if signs.any() else None


def _find_output(name: str, key: str, outputs: Sequence[str]) -> int:
    """Return the index of an output."""
    if key not in outputs:
        known = ", ".join(map(repr, outputs[:_HOW_MANY_TO_NAME])) + (
            ", ..." if len(outputs) > _HOW_MANY_TO_NAME else ""
        )
        raise ValueError(f"{name} has the output {key!r}, but the outputs are {known}.")
    return list(outputs).index(key)


def interaction_groups(value: Any, n_features: int, names: Sequence[str] | None) -> InteractionGroups | None:
    """Return the groups of checked constraints; a feature in none is a group. None: all features may meet.

    Raises
    ------
    ValueError
        For a feature that is not in the table.
    """
    if value is None:
        return None
    groups: list[list[int]] = []
    for i, group in enumerate(value):
        found = {_find(f"interaction_constraints[{i}]", key, n_features, names) for key in group}
        groups.append(sorted(found))
    if any(len(group) == n_features for group in groups):
        return None
    grouped = {feature for group in groups for feature in group}
    groups.extend([feature] for feature in range(n_features) if feature not in grouped)
    begin = np.cumsum([0] + [len(group) for group in groups], dtype=np.int64)
    return InteractionGroups(begin, np.concatenate(groups).astype(np.int32))


def _find(name: str, key: Any, n_features: int, names: Sequence[str] | None) -> int:
    """Return the index of a feature."""
    if not isinstance(key, str):
        if not 0 <= int(key) < n_features:
            raise ValueError(
                f"{name} has the feature {shown(key)}, but X has the features 0 to {n_features - 1}."
            )
        return int(key)
    if names is None:
        raise ValueError(f"{name} has the feature {shown(key)}, but the columns of X have no names.")
    for feature, column in enumerate(names):
        if column == key:
            return feature
    raise ValueError(f"{name} has the feature {shown(key)}, which is not a column of X.")
