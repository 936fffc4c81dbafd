"""The demo and the command line do what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyleaf import load_model
from polyleaf.cli import demo
from polyleaf.cli.main import main

pytestmark = pytest.mark.cpu_only("the tour runs on the CPU")


def test_demo_compares_strategies_and_takes_a_model_through_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "digits.polyleaf"
    assert main(["demo", "--model", str(path)]) == 0
    out = capsys.readouterr().out
    table = [
        line.split("  ")
        for line in out.splitlines()
        if "joint trees  " in line or "one tree per output  " in line
    ]
    assert len(table) == 2 * len(demo.PROBLEMS)
    assert "equal bit for bit: True" in out
    assert load_model(path).n_features_in_ == 64


def test_friedman1_is_the_papers_problem() -> None:
    """Five observations of one function of five of the ten inputs, with noise of deviation 0.1."""
    x, y = demo.friedman1(20_000, seed=3)
    assert x.shape == (20_000, 10)
    assert y.shape == (20_000, 5)
    assert abs((y - y.mean(axis=1, keepdims=True)).std() - 0.1 * (4 / 5) ** 0.5) < 0.002


def test_unwritable_model_path_is_an_error_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--model", str(tmp_path / "no" / "such" / "folder" / "m")]) == 1
    assert "no" in capsys.readouterr().err


def test_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["train-everything"])
