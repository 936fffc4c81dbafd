"""What cannot be exported is refused by name before anything is written, and no file is left half-written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.export import onnx_graph, to_onnx

pytest.importorskip("onnx", reason="onnx is not installed")
pytestmark = pytest.mark.cpu_only("an export does not depend on the device")

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
COMMON: dict[str, Any] = {"n_estimators": 3, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def model() -> PolyleafRegressor:
    return PolyleafRegressor(**COMMON).fit(X, X[:, :2])


@pytest.mark.parametrize(
    "estimator", [PolyleafRegressor(), PolyleafClassifier(), PolyleafMixed({"a": "regression"})]
)
def test_not_fitted(estimator: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        to_onnx(estimator, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (LinearRegression(), "LinearRegression"),
        (PolyleafRegressor, "the class PolyleafRegressor"),
        ("model.polyleaf", "str"),
        (None, "NoneType"),
    ],
)
def test_no_estimator_of_polyleaf(thing: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=f"fitted estimator of polyleaf; got {said}"):
        to_onnx(thing, tmp_path / "model.onnx")


def test_paths_that_cannot_be_written(model: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere.* the ONNX file"):
        to_onnx(model, tmp_path / "nowhere" / "model.onnx")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        to_onnx(model, tmp_path)
    for wrong in (3, None):
        with pytest.raises(TypeError, match=r"path must be str, os\.PathLike or a binary file object; got"):
            to_onnx(model, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the StringIO given is open for text"):
        to_onnx(model, io.StringIO())  # type: ignore[arg-type]
    with (tmp_path / "text").open("w") as file, pytest.raises(TypeError, match="text' is open for text"):
        to_onnx(model, file)  # type: ignore[arg-type]
    with (tmp_path / "text").open("rb") as file, pytest.raises(ValueError, match="not open for writing"):
        to_onnx(model, file)
    with pytest.raises(ValueError, match="text' is closed"):
        to_onnx(model, file)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_lets_nobody_write(model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(PermissionError, match="closed"):
        to_onnx(model, folder / "model.onnx")


def test_paths(model: Any, tmp_path: Path) -> None:
    """A str, a PathLike and a file object get the same bytes; a file of the same name is replaced."""
    file = io.BytesIO()
    to_onnx(model, file)
    target = tmp_path / "model.onnx"
    target.write_bytes(b"old")
    to_onnx(model, target)
    assert target.read_bytes() == file.getvalue()
    to_onnx(model, str(tmp_path / "other.onnx"))
    assert (tmp_path / "other.onnx").read_bytes() == file.getvalue()


def test_a_disk_that_fails_leaves_the_old_file(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model.onnx"
    target.write_bytes(b"old")

    def fails(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space left"):
        to_onnx(model, target)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("model.onnx", b"old")]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"input_type": "float16"}, ValueError, "input_type"),
        ({"opset": 15}, ValueError, r"opset must be int in \[16, "),
        ({"opset": 1000}, ValueError, "opset"),
        ({"opset": "17"}, TypeError, "opset"),
        ({"ml_opset": 4}, ValueError, "ml_opset must be 5 or 3; got 4"),
        ({"ml_opset": 2}, ValueError, r"ml_opset must be int in \[3, 5\]"),
        ({"ml_opset": 5.0}, TypeError, "ml_opset"),
        ({"leaves": 1}, TypeError, "leaves must be bool"),
        ({"raw_scores": "yes"}, TypeError, "raw_scores must be bool"),
        ({"as_matrix": None}, TypeError, "as_matrix must be bool"),
        ({"names": ["X"]}, TypeError, "names must be a mapping"),
        ({"names": {"Z": "a"}}, ValueError, "names has 'Z', but the inputs and outputs are 'X', 'targets'"),
        ({"names": {"X": ""}}, ValueError, "text that is not empty; got '' for 'X'"),
        ({"names": {"X": "a", "targets": "a"}}, ValueError, "two things the same: 'a', 'a'"),
        ({"names": {3: "a"}}, ValueError, "names has 3, but"),
    ],
)
def test_options(
    model: Any, tmp_path: Path, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        to_onnx(model, tmp_path / "model.onnx", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("most", [10, 2000])
def test_more_than_a_file_holds(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Seen by the values of the leaves alone, or when all of it is there."""
    assert 10 < model._forest.values.nbytes < 2000
    monkeypatch.setattr(onnx_graph, "_LARGEST_FILE", most)
    with pytest.raises(ValueError, match=r"a file of ONNX holds at most .* GB.*model\[:100\]"):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_integers_that_onnx_does_not_have(tmp_path: Path) -> None:
    y = np.where(X[:, 0] > 0, np.uint64(2**63 + 5), np.uint64(1))
    with pytest.raises(ValueError, match=f"the class {2**63 + 5} is beyond int64"):
        to_onnx(PolyleafClassifier(**COMMON).fit(X, y), tmp_path / "model.onnx")
    column = np.where(X[:, 0] > 0, 2**53 + 1, 2**53)[:, np.newaxis]
    model = PolyleafRegressor(categorical_features=[0], **COMMON).fit(column, X[:, 0])
    with pytest.raises(ValueError, match=f"column 0 has the category {2**53 + 1}, which float64"):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_two_names_for_one_column(tmp_path: Path) -> None:
    y = pd.DataFrame(X[:, :2], columns=["a b", "c"])
    model = PolyleafRegressor(**COMMON).fit(X, y)
    with pytest.raises(ValueError, match="names has two names for 'a_b': 'u' and 'v'"):
        to_onnx(model, tmp_path / "model.onnx", names={"a b": "u", "a_b": "v"})


def test_text_that_is_none(tmp_path: Path) -> None:
    model = PolyleafClassifier(**COMMON).fit(X, np.where(X[:, 0] > 0, "a", "\udc80"))
    with pytest.raises(ValueError, match="is no valid text: UTF-8"):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_scores_beyond_float32(tmp_path: Path) -> None:
    model = PolyleafRegressor(**COMMON).fit(X, X[:, :2] * 1e200)
    with pytest.raises(ValueError, match='input_type="float32" cannot hold the predictions'):
        to_onnx(model, tmp_path / "model.onnx", input_type="float32")
    assert not list(tmp_path.iterdir())


def test_sets_of_categories_in_the_older_operator(tmp_path: Path) -> None:
    codes = np.round(X)
    model = PolyleafRegressor(categorical_features=[1], **COMMON).fit(codes, codes[:, 1] ** 2)
    with pytest.raises(
        ValueError, match=r"ml_opset=3 does not go with splits by categories, such as those of column 1: "
    ):
        to_onnx(model, tmp_path / "model.onnx", ml_opset=3)
    assert not list(tmp_path.iterdir())


def test_without_the_package(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "polyleaf\[onnx\]"'):
        to_onnx(model, tmp_path / "model.onnx")


def test_the_package_is_imported_when_it_is_needed() -> None:
    code = "import sys, polyleaf.export; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
