"""``polyleaf report`` writes the bytes that ``report`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plant_table import FEATURES, plant_rows, write

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.cli.main import main

pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.cpu_only("files, words and exit codes; what a report says is tested elsewhere"),
    pytest.mark.other_threads("tables are read and written by threads of Arrow"),
]

ROWS = plant_rows()
TEST = plant_rows(80, seed=2)
SMALL: dict[str, Any] = {"n_estimators": 6, "min_samples_leaf": 5, "categorical_features": ["plant"]}
Errors = pytest.CaptureFixture[str]
MIXED = {"power": "regression", "grade": "multiclass", "safe": "binary"}
TARGETS: dict[str, Any] = {
    "number": "power",
    "numbers": ["power", "cost"],
    "classes": "grade",
    "codes": "code",
    "labels": ["fast", "late"],
    "mixed": list(MIXED),
}


def with_codes(table: pd.DataFrame) -> pd.DataFrame:
    """Add classes that are text, and look like numbers."""
    return table.assign(code=table["fast"].map({0: "01", 1: "02"}))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds."""
    folder = tmp_path_factory.mktemp("models")
    table = with_codes(ROWS)
    for name, target in TARGETS.items():
        if name == "mixed":
            model: Any = PolyleafMixed(MIXED, **SMALL)
        else:
            model = (PolyleafRegressor if "number" in name else PolyleafClassifier)(**SMALL)
        model.fit(table[FEATURES], table[target]).save_model(folder / name)
    unnamed = PolyleafRegressor(n_estimators=3)
    unnamed.fit(ROWS[["speed", "load"]].to_numpy(), ROWS["power"].to_numpy()).save_model(folder / "unnamed")
    return folder


@pytest.mark.parametrize("given", ["test.csv", "test.parquet"])
@pytest.mark.parametrize("name", list(TARGETS))
def test_reports_are_those_of_python(
    given: str, name: str, models: Path, tmp_path: Path, capsys: Errors
) -> None:
    """Targets are found by the names that the model knows."""
    test = with_codes(TEST)
    table, out = write(test[test.columns[::-1]], tmp_path / given), tmp_path / "report.html"
    options = ["--weight", "hours", "--title", "Plant", "--max-rows", "30", "--seed", "3"]
    assert main(["report", table, "--model", str(models / name), "--out", str(out), *options]) == 0
    assert capsys.readouterr().err.startswith(f"polyleaf: {out}: 80 rows, ")
    page = load_model(models / name).report(
        test[FEATURES],
        test[TARGETS[name]],
        sample_weight=test["hours"],
        title="Plant",
        max_rows=30,
        random_state=3,
    )
    assert out.read_text(encoding="utf-8") == page


def test_standard_output_and_other_names(models: Path, tmp_path: Path, capsys: Errors) -> None:
    table = write(TEST.rename(columns={"power": "watts"}), tmp_path / "test.csv")
    start = ["report", table, "--model", str(models / "number"), "--out", "-"]
    assert main([*start, "--target", "watts"]) == 0
    page = load_model(models / "number").report(TEST[FEATURES], TEST["power"])
    said = capsys.readouterr()
    assert said.out == page
    assert said.err == ""


def test_a_model_without_names(models: Path, tmp_path: Path, capsys: Errors) -> None:
    table = write(TEST[["speed", "load", "power"]], tmp_path / "test.csv")
    start = ["report", table, "--model", str(models / "unnamed"), "--out", "-"]
    assert main(start) == 2
    assert "--target is missing" in capsys.readouterr().err
    assert main([*start, "--target", "power"]) == 0


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--target", "wind,cost"], 1, "no column 'wind', named as target"),
        (["--target", "cost"], 2, "--target has 1 column(s), and"),
        (["--weight", "wind"], 1, "no column 'wind', named as weight"),
        (["--outputs", "wind"], 1, "there is no output 'wind'"),
        (["--max-rows", "0"], 2, "--max-rows must be int >= 1"),
        (["--seed", "-1"], 2, "--seed must be"),
        (["--out", "nowhere/report.html"], 1, "nowhere/report.html: there is no folder"),
    ],
)
def test_what_cannot_be_is_named(
    options: list[str], status: int, words: str, models: Path, tmp_path: Path, capsys: Errors
) -> None:
    table, out = write(TEST, tmp_path / "test.csv"), tmp_path / "report.html"
    assert main(["report", table, "--model", str(models / "numbers"), "--out", str(out), *options]) == status
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not out.exists()


def test_targets_that_are_no_numbers_are_named_with_the_file(
    models: Path, tmp_path: Path, capsys: Errors
) -> None:
    table = write(TEST.assign(cost="dear"), tmp_path / "test.csv")
    assert main(["report", table, "--model", str(models / "numbers"), "--out", "-"]) == 1
    said = capsys.readouterr().err
    assert table in said
    assert "'cost'" in said
    assert main(["report", table, "--model", str(models / "numbers"), "--out", table]) == 2
