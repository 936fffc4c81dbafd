"""How the score of a trial went, round by round, and when it is not worth going on."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

from polyleaf.training.state import Callback, TrainingState

# Rounds before which nobody gives up, and the share of the best trial's way to its best round.
_FEWEST_ROUNDS = 5
_FIRST_SHARE = 0.1
# How far behind the best trial is far: so many times what that one has still gained from there on. With these
# figures, searches on six small data sets did a third less rounds, and found what they find without.
_FAR_BEHIND = 1.0
# How much more is hoped for: so many times the gain of the second half of the way.
_HOPED_FOR = 2.0


@dataclass
class Course:
    """How the watched score went; lower is better.

    The way is measured in learning rates, summed over the rounds: half the rate takes twice the rounds.

    Attributes
    ----------
    keeps_best : bool
        Whether the best round counts, and not the last one.
    ways, values : list of float
        How far each round had got, and how well.
    """

    keeps_best: bool
    ways: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, learning_rate: float, value: float) -> None:
        """Add a round; NaN is no score at all."""
        way = self.ways[-1] if self.ways else 0.0
        self.ways.append(way + learning_rate)
        value = math.inf if math.isnan(value) else value
        if self.keeps_best and self.values:
            value = min(value, self.values[-1])
        self.values.append(value)

    def at(self, way: float) -> float:
        """Return how well it was at a point of the way; beyond the last round, as after that."""
        passed = bisect_right(self.ways, way * (1 + 1e-9))
        return self.values[passed - 1] if passed > 0 else math.inf

    @property
    def score(self) -> float:
        """How well it is now."""
        return self.values[-1] if self.values else math.inf

    @property
    def way_to_score(self) -> float:
        """How far it was when it first was as well as that."""
        return self.ways[self.values.index(self.score)] if self.values else 0.0

    def is_hopeless(self, best: Course) -> bool:
        """Whether it is far behind the best at the same point of the way, and will not catch up.

        That is to say: it is behind by more than the best one has still gained from there on, and would not
        get to the score of the best one by twice the gain of the second half of its way.
        """
        if not self.values or len(self.values) < _FEWEST_ROUNDS:
            return False
        way, now = self.ways[-1], self.values[-1]
        if way < _FIRST_SHARE * best.way_to_score:
            return False
        there, goal = best.at(way), best.score
        gain = max(self.at(way / 2) - now, 0.0)
        far = now > there + _FAR_BEHIND * max(there - goal, 0.0)
        return far and not now - _HOPED_FOR * gain <= goal


class Watch(Callback):
    """Follows a trial, and ends it where it is hopeless.

    Parameters
    ----------
    course : Course
        Gets the rounds.
    data, metric : str
        What is watched.
    best : Course or None
        Of the best trial so far.
    """

    def __init__(self, course: Course, data: str, metric: str, best: Course | None) -> None:
        self._course = course
        self._data = data
        self._metric = metric
        self._best = best
        self.pruned = False

    def before_training(self, state: TrainingState) -> None:
        """Find out which way is up."""
        self._sign = -1.0 if state.greater_is_better[self._metric] else 1.0

    def after_round(self, state: TrainingState) -> bool | None:
        """Look at the round."""
        value = state.evals_result[self._data][self._metric][-1]
        self._course.add(state.learning_rate, self._sign * value)
        if self._best is not None and self._course.is_hopeless(self._best):
            self.pruned = True
        return self.pruned
