"""Which features somebody asks for, by number or by name."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polyleaf.params.wording import shown, some_of

MOST_TOGETHER = 2


def chosen_features(features: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of one or two features.

    Parameters
    ----------
    features : int, str, or sequence of one or two of these
        Numbers or names.
    names : sequence of str
        What the features are called.

    Raises
    ------
    TypeError, ValueError
        Something is no feature, there is none or more than two, or it is asked for twice.
    """
    wanted = [features] if isinstance(features, str | numbers.Number) else features
    if not isinstance(wanted, Iterable):
        raise TypeError(
            f"features must be one or two numbers or names of features; got {shown(features):.80}."
        )
    found = tuple(number_of_feature(one, names, "features") for one in wanted)
    if not 1 <= len(found) <= MOST_TOGETHER:
        raise ValueError(f"features must be one feature or two; got {len(found)}.")
    if len(set(found)) < len(found):
        raise ValueError(f"features asks twice for {names[found[0]]!r:.80}.")
    return found


def number_of_feature(feature: Any, names: Sequence[str], argument: str) -> int:
    """Return the number of a feature that is given by number or by name.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, where it is none.
    """
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{argument}: there is no feature {feature!r:.80}; there are {some_of(names)}.")
        return list(names).index(feature)
    if isinstance(feature, bool | np.bool_) or not isinstance(feature, numbers.Integral):
        raise TypeError(f"{argument} must have numbers or names of features; got {shown(feature):.80}.")
    number = int(feature)
    if not 0 <= number < len(names):
        raise ValueError(
            f"{argument}: there is no feature {number}; the model has {len(names)}, counted from 0."
        )
    return number
