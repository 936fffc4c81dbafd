"""A table that is binned once: the bins of ``fit``, the same after a round trip, and forged files refused."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import safetensors.numpy
import scipy.sparse

from forgery import forge
from polyleaf import BinnedTable, PolyleafRegressor, _core, load_binned, load_model
from polyleaf.data.binning import bin_table

pl = pytest.importorskip("polars")

pytestmark = pytest.mark.cpu_only("the bins of the core")

N = 240
RNG = np.random.default_rng(0)
X = np.column_stack(
    [
        RNG.normal(size=N),
        np.where(RNG.random(N) < 0.6, 0.0, RNG.normal(size=N)),
        np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(0, 5, N)),
        RNG.permutation(N),
    ]
)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(
    c=pd.Categorical.from_codes(np.nan_to_num(X[:, 2], nan=-1).astype(int), ["v", "w", "x", "y", "ä中"])
)
TEXT = np.array(["low", "ä中", "x" * 40])[np.arange(N) % 3]
LABELS = RNG.integers(0, 2, (N, 5))

TARGETS = {
    "none": None,
    "float64": RNG.normal(size=N),
    "float32 column": RNG.normal(size=(N, 1)).astype(np.float32),
    "3 targets": RNG.normal(size=(N, 3)),
    "unobserved": np.where(RNG.random((N, 3)) < [0.0, 0.3, 0.3], np.nan, RNG.normal(size=(N, 3))),
    "int64": RNG.integers(-(2**62), 2**62, N),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64)[np.arange(N) % 2],
    "bool": np.arange(N) % 3 == 0,
    "float16": (np.arange(N) % 3).astype(np.float16),
    "str": TEXT,
    "objects": TEXT.astype(object),
    "a column of words": TEXT[:, np.newaxis],
    "labels": LABELS.astype(np.uint8),
    "big-endian": np.arange(N).astype(">i4"),
    "row by row no more": np.asfortranarray(RNG.normal(size=(N, 2))),
}
FRAMES = {
    "pandas": pd.DataFrame({"price": RNG.normal(size=N), "size": np.arange(N)}),
    "polars": pl.DataFrame({"price": RNG.normal(size=N), "size": RNG.normal(size=N)}),
    "pyarrow": pa.table({"price": RNG.normal(size=N)}),
    "series": pd.Series(TEXT, name="kind"),
    "polars words": pl.Series("kind", TEXT.tolist()),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.binned"


def same_parts(one, two):
    first, second = _core.parts_of_table(one.matrix), _core.parts_of_table(two.matrix)
    assert first["n_rows"] == second["n_rows"]
    for name in first.keys() - {"n_rows", "codes"}:
        assert first[name].tobytes() == second[name].tobytes(), name
    for codes, other in zip(first["codes"], second["codes"], strict=True):
        assert codes.dtype == other.dtype
        np.testing.assert_array_equal(codes, other)


def same_table(one, two):
    same_parts(one, two)
    assert one.digest == two.digest
    assert (one.max_bins, one.feature_names, one.categories) == (
        two.max_bins,
        two.feature_names,
        two.categories,
    )
    assert repr(one) == repr(two)


# --- the bins of fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bins", [None, 255, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["array", "float32", "csr", "frame"])
def test_the_bins_are_those_of_fit(max_bins, weighted, kind, monkeypatch):
    """Taken from a fit on the way to its grower."""
    table = {"array": X, "float32": X.astype(np.float32), "csr": scipy.sparse.csr_array(X), "frame": FRAME}[
        kind
    ]
    y = RNG.normal(size=(N, 2))
    weight = RNG.gamma(1.0, size=(N, 2)) * (np.arange(N) % 5 > 0)[:, np.newaxis] if weighted else None
    seen = []

    def seen_by_fit(data, settings, least_rows):
        seen.append(bin_table(data.X, data.weights.row, settings.max_bins, 1, settings.categorical))
        return seen[0]

    monkeypatch.setattr("polyleaf.training.device.bin_data", seen_by_fit)
    PolyleafRegressor(n_estimators=1, max_bins=max_bins, n_jobs=1).fit(table, y, weight)
    binned = BinnedTable.make(table, y, weight, max_bins=max_bins, n_jobs=1)
    parts, expected = _core.parts_of_table(binned.matrix), _core.parts_of_table(seen[0])
    assert binned.shape == (N - N // 5 if weighted else N, 4)
    for name in parts.keys() - {"n_rows", "codes"}:
        assert parts[name].tobytes() == expected[name].tobytes(), name
    np.testing.assert_array_equal(binned.matrix.codes(), seen[0].codes())


def test_rows_without_weight_are_left_out():
    weight = (np.arange(N) % 4).astype(float)
    y = np.where(np.arange(N) % 4 == 1, np.nan, np.arange(N))
    binned = BinnedTable.make(X, y, weight)
    kept = np.arange(N) % 4 > 1
    assert binned.shape == (kept.sum(), 4)
    np.testing.assert_array_equal(binned.y, y[kept])
    np.testing.assert_array_equal(binned.sample_weight, weight[kept])
    same_parts(binned, BinnedTable.make(X[kept], y[kept], weight[kept]))


def test_the_number_of_threads_changes_no_bin():
    one, two = (BinnedTable.make(X, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.matrix.codes(), two.matrix.codes())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"max_bins": 1}, ValueError, "max_bins"),
        ({"max_bins": "many"}, TypeError, "max_bins"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"categorical_features": ["nobody"]}, ValueError, "names"),
        ({"X": np.full((N, 2), np.inf)}, ValueError, "inf"),
        ({"X": np.empty((0, 2))}, ValueError, "0 sample"),
        ({"X": X[:5]}, ValueError, "5"),
        ({"y": np.full(N, np.nan)}, ValueError, "no observation"),
        ({"y": [object()] * N}, ValueError, "y"),
        ({"y": np.arange(N).astype("datetime64[s]")}, ValueError, "y"),
        ({"y": scipy.sparse.csr_array(2 * LABELS)}, ValueError, "0 and 1"),
        ({"y": scipy.sparse.csr_array(LABELS[:3])}, ValueError, "rows"),
        ({"y": np.zeros((N, 2, 2))}, ValueError, "dimensions"),
        ({"sample_weight": -np.ones(N)}, ValueError, "sample_weight"),
        ({"sample_weight": np.ones(3)}, ValueError, "sample_weight"),
        ({"sample_weight": np.ones((N, 2))}, ValueError, "sample_weight"),
        ({"sample_weight": np.zeros(N)}, ValueError, "sample_weight"),
    ],
)
def test_bad_input_is_named(given, error, message):
    with pytest.raises(error, match=message):
        BinnedTable.make(**{"X": X, "y": np.arange(N), **given})


def test_settings_of_an_estimator_are_compared():
    binned = BinnedTable.make(FRAME, max_bins=63)
    binned.check_settings(63, None)
    for columns in (["c"], [2], [False, False, True, False]):
        binned.check_settings(63, columns)
    with pytest.raises(ValueError, match="max_bins is 255"):
        binned.check_settings(255, None)
    with pytest.raises(ValueError, match=r"columns \[0\]"):
        binned.check_settings(63, ["a"])
    with pytest.raises(ValueError, match="nobody"):
        binned.check_settings(63, ["nobody"])


def test_repr_says_what_it_is():
    binned = BinnedTable.make([[1.0, 2.0], [3.0, np.nan], [3.0, 2.0]], [1, 2, 3])
    assert repr(binned) == "BinnedTable(3 rows, 2 features, 4 bins, 6 bytes, with y)"


def test_the_digest_tells_tables_apart():
    other = X.copy()
    other[0, 0] = 99.0
    made = [
        BinnedTable.make(X),
        BinnedTable.make(other),
        BinnedTable.make(X, np.arange(N)),
        BinnedTable.make(X, np.arange(N).astype(np.int32)),
        BinnedTable.make(X, np.arange(N), np.arange(N) + 1.0),
        BinnedTable.make(pd.DataFrame(X, columns=list("abcd"))),
        BinnedTable.make(X, max_bins=254),
    ]
    assert len({one.digest for one in made}) == len(made)
    assert made[0].digest == BinnedTable.make(X.copy()).digest


# --- round trips -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("weighted", [False, True])
def test_round_trip(name, weighted, path):
    y = TARGETS[name]
    weight = RNG.integers(1, 4, N).astype(float) if weighted else None
    binned = BinnedTable.make(X, y, weight)
    binned.save_binned(path)
    loaded = load_binned(path)
    same_table(loaded, binned)
    for one in (binned, loaded, pickle.loads(pickle.dumps(binned))):
        if y is None:
            assert one.y is None
        else:
            assert one.y.dtype == y.dtype.newbyteorder("=")
            assert one.y.shape == y.shape
            np.testing.assert_array_equal(one.y, y)
        if weighted:
            np.testing.assert_array_equal(one.sample_weight, weight)
        else:
            assert one.sample_weight is None


@pytest.mark.parametrize("max_bins", [None, 3])
@pytest.mark.parametrize("table", [X, scipy.sparse.csc_array(X), FRAME], ids=["array", "sparse", "frame"])
def test_round_trip_of_tables(table, max_bins, path):
    binned = BinnedTable.make(table, max_bins=max_bins)
    binned.save_binned(path)
    same_table(load_binned(path, n_jobs=2), binned)
    same_table(pickle.loads(pickle.dumps(binned)), binned)


def test_round_trip_of_categories(path):
    binned = BinnedTable.make(FRAME)
    binned.save_binned(path)
    loaded = load_binned(path)
    assert loaded.feature_names == ("a", "b", "c", "d")
    assert loaded.categories[2].values == ("v", "w", "x", "y", "ä中")


@pytest.mark.parametrize("kind", FRAMES)
def test_round_trip_of_frames(kind, path):
    y = FRAMES[kind]
    binned = BinnedTable.make(X, y)
    binned.save_binned(path)
    target = load_binned(path).target.given()
    direct = binned.target.given()
    assert target.frame == direct.frame == kind.split()[0].replace("series", "pandas")
    assert target.names == direct.names
    np.testing.assert_array_equal(target.values, direct.values)
    assert target.names in (("price", "size"), ("price",), ("kind",))


def test_round_trip_of_sparse_labels(path):
    weight = (np.arange(N) % 3).astype(float)
    for y in (
        scipy.sparse.csr_array(LABELS),
        scipy.sparse.coo_array(LABELS * 1.0),
        scipy.sparse.csc_array((N, 9)),
    ):
        binned = BinnedTable.make(X, y, weight)
        binned.save_binned(path)
        loaded = load_binned(path)
        assert scipy.sparse.issparse(loaded.y)
        assert loaded.y.format == "csr"
        np.testing.assert_array_equal(loaded.y.toarray(), y.toarray()[weight > 0])


def test_weights_of_cells_are_matched_by_name(path):
    y = FRAMES["pandas"]
    weight = pd.DataFrame({"size": np.arange(N) + 1.0, "price": np.ones(N)})
    binned = BinnedTable.make(X, y, weight)
    binned.save_binned(path)
    np.testing.assert_array_equal(load_binned(path).sample_weight, weight[["price", "size"]])


def test_nothing_of_the_file_is_held_once_it_is_loaded(path):
    binned = BinnedTable.make(X, LABELS)
    binned.save_binned(path)
    loaded = load_binned(path)
    path.write_bytes(b"")
    same_table(loaded, binned)


def test_others_can_read_the_file(path):
    BinnedTable.make(X, TEXT).save_binned(path)
    arrays = safetensors.numpy.load_file(path)
    assert arrays["y"].shape == (N,)
    assert sum(arrays[name].shape[1] for name in arrays if name.startswith("codes.")) == 4


# --- forged and foreign files ------------------------------------------------------------------------------


def entry(name, value):
    return lambda page: page.update({name: value})


def target(name, value):
    return lambda page: page["target"].update({name: value})


def at(name, index, value):
    return lambda arrays: arrays[name].__setitem__(index, value)


def array(name, make):
    return lambda arrays: arrays.update({name: make(arrays[name])})


PAGES = {
    "rows": (entry("n_rows", N - 1), "were expected"),
    "no rows": (entry("n_rows", 0), "0 rows"),
    "rows as text": (entry("n_rows", "many"), "n_rows"),
    "features": (entry("n_features", 5), "n_features"),
    "tiles": (entry("n_tiles", 1), "codes"),
    "tiles beyond": (entry("n_tiles", 10**9), "n_tiles"),
    "max_bins": (entry("max_bins", 1), "max_bins"),
    "max_bins as text": (entry("max_bins", "x"), "max_bins"),
    "names": (entry("feature_names", ["a", "a", "b", "c"]), "distinct words"),
    "categories": (entry("categories", {}), "categorical features"),
    "categories as a list": (entry("categories", []), "mapping"),
    "a category less": (entry("categories", {"2": ["v", "w"]}), "without a value"),
    "categories of another column": (entry("categories", {"9": ["v"]}), "does not exist"),
    "no y": (entry("target", None), "'y'"),
    "form": (target("form", "other"), "form"),
    "form as sparse": (target("form", "sparse"), "'y'"),
    "dimensions": (target("ndim", 3), "form"),
    "columns": (target("n_columns", 0), "shape"),
    "words": (target("words", ["b", "a"]), "ascending"),
    "a word less": (target("words", ["low", "x"]), "beyond its 2"),
    "no words": (target("words", []), "do not agree"),
    "words as numbers": (target("words", [1, 2, 3]), "ascending"),
    "a frame of nobody": (target("frame", "nobody"), "unknown"),
    "names of y": (target("names", ["a", "b"]), "distinct words"),
    "weights": (entry("weight_ndim", None), "'weight'"),
    "weights of cells": (entry("weight_ndim", 2), "weight"),
    "cut points of nobody": (entry("is_like", "perhaps"), "is_like"),
    "a newer version": (entry("format_version", 99), "newer"),
}
ARRAYS = {
    "a code": (array("codes.0", lambda codes: np.full_like(codes, 255)), "beyond its"),
    "cuts": (at("cuts", 0, np.nan), "finite"),
    "a feature": (at("tile_feature", 0, 77), "does not exist"),
    "cut_begin": (at("cut_begin", 1, 2**60), "cut_begin"),
    "fewer codes": (array("codes.0", lambda codes: codes[:-1]), "were expected"),
    "wide codes": (array("codes.0", lambda codes: codes.astype(np.float32)), "belongs there"),
    "flat codes": (array("codes.0", lambda codes: codes.ravel()), "no shape of 2 numbers"),
    "y": (at("y", 3, 3), "beyond its 3"),
    "y of other rows": (array("y", lambda y: y[:-1]), "shape"),
    "negative weights": (at("weight", 0, -1.0), ">= 0"),
    "NaN as weight": (at("weight", 0, np.nan), ">= 0"),
    "fewer weights": (array("weight", lambda weight: weight[:-1]), "weights have shape"),
    "no weights": (lambda arrays: arrays.pop("weight"), "weight is missing"),
    "one array more": (lambda arrays: arrays.update(extra=np.zeros(3)), "'extra'"),
}


def saved(path):
    BinnedTable.make(FRAME, TEXT, np.arange(N) + 1.0).save_binned(path)
    return path


@pytest.mark.parametrize("name", PAGES)
def test_forged_pages_are_refused(name, path):
    change, message = PAGES[name]
    forge(saved(path), change_page=change)
    with pytest.raises(ValueError, match="cannot be read as a polyleaf binned table") as caught:
        load_binned(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ARRAYS)
def test_forged_arrays_are_refused(name, path):
    change, message = ARRAYS[name]
    forge(saved(path), change_arrays=change)
    with pytest.raises(ValueError, match="cannot be read as a polyleaf binned table") as caught:
        load_binned(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("y_begin", 1, 10**6), "do not fit"),
        (at("y_begin", 0, -1), "do not fit"),
        (at("y_column", 0, 9), "does not exist"),
        (at("y_column", 0, -1), "does not exist"),
        (lambda arrays: arrays["y_column"].__setitem__(slice(0, 2), 1), "ascend"),
    ],
)
def test_forged_sparse_labels_are_refused(change, message, path):
    BinnedTable.make(X, scipy.sparse.csr_array(np.ones((N, 3)))).save_binned(path)
    forge(path, change_arrays=change)
    with pytest.raises(ValueError, match=message):
        load_binned(path)


def test_random_damage_is_refused_or_works(path):
    """With a checksum that is right: at worst another table, which can be binned like and looked at."""
    rng = np.random.default_rng(4)
    content = saved(path).read_bytes()
    for _ in range(60):
        path.write_bytes(content)

        def change(arrays):
            name = rng.choice(sorted(arrays))
            raw = arrays[name].reshape(-1).view(np.uint8)
            raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))

        forge(path, change_arrays=change)
        try:
            loaded = load_binned(path)
        except ValueError:
            continue
        assert loaded.matrix.codes().shape == loaded.shape
        assert len(loaded.y) == loaded.shape[0]


def test_damaged_files_are_refused(path):
    content = saved(path).read_bytes()
    for cut in (content[:100], content[:-1], content[:-40] + b"\0" * 40, b"", b"\xff" * 100):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match="cannot be read as a polyleaf binned table"):
            load_binned(path)


def test_other_files_are_named(path, tmp_path):
    PolyleafRegressor(n_estimators=1, n_jobs=1).fit(X, X[:, 0]).save_model(path)
    with pytest.raises(ValueError, match="it is a model, which load_model reads"):
        load_binned(path)
    with pytest.raises(ValueError, match="it is a table, which load_binned reads"):
        load_model(saved(path))
    path.write_text("rows,features\n1,2\n" * 20)
    with pytest.raises(ValueError, match="not a binned table at all"):
        load_binned(path)
    safetensors.numpy.save_file({"x": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="not a polyleaf binned table"):
        load_binned(path)
    with pytest.raises(ValueError, match="folder"):
        load_binned(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_binned(tmp_path / "nothing")
    with pytest.raises(ValueError, match="n_jobs"):
        load_binned(saved(path), n_jobs=0)


def test_a_failed_save_leaves_the_old_file(path, tmp_path, monkeypatch):
    saved(path)
    before = path.read_bytes()
    words = [f"{row} {'x' * 100}" for row in range(N)]
    monkeypatch.setattr("polyleaf.files.header.MOST_HEADER_BYTES", 20_000)
    with pytest.raises(ValueError, match=r"cannot be saved.*header"):
        BinnedTable.make(X, words).save_binned(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    with pytest.raises(FileNotFoundError, match="to save the binned table in"):
        BinnedTable.make(X).save_binned(tmp_path / "no" / "folder")


def test_the_page_is_json_and_opens_with_the_sum(path):
    content = saved(path).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    page = json.loads(header["__metadata__"]["polyleaf"])
    assert next(iter(page)) == "sha256"
    assert (page["format"], page["n_rows"], page["max_bins"]) == ("polyleaf-binned", N, 255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_binned(path)
