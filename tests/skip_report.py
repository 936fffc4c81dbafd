"""What ``pytest --device cuda`` leaves out, counted: by rows of the table of combinations, and by reasons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from polyleaf.params.combinations import COMBINATIONS, Exclusion

_REFUSED = "refused by the GPU"
_CPU_ONLY = "cpu_only"


def refused_reason(row: Exclusion, words: str) -> str:
    """Return why a test is skipped that comes to what a row of the table refuses."""
    return f"{_REFUSED} ({row.name}): {words}"


def cpu_only_reason(words: str) -> str:
    """Return why a test is skipped that is marked `cpu_only`."""
    return f"{_CPU_ONLY}: {words}"


def skip_report(reports: Iterable[Any]) -> list[str]:
    """Return lines for the end of a run: all rows that only a GPU refuses, then the other reasons.

    Parameters
    ----------
    reports : iterable of pytest reports
        Of the tests that were skipped; their `longrepr` is (file, line, "Skipped: reason").
    """
    rows = {row.name: 0 for row in COMBINATIONS if row.devices == ("cuda",)}
    cpu_only: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for report in reports:
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if found := re.match(rf"{_REFUSED} \((.+?)\): ", reason):
            rows[found[1]] += 1
        elif reason.startswith(f"{_CPU_ONLY}: "):
            cpu_only[reason.removeprefix(f"{_CPU_ONLY}: ")] += 1
        else:
            others[reason] += 1
    lines = []
    for title, counts in (
        ("refused by the GPU, by rows of the table of combinations", rows),
        ("marked cpu_only", dict(cpu_only.most_common())),
        ("skipped for other reasons", dict(others.most_common())),
    ):
        lines.append(f"{sum(counts.values())} {title}:")
        lines.extend(f"{number:6d}  {name}" for name, number in counts.items())
    return lines
