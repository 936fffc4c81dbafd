"""How far a score may be off: rows drawn again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray

LEVEL = 0.95
N_DRAWS = 500
# Beyond so many rows, groups of rows are drawn, which says the same in less time.
_MOST_GROUPS = 1000


class Resampling:
    """Sums over rows as they could have been: rows drawn with replacement, the same for all scores.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    seed : int
        For what is drawn.
    """

    def __init__(self, n_rows: int, seed: int) -> None:
        random = np.random.default_rng([seed, 1])
        self.n_groups = min(n_rows, _MOST_GROUPS)
        self._group = random.permutation(n_rows) % self.n_groups
        share = np.full(self.n_groups, 1 / self.n_groups)
        self._times = random.multinomial(self.n_groups, share, size=N_DRAWS).astype(np.float64)

    def sums(self, rows: npt.NDArray[np.intp], terms: FloatArray) -> FloatArray:
        """Return sums over all rows, and below them those over what was drawn, of shape (1 + draws, terms).

        Parameters
        ----------
        rows : int ndarray
            Numbers of the rows.
        terms : float64 ndarray of shape (terms, len(rows))
            What is summed.
        """
        group = self._group[rows]
        of_groups = np.stack([np.bincount(group, one, self.n_groups) for one in terms], axis=1)
        return np.vstack([terms.sum(axis=1), self._times @ of_groups])


def with_interval(values: FloatArray) -> list[Any]:
    """Return a score and the ends of its interval; the first value is that of all rows, others are drawn."""
    drawn = values[1:][np.isfinite(values[1:])]
    if len(drawn) < N_DRAWS // 2:  # hardly ever defined
        return [float(values[0]), None, None]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return [float(values[0]), float(low), float(high)]
