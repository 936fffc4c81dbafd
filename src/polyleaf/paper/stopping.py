"""When to stop, and which round counts.

The paper stops when "the performance does not improve within 25 rounds". Taken at its word that is the test
accuracy, which moves in steps of one row: on MNIST 25 rounds without a step are soon reached while the cross
entropy still falls. So training goes on until neither of the two has improved for that long (the patient
rule), and what the paper's rule would have given is read off the recorded accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyleaf.paper.problems import Array

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


def best_round(losses: Sequence[float], patience: int) -> int:
    """Return the round (from 0) with the least loss before `patience` rounds without a smaller one."""
    best = 0
    for number, loss in enumerate(losses):
        if loss < losses[best]:
            best = number
        elif number - best >= patience:
            break
    return best


class Watch:
    """Counts the rounds since any of several losses was smaller than ever before."""

    def __init__(self) -> None:
        self._best: list[float] = []
        self.improvements = 0
        self.rounds_without = 0

    def update(self, losses: Sequence[float]) -> None:
        """Take the losses of one more round."""
        if not self._best:
            self._best = [float("inf")] * len(losses)
        improved = any(loss < best for loss, best in zip(losses, self._best, strict=True))
        self._best = [min(pair) for pair in zip(losses, self._best, strict=True)]
        self.improvements += improved
        self.rounds_without = 0 if improved else self.rounds_without + 1


class EitherImproves:
    """A metric to be minimised that falls whenever the error or the cross entropy of classes does."""

    def __init__(self) -> None:
        self._watch = Watch()

    def __call__(self, y: Array, prediction: Array) -> float:
        of_the_class = prediction[np.arange(len(y)), y]
        cross_entropy = -np.log(np.clip(of_the_class, _SMALLEST_PROBABILITY, None)).mean()
        error = np.mean(prediction.argmax(axis=1) != y)
        self._watch.update([float(error), float(cross_entropy)])
        return -float(self._watch.improvements)
