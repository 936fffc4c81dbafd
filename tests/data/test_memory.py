"""Panels stay within their bytes, and what a machine has is read from where it says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyleaf.data import memory
from polyleaf.data.memory import Savings, least_savings, needs, panel_width, search_bytes

pytestmark = pytest.mark.python_only("arithmetic, and files of text")


@given(
    n_rows=st.integers(1, 10**9),
    cell_bytes=st.sampled_from([1, 4, 8]),
    panel_bytes=st.integers(0, 1 << 40),
    n_threads=st.integers(1, 64),
    weighted=st.booleans(),
)
def test_panels_stay_within_their_bytes(
    n_rows: int, cell_bytes: int, panel_bytes: int, n_threads: int, weighted: bool
) -> None:
    """Unless a single column takes more."""
    width, threads = panel_width(n_rows, cell_bytes, panel_bytes, n_threads, weighted=weighted)
    assert width >= 1
    assert 1 <= threads <= n_threads
    assert width % threads == 0
    units = 8 if weighted else 0
    taken = units + threads * search_bytes(width // threads, cell_bytes, weighted=weighted)
    least = units + search_bytes(1, cell_bytes, weighted=weighted)
    assert n_rows * taken <= max(panel_bytes, memory.LEAST_PANEL_BYTES, n_rows * least)
    if width // threads * cell_bytes < 1 << 30:  # and use them: one column more for each thread is too much
        more = units + threads * search_bytes(width // threads + 1, cell_bytes, weighted=weighted)
        assert n_rows * (more + 1) > max(panel_bytes, memory.LEAST_PANEL_BYTES)


def test_the_search_takes_what_is_said() -> None:
    """Beside the columns, 32 bytes a row and thread of float32 and 40 of float64; 16 more with weights."""
    for cell_bytes, own in ((4, 32), (8, 40)):
        for weighted, more in ((False, 0), (True, 16)):
            taken = search_bytes(10, cell_bytes, weighted=weighted)
            assert taken == 10 * cell_bytes + own + more


def test_what_training_takes() -> None:
    """20 million rows of 50 features and 5 targets: what how-it-works.md says of each cell, added up."""
    n, m, d = 20_000_000, 50, 5
    wanted = needs(n, m, d)
    rounds = n * (d * (8 + 4 + 4) + 8)
    assert sum(wanted.rounds.values()) == rounds
    assert wanted.peak == n * (m + d * 8) + rounds
    assert wanted.listed().startswith("codes of the features 0.9 GiB, targets 0.7 GiB")
    assert needs(n, m, d, max_bins=None).peak - wanted.peak == n * m
    assert needs(n, m, d, own_hessian=True).peak - wanted.peak == n * d * 8
    assert needs(n, m, d, weighted=True).peak - wanted.peak == n * 8
    assert needs(n, m, 0, n_targets=0).peak == n * (m + 32)


def test_what_sketches_and_savings_leave() -> None:
    n, m, d, k = 1_000_000, 50, 300, 5
    whole = n * (m + d * 8 + 8)  # codes, targets, the order of the rows
    for own_hessian, channels in ((False, 1), (True, 2)):
        sketched = n * 2 * k * channels * 4  # as they are, and rounded
        for savings, rest in (
            (Savings(), d * 8 + d * channels * 4),
            (Savings(made_gradients=True), d * 8),
            (Savings(mapped_scores=True), d * channels * 4),
            (Savings(True, True), 0),
        ):
            wanted = needs(n, m, d, n_mixtures=k, own_hessian=own_hessian, savings=savings)
            assert sum(wanted.rounds.values()) == sketched + n * (rest + 8)
            # Before there are codes, a few targets are copied.
            assert wanted.peak == whole - n * 8 + max(sketched + n * (rest + 8), n * (16 * 16 - m))
    # Weights of cells are kept, and there are gradients and Hessians without them and with them.
    assert needs(n, m, d, n_mixtures=k, own_hessian=True, cell_weights=True).peak == (
        whole + n * 2 * k * 2 * 4 + n * d * (8 + 4 * 4 + 4)
    )


@given(
    possible=st.builds(Savings, st.booleans(), st.booleans()),
    scores=st.integers(1, 100),
    gradients=st.integers(1, 100),
    free=st.none() | st.integers(0, 250),
)
def test_no_more_is_saved_than_must_be(
    possible: Savings, scores: int, gradients: int, free: int | None
) -> None:
    """Gradients before scores, and both where nothing less is enough, or nothing at all."""

    def taken(savings: Savings) -> int:
        return 9 + scores * (not savings.mapped_scores) + gradients * (not savings.made_gradients)

    found = least_savings(possible, taken, free)
    assert found.made_gradients <= possible.made_gradients
    assert found.mapped_scores <= possible.mapped_scores
    if free is None or taken(Savings()) <= free:
        assert found == Savings()
    elif taken(found) > free:
        assert found == possible
    elif found.mapped_scores:
        assert not possible.made_gradients or taken(Savings(made_gradients=True)) > free
        assert not found.made_gradients or taken(Savings(mapped_scores=True)) > free


def group(folder: Path, limit: str, used: int, cache: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(
        f"anon 5\ninactive_file {cache}\nactive_file 1\nfile_thp more than two\n"
    )


def test_groups_of_processes(tmp_path: Path) -> None:
    """The tightest limit on the way up counts; what files are cached is free."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/user/job\n")
    assert memory._of_group(str(root), str(own)) is None
    group(root / "user" / "job", "max", 10, 0)
    assert memory._of_group(str(root), str(own)) is None
    group(root / "user", "1000", 900, 49)
    assert memory._of_group(str(root), str(own)) == 150
    group(root / "user" / "job", "100", 900, 0)
    assert memory._of_group(str(root), str(own)) == 0


def test_groups_of_the_first_version(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("5:cpu,cpuacct:/a\n4:memory:/job\n")
    folder = tmp_path / "memory" / "job"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("1000")
    (folder / "memory.usage_in_bytes").write_text("600")
    assert memory._of_group(str(tmp_path), str(own)) == 400


def test_a_share_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is free as much as the neighbours have, and no more than the limit leaves."""
    monkeypatch.setattr(memory, "_of_machine", lambda: 900)
    monkeypatch.setattr(memory, "_of_group", lambda: 1000)
    monkeypatch.setattr(memory, "_used", lambda: 50)
    for share, free in (
        (memory.MemoryShare(3), 300),
        (memory.MemoryShare(3, 250), 200),
        (memory.MemoryShare(1, 10**9), 900),
        (memory.MemoryShare(1, 40), 0),
    ):
        with memory.within(share):
            assert memory.available() == free
        assert memory.available() == 900
    monkeypatch.undo()
    assert memory._used() == 0 or memory._used() > 1 << 20


def test_this_machine() -> None:
    found = memory.available()
    assert found is None or 0 < found < 1 << 60
    assert isinstance(memory._of_group("/nowhere", "/nowhere"), type(None))
    assert np.isfinite(needs(1, 1, 1).peak)
