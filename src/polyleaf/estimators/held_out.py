"""As many rounds as rows ask for that are not trained on, which are taken out of the training rows."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf._core import BinnedMatrix
from polyleaf.data.binning import bin_data
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_hashes import row_hashes
from polyleaf.data.row_shares import drawn_keys, row_shares
from polyleaf.data.sums import row_count
from polyleaf.estimators.parts import Indices, run_of_part
from polyleaf.estimators.problem import Problem
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds
from polyleaf.params.table import AUTO_FEW_ROWS, AUTO_FIXED_ROUNDS
from polyleaf.peers.gather import gather_notes
from polyleaf.training.callbacks import Checkpoint, EarlyStopping
from polyleaf.training.continuation import Start
from polyleaf.training.folds import Folds
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import Beginning, Run, TrainingResult, boost, train
from polyleaf.training.state import EvalsResult, TrainingState

# Of all that runs keep that advance at the same time, and of runs that are there while others advance.
_MOST_BYTES_AT_ONCE, _MOST_BYTES_TOGETHER = 2**28, 2**30
_NODES_OF_PATH, _MOST_BYTES_OF_HISTOGRAMS = 8, 2**28  # core/growth/contract.hpp
# Of fewer numbers a round is over before threads have met.
_LEAST_NUMBERS_AT_ONCE = 2**12
# Of the held-out rows, in `evals_result_`.
HELD_OUT = "held_out"
_CALLED = "y of the rows that are not held out"


class HeldOut:
    """Trains on some of the rows of a problem, and looks at the others when to stop.

    There is one set of held-out rows, or as many as it takes until each row was in one. Which rows these are
    hangs on what the rows hold and on the seed: equal rows, unless they are many, are never on both sides,
    and neither the order of the rows matters, nor whether a row of weight 2 is two rows. Classes have the
    same shares on both sides, as nearly as may be.

    Where rows are in several shards, each of them does this with its own rows, at the same time as the
    others: which rows are held out does not hang on how they are cut.

    Parameters
    ----------
    problem : Problem
        All rows, or those of a shard.
    groups : ndarray of int or None
        The number of each row's group, which is in one part as a whole; None: rows are of no group.
    fraction : float
        Of the weight, to be held out.
    in_turn : bool
        Whether every row is held out once, in one of several sets.

    Attributes
    ----------
    matrix : BinnedMatrix
        All rows as bins.
    """

    def __init__(
        self, problem: Problem, groups: npt.NDArray[np.intp] | None, fraction: float, in_turn: bool
    ) -> None:
        self._problem = problem
        self.matrix: BinnedMatrix = bin_data(problem.data, problem.settings)
        n_rows = problem.data.n_rows
        # One part more than there are rows is as good as a million more: there are no rows for it.
        n_parts = max(2, round(min(1 / fraction, n_rows + 1)))
        self._fraction, self._grouped = fraction, groups is not None
        self._by_class = problem.coding.kind in ("multiclass", "binary") and groups is None
        shares = self._shares(groups, n_parts)
        if in_turn:
            edges = np.linspace(0, 1, n_parts + 1)
            tests = [np.flatnonzero((low <= shares) & (shares < high)) for low, high in pairwise(edges)]
        else:
            tests = [np.flatnonzero(shares < fraction)]
        self._tests: list[Indices] = [test for test in tests if 0 < row_count(test) < n_rows]

    @property
    def most_rounds(self) -> int:
        """Rounds that are done at most."""
        return self._problem.settings.n_estimators

    @property
    def sees_one_class(self) -> bool:
        """Whether all held-out rows are of one class of several: all rounds would make them surer."""
        held = np.concatenate(self._tests) if self._tests else np.empty(0, dtype=np.intp)
        return self._n_classes(held) < min(2, self._n_classes(slice(None)))

    def _n_classes(self, rows: Indices | slice) -> int:
        """Return how many classes some rows have; 2 where they have none."""
        if self._problem.coding.kind not in ("multiclass", "binary"):
            return 2
        here = np.unique(self._problem.data.y[rows]).tolist()
        return len({one for of_shard in gather_notes(here) for one in of_shard})

    @property
    def why_none(self) -> str:
        """Why there may be no set of held-out rows, for an error or a warning."""
        if self._grouped:
            few = "groups has too few different groups"
        elif self._by_class:
            few = "X and y have too few different rows of each class"
        else:
            few = "X and y have too few different rows"
        return f"{few} for validation_fraction={self._fraction:g}"

    def _shares(self, groups: npt.NDArray[np.intp] | None, n_parts: int) -> FloatArray:
        """Return where each row lies in an order of chance; the first ones are held out first."""
        problem = self._problem
        if groups is None:
            hashes = row_hashes(self.matrix, problem.data.y, problem.own_weight, problem.settings.n_threads)
        else:
            hashes = groups.astype(np.uint64)
        weight = problem.own_weight
        if weight is not None and weight.ndim == 2:
            weight = weight.sum(axis=1)
        classes = None
        if self._by_class:
            classes = problem.data.y.reshape(-1).astype(np.intp)
        # Two rows of a class are on both sides. Were classes of few rows never held out, others alone would
        # say when to stop, and the more rounds the better: all are to become surer of what is frequent.
        least = 2 if self._by_class else n_parts
        return row_shares(drawn_keys(hashes, problem.settings.seed), weight, classes, least, n_parts)

    def runs(
        self, initial: Forest | None = None, done: RoundsDone | None = None, n_at_once: int = 1
    ) -> Iterator[Run]:
        """Yield a run for each set of held-out rows; none where no rows could be held out.

        Each has a table of its own, which is made when the run is asked for.

        Parameters
        ----------
        initial : Forest or None
            Trees that the only run begins with, where a run that ended early goes on.
        done : list or None
            Rounds done after these, each with the trees of all runs, one after the other.
        n_at_once : int
            How many of them advance at the same time: the threads are shared out to so many.

        Raises
        ------
        ValueError
            When there is nothing to learn from the rows that are left.
        """
        self.check_trainable()
        n_runs, n_threads = len(self.folds()), threads_of_each(self._problem, n_at_once)
        for number in range(n_runs):
            own = [trees[share(len(trees), number, n_runs)] for trees in done or ()]
            yield self.run(number, Beginning(initial, done=own), n_threads)

    def check_trainable(self) -> None:
        """Raise where the rows that are left would have one class of several."""
        for rows, _ in self.folds():
            if self._n_classes(rows) < min(2, self._n_classes(slice(None))):
                raise ValueError(f"{_CALLED} has one class.")

    def run(self, number: int, begin: Beginning | None, n_threads: int) -> Run:
        """Return the run of one set of held-out rows.

        Parameters
        ----------
        number : int
            Of the set.
        begin : Beginning or None
            What there is of it.
        n_threads : int
            That it works on.
        """
        problem, (rows, test) = self._problem, self.folds()[number]
        problem = replace(problem, settings=replace(problem.settings, n_threads=n_threads))
        return run_of_part(problem, self.matrix, rows, test, HELD_OUT, _CALLED, begin)

    @property
    def n_runs(self) -> int:
        """Sets of held-out rows."""
        return len(self._tests)

    def folds(self) -> list[tuple[Indices, Indices]]:
        """Return the rows that are trained on and those that are not, for each set of held-out rows."""
        every = np.arange(self._problem.data.X.shape[0])
        return [(np.delete(every, test), test) for test in self._tests]


def share(n: int, number: int, n_shares: int) -> slice:
    """Return which of n things are in one of so many shares, all of a size."""
    return slice(n // n_shares * number, n // n_shares * (number + 1))


def runs_at_once(problem: Problem, callbacks: Sequence[Any], n_runs: int) -> int:
    """Return how many of some runs advance at the same time; 1: one after the other, each on all threads.

    They have nothing to wait for in one another, unlike the threads of one. They advance one by one where a
    callback, an objective or a metric of the user's would be called in several threads or too early, where
    there is one device for all, where rows are in several shards, where there is next to nothing to do in a
    round, and where their tables together would take much memory.
    """
    settings = problem.settings
    by_user = [problem.params.get("objective"), *_as_list(problem.params.get("eval_metric"))]
    if settings.device != "cpu" or problem.data.shard is not None or any(map(callable, by_user)):
        return 1
    if any(type(one) is not EarlyStopping for one in callbacks):
        return 1
    n_rows, n_features = problem.data.X.shape
    if n_rows * (n_features + problem.loss.n_outputs) < _LEAST_NUMBERS_AT_ONCE:
        return 1
    return int(max(1, min(n_runs, settings.n_threads, _MOST_BYTES_AT_ONCE // _bytes_of_run(problem))))


def fit_in_memory(problem: Problem, n_runs: int) -> bool:
    """Return whether so many runs may be there at the same time."""
    return _bytes_of_run(problem) * n_runs <= _MOST_BYTES_TOGETHER


def _bytes_of_run(problem: Problem) -> int:
    """Return about what a run keeps: its table, scores, gradients, and histograms of a path of nodes."""
    settings, (n_rows, n_features) = problem.settings, problem.data.X.shape
    n_outputs = problem.loss.n_outputs
    n_sums = 2 * (n_outputs if settings.sketch is None else min(settings.sketch_size, n_outputs))
    n_bins = n_features * min(n_rows, settings.max_bins or n_rows)
    histograms = min(_NODES_OF_PATH * n_bins * n_sums * 4, _MOST_BYTES_OF_HISTOGRAMS)
    return int(n_rows * (2 * n_features + 32 * n_outputs) + histograms)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def threads_of_each(problem: Problem, n_at_once: int) -> int:
    """Return the threads of a run of which so many advance at the same time."""
    return max(1, problem.settings.n_threads // n_at_once)


@dataclass(frozen=True)
class Stopping:
    """When a run ends, where that is not after a number of rounds.

    Attributes
    ----------
    fraction : float
        Of the weight of the rows, to be held out.
    refit : bool
        Whether all rows are trained on in the end.
    is_asked : bool
        Whether somebody asked for it, and not for "auto", which can do without.
    """

    fraction: float
    refit: bool
    is_asked: bool


@dataclass(frozen=True)
class Refit:
    """What is done with all rows, once held-out rows have had their say.

    Attributes
    ----------
    n_rounds : int
        Rounds to do.
    history : dict
        The metrics of the held-out rows.
    warning : str
        Why there are none, for whoever asked for no number of rounds.
    """

    n_rounds: int
    history: EvalsResult
    warning: str = ""


Save = Callable[[str | os.PathLike[str], TrainingResult, "int | None"], None]


def train_held_out(
    problem: Problem,
    stopping: Stopping,
    callbacks: Sequence[Any],
    groups: npt.NDArray[np.intp] | None,
    start: Start | None,
    save: Save,
) -> TrainingResult:
    """Find out on held-out rows how many rounds to do, and do so many on all rows.

    Parameters
    ----------
    problem : Problem
        All rows.
    stopping : Stopping
        What to hold out, and what becomes of it.
    callbacks : sequence
        Of both runs; what stops early, of the first one alone.
    groups : ndarray of int or None
        Which rows are to stay together.
    start : Start or None
        A run of this kind that ended early, and goes on.
    save : callable
        Writes a checkpoint: a path, what there is, and how many rounds all rows get (None: not known yet).

    Returns
    -------
    TrainingResult
        Its `evals_result` is that of the held-out rows, also of rounds after the best one.
    """
    refit, initial = noted_refit(start), None if start is None else start.forest
    if refit is not None:
        return refitted(problem, refit, callbacks, Beginning(initial), save)
    held_out = held_out_of(problem, stopping, groups)
    n_at_once = runs_at_once(problem, callbacks, held_out.n_runs)
    runs, refit = runs_to_watch(held_out, stopping, initial, n_at_once=n_at_once)
    if refit is None:
        found = watched(problem, runs, callbacks, save, refits=stopping.refit, n_at_once=n_at_once)
        if found.error is not None or not stopping.refit:
            return found
        refit = Refit(found.best_iteration + 1, found.evals_result)
        runs.clear()  # their tables go
    if refit.warning:
        warnings.warn(refit.warning, UserWarning, stacklevel=4)  # the caller of fit
    return refitted(problem, refit, callbacks, Beginning(matrix=held_out.matrix), save)


def noted_refit(start: Start | None) -> Refit | None:
    """Return what a checkpoint knows is to be done with all rows; None: that is not known yet."""
    if start is None or start.note.stopped_at is None:
        return None
    return Refit(start.note.stopped_at, start.fitted.evals_result)


def held_out_of(problem: Problem, stopping: Stopping, groups: npt.NDArray[np.intp] | None = None) -> HeldOut:
    """Return what is held out: of few rows, each once."""
    return HeldOut(problem, groups, stopping.fraction, in_turn=is_in_turn(problem, stopping))


def is_in_turn(problem: Problem, stopping: Stopping) -> bool:
    """Return whether rows are so few that each is held out once, in one of several sets."""
    return stopping.refit and problem.data.n_rows < AUTO_FEW_ROWS


def runs_to_watch(
    held_out: HeldOut,
    stopping: Stopping,
    initial: Forest | None = None,
    done: RoundsDone | None = None,
    n_at_once: int = 1,
) -> tuple[list[Run], Refit | None]:
    """Return the runs in which held-out rows are watched; where there are none, what to do without.

    Raises
    ------
    ValueError
        When no rows can be held out, and somebody asked for it.
    """
    try:
        why = held_out.why_none
        runs = [] if held_out.sees_one_class else list(held_out.runs(initial, done, n_at_once))
    except ValueError as error:
        if stopping.is_asked:
            raise
        runs, why = [], str(error).rstrip(".")
    if runs:
        return runs, None
    if stopping.is_asked:
        raise ValueError(f"no rows can be held out to stop early by: {why}; pass eval_set to fit.")
    n_rounds = min(AUTO_FIXED_ROUNDS, held_out.most_rounds)
    warning = f'n_estimators="auto": no rows can be held out, {why}; {n_rounds} rounds are done.'
    return [], Refit(n_rounds, {}, warning)


def watched(
    problem: Problem,
    runs: list[Run],
    callbacks: Sequence[Any],
    save: Save | None = None,
    done: RoundsDone | None = None,
    refits: bool = False,
    n_at_once: int = 1,
) -> TrainingResult:
    """Train on all but held-out rows until these ask for no more; of several runs, return the first.

    Parameters
    ----------
    problem : Problem
        All rows.
    runs : list of Run
        Each with held-out rows; they advance together.
    callbacks : sequence
        They see the mean over the runs.
    save : callable or None
        Writes a checkpoint of a single run; None: there are none.
    done : list or None
        Gets the trees of each round to come: those of all runs, one after the other.
    refits : bool
        Whether all rows come next, and nobody asks for the forest unless something ends this.
    n_at_once : int
        How many runs may advance at the same time.
    """
    together = Folds(lambda: runs, HELD_OUT, problem.metrics, done, n_at_once)
    only = runs[0] if len(runs) == 1 else None

    def result(state: TrainingState, error: BaseException | None = None) -> TrainingResult:
        best, forest = state.best_round, runs[0].forest(state.best_round)
        if forest.n_rounds > state.n_done:  # of several runs, this one was ahead
            forest = trees_of_rounds(forest, 0, state.n_done, best)
        return TrainingResult(forest, together.history, best, error)

    state = TrainingState(
        n_rounds=problem.settings.n_estimators,
        n_done=runs[0].n_rounds,
        learning_rate=problem.settings.learning_rate,
        evals_result=together.history,
        greater_is_better={metric.name: metric.greater_is_better for metric in problem.metrics},
        forest=None if only is None else only.forest,
        save=None if only is None or save is None else lambda path, state: save(path, result(state), None),
    )
    state.maker = runs[0].maker
    error = boost(together, state, watching(callbacks, len(runs)))
    if refits and error is None:
        return TrainingResult(runs[0].maker.forest_of([]), together.history, state.best_round)
    return result(state, error)


def watching(callbacks: Sequence[Any], n_runs: int) -> list[Any]:
    """Return those callbacks that are called while held-out rows are watched in so many runs."""
    if n_runs == 1:
        return list(callbacks)
    # Few rows are trained on again in no time: there is nothing to save yet, but it must be possible.
    for one in callbacks:
        if isinstance(one, Checkpoint):
            one.check_path()
    return [one for one in callbacks if not isinstance(one, Checkpoint)]


def refitting(callbacks: Sequence[Any]) -> list[Any]:
    """Return those callbacks that are called while all rows are trained on."""
    return [one for one in callbacks if not isinstance(one, EarlyStopping)]


def refitted(
    problem: Problem, refit: Refit, callbacks: Sequence[Any], begin: Beginning, save: Save
) -> TrainingResult:
    """Do as many rounds on all rows as held-out rows asked for; what they measured is the history of it."""

    def with_history(result: TrainingResult) -> TrainingResult:
        return replace(result, evals_result=refit.history)

    result = train(
        problem.data,
        [],
        problem.loss,
        problem.metrics,
        replace(problem.settings, n_estimators=refit.n_rounds),
        refitting(callbacks),
        begin,
        save=lambda path, result: save(path, with_history(result), refit.n_rounds),
    )
    return with_history(result)
