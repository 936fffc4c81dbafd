"""The benchmark of a service runs: the app of the page, in processes of its own, asked over 127.0.0.1."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.cpu_only("a service on the CPU"),
    pytest.mark.other_threads("servers and other libraries"),
]

ROOT = Path(__file__).parents[2]


def test_a_few_requests_of_each_system(tmp_path):
    for package in ("fastapi", "uvicorn", "lightgbm"):
        pytest.importorskip(package)
    report = tmp_path / "report.md"
    words = ["--works", "targets", "--requests", "5", "--repeats", "2", "--out", str(report)]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "service.py", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in report.read_text().splitlines() if line.startswith("| ")]
    assert [row[0].strip("| ") for row in rows[2:]] == ["polyleaf", "LightGBM", "no model"]
    assert all(float(row[1].replace(",", "")) > 0 for row in rows[2:])
