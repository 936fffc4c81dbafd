"""A page is one file that asks for nothing, small, safe whatever things are called, and written whole."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reported import EVIL, FEATURES, TARGETS, data_of, fitted, rows, unfitted
from sklearn.exceptions import NotFittedError

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor
from polyleaf.report.embedded import as_json, coded, plain

pytestmark = pytest.mark.cpu_only("pages are written on the host")

TEST = rows(1)
X, Y = TEST[FEATURES], TEST[["power", "cost"]]


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._in: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self.texts:
            self._in = tag
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in is not None:
            self.texts[self._in][-1] += data


@pytest.fixture(scope="module")
def model() -> PolyleafRegressor:
    return fitted("numbers")


def test_nothing_is_asked_for(model: PolyleafRegressor) -> None:
    page = model.report(X, Y)
    assert page is not None
    elements = Elements(page)
    policy = next(one["content"] for tag, one in elements.found if one.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    _, script = elements.texts["script"]
    for text in (script, *elements.texts["style"]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    for _, attributes in elements.found:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in ("src", "href"):
                assert value is not None
                assert value.startswith(("#", "data:"))
    without_namespace = script.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?://|innerHTML|outerHTML|insertAdjacent|eval\(|fetch\(|XMLHttp", without_namespace
    )
    assert data_of(page)


def test_controls_have_labels(model: PolyleafRegressor) -> None:
    elements = Elements(str(model.report(X, Y)))
    ids = {one["id"] for _, one in elements.found if "id" in one}
    sections = [one for tag, one in elements.found if tag == "section"]
    assert len(sections) == 12
    assert all(one["aria-labelledby"] in ids for one in sections)
    assert ("html", {"lang": "en"}) in elements.found


@pytest.mark.parametrize("name", [EVIL, "<!--", "a\u2028b", "&lt;b&gt;", "{{script}}", "'\"`"])
def test_names_are_text(name: str, tmp_path: Path) -> None:
    """Of columns, targets, categories, classes, sets and titles; the page is the same but for its data."""
    table = rows()
    frame = pd.DataFrame({name: table["speed"], "b": np.where(table["site"] == "north", name, "x")})
    y = np.where(table["grade"] == "a", name, table["grade"])
    model = PolyleafClassifier(n_estimators=3, categorical_features=["b"])
    model.fit(frame, pd.Series(y, name=name), eval_set={name: (frame, y)})
    page = model.report(frame, y, title=name)
    assert page is not None
    model.report(frame, y, tmp_path / "report.html", title=name)
    plain_page = fitted("classes").report(X, TEST["grade"])
    assert plain_page is not None
    expected = [tag for tag, _ in Elements(plain_page).found]
    assert [tag for tag, _ in Elements(page).found] == expected
    data = data_of(page)
    assert data["features"][0] == name
    assert data["title"] == name
    assert name in [one["name"] for one in data["outputs"]]
    assert Elements(page).texts["script"][1] == Elements(plain_page).texts["script"][1]


def test_half_a_character_is_written_as_a_question_mark(model: PolyleafRegressor, tmp_path: Path) -> None:
    """A name from a broken file may have one; UTF-8 has no place for it."""
    model.report(X, Y, tmp_path / "report.html", title="a\ud800b")
    assert "<title>a?b</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_json_holds_what_it_is_given() -> None:
    assert as_json({"a": "</script>&\u2029"}) == '{"a":"\\u003c/script\\u003e\\u0026\\u2029"}'
    assert plain([np.nan, np.inf, 1.0, 0.1234567, np.int64(3), True, None]) == [
        None, None, 1, 0.12346, 3, True, None
    ]  # fmt: skip
    codes = base64.b64decode(coded(np.array([0.0, np.nan, 1.0, 0.5]))["bytes"])
    assert list(codes) == [0, 255, 254, 127]
    assert list(base64.b64decode(coded(np.array([-1e308, 1e308]))["bytes"])) == [0, 254]
    assert list(base64.b64decode(coded(np.array([2.0, 2.0]))["bytes"])) == [0, 0]


def test_fifty_features_and_a_hundred_outputs_are_small() -> None:
    """At most 5 MB are asked for; names of 60 characters count."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1200, 50)), columns=[f"{j:02d}" + "f" * 58 for j in range(50)])
    mix = rng.normal(size=(50, 100)) * (rng.random((50, 100)) < 0.2)
    targets = pd.DataFrame(table.to_numpy() @ mix, columns=[f"{j:02d}" + "t" * 58 for j in range(100)])
    model = PolyleafRegressor(n_estimators=10, max_depth=4).fit(table, targets)
    page = model.report(table, targets)
    assert page is not None
    assert len(page.encode()) < 1.5e6
    labels = PolyleafClassifier(n_estimators=4, max_depth=4).fit(table, (targets > 0.5).astype(int))
    page = labels.report(table, (targets > 0.5).astype(int))
    assert page is not None
    assert len(page.encode()) < 1.5e6


# --- what cannot be --------------------------------------------------------------------------------------


def test_paths_that_cannot_be_written_are_refused_first(model: PolyleafRegressor, tmp_path: Path) -> None:
    wrong = np.zeros((3, 99))  # would be refused, too, but later
    with pytest.raises(FileNotFoundError, match="to save the report in"):
        model.report(wrong, Y, tmp_path / "nowhere" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.report(wrong, Y, tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="is a FIFO"):
            model.report(wrong, Y, tmp_path / "pipe")
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike"):
        model.report(wrong, Y, b"report.html")  # type: ignore[arg-type]


def test_a_report_that_fails_leaves_the_old_one(model: PolyleafRegressor, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="column"):
        model.report(X, Y[["power"]], path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]
    model.report(X, Y, path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_bad_input_is_named(model: PolyleafRegressor) -> None:
    with pytest.raises(NotFittedError):
        unfitted("numbers").report(X, Y)
    with pytest.raises(TypeError, match="needs y"):
        model.report(X, None)
    with pytest.raises(ValueError, match="no output 'wind'"):
        model.report(X, Y, outputs="wind")
    with pytest.raises(ValueError, match="max_rows must be"):
        model.report(X, Y, max_rows=0)
    with pytest.raises(TypeError, match="max_outputs must be"):
        model.report(X, Y, max_outputs=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="random_state must be"):
        model.report(X, Y, random_state=-1)
    with pytest.raises(TypeError, match="title must be"):
        model.report(X, Y, title=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="row"):
        model.report(X, Y[:5])
    with pytest.raises(ValueError, match="column"):
        model.report(X, Y["power"].to_numpy())
    with pytest.raises(ValueError, match="no rows"):
        model.report(X[:0], Y[:0])
    with pytest.raises(TypeError, match="rows in memory"):
        model.report("table.parquet", Y)
    numbers = X[["speed", "heat"]].to_numpy()
    small = PolyleafRegressor(n_estimators=2).fit(numbers, Y.to_numpy())
    with pytest.raises(TypeError, match="got BinnedTable"):
        small.report(BinnedTable.make(numbers), Y.to_numpy())
    with pytest.raises(ValueError, match="not seen in training: 'z'"):
        fitted("classes").report(X, TEST[TARGETS["classes"]].replace("a", "z"))
