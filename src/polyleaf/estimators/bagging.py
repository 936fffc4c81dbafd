"""Several models of parts of the rows, each stopped by the rows that it has not seen, averaged in one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from polyleaf.data.row_hashes import row_hashes
from polyleaf.estimators.held_out import HELD_OUT, HeldOut, watched
from polyleaf.estimators.problem import Problem
from polyleaf.model.bags import joined
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds
from polyleaf.training.callbacks import EarlyStopping
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import TrainingResult, boost
from polyleaf.training.replay import Replay
from polyleaf.training.side_by_side import Halt, side_by_side
from polyleaf.training.state import TrainingState

# Of the tables, scores and gradients of members that are trained at the same time.
_MOST_BYTES_AT_ONCE = 2**28


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
    n_at_once = members_at_once(problem, callbacks, n_parts)
    bags = _Bags(problem, parts, callbacks, refit and can_replay(problem))
    if n_at_once > 1:
        found, error = bags.side_by_side(n_parts, n_at_once)
    else:
        found, error = bags.one_by_one(n_parts)
    kept = [(number, one) for number, one in enumerate(found) if one.forest.n_rounds > 0] or [(0, found[0])]
    measured = {f"{HELD_OUT}_{number}": one.evals_result[HELD_OUT] for number, one in kept}
    whole, members = joined([trees_of_rounds(one.forest, 0, one.best_iteration + 1) for _, one in kept])
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


def members_at_once(problem: Problem, callbacks: Sequence[Any], n_members: int) -> int:
    """Return how many members advance at the same time; 1: one after the other, each on all threads.

    Members have nothing to wait for in one another, unlike the threads of one training. They are trained one
    by one where a callback, an objective or a metric of the user's would be called in several threads, where
    there is one device for all, and where their tables together would take much memory.
    """
    settings, data = problem.settings, problem.data
    by_user = [problem.params.get("objective"), *_as_list(problem.params.get("eval_metric"))]
    if settings.device != "cpu" or any(map(callable, by_user)):
        return 1
    if any(type(one) is not EarlyStopping for one in callbacks):
        return 1
    n_rows, n_features = data.X.shape
    of_member = n_rows * (2 * n_features + 32 * problem.loss.n_outputs)
    return int(max(1, min(n_members, settings.n_threads, _MOST_BYTES_AT_ONCE // of_member)))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def can_replay(problem: Problem) -> bool:
    """Return whether the leaves of a tree can be filled anew while its splits stand.

    Not those that bounds of other nodes hold back, and not those of labels that are kept compressed.
    """
    settings = problem.settings
    return settings.monotone is None and settings.label_space is None and not issparse(problem.data.y)


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

    def one_by_one(self, n_members: int) -> tuple[list[TrainingResult], BaseException | None]:
        """Train member after member, until all are done or one is ended."""
        found: list[TrainingResult] = []
        for number in range(n_members):
            try:
                found.append(self._member(number, self.callbacks, [], None))
            except KeyboardInterrupt as interrupt:  # not within a round: that one is a member's error
                if not found:
                    raise
                return found, interrupt
            if found[-1].error is not None:
                return found, found[-1].error
        return found, None

    def side_by_side(
        self, n_members: int, n_at_once: int
    ) -> tuple[list[TrainingResult], BaseException | None]:
        """Train some members at the same time; the threads are shared out to them."""
        n_threads = max(1, self.problem.settings.n_threads // n_at_once)

        def member(number: int, halt: Halt) -> TrainingResult:
            own = [copy.copy(one) for one in self.callbacks]  # each has a state
            found = self._member(number, [*own, halt], [halt], n_threads)
            if isinstance(found.error, Exception):  # which ends them all; Ctrl-C keeps what there is
                raise found.error
            return found

        return side_by_side(member, n_members, n_at_once)

    def _member(
        self, number: int, callbacks: Sequence[Any], halts: Sequence[Halt], n_threads: int | None
    ) -> TrainingResult:
        """Train one member; its table is gone when it is done."""
        run = self.parts.run(number, n_threads=n_threads)
        rounds: RoundsDone = []
        found = watched(self.problem, [run], callbacks, done=rounds, refits=self.replay)
        if not self.replay or found.error is not None or found.best_iteration < 0:
            return found
        rates, maker = run.rates, run.maker
        del run
        try:
            forest, error = self._replayed(rounds[: found.best_iteration + 1], rates, halts, n_threads)
        except KeyboardInterrupt as interrupt:  # before its rounds, or after them
            forest, error = None, interrupt
        if forest is None:
            forest = maker.whole(None, rounds, found.best_iteration)
        return replace(found, forest=forest, error=error)

    def _replayed(
        self,
        rounds: RoundsDone,
        rates: Sequence[float],
        halts: Sequence[Halt],
        n_threads: int | None,
    ) -> tuple[Forest | None, BaseException | None]:
        """Return a member with leaf values from all rows, None where something ends this; and what does."""
        problem, settings = self.problem, self.problem.settings
        if n_threads is not None:
            settings = replace(settings, n_threads=n_threads)
        loss = problem.reader.targets.make_loss(problem.coding)
        replay = Replay(problem.data, loss, settings, self.parts.matrix, rounds, rates)
        state = TrainingState(
            n_rounds=len(rounds),
            n_done=0,
            learning_rate=settings.learning_rate,
            evals_result=replay.history,
            greater_is_better={},
        )
        error = boost(replay, state, halts)
        if error is not None or replay.n_rounds < len(rounds):
            return None, error
        return replay.forest(), None
