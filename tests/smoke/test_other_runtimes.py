"""polyleaf shares a process with packages that bring an OpenMP of their own, whichever is imported first.

Each case is a process of its own: who comes first decides which library is loaded, and a clash ends the
process or hangs it. Both work on several threads, in turn and at the same time, and in a forked child.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.cpu_only("OpenMP is of the CPU"),
    pytest.mark.other_threads("runs other compiled code with threads"),
]

# What uses the threads of each package, and gives a number that can be compared.
OTHERS = {
    "sklearn": """
        from sklearn.ensemble import HistGradientBoostingRegressor

        def other():
            model = HistGradientBoostingRegressor(max_iter=5, early_stopping=False)
            return model.fit(X, Y[:, 0]).predict(X)[:9]
    """,
    "lightgbm": """
        import lightgbm

        def other():
            model = lightgbm.LGBMRegressor(n_estimators=5, n_jobs=2, deterministic=True, verbose=-1)
            return model.fit(X, Y[:, 0]).predict(X)[:9]
    """,
    "torch": """
        import torch

        torch.set_num_threads(2)

        def other():
            rows = torch.from_numpy(X).float()
            return torch.relu(rows @ rows[:64].T).sum(dim=1)[:9].numpy()
    """,
}
OWN = """
    from polyleaf import PolyleafRegressor

    def own():
        return PolyleafRegressor(n_estimators=10, n_jobs=2).fit(X, Y).predict(X)
"""
BOTH = """
    import os, threading

    first, others = own(), other()
    for _ in range(3):
        assert np.array_equal(own(), first) and np.allclose(other(), others)

    found = []
    beside = [threading.Thread(target=lambda: found.append(np.allclose(other(), others))) for _ in range(2)]
    for thread in beside:
        thread.start()
    assert np.array_equal(own(), first)
    for thread in beside:
        thread.join()
    assert found == [True, True]

    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(own(), first) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(own(), first)
    print("done")
"""
DATA = """
    import numpy as np

    i = np.arange(40_000)
    X = np.column_stack([i * k % 1009 for k in (7, 13, 29, 31, 37, 41, 43, 47)]) / 8
    Y = np.column_stack([X[:, 0] * X[:, 2], X[:, 1] - X[:, 3]])
"""


@pytest.mark.parametrize("first", ["polyleaf", "other"])
@pytest.mark.parametrize("package", OTHERS)
def test_both_use_threads_in_one_process(package: str, first: str) -> None:
    pytest.importorskip(package)
    parts = [OWN, OTHERS[package]] if first == "polyleaf" else [OTHERS[package], OWN]
    program = "\n".join(textwrap.dedent(part) for part in (parts[0], DATA, parts[1], BOTH))
    surroundings = {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        env=surroundings,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done\n")
