"""Pruning by a study of Optuna, for those who search with one; Optuna is imported when a trial is pruned."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from polyleaf.training.state import Callback, TrainingState
from polyleaf.training.watched import known_name


class OptunaPruning(Callback):
    """Report each round to a trial of Optuna, and end the training where its study prunes.

    The study must go the way of the metric: ``direction="maximize"`` for an accuracy. What it raises,
    `optuna.TrialPruned`, comes out of ``fit`` or `polyleaf.cv`, and the study goes on with the next trial.

    Parameters
    ----------
    trial : optuna.trial.Trial
        The trial that is being tried.
    metric : str, default=None
        Name of the metric, as in ``evals_result_``. None: the last one.
    data : str, default=None
        Name of the evaluation set. None: the last one; "held_out" are rows that ``fit`` holds out itself,
        "validation" the mean over the folds of `polyleaf.cv`.

    Raises
    ------
    ImportError
        When Optuna is not installed.
    """

    def __init__(self, trial: Any, metric: str | None = None, data: str | None = None) -> None:
        try:
            self._pruned: type[Exception] = import_module("optuna").TrialPruned
        except ImportError as error:
            raise ImportError(
                "OptunaPruning needs Optuna, which is not installed (pip install optuna)."
            ) from error
        for method in ("report", "should_prune"):
            if not callable(getattr(trial, method, None)):
                raise TypeError(f"trial must be a trial of Optuna; got {type(trial).__name__}.")
        self.trial = trial
        self.metric = metric
        self.data = data
        self._values: list[float] | None = None

    def before_training(self, state: TrainingState) -> None:
        """Find what is to be reported, and whether the study goes its way."""
        if not state.evals_result:
            if self._values is None:
                raise ValueError(
                    "OptunaPruning has nothing to report; pass eval_set to fit, or hold out rows."
                )
            self._values = None  # a second run, on all rows: what held-out rows had to say is said
            return
        data = known_name("OptunaPruning", "data", self.data, state.evals_result)
        metric = known_name("OptunaPruning", "metric", self.metric, state.greater_is_better)
        self._check_direction(metric, state.greater_is_better[metric])
        self._values = state.evals_result[data][metric]

    def _check_direction(self, metric: str, greater_is_better: bool) -> None:
        """Raise ValueError where the study would keep the worst trials."""
        study = getattr(self.trial, "study", None)
        names = [one.name for one in getattr(study, "directions", ())]
        wanted = "MAXIMIZE" if greater_is_better else "MINIMIZE"
        if len(names) == 1 and names[0] in ("MINIMIZE", "MAXIMIZE") and names[0] != wanted:
            raise ValueError(
                f"OptunaPruning: the study is to {names[0].lower()}, but {metric!r} is better the "
                f"{'greater' if greater_is_better else 'smaller'} it is; make it with "
                f"direction={wanted.lower()!r}."
            )

    def after_round(self, state: TrainingState) -> bool | None:
        """Report the round.

        Raises
        ------
        optuna.TrialPruned
            Where the study prunes.
        """
        if self._values is None:
            return None
        self.trial.report(self._values[-1], state.round)
        if self.trial.should_prune():
            raise self._pruned(f"pruned after round {state.round}")
        return None
