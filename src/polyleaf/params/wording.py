"""Values as errors show them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_HOW_MANY_TO_NAME = 5


def shown(value: object) -> str:
    """Return a value as people write it: a number of NumPy is a number, its text is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def some_of(values: Sequence[object]) -> str:
    """Return the first few values, and dots where there are more."""
    more = ", ..." if len(values) > _HOW_MANY_TO_NAME else ""
    return ", ".join(map(shown, values[:_HOW_MANY_TO_NAME])) + more
