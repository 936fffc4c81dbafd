"""A model in C: raw scores are those of polyleaf bit for bit, predictions to 1e-12, and no compiler warns."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from c_programs import Exported, bits, compile_c, compile_cpp, needs_compilers
from exported_models import (
    CASES,
    CLASSES,
    COLOURS,
    SMALL,
    TARGETS,
    X,
    fitted,
    predicted_of,
    raw_of,
    table_of,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_models import random_model
from sklearn.exceptions import NotFittedError

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.export import c_file, c_walker, to_c
from polyleaf.export.c_text import quoted
from polyleaf.files.written_file import file_in_place_of

pytestmark = [
    pytest.mark.cpu_only("what is exported is the same on any device"),
    pytest.mark.python_only("what is compiled here is not the core"),
]

SHARED = ("-O1", "-shared", "-fPIC", "-ffp-contract=off")


def exported(model: Any, folder: Path, *flags: str) -> Exported:
    """Return the compiled model."""
    to_c(model, folder / "model.c")
    compile_c(*SHARED, *flags, folder / "model.c", "-o", folder / "model.so")
    return Exported(folder / "model.so", *widths(folder / "model.c"))


def widths(path: Path) -> tuple[int, int]:
    """Return the numbers of outputs and of columns that a file says it has."""
    text = path.read_text(encoding="ascii")
    outputs, columns = (
        re.findall(rf"^#define \w+_N_{name} (\d+)$", text, re.M) for name in ("OUTPUTS", "COLUMNS")
    )
    return int(outputs[0]), int(columns[0])


def assert_same(model: Any, of_c: Exported, table: np.ndarray) -> None:
    assert (bits(of_c.raw(table)) == bits(raw_of(model, table))).all()
    np.testing.assert_allclose(of_c.predict(table), predicted_of(model, table), rtol=1e-12, atol=1e-12)


@needs_compilers
@pytest.mark.parametrize("case", CASES)
def test_c_says_what_polyleaf_says(case: str, tmp_path: Path) -> None:
    model = fitted(case)
    assert_same(model, exported(model, tmp_path), table_of(model))


def test_cases_have_what_they_are_called() -> None:
    """Otherwise what they show would be less than it seems."""
    assert len(fitted("targets, sparse leaves")._forest.value_output) > 0
    assert len(fitted("sparse labels")._forest.value_output) > 0
    assert len(fitted("text categories")._forest.category_bits) > 0
    assert max(np.diff(fitted("many categories")._forest.category_begin)) > 1
    assert (fitted("targets of extreme size")._forest.unit != 1).any()
    assert fitted("stopped early").best_iteration_ + 1 < fitted("stopped early").n_estimators_
    assert fitted("targets, one output per tree")._forest.trees_per_round == 3
    assert len(fitted("targets, bags")._bags) == 3
    shares = raw_of(fitted("labels of squared error"), X)
    assert (shares < 0).any()
    assert (shares > 1).any()
    raw = raw_of(fitted("quantiles"), X).reshape(len(X), 2, 3)
    assert (np.diff(raw, axis=2) < 0).any(), "some quantiles cross"


@needs_compilers
@pytest.mark.parametrize(
    "case", ["targets", "mixed", "text categories", "classes, sparse leaves", "no round"]
)
@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_a_compiler_of_cpp_takes_the_same_file(case: str, standard: str, tmp_path: Path) -> None:
    model = fitted(case)
    to_c(model, tmp_path / "model.cpp")
    compile_cpp(*SHARED, tmp_path / "model.cpp", "-o", tmp_path / "model.so", standard=standard)
    of_cpp = Exported(tmp_path / "model.so", *widths(tmp_path / "model.cpp"))
    assert_same(model, of_cpp, table_of(model))


@needs_compilers
@pytest.mark.parametrize("flags", [("-O0",), ("-O3", "-march=native", "-ffp-contract=fast")])
def test_bits_do_not_depend_on_how_it_is_compiled(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing is multiplied and then added: no compiler can contract what raw scores are made of."""
    model = fitted("targets of extreme size")
    assert_same(model, exported(model, tmp_path, *flags), table_of(model))


@needs_compilers
def test_fast_math_is_refused_by_the_file(tmp_path: Path) -> None:
    to_c(fitted("targets"), tmp_path / "model.c")
    with pytest.raises(AssertionError, match="missing values would not be found"):
        compile_c("-ffast-math", "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")


@needs_compilers
def test_probabilities_of_extreme_scores(tmp_path: Path) -> None:
    """Those that polyleaf cuts off are cut off in the same place."""
    for name, model, base in (
        ("two", PolyleafClassifier(**SMALL).fit(X, CLASSES > 1), [-1e4, -800.0, -700.0, 700.0, 750.0, 1e4]),
        (
            "counts",
            PolyleafRegressor(**SMALL, objective="poisson").fit(X, CLASSES),
            [-1e4, -701.0, 699.0, 1e4],
        ),
    ):
        for place, score in enumerate(base):
            moved = model[:1]
            moved._forest.base_score[:] = score
            (tmp_path / f"{name}{place}").mkdir()
            assert_same(moved, exported(moved, tmp_path / f"{name}{place}"), X[:3])


@needs_compilers
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_any_small_model(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    model = random_model(np.random.default_rng(seed))
    assert_same(model, exported(model, tmp_path_factory.mktemp("c")), table_of(model))


@needs_compilers
def test_threads_may_call_at_once(tmp_path: Path) -> None:
    model = fitted("classes")
    of_c, table = exported(model, tmp_path), np.tile(table_of(model), (5, 1))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(of_c.predict, [table] * 8))
    assert all((bits(one) == bits(found[0])).all() for one in found)
    assert (of_c.predict(table) == found[0]).all()


# --- headers, prefixes, names ------------------------------------------------------------------------------

_MAIN = """
#include <cstdio>
#include <cmath>
#include "one.h"
#include "two.h"
#include "one.h"
int main() {
  double x[SIZES_N_FEATURES] = {0.5, 1.0, NAN, -0.25, 3.0};
  double sizes[SIZES_N_OUTPUTS], shares[KINDS_N_COLUMNS];
  sizes_raw(x, sizes);
  Kinds_predict(x, shares);
  for (double value : sizes) std::printf("%.17g\\n", value);
  for (double value : shares) std::printf("%.17g\\n", value);
}
"""


@needs_compilers
def test_two_models_in_a_program_of_cpp(tmp_path: Path) -> None:
    """Compiled as C, called from C++ by their headers, and linked without a mathematical library."""
    sizes, kinds = fitted("targets"), fitted("classes")
    to_c(sizes, tmp_path / "one.c", header=tmp_path / "one.h", prefix="sizes")
    to_c(kinds, tmp_path / "two.c", header=tmp_path / "two.h", prefix="Kinds")
    (tmp_path / "main.cpp").write_text(_MAIN)
    for name in ("one", "two"):
        compile_c("-c", tmp_path / f"{name}.c", "-o", tmp_path / f"{name}.o")
    compile_cpp(*(tmp_path / name for name in ("main.cpp", "one.o", "two.o")), "-o", tmp_path / "main")
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    row = np.array([[0.5, 1.0, np.nan, -0.25, 3.0]])
    values = np.array(printed.split(), dtype=float)
    assert (values[:3] == sizes.predict(row)[0]).all()
    np.testing.assert_allclose(values[3:], kinds.predict_proba(row)[0], rtol=1e-12)


HOSTILE = (
    "*/ int main;",
    "/* comment",
    "// line",
    "??/",
    "ends with a backslash\\",
    "two\nlines\r\n\\\n",
    "\u202e right to left, 日本 😀",
    '"quoted" \\u002a \\',
    "#error no",
    "%s \x00 \x7f \t",
    "",
)


@needs_compilers
def test_names_cannot_break_the_file(tmp_path: Path) -> None:
    names = [f"{name}{j}" for j, name in enumerate(HOSTILE)]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, len(names) - 1)), columns=names[:-1])
    table[names[-1]] = pd.Series(rng.choice(HOSTILE, 120), dtype=object)
    classes = np.array(HOSTILE)[(table[names[0]] > 0).to_numpy(dtype=int) + 2 * (table[names[1]] > 0)]
    model = PolyleafClassifier(**SMALL, categorical_features=[names[-1]]).fit(table, classes)
    to_c(model, tmp_path / "model.c", header=tmp_path / "model.h")
    text = (tmp_path / "model.c").read_text(encoding="ascii")
    compile_c(*SHARED, "-trigraphs", tmp_path / "model.c", "-o", tmp_path / "model.so")
    compile_cpp("-c", "-x", "c++", tmp_path / "model.c", "-o", tmp_path / "model.o")
    written = [json.loads(line) for line in re.findall(r'^ \*   x\[\d+\] (".*?")', text, re.M)]
    assert written == names
    codes = [json.loads(line) for line in re.findall(r'^ \*     \d+ (".*")$', text, re.M)]
    assert codes == sorted(HOSTILE)
    columns = [json.loads(line) for line in re.findall(r'^ \*     out\[\d+\] (".*")$', text, re.M)]
    assert columns == list(map(str, model.classes_))


@given(st.text(st.characters()))
@example("\ud800 a lone surrogate")
def test_quoted_text_is_json_of_harmless_characters(text: str) -> None:
    shown = quoted(text)
    assert json.loads(shown) == text
    assert not re.search(r"[*?/\n\r]|\\(?!u[0-9a-f]{4})|[^ -~]", shown)


def test_the_file_lists_categories_with_their_codes(tmp_path: Path) -> None:
    to_c(fitted("text categories"), tmp_path / "model.c")
    text = (tmp_path / "model.c").read_text(encoding="ascii")
    for code, name in enumerate(COLOURS):
        assert f" *     {code} {json.dumps(name)}\n" in text
    assert ' *   x[1] "colour": the code of a category' in text
    assert ' *   x[2] "shop"\n' in text


def test_files_grow_with_the_trees_and_no_faster(tmp_path: Path) -> None:
    model = PolyleafRegressor(**SMALL | {"n_estimators": 40}).fit(X, TARGETS)
    sizes = []
    for rounds in (0, 10, 20, 40):
        to_c(model[:rounds], tmp_path / "model.c")
        sizes.append(os.path.getsize(tmp_path / "model.c"))
    ten, twenty, forty = (size - sizes[0] for size in sizes[1:])
    assert 1.5 < twenty / ten < 2.2
    assert 1.5 < forty / twenty < 2.2
    # A leaf value and a node have few characters each, however many there are.
    forest = model._forest
    assert forty < 16 * len(forest.values) + 40 * len(forest.feature) + 20 * forest.n_trees + 4000


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one.c", "two.c"):
        to_c(fitted("mixed"), tmp_path / name)
    assert (tmp_path / "one.c").read_bytes() == (tmp_path / "two.c").read_bytes()


def test_open_files_get_the_same(tmp_path: Path) -> None:
    to_c(fitted("classes"), tmp_path / "model.c", header=tmp_path / "model.h")
    source, header = io.BytesIO(), io.BytesIO()
    to_c(fitted("classes"), source, header=header)
    assert source.getvalue() == (tmp_path / "model.c").read_bytes()
    assert header.getvalue() == (tmp_path / "model.h").read_bytes()


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (PolyleafRegressor(), NotFittedError, "not fitted"),
        (PolyleafRegressor, TypeError, "the class PolyleafRegressor"),
        ("model", TypeError, "fitted estimator of polyleaf; got str"),
    ],
)
def test_what_is_no_fitted_model_is_refused(
    model: Any, error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        to_c(model, tmp_path / "model.c")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("prefix", "error"),
    [
        ("", ValueError),
        ("1st", ValueError),
        ("a-b", ValueError),
        ("_a", ValueError),
        ("ä", ValueError),
        ("a" * 42, ValueError),
        ("a\n", ValueError),
        (None, TypeError),
    ],
)
def test_a_prefix_that_is_no_identifier_is_refused(
    prefix: Any, error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error, match="prefix must be"):
        to_c(fitted("targets"), tmp_path / "model.c", prefix=prefix)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    model = fitted("targets")
    with pytest.raises(FileNotFoundError, match=r"no folder .* to save the C source in"):
        to_c(model, tmp_path / "nowhere" / "model.c")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        to_c(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        to_c(model, tmp_path / "model.c", header=tmp_path / "nowhere" / "model.h")
    with pytest.raises(ValueError, match="path and header are the same file"):
        to_c(model, tmp_path / "model.c", header=tmp_path / "model.c")
    for path in (None, 3):
        with pytest.raises(TypeError, match=r"path must be str, .* or a binary file object; got"):
            to_c(model, path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the StringIO given is open for text"):
        to_c(model, tmp_path / "model.c", header=io.StringIO())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


class FullDisk:
    """A file that nothing can be written to."""

    def write(self, text: bytes) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("broken", ["model.c", "model.h"])
def test_a_full_disk_leaves_the_files_that_were_there(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("model.c", "model.h"):
        (tmp_path / name).write_text(name)

    @contextmanager
    def full(target: Path) -> Iterator[Any]:
        with file_in_place_of(target) as file:
            yield file if target.name != broken else FullDisk()

    monkeypatch.setattr(c_file, "file_in_place_of", full)
    with pytest.raises(OSError, match="No space"):
        to_c(fitted("targets"), tmp_path / "model.c", header=tmp_path / "model.h")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "model.c": "model.c",
        "model.h": "model.h",
    }


def test_an_object_gets_nothing_where_the_other_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a file does not appear where the object takes nothing."""

    @contextmanager
    def full(target: Path) -> Iterator[Any]:
        yield FullDisk()

    with pytest.raises(OSError, match="No space"):
        to_c(fitted("targets"), tmp_path / "model.c", header=FullDisk())
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(c_file, "file_in_place_of", full)
    source = io.BytesIO()
    with pytest.raises(OSError, match="No space"):
        to_c(fitted("targets"), source, header=tmp_path / "model.h")
    assert source.getvalue() == b""


def test_more_numbers_than_the_file_can_count_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_walker, "_MOST_NUMBERS", 100)
    with pytest.raises(ValueError, match=r"the model has \d+ leaf values; C source can have 100 at most"):
        to_c(fitted("targets"), tmp_path / "model.c")
    assert list(tmp_path.iterdir()) == []
