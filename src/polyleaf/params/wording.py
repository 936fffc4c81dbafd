"""Values as errors show them."""

from __future__ import annotations

import numpy as np


def shown(value: object) -> str:
    """Return a value as people write it: a number of NumPy is a number, its text is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)
