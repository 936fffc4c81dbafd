"""The time of a search: what is left of it once the best setting will have been trained on all rows."""

from __future__ import annotations

import time

from polyleaf.training.state import Callback, TrainingState


class Clock:
    """Runs from the moment it is made.

    Parameters
    ----------
    seconds : float or None
        What the search may take, training on all rows included; None: as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._began

    def is_up(self, reserved: float) -> bool:
        """Whether no more is left than `reserved` seconds."""
        return self._seconds is not None and self.elapsed + reserved >= self._seconds


class Limit(Callback):
    """Ends a trial when time is up, after one round at the earliest.

    Parameters
    ----------
    clock : Clock
        Of the search.
    share : float
        All rows, as a share of those that a round of a trial is trained on.
    reserved : float or None
        Seconds that training on all rows will take; None: this is the first trial, and says so itself.
    stops : bool
        Whether a trial ends by itself.
    """

    def __init__(self, clock: Clock, share: float, reserved: float | None, stops: bool) -> None:
        self._clock = clock
        self._share = share
        self._reserved = reserved
        self._stops = stops
        self.is_up = False

    def after_round(self, state: TrainingState) -> bool | None:
        """Stop when time is up."""
        reserved = self._reserved
        if reserved is None:
            n_rounds = state.best_round + 1 if self._stops else state.n_rounds
            reserved = state.elapsed / state.n_done * self._share * n_rounds
        self.is_up = self._clock.is_up(reserved)
        return self.is_up
