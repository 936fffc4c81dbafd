"""What a fit learns about the columns of X."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories


@dataclass(frozen=True)
class Features:
    """What ``fit`` learnt about the columns of X.

    Attributes
    ----------
    count : int
        Their number.
    names : tuple of str or None
        Their names, when X had any.
    categories : mapping of int to CategoryValues
        The values of those that are categorical.
    """

    count: int
    names: tuple[str, ...] | None
    categories: Categories

    def categorical(self) -> npt.NDArray[np.uint8] | None:
        """Return 1 for each categorical column, 0 for the others; None: there is none."""
        if not self.categories:
            return None
        mask = np.zeros(self.count, dtype=np.uint8)
        mask[list(self.categories)] = 1
        return mask
