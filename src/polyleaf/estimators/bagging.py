"""Several models of parts of the rows, each stopped by the rows that it has not seen, averaged in one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from polyleaf.data.row_hashes import row_hashes
from polyleaf.estimators.held_out import (
    HELD_OUT,
    HeldOut,
    fit_in_memory,
    runs_at_once,
    share,
    threads_of_each,
    watched,
)
from polyleaf.estimators.problem import Problem
from polyleaf.model.bags import joined
from polyleaf.model.forest import Forest
from polyleaf.params.table import AUTO_FEW_ROWS
from polyleaf.training.callbacks import EarlyStopping
from polyleaf.training.forest_maker import ForestMaker, RoundsDone
from polyleaf.training.loop import Run, TrainingResult, boost
from polyleaf.training.replay import Replay
from polyleaf.training.side_by_side import Halt, side_by_side
from polyleaf.training.state import EvalsResult, TrainingState

# A mean varies less than its members do, and can take more rounds than is best for each of them.
# docs/defaults.md has the measurements.
_ROUNDS_OF_MEAN = 1.5


def train_bags(
    problem: Problem,
    n_bags: int,
    refit: bool,
    callbacks: Sequence[Any],
    groups: npt.NDArray[np.intp] | None,
) -> TrainingResult:
    """Train one model for each of so many parts of the rows, on all rows but these.

    Each is stopped by the rows of its part, where callbacks stop early; the others are not asked. All are
    trained on one binned table. In the end its trees get leaf values from all rows.

    Parameters
    ----------
    problem : Problem
        All rows.
    n_bags : int
        Number of parts and models.
    refit : bool
        Whether leaf values are to come from all rows; where they cannot, they come from those that the
        member was trained on.
    callbacks : sequence
        Of each training.
    groups : ndarray of int or None
        Which rows are to stay together.

    Returns
    -------
    TrainingResult
        Of the forest that is their mean. After Ctrl-C, of the members that are done and what there is of the
        one that was being trained.

    Raises
    ------
    ValueError
        When the rows cannot be shared out, or a part leaves nothing to learn from.
    """
    parts = HeldOut(problem, groups, 1 / n_bags, in_turn=True)
    n_parts = len(parts.folds())
    if n_parts < n_bags:
        raise _too_few_parts(n_bags, problem, parts, groups)
    parts.check_trainable()
    bags = _Bags(problem, parts, callbacks, refit and can_replay(problem))
    n_at_once = runs_at_once(problem, callbacks, n_parts)
    if stops_together(problem, callbacks, n_parts):
        found, error = bags.stopped_together(n_parts, n_at_once)
    else:
        found, error = bags.stopped_alone(n_parts, n_at_once)
    kept = [(number, one) for number, one in enumerate(found) if one.forest.n_rounds > 0] or [(0, found[0])]
    measured = {f"{HELD_OUT}_{number}": one.evals_result[HELD_OUT] for number, one in kept}
    whole, members = joined([one.forest for _, one in kept])
    return TrainingResult(whole, measured, whole.n_rounds - 1, error, members if len(members) > 1 else ())


def _too_few_parts(
    n_bags: int, problem: Problem, parts: HeldOut, groups: npt.NDArray[np.intp] | None
) -> ValueError:
    """Return the error of rows that cannot be shared out."""
    kinds: npt.NDArray[np.integer[Any]]
    if groups is None:
        kinds = row_hashes(parts.matrix, problem.data.y, problem.own_weight, problem.settings.n_threads)
        what = "X and y have {} different row(s)"
    else:
        kinds, what = groups, "groups has {} different group(s)"
    n_kinds = len(np.unique(kinds))
    uneven = "" if n_kinds < n_bags else ", too few of each class, or too few that have the weight"
    return ValueError(f"n_bags={n_bags} needs as many parts of the rows, but {what.format(n_kinds)}{uneven}.")


def stops_together(problem: Problem, callbacks: Sequence[Any], n_members: int) -> bool:
    """Return whether all members get the same number of rounds, which the mean of their curves asks for.

    The few rows of one part say little of when to stop. Of many rows, a member is done before the next one
    begins: their tables would take much memory.
    """
    may_stop = len(callbacks) > 0
    return may_stop and problem.data.n_rows < AUTO_FEW_ROWS and fit_in_memory(problem, n_members)


def rounds_of_mean(best_round: int, n_done: int, callbacks: Sequence[Any]) -> int:
    """Return how many rounds a member of a mean gets whose own best round is this one, of those it has done.

    Half as many again as are best for itself, where early stopping says which these are.
    """
    stops_early = any(isinstance(one, EarlyStopping) for one in callbacks)
    factor = _ROUNDS_OF_MEAN if stops_early else 1.0
    return min(n_done, round(factor * (best_round + 1)))


def can_replay(problem: Problem) -> bool:
    """Return whether the leaves of a tree can be filled anew while its splits stand.

    Not those that bounds of other nodes hold back, and not those of labels that are kept compressed.
    """
    settings = problem.settings
    return settings.monotone is None and settings.label_space is None and not issparse(problem.data.y)


@dataclass(frozen=True)
class _Member:
    """A member that was trained on a part of the rows.

    Attributes
    ----------
    rounds : list
        The trees of each round that it keeps.
    rates : sequence of float
        The learning rate of each round.
    maker : ForestMaker
        Makes a forest of them.
    history : dict
        The metrics of the rows that it has not seen.
    """

    rounds: RoundsDone
    rates: Sequence[float]
    maker: ForestMaker
    history: EvalsResult

    @classmethod
    def of(cls, run: Run, done: RoundsDone, n_rounds: int) -> _Member:
        """Return the member of a run that did these rounds, of which it keeps the first ones."""
        # Ctrl-C may have come when some runs had done a round more than others.
        history = {
            name: {metric: values[: len(done)] for metric, values in of_set.items()}
            for name, of_set in run.history.items()
        }
        return cls(done[:n_rounds], run.rates, run.maker, history)

    def result(self, forest: Forest | None = None, error: BaseException | None = None) -> TrainingResult:
        """Return it with this forest; None: with the leaf values that it has."""
        last = len(self.rounds) - 1
        if forest is None:
            forest = self.maker.whole(None, self.rounds, last)
        return TrainingResult(forest, self.history, last, error)


# (number, callbacks, what of them may end a replay, threads) -> a member
_Train = Callable[[int, Sequence[Any], Sequence[Halt], int], TrainingResult]


@dataclass(frozen=True)
class _Bags:
    """Members in the making.

    Attributes
    ----------
    problem : Problem
        All rows.
    parts : HeldOut
        Who is trained on which of them.
    callbacks : sequence
        Of each training.
    replay : bool
        Whether leaf values come from all rows in the end.
    """

    problem: Problem
    parts: HeldOut
    callbacks: Sequence[Any]
    replay: bool

    def stopped_together(
        self, n_members: int, n_at_once: int
    ) -> tuple[list[TrainingResult], BaseException | None]:
        """Train all members round by round until the mean of their held-out rows asks for no more."""
        runs = list(self.parts.runs(n_at_once=n_at_once))
        rounds: RoundsDone = []
        found = watched(self.problem, runs, self.callbacks, done=rounds, refits=True, n_at_once=n_at_once)
        n_rounds = rounds_of_mean(found.best_iteration, len(rounds), self.callbacks)
        members = []
        for number, run in enumerate(runs):
            own = [trees[share(len(trees), number, n_members)] for trees in rounds]
            members.append(_Member.of(run, own, n_rounds))
        runs.clear()  # their tables go
        if found.error is not None or not self.replay:
            return [one.result() for one in members], found.error

        def filled(
            number: int, callbacks: Sequence[Any], halts: Sequence[Halt], n_threads: int
        ) -> TrainingResult:
            return self._filled(members[number], halts, n_threads)

        done, error = self._each(filled, n_members, n_at_once)
        return done + [one.result() for one in members[len(done) :]], error

    def stopped_alone(
        self, n_members: int, n_at_once: int
    ) -> tuple[list[TrainingResult], BaseException | None]:
        """Train members of which each is stopped by the rows that it has not seen."""
        found, error = self._each(self._member, n_members, n_at_once)
        if error is not None and not found:
            raise error
        return found, error

    def _each(
        self, train: _Train, n_members: int, n_at_once: int
    ) -> tuple[list[TrainingResult], BaseException | None]:
        """Return the first members, until all are done or one is ended, and what ended them."""
        if n_at_once > 1:
            return self._side_by_side(train, n_members, n_at_once)
        found: list[TrainingResult] = []
        for number in range(n_members):
            try:
                found.append(train(number, self.callbacks, [], self.problem.settings.n_threads))
            except KeyboardInterrupt as interrupt:  # not within a round: that one is a member's error
                return found, interrupt
            if found[-1].error is not None:
                return found, found[-1].error
        return found, None

    def _side_by_side(
        self, train: _Train, n_members: int, n_at_once: int
    ) -> tuple[list[TrainingResult], BaseException | None]:
        """Train some members at the same time; the threads are shared out to them."""
        n_threads = threads_of_each(self.problem, n_at_once)

        def member(number: int, halt: Halt) -> TrainingResult:
            own = [copy.copy(one) for one in self.callbacks]  # each has a state
            found = train(number, [*own, halt], [halt], n_threads)
            if isinstance(found.error, Exception):  # which ends them all; Ctrl-C keeps what there is
                raise found.error
            return found

        return side_by_side(member, n_members, n_at_once)

    def _member(
        self, number: int, callbacks: Sequence[Any], halts: Sequence[Halt], n_threads: int
    ) -> TrainingResult:
        """Train one member; its table is gone when it is done."""
        run = self.parts.run(number, None, n_threads)
        rounds: RoundsDone = []
        found = watched(self.problem, [run], callbacks, done=rounds, refits=True)
        n_rounds = rounds_of_mean(found.best_iteration, len(rounds), callbacks)
        member = _Member.of(run, rounds, n_rounds)
        del run
        if found.error is not None or not self.replay:
            return member.result(error=found.error)
        return self._filled(member, halts, n_threads)

    def _filled(self, member: _Member, halts: Sequence[Halt], n_threads: int) -> TrainingResult:
        """Return a member with leaf values from all rows; where something ends this, with those it has."""
        problem, rounds = self.problem, member.rounds
        settings = replace(problem.settings, n_threads=n_threads)
        try:
            loss = problem.reader.targets.make_loss(problem.coding)
            replay = Replay(problem.data, loss, settings, self.parts.matrix, rounds, member.rates)
            state = TrainingState(
                n_rounds=len(rounds),
                n_done=0,
                learning_rate=settings.learning_rate,
                evals_result=replay.history,
                greater_is_better={},
            )
            error = boost(replay, state, halts)
        except KeyboardInterrupt as interrupt:  # before its rounds, or after them
            return member.result(error=interrupt)
        if error is not None or replay.n_rounds < len(rounds):
            return member.result(error=error)
        return member.result(replay.forest())
