"""Trainings of which some advance at the same time, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event
from typing import Any

from polyleaf.training.loop import TrainingResult
from polyleaf.training.state import Callback, TrainingState


class Halt(Callback):
    """Ends a training after its present round, once somebody says so."""

    def __init__(self) -> None:
        self._said = Event()

    def say(self) -> None:
        """End all trainings that have this callback."""
        self._said.set()

    def before_round(self, state: TrainingState) -> bool | None:
        """End a training that is about to begin."""
        return self._said.is_set()

    def after_round(self, state: TrainingState) -> bool | None:
        """End a training that is under way."""
        return self._said.is_set()


def side_by_side(
    train: Callable[[int, Halt], TrainingResult], n_trainings: int, n_at_once: int
) -> tuple[list[TrainingResult], BaseException | None]:
    """Return what comes of so many trainings, in their order, and what ended them all.

    Where one of them fails, the others end, and its error is raised. Ctrl-C ends them, too: what there is of
    those that have begun is returned, with the interrupt.

    Parameters
    ----------
    train : callable (number, halt) -> TrainingResult
        Does one training, which `halt` is a callback of. It is called in several threads.
    n_trainings, n_at_once : int
        How many there are, and how many advance at the same time.
    """
    halt = Halt()
    ended_by: BaseException | None = None
    with ThreadPoolExecutor(n_at_once, thread_name_prefix="polyleaf") as pool:
        begun: list[Future[TrainingResult]] = []
        try:
            for number in range(n_trainings):
                begun.append(pool.submit(copy_context().run, train, number, halt))
            until_done(begun)
        except KeyboardInterrupt as interrupt:
            ended_by = interrupt
        finally:
            if ended_by is not None or any(one.done() and _failed(one) for one in begun):
                halt.say()
            for one in reversed(begun):  # so that those that have begun are the first ones
                one.cancel()  # has no effect on one that has begun
    found = [one.result() for one in begun if not one.cancelled()]
    return found, ended_by


def until_done(begun: Iterable[Future[Any]]) -> None:
    """Wait for all, or for the first one that fails."""
    waiting = set(begun)
    while waiting:
        # With a limit of time, Ctrl-C comes through on every system.
        done, waiting = wait(waiting, timeout=1.0, return_when="FIRST_EXCEPTION")
        if any(_failed(one) for one in done):
            return


def _failed(training: Future[Any]) -> bool:
    return not training.cancelled() and training.exception() is not None
