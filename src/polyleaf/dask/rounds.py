"""The rounds of a training as the client knows them, for callbacks, checkpoints and the model."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import Any

from polyleaf.dask.reports import Answer, Outset, Report, Spent
from polyleaf.estimators.fit import Fit
from polyleaf.estimators.held_out import Refit, refitting, watching
from polyleaf.estimators.shard_training import Extent, Progress
from polyleaf.model.file import write_model
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.model.forest import Forest
from polyleaf.params.table import EstimatorKind
from polyleaf.training.callbacks import CallbackError, CallbackList, EarlyStopping, may_save
from polyleaf.training.continuation import Start
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.progress import EvaluationLog, ProgressBar
from polyleaf.training.state import EvalsResult, TrainingState

_log = logging.getLogger(__name__)
_SPENT = "%.3f s, of these %.3f s in %d exchanges; %d bytes sent by the first worker"


@dataclass(frozen=True)
class KnownRounds:
    """What the client knows, for workers that do not.

    Attributes
    ----------
    refit, n_runs
        As of `Outset`.
    rounds : list of bytes
        The trees of each round, as pickles.
    """

    refit: Refit | None
    n_runs: int
    rounds: list[bytes]

    def progress(self) -> Progress:
        """Return it as a worker keeps it."""
        return Progress(self.refit, self.n_runs, [pickle.loads(trees) for trees in self.rounds])


class ClientRounds:
    """What the client hears of a training. It calls the callbacks, once a round, whatever workers are lost.

    Parameters
    ----------
    kind : {"regressor", "classifier"}
        Which estimator is trained.
    params : dict
        Its parameters.
    fit : Fit
        The course of the training; of its callbacks, early stopping is left to the workers.
    start : Start or None
        What training goes on from.

    Attributes
    ----------
    start : Start or None
        The same.
    fit : Fit
        The course with the callbacks of the workers alone.
    waits : bool
        Whether a callback may change what comes next, so that rounds wait for it.
    measures : bool
        Whether a callback shows how the training rows fare, where there is nothing else to show.
    noted : bool
        Whether a callback may write a checkpoint.
    """

    def __init__(self, kind: EstimatorKind, params: dict[str, Any], fit: Fit, start: Start | None) -> None:
        self._kind = kind
        self._params = params
        self.start = start
        self.fit = replace(fit, callbacks=[one for one in fit.callbacks if runs_on_workers(one)])
        at_client = [one for one in fit.callbacks if not runs_on_workers(one)]
        self._at_client = at_client
        self._calls = CallbackList([])  # of the present training
        self.waits = any(type(one) not in (ProgressBar, EvaluationLog) for one in at_client)
        self.measures = any(isinstance(one, ProgressBar | EvaluationLog) for one in at_client)
        self.noted = may_save(at_client)
        self._rounds: list[bytes] = []
        self._outset: Outset | None = None
        self._state: TrainingState | None = None
        self._history: EvalsResult = {}
        self._training: dict[str, float] = {}
        self._answer: Answer | None = None  # to what is known now
        self._spent = Spent()

    @property
    def seed(self) -> int:
        """Of the run, once it has begun."""
        assert self._outset is not None
        return self._outset.seed

    @property
    def warning(self) -> str:
        """Why no rows were held out, where nobody asked for it by name; else nothing."""
        refit = None if self._outset is None else self._outset.refit
        return "" if refit is None else refit.warning

    def __len__(self) -> int:
        """How many rounds of the present training are known."""
        return len(self._rounds)

    @property
    def extent(self) -> Extent:
        """How far the training is known to be."""
        return int(self._outset is not None and self._outset.refit is not None), len(self)

    def unknown_to(self, extent: Extent) -> KnownRounds | None:
        """Return what is known, where workers know no more than this; None: they know all."""
        if self._outset is None or extent >= self.extent:
            return None
        return KnownRounds(self._outset.refit, self._outset.n_runs, list(self._rounds))

    def followed(self, work: Callable[[], Any]) -> tuple[FittedModel, BaseException | None]:
        """Do the work that calls `hear`; return the model of the rounds done, and what ended them early.

        That is KeyboardInterrupt, or the error of a callback. Any other error is raised, and so is one before
        the first round could begin; callbacks get their ``after_training`` in any case.
        """
        error: BaseException | None = None
        try:
            work()
        except CallbackError as failed:
            error = failed.error
        except KeyboardInterrupt as interrupt:
            error = interrupt
        finally:
            at_the_end = None
            if self._state is not None:
                at_the_end = self._ended(self._state)
        if self._state is None:
            assert error is not None
            raise error
        if error is None and at_the_end is not None:
            error = at_the_end.error
        return self._fitted(), error

    def hear(self, message: bytes) -> bytes:
        """Take in what the first rank says; return the answer."""
        said: Outset | Report = pickle.loads(message)
        answer = self._begin(said) if isinstance(said, Outset) else self._go_on(said)
        return pickle.dumps(answer)

    def _begin(self, outset: Outset) -> Answer:
        before = self._outset
        if before is None or (before.refit is None and outset.refit is not None):
            if self._state is not None:
                failed = self._ended(self._state)
                if failed is not None:
                    raise failed
            self._begin_training(outset)
        assert self._state is not None
        return self._said(self._state, ends=False)

    def _begin_training(self, outset: Outset) -> None:
        """Begin with the first training, or with that of all rows."""
        self._outset, self._state = outset, None
        self._rounds, self._training, self._answer, self._spent = [], {}, None, Spent()
        self._history = {name: {one: [] for one in metrics} for name, metrics in outset.metrics.items()}
        is_one = outset.n_runs == 1
        state = TrainingState(
            n_rounds=outset.n_rounds,
            n_done=outset.n_begun,
            learning_rate=outset.learning_rate,
            evals_result=self._history,
            greater_is_better=outset.greater_is_better,
            forest=(lambda: self._forest(None)) if is_one else None,
            training_metric=lambda: self._training,
            save=self._save if is_one else None,
        )
        state.maker = outset.maker
        wanted = self._at_client
        if self.fit.stopping is not None:
            wanted = watching(wanted, outset.n_runs) if outset.refit is None else refitting(wanted)
        self._calls = CallbackList(wanted)
        self._calls.before_training(state)
        self._state = state

    def _ended(self, state: TrainingState) -> CallbackError | None:
        """Let callbacks finish a training; return their first error."""
        many = "" if len(self) == 1 else "s"
        _log.info("%d round%s in " + _SPENT, len(self), many, *astuple(self._spent))
        return self._calls.after_training(state)

    def _go_on(self, report: Report) -> Answer:
        state = self._state
        assert state is not None
        self._tell(report, state)
        self._add(report.evals, state.n_done)
        self._training = report.training
        state.best_iteration = report.best_iteration
        ends = report.ends
        for trees in report.rounds:
            self._rounds.append(trees)
            state.round, state.n_done = state.n_done, state.n_done + 1
            self._add(report.evals, state.n_done)
            self._answer = None
            ends = self._calls.after_round(state) or ends
        if report.is_last:
            return self._said(state, ends=True)
        if self._answer is None:  # else the same was asked before workers were lost
            is_over = ends and report.rounds  # before the first round, all have their say
            if not is_over and state.n_done < state.n_rounds:
                state.begin_round()
                ends = self._calls.before_round(state) or ends
            self._answer = self._said(state, ends)
        return self._answer

    def _add(self, evals: EvalsResult, n_measured: int) -> None:
        """Move measurements into the history, until it has so many."""
        for name, by_metric in evals.items():
            for metric, values in by_metric.items():
                known = self._history[name][metric]
                n_new = n_measured - len(known)
                known.extend(values[:n_new])
                del values[:n_new]

    def _said(self, state: TrainingState, ends: bool) -> Answer:
        measured = [len(values) for by_metric in self._history.values() for values in by_metric.values()]
        return Answer(
            len(self._rounds), min(measured, default=0), ends, state.learning_rate, state.best_iteration
        )

    def _tell(self, report: Report, state: TrainingState) -> None:
        if report.rounds:
            number = state.n_done + len(report.rounds)
            _log.info("round %d of %d: " + _SPENT, number, state.n_rounds, *astuple(report.spent))
        self._spent = self._spent.and_more(report.spent)

    def _forest(self, best: int | None) -> Forest:
        assert self._outset is not None
        maker = self._outset.maker
        # Of several runs, those of the first one.
        rounds: RoundsDone = [pickle.loads(trees)[: maker.trees_per_round] for trees in self._rounds]
        initial = self.start.forest if self.start is not None and self._outset.goes_on else None
        return maker.whole(initial, rounds, best)

    def _fitted(self) -> FittedModel:
        assert self._outset is not None
        assert self._state is not None
        n_done, best = self._state.n_done, self._state.best_round
        history = {
            name: {metric: values[:n_done] for metric, values in by_metric.items()}
            for name, by_metric in self._history.items()
        }
        if self._outset.refit is not None:
            history = self._outset.refit.history
        model = self._outset.model
        return replace(model, forest=self._forest(best), best_iteration=best, evals_result=history)

    def _save(self, path: str | os.PathLike[str], state: TrainingState) -> None:
        assert self._outset is not None
        write_model(path, SavedModel(self._kind, self._params, self._fitted(), self._outset.note))


def runs_on_workers(callback: Any) -> bool:
    """Return whether a callback looks at nothing but metrics, and needs no word with the client."""
    return type(callback) is EarlyStopping
