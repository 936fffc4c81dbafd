"""Where memory is scarce, gradients are made twice and scores lie in a file: the model is the same."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor
from polyleaf.data import mapped_array, memory
from polyleaf.data.memory import NOTHING_SAVED, Savings
from polyleaf.growth.score_pass import CpuScorePass
from polyleaf.training import device
from polyleaf.training.run_memory import needs_of

pytestmark = pytest.mark.cpu_only("gradients and scores of a GPU are on the GPU")

N, D = 700, 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 5))
TARGETS = X[:, :1] * np.arange(D) + X[:, 1:2] ** 2 + RNG.normal(size=(N, D))
CLASSES = np.digitize(X[:, 0] * 3 + X[:, 1], np.linspace(-5, 5, D - 1))
LABELS = (TARGETS > 5).astype(int)
GAPS = np.where(RNG.random(TARGETS.shape) < 0.1, np.nan, TARGETS)
WEIGHT = RNG.random(N)
WIDE = 10.0 ** RNG.integers(-12, 3, N)
SMALL = {"n_estimators": 3, "max_leaves": 8, "min_samples_leaf": 5, "n_jobs": 2}
MIXED = {**SMALL, "sketch": "random_projection", "sketch_size": 5}
BOTH, GRADIENTS, SCORES = Savings(True, True), Savings(True, False), Savings(False, True)
# What is trained, and what it can do without.
CASES: dict[str, tuple[Any, Any, Any, Savings]] = {
    "classes": (PolyleafClassifier(**MIXED), CLASSES, None, BOTH),
    "classes, diagonal": (PolyleafClassifier(**MIXED, hessian="diagonal"), CLASSES, None, BOTH),
    "classes, weights": (PolyleafClassifier(**MIXED), CLASSES, WEIGHT, BOTH),
    "labels": (PolyleafClassifier(**MIXED), LABELS, None, BOTH),
    "targets": (PolyleafRegressor(**MIXED), TARGETS, None, BOTH),
    "targets, weights": (PolyleafRegressor(**MIXED), TARGETS, WEIGHT, BOTH),
    "targets, weights far apart": (PolyleafRegressor(**MIXED), TARGETS, WIDE, BOTH),
    "huge and tiny targets": (
        PolyleafRegressor(**MIXED),
        TARGETS * 1e100 ** (np.arange(D) % 3 - 1),
        None,
        BOTH,
    ),
    "missing targets": (PolyleafRegressor(**MIXED), GAPS, WEIGHT, BOTH),
    "missing labels": (
        PolyleafClassifier(**MIXED, hessian="shared"),
        np.where(np.isnan(GAPS), np.nan, LABELS),
        None,
        BOTH,
    ),
    "huber": (PolyleafRegressor(**MIXED, objective="huber"), TARGETS, None, BOTH),
    "sampled": (PolyleafRegressor(**MIXED, subsample=0.6), TARGETS, None, BOTH),
    "medians": (PolyleafRegressor(**MIXED, objective="absolute_error"), TARGETS, None, GRADIENTS),
    "gradient-based": (
        PolyleafRegressor(**MIXED, subsample=0.6, sampling_method="gradient_based"),
        TARGETS,
        None,
        SCORES,
    ),
    "exact leaves": (PolyleafClassifier(**MIXED, hessian="exact_leaf"), CLASSES % 12, None, SCORES),
    "top outputs": (PolyleafRegressor(**{**MIXED, "sketch": "top_outputs"}), TARGETS, None, SCORES),
    "all outputs": (PolyleafClassifier(**SMALL, sketch=None), CLASSES, None, SCORES),
    "callable": (
        PolyleafRegressor(**MIXED, objective=lambda y, raw: (raw - y, np.ones_like(raw))),
        TARGETS,
        None,
        SCORES,
    ),
    "sparse leaves": (PolyleafRegressor(**SMALL, sparse_leaves=4), TARGETS, None, NOTHING_SAVED),
    "an output a tree": (
        PolyleafRegressor(**SMALL, multi_strategy="one_output_per_tree"),
        TARGETS[:, :4],
        None,
        NOTHING_SAVED,
    ),
}


class Seen:
    """What the score passes of trainings did without, and what their rounds would take of memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.savings = NOTHING_SAVED
        self.bytes_with: dict[Savings, int] = {}

        class Watched(CpuScorePass):
            def __init__(own, formula: Any, scores: Any, plan: Any, n_threads: int) -> None:
                self.savings = Savings(not plan.stores_gradients, isinstance(scores, np.memmap))
                super().__init__(formula, scores, plan, n_threads)

        def watched_needs(data: Any, loss: Any, settings: Any, savings: Savings) -> Any:
            found = needs_of(data, loss, settings, savings)
            self.bytes_with[savings] = sum(found.rounds.values())
            return found

        monkeypatch.setattr(device, "CpuScorePass", Watched)
        monkeypatch.setattr(device, "needs_of", watched_needs)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def file_of(model: Any, *data: Any, free: int | None, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The bytes of the model, trained where so many are free."""
    monkeypatch.setattr(memory, "available", lambda: free)
    model.fit(*data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save_model(path)
        return path.read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_the_same_file(name: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what can be done without is."""
    model, y, weight, possible = CASES[name]
    plain = file_of(model, X, y, weight, free=None, monkeypatch=monkeypatch)
    assert seen.savings == NOTHING_SAVED
    assert file_of(model, X, y, weight, free=0, monkeypatch=monkeypatch) == plain
    assert seen.savings == possible


@pytest.mark.parametrize("way", ["array", "batches", "binned"])
def test_no_more_than_must_be(way: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """On both sides of each threshold: gradients are made first, then scores are mapped."""
    model = PolyleafClassifier(**MIXED)
    data: tuple[Any, ...] = (X, CLASSES)
    if way == "batches":
        data = ([(X[:300], CLASSES[:300]), (X[300:], CLASSES[300:])],)
        monkeypatch.setattr("polyleaf.estimators.problem.refuse_too_large", lambda *_: None)
    elif way == "binned":
        data = (BinnedTable.make(X, CLASSES),)
    plain = file_of(model, *data, free=0, monkeypatch=monkeypatch)  # asks for all of them
    assert list(seen.bytes_with) == [NOTHING_SAVED, GRADIENTS, SCORES, BOTH]
    wanted = seen.bytes_with.copy()
    assert wanted[NOTHING_SAVED] - wanted[GRADIENTS] == N * D * 4
    assert wanted[NOTHING_SAVED] - wanted[SCORES] == N * D * 8
    for savings, less in zip(wanted, [*list(wanted)[1:], BOTH], strict=True):
        for free, expected in ((wanted[savings], savings), (wanted[savings] - 1, less)):
            assert file_of(model, *data, free=free, monkeypatch=monkeypatch) == plain
            assert seen.savings == expected


@pytest.mark.parametrize("scale", [1.0, 1e100])
def test_going_on_from_a_model(scale: float, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of its trees are written to the file."""
    y = TARGETS * scale
    first = PolyleafRegressor(**MIXED).fit(X, y)
    files = []
    for free in (None, 0):
        monkeypatch.setattr(memory, "available", lambda free=free: free)
        model = PolyleafRegressor(**MIXED).fit(X, y, init_model=first)
        files.append({name: one.tobytes() for name, one in model._forest.to_arrays().items()})
    assert seen.savings == BOTH
    assert files[0] == files[1]


class Ending:
    """A callback that looks at the temporary files after each round, and may end the training."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.maps: list[int] = []
        self.files: list[str] = []

    def after_round(self, state: Any) -> None:
        self.maps.append(mapped_files(tempfile.gettempdir()))
        self.files += os.listdir(tempfile.gettempdir())
        if self.error is not None:
            raise self.error


def mapped_files(folder: str | Path) -> int:
    """How many files of a folder this process has in its memory."""
    return Path("/proc/self/maps").read_text().count(str(folder))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
@pytest.mark.parametrize("error", [None, RuntimeError("enough"), KeyboardInterrupt()], ids=repr)
def test_no_file_is_left(
    error: BaseException | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no name from the start, and goes with the training however that ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("polyleaf.training.run_memory.can_map", lambda: True)
    monkeypatch.setattr(memory, "available", lambda: 0)
    ending = Ending(error)
    model = PolyleafClassifier(**MIXED, callbacks=[ending])
    if error is None:
        model.fit(X, CLASSES)
    else:
        with pytest.raises(type(error)):
            model.fit(X, CLASSES)
    assert ending.maps == [1] * (3 if error is None else 1)
    assert ending.files == []
    if error is not None:
        error.__traceback__ = None
    ending.error = None
    gc.collect()
    assert mapped_files(tmp_path) == 0
    assert os.listdir(tmp_path) == []


def test_neither_memory_nor_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory, "available", lambda: 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    model = PolyleafClassifier(**MIXED)
    with pytest.raises(
        MemoryError, match=r"scores of 218\.8 KiB fit neither into memory nor into a file in '"
    ):
        model.fit(X, CLASSES)
    assert not hasattr(model, "classes_")


def test_temporary_files_that_are_memory_save_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    folder = tmp_path / "with space"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert mapped_array.can_map(str(tmp_path / "nowhere"))
    mounts.write_text("/dev/a / ext4 rw 0 0\n")
    assert mapped_array.can_map(str(mounts))
    escaped = str(folder.resolve()).replace(" ", "\\040")
    mounts.write_text(f"/dev/a / ext4 rw 0 0\ntmpfs {escaped} tmpfs rw 0 0\n")
    assert not mapped_array.can_map(str(mounts))
    mounts.write_text(f"tmpfs / tmpfs rw 0 0\n/dev/a {escaped} ext4 rw 0 0\n")
    assert mapped_array.can_map(str(mounts))


MEASURED = """
import numpy as np
from polyleaf import PolyleafClassifier
from polyleaf.data import memory
from polyleaf.data.memory import Savings
from polyleaf.training import device

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

class Most:
    bytes = 0
    def after_round(self, state):
        self.bytes = max(self.bytes, anonymous())

n, d = 40_000, 160
X = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
y = np.arange(n) % d
PolyleafClassifier(n_estimators=1, max_leaves=4, n_jobs=1).fit(X[:500], y[:500])
memory.available = lambda: 0
for made in (False, True):
    for mapped in (False, True):
        device.possible_savings = lambda *_: Savings(made, mapped)
        most, before = Most(), anonymous()
        PolyleafClassifier(n_estimators=2, max_leaves=4, n_jobs=1, callbacks=[most]).fit(X, y)
        print((most.bytes - before) / (n * d))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.python_only("what sanitizers take of memory is not to be measured")
def test_bytes_a_cell() -> None:
    """Of rows x outputs, with a sketch: 8 of scores and 4 of gradients, either, or next to nothing."""
    run = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    taken = [float(line) for line in run.stdout.split()]
    assert taken == pytest.approx([12, 4, 8, 0], abs=1.5)
