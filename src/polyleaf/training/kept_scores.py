"""Scores of the training rows that a run leaves behind for the run that goes on from it."""

from __future__ import annotations

from dataclasses import dataclass

from polyleaf.data.inputs import FloatArray


@dataclass
class KeptScores:
    """Raw scores after some rounds.

    Attributes
    ----------
    values : float64 ndarray of shape (rows, outputs) or None
        Of the training rows, or of the first ones; None: there are none.
    n_rounds : int
        Rounds that are in them.
    """

    values: FloatArray | None = None
    n_rounds: int = 0

    def taken(self, n_rounds: int) -> FloatArray | None:
        """Return the scores where they are those after so many rounds, to be changed; they are gone here."""
        values, self.values = self.values, None
        return values if self.n_rounds == n_rounds else None
