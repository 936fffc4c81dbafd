"""Measure one system on one work in this process and write the figures as JSON; `speed.py` starts it.

    python benchmarks/measure.py WORK SYSTEM FOLDER RESULT --rounds 10 --threads 2

FOLDER holds the rows as `works.Split.save` wrote them; making them here would show in the peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from systems import SYSTEMS
from works import WORKS

WARM_UP = 2
PREDICT_REPEATS = 3


@dataclass(frozen=True)
class Measurement:
    """What one process saw. Memory in MiB (resident)."""

    round_seconds: float
    setup_seconds: float
    predict_ms: float  # all test rows, per round of the model
    peak: float  # of the whole process
    peak_above_data: float  # over the level with rows loaded and library imported
    test_loss: float
    others: float  # cores that other processes kept busy meanwhile; NaN where the system does not say


def measure(work_name: str, system_name: str, folder: Path, rounds: int, threads: int) -> Measurement:
    work = WORKS[work_name]
    X, y = np.load(folder / "X_train.npy"), np.load(folder / "y_train.npy")
    system = SYSTEMS[system_name](work, threads)
    before = resident()
    watch = Watch()
    time = system.train(X, y, WARM_UP, rounds)
    X_test, y_test = np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy")
    predict_seconds = []
    for _ in range(PREDICT_REPEATS):
        start = perf_counter()
        prediction = system.predict(X_test)
        predict_seconds.append(perf_counter() - start)
    peak = peak_resident()
    return Measurement(
        round_seconds=time.per_round,
        setup_seconds=time.setup,
        predict_ms=1000 * median(predict_seconds) / (WARM_UP + rounds),
        peak=peak,
        peak_above_data=peak - before,
        test_loss=work.test_loss(y_test, prediction),
        others=watch.others(),
    )


class Watch:
    """How busy other processes keep the machine from now on.

    Worth knowing: threads that spin while they wait for each other can become many times slower when a single
    other process takes a core.
    """

    def __init__(self) -> None:
        self.start = perf_counter(), self._busy(), self._own()

    def others(self) -> float:
        wall, busy, own = self.start
        return (self._busy() - busy - (self._own() - own)) / (perf_counter() - wall)

    @staticmethod
    def _busy() -> float:
        """Seconds all cores were busy since the machine started, stolen by a hypervisor included."""
        try:
            first_line = Path("/proc/stat").read_text().split("\n", 1)[0]
        except OSError:
            return float("nan")
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, first_line.split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own() -> float:
        times = os.times()
        return times.user + times.system


def resident() -> float:
    """Resident memory now; where the system does not say, its peak so far."""
    return _status("VmRSS") or peak_resident()


def peak_resident() -> float:
    """Highest resident memory of this process.

    VmHWM where there is one: getrusage also remembers the process that started this one.
    """
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _status(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**10 for line in lines if line.startswith(f"{field}:")), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    measurement = measure(
        arguments.work, arguments.system, arguments.folder, arguments.rounds, arguments.threads
    )
    arguments.result.write_text(json.dumps(asdict(measurement)))


if __name__ == "__main__":
    main()
