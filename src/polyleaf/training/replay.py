"""Trees that stand, with leaf values from other rows: those that stopped the training among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyleaf._core import BinnedMatrix
from polyleaf.data.dataset import Dataset
from polyleaf.losses import Loss
from polyleaf.model.forest import Forest
from polyleaf.params.settings import Settings
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.state import EvalsResult
from polyleaf.training.trainer import Trainer


class Replay:
    """The rounds of a run once more on other rows: every tree keeps its splits, and gets new leaf values.

    Parameters
    ----------
    data : Dataset
        The rows.
    loss : Loss
        Of its own: it keeps what it knows of the targets.
    settings : Settings
        Of the run, which may have been on another device; this is done on the CPU.
    matrix : BinnedMatrix
        The rows as bins, with the cut points of the run.
    rounds : list
        The trees of the run.
    rates : sequence of float
        The learning rate of each round.

    Attributes
    ----------
    history : dict
        Empty: nothing is measured.
    """

    def __init__(
        self,
        data: Dataset,
        loss: Loss,
        settings: Settings,
        matrix: BinnedMatrix,
        rounds: RoundsDone,
        rates: Sequence[float],
    ) -> None:
        base = settings.base_score
        if base is None:
            base = loss.base_score(data.y, data.weights.whole())
        # Splits are not looked for, so that nothing is needed to find them by.
        self._trainer = Trainer(data, loss, replace(settings, device="cpu", sketch=None), base)
        self._matrix = matrix
        self._rounds, self._rates = rounds, rates
        self._done: RoundsDone = []
        self.history: EvalsResult = {}

    @property
    def n_rounds(self) -> int:
        """Rounds whose leaf values are known."""
        return len(self._done)

    def begin(self) -> None:
        """Set up the scores."""
        self._trainer.prepare(self._matrix)

    def step(self, learning_rate: float) -> None:
        """Do the next round, with the learning rate that it had."""
        number = len(self._done)
        self._done.append(self._trainer.refill(number, self._rates[number], self._rounds[number]))

    def forest(self) -> Forest:
        """Return the trees of the rounds done."""
        return self._trainer.maker.whole(None, self._done)
