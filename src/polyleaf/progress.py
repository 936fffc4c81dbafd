"""The progress bar of ``fit``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tqdm import tqdm

# More than these would not fit a terminal's line; the last ones are those that early stopping watches.
_METRICS_ON_BAR = 3


class Progress:
    """Shows the rounds done and the metrics on standard error.

    Parameters
    ----------
    n_rounds : int
        Rounds to come.
    verbose : bool or int
        0: silent; 1: a bar; n >= 2: also a line every n rounds.
    has_evals : bool, default=False
        Whether there are evaluation sets. Without them the bar shows the training value of the metric.
    """

    def __init__(self, n_rounds: int, verbose: int, has_evals: bool = False) -> None:
        self._every = int(verbose) if verbose >= 2 else 0
        self._n_rounds = n_rounds
        self._done = 0
        self._bar: tqdm[Any] | None = None
        self.wants_training_metric = verbose >= 1 and not has_evals
        if verbose >= 1:
            self._bar = tqdm(
                total=n_rounds, unit="round", desc="polyleaf", dynamic_ncols=True, file=sys.stderr
            )

    def update(self, metrics: Mapping[str, float]) -> None:
        """Count one round and show its metrics."""
        if self._bar is None:
            return
        self._done += 1
        shown = list(metrics.items())[-_METRICS_ON_BAR:]
        self._bar.set_postfix_str(", ".join(f"{name}={value:.5g}" for name, value in shown), refresh=False)
        self._bar.update(1)
        if self._every and (self._done % self._every == 0 or self._done == self._n_rounds):
            line = "  ".join(f"{name}={value:.6g}" for name, value in metrics.items())
            self._bar.write(f"[{self._done}/{self._n_rounds}]  {line}".rstrip(), file=sys.stderr)

    def close(self) -> None:
        """Leave the bar as it stands; training may have stopped early."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
