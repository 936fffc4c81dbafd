"""The reader in one file: it stands alone, takes tables as people have them, and refuses what is no model."""

import ast
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from forgery import forge
from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor, _core, load_model, portable
from polyleaf.model.page import FORMAT_VERSION

pytestmark = pytest.mark.cpu_only("a reader without any device")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
X[::9, 1] = np.nan
Y = np.stack([X[:, 0], np.nan_to_num(X[:, 1]), X[:, 2]], axis=1)
SMALL = {"n_estimators": 5, "max_depth": 4, "learning_rate": 0.3, "min_samples_leaf": 2, "n_jobs": 1}
FRAME = pd.DataFrame({"size": X[:, 0], "city": np.array(["oslo", "rome", "bern"])[np.arange(80) % 3]})
FRAME["code"] = np.arange(80) % 5


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.polyleaf"


@pytest.fixture
def numbers(path):
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    model.save_model(path)
    return model


@pytest.fixture
def categories(path):
    model = PolyleafRegressor(**SMALL, categorical_features=["city", "code"])
    model.fit(FRAME, np.arange(80) % 3 + (np.arange(80) % 5 == 2))
    model.save_model(path)
    return model


def same(found, expected):
    assert found.shape == expected.shape
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


# --- alone -------------------------------------------------------------------------------------------------


def test_a_copy_of_the_file_predicts_where_there_is_no_polyleaf(numbers, path, tmp_path):
    """Nor anything else but NumPy: the copy is run with a path that has no other package."""
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(portable.__file__, alone / "reader.py")
    packages = alone / "packages"
    packages.mkdir()
    (packages / "numpy").symlink_to(Path(np.__file__).parent, target_is_directory=True)
    libraries = Path(np.__file__).parent.with_name("numpy.libs")
    if libraries.exists():
        (packages / "numpy.libs").symlink_to(libraries, target_is_directory=True)
    np.save(alone / "X.npy", X)
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
        f"sys.path[:0] = [{str(alone)!r}, {str(packages)!r}]\n"
        "import numpy as np, reader\n"
        f"found = reader.load({str(path)!r}).raw(np.load({str(alone / 'X.npy')!r}))\n"
        "assert not {'polyleaf', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)\n"
        "try: import polyleaf\n"
        "except ImportError: sys.stdout.buffer.write(found.tobytes())\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, env=environment, cwd=alone
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == numbers._raw(X, None).tobytes()


@pytest.mark.python_only("looks at a source file")
def test_it_imports_numpy_and_the_standard_library_alone():
    imported = set()
    for node in ast.walk(ast.parse(Path(portable.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert imported <= {"numpy", *sys.stdlib_module_names}


def test_it_knows_the_version_that_is_written():
    assert portable.NEWEST_VERSION == FORMAT_VERSION


# --- the same bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", ["baseline", "avx2", "avx512"])
def test_links_have_the_bits_of_every_instruction_set(kernels):
    """Scores of any size; sums of the softmax over few and over many outputs."""
    before = _core.kernels()
    if not _core.select_kernels(kernels):
        pytest.skip(f"this machine has no {kernels}")
    try:
        rng = np.random.default_rng(1)
        for n_outputs in (1, 2, 3, 7, 8, 9, 16, 37):
            raw = rng.normal(size=(500, n_outputs)) * 10.0 ** rng.integers(-3, 4, (500, 1))
            found = np.empty_like(raw)
            _core.logistic_probabilities(raw, found, 1)
            same(portable.logistic(raw), found)
            _core.softmax_probabilities(raw, found, 1)
            same(portable.softmax(raw), found)
    finally:
        _core.select_kernels(before)


def test_many_rows_and_rounds(path):
    """The library has other ways through the trees for many rows."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(1500, 5)).astype(np.float32)
    table[rng.random(table.shape) < 0.1] = np.nan
    model = PolyleafClassifier(n_estimators=30, max_depth=6, n_jobs=1).fit(table, rng.integers(0, 12, 1500))
    model.save_model(path)
    reader = portable.load(path)
    same(reader.raw(table), model.decision_function(table))
    same(reader.predict_proba(table), model.predict_proba(table))
    same(reader.raw(table, n_rounds=7), model.decision_function(table, n_rounds=7))
    np.testing.assert_array_equal(reader.predict(table), model.predict(table))


def test_tables_as_people_have_them(numbers, path):
    reader, expected = portable.load(path), numbers.predict(X)
    same(reader.predict(X), expected)
    same(reader.predict(X.tolist()), expected)
    same(reader.predict(np.asfortranarray(X)), expected)
    same(reader.predict(X.astype(object)), expected)
    same(reader.predict({j: X[:, j] for j in range(3)}), expected)
    same(reader.predict(X.astype(np.float32)), numbers.predict(X.astype(np.float32)))
    whole = np.nan_to_num(X * 3).astype(np.int64)
    same(reader.predict(whole), numbers.predict(whole))
    same(reader.predict(scipy.sparse.csr_array(whole)), numbers.predict(whole))
    assert reader.predict(X[:0]).shape == (0, 3)
    # Without names in fit, frames are arrays, whatever their columns are called.
    for names in (range(3), [2, 1, 0], [7, 8, 9], list("abc")):
        same(reader.predict(pd.DataFrame(X, columns=names)), expected)
    same(reader.predict(pl.DataFrame(X)), expected)


def test_columns_with_names_and_categories(categories, path):
    reader, expected = portable.load(path), categories.predict(FRAME)
    assert reader.feature_names == ("size", "city", "code")
    same(reader.predict(FRAME), expected)
    same(reader.predict({name: FRAME[name].tolist() for name in ("code", "city", "size")}), expected)
    same(reader.predict(pl.from_pandas(FRAME).to_dict()), expected)
    turned = pl.from_pandas(FRAME)["code", "city", "size"]
    for frame in (turned, turned.to_arrow(), turned.to_pandas()):
        same(reader.predict(frame), expected)
    with pytest.raises(ValueError, match=r"X has two columns \['size'\]"):
        reader.predict(pd.concat([FRAME, FRAME[["size"]]], axis=1))
    with pytest.raises(ValueError, match=r"X has no column \['city'\]"):
        reader.predict(turned["code", "size"])
    same(reader.predict(FRAME.to_numpy(dtype=object)), expected)
    same(reader.predict(FRAME.assign(city=FRAME["city"].astype("category"))), expected)
    same(reader.predict(FRAME.assign(code=FRAME["code"].astype(float))), expected)
    odd = FRAME.assign(city=FRAME["city"].where(FRAME["code"] > 1, None).replace("rome", "elsewhere"))
    same(reader.predict(odd), categories.predict(odd))


def test_paths_and_objects(numbers, path):
    expected = numbers.predict(X)
    content = path.read_bytes()
    for source in (str(path), path, io.BytesIO(content)):
        same(portable.load(source).predict(X), expected)
    with gzip.open(path.with_suffix(".gz"), "wb") as file:
        file.write(content)
    with gzip.open(path.with_suffix(".gz")) as file:
        same(portable.load(file).predict(X), expected)


# --- refusals ----------------------------------------------------------------------------------------------


def test_truncated_longer_and_altered(numbers, path):
    content = path.read_bytes()
    for wrong in (b"", content[:5], content[: len(content) // 2], content[:-1], content + b"\0"):
        with pytest.raises(ValueError, match="the BytesIO given cannot be read as a polyleaf model"):
            portable.load(io.BytesIO(wrong))
    for place in range(0, len(content), 53):
        altered = bytearray(content)
        altered[place] ^= 1
        with pytest.raises(ValueError, match="cannot be read as a polyleaf model"):
            portable.load(io.BytesIO(altered))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda page: page.update(format_version=FORMAT_VERSION + 1), "format has version"),
        (lambda page: page.update(n_outputs=4), "has 3 values"),
        (lambda page: page.update(best_iteration=9), "best_iteration is 9 of 5 rounds"),
        (lambda page: page.update(loss="cross_entropy"), "its loss is 'cross_entropy'"),
        (lambda page: page.update(feature_names=["a", "a", "b"]), "two of its feature_names"),
        (lambda page: page["target"].update(width=2), "its targets have 2 outputs"),
    ],
)
def test_a_page_that_is_wrong(change, words, numbers, path):
    forge(path, change)
    with pytest.raises(ValueError, match=words):
        portable.load(path)
    with pytest.raises(ValueError):
        load_model(path)


def test_other_files(path, tmp_path):
    BinnedTable.make(X).save_binned(path)
    with pytest.raises(ValueError, match="not that of a model"):
        portable.load(path)
    with pytest.raises(ValueError, match="no regular file"):
        portable.load(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="no regular file"):
        portable.load(tmp_path / "fifo")
    with pytest.raises(FileNotFoundError):
        portable.load(tmp_path / "none")
    for odd in (3, None):
        with pytest.raises(TypeError, match="path must be a path or a binary file object; got"):
            portable.load(odd)
    path.write_text(json.dumps({}))
    with open(path) as file, pytest.raises(ValueError, match=r"its read\(\) returns str, and not bytes"):
        portable.load(file)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (X[:, :2], "X has 2 columns, not 3"),
        (X[0], "X has 1 dimensions"),
        (np.where(np.isnan(X), np.inf, X), "column 1 holds infinity"),
        ({0: X[:, 0], 2: X[:, 2]}, "X has no column"),
        ({0: X[:, 0], 1: X[:, 1], 2: X[:5, 2]}, "different lengths"),
        (np.full((2, 3), "a"), "column 0 has dtype"),
        (np.full((2, 3), "a", dtype=object), "column 0 holds no numbers but 'a'"),
        (np.full((2, 3), 2**53 + 1), "which no float64 is"),
    ],
)
def test_tables_that_are_none(table, words, numbers, path):
    with pytest.raises(ValueError, match=words):
        portable.load(path).raw(table)


def test_categories_of_another_kind(categories, path):
    reader = portable.load(path)
    with pytest.raises(ValueError, match="'city' does not hold text"):
        reader.raw(FRAME.assign(city=1))
    with pytest.raises(ValueError, match="'code' does not hold numbers"):
        reader.raw(FRAME.assign(code="a"))
    with pytest.raises(ValueError, match="'city' mixes kinds"):
        reader.raw(FRAME.assign(city=["oslo", 1] * 40))


def test_numbers_have_no_probabilities_and_rounds_are_counted(numbers, path):
    reader = portable.load(path)
    with pytest.raises(ValueError, match="no probabilities"):
        reader.predict_proba(X)
    with pytest.raises(ValueError, match="n_rounds is 6; there are 5"):
        reader.raw(X, n_rounds=6)
    assert (reader.raw(X, n_rounds=0) == reader.raw(X, n_rounds=0)[0]).all()
