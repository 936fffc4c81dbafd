"""Callbacks of a training with rows in several shards: the first one calls them, all do what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.training.callbacks import CallbackError, CallbackList
from polyleaf.training.state import TrainingState


class SharedCallbacks:
    """One callback for each shard, which stand for those of the user.

    Parameters
    ----------
    peers : Collectives
        What connects the shards.
    callbacks : sequence
        Those of the user; only those of the first shard are called.
    n_unheard : int
        Rounds that were done before the others were lost; callbacks are asked once more about the last one.
    measured : bool
        Whether all shards measure the training rows after each round, for callbacks that show how they fare.
    """

    def __init__(
        self, peers: Collectives, callbacks: Sequence[Any], n_unheard: int = 0, measured: bool = False
    ) -> None:
        self._peers = peers
        self._calls = CallbackList(callbacks if peers.rank == 0 else [])
        self._unheard = n_unheard > 0
        self._measured = measured
        self._ended = False

    def before_training(self, state: TrainingState) -> None:
        """Let them look at `state` before anything is done."""
        if not self._measured:  # all shards measure, or none
            state.measure_no_training_rows()
        self._called("before_training", state)

    def before_round(self, state: TrainingState) -> bool:
        """Return whether the training ends before this round, and take over the learning rate."""
        ends = self._unheard and self._called_of_last_round(state)
        return self._agreed(ends or self._called("before_round", state), state)

    def _called_of_last_round(self, state: TrainingState) -> bool:
        """Return what callbacks say of a round that was done before the others were lost."""
        self._unheard = False
        number, state.round = state.round, state.n_done - 1
        ends = self._called("after_round", state)
        state.round = number
        return ends

    def after_round(self, state: TrainingState) -> bool:
        """Return whether the training ends after this round, and take over which one is the best."""
        state.latest()
        return self._agreed(self._called("after_round", state), state)

    def after_training(self, state: TrainingState) -> None:
        """Let them finish."""
        with summed_over(None):
            failed = self._calls.after_training(state)
        if failed is not None:
            raise failed.error
        # After an error the others are elsewhere.
        if self._ended or state.n_done == state.n_rounds:
            self._agreed(True, state)

    def _called(self, method: str, state: TrainingState) -> bool:
        error: BaseException | None = None
        try:
            with summed_over(None):  # what callbacks compute is their own
                return bool(getattr(self._calls, method)(state))
        except CallbackError as failed:
            error = failed.error
        raise error  # here, so that it does not refer to itself: errors travel as pickles

    def _agreed(self, ends: bool, state: TrainingState) -> bool:
        """Return what the first shard says."""
        said = json.dumps([ends, state.learning_rate, state.best_iteration]).encode()
        ends, rate, best = json.loads(bytes(self._peers.all_gather(said)[0]))
        state.learning_rate = rate
        state.best_iteration = best
        self._ended = bool(ends)
        return self._ended
