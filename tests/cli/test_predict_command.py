"""``polyleaf predict`` writes what Python predicts, digit by digit, whatever the files are."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plant_table import FEATURES, plant_rows, without_packages, write

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.cli.main import main
from polyleaf.data import parquet_source

pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.cpu_only("files, words and exit codes; what is predicted is tested elsewhere"),
    pytest.mark.other_threads("tables are read and written by threads of Arrow"),
]

ROWS = plant_rows()
NEW = plant_rows(50, seed=2)
SMALL: dict[str, Any] = {"n_estimators": 6, "min_samples_leaf": 5, "categorical_features": ["plant"]}
Errors = pytest.CaptureFixture[str]
MIXED = {"power": "regression", "grade": "multiclass", "safe": "binary"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    X = ROWS[FEATURES]
    PolyleafRegressor(**SMALL).fit(X, ROWS[["power", "cost"]]).save_model(folder / "numbers")
    PolyleafClassifier(**SMALL).fit(X, ROWS["grade"]).save_model(folder / "classes")
    PolyleafClassifier(**SMALL).fit(X, ROWS[["fast", "late"]]).save_model(folder / "labels")
    PolyleafMixed(MIXED, **SMALL).fit(X, ROWS[list(MIXED)]).save_model(folder / "mixed")
    unnamed = ROWS[["speed", "load"]].to_numpy()
    PolyleafRegressor(n_estimators=3).fit(unnamed, ROWS["power"].to_numpy()).save_model(folder / "unnamed")
    return folder


def read(path: Path | str) -> pd.DataFrame:
    return pd.read_csv(path) if str(path).endswith(".csv") else pd.read_parquet(path)


@pytest.mark.parametrize("given", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("numbers", []),
        ("classes", []),
        ("classes", ["--proba"]),
        ("classes", ["--top-k", "2"]),
        ("labels", []),
        ("labels", ["--proba"]),
        ("labels", ["--top-k", "1"]),
        ("mixed", []),
        ("mixed", ["--proba"]),
    ],
)
def test_predictions_are_those_of_python(
    given: str,
    out: str,
    model: str,
    options: list[str],
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Columns in another order, others beside them, categories that look like numbers, several batches."""
    monkeypatch.setattr(parquet_source, "_BLOCK_ROWS", 16)
    new = NEW[NEW["plant"] != "north"] if given == "new.csv" else NEW
    new = new[new.columns[::-1]]
    path = write(new, tmp_path / given)
    arguments = ["--model", str(models / model), "--out", str(tmp_path / out), "--keep", "id,load", *options]
    assert main(["predict", path, *arguments, "--prefix", "p_"]) == 0
    found = read(tmp_path / out)
    there = load_model(models / model)
    X = new[FEATURES]
    if model == "mixed" and options:
        assert there.predict_proba(X, out=tmp_path / "there.parquet") is None
        wanted = pd.read_parquet(tmp_path / "there.parquet")
    elif model == "mixed":
        wanted = there.predict(X)
    elif "--proba" in options:
        wanted = there.predict_proba(X, as_frame=True)
    elif options:
        wanted = there.predict(X, top_k=int(options[1]), as_labels=True, as_frame=True)
    else:
        wanted = there.predict(X, as_frame=True)
    assert list(found.columns) == ["id", "load", *("p_" + str(name) for name in wanted.columns)]
    for name in wanted.columns:
        assert found["p_" + str(name)].tolist() == wanted[name].tolist()
    assert found["load"].isna().tolist() == new["load"].isna().tolist()
    if out == "out.parquet":
        assert found["id"].tolist() == new["id"].tolist()
    else:
        assert pd.read_csv(tmp_path / out, dtype=str)["id"].tolist() == new["id"].tolist()


def test_polars_reads_what_is_to_be_predicted(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("polars")
    path = write(NEW, tmp_path / "new.csv")
    arguments = ["predict", path, "--model", str(models / "mixed"), "--keep", "id,load"]
    assert main([*arguments, "--out", str(tmp_path / "pandas.csv"), "--proba"]) == 0
    without_packages(monkeypatch, "pandas")
    assert main([*arguments, "--out", str(tmp_path / "polars.csv"), "--proba"]) == 0
    assert (tmp_path / "polars.csv").read_text() == (tmp_path / "pandas.csv").read_text()


def test_standard_input_and_output(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    path = write(NEW, tmp_path / "new.csv")
    arguments = ["--model", str(models / "numbers")]
    assert main(["predict", path, *arguments, "--out", str(tmp_path / "out.csv")]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))
    assert main(["predict", "-", *arguments]) == 0
    assert capsys.readouterr().out == (tmp_path / "out.csv").read_text()


@pytest.mark.other_threads("starts processes of its own")
def test_parquet_through_a_pipe(models: Path, tmp_path: Path) -> None:
    path = write(NEW, tmp_path / "new.parquet")
    command = [sys.executable, "-m", "polyleaf.cli.main", "predict", "-", "--format", "parquet"]
    done = subprocess.run(
        [*command, "--model", str(models / "numbers")],
        input=Path(path).read_bytes(),
        capture_output=True,
        check=True,
    )
    wanted = load_model(models / "numbers").predict(NEW[FEATURES], as_frame=True)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(done.stdout)), wanted)
    assert done.stderr == b""
    refused = subprocess.run([*command, "--model", path], input=b"", capture_output=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.count(b"\n") == 1


def test_other_columns_are_named_when_asked(models: Path, tmp_path: Path, capsys: Errors) -> None:
    path = write(NEW[[*FEATURES, "id", "cost"]], tmp_path / "new.csv")
    arguments = ["predict", path, "--model", str(models / "numbers"), "--keep", "id", "--out"]
    assert main([*arguments, str(tmp_path / "out.csv")]) == 0
    assert capsys.readouterr().err == ""
    assert main([*arguments, str(tmp_path / "out.csv"), "-v"]) == 0
    error = capsys.readouterr().err
    assert "columns that are not used: cost\n" in error
    assert "50 rows predicted" in error


def test_features_without_names_are_taken_in_order(models: Path, tmp_path: Path) -> None:
    path = write(NEW[["id", "speed", "load"]], tmp_path / "new.csv")
    arguments = ["predict", path, "--model", str(models / "unnamed"), "--out", str(tmp_path / "out.csv")]
    assert main([*arguments, "--keep", "id"]) == 0
    wanted = load_model(models / "unnamed").predict(NEW[["speed", "load"]].to_numpy())
    np.testing.assert_array_equal(read(tmp_path / "out.csv")["target"], wanted)
    assert main(arguments) == 1


def test_a_table_without_rows(models: Path, tmp_path: Path, capsys: Errors) -> None:
    for name in ("new.csv", "new.parquet"):
        path = write(NEW.iloc[:0], tmp_path / name)
        assert main(["predict", path, "--model", str(models / "numbers"), "--keep", "id"]) == 0
        assert capsys.readouterr().out == "id,power,cost\n"


@pytest.mark.parametrize(
    ("model", "options", "status", "said"),
    [
        ("numbers", ["--keep", "idd"], 1, "new.csv: no column 'idd', named in --keep"),
        ("numbers", ["--keep", "power"], 2, "'power' is a column of the predictions, too"),
        ("numbers", ["--proba"], 2, "--proba: MODELS/numbers predicts numbers"),
        ("numbers", ["--top-k", "1"], 2, "--top-k: MODELS/numbers has no classes or labels"),
        ("classes", ["--top-k", "4"], 2, "--top-k must be int in [1, 3]; got 4"),
        ("classes", ["--threads", "0"], 2, "n_jobs must be int other than 0"),
        ("none", [], 1, "MODELS/none"),
        ("classes", ["--out", "new.csv"], 2, "--out new.csv is new.csv, which it would replace"),
        ("classes", ["--out", "none/out.csv"], 1, "none/out.csv: there is no folder"),
        ("classes", ["--out", "out.txt"], 2, "out.txt: its name ends in neither .csv nor .parquet"),
        ("classes", ["--out", "out.csv.gz"], 2, "compressed CSV is read, not written"),
    ],
)
def test_errors_are_one_line(
    model: str,
    options: list[str],
    status: int,
    said: str,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Errors,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(NEW, Path("new.csv"))
    before = Path("new.csv").read_bytes()
    assert main(["predict", "new.csv", "--model", str(models / model), *options]) == status
    printed = capsys.readouterr()
    assert said.replace("MODELS", str(models)) in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert [path.name for path in Path().iterdir()] == ["new.csv"]
    assert Path("new.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_missing_and_wrong_columns_are_named(name: str, models: Path, tmp_path: Path, capsys: Errors) -> None:
    path = write(NEW[["load", "id"]], tmp_path / name)
    assert main(["predict", path, "--model", str(models / "numbers")]) == 1
    assert f"{path}: no columns 'speed', 'plant', which" in capsys.readouterr().err
    path = write(NEW.assign(speed="fast"), tmp_path / name)
    assert main(["predict", path, "--model", str(models / "numbers")]) == 1
    assert f"{path}: column 'speed' holds no numbers" in capsys.readouterr().err
