"""How many threads the core may use."""

from __future__ import annotations

import os

from polyleaf import _core

# Beyond this a machine may refuse to start more, which would end the process.
_MOST_THREADS = 512

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


# OpenMP's threads do not survive a fork, and a team started in the child would wait for them for ever: a
# forked process works on one thread.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    None is OpenMP's current limit, which OMP_NUM_THREADS, threadpoolctl and joblib's workers set; a negative
    number counts down from there as in joblib (-1: all, -2: all but one).
    """
    if _forked:
        return 1
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, _MOST_THREADS)
    limit = max(1, min(_core.max_threads(), _available_cores()))
    return limit if n_jobs is None else max(1, limit + 1 + n_jobs)


def at_most_all_cores(n_jobs: int | None) -> int | None:
    """Return an `n_jobs` that came with a file: it cannot ask for more threads than there are cores."""
    return n_jobs if n_jobs is None else min(n_jobs, _available_cores())


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
