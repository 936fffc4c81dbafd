"""Where a training stands, and what may look at it between the rounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from polyleaf.model.forest import Forest
from polyleaf.params.combinations import refused
from polyleaf.params.rules import Real
from polyleaf.params.situation import Situation
from polyleaf.training.forest_maker import ForestMaker

EvalsResult = dict[str, dict[str, list[float]]]


class TrainingState:
    """Where a training stands. Callbacks read it; they may set `learning_rate` and `best_iteration`.

    Attributes
    ----------
    n_rounds : int
        Rounds the forest will have if nothing ends the training before.
    n_done : int
        Rounds the forest has, those it began with included.
    round : int
        Number of the present round, from 0: the one to come in ``before_round``, the one just done in
        ``after_round``.
    learning_rate : float
        Of the present round; the next one begins with that of the estimator again.
    evals_result : dict
        ``{data set: {metric: [value after each round]}}``, to be read only.
    greater_is_better : mapping
        For each metric, in their order, which way is up.
    best_iteration : int or None
        The best round so far, where a callback keeps track of it; predictions use the rounds up to it.
    maker : ForestMaker or None
        Makes forests of trees of this run, of several that advance together: of the first one.
    """

    def __init__(
        self,
        *,
        n_rounds: int,
        n_done: int,
        learning_rate: float,
        evals_result: EvalsResult,
        greater_is_better: Mapping[str, bool],
        forest: Callable[[], Forest] | None = None,
        training_metric: Callable[[], dict[str, float]] | None = None,
        save: Callable[[str | os.PathLike[str], TrainingState], None] | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.n_done = n_done
        self.round = n_done
        self.evals_result = evals_result
        self.greater_is_better = greater_is_better
        self.best_iteration: int | None = None
        self._usual_rate = self._learning_rate = learning_rate
        self.maker: ForestMaker | None = None
        self._forest = forest
        self._training_metric = training_metric
        self._save = save
        self._began = time.monotonic()
        self._measured: tuple[int, dict[str, float]] | None = None

    @property
    def learning_rate(self) -> float:
        """Factor of the leaf values of the present round."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        Real(0, open_low=True).check("learning_rate", value)
        self._learning_rate = float(value)

    @property
    def elapsed(self) -> float:
        """Seconds since the training began."""
        return time.monotonic() - self._began

    @property
    def can_save(self) -> bool:
        """Whether there is one model that `save_checkpoint` could write."""
        return self._save is not None

    @property
    def best_round(self) -> int:
        """The round that predictions go up to: the best one, or else the last; -1: there is none."""
        last = self.n_done - 1
        return last if self.best_iteration is None else min(max(self.best_iteration, 0), last)

    def forest(self) -> Forest:
        """Return the trees of the rounds done, as a new object."""
        if self._forest is None:
            raise RuntimeError("runs that advance together have no single forest")
        return self._forest()

    def latest(self) -> dict[str, float]:
        """Return the metrics after the last round: of the evaluation sets, or else of the training rows."""
        found = {
            f"{name} {metric}": values[-1]
            for name, by_metric in self.evals_result.items()
            for metric, values in by_metric.items()
            if values
        }
        if found or self._training_metric is None:
            return found
        if self._measured is None or self._measured[0] != self.n_done:  # for all callbacks that ask
            self._measured = self.n_done, self._training_metric()
        return self._measured[1]

    def measure_no_training_rows(self) -> None:
        """Have `latest` say nothing of the training rows; called by the training itself."""
        self._training_metric = None

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write the rounds done to a file that ``fit(..., resume=path)`` and ``load_model`` take."""
        if self._save is None:
            raise refused(Situation(checkpoint=True, cross_validation=True))
        self._save(path, self)

    def begin_round(self) -> None:
        """Go on to the next round; called by the training itself."""
        self.round = self.n_done
        self._learning_rate = self._usual_rate


class Callback:
    """A callback that does nothing: a base for your own, or a list of what to write."""

    def before_training(self, state: TrainingState) -> None:
        """Look at `state` before anything is done."""

    def before_round(self, state: TrainingState) -> bool | None:
        """Set ``state.learning_rate``; return True to end the training."""
        return None

    def after_round(self, state: TrainingState) -> bool | None:
        """Look at the round just done; return True to end the training."""
        return None

    def after_training(self, state: TrainingState) -> None:
        """Clean up."""
