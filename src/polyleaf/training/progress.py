"""What ``fit`` shows on standard error: a bar, or lines; it goes to the log of the name "polyleaf", too."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tqdm import tqdm

from polyleaf.params.rules import Integer
from polyleaf.training.state import Callback, TrainingState

_LOG = logging.getLogger("polyleaf")
# More than these would not fit a terminal's line; the last ones are those that early stopping watches.
_METRICS_ON_BAR = 3


class ProgressBar(Callback):
    """A callback that shows the rounds done and the metrics in a bar on standard error.

    The last state of the bar is logged as well, at the level INFO of the logger "polyleaf".

    Without evaluation sets the bar has the metric of the training rows. ``verbose=1`` of the estimators is
    this callback.
    """

    _bar: tqdm[Any] | None = None

    def before_training(self, state: TrainingState) -> None:
        """Draw the bar."""
        self._bar = tqdm(
            total=state.n_rounds,
            initial=state.n_done,
            unit="round",
            desc="polyleaf",
            dynamic_ncols=True,
            file=sys.stderr,
        )

    def after_round(self, state: TrainingState) -> bool | None:
        """Count one round and show its metrics."""
        if self._bar is None:
            return None
        shown = list(state.latest().items())[-_METRICS_ON_BAR:]
        self._bar.set_postfix_str(", ".join(f"{name}={value:.5g}" for name, value in shown), refresh=False)
        self._bar.update(1)
        return None

    def after_training(self, state: TrainingState) -> None:
        """Leave the bar as it stands; training may have stopped early."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            _LOG.info("trained %s", _line(state))


class EvaluationLog(Callback):
    """A callback that writes a line with the metrics to standard error every few rounds, and in the last one.

    The line is logged as well, at the level INFO of the logger "polyleaf".

    ``verbose=n`` of the estimators, for n of 2 and more, is this callback and a `ProgressBar`.

    Parameters
    ----------
    period : int, default=1
        Rounds between two lines.
    """

    def __init__(self, period: int = 1) -> None:
        Integer(1).check("period", period)
        self.period = period

    def after_round(self, state: TrainingState) -> bool | None:
        """Write the line if its round has come."""
        done, planned = state.n_done, state.n_rounds
        if done % self.period == 0 or done == planned:
            line = _line(state)
            tqdm.write(line, file=sys.stderr)
            _LOG.info("%s", line)
        return None


def _line(state: TrainingState) -> str:
    metrics = "  ".join(f"{name}={value:.6g}" for name, value in state.latest().items())
    return f"[{state.n_done}/{state.n_rounds}]  {metrics}".rstrip()
