"""``pytest --device cuda`` says at its end what it skipped; of errors, it skips only the table's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from polyleaf.params.combinations import COMBINATIONS
from skip_report import cpu_only_reason, refused_reason, skip_report

pytestmark = [
    pytest.mark.cpu_only("of the test run itself"),
    pytest.mark.python_only("of the test run itself"),
]

TESTS = Path(__file__).parents[1]
ROWS = {row.name: row for row in COMBINATIONS if row.devices == ("cuda",)}

# A GPU, as far as anyone asks before training begins.
CUPY = """
class cuda:
    class runtime:
        @staticmethod
        def getDeviceCount():
            return 1
"""
SUITE = """
import numpy as np
import pytest
from polyleaf import PolyleafRegressor

X = np.arange(60.0).reshape(-1, 1)
Y = np.hstack([X, -X])

@pytest.mark.parametrize("k", [1, 2])
def test_refused_of_a_gpu(k):
    PolyleafRegressor(sparse_leaves=k).fit(X, Y)

def test_refused_where_another_error_is_expected():
    with pytest.raises(ValueError, match="something else"):
        PolyleafRegressor(max_bins=None).fit(X, Y)

def test_refused_on_any_device():
    PolyleafRegressor(sparse_leaves=1, multi_strategy="one_output_per_tree").fit(X, Y)

def test_an_error_of_another_kind():
    PolyleafRegressor().fit(X, Y[:-1])

@pytest.mark.cpu_only("files only")
def test_of_files():
    raise AssertionError

def test_left_out():
    pytest.skip("no time")
"""


@pytest.mark.parametrize("n_workers", [0, 2])
def test_what_is_skipped_is_counted_and_other_errors_fail(tmp_path: Path, n_workers: int) -> None:
    workers = []
    if n_workers > 0:
        pytest.importorskip("xdist")
        workers = ["-n", str(n_workers)]
    for name in ("conftest.py", "skip_report.py"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "cupy.py").write_text(CUPY)
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "markers=cpu_only"]
    done = subprocess.run(
        [*command, "--device", "cuda", *workers, "--rootdir", str(tmp_path), str(suite)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = done.stdout
    assert done.returncode == 1, said + done.stderr
    assert "2 failed, 5 skipped" in said
    assert re.search("FAILED .*test_refused_on_any_device", said)
    assert re.search("FAILED .*test_an_error_of_another_kind", said)
    assert "3 refused by the GPU, by rows of the table of combinations:\n" in said
    counts = re.findall(r"^ +(\d+)  (.+)$", said, flags=re.MULTILINE)
    assert {name: int(number) for number, name in counts} == {
        **dict.fromkeys(ROWS, 0),
        "cuda, sparse leaves": 2,
        "cuda, many bins": 1,
        "files only": 1,
        "no time": 1,
    }


def test_the_report() -> None:
    def report(reason: str) -> SimpleNamespace:
        return SimpleNamespace(longrepr=("file.py", 3, f"Skipped: {reason}"))

    row = ROWS["cuda, categories"]
    lines = skip_report(
        [
            report(refused_reason(row, "device='cuda' (that is) does not go with (some) things.")),
            report(cpu_only_reason("files: only")),
            report("no pandas"),
            report(cpu_only_reason("files: only")),
        ]
    )
    assert [line for line in lines if not line.startswith("     0  ")] == [
        "1 refused by the GPU, by rows of the table of combinations:",
        "     1  cuda, categories",
        "2 marked cpu_only:",
        "     2  files: only",
        "1 skipped for other reasons:",
        "     1  no pandas",
    ]
    assert len(lines) == len(ROWS) + 5
