"""What a search shows on standard error: a bar, or lines; it goes to the log of the name "polyleaf", too."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tqdm import tqdm

from polyleaf.tuning.trials import Trial

_LOG = logging.getLogger("polyleaf")


class SearchProgress:
    """A bar of the trials with the best score, and a line for each trial.

    Parameters
    ----------
    verbose : int
        0: nothing. 1: the bar. From 2 on: the lines, too.
    n_trials : int or None
        How many there will be at most; None: that is not known.
    metric : str
        Name of the score.
    """

    def __init__(self, verbose: int, n_trials: int | None, metric: str) -> None:
        self._metric = metric
        self._lines = verbose >= 2
        self._bar: tqdm[Any] | None = None
        if verbose >= 1:
            self._bar = tqdm(
                total=n_trials, unit="trial", desc="polyleaf tune", dynamic_ncols=True, file=sys.stderr
            )

    def show(self, trial: Trial, best: Trial) -> None:
        """Count a trial."""
        line = (
            f"trial {trial.number}: {self._metric}={trial.score:.6g} after {trial.n_rounds} rounds, "
            f"{trial.status}  {trial.params}"
        )
        if self._bar is None:
            return
        if self._lines:
            tqdm.write(line, file=sys.stderr)
        _LOG.info("%s", line)
        self._bar.set_postfix_str(
            f"best {self._metric}={best.score:.5g} of trial {best.number}", refresh=False
        )
        self._bar.update(1)

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
