"""A model from a source is that of the same table in memory: the same file, byte for byte."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from streams import (
    ARROW,
    FEATURES,
    NUMBERS,
    SMALL,
    TABLE,
    Batches,
    N,
    as_library,
    cut,
    file_of,
    write,
)

pl = pytest.importorskip("polars")

pytestmark = [
    pytest.mark.cpu_only("a streamed table is coded by the CPU"),
    pytest.mark.usefixtures("small_panels"),
]


@pytest.fixture(autouse=True)
def no_files_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Temporary files are gone, whatever happens."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def sources(folder: Path, table: pa.Table = ARROW) -> dict[str, tuple[Any, str]]:
    """Return sources of a table with names, each with the library of the same table in memory."""
    data = folder / "data"
    data.mkdir()
    write(data, table)
    return {
        "folder": (data, "pyarrow"),
        "str": (str(data), "pyarrow"),
        "pattern": (str(data / "*.parquet"), "pyarrow"),
        "dataset": (ds.dataset(sorted(data.glob("*.parquet"))), "pyarrow"),
        "table": (ds.dataset(table), "pyarrow"),
        "lazy": (pl.scan_parquet(data / "*.parquet"), "polars"),
    }


KINDS = ("folder", "str", "pattern", "dataset", "table", "lazy")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_targets(kind: str, weight: str | None, tmp_path: Path) -> None:
    """With categories, text, gaps, missing targets, and rows of weight 0."""
    source, library = sources(tmp_path)[kind]
    make = lambda: PolyleafRegressor(**SMALL, categorical_features="auto")  # noqa: E731
    streamed = make().fit(source, ["price", "cost"], weight)
    used = ["price", "cost"] if weight is None else ["price", "cost", weight]
    X, y = as_library(TABLE.drop(columns=used), library), as_library(TABLE[["price", "cost"]], library)
    plain = make().fit(X, y, None if weight is None else TABLE[weight])
    assert file_of(streamed, tmp_path) == file_of(plain, tmp_path)
    assert streamed.target_names_.tolist() == ["price", "cost"]


@pytest.mark.parametrize("kind", KINDS)
def test_one_target_and_arrays(kind: str, tmp_path: Path) -> None:
    """A single name is a column, not a table of one; y and weights may be arrays, too."""
    table = ARROW.select([*NUMBERS, "price"])
    source, library = sources(tmp_path, table)[kind]
    streamed = PolyleafRegressor(**SMALL).fit(source, "price")
    X = as_library(TABLE[NUMBERS], library)
    plain = PolyleafRegressor(**SMALL).fit(X, TABLE["price"])
    assert streamed.target_names_.tolist() == ["price"]
    plain._coding = replace(plain._coding, frame=library)  # a column of pyarrow has no name of its own
    assert file_of(streamed, tmp_path) == file_of(plain, tmp_path)
    named = source.select(NUMBERS) if kind == "lazy" else ds.dataset(table.select(NUMBERS))
    values, weight = TABLE["price"].to_numpy(), TABLE["w"].to_numpy()
    streamed = PolyleafRegressor(**SMALL).fit(named, values, weight)
    plain = PolyleafRegressor(**SMALL).fit(X, values, weight)
    assert file_of(streamed, tmp_path) == file_of(plain, tmp_path)


@pytest.mark.parametrize("kind", ["folder", "lazy"])
def test_classes_labels_and_mixed(kind: str, tmp_path: Path) -> None:
    source, library = sources(tmp_path, ARROW.select([*NUMBERS, "price", "grade", "hit", "hot"]))[kind]
    X = as_library(TABLE[NUMBERS], library)
    rest = {
        name: as_library(TABLE[[*NUMBERS, *others]], library)
        for name, others in {
            "grade": ["price", "hit", "hot"],
            "labels": ["price", "grade"],
            "mixed": [],
        }.items()
    }
    labels = PolyleafClassifier(**SMALL, categorical_features="auto")
    labels.fit(source, ["hit", "hot"])
    y = as_library(TABLE[["hit", "hot"]], library)
    plain = PolyleafClassifier(**SMALL, categorical_features="auto").fit(rest["labels"], y)
    assert file_of(labels, tmp_path) == file_of(plain, tmp_path)

    classes = PolyleafClassifier(**SMALL).fit(source, "grade")
    plain = PolyleafClassifier(**SMALL).fit(rest["grade"], TABLE["grade"])
    plain._coding = replace(plain._coding, frame=library)
    assert classes.classes_.tolist() == ["bad", "fair", "good"]
    assert file_of(classes, tmp_path) == file_of(plain, tmp_path)

    groups = {
        "price": "regression",
        "grade": "multiclass",
        "l": {"kind": "multilabel", "columns": ["hit", "hot"]},
    }
    plain = PolyleafMixed(groups, **SMALL).fit(
        X, as_library(TABLE[["price", "grade", "hit", "hot"]], library)
    )
    for names in (None, ["price", "grade", "hit", "hot"]):
        mixed = PolyleafMixed(groups, **SMALL).fit(source, names)
        assert file_of(mixed, tmp_path) == file_of(plain, tmp_path)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@settings(max_examples=8, deadline=None)
@given(at=st.lists(st.integers(0, N), max_size=6))
def test_frames_in_batches(library: str, at: list[int]) -> None:
    """However the rows are cut, also where batches are empty."""
    X, y = as_library(TABLE[FEATURES], library), as_library(TABLE[["price", "cost"]], library)
    make = lambda: PolyleafRegressor(**SMALL, categorical_features="auto")  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        streamed = make().fit(cut([X, y, TABLE["w"]], at))
        assert file_of(streamed, Path(folder)) == file_of(make().fit(X, y, TABLE["w"]), Path(folder))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("at", [[], [1, 1, 170], [300, 300]])
def test_arrays_in_batches(dtype: Any, at: list[int], tmp_path: Path) -> None:
    """Of NumPy, sparse, as a list of tuples, and from a loader that uses one array again and again."""
    X = np.random.default_rng(1).integers(-3, 3, (N, 5)).astype(dtype)
    y = X[:, :2] * 1.5 + X[:, 2:3]
    plain = file_of(PolyleafRegressor(**SMALL).fit(X, y), tmp_path)
    batches = list(cut([X, y], at))
    assert file_of(PolyleafRegressor(**SMALL).fit(batches), tmp_path) == plain
    sparse = [(scipy.sparse.csr_array(part), target) for part, target in batches]
    assert file_of(PolyleafRegressor(**SMALL).fit(sparse), tmp_path) == plain

    def reused() -> Any:
        rows, targets = np.empty((N, 5), dtype), np.empty((N, 2))
        for part, target in batches:
            rows[: len(part)], targets[: len(part)] = part, target
            yield rows[: len(part)], targets[: len(part)]
            rows[:], targets[:] = 0, 0

    assert file_of(PolyleafRegressor(**SMALL).fit(Batches(reused)), tmp_path) == plain


def test_other_targets_in_batches(tmp_path: Path) -> None:
    """Classes as text, labels as a sparse matrix, dicts of columns, weights of cells."""
    X = TABLE[NUMBERS].astype(float).to_numpy()
    grade, labels = TABLE["grade"].to_numpy(), TABLE[["hit", "hot"]].to_numpy()
    cases: list[tuple[Any, Any, Any]] = [
        (PolyleafClassifier(**SMALL), grade, TABLE["w"].to_numpy()),
        (PolyleafClassifier(**SMALL), TABLE["grade"], None),
        (PolyleafClassifier(**SMALL), labels, np.column_stack([TABLE["w"], TABLE["w"] + 1])),
        (
            PolyleafClassifier(**SMALL, objective="clipped_squared_error", sparse_leaves=1),
            scipy.sparse.csr_array(labels),
            None,
        ),
        (
            PolyleafMixed({"grade": "multiclass", "price": "regression"}, **SMALL),
            {"grade": grade, "price": TABLE["price"].to_numpy()},
            None,
        ),
    ]
    for model, y, weight in cases:
        parts = [X, y] if weight is None else [X, y, weight]
        streamed = file_of(model.fit(cut(parts, [10, 10, 200])), tmp_path)
        assert streamed == file_of(model.fit(X, y, weight), tmp_path)


# --- categories --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [["word", "i"], [0, 1], [True, True, False]])
def test_named_categories(named: list[Any], tmp_path: Path) -> None:
    """By name, number and mask, also of numbers; what only rows without weight have is no category."""
    table = TABLE[["word", "i", "a", "price"]].copy()
    table["i"] = table["i"] // 10
    table.loc[3, "word"], weight = "rare", np.arange(N) != 3
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    make = lambda: PolyleafRegressor(**SMALL, categorical_features=named)  # noqa: E731
    features = arrow.select(["word", "i", "a"])
    plain = make().fit(features, arrow.select(["price"]), weight)
    assert "rare" not in plain._categories[0].values
    expected = file_of(plain, tmp_path)
    write(tmp_path, arrow)
    assert file_of(make().fit(str(tmp_path / "part*"), ["price"], weight), tmp_path) == expected
    batches = cut([features, arrow.select(["price"]), weight], [0, 50, 51])
    assert file_of(make().fit(batches), tmp_path) == expected


def test_a_column_that_begins_with_gaps_may_be_one_of_categories() -> None:
    words = np.array([None] * 40 + ["x", "y"] * 20, dtype=object)
    X = pd.DataFrame({"a": np.arange(80.0), "word": words})
    y = np.arange(80.0)
    make = lambda: PolyleafRegressor(**SMALL, categorical_features="auto")  # noqa: E731
    for end in (20, 60):
        streamed = make().fit(cut([X, y], [end], 80))
        assert np.array_equal(streamed.predict(X), make().fit(X, y).predict(X))


def test_categories_of_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(ARROW["word"].to_pylist(), dtype=pl.Categorical),
            "e": pl.Series(TABLE["kind"].to_list(), dtype=pl.Enum(["w", "v", "u", "never"])),
            "a": TABLE["a"].to_numpy(),
            "price": TABLE["price"].to_numpy(),
        }
    )
    streamed = PolyleafRegressor(**SMALL).fit(frame.lazy(), "price")
    plain = PolyleafRegressor(**SMALL).fit(frame.drop("price"), frame["price"])
    assert file_of(streamed, tmp_path) == file_of(plain, tmp_path)


# --- files -------------------------------------------------------------------------------------------------


def test_the_order_of_rows_is_that_of_the_paths(tmp_path: Path) -> None:
    """However the files came to be there; a column may be of integers in one file, of floats in another."""
    for number in (2, 0, 1):
        part = TABLE[["a", "i", "price"]].iloc[number * 100 : number * 100 + 100]
        part = part.astype({"i": float}) if number == 1 else part
        part.to_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "_SUCCESS").touch()
    model = PolyleafRegressor(**SMALL, subsample=0.5).fit(tmp_path, ["price"])
    X, y = as_library(TABLE[["a", "i"]], "pyarrow"), as_library(TABLE[["price"]], "pyarrow")
    assert file_of(model, tmp_path) == file_of(PolyleafRegressor(**SMALL, subsample=0.5).fit(X, y), tmp_path)


def test_an_index_is_no_feature(tmp_path: Path) -> None:
    table = TABLE[["a", "b", "price"]].set_index(pd.Index(np.arange(N) ** 2, name="key"))
    table.to_parquet(tmp_path / "table.parquet")
    assert "key" in pq.read_schema(tmp_path / "table.parquet").names
    model = PolyleafRegressor(**SMALL).fit(tmp_path / "table.parquet", "price")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.predict(tmp_path / "table.parquet").shape == (N,)


def test_folders_may_name_columns(tmp_path: Path) -> None:
    data = tmp_path / "data"
    table = ARROW.select(["a", "hit", "price"])
    ds.write_dataset(table, data, partitioning=["hit"], partitioning_flavor="hive", format="parquet")
    model = PolyleafRegressor(**SMALL).fit(data, ["price"])
    assert model.feature_names_in_.tolist() == ["a", "hit"]
    in_order = table.take(np.argsort(table["hit"].to_numpy(), kind="stable"))
    plain = PolyleafRegressor(**SMALL).fit(in_order.select(["a", "hit"]), in_order.select(["price"]))
    assert file_of(model, tmp_path) == file_of(plain, tmp_path)


@pytest.mark.parametrize(
    "params", [{}, {"max_bins": 300}, {"max_bins": None}, {"categorical_features": ["b", "places"]}], ids=str
)
def test_odd_types(params: dict[str, Any], tmp_path: Path) -> None:
    """Nulls alone, yes or no with nulls, decimals, unsigned, half floats, integers as categories."""
    rng = np.random.default_rng(5)
    X = pa.table(
        {
            "none": pa.nulls(N),
            "b": pa.array([True, None] * (N // 2)),
            "decimal": pa.array(np.arange(N).astype(str)).cast(pa.decimal128(10, 2)),
            "u": pa.array(rng.integers(0, 2**40, N).astype(np.uint64)),
            "half": pa.array(rng.normal(size=N).astype(np.float16)),
            "places": pa.array(rng.integers(0, 5, N)).dictionary_encode(),
            "x": rng.normal(size=N),
        }
    )
    y = pa.table({"y": rng.normal(size=N) + X["x"].to_numpy()})
    plain = file_of(PolyleafRegressor(**SMALL, **params).fit(X, y), tmp_path)
    source = ds.dataset(X.append_column("y", y["y"]))
    assert file_of(PolyleafRegressor(**SMALL, **params).fit(source, ["y"]), tmp_path) == plain
    assert file_of(PolyleafRegressor(**SMALL, **params).fit(cut([X, y], [33])), tmp_path) == plain


def test_weights_beside_batches(tmp_path: Path) -> None:
    """They may be an array of all rows, where batches have none."""
    X, y, weight = TABLE[["a", "b"]], TABLE["price"], TABLE["w"]
    streamed = PolyleafRegressor(**SMALL).fit(cut([X, y], [33]), sample_weight=weight)
    assert file_of(streamed, tmp_path) == file_of(PolyleafRegressor(**SMALL).fit(X, y, weight), tmp_path)


def test_odd_names(tmp_path: Path) -> None:
    """A dot in a name is a dot."""
    table = ARROW.select(["a", "b", "price"]).rename_columns(["a.b", "ü [1]", "y.z"])
    model = PolyleafRegressor(**SMALL).fit(write(tmp_path, table), "y.z")
    assert model.feature_names_in_.tolist() == ["a.b", "ü [1]"]
