"""``polyleaf explain`` writes the Shapley values that Python gives, digit by digit, with names."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plant_table import FEATURES, plant_rows, without_packages, write

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.cli import explain
from polyleaf.cli.main import main
from polyleaf.data import parquet_source

pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.cpu_only("files, words and exit codes; values are tested elsewhere"),
    pytest.mark.other_threads("tables are read and written by threads of Arrow"),
]

ROWS = plant_rows()
NEW = plant_rows(50, seed=2)
SMALL: dict[str, Any] = {"n_estimators": 6, "min_samples_leaf": 5, "categorical_features": ["plant"]}
Errors = pytest.CaptureFixture[str]
MIXED = {"power": "regression", "grade": "multiclass", "safe": "binary"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds."""
    folder = tmp_path_factory.mktemp("models")
    X = ROWS[FEATURES]
    PolyleafRegressor(**SMALL).fit(X, ROWS["power"]).save_model(folder / "number")
    PolyleafRegressor(**SMALL).fit(X, ROWS[["power", "cost"]]).save_model(folder / "numbers")
    PolyleafClassifier(**SMALL).fit(X, ROWS["grade"]).save_model(folder / "classes")
    PolyleafMixed(MIXED, **SMALL).fit(X, ROWS[list(MIXED)]).save_model(folder / "mixed")
    unnamed = ROWS[["speed", "load"]].to_numpy()
    PolyleafRegressor(n_estimators=3).fit(unnamed, ROWS[["power", "cost"]].to_numpy()).save_model(
        folder / "unnamed"
    )
    return folder


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def values_of(model: Any, **options: Any) -> np.ndarray[Any, Any]:
    """Values with rows, outputs and features in this order."""
    found = model.shap_values(NEW[FEATURES], **options)
    found = found[..., None] if model.n_outputs_ == 1 else found
    return np.moveaxis(found, -1, 0 if "reduce" in options else 1)


@pytest.mark.parametrize("given", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("name", ["number", "numbers", "classes", "mixed"])
def test_values_are_those_of_python(
    given: str, out: str, name: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns in another order, several batches of rows, and of cells."""
    monkeypatch.setattr(parquet_source, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(explain, "_BLOCK_CELLS", 40)
    table = write(NEW[NEW.columns[::-1]], tmp_path / given)
    model = load_model(models / name)
    arguments = ["explain", table, "--model", str(models / name), "--out", str(tmp_path / out)]
    assert main(arguments) == 0
    outputs = list(model._coding.columns_of_outputs())
    values = values_of(model)
    wide = read(tmp_path / out)
    assert list(wide.columns) == ["row", "output", "base", *FEATURES]
    assert wide["row"].tolist() == np.repeat(np.arange(50), len(outputs)).tolist()
    assert wide["output"].tolist() == outputs * 50
    np.testing.assert_array_equal(wide["base"], np.tile(model.expected_value_, 50))
    np.testing.assert_array_equal(wide[FEATURES].to_numpy(), values.reshape(-1, 3))
    assert main([*arguments, "--layout", "long"]) == 0
    long = read(tmp_path / out)
    assert list(long.columns) == ["row", "output", "base", "feature", "value"]
    assert long["feature"].tolist() == FEATURES * 50 * len(outputs)
    assert long["output"].tolist() == np.repeat(outputs, 3).tolist() * 50
    np.testing.assert_array_equal(long["value"], values.ravel())


def test_values_and_base_add_up_to_the_raw_score(models: Path, tmp_path: Path) -> None:
    table = write(NEW, tmp_path / "new.csv")
    assert main(["explain", table, "--model", str(models / "numbers"), "--out", str(tmp_path / "o.csv")]) == 0
    wide = read(tmp_path / "o.csv")
    found = (wide["base"] + wide[FEATURES].sum(axis=1)).to_numpy().reshape(50, 2)
    np.testing.assert_allclose(found, load_model(models / "numbers").predict(NEW[FEATURES]), rtol=1e-9)


def test_outputs_means_and_pairs(models: Path, tmp_path: Path) -> None:
    table, out = write(NEW, tmp_path / "new.parquet"), tmp_path / "out.parquet"
    model = load_model(models / "classes")
    start = ["explain", table, "--model", str(models / "classes"), "--out", str(out)]
    assert main([*start, "--outputs", "c,0"]) == 0
    found = read(out)
    assert found["output"].tolist() == ["c", "a"] * 50
    np.testing.assert_array_equal(found[FEATURES], values_of(model, outputs=["c", "a"]).reshape(-1, 3))
    assert main([*start, "--reduce", "mean_abs"]) == 0
    found = read(out)
    assert list(found.columns) == ["output", *FEATURES]
    np.testing.assert_array_equal(found[FEATURES], values_of(model, reduce="mean_abs"))
    assert main([*start, "--reduce", "mean_abs", "--layout", "long"]) == 0
    assert list(read(out).columns) == ["output", "feature", "value"]
    np.testing.assert_array_equal(read(out)["value"], values_of(model, reduce="mean_abs").ravel())
    assert main([*start, "--interactions", "--outputs", "b"]) == 0
    found = read(out)
    assert list(found.columns) == ["row", "output", "base", "feature", "other", "value"]
    pairs = model.shap_values(NEW[FEATURES], "b", interactions=True)
    np.testing.assert_array_equal(found["value"], pairs.ravel())
    assert found["feature"][:9].tolist() == np.repeat(FEATURES, 3).tolist()
    assert found["other"][:9].tolist() == FEATURES * 3


def test_columns_are_kept_and_told_apart(models: Path, tmp_path: Path, capsys: Errors) -> None:
    table, out = write(NEW, tmp_path / "new.csv"), tmp_path / "out.csv"
    start = ["explain", table, "--model", str(models / "numbers"), "--out", str(out)]
    assert main([*start, "--keep", "id,speed"]) == 2
    assert "'speed' would be a column of the explanations twice" in capsys.readouterr().err
    assert main([*start, "--keep", "id,speed", "--prefix", "shap_"]) == 0
    found = pd.read_csv(out, dtype={"id": str})
    assert list(found.columns) == [
        "id",
        "speed",
        "row",
        "output",
        "base",
        *(f"shap_{one}" for one in FEATURES),
    ]
    assert found["id"].tolist() == np.repeat(NEW["id"], 2).tolist()
    assert main([*start, "--keep", "id", "--reduce", "mean_abs"]) == 2
    assert "--keep: a mean over the rows" in capsys.readouterr().err


def test_standard_input_and_output(models: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors) -> None:
    text = NEW.to_csv(index=False)

    class Bytes:
        buffer = io.BytesIO(text.encode())

    monkeypatch.setattr("sys.stdin", Bytes)
    assert main(["explain", "-", "--model", str(models / "number"), "-v"]) == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    np.testing.assert_array_equal(found[FEATURES], values_of(load_model(models / "number")).reshape(-1, 3))
    assert said.err == "polyleaf: 50 rows explained, 1 output(s) each\n"


def test_polars_reads_where_pandas_is_not(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_packages(monkeypatch, "pandas")
    table, out = write(NEW, tmp_path / "new.csv"), tmp_path / "out.csv"
    assert (
        main(["explain", table, "--model", str(models / "numbers"), "--keep", "id", "--out", str(out)]) == 0
    )
    values = values_of(load_model(models / "numbers"))
    np.testing.assert_array_equal(pd.read_csv(out)[FEATURES].to_numpy(), values.reshape(-1, 3))


def test_a_model_without_names_takes_columns_in_their_order(models: Path, tmp_path: Path) -> None:
    table, out = write(NEW[["id", "speed", "load"]], tmp_path / "new.csv"), tmp_path / "out.csv"
    assert (
        main(["explain", table, "--model", str(models / "unnamed"), "--keep", "id", "--out", str(out)]) == 0
    )
    found = pd.read_csv(out)
    model = load_model(models / "unnamed")
    values = model.shap_values(NEW[["speed", "load"]].to_numpy())
    np.testing.assert_array_equal(
        found[["speed", "load"]].to_numpy(), np.moveaxis(values, 2, 1).reshape(-1, 2)
    )


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--outputs", "wind"], 2, "--outputs: outputs: there is no output 'wind'"),
        (["--outputs", "7"], 2, "there is no output 7"),
        (["--interactions", "--layout", "wide"], 2, "pairs of features are written as lines"),
        (["--threads", "0"], 2, "n_jobs"),
        (["--out", "nowhere/out.csv"], 1, "nowhere/out.csv: there is no folder"),
        (["--keep", "wind"], 1, "no column 'wind', named in --keep"),
        (["--out", "out.txt"], 2, "its name ends in neither .csv nor .parquet"),
    ],
)
def test_what_cannot_be_is_named(
    options: list[str], status: int, words: str, models: Path, tmp_path: Path, capsys: Errors
) -> None:
    table = write(NEW, tmp_path / "new.csv")
    assert main(["explain", table, "--model", str(models / "numbers"), *options]) == status
    assert words in capsys.readouterr().err


def test_a_column_that_is_missing_is_named_with_its_file(
    models: Path, tmp_path: Path, capsys: Errors
) -> None:
    table = write(NEW.drop(columns="load"), tmp_path / "new.csv")
    out = tmp_path / "out.csv"
    assert main(["explain", table, "--model", str(models / "numbers"), "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert f"{table}: no column 'load', which {models / 'numbers'} was trained with" in said
    assert not out.exists()
    assert main(["explain", table, "--model", str(models / "numbers"), "--out", table]) == 2
    assert "which it would replace" in capsys.readouterr().err
