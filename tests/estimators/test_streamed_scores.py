"""Scores, leaves and raw scores of a source are those of the table in memory, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from polyleaf import ConformalIntervals, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.params.combinations import Refused
from streams import ARROW, FEATURES, SMALL, TABLE, Batches, N, cut, write

pl = pytest.importorskip("polars")

AUTO = SMALL | {"categorical_features": "auto"}
X = TABLE[FEATURES]
GROUPS = {
    "price": "regression",
    "grade": "multiclass",
    "labels": {"kind": "multilabel", "columns": ["hit", "hot"]},
}
# Estimator and columns of y; some of their cells are missing.
PROBLEMS: dict[str, tuple[Any, Any]] = {
    "one target": (PolyleafRegressor(**AUTO), "price"),
    "targets": (PolyleafRegressor(**AUTO), ["price", "cost"]),
    "quantiles": (PolyleafRegressor(**AUTO, objective="quantile", quantile_levels=[0.2, 0.8]), ["cost"]),
    "classes": (PolyleafClassifier(**AUTO), "grade"),
    "two classes": (PolyleafClassifier(**AUTO), "hit"),
    "labels": (PolyleafClassifier(**AUTO), ["hit", "hot"]),
    "mixed": (PolyleafMixed(GROUPS, **AUTO), ["price", "grade", "hit", "hot"]),
}
KINDS = ("path", "pattern", "dataset", "lazy frame", "tuples", "generator", "frames", "record batches")


def fitted(name: str) -> tuple[Any, Any]:
    model, y = PROBLEMS[name]
    return type(model)(**model.get_params()).fit(X, TABLE[y], TABLE["w"]), y


def source(kind: str, folder: Path, y: Any, weight: str | None) -> tuple[Any, ...]:
    """The rows as a source, and what names y and the weights."""
    targets = [y] if isinstance(y, str) else list(y)
    columns = [*FEATURES, *targets, *([] if weight is None else [weight])]
    if kind in ("tuples", "generator"):
        beside = [] if weight is None else [TABLE[weight]]
        batches = cut([X, TABLE[y], *beside], [40, 41, 41, 200])
        return (batches if kind == "tuples" else iter(batches),)
    if kind == "frames":
        return [TABLE[columns][:70], TABLE[columns][70:]], y, weight
    if kind == "record batches":
        return Batches(lambda: iter(ARROW.select(columns).to_batches(max_chunksize=90))), y, weight
    write(folder, ARROW.select([*targets, *FEATURES[::-1], "w"]))
    found = {
        "path": lambda: folder,
        "pattern": lambda: str(folder / "*.parquet"),
        "dataset": lambda: ds.dataset(folder),
        "lazy frame": lambda: pl.scan_parquet(folder / "*.parquet"),
    }[kind]()
    return found, y, weight


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_scores(name: str, kind: str, tmp_path: Path) -> None:
    model, y = fitted(name)
    for weight in (None, "w"):
        expected = model.score(X, TABLE[y], None if weight is None else TABLE[weight])
        assert model.score(*source(kind, tmp_path, y, weight)) == expected


def test_y_and_weights_beside_a_source(tmp_path: Path) -> None:
    """As arrays of all rows, where a source has none of its own."""
    model, y = fitted("targets")
    expected = model.score(X, TABLE[y], TABLE["w"])
    folder = write(tmp_path, ARROW.select([*FEATURES, "w"]))
    assert model.score(folder, TABLE[y], "w") == expected
    assert model.score(folder, TABLE[y].to_numpy(), TABLE["w"].to_numpy()) == expected
    parts = [X[:100], X[100:]]
    assert model.score(parts, TABLE[y], TABLE["w"]) == expected
    assert model.score([(one, TABLE[y].loc[one.index]) for one in parts], None, TABLE["w"]) == expected


def test_a_mixed_model_knows_its_columns(tmp_path: Path) -> None:
    """Also one that comes from a file; none needs to be named."""
    model, y = fitted("mixed")
    folder = write(tmp_path, ARROW)
    model.save_model(tmp_path / "model")
    expected = model.score(X, TABLE[y])
    for one in (model, load_model(tmp_path / "model")):
        assert one.score(folder) == expected
        assert one.score(pl.scan_parquet(folder / "*.parquet"), sample_weight="w") == one.score(
            X, TABLE[y], TABLE["w"]
        )


def test_sparse_labels() -> None:
    numbers = np.nan_to_num(TABLE[["a", "b", "c"]].to_numpy(float))
    labels = TABLE[["hit", "hot"]].to_numpy()
    sparse = scipy.sparse.csr_array(labels)
    model = PolyleafClassifier(**SMALL, objective="clipped_squared_error", sparse_leaves=1).fit(
        numbers, sparse
    )
    for y in (labels, sparse):
        batches = [(numbers[:50], y[:50]), (numbers[50:], y[50:])]
        assert model.score(batches) == model.score(numbers, y)


@pytest.mark.parametrize("kind", KINDS[:6])  # to predict, frames have the columns of fit alone
@pytest.mark.parametrize("name", PROBLEMS)
def test_leaves_and_raw_scores(name: str, kind: str, tmp_path: Path) -> None:
    model, y = fitted(name)
    out = tmp_path / "out"

    def rows() -> Any:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        return source(kind, folder, y, None)[0]

    for method in ("apply", "decision_function"):
        if not hasattr(model, method):
            continue
        call = getattr(model, method)
        expected = call(X)
        found = call(rows())
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(call(rows(), n_rounds=2), call(X, n_rounds=2))
        assert call(rows(), out=out) is None
        written = pq.read_table(out)
        np.testing.assert_array_equal(written.to_pandas().to_numpy().reshape(expected.shape), expected)
        names = {
            "apply": ["tree_0", "tree_1", "tree_2"],
            "decision_function": {
                "classes": ["bad", "fair", "good"],
                "two classes": ["1"],
                "labels": ["hit", "hot"],
            }.get(name),
        }
        assert written.column_names == names[method]
        call(X, out=out)
        assert pq.read_table(out).equals(written)


def test_scores_of_two_classes_by_softmax(tmp_path: Path) -> None:
    """One column, too: what is between the two."""
    model = PolyleafClassifier(**AUTO, objective="cross_entropy").fit(X, TABLE["hit"])
    assert model.decision_function(X).shape == (N,)
    model.decision_function([X[:9], X[9:]], out=tmp_path / "out")
    written = pq.read_table(tmp_path / "out")
    assert written.column_names == ["1"]
    np.testing.assert_array_equal(written["1"], model.decision_function(X))


def test_intervals(tmp_path: Path) -> None:
    model, y = fitted("targets")
    plain = ConformalIntervals(model).calibrate(X, TABLE[y])
    folder = write(tmp_path, ARROW)
    found = ConformalIntervals(model).calibrate(folder, y)
    np.testing.assert_array_equal(found.margin_, plain.margin_)
    np.testing.assert_array_equal(found.predict(folder), plain.predict(X))
    np.testing.assert_array_equal(
        ConformalIntervals(model).calibrate(cut([X, TABLE[y]], [50])).margin_, plain.margin_
    )


# --- errors ------------------------------------------------------------------------------------------------


def test_stages_are_refused() -> None:
    """By every method that has them, before the first stage is asked for."""
    rows = [X[:9], X[9:]]
    for name in ("targets", "classes", "mixed"):
        with pytest.raises(Refused, match=r"predict\(X, n_rounds=...\) gives some"):
            fitted(name)[0].staged_predict(rows)
    with pytest.raises(Refused, match="every stage would read all rows once more"):
        fitted("classes")[0].staged_predict_proba(rows)


def test_what_is_wrong_with_y(tmp_path: Path) -> None:
    model, _ = fitted("targets")
    folder = write(tmp_path, ARROW)
    frames = [TABLE[[*FEATURES, "price", "cost"]]]
    tuples = [(X, TABLE[["price", "cost"]])]
    for arguments, kind, words in [
        ((folder,), ValueError, "y is missing: name a column of X"),
        ((folder, "nothing"), ValueError, "y: X has no column 'nothing'"),
        ((folder, ["price", "a"]), ValueError, "y: column 'a' is a feature of the model"),
        (
            (folder, ["price", "cost"], "price"),
            ValueError,
            "sample_weight: column 'price' is asked",
        ),
        ((folder, ["price", "cost"], "nothing"), ValueError, "sample_weight: X has no column 'nothing'"),
        ((folder, TABLE[["price", "cost"]][:9]), ValueError, "y.* 9 "),
        ((folder, ["cost", "price"]), ValueError, "y"),
        ((frames,), TypeError, "X: batch 0 is DataFrame; batches are tuples"),
        ((frames, ["price", "nothing"]), ValueError, "y: X of batch 0 has no column 'nothing'"),
        ((frames, ["price", "cost"], "w"), ValueError, "sample_weight: X of batch 0 has no column 'w'"),
        ((tuples, ["price", "cost"]), ValueError, "y is given twice: batch 0 of X has it"),
        ((tuples, TABLE[["price", "cost"]]), ValueError, "y is given twice: batch 0 of X has it"),
        ((tuples, None, "w"), ValueError, "sample_weight names a column, but batch 0 of X is no frame"),
        ((iter(()),), ValueError, "X: there are no batches"),
        (([(X, TABLE["price"][:7])],), ValueError, r"y of batch 0 has 7 row\(s\), but its X has 300"),
    ]:
        with pytest.raises(kind, match=words):
            model.score(*arguments)
    with pytest.raises(ValueError, match=r"(?s)now missing:.*- a"):
        model.score(ds.dataset(ARROW.drop_columns(["a"])), ["price", "cost"])
    with pytest.raises(TypeError, match="needs y"):
        model.score(X)


def test_without_rows() -> None:
    model, y = fitted("classes")
    none = pa.Table.from_pandas(TABLE[[*FEATURES, y]][:0])
    assert model.decision_function(ds.dataset(none)).shape == (0, 3)
    assert model.apply(ds.dataset(none)).shape == (0, 3)
