"""Pieces of work in processes of their own, some at a time, each of which ends after a while."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, TypeVar

Task = TypeVar("Task")


def done_apart(
    work: Callable[[Task], dict[str, Any]], tasks: Iterable[Task], n_jobs: int, limit: float
) -> Iterator[tuple[Task, dict[str, Any] | None]]:
    """Yield each task with what came of it, as soon as it is done; None: the process died or was ended.

    Parameters
    ----------
    work : callable
        What a process does with a task.
    tasks : iterable
        Begun in this order.
    n_jobs : int
        Processes at a time.
    limit : float
        Seconds after which a process is ended, whatever compiled code it is in.
    """
    waiting = list(tasks)[::-1]
    running: dict[Connection, tuple[Task, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < n_jobs:
            task = waiting.pop()
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.Process(target=_send, args=(work, task, theirs))
            process.start()
            theirs.close()
            running[ours] = task, process, monotonic() + limit
        ready = wait(list(running), timeout=1.0)
        late = [one for one, (_, _, end) in running.items() if monotonic() > end and one not in ready]
        for connection in [*ready, *late]:
            assert isinstance(connection, Connection)
            task, process, _ = running.pop(connection)
            try:
                result = connection.recv() if connection in ready else None
            except EOFError:  # it died
                result = None
            if connection in late:
                process.kill()
            process.join()
            connection.close()
            yield task, result


def _send(work: Callable[[Task], dict[str, Any]], task: Task, connection: Connection) -> None:
    connection.send(work(task))
    connection.close()
