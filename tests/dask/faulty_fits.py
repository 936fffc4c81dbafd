"""Something happens to a worker in the middle of a fit."""

from __future__ import annotations

import os
import time

import dask
from polyleaf.dask import DaskPolyleafRegressor

AT = 2  # the round after which it happens
QUICK = {"beat": 0.25, "silence": 5}


def waited_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


class Fault:
    """Does something to a worker after a round, once; notes the rounds, and which process called.

    Parameters
    ----------
    folder : Path
        Where the notes are.
    pids : collection of int
        Those of all workers.
    how : callable
        Called with a pid; None: the client does it, and the training waits for that.
    own : bool
        Whether it is the worker of rank 0, which calls callbacks.
    """

    def __init__(self, folder, pids, how, own):
        self.folder, self.pids, self.how, self.own = folder, sorted(pids), how, own

    def after_round(self, state):
        with open(self.folder / "rounds", "a") as lines:
            lines.write(f"{state.round} {os.getpid()}\n")
        if state.round != AT or (self.folder / "victim").exists():
            return
        mine = os.getpid()
        victim = mine if self.own else next(pid for pid in self.pids if pid != mine)
        (self.folder / "new").write_text(str(victim))
        os.rename(self.folder / "new", self.folder / "victim")
        if self.how is None:
            waited_for((self.folder / "client").exists)
            time.sleep(0.5)
        else:
            os.kill(victim, self.how)

    def rounds(self):
        return [int(line.split()[0]) for line in (self.folder / "rounds").read_text().splitlines()]


def pids_of(cluster):
    return cluster.client.run(os.getpid)


def fitted(params, callbacks, tables, evals, **deadlines):
    model = DaskPolyleafRegressor(**params, callbacks=callbacks)
    with dask.config.set({"polyleaf.deadlines": QUICK | deadlines}):
        return model.fit(*tables, eval_set=evals)
