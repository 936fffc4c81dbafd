"""Folders of Parquet files as other programs leave them: the rows of all files, and no column misread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from streams import SMALL, file_of

pl = pytest.importorskip("polars")

pytestmark = pytest.mark.cpu_only("a streamed table is coded by the CPU")

N = 80
RNG = np.random.default_rng(2)
TABLE = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "y"])
HALVES = (TABLE[: N // 2], TABLE[N // 2 :])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rows"
    made.mkdir()
    return made


def same_as_table(source: Any, folder: Path, table: pd.DataFrame = TABLE, **params: Any) -> None:
    """Whether the model is that of the rows in memory."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    plain = PolyleafRegressor(**SMALL, **params).fit(arrow.drop_columns(["y"]), arrow.select(["y"]))
    streamed = PolyleafRegressor(**SMALL, **params).fit(source, ["y"])
    assert file_of(streamed, folder.parent) == file_of(plain, folder.parent)


def refused(words: str, source: Any, y: Any = "y", kind: type[Exception] = ValueError) -> None:
    with pytest.raises(kind, match=words):
        PolyleafRegressor(**SMALL).fit(source, y)


# --- an index of pandas ------------------------------------------------------------------------------------

INDEXES = {
    "a name": lambda half: half.set_index(pd.Index(half.index * 3, name="id")),
    "no name": lambda half: half.set_index(np.roll(np.arange(len(half)), 3)),
    "several levels": lambda half: half.set_index([half.index * 2, half.index * 3]),
    "a range": lambda half: half,
}


@pytest.mark.parametrize("first", INDEXES)
@pytest.mark.parametrize("second", INDEXES)
def test_an_index_is_no_feature(first: str, second: str, folder: Path) -> None:
    """Also where files have indices of their own, or some have none."""
    for number, (half, name) in enumerate(zip(HALVES, (first, second), strict=True)):
        INDEXES[name](half).to_parquet(folder / f"{number}.parquet")
    same_as_table(folder, folder)
    same_as_table(str(folder / "*.parquet"), folder)


def test_an_index_without_a_name_in_a_query(folder: Path) -> None:
    """polars takes it for a column like any other."""
    TABLE.set_index(np.roll(np.arange(N), 3)).to_parquet(folder / "0.parquet")
    query = pl.scan_parquet(folder / "0.parquet")
    assert "__index_level_0__" in query.collect_schema()
    model = PolyleafRegressor(**SMALL).fit(query, "y")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.score(query, "y") == model.score(folder, "y")


def test_an_index_may_be_y(folder: Path) -> None:
    TABLE[["a", "b"]].set_index(pd.Index(TABLE["y"])).to_parquet(folder / "0.parquet")
    same_as_table(folder, folder)


# --- folders -----------------------------------------------------------------------------------------------


def test_other_files_do_not_matter(folder: Path) -> None:
    """Whatever they are called, and what somebody is still writing."""
    for number, half in enumerate(HALVES):
        half.to_parquet(folder / f"m{number}.parquet", index=False)
    (folder / "README.md").write_text("rows")
    (folder / "a.model").write_bytes(b"model")
    (folder / "_SUCCESS").touch()
    for hidden in ("_temporary", ".cache"):
        (folder / hidden).mkdir()
        (folder / hidden / "x.parquet").write_bytes(b"half a file")
    same_as_table(folder, folder)


def test_folders_are_columns(folder: Path) -> None:
    """Below the folder, and below the part of a pattern that has no wildcards."""
    table = TABLE.assign(year=np.int32(2023))
    table.loc[N // 2 :, "year"] = np.int32(2024)
    pq.write_to_dataset(
        pa.Table.from_pandas(table, preserve_index=False),
        folder,
        partition_cols=["year"],
        basename_template="{i}.parquet",
    )
    for source in (folder, str(folder / "*" / "*.parquet"), str(folder / "year=*" / "*.parquet")):
        same_as_table(source, folder, table)
    model = PolyleafRegressor(**SMALL).fit(str(folder / "year=2023" / "*.parquet"), "y")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    years = PolyleafClassifier(**SMALL).fit(folder, "year")
    assert years.classes_.tolist() == [2023, 2024]
    with pytest.raises(ValueError, match=r"(?s)now missing:.*- year"):
        PolyleafRegressor(**SMALL).fit(folder, "y").predict(folder / "year=2023")


@pytest.mark.parametrize("value", ["1", "x"])
def test_a_column_of_the_files_and_of_the_folders(value: str, folder: Path) -> None:
    """Of which neither would be the one that counts."""
    (folder / f"a={value}").mkdir()
    TABLE.to_parquet(folder / f"a={value}" / "0.parquet", index=False)
    refused(rf"X: column 'a' is in '.*0.parquet', and in the name of a folder, 'a={value}', too", folder)


def test_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLE.to_parquet(folder / "0.parquet", index=False)
    monkeypatch.setenv("HOME", str(folder))
    same_as_table("~/0.parquet", folder)


def test_paths_that_are_something_else(folder: Path) -> None:
    TABLE.to_parquet(folder / "0.parquet", index=False)
    path = folder / "0.parquet"
    refused("not on this machine, pass a pyarrow.dataset", "s3://b/x.parquet", kind=FileNotFoundError)
    refused(r"X is a list of text such as .*0.parquet.*pass a folder", [str(path)] * 2, kind=TypeError)
    refused(r"X is a list of text such as .*pass a folder", [path], kind=TypeError)
    refused("X is a ParquetFile of pyarrow; pass a table", pq.ParquetFile(path), kind=TypeError)
    refused("X is a .*Scanner of pyarrow", ds.dataset(path).scanner(), kind=TypeError)
    refused(
        "X is a RecordBatchReader: it can be gone", ds.dataset(path).scanner().to_reader(), kind=TypeError
    )
    (folder / "1.parquet").touch()
    refused("X: .*1.parquet.*size is 0 bytes", folder)


# --- files that differ -------------------------------------------------------------------------------------


def test_columns_in_another_order(folder: Path) -> None:
    HALVES[0].to_parquet(folder / "0.parquet", index=False)
    HALVES[1][["y", "b", "a"]].to_parquet(folder / "1.parquet", index=False)
    same_as_table(folder, folder)


def test_files_without_rows(folder: Path) -> None:
    """Their columns may have no type."""
    HALVES[0].to_parquet(folder / "0.parquet", index=False)
    TABLE[:0].astype(object).to_parquet(folder / "1.parquet", index=False)
    TABLE[:0].to_parquet(folder / "2.parquet", index=False)
    HALVES[1].to_parquet(folder / "3.parquet", index=False)
    same_as_table(folder, folder)


def test_types_of_numbers(folder: Path) -> None:
    rounded = TABLE.assign(a=np.round(TABLE["a"]))
    rounded[: N // 2].astype({"a": np.int16, "y": np.float64}).to_parquet(folder / "0.parquet", index=False)
    rounded[N // 2 :].to_parquet(folder / "1.parquet", index=False)
    same_as_table(folder, folder, rounded)


def test_integers_that_floats_do_not_hold(folder: Path) -> None:
    HALVES[0].assign(a=2**60 + 1).to_parquet(folder / "0.parquet", index=False)
    HALVES[1].to_parquet(folder / "1.parquet", index=False)
    refused(r"X: .*'a'.* cannot be read: Integer value 1152921504606846977", folder)


def test_dictionaries_and_text(folder: Path) -> None:
    """A column that is a dictionary in some files is text, which has to be named or taken by "auto"."""
    words = TABLE.assign(word=np.array(["u", "v", "w"])[np.arange(N) % 3])
    words[: N // 2].astype({"word": "category"}).to_parquet(folder / "0.parquet", index=False)
    words[N // 2 :].to_parquet(folder / "1.parquet", index=False)
    same_as_table(folder, folder, words, categorical_features="auto")
    same_as_table(folder, folder, words, categorical_features=["word"])
    refused("X: column 'word' holds no numbers but text such as 'u'", folder)
    model = PolyleafClassifier(**SMALL).fit(folder, "word")
    assert model.classes_.tolist() == ["u", "v", "w"]


def test_an_enum_of_polars_has_no_order(folder: Path) -> None:
    frame = pl.from_pandas(TABLE).with_columns(
        kind=pl.Series(["q", "p"] * (N // 2), dtype=pl.Enum(["q", "p"]))
    )
    frame.write_parquet(folder / "0.parquet")
    by_path = PolyleafRegressor(**SMALL).fit(folder, "y")
    by_query = PolyleafRegressor(**SMALL).fit(pl.scan_parquet(folder / "0.parquet"), "y")
    in_memory = PolyleafRegressor(**SMALL).fit(frame.drop("y"), frame["y"])
    for model in (by_path, by_query):
        assert np.array_equal(model.predict(folder), in_memory.predict(frame.drop("y")))


# --- columns that cannot be used ---------------------------------------------------------------------------

NESTED = {
    "list": pa.array([[1.0]] * N),
    "fixed list": pa.array([[1.0, 2.0]] * N, pa.list_(pa.float64(), 2)),
    "struct": pa.array([{"p": 1.0}] * N),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("lazy", [False, True])
def test_nested_columns(name: str, lazy: bool) -> None:
    """As a feature, as categories, and as y, of which polars would make a matrix."""
    table = pa.Table.from_pandas(TABLE, preserve_index=False).append_column("deep", NESTED[name])
    source = pl.from_arrow(table).lazy() if lazy else ds.dataset(table)
    refused("X: column 'deep' has dtype .*; it must hold numbers", source)
    with pytest.raises(ValueError, match=r"X: column 'deep' has dtype .*; categories are text or numbers"):
        PolyleafRegressor(**SMALL, categorical_features=["deep"]).fit(source, "y")
    for y in ("deep", ["deep"]):
        for make in (PolyleafRegressor, PolyleafClassifier):
            with pytest.raises(ValueError, match=r"y.* has dtype (List|Array|Struct).*one number or label"):
                make(**SMALL).fit(source, y)


def test_columns_that_a_query_cannot_write() -> None:
    query = pl.from_pandas(TABLE).lazy()
    refused("X: column 'd' has dtype Int128", query.with_columns(d=pl.lit(5, dtype=pl.Int128)))
    objects = pl.DataFrame({"a": [object()] * 4, "y": [1.0, 2.0, 3.0, 4.0]}).lazy()
    refused("X: column 'a' has dtype Object", objects)
    refused("y: X has no column 'y'; it has none", pl.LazyFrame())


# --- names beside tables in memory -------------------------------------------------------------------------


def test_names_are_for_sources() -> None:
    arrow = pa.Table.from_pandas(TABLE, preserve_index=False)
    for table in (TABLE, arrow, pl.from_pandas(TABLE), TABLE.to_numpy()):
        refused("y is 'y': columns are named where X is read from files", table)
        with pytest.raises(ValueError, match="sample_weight is 'b': columns are named"):
            PolyleafRegressor(**SMALL).fit(table, TABLE["y"], "b")
    refused(r"y is \['y', 'b'\]: columns are named", TABLE, ["y", "b"])
    model = PolyleafRegressor(**SMALL).fit(TABLE[["a", "b"]], TABLE["y"])
    with pytest.raises(ValueError, match="y is 'y': columns are named"):
        model.score(TABLE[["a", "b"]], "y")
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] is 'y': columns are named where X of eval_set"):
        model.fit(TABLE[["a", "b"]], TABLE["y"], eval_set=(TABLE[["a", "b"]], "y"))
    labels = ["a", "b"] * (N // 2)  # as many as rows: classes
    assert PolyleafClassifier(**SMALL).fit(TABLE, labels).classes_.tolist() == ["a", "b"]


def test_odd_things_for_batches() -> None:
    arrow = pa.Table.from_pandas(TABLE, preserve_index=False)
    refused("X: batch 0 is dict; batches are tuples", [{"X": TABLE, "y": TABLE["y"]}], None, kind=TypeError)
    refused("y names columns, but batch 0 of X is dict, and no frame", [{"a": [1.0]}], kind=TypeError)
    refused("got a polars LazyFrame", [pl.from_pandas(TABLE).lazy()], kind=TypeError)
    refused("batch 0 of X is InMemoryDataset, and no frame", [ds.dataset(arrow)], kind=TypeError)

    class Once:
        def __init__(self) -> None:
            self._batches = iter([arrow])

        def __iter__(self) -> Any:
            return self._batches

    once = Once()
    PolyleafRegressor(**SMALL).fit(once, "y")
    refused("X: there are no batches .any more, if it was gone through before", once)
