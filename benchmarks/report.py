"""What the reports of all benchmarks begin with: when, where and with what they were made."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path


def describe_run(packages: Iterable[str]) -> list[str]:
    """Return the lines on date, machine and versions. To be called before the work: it notes the load."""
    versions = [f"Python {platform.python_version()}"]
    for package in dict.fromkeys(("numpy", "polyleaf", *packages)):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    machine = f"{_cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return [
        f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- Machine: {machine}; load {os.getloadavg()[0]:.2f} at the start",
        f"- Versions: {', '.join(versions)}",
    ]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown CPU")
