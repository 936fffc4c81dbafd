"""What is wrong with a source is said by the name of the culprit, and nothing is left on disk."""

from __future__ import annotations

import datetime
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.data import memory
from polyleaf.data.parquet_source import ParquetSource
from polyleaf.data.wanted_columns import Wanted
from streams import ARROW, NUMBERS, SMALL, TABLE, Batches, N, cut, write

pl = pytest.importorskip("polars")

pytestmark = pytest.mark.cpu_only("what is said of input on any device")

X, Y = TABLE[["a", "b"]].to_numpy(), TABLE[["price"]].to_numpy()
PLAIN = ARROW.select(["a", "b", "price", "w"])


@pytest.fixture(autouse=True)
def no_files_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def refused(words: str, *arguments: Any, kind: type[Exception] = ValueError, **params: Any) -> None:
    model = PolyleafRegressor(**SMALL | params)
    with pytest.raises(kind, match=words):
        model.fit(*arguments)
    assert not hasattr(model, "n_features_in_")


def test_names_of_columns() -> None:
    source = ds.dataset(PLAIN)
    refused("y is missing: name a column of X", source)
    refused("y: X has no column 'cost'; it has 'a', 'b', 'price', 'w'", source, "cost")
    refused("y: X has no column 'cost'", source, ["price", "cost"])
    refused("sample_weight: X has no column 'v'", source, "price", "v")
    refused("y: column 'price' is asked for twice, here and in y", source, ["price", "price"])
    refused("sample_weight: column 'price' is asked for twice, here and in y", source, "price", "price")
    refused("X has no columns but 'price', 'w'", ds.dataset(PLAIN.select(["price", "w"])), "price", "w")
    refused("y: X has no column 'cost'", pl.LazyFrame({"a": [1.0], "b": [2.0]}), "cost")
    refused("y: its 3 rows|y has 3 row", source, np.zeros(3))
    with pytest.raises(ValueError, match="y: X has no column 'cost'"):
        PolyleafMixed({"price": "regression", "cost": "regression"}).fit(source)


def test_evaluation_sets() -> None:
    model = PolyleafRegressor(**SMALL)
    source = ds.dataset(PLAIN)
    with pytest.raises(ValueError, match=r"y of eval_set\[0\]: X of eval_set\[0\] has no column 'cost'"):
        model.fit(source, "price", eval_set=(source, "cost"))
    with pytest.raises(ValueError, match=r"y of eval_set\[0\]: column 'a' is a feature of the model"):
        model.fit(source, "price", eval_set=(source, "a"))
    with pytest.raises(ValueError, match=r"(?s)X of eval_set\[0\].*now missing:\n- w"):
        model.fit(source, "price", eval_set=(ds.dataset(PLAIN.drop_columns(["w"])), "price"))
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] is missing"):
        model.fit(source, "price", eval_set=(source, None))


def test_cells_that_are_no_numbers(tmp_path: Path) -> None:
    days = pa.array([datetime.date(2024, 1, 1)] * N)
    for name, column, words in [
        ("day", days, "X: column 'day' has dtype date32.*turn dates"),
        ("text", pa.array(["1.5"] * N), "X: column 'text' holds no numbers but text such as '1.5'.*auto"),
        ("deep", pa.array([[1.0]] * N), r"X: column 'deep' has dtype \w*list<.*must hold numbers"),
        (
            "late",
            pa.array([0] * (N - 1) + [2**53 + 1]),
            "X: column 'late' holds the integer 9007199254740993",
        ),
        ("inf", pa.array([0.0] * (N - 3) + [np.inf] * 3), f"X contains inf.* in row {N - 3}, column 'inf'"),
        (
            "size",
            pa.array(["s", "m"] * (N // 2))
            .dictionary_encode()
            .cast(pa.dictionary(pa.int8(), pa.string(), True)),
            "X: column 'size' holds categories with an order",
        ),
    ]:
        table = PLAIN.append_column(name, column)
        refused(words, ds.dataset(table), "price")
        if name != "size":
            refused(words, pl.from_arrow(table).lazy(), "price")
            refused(words.replace("X", "X of batch 0|X", 1), [(table.drop_columns(["price"]), Y)])
    many = PLAIN.append_column("id", pa.array([f"{i}" for i in range(N)]))
    categories = pa.array(np.arange(20_000) % 10_001).cast(pa.string())
    wide = pa.table({"id": categories, "y": np.zeros(20_000)})
    refused("X: column 'id' has 10,001 categories", ds.dataset(wide), "y", categorical_features=["id"])
    refused("no column of X has that name", ds.dataset(many), "price", categorical_features=["word"])


def test_paths(tmp_path: Path) -> None:
    refused(
        "X: there is no Parquet file '.*none.parquet'", tmp_path / "none.parquet", "y", kind=FileNotFoundError
    )
    refused(
        r"X: there is no Parquet file '.*\*.parquet'",
        str(tmp_path / "*.parquet"),
        "y",
        kind=FileNotFoundError,
    )
    (tmp_path / "empty").mkdir()
    refused("X: there is no Parquet file", tmp_path / "empty", "y", kind=FileNotFoundError)
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    refused("X: '.*text.parquet' cannot be read as Parquet", tmp_path / "text.parquet", "y")
    refused("X: a path must be str", _BytesPath(), "y", kind=TypeError)
    no_rows = tmp_path / "rows.parquet"
    pq.write_table(PLAIN.slice(0, 0), no_rows)
    refused(r"X: Found array with 0 sample\(s\)", no_rows, "price")


class _BytesPath:
    def __fspath__(self) -> bytes:
        return b"file"


def test_files_that_differ(tmp_path: Path) -> None:
    write(tmp_path, PLAIN, files=2)
    pq.write_table(PLAIN.drop_columns(["b"]), tmp_path / "part-2.parquet")
    refused("X: '.*part-2.parquet' has no column 'b', other than '.*part-0.parquet'", tmp_path, "price")
    pq.write_table(PLAIN.append_column("c", PLAIN["a"]), tmp_path / "part-2.parquet")
    refused("X: '.*part-2.parquet' has a column 'c' more", tmp_path, "price")
    text = PLAIN.set_column(1, "b", pa.array(["x"] * N))
    pq.write_table(text, tmp_path / "part-2.parquet")
    refused("X: .*files have columns of types that differ.*b", tmp_path, "price")
    twice = pa.table([PLAIN["a"], PLAIN["a"], PLAIN["price"]], names=["a", "a", "price"])
    refused("X: column 'a' is there more than once", ds.dataset(twice), "price")


def test_rows_that_are_not_there_any_more() -> None:
    source = ParquetSource(ds.dataset(PLAIN), Wanted("price"), "X")
    source.shape = (N + 1, 3)
    with pytest.raises(ValueError, match="X had 301 rows, and has 300 now: it changed while being read"):
        list(source.blocks([0, 1], {}))


# --- batches -----------------------------------------------------------------------------------------------


def test_what_can_be_gone_through_once() -> None:
    generator = ((X, Y) for _ in range(2))
    for once in (generator, iter([(X, Y)]), map(tuple, [(X, Y)])):
        refused(
            "can be gone through only once; .* whose __iter__ returns a new generator", once, kind=TypeError
        )
    next(generator)  # and nothing was taken from it


def test_batches_of_another_form() -> None:
    refused("X: there are no batches", Batches(lambda: iter(())))
    refused("X: batch 0 is ndarray; batches are tuples", Batches(lambda: iter([X])), kind=TypeError)
    refused("X: batch 1 is 1 elements; batches are", [(X, Y), (X,)], kind=TypeError)
    refused("X: batch 1 has 3 elements, but batch 0 has 2; all must have weights", [(X, Y), (X, Y, Y[:, 0])])
    refused("y is given twice: batch 0 of X has it; leave it out", [(X, Y)], Y)
    refused("y has 300 row|y .*300 .*600|600", [X, X], Y)
    refused("X: batch 0 is ndarray; batches are tuples", [X, X], None, kind=TypeError)
    refused("y names columns, but batch 0 of X is ndarray, and no frame", [X, X], "a", kind=TypeError)
    refused("y is given twice: batch 0 of X has it", [(X, Y)], "a")
    refused("X of batch 0 has no column 'c'; it has 'a', 'b'", [TABLE[["a", "b"]]], "c")
    refused("sample_weight is given twice: batch 0 of X has it", [(X, Y, np.ones(N))], None, np.ones(N))
    refused("y of batch 1 has 5 row.*but its X has 300", [(X, Y), (X, Y[:5])])
    refused("the weight of batch 0 has 5 row", [(X, Y, np.ones(5))])
    refused("X: Found array with 0 sample", [(X[:0], Y[:0])])
    refused("y of batch 0 is None", [(X, None)])


def test_batches_with_other_columns() -> None:
    frame = TABLE[["a", "b"]]
    refused("X of batch 1 has 1 columns, but that of batch 0 has 2", [(X, Y), (X[:, :1], Y)])
    refused(
        "X of batch 2 has 'b' as column 0, which is 'a'", [(frame, Y), (frame, Y), (frame[["b", "a"]], Y)]
    )
    refused("X of batch 1 has no column names, and that of batch 0 has some", [(frame, Y), (X, Y)])
    refused("X of batch 1 has its column names", [(X, Y), (frame, Y)])
    refused("y is of several kinds: array in one batch, and pandas frame", [(X, Y), (X, TABLE[["price"]])])
    refused("y: the batches do not fit together", [(X, Y), (X, np.hstack([Y, Y]))])
    refused("y: the batches do not fit together", [(X, TABLE[["price"]]), (X, TABLE[["cost"]])])
    words = pd.DataFrame({"a": TABLE["a"], "b": "red"})
    refused(
        "X of batch 1: column 'b' holds categories, but numbers in the batches before",
        [(frame, Y), (words, Y)],
        categorical_features="auto",
    )
    refused(
        "X of batch 1: column 'b' holds numbers, but categories in the batches before",
        [(words, Y), (frame, Y)],
        categorical_features="auto",
    )
    refused("X of batch 1: column 'b' holds no numbers but text such as 'red'", [(frame, Y), (words, Y)])
    infinite = X.copy()
    infinite[7, 1] = np.inf
    refused("X of batch 1 contains infinity.*row 7, column 1", [(X, Y), (infinite, Y)])


def test_targets_and_weights_at_fault_are_named_by_their_row_among_all() -> None:
    """Also where rows before them have no weight, or are in other batches."""
    weight, price = np.ones(N), np.abs(Y[:, 0])
    weight[:5], price[40] = 0.0, -1.0
    table = PLAIN.set_column(2, "price", pa.array(price)).set_column(3, "w", pa.array(weight))
    refused("y is -1.0 in row 40 of target", ds.dataset(table), "price", "w", objective="poisson")
    batches = [(X[some], price[some], weight[some]) for some in np.split(np.arange(N), [7, 30])]
    refused("y is -1.0 in row 40 of target", batches, objective="poisson")
    weight[40] = np.nan
    table = PLAIN.set_column(3, "w", pa.array(weight))
    refused("got nan in row 40", ds.dataset(table), "price", "w")


def test_an_error_in_the_batches_comes_through() -> None:
    def broken() -> Iterator[Any]:
        yield X, Y
        raise OSError("the disk is gone")

    refused("the disk is gone", Batches(broken), kind=OSError)


def test_lists_of_rows_are_no_batches() -> None:
    """Which have been tables ever since."""
    rows = [tuple(row) for row in X.tolist()]
    plain = PolyleafRegressor(**SMALL).fit(X, Y)
    assert np.array_equal(PolyleafRegressor(**SMALL).fit(rows, Y.tolist()).predict(rows), plain.predict(X))


# --- what is not installed, and what does not fit ----------------------------------------------------------


@pytest.mark.parametrize("source", ["file.parquet", pl.LazyFrame({"a": [1.0], "y": [2.0]})], ids=type)
def test_without_pyarrow(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    refused(
        r"needs pyarrow, which is not installed \(pip install 'polyleaf\[parquet\]'\)",
        source,
        "y",
        kind=ImportError,
    )


def test_batches_need_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pyarrow", "polars", "pandas")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("pyarrow", "polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    model = PolyleafRegressor(**SMALL).fit([(X[:100], Y[:100]), (X[100:], Y[100:])])
    assert model.predict([X[:5], X[5:]]).shape == (N, 1)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before y is read, and once it is known how many outputs there are."""
    monkeypatch.setattr(memory, "available", lambda: 1 << 10)
    refused(
        "X is too large for this machine: training takes .* KiB at least, and 1.0 KiB are available",
        ds.dataset(PLAIN),
        "price",
        kind=MemoryError,
    )
    large = memory.needs(N, len(NUMBERS), 1).peak
    monkeypatch.setattr(memory, "available", lambda: large)
    assert PolyleafRegressor(**SMALL).fit(ds.dataset(PLAIN), "price").n_features_in_ == 3
    classes = np.arange(N)
    with pytest.raises(MemoryError, match="X is too large"):
        PolyleafClassifier(**SMALL).fit(ds.dataset(PLAIN), classes)


def test_steps_that_polars_cannot_stream_are_named() -> None:
    frame = pl.from_arrow(PLAIN).lazy().with_columns(pl.col("a").map_batches(lambda column: column * 2))
    with pytest.warns(UserWarning, match="X: polars cannot stream all of the query: .* columnar-function"):
        PolyleafRegressor(**SMALL).fit(frame, "price")


def test_a_query_that_fails_leaves_nothing() -> None:
    frame = pl.from_arrow(PLAIN).lazy().with_columns((pl.col("a") * 1000).cast(pl.Int8))
    refused("conversion", frame, "price", kind=pl.exceptions.PolarsError)


def test_other_methods_say_what_they_take(tmp_path: Path) -> None:
    model = PolyleafRegressor(**SMALL).fit(cut([X, Y], [10]))
    for source in ("file.parquet", ds.dataset(PLAIN), pl.LazyFrame({"a": [1.0], "b": [1.0]}), [X, X]):
        with pytest.raises(ValueError, match=r"staged_predict\(\) does not go with an X read from.*n_rounds"):
            next(model.staged_predict(source))
    paths = Batches(lambda: iter([("file.parquet", Y)]))
    refused("X of batch 0: 'file.parquet' would have to be read from files", paths, kind=TypeError)
