"""Forged models of other libraries: refused with a ValueError, or a model that works."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_imports import FILES, forged, fuzz, outcome_of

pytestmark = pytest.mark.cpu_only("reads files")


def test_forged_models_are_refused_or_work(tmp_path: Path) -> None:
    counts = fuzz(0, tmp_path, seconds=600, executions=400)
    assert counts["findings"] == 0, [path.read_text() for path in tmp_path.glob("*.txt")]
    assert counts["refused"] > 100
    assert counts["works"] > 20


def test_files_as_they_are_work(tmp_path: Path) -> None:
    refused = {"dropout", "linear", "known"}
    for path in sorted(FILES.iterdir()):
        if path.stem not in refused:
            assert outcome_of(path.read_bytes(), 0, tmp_path) == "works", path.name


def test_a_number_makes_the_same_file_again() -> None:
    assert forged(1, 2) == forged(1, 2) != forged(1, 3)
