"""Threads that cannot be started: the work is done on one, and the process lives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.cpu_only("starts threads of the CPU"),
    pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does"),
]

FIT = """
import resource
from pathlib import Path
import numpy as np
import polyleaf

X = np.random.default_rng(0).normal(size=(20_000, 50))
y = X[:, :3]
alone = polyleaf.PolyleafRegressor(n_estimators=2, n_jobs=1).fit(X, y)
pages = int(Path("/proc/self/statm").read_text().split()[0])
room = pages * resource.getpagesize() + {room} * 2**20
resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
many = polyleaf.PolyleafRegressor(n_estimators=2, n_jobs={n_jobs}).fit(X, y)
assert (many.predict(X) == alone.predict(X)).all()
print("done")
"""


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers take terabytes of addresses")
@pytest.mark.parametrize(("room", "n_jobs"), [(100, 200), (4000, 4)], ids=["no room", "room"])
def test_a_fit_where_memory_has_no_room_for_stacks(room: int, n_jobs: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIT.format(room=room, n_jobs=n_jobs)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr[-2000:]
