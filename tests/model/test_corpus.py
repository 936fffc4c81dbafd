"""Files of every version load for ever, and predict the bits that they predicted when they were written.

A version's folder is written once, by `make_corpus.py`. Both readers are held against it: the library, and
`polyleaf.portable`, which is the format's executable specification.
"""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from make_corpus import FOLDER, arrays_of, kinds, predictions_of, read

import polyleaf
from forgery import forge
from polyleaf import load_model, portable
from polyleaf.model.page import FORMAT_VERSION

pytestmark = pytest.mark.cpu_only("files say nothing of a device")

FILES = sorted(FOLDER.glob("*/*.polyleaf"))
# Their predictions are NumPy's exponential, whose last bit is that of the version of NumPy.
LOG_LINK = ("poisson", "gamma", "tweedie")


def each_file() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


@cache
def tables_of(version: Path) -> dict[str, Any]:
    described = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    array = np.stack([read(column) for column in described["array"]["columns"]], axis=1)
    columns = [read(column) for column in described["frame"]["columns"]]
    return {"array": array, "frame": dict(zip(described["frame"]["names"], columns, strict=True))}


def case_of(path: Path) -> tuple[Any, dict[str, dict[str, Any]]]:
    """The table of a file, and what it predicts for it."""
    said = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    table = tables_of(path.parent)[said.pop("table")]
    return table, {m: {key: read(one) for key, one in of.items()} for m, of in said.items()}


def assert_same(found: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]], loss: str) -> None:
    assert list(found) == list(expected)
    for method, of_method in expected.items():
        assert list(found[method]) == list(of_method)
        for key, values in of_method.items():
            one = np.asarray(found[method][key])
            assert one.shape == values.shape, (method, key)
            assert one.dtype.kind == values.dtype.kind or {one.dtype.kind, values.dtype.kind} == {"U", "O"}
            if loss in LOG_LINK and method == "predict":
                np.testing.assert_array_max_ulp(one, values, maxulp=2)
            elif values.dtype.kind == "f":
                assert one.tobytes() == values.tobytes(), (method, key)
            else:
                np.testing.assert_array_equal(one, values)


@each_file()
def test_the_library_predicts_what_was_predicted(path):
    table, expected = case_of(path)
    model = load_model(path)
    X = pd.DataFrame(table) if isinstance(table, dict) else table
    assert_same(predictions_of(model, X), expected, model._loss_name)
    again = io.BytesIO()
    model.save_model(again)  # as this version writes it
    loaded = load_model(io.BytesIO(again.getvalue()))
    assert_same(predictions_of(loaded, X), expected, model._loss_name)


@each_file()
def test_the_portable_reader_predicts_what_was_predicted(path):
    table, expected = case_of(path)
    model = portable.load(path)
    found = {method: arrays_of(getattr(model, method)(table)) for method in expected}
    assert_same(found, expected, load_model(path)._loss_name)


@each_file()
def test_both_readers_say_the_same_of_a_model(path):
    library, model = load_model(path), portable.load(path)
    assert model.polyleaf_version == path.parent.name
    assert 1 <= model.format_version <= FORMAT_VERSION
    assert model.estimator == library._kind
    assert (model.n_features, model.n_outputs) == (library.n_features_in_, library.n_outputs_)
    assert (model.n_rounds, model.best_iteration) == (library.n_estimators_, library.best_iteration_)
    for ours, theirs in (("feature_names", "feature_names_in_"), ("target_names", "target_names_")):
        names = getattr(library, theirs, None)
        assert getattr(model, ours) == (None if names is None else tuple(names))
    np.testing.assert_equal(model.classes, getattr(library, "classes_", None))


def test_the_corpus_has_every_kind_and_is_small():
    """Of this version; earlier ones have what there was."""
    here = {path.stem for path in FILES if path.parent.name == polyleaf.__version__}
    assert here == set(kinds())
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < 300_000 * len(list(FOLDER.iterdir()))


def test_the_corpus_holds_what_it_is_for():
    """Rounds behind the best one, units that are not 1, members, sets of categories, sparse leaves."""
    of = {path.stem: load_model(path) for path in FILES}
    assert of["stopped"].best_iteration_ < of["stopped"].n_estimators_ - 1
    assert (of["large_targets"]._forest.unit != 1).sum() == 2
    assert len(of["bags"]._bags) == 3
    assert len(of["categories"]._forest.category_bits) > 0
    assert len(of["sparse_leaves"]._forest.value_output) > 0
    assert of["no_rounds"].n_estimators_ == 0
    assert of["one_output_per_tree"]._forest.trees_per_round == 3
    assert of["many_classes"].n_outputs_ > 16  # sums of the softmax go through all lanes, and on


@pytest.mark.parametrize("name", ["targets", "classes", "stopped"])
def test_files_of_format_version_1(name, tmp_path):
    """They have no arrays of categories; both readers take them."""
    (source,) = (path for path in FILES if path.stem == name and path.parent.name == "0.1.0")
    path = tmp_path / "model"
    path.write_bytes(source.read_bytes())

    def as_version_1(page):
        page["format_version"] = 1
        for entry in ("categories", "chosen"):
            page.pop(entry, None)
        for entry in ("names", "frame", "levels"):
            page["target"].pop(entry)

    forge(path, as_version_1)
    table, expected = case_of(source)
    assert portable.load(path).format_version == 1
    assert_same({"raw": {"all": portable.load(path).raw(table)}}, {"raw": expected["raw"]}, "")
    assert_same(predictions_of(load_model(path), table), expected, "")
