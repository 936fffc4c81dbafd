"""An installed wheel does what it should. Run from anywhere, without the sources: see docs/installing.md.

Nothing here needs more than polyleaf and pytest. What other packages bring is tested beside the sources.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyleaf
from polyleaf import PolyleafClassifier, PolyleafRegressor, _core, load_model

pytestmark = pytest.mark.cpu_only("what a wheel brings along")
of_a_wheel = pytest.mark.skipif("POLYLEAF_WHEEL" not in os.environ, reason="POLYLEAF_WHEEL=1 is for wheels")

# Of the predictions of `_regressor`: the same on every processor, system and compiler.
PREDICTIONS = "d092d1d7f9c3628a209fce0b3221971b496a39770cbdfd2f58ba00e3b89185b6"


def _table() -> tuple[Any, Any]:
    """Return X and y that no random generator and no mathematical library has a part in."""
    i = np.arange(3000)
    X = np.column_stack([i * 7 % 101, i * 13 % 257, i * 29 % 64, i % 5]) / 4
    X[i % 17 == 0, 1] = np.nan
    Y = np.column_stack([X[:, 0] * X[:, 2], np.where(X[:, 3] > 0.5, X[:, 2], -X[:, 0])])
    return X, Y


def _regressor(n_jobs: int = 2) -> PolyleafRegressor:
    X, Y = _table()
    model = PolyleafRegressor(n_estimators=30, learning_rate=0.25, min_samples_leaf=5, n_jobs=n_jobs)
    return model.fit(X, Y)


def _digest(predictions: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(predictions, "<f8").tobytes()).hexdigest()


def _run(*command: str | Path) -> str:
    surroundings = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        encoding="utf-8",
        env=surroundings,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_that_of_the_distribution() -> None:
    assert polyleaf.__version__ == version("polyleaf")


@of_a_wheel
def test_what_is_imported_lies_where_wheels_are_installed() -> None:
    place = Path(sysconfig.get_path("platlib")).resolve()
    assert Path(polyleaf.__file__).resolve().is_relative_to(place)
    assert Path(str(_core.__file__)).resolve().is_relative_to(place)


@of_a_wheel
def test_wheels_have_openmp() -> None:
    """A build without it is allowed, and runs on one thread; a wheel is not to be one."""
    said = _run(sys.executable, "-c", "from polyleaf import _core; print(_core.max_threads())")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = os.environ.get("OMP_NUM_THREADS", str(cores))
    assert said.strip() == wanted


def test_predictions_have_the_same_bits_everywhere() -> None:
    X, Y = _table()
    model = _regressor()
    assert model.score(X, Y) > 0.99
    assert _digest(model.predict(X)) == PREDICTIONS


@pytest.mark.parametrize("kernels", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_gives_these_bits(kernels: str) -> None:
    X, _ = _table()
    usual = _core.kernels()
    if not _core.select_kernels(kernels):
        pytest.skip(f"there are no kernels for {kernels} here")
    try:
        assert _digest(_regressor().predict(X)) == PREDICTIONS
    finally:
        assert _core.select_kernels(usual)


def test_the_file_is_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    X, _ = _table()
    for n_jobs in (1, 3):
        # Written under the settings of one model: `n_jobs` is among what a file keeps.
        _regressor(n_jobs).set_params(n_jobs=1).save_model(tmp_path / f"{n_jobs}.polyleaf")
    assert (tmp_path / "1.polyleaf").read_bytes() == (tmp_path / "3.polyleaf").read_bytes()
    assert _digest(load_model(tmp_path / "3.polyleaf").predict(X)) == PREDICTIONS


def test_classes_labels_and_the_other_estimators() -> None:
    X, Y = _table()
    classes = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))]
    model = PolyleafClassifier(n_estimators=20).fit(X, classes)
    assert model.score(X, classes) > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    labels = (np.median(Y, axis=0) < Y).astype(int)
    assert PolyleafClassifier(n_estimators=20).fit(X, labels).score(X, labels) > 0.9
    values = model.shap_values(X[:20])
    assert np.allclose(values.sum(axis=1) + model.expected_value_, model.decision_function(X[:20]))


def test_the_files_of_the_package_are_there(tmp_path: Path) -> None:
    """The report's page and scripts, the headers for a GPU, the note that there are types."""
    X, Y = _table()
    _regressor().report(X[:200], Y[:200], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 50_000
    place = Path(polyleaf.__file__).parent
    assert (place / "py.typed").is_file()
    assert (place / "_core.pyi").is_file()
    assert list(place.glob("rules/*.hpp"))
    assert list(place.glob("gpu/cuda/*.cuh"))


def test_the_command_line(tmp_path: Path) -> None:
    _regressor().save_model(tmp_path / "model.polyleaf")
    assert "squared_error" in _run(sys.executable, "-m", "polyleaf", "info", tmp_path / "model.polyleaf")


@of_a_wheel
def test_the_script_is_installed() -> None:
    script = Path(sysconfig.get_path("scripts")) / ("polyleaf.exe" if os.name == "nt" else "polyleaf")
    assert version("polyleaf") in _run(script, "--version")


def test_the_demo() -> None:
    assert "equal bit for bit: True" in _run(sys.executable, "-m", "polyleaf", "demo")
