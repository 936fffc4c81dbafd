"""Trial after trial, until the budget is used up."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyleaf.tuning.course import Course
from polyleaf.tuning.progress import SearchProgress
from polyleaf.tuning.search import Candidate, Search
from polyleaf.tuning.trials import Trial, Trials
from polyleaf.tuning.validation import Tried, Validation

End = Literal["n_trials", "seconds", "space", "interrupt"]


@dataclass(frozen=True)
class Found:
    """What a search ended with.

    Attributes
    ----------
    tried : list of Tried
        All trials.
    best : Tried
        The best of them.
    end : {"n_trials", "seconds", "space", "interrupt"}
        What there was no more of.
    """

    tried: list[Tried]
    best: Tried
    end: End

    def trials(self, metric: str) -> Trials:
        """Return the trials as a table."""
        order = sorted(range(len(self.tried)), key=lambda i: (self.tried[i] is not self.best, self._rank(i)))
        return Trials([one.trial for one in self.tried], metric, self.best.trial.number, order)

    def _rank(self, number: int) -> tuple[bool, float, int]:
        one = self.tried[number]
        return one.trial.status in ("pruned", "failed"), one.loss, number


def searched(search: Search, validation: Validation, n_trials: int | None, progress: SearchProgress) -> Found:
    """Try one setting after the other.

    Parameters
    ----------
    search : Search
        What to try.
    validation : Validation
        How to try it, and how long.
    n_trials : int or None
        Most trials.
    progress : SearchProgress
        Is told of each.

    Raises
    ------
    KeyboardInterrupt
        When there is no round that could be kept.
    Exception
        Of the first trial, or of a callback; a ValueError of a later one is noted in its trial.
    """
    tried: list[Tried] = []
    best: Tried | None = None
    end: End = "n_trials"
    try:
        while n_trials is None or len(tried) < n_trials:
            if best is None:
                candidate: Candidate | None = search.start
            elif validation.is_up(best):
                end = "seconds"
                break
            else:
                candidate = search.next(len(tried), best.candidate)
            if candidate is None:
                end = "space"
                break
            latest = _tried(validation, len(tried), candidate, search, best)
            if best is None and len(latest.trial.curve) == 0 and latest.interrupt is not None:
                raise latest.interrupt
            tried.append(latest)
            if best is None or latest.is_better_than(best):
                best = latest
            progress.show(latest.trial, best.trial)
            if latest.interrupt is not None:
                end = "interrupt"
                break
    except KeyboardInterrupt:
        if best is None:
            raise
        end = "interrupt"
    assert best is not None  # n_trials is at least 1
    return Found(tried, best, end)


def _tried(
    validation: Validation, number: int, candidate: Candidate, search: Search, best: Tried | None
) -> Tried:
    """Try a setting; one that cannot be trained with is a trial, too."""
    try:
        return validation.tried(number, candidate, search.names, best)
    except ValueError as error:
        if best is None:
            raise
        warnings.warn(f"tune(): trial {number} failed: {error}", UserWarning, stacklevel=4)
        params = {name: candidate.problem.params[name] for name in search.names}
        trial = Trial(number, params, "failed", float("nan"), 0, np.empty(0), 0.0, str(error))
        return Tried(trial, candidate, Course(validation.stops), best.greater_is_better)
