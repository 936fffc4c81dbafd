"""Something happens to a worker in the middle of a fit."""

from __future__ import annotations

import os
import signal
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
    """Does something to a worker after a round, once, and notes the rounds; called by the client.

    Parameters
    ----------
    cluster : Cluster
        Of the workers.
    how : callable
        Called with the address and the pid of a worker.
    own : bool
        Whether it is the worker of rank 0, which waits for what callbacks say.
    """

    def __init__(self, cluster, how, own):
        self.cluster, self.how, self.own = cluster, how, own
        self.rounds, self.victim = [], None

    def after_round(self, state):
        self.rounds.append(state.round)
        if state.round == AT and self.victim is None:
            self.strike()

    def strike(self):
        ranks = {
            key.rpartition("-")[2]: address
            for address, keys in self.cluster.client.processing().items()
            for key in keys
            if key.startswith("polyleaf-rank")
        }
        address = ranks["0" if self.own else "1"]
        self.victim = address, self.cluster.pid(address)
        self.how(*self.victim)


def killed(address, pid):
    os.kill(pid, signal.SIGKILL)


def stopped(address, pid):
    os.kill(pid, signal.SIGSTOP)


def pids_of(cluster):
    return cluster.client.run(os.getpid)


def fitted(params, callbacks, tables, evals, **deadlines):
    model = DaskPolyleafRegressor(**params, callbacks=callbacks)
    with dask.config.set({"polyleaf.deadlines": QUICK | deadlines}):
        return model.fit(*tables, eval_set=evals)
