"""A table taken apart into arrays and put together again is the same; forged parts are refused."""

from dataclasses import fields

import numpy as np
import pytest

from growing import settings, task
from polyleaf import _core
from polyleaf.growth.core_task import core_task
from polyleaf.growth.tree import Tree

pytestmark = pytest.mark.cpu_only("the bins of the core")


def table_of(n=900, n_wide=True):
    """Columns of all kinds of tiles: dense and skipping, of 8 and 16 bits, of numbers and categories."""
    rng = np.random.default_rng(1)
    columns = [
        rng.normal(size=n),
        np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
        np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1)),
        rng.integers(0, 7, n).astype(float),
        np.where(rng.random(n) < 0.7, 2.0, rng.integers(0, 400, n)),
        np.full(n, np.nan),
        np.ones(n),
        rng.permutation(n) % 300.0,
    ]
    categorical = np.array([0, 0, 0, 1, 0, 0, 0, 1], dtype=np.uint8)
    return np.column_stack(columns), categorical


def binned(max_bins=None, n=900):
    table, categorical = table_of(n)
    return _core.bin_table(table, None, max_bins, 1, categorical=categorical)


def grown(matrix):
    gradient = np.random.default_rng(2).normal(size=(matrix.n_rows, 3)).astype(np.float32)
    tree = _core.DenseGrower().grow(
        core_task(matrix, task(gradient)), settings(max_depth=5, min_samples_leaf=2)
    )
    return {one.name: np.asarray(getattr(tree, one.name)) for one in fields(Tree)}


@pytest.mark.parametrize("max_bins", [None, 16])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_same_table_and_the_same_trees(max_bins, n_threads):
    matrix = binned(max_bins)
    parts = _core.parts_of_table(matrix)
    again = _core.table_from_parts(parts, n_threads)
    assert (again.n_rows, again.n_features) == (matrix.n_rows, matrix.n_features)
    np.testing.assert_array_equal(again.codes(), matrix.codes())
    np.testing.assert_array_equal(again.feature_combinations(), matrix.feature_combinations())
    other = _core.parts_of_table(again)
    for name in parts.keys() - {"codes", "n_rows"}:
        assert other[name].tobytes() == parts[name].tobytes(), name
        assert other[name].dtype == parts[name].dtype, name
    for one, two in zip(grown(matrix).values(), grown(again).values(), strict=True):
        assert one.tobytes() == two.tobytes()


def test_all_kinds_of_tiles_are_there():
    parts = _core.parts_of_table(binned())
    assert {codes.dtype for codes in parts["codes"]} == {np.dtype(np.uint8), np.dtype(np.uint16)}
    assert set(parts["tile_skips"]) == {0, 1}


def test_codes_are_not_copied_and_outlive_the_table():
    matrix = binned()
    parts = _core.parts_of_table(matrix)
    before = [codes.copy() for codes in parts["codes"]]
    assert not any(codes.flags.writeable for codes in parts["codes"])
    assert parts["codes"][0].ctypes.data == _core.parts_of_table(matrix)["codes"][0].ctypes.data
    del matrix
    for codes, old in zip(parts["codes"], before, strict=True):
        np.testing.assert_array_equal(codes, old)


def test_codes_may_be_unaligned():
    """As they are in a file that is mapped into memory."""
    parts = _core.parts_of_table(binned())
    for t, codes in enumerate(parts["codes"]):
        odd = np.frombuffer(b"\0" + codes.tobytes(), dtype=np.uint8)[1:].view(codes.dtype)
        parts["codes"][t] = odd.reshape(codes.shape)
    np.testing.assert_array_equal(_core.table_from_parts(parts, 1).codes(), binned().codes())


def test_a_table_of_no_rows_keeps_its_layout():
    matrix = binned()
    cuts = [matrix.cuts(f) for f in range(matrix.n_features)]
    missing = np.array([matrix.has_missing(f) for f in range(matrix.n_features)], dtype=np.uint8)
    empty = _core.table_of_cuts(
        cuts, missing, None, np.ones(sum(len(c) + 1 for c in cuts) + missing.sum(), "i8")
    )
    again = _core.table_from_parts(_core.parts_of_table(empty), 1)
    assert again.n_rows == 0
    np.testing.assert_array_equal(
        _core.parts_of_table(again)["tile_skips"], _core.parts_of_table(empty)["tile_skips"]
    )


# --- forged ones -------------------------------------------------------------------------------------------


def changed(name, index, value):
    def change(parts):
        array = np.array(parts[name])
        array[index] = value
        parts[name] = array

    return change


def codes_changed(tile, value):
    def change(parts):
        codes = np.array(parts["codes"][tile])
        codes[-1, -1] = value
        parts["codes"][tile] = codes

    return change


def replaced(name, value):
    def change(parts):
        parts[name] = value(parts[name]) if callable(value) else value

    return change


def swapped_tiles(parts):
    begin, n = parts["tile_begin"], len(parts["codes"])
    order = [n - 1, *range(n - 1)]
    for name in ("tile_feature", "tile_frequent"):
        parts[name] = np.concatenate([parts[name][begin[t] : begin[t + 1]] for t in order])
    parts["tile_skips"] = parts["tile_skips"][order]
    parts["codes"] = [parts["codes"][t] for t in order]
    parts["tile_begin"] = np.concatenate([[0], np.cumsum(np.diff(begin)[order])])


FORGERIES = {
    "a code beyond": (codes_changed(0, 255), "beyond its"),
    "a wide code beyond": (codes_changed(1, 65535), "beyond its"),
    "no rows": (replaced("n_rows", 0), "were expected"),
    "other rows": (replaced("n_rows", 899), "were expected"),
    "too many rows": (replaced("n_rows", 2**40), "2\\^29"),
    "negative rows": (replaced("n_rows", -1), "n_rows"),
    "rows as text": (replaced("n_rows", "many"), "n_rows"),
    "cuts that do not ascend": (changed("cuts", 1, -1e9), "ascend"),
    "NaN as a cut": (changed("cuts", 0, np.nan), "finite"),
    "an infinite cut": (changed("cuts", 0, -np.inf), "finite"),
    "fewer cuts": (replaced("cuts", lambda old: old[:-1]), "cut_begin"),
    "cuts of another type": (replaced("cuts", lambda old: old.astype(np.float32)), "cuts: missing"),
    "cut_begin beyond": (changed("cut_begin", 1, 10**12), "cut_begin"),
    "cut_begin below": (changed("cut_begin", 1, -5), "cut_begin"),
    "cut_begin too short": (replaced("cut_begin", lambda old: old[:-1]), "cut_begin"),
    "a bin less": (changed("cut_begin", 1, 3), ""),
    "one flag less": (replaced("categorical", lambda old: old[:-1]), "one each per feature"),
    "no features": (replaced("has_missing", np.empty(0, np.uint8)), "one each per feature"),
    "numbers as categories": (changed("categorical", 0, 1), "a bin for each category"),
    "categories as numbers": (changed("categorical", 3, 0), "is numeric"),
    "categories descend": (changed("categories", 0, 9), "categories of feature 3"),
    "a category too many": (changed("categories", -1, 10_000), "below 10000"),
    "category_begin beyond": (changed("category_begin", 4, 10**6), "category_begin"),
    "other cuts of categories": (
        lambda parts: changed("cuts", parts["cut_begin"][3], 0.25)(parts),
        "halfway",
    ),
    "a feature twice": (lambda parts: changed("tile_feature", 1, parts["tile_feature"][0])(parts), "twice"),
    "a feature beyond": (changed("tile_feature", 0, 8), "does not exist"),
    "a negative feature": (changed("tile_feature", 0, -1), "does not exist"),
    "features missing": (
        lambda parts: [
            replaced(name, lambda old: old[:-1])(parts)
            for name in ("tile_feature", "tile_frequent", "tile_skips", "tile_begin", "codes")
        ],
        "in no tile",
    ),
    "tiles in another order": (swapped_tiles, "out of order"),
    "tile_begin beyond": (changed("tile_begin", 1, 99), "tile_begin"),
    "an empty tile": (changed("tile_begin", 1, 0), "0 features"),
    "a frequent bin beyond": (changed("tile_frequent", 0, 2**31), "frequent bin"),
    "a tile that skips": (lambda parts: changed("tile_skips", 0, 1 - parts["tile_skips"][0])(parts), ""),
    "codes as a list": (replaced("codes", lambda old: [1] * len(old)), "uint8 or uint16"),
    "codes of other bits": (
        replaced("codes", lambda old: [np.ascontiguousarray(c, dtype=np.uint16) for c in old]),
        "8 bits",
    ),
    "codes of 8 bits": (replaced("codes", lambda old: [c.astype(np.uint8) for c in old]), "16 bits"),
    "codes column by column": (
        replaced("codes", lambda old: [np.asfortranarray(c) for c in old]),
        "row by row",
    ),
    "one tile less": (replaced("codes", lambda old: old[:-1]), "one each per tile"),
    "fewer rows of codes": (replaced("codes", lambda old: [c[:-1] for c in old]), "were expected"),
    "no codes": (lambda parts: parts.pop("codes"), "codes"),
    "no cuts": (lambda parts: parts.pop("cuts"), "cuts: missing"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_parts_are_refused(name):
    change, message = FORGERIES[name]
    parts = _core.parts_of_table(binned())
    change(parts)
    if message:
        with pytest.raises(ValueError, match=message):
            _core.table_from_parts(parts, 2)
    else:  # refused, or a table that works
        try:
            matrix = _core.table_from_parts(parts, 2)
        except ValueError:
            return
        grown(matrix)


def test_random_damage_is_refused_or_works():
    rng = np.random.default_rng(5)
    kept = 0
    for _ in range(300):
        parts = _core.parts_of_table(binned(16, n=200))
        name = rng.choice(sorted(parts.keys() - {"n_rows"}))
        one = parts if name != "codes" else parts["codes"]
        at = name if name != "codes" else int(rng.integers(len(parts["codes"])))
        array = np.array(one[at])
        if array.size == 0:
            continue
        raw = array.view(np.uint8).ravel()
        raw[rng.integers(raw.size)] ^= 1 << int(rng.integers(8))
        one[at] = array
        try:
            matrix = _core.table_from_parts(parts, 1)
        except ValueError:
            continue
        kept += 1
        grown(matrix)
    assert kept > 0
