"""What was tried, and what came of it: as records, as a table, as a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, overload

from polyleaf.data.inputs import FloatArray

Status = Literal["done", "pruned", "cut off", "failed"]
# Trials that a printed table has, the best ones.
_TRIALS_SHOWN = 20


@dataclass(frozen=True)
class Trial:
    """One setting that was tried.

    Attributes
    ----------
    number : int
        From 0, which is the estimator as it was given.
    params : dict
        All parameters that are searched, by name.
    status : {"done", "pruned", "cut off", "failed"}
        "pruned": it was given up, as it could not become the best; "cut off": time was up, or Ctrl-C was
        pressed; "failed": its training raised an error.
    score : float
        The metric: of the best round, or of the last one where the number of rounds is given.
    n_rounds : int
        Rounds up to that one.
    curve : ndarray of shape (rounds done,)
        The metric after each round, a mean where there are several folds.
    seconds : float
        It took so long.
    error : str
        Why it failed.
    """

    number: int
    params: dict[str, Any]
    status: Status
    score: float
    n_rounds: int
    curve: FloatArray
    seconds: float
    error: str = ""


class Trials(Sequence[Trial]):
    """All trials of a search, in their order.

    It prints as a table of the best ones; `to_frame` has all of them.

    Parameters
    ----------
    trials : sequence of Trial
        In their order.
    metric : str
        Name of the score.
    best : int
        Number of the best one.
    order : sequence of int
        Numbers of all, the best first.
    """

    def __init__(self, trials: Sequence[Trial], metric: str, best: int, order: Sequence[int]) -> None:
        self._trials = tuple(trials)
        self._metric = metric
        self._best = best
        self._order = tuple(order)

    @overload
    def __getitem__(self, which: int) -> Trial: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Trial, ...]: ...

    def __getitem__(self, which: int | slice) -> Trial | tuple[Trial, ...]:
        """Return the trial of a number, or several."""
        return self._trials[which]

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        """Return the trials in their order."""
        return iter(self._trials)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: a row for each trial, a column for each parameter.

        The other columns are "status", the metric by its name, "n_rounds" and "rounds_done", and "seconds".

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        try:
            pd = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "to_frame() needs pandas, which is not installed (pip install pandas); the trials themselves "
                "have the same figures."
            ) from error
        rows = [
            {
                "status": trial.status,
                self._metric: trial.score,
                "n_rounds": trial.n_rounds,
                "rounds_done": len(trial.curve),
                "seconds": trial.seconds,
                **trial.params,
            }
            for trial in self._trials
        ]
        return pd.DataFrame(rows, index=pd.RangeIndex(len(rows), name="trial"))

    def __repr__(self) -> str:
        """Return a table of the best trials, and of the first one."""
        shown = list(self._order[:_TRIALS_SHOWN])
        if 0 not in shown:
            shown.append(0)
        names = list(self._trials[0].params)
        head = ["trial", self._metric, "rounds", "status", *names]
        rows = []
        for number in shown:
            trial = self._trials[number]
            rows.append(
                [
                    f"{number}{' *' if number == self._best else ''}",
                    f"{trial.score:.6g}",
                    str(trial.n_rounds),
                    trial.status,
                    *(str(trial.params[name]) for name in names),
                ]
            )
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
        n_left = len(self._trials) - len(shown)
        return "\n".join([*lines, *([f"... and {n_left} more"] if n_left > 0 else [])])


@dataclass(frozen=True, repr=False)
class TuneResult:
    """What a search found.

    It prints as a table of the best trials.

    Attributes
    ----------
    best_estimator : estimator
        With the best parameters, trained on all rows (see `refitted`). It is that of
        ``clone(estimator).set_params(**best_params).fit(X, y)``, bit for bit.
    best_params : dict
        What makes the estimator given the best one: parameters that were searched and, where rows that are
        not trained on had told how many rounds to do, the number of rounds.
    best_score : float
        The metric of the best trial, on rows that it was not trained on. As the best of many it is a little
        too good.
    metric : str
        Its name.
    trials : Trials
        All that was tried: a sequence of `Trial`, which prints as a table and has `to_frame`.
    best_trial : int
        Number of the best one.
    seconds : float
        All of it took so long.
    ended_by : {"n_trials", "seconds", "space", "interrupt"}
        Why there were no more trials; "space": all settings of a small space were tried.
    refitted : bool
        Whether the best estimator is fitted. False: Ctrl-C was pressed while it was.
    left_out : dict of str and int
        Why settings that were drawn were not tried, as their values do not go together, and how many.
    """

    best_estimator: Any
    best_params: dict[str, Any]
    best_score: float
    metric: str
    trials: Trials
    best_trial: int
    seconds: float
    ended_by: Literal["n_trials", "seconds", "space", "interrupt"]
    refitted: bool = True
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search, or the training on all rows after it."""
        return self.ended_by == "interrupt" or not self.refitted

    def __repr__(self) -> str:
        """Return the best trials as a table."""
        first = self.trials[0]
        why = {"space": ", all there are", "interrupt": ", then Ctrl-C"}.get(self.ended_by, "")
        head = (
            f"{len(self.trials)} trials in {self.seconds:.1f} seconds{why}; the best (*) has {self.metric} "
            f"{self.best_score:.6g}, the first {first.score:.6g}"
        )
        notes = [
            f"{n} setting{' was' if n == 1 else 's were'} left out: {why}" for why, n in self.left_out.items()
        ]
        return "\n".join([head, *notes, repr(self.trials)])
