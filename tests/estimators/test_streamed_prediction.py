"""Predictions of a source are those of the table in memory; no half of a file is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor

pl = pytest.importorskip("polars")

SMALL = {"n_estimators": 3, "min_samples_leaf": 3, "random_state": 0}
RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["a", "b", "c"])
X["word"] = RNG.choice(["x", "y"], 200)
TARGETS = pd.DataFrame({"price": X["a"] * 2, "cost": X["b"] + X["c"]})
GRADES = np.where(X["a"] > 0.5, "good", np.where(X["b"] > 0, "fair", "bad"))
LABELS = pd.DataFrame({"hit": (X["a"] > 0).astype(int), "hot": (X["b"] > 0).astype(int)})
AUTO = SMALL | {"categorical_features": "auto"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The features in another order, among other columns, in several files."""
    table = pa.Table.from_pandas(X[["word", "c", "b", "a"]].assign(price=TARGETS["price"], grade=GRADES))
    data = tmp_path / "data"
    data.mkdir()
    for number in range(4):
        pq.write_table(table.slice(number * 50, 50), data / f"{number}.parquet", row_group_size=20)
    return data


def sources(folder: Path) -> dict[str, Any]:
    cuts = [0, 30, 30, 120, 200]
    parts = [X.iloc[a:b] for a, b in pairwise(cuts)]
    return {
        "folder": folder,
        "pattern": str(folder / "*.parquet"),
        "dataset": ds.dataset(folder),
        "lazy": pl.scan_parquet(folder / "*.parquet"),
        "list": parts,
        "generator": (part for part in parts),
        "tuples": [(part, None) for part in parts],
    }


KINDS = ("folder", "pattern", "dataset", "lazy", "list", "generator", "tuples")


@pytest.mark.parametrize("kind", KINDS)
def test_arrays(kind: str, folder: Path) -> None:
    for model in (
        PolyleafRegressor(**AUTO).fit(X, TARGETS),
        PolyleafRegressor(**AUTO).fit(X, TARGETS["price"]),
        PolyleafClassifier(**AUTO).fit(X, GRADES),
        PolyleafClassifier(**AUTO).fit(X, LABELS),
    ):
        assert np.array_equal(model.predict(sources(folder)[kind]), model.predict(X))
        if isinstance(model, PolyleafClassifier):
            assert np.array_equal(model.predict_proba(sources(folder)[kind]), model.predict_proba(X))
            top = model.predict(sources(folder)[kind], top_k=2, as_labels=True, n_rounds=1)
            assert np.array_equal(top, model.predict(X, top_k=2, as_labels=True, n_rounds=1))


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str, folder: Path, tmp_path: Path) -> None:
    """The columns of the file are called like those of a frame."""
    out = tmp_path / "out.parquet"
    for model in (
        PolyleafRegressor(**AUTO).fit(X, TARGETS),
        PolyleafClassifier(**AUTO).fit(X, GRADES),
        PolyleafClassifier(**AUTO).fit(X, LABELS),
    ):
        assert model.predict(sources(folder)[kind], out=out) is None
        pd.testing.assert_frame_equal(pq.read_table(out).to_pandas(), _frame(model.predict(X, as_frame=True)))
        if isinstance(model, PolyleafClassifier):
            assert model.predict_proba(sources(folder)[kind], out=str(out)) is None
            expected = model.predict_proba(X, as_frame=True)
            pd.testing.assert_frame_equal(pq.read_table(out).to_pandas(), expected)
            model.predict(sources(folder)[kind], top_k=1, as_labels=True, out=out)
            assert pq.read_table(out).column_names == ["top_1"]
    assert os.listdir(tmp_path) in (["data", "out.parquet"], ["out.parquet", "data"])


def _frame(expected: pd.DataFrame) -> pd.DataFrame:
    text = [name for name in expected.columns if expected[name].dtype == object]
    return expected.astype(dict.fromkeys(text, "str"))


def test_mixed(folder: Path, tmp_path: Path) -> None:
    groups = {
        "price": "regression",
        "grade": "multiclass",
        "l": {"kind": "multilabel", "columns": ["hit", "hot"]},
    }
    y = TARGETS[["price"]].assign(grade=GRADES, hit=LABELS["hit"], hot=LABELS["hot"])
    model = PolyleafMixed(groups, **AUTO).fit(X, y)
    plain = model.predict(X)
    assert isinstance(model.predict(folder), pa.Table)
    assert isinstance(model.predict(pl.scan_parquet(folder / "*.parquet")), pl.DataFrame)
    assert model.predict(folder).to_pandas()["price"].equals(plain["price"])
    assert model.predict([X[:10], X[10:]])["grade"].tolist() == plain["grade"].tolist()
    probabilities = model.predict_proba(X)
    for name, values in model.predict_proba(folder).items():
        assert np.array_equal(values, probabilities[name])
    model.predict(folder, out=tmp_path / "out")
    assert pq.read_table(tmp_path / "out").column_names == list(plain.columns)
    model.predict(X, out=tmp_path / "out")
    assert pq.read_table(tmp_path / "out").to_pandas()["grade"].tolist() == plain["grade"].tolist()
    model.predict_proba(folder, out=tmp_path / "out")
    written = pq.read_table(tmp_path / "out")
    assert written.column_names == ["grade=bad", "grade=fair", "grade=good", "hit", "hot"]
    assert np.array_equal(written["grade=good"].to_numpy(), probabilities["grade"][:, 2])


def test_tables_in_memory_are_written_too(tmp_path: Path) -> None:
    numbers = X[["a", "b", "c"]].to_numpy()
    model = PolyleafRegressor(**SMALL).fit(numbers, TARGETS.to_numpy())
    model.predict(numbers, out=tmp_path / "out")
    written = pq.read_table(tmp_path / "out").to_pandas()
    assert list(written.columns) == ["target_0", "target_1"]
    assert np.array_equal(written.to_numpy(), model.predict(numbers))


def test_sparse_labels() -> None:
    numbers = X[["a", "b", "c"]].to_numpy()
    model = PolyleafClassifier(**SMALL, objective="clipped_squared_error", sparse_leaves=1)
    model.fit(numbers, scipy.sparse.csr_array(LABELS.to_numpy()))
    parts = [scipy.sparse.csr_array(numbers[:50]), scipy.sparse.csr_array(numbers[50:])]
    streamed = model.predict(parts)
    assert scipy.sparse.issparse(streamed)
    assert np.array_equal(streamed.toarray(), model.predict(numbers).toarray())


def test_frames_of_the_source(folder: Path) -> None:
    model = PolyleafRegressor(**AUTO).fit(X, TARGETS)
    assert isinstance(model.predict(folder, as_frame=True), pa.Table)
    assert isinstance(model.predict(pl.scan_parquet(folder / "*.parquet"), as_frame=True), pl.DataFrame)
    parts = model.predict([X[:10], X[10:]], as_frame=True)
    pd.testing.assert_frame_equal(parts, model.predict(X, as_frame=True))


def test_without_rows(folder: Path, tmp_path: Path) -> None:
    model = PolyleafClassifier(**AUTO).fit(X, GRADES)
    pq.write_table(pq.read_table(folder).slice(0, 0), tmp_path / "none.parquet")
    assert model.predict_proba(tmp_path / "none.parquet").shape == (0, 3)
    model.predict_proba(tmp_path / "none.parquet", out=tmp_path / "out")
    assert pq.read_table(tmp_path / "out").shape == (0, 3)
    with pytest.raises(ValueError, match="X: there are no batches"):
        model.predict(part for part in ())


def test_models_without_names_go_by_position(folder: Path) -> None:
    numbers = X[["a", "b", "c"]].to_numpy()
    model = PolyleafRegressor(**SMALL).fit(numbers, TARGETS)
    source = ds.dataset(pa.Table.from_pandas(X[["a", "b", "c"]]))
    with pytest.warns(UserWarning, match="X has feature names, but"):
        assert np.array_equal(model.predict(source), model.predict(numbers))
    warned = pytest.warns(UserWarning, match="X has feature names, but")
    with pytest.raises(ValueError, match="X has 6 features, but"), warned:
        model.predict(folder)


def test_nothing_is_left_of_a_file_that_was_not_finished(folder: Path, tmp_path: Path) -> None:
    """An older file stays as it was."""
    model = PolyleafRegressor(**AUTO).fit(X, TARGETS)
    out = tmp_path / "out.parquet"
    out.write_text("older")

    def broken() -> Iterator[Any]:
        yield X
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        model.predict(broken(), out=out)
    with pytest.raises(ValueError, match="now missing:\n- a"):
        model.predict(ds.dataset(pq.read_table(folder).drop_columns(["a"])), out=out)
    assert out.read_text() == "older"
    assert sorted(os.listdir(tmp_path)) == ["data", "out.parquet"]
    with pytest.raises(FileNotFoundError, match="to save the predictions in"):
        model.predict(folder, out=tmp_path / "none" / "out")
    with pytest.raises(TypeError, match="X: batch 1 is int; batches are tables"):
        model.predict(part for part in (X, 7))
