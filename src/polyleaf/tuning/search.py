"""What to try next: at first anything, then mostly what is near the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyleaf.estimators.problem import Problem
from polyleaf.params.combinations import Refused
from polyleaf.params.table import parameters_of
from polyleaf.tuning.dimensions import Dimension, Params

# So many trials are drawn from the whole space before others are near the best, and one in so many later on.
_AT_FIRST, _EVERY = 6, 3
# How far trials go from the best one, as a share of the whole range: at first, in the end, and how soon.
_FAR, _NEAR, _SHRINKS = 0.3, 0.1, 0.95
# Draws after which there is nothing new to be found.
_MOST_DRAWS = 200

# Where a setting lies in each dimension; None: the parameters are as the estimator has them.
Places = tuple[float | None, ...]


@dataclass(frozen=True)
class Candidate:
    """A setting to try.

    Attributes
    ----------
    places : tuple of float or None
        Where it lies.
    params : dict
        The parameters that the search sets.
    problem : Problem
        All rows, with these parameters.
    """

    places: Places
    params: Params
    problem: Problem


class Search:
    """Proposes settings, which hang on the seed, on the number of the trial and on the best one so far.

    Parameters
    ----------
    problem : Problem
        All rows, with the parameters that the search begins with.
    space : sequence of Dimension
        What is searched.
    seed : int
        Of all draws.

    Attributes
    ----------
    left_out : dict of str and int
        Why settings that were drawn do not go together, and how many of them.
    """

    def __init__(self, problem: Problem, space: Sequence[Dimension], seed: int) -> None:
        self._problem = problem
        self._space = list(space)
        self._seed = seed
        self._rules = {name: row.rule for name, row in parameters_of(problem.kind).items()}
        self._seen: set[str] = set()
        self._why: dict[str, str] = {}  # the error of the first one, by the row that says so
        self.left_out: dict[str, int] = {}
        self.start = Candidate((None,) * len(self._space), {}, problem)
        self._seen.add(self._written(problem.params))

    @property
    def names(self) -> list[str]:
        """All parameters that are searched."""
        return [name for dimension in self._space for name in dimension.names]

    def check(self) -> None:
        """Raise Refused where no setting that is drawn goes together, before anything is tried."""
        places = [self._drawn(np.random.default_rng((self._seed, i))) for i in range(_MOST_DRAWS)]
        for i, one in enumerate(places):
            try:
                self._candidate(one)
            except Refused:
                if i == len(places) - 1:
                    raise
            else:
                return

    def next(self, number: int, best: Candidate) -> Candidate | None:
        """Return the setting of trial `number`, from 1, that was not tried before; None: none was found."""
        rng = np.random.default_rng((self._seed, number))
        anywhere = number <= _AT_FIRST or number % _EVERY == 0
        for _ in range(_MOST_DRAWS):
            places = self._drawn(rng) if anywhere else self._near(best.places, number, rng)
            found = self._new(places)
            if found is not None:
                return found
        return None

    def _new(self, places: Places) -> Candidate | None:
        """Return a setting, unless it was tried before or does not go together."""
        params = self._problem.params | self._params_at(places)
        written = self._written(params)
        if written in self._seen:
            return None
        self._seen.add(written)
        try:
            return self._candidate(places)
        except Refused as error:
            why = self._why.setdefault(error.row, str(error).rstrip("."))
            self.left_out[why] = self.left_out.get(why, 0) + 1
            return None

    def _drawn(self, rng: np.random.Generator) -> Places:
        return tuple(rng.random(len(self._space)).tolist())

    def _near(self, best: Places, number: int, rng: np.random.Generator) -> Places:
        """Return places of which some are moved, a step on an ordered scale, else anywhere."""
        n = len(self._space)
        moved = rng.random(n) < max(1 / 3, 2 / n)
        moved[rng.integers(n)] = True
        scale = max(_NEAR, _FAR * _SHRINKS**number)
        steps, anywhere = scale * rng.standard_normal(n), rng.random(n)
        return tuple(
            self._moved(dimension, place, float(step), float(other)) if is_moved else place
            for dimension, place, is_moved, step, other in zip(
                self._space, best, moved, steps, anywhere, strict=True
            )
        )

    def _moved(self, dimension: Dimension, place: float | None, step: float, other: float) -> float:
        if place is None:
            place = dimension.place_of(self._problem.params)
        if place is None or not dimension.ordered:
            return other
        there = abs(place + step)  # thrown back at both ends
        return 2 - there if 1 < there < 2 else there if there < 1 else other

    def _candidate(self, places: Places) -> Candidate:
        params = self._params_at(places)
        return Candidate(places, params, self._problem.with_params(self._problem.params | params))

    def _params_at(self, places: Places) -> Params:
        params: Params = {}
        for dimension, place in zip(self._space, places, strict=True):
            if place is not None:
                params |= dimension.at(place)
        for name, value in params.items():  # of a distribution not all values were looked at before
            self._rules[name].check(f"space[{name!r}]", value)
        return params

    def _written(self, params: Params) -> str:
        """Return the values of what is searched as text, the same for the same values."""
        return repr([(name, params[name]) for name in self.names])
