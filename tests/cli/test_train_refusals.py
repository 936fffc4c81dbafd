"""What ``polyleaf train`` refuses: one line before work, which names file, column, parameter or setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_table import plant_rows, without_packages, write

from polyleaf.cli.main import main

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.cpu_only("words and exit codes")

ROWS = plant_rows()
Errors = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_depth = 3", "'max_depth' is no setting; parameters stand below 'param'"),
        ("colour = 3", "'colour' is no setting; there are table"),
        ("target = 3", "target must be names of columns; got 3"),
        ("task = 'numbers'", "task must be one of regression, classes, labels, mixed; got 'numbers'"),
        ("model = 3", "model must be text; got 3"),
        ("param = 3", "param must be names and values; got 3"),
        ("target = ", "this is no TOML"),
        ("valid = 'a.csv'\nvalid-fraction = 0.5", "give valid or valid_fraction, one of them"),
        ("seed = 3\n[param]\nrandom_state = 3", "'seed' and the parameter random_state are the same"),
    ],
)
def test_wrong_settings_name_their_file(text: str, said: str, tmp_path: Path, capsys: Errors) -> None:
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    assert main(["train", "--config", str(tmp_path / "settings.toml")]) == 2
    error = capsys.readouterr().err
    assert "settings.toml" in error
    assert said in error


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--target", "powr"], 1, "table.csv: no column 'powr', named as target; it has 'speed', 'load'"),
        (["--target", "power", "--weight", "wait"], 1, "table.csv: no column 'wait', named as weight"),
        (["--target", "power", "--ignore", "x,y"], 1, "table.csv: no columns 'x', 'y', named in ignore"),
        (["--target", "power"], 1, "table.csv: column 'plant' holds no numbers"),
        (["--target", "grade", "--task", "regression"], 1, "table.csv: column 'grade' holds text"),
        (["--target", "power", "--categorical", "power"], 2, "column 'power' is no feature"),
        (["--target", "power", "--weight", "power"], 2, "column 'power' is named twice"),
        (["--target", "power", "--categorical", "city"], 1, "table.csv: no column 'city', named in categ"),
        (["--target", "power", "--param", "max_depth=0"], 2, "max_depth must be int >= 1 or None; got 0"),
        (["--target", "power", "--param", "max_depth=x"], 2, "max_depth must be int >= 1 or None; got 'x'"),
        (["--target", "power", "--param", "eta=1"], 2, "'eta' is not a parameter of the regressor; did you"),
        (["--target", "power", "--param", "max_depth"], 2, "--param max_depth: write it as NAME=VALUE"),
        (["--target", "power", "--param", "callbacks=x"], 2, "callbacks are objects of Python"),
        (["--target", "power", "--param", "monotone_constraints={"], 2, "monotone_constraints={: this is no"),
        (["--target", "power", "--threads", "0"], 2, "n_jobs must be int other than 0, or None; got 0"),
        (["--target", "power", "--seed", "1", "--param", "random_state=1"], 2, "are the same"),
        (
            ["--target", "power", "--valid-fraction", "1"],
            2,
            "valid_fraction must be a finite float in (0",
        ),
        (["--target", "power,cost", "--task", "classes"], 2, "--task classes with 2 targets"),
        (["--target", "fast", "--task", "labels"], 2, "--task labels with 1 targets: use --task classes"),
        (["--target", "power", "--valid", "none.csv"], 1, "none.csv: there is no such file"),
        (["--target", "power", "--config", "none.toml"], 1, "none.toml: No such file"),
        ([], 2, "--target is missing"),
        (["--target", "power,power"], 2, "column 'power' is named twice, in target and in target"),
        (["--target", "power", "--param", "validation_fraction=0.9"], 2, "validation_fraction must be"),
    ],
)
def test_errors_are_one_line_before_work(
    options: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Errors,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(ROWS.drop(columns="id"), Path("table.csv"))
    assert main(["train", "table.csv", "--model", "m.polyleaf", *options]) == status
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("m.polyleaf").exists()


def test_what_python_calls_otherwise_is_said_as_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    monkeypatch.chdir(tmp_path)
    write(ROWS[["speed", "power"]], Path("table.csv"))
    more = ["--target", "power", "--model", "m.polyleaf", "--param", "n_bags=2"]
    assert main(["train", "table.csv", *more, "--valid-fraction", "0.2"]) == 1
    assert "(On the command line: --valid or --valid-fraction.)" in capsys.readouterr().err


def test_errors_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors) -> None:
    monkeypatch.chdir(tmp_path)
    write(ROWS, Path("table.csv"))
    Path("empty.csv").write_text("", encoding="utf-8")
    Path("broken.parquet").write_text("x", encoding="utf-8")

    def said(table: str, *more: str) -> str:
        assert main(["train", table, "--target", "power", *more]) in (1, 2)
        return capsys.readouterr().err

    model = ["--model", "m.polyleaf"]
    assert "empty.csv: No columns" in said("empty.csv", *model)
    assert "'broken.parquet' cannot be read as Parquet" in said("broken.parquet", *model)
    assert "no Parquet file 'none.parquet'" in said("none.parquet", *model)
    assert "table.dat: its name ends in neither .csv nor .parquet" in said("table.dat", *model)
    assert "there is no folder" in said("table.csv", "--model", "none/m.polyleaf")
    assert "which it would replace" in said("table.csv", "--model", "./table.csv")
    without_packages(monkeypatch, "pandas", "polars")
    assert "table.csv: reading CSV needs pandas or polars" in said("table.csv", *model)


@pytest.mark.parametrize("missing", ["", "pandas"])
def test_headers_that_do_not_fit_are_refused(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    """A second column of the target would become a feature, and longer rows would be shifted."""
    monkeypatch.chdir(tmp_path)
    if missing:
        pytest.importorskip("polars")
        without_packages(monkeypatch, missing)
    model = ["--target", "power", "--model", "m.polyleaf", "--param", "n_estimators=2"]
    Path("twice.csv").write_text("speed,power,power\n1,2,2\n2,3,3\n", encoding="utf-8")
    assert main(["train", "twice.csv", *model]) == 1
    assert "twice.csv: its header has the column 'power' more than once" in capsys.readouterr().err
    Path("long.csv").write_text("speed,power\n1,2,2\n2,3,3\n", encoding="utf-8")
    assert main(["train", "long.csv", *model]) == 1
    assert "long.csv: " in capsys.readouterr().err
    assert not Path("m.polyleaf").exists()
    Path("names.csv").write_text("power,power.1,power_duplicated_0\n1,2,2\n2,3,3\n", encoding="utf-8")
    assert main(["train", "names.csv", *model]) == 0


def test_errors_in_the_table_to_measure_on_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    monkeypatch.chdir(tmp_path)
    write(ROWS[["speed", "load", "power"]], Path("table.csv"))
    write(ROWS[["speed", "power"]], Path("narrow.csv"))
    write(ROWS[["speed", "load", "power"]].assign(load="x"), Path("text.csv"))
    arguments = ["train", "table.csv", "--target", "power", "--model", "m.polyleaf", "--valid"]
    assert main([*arguments, "narrow.csv"]) == 1
    assert "narrow.csv: no column 'load', which table.csv has" in capsys.readouterr().err
    assert main([*arguments, "text.csv"]) == 1
    error = capsys.readouterr().err
    assert "text.csv" in error
    assert "'load'" in error
    assert "table.csv" not in error
    assert main([*arguments, "text.csv", "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err
