"""Training on a streamed table: all that it can do, from the same bits, without holding the table."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from pairs import FEATURES as FEATURES_OF_PAIRS
from pairs import KINDS as KINDS_OF_TARGETS
from pairs import case_of, fitted, refusals
from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import Checkpoint
from streams import (
    ARROW,
    CATEGORIES,
    FEATURES,
    NUMBERS,
    SMALL,
    TABLE,
    Batches,
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


def test_going_on(tmp_path: Path) -> None:
    """From a model, and from a checkpoint, which a table in memory may have written."""
    columns = [*FEATURES, "price"]
    folder = write(tmp_path, ARROW.select([*columns, "w"]))
    X, y = as_library(TABLE[FEATURES], "pyarrow"), as_library(TABLE[["price"]], "pyarrow")
    weight = TABLE["w"]
    params = SMALL | {"categorical_features": "auto", "n_estimators": 6}
    whole = PolyleafRegressor(**params).fit(X, y, weight)
    first = PolyleafRegressor(**params | {"n_estimators": 3}).fit(folder, ["price"], "w")
    more = PolyleafRegressor(**params | {"n_estimators": 3}).fit(folder, ["price"], "w", init_model=first)
    assert np.array_equal(more.predict(X), whole.predict(X))
    first.set_params(warm_start=True, n_estimators=6).fit(folder, ["price"], "w")
    assert np.array_equal(first.predict(X), whole.predict(X))
    written = {}
    for name, arguments in {"plain": (X, y, weight), "streamed": (folder, ["price"], "w")}.items():
        path = tmp_path / f"{name}.checkpoint"
        callbacks = [Checkpoint(path)]
        PolyleafRegressor(**params | {"n_estimators": 3}, callbacks=callbacks).fit(*arguments)
        written[name] = path
    assert written["plain"].read_bytes() == written["streamed"].read_bytes()
    for path in written.values():
        for arguments in ((folder, ["price"], "w"), (X, y, weight)):
            resumed = PolyleafRegressor(**params).fit(*arguments, resume=path)
            assert np.array_equal(resumed.predict(X), whole.predict(X))
    other = ARROW.select(columns).slice(1)
    with pytest.raises(ValueError, match="resume: the checkpoint is of a run on other data: X had shape"):
        PolyleafRegressor(**params).fit(ds.dataset(other), ["price"], resume=written["streamed"])


def test_going_on_with_sparse_labels() -> None:
    X = TABLE[NUMBERS].astype(float).to_numpy()
    y = scipy.sparse.csr_array(TABLE[["hit", "hot"]].to_numpy())
    params = SMALL | {"objective": "clipped_squared_error", "sparse_leaves": 1}
    first = PolyleafClassifier(**params).fit(X, y)
    streamed = PolyleafClassifier(**params).fit(cut([X, y], [100]), init_model=first)
    plain = PolyleafClassifier(**params).fit(X, y, init_model=first)
    assert np.array_equal(streamed.decision_function(X), plain.decision_function(X))


def test_evaluation_sets(tmp_path: Path) -> None:
    """As pairs of a source and names, and batches by themselves; other columns do not matter."""
    folder = write(tmp_path)
    X, y = as_library(TABLE[FEATURES], "pyarrow"), as_library(TABLE[["price", "cost"]], "pyarrow")
    params = SMALL | {"categorical_features": "auto"}
    plain = PolyleafRegressor(**params).fit(X, y, eval_set=(X, y)).evals_result_["validation_0"]
    batches = cut([X, y], [5, 100])
    sets = {
        "files": (folder, ["price", "cost"]),
        "lazy": (pl.scan_parquet(folder / "*.parquet"), ["price", "cost"]),
        "batches": batches,
        "pair": (batches, None),
    }
    model = PolyleafRegressor(**params).fit(X, y, eval_set=sets)
    assert all(values == plain for values in model.evals_result_.values())
    alone = PolyleafRegressor(**params).fit(batches, eval_set=batches)
    assert alone.evals_result_["validation_0"] == plain
    weighted = PolyleafRegressor(**params).fit(X, y, eval_set=(X, y), eval_sample_weight=TABLE["w"])
    named = PolyleafRegressor(**params).fit(
        X, y, eval_set=(folder, ["price", "cost"]), eval_sample_weight="w"
    )
    assert named.evals_result_ == weighted.evals_result_


def test_all_columns_may_be_categories() -> None:
    assert (
        PolyleafRegressor(**SMALL).fit(cut([TABLE[CATEGORIES[1:]], TABLE["price"]], [9])).n_features_in_ == 1
    )


@pytest.mark.parametrize("kind", ["files", "batches"])
def test_the_table_is_never_in_memory(kind: str, tmp_path: Path) -> None:
    """What NumPy holds at its peak is a small part of it; codes are a byte a cell, and the core's."""
    n_rows, n_columns, n_parts = 20_000, 60, 3 if kind == "files" else 10

    def part(number: int) -> tuple[Any, Any]:
        X = np.random.default_rng(number).normal(size=(n_rows // n_parts, n_columns))
        return X, X[:, :2].sum(axis=1)

    source: Any = Batches(lambda: map(part, range(n_parts)))
    y = None
    if kind == "files":
        source, y = tmp_path / "data", "y"
        source.mkdir()
        for number in range(n_parts):
            X, target = part(number)
            columns = {f"x{j}": X[:, j] for j in range(n_columns)} | {"y": target}
            pq.write_table(pa.table(columns), source / f"{number}.parquet")
    model = PolyleafRegressor(**SMALL)
    tracemalloc.start()
    try:
        model.fit(source, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.n_features_in_ == n_columns
    assert peak < n_rows * n_columns * 8 / 3


@pytest.mark.parametrize(
    ("kind", "feature"),
    [
        (kind, name)
        for kind in KINDS_OF_TARGETS
        for name in FEATURES_OF_PAIRS
        if kind in FEATURES_OF_PAIRS[name].kinds and not refusals(kind, name)
    ],
)
def test_every_feature_of_training(kind: str, feature: str, tmp_path: Path) -> None:
    """Sampling, sketches, constraints, losses, weights: none looks at where rows came from."""
    case = case_of(kind, feature)
    case.params["n_estimators"] = 3
    parts = [case.X, case.y] if case.sample_weight is None else [case.X, case.y, case.sample_weight]
    batches = cut(parts, [7, 150], case.X.shape[0])
    streamed = replace(case, X=batches, y=None, sample_weight=None)
    assert file_of(fitted(streamed), tmp_path) == file_of(fitted(case), tmp_path)
