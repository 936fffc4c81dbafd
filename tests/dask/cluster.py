"""A small cluster of worker processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from distributed.utils import sync

from polyleaf.dask.comms import run_on_workers
from polyleaf.dask.messages import Deadlines

# Short, so that tests are; a beat is long enough for a busy machine.
QUICK = Deadlines(beat=0.25, silence=4.0, start=30.0)


class Cluster:
    """A scheduler in this process and workers in others, without nannies: a worker that dies stays dead.

    Attributes
    ----------
    client : distributed.Client
        Connected to it.
    """

    def __init__(self, n_workers: int) -> None:
        self._scheduler = LocalCluster(n_workers=0, protocol="tcp://", dashboard_address=":0")
        self.client = Client(self._scheduler)
        self._workers: list[subprocess.Popen[bytes]] = []
        if n_workers:
            self.grow_to(n_workers)

    def grow_to(self, n_workers: int) -> list[str]:
        """Have at least so many workers; return the addresses of that many."""
        for _ in range(n_workers - len(self.client.nthreads())):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", self._scheduler.scheduler_address]
            options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0"]
            path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
            worker = subprocess.Popen(
                [*command, *options], stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}
            )
            self._workers.append(worker)
        self.client.wait_for_workers(n_workers, timeout=60)
        return sorted(self.client.nthreads())[:n_workers]

    def pid(self, address: str) -> int:
        return int(self.client.run(os.getpid, workers=[address])[address])

    def left_behind(self, addresses: list[str]) -> dict[str, Any]:
        """What runs have left on workers: runs, tasks of the event loop, calls that wait for an answer."""
        found = run_on_workers(self.client, _left_behind, dict.fromkeys(addresses, ()), 10.0)
        return {address: what for address, what in found.items() if what}

    def lose_scheduler(self) -> None:
        """Close the scheduler alone."""
        scheduler = self._scheduler.scheduler
        sync(scheduler.loop, scheduler.close)

    def close(self) -> None:
        self.client.close()
        for worker in self._workers:
            worker.kill()  # also one that is stopped
            worker.wait()
        self._scheduler.close()


async def _left_behind(dask_worker: Any) -> list[str]:
    plugin = dask_worker.plugins.get("polyleaf-messages")
    runs = list(plugin.desk.visits) if plugin is not None else []
    tasks = [str(one) for one in asyncio.all_tasks() if "polyleaf/dask/post" in str(one)]
    return runs + tasks
