"""Prediction: whichever way the core takes, a row gets the sum of its leaves, tree after tree, to the bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.model.forest import Forest

N_FEATURES = 9
SETS = ("baseline", "avx2", "avx512")


def random_tree(
    rng: np.random.Generator, n_leaves: int, chain: bool, depth: int | None
) -> npt.NDArray[np.int32]:
    """Return `left` of a random tree: children side by side, after their parent."""
    left = [-1]
    leaves = [(0, 0)]
    for _ in range(n_leaves - 1):
        splittable = [i for i, (_, level) in enumerate(leaves) if depth is None or level < depth]
        node, level = leaves.pop(-1 if chain else int(rng.choice(splittable)))
        left[node] = len(left)
        leaves += [(len(left), level + 1), (len(left) + 1, level + 1)]
        left += [-1, -1]
    return np.array(left, dtype=np.int32)


def random_forest(
    seed: int,
    *,
    n_trees: int = 60,
    n_leaves: tuple[int, ...] = (1, 2, 3, 17, 64),
    n_outputs: int = 3,
    n_cuts: int = 40,
    pairs: int = 0,
    one_per_tree: bool = False,
    chain: bool = False,
    depth: int | None = None,
) -> Forest:
    """Return a forest of random splits; `pairs`: values of a sparse leaf; `depth`: at most."""
    rng = np.random.default_rng(seed)
    # Thresholds on a grid, so that rows on the same grid meet them exactly, and some between any two float32.
    grid = np.concatenate([np.linspace(-2, 2, n_cuts), [0.1, -0.0, 1e300, -1e300, np.inf, -np.inf]])
    trees = [random_tree(rng, int(rng.choice(n_leaves)), chain, depth) for _ in range(n_trees)]
    left = np.concatenate(trees)
    inner = left >= 0
    width = 1 if one_per_tree else pairs or n_outputs
    n_values = int((~inner).sum()) * width
    value_begin = np.full(len(left), -1, dtype=np.int64)
    value_begin[~inner] = rng.permutation(int((~inner).sum())) * width
    size = len(left)
    output = np.arange(n_trees, dtype=np.int32) % n_outputs
    arrays = {
        "base_score": rng.normal(size=n_outputs),
        "unit": np.ones(n_outputs),
        "node_begin": np.cumsum([0] + [len(tree) for tree in trees], dtype=np.int64),
        "tree_output": output if one_per_tree else np.zeros(n_trees, np.int32),
        "tree_width": np.full(n_trees, width, np.int32),
        "feature": np.where(inner, rng.integers(N_FEATURES, size=size), -1).astype(np.int32),
        "threshold": np.where(inner, rng.choice(grid, size=size), 0.0),
        "missing_left": rng.integers(2, size=size).astype(np.uint8),
        "left": left,
        "gain": np.zeros(size),
        "cover": np.zeros(size),
        "count": np.zeros(size, dtype=np.int64),
        "value_begin": value_begin,
        "values": (rng.normal(size=n_values) * 10.0 ** rng.integers(-6, 6, size=n_values)).astype(np.float32),
        "value_output": rng.integers(n_outputs, size=n_values if pairs else 0).astype(np.int32),
        "shape": np.array([N_FEATURES, n_outputs, n_outputs if one_per_tree else 1], dtype=np.int64),
    }
    return Forest.from_arrays(arrays)


def random_rows(seed: int, n_rows: int, missing: float = 0.1) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, N_FEATURES)) < 0.5, rng.normal(size=(n_rows, N_FEATURES)), 0.1)
    on_grid = rng.random(X.shape) < 0.3
    X[on_grid] = rng.choice(np.linspace(-2, 2, 40), size=int(on_grid.sum()))
    if missing > 0:
        X[rng.random(X.shape) < missing] = np.nan
        X[rng.random(X.shape) < 0.02] = np.inf
        X[rng.random(X.shape) < 0.02] = -np.inf
    return X


def leaves_of(forest: Forest, X: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Return the leaves by a plain walk, all rows at once."""
    values = X.astype(np.float64)
    out = np.zeros((len(X), forest.n_trees), dtype=np.int64)
    for tree, first in enumerate(forest.node_begin[:-1]):
        node = out[:, tree]
        while (inner := forest.left[first + node] >= 0).any():
            at = first + node[inner]
            value = values[inner, forest.feature[at]]
            left = np.where(np.isnan(value), forest.missing_left[at] != 0, value <= forest.threshold[at])
            node[inner] = forest.left[at] + np.where(left, 0, 1)
    return out


def expected_raw(forest: Forest, X: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    leaves = leaves_of(forest, X)
    raw = np.tile(forest.base_score, (len(X), 1))
    for tree in range(forest.n_trees):
        begin = forest.value_begin[forest.node_begin[tree] + leaves[:, tree]]
        for j in range(forest.tree_width[tree]):
            if len(forest.value_output) > 0:
                column = forest.value_output[begin + j].astype(np.int64)
            else:
                column = np.full(len(X), j)
            raw[np.arange(len(X)), forest.tree_output[tree] + column] += forest.values[begin + j]
    return raw


@pytest.fixture
def each_instruction_set():
    """The names of the sets this machine has; the one in use comes back afterwards."""
    before = _core.kernels()
    yield [name for name in SETS if _core.select_kernels(name)]
    assert _core.select_kernels(before)


FORESTS = {
    "small trees": {},
    "one output": {"n_outputs": 1},
    "as many outputs as a vector holds": {"n_outputs": 8},
    "outputs of whole and broken vectors": {"n_outputs": 23},
    "more outputs than the registers hold": {"n_outputs": 109},
    "one output per tree": {"one_per_tree": True},
    "sparse leaves": {"n_outputs": 12, "pairs": 4},
    "as many leaves as a byte counts": {"n_leaves": (255, 256)},
    "more leaves than a byte counts": {"n_leaves": (257, 300)},
    "full trees of depth 1": {"n_leaves": (2,), "depth": 1},
    "trees of depth 3": {"n_leaves": (4, 5, 8), "depth": 3},
    "trees of depth 6": {"n_leaves": (7, 30, 64), "depth": 6, "n_outputs": 17},
    "full trees of depth 8": {"n_leaves": (256,), "depth": 8},
    "trees of depth 8": {"n_leaves": (9, 100, 150, 200, 255), "depth": 8},
    "sparse leaves of trees of depth 8": {"n_leaves": (100, 200), "depth": 8, "n_outputs": 12, "pairs": 4},
    "trees of depth 9": {"n_leaves": (100, 256), "depth": 9},
    "trees of depth 8 with codes of 16 bits": {
        "n_leaves": (9, 64, 150, 256),
        "depth": 8,
        "n_cuts": 700,
        "n_trees": 120,
    },
    "a chain": {"n_leaves": (40, 250), "chain": True},
    "codes of 8 bits at most": {"n_cuts": 249, "n_leaves": (256,), "n_trees": 120},
    "codes of 16 bits": {"n_cuts": 700, "n_leaves": (64, 200, 300), "n_trees": 120},
    "leaves only": {"n_leaves": (1,)},
}


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "with missing values"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("parameters", FORESTS.values(), ids=FORESTS.keys())
def test_every_instruction_set_and_number_of_threads_gives_the_sum_of_the_leaves(
    each_instruction_set, parameters, dtype, missing
) -> None:
    X = random_rows(1, 700, missing).astype(dtype)
    forest = random_forest(0, **parameters)
    expected = expected_raw(forest, X)
    np.testing.assert_array_equal(forest.apply(X), leaves_of(forest, X))
    for name in each_instruction_set:
        assert _core.select_kernels(name)
        fresh = copy.copy(forest)  # what is prepared for prediction may depend on the instruction set
        for n_threads in (1, 2, 4):
            np.testing.assert_array_equal(fresh.predict_raw(X, n_threads=n_threads), expected, err_msg=name)


@pytest.mark.parametrize(
    "name", ["trees of depth 8", "trees of depth 8 with codes of 16 bits", "small trees"]
)
def test_what_one_instruction_set_prepares_serves_the_others(each_instruction_set, name: str) -> None:
    X = random_rows(1, 300)
    for prepared_by in each_instruction_set:
        forest = random_forest(0, **FORESTS[name])
        assert _core.select_kernels(prepared_by)
        expected = forest.predict_raw(X)
        np.testing.assert_array_equal(expected, expected_raw(forest, X))
        for used_by in each_instruction_set:
            assert _core.select_kernels(used_by)
            np.testing.assert_array_equal(forest.predict_raw(X), expected, err_msg=f"{prepared_by} {used_by}")


@pytest.mark.parametrize("first", range(1, 101, 20))
def test_every_number_of_outputs_has_the_sum_of_the_leaves(each_instruction_set, first: int) -> None:
    """Sums are kept in registers: there is code for each number of them, and for rows that are left over."""
    X = random_rows(1, 127)
    for n_outputs in range(first, first + 20):
        forest = random_forest(n_outputs, n_trees=5, n_leaves=(2, 7), n_outputs=n_outputs)
        expected = expected_raw(forest, X)
        for name in each_instruction_set:
            assert _core.select_kernels(name)
            message = f"{name}, {n_outputs} outputs"
            np.testing.assert_array_equal(copy.copy(forest).predict_raw(X), expected, err_msg=message)


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 200])
def test_a_row_does_not_depend_on_the_rows_beside_it(n_rows: int) -> None:
    forest = random_forest(2, n_outputs=10)
    X = random_rows(3, 2000)
    everything = forest.predict_raw(X)
    for dtype in (np.float64, np.float32):
        rows = X[-n_rows:].astype(dtype)
        np.testing.assert_array_equal(forest.predict_raw(rows), expected_raw(forest, rows))
    np.testing.assert_array_equal(forest.predict_raw(X[-n_rows:]), everything[-n_rows:])


@pytest.mark.parametrize("n_rows", [3, 500])
def test_memory_layout_and_dtype_change_no_bit(n_rows: int) -> None:
    forest = random_forest(4)
    forest.predict_raw(random_rows(0, 2000))
    grid = np.random.default_rng(5).integers(-3, 4, size=(n_rows, N_FEATURES))
    expected = expected_raw(forest, grid)
    wide = np.zeros((n_rows, 2 * N_FEATURES), dtype=np.float32)
    wide[:, ::2] = grid
    variants = [grid.astype(kind) for kind in "bhilfd"]
    variants += [np.asfortranarray(grid, dtype=np.float32), wide[:, ::2]]
    variants += [grid[::-1].astype(float)[::-1], grid[:, ::-1].astype(np.float32)[:, ::-1]]
    for variant in variants:
        np.testing.assert_array_equal(forest.predict_raw(variant), expected)


def test_some_rounds_and_stages() -> None:
    forest = random_forest(6, one_per_tree=True)
    X = random_rows(7, 800)
    stages = list(forest.staged_raw(X))
    for rounds in (1, 3, 20):
        np.testing.assert_array_equal(forest.predict_raw(X, n_rounds=rounds), stages[rounds - 1])


def test_what_is_prepared_for_prediction_is_dropped_by_copies() -> None:
    forest = random_forest(8)
    X = random_rows(9, 800)
    expected = forest.predict_raw(X)
    for other in (pickle.loads(pickle.dumps(forest)), copy.copy(forest), copy.deepcopy(forest)):
        assert other._packed is None
        np.testing.assert_array_equal(other.predict_raw(X), expected)


def test_arrays_that_are_no_tree_are_walked_all_the_same() -> None:
    """A file may hold nodes that nothing leads to; they are harmless."""
    arrays = random_forest(10, n_trees=5, n_leaves=(30,)).to_arrays()
    begin = arrays["node_begin"]
    inner = np.flatnonzero(arrays["left"][: begin[1]] >= 0)
    arrays["left"] = arrays["left"].copy()
    arrays["left"][inner[3]] = arrays["left"][inner[4]]
    forest = Forest.from_arrays(arrays)
    X = random_rows(11, 800)
    np.testing.assert_array_equal(forest.predict_raw(X), expected_raw(forest, X))


# --- through the estimators ---

X_TRAIN = random_rows(20, 400, missing=0.0)
CLASSES = np.array(["a", "b", "c"])[np.digitize(X_TRAIN[:, 0] + X_TRAIN[:, 1], [-0.5, 0.5])]


@pytest.fixture(scope="module")
def classifier() -> PolyleafClassifier:
    return PolyleafClassifier(n_estimators=15, min_samples_leaf=5).fit(X_TRAIN, CLASSES)


@pytest.fixture(scope="module")
def regressor() -> PolyleafRegressor:
    return PolyleafRegressor(n_estimators=15, min_samples_leaf=5).fit(X_TRAIN, X_TRAIN[:, :2] ** 2)


def test_plain_arrays_are_predicted_as_lists_are(classifier, regressor) -> None:
    """Lists take the long way through scikit-learn's checks."""
    for X in (X_TRAIN, X_TRAIN[:1], X_TRAIN.astype(np.float32)[:1]):
        for method in (
            classifier.predict,
            classifier.predict_proba,
            classifier.decision_function,
            classifier.apply,
            regressor.predict,
        ):
            np.testing.assert_array_equal(method(X), method(X.tolist()))
            records = np.zeros(len(X), dtype=[("row", X.dtype, (N_FEATURES,)), ("flag", "u1")])
            records["row"] = X
            np.testing.assert_array_equal(method(records["row"]), method(X))


class Subclass(np.ndarray):
    pass


def test_bad_tables_get_the_errors_they_always_got(classifier) -> None:
    good = X_TRAIN[:4]
    with pytest.raises(ValueError, match="X has 8 features, but PolyleafClassifier is expecting 9 features"):
        classifier.predict(good[:, :8])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        classifier.predict(good[0])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        classifier.predict(good[np.newaxis])
    with pytest.raises(ValueError, match="Complex data not supported"):
        classifier.predict(good + 1j)
    with pytest.raises(ValueError, match=r"datetime64\[s\]; turn dates and times into numbers"):
        classifier.predict(good.astype("M8[s]"))
    np.testing.assert_array_equal(classifier.predict(good.view(Subclass)), classifier.predict(good))
    np.testing.assert_array_equal(classifier.predict(good.astype(">f8")), classifier.predict(good))
    masked = np.ma.masked_greater(good, 1.0)
    np.testing.assert_array_equal(classifier.predict(masked), classifier.predict(masked.filled(np.nan)))


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 400, 150_000])
def test_an_infinity_is_found_wherever_it_is(classifier, layout, dtype, n_rows) -> None:
    X = layout(np.resize(X_TRAIN, (n_rows, N_FEATURES)).astype(dtype))
    X[0, 0] = np.nan
    assert not _core.has_infinity(X, 2)
    for row, column, value in ((0, 1, np.inf), (n_rows // 2, 8, -np.inf), (n_rows - 1, 4, np.inf)):
        before, X[row, column] = X[row, column], value
        assert _core.has_infinity(X, 1)
        assert _core.has_infinity(X, 2)
        with pytest.raises(ValueError, match=f"X contains infinity.* in row {row}, column {column}\\."):
            classifier.predict(X)
        X[row, column] = before


def test_names_of_features_are_still_checked() -> None:
    frame = pd.DataFrame(X_TRAIN, columns=[f"f{j}" for j in range(N_FEATURES)])
    model = PolyleafRegressor(n_estimators=3).fit(frame, X_TRAIN[:, 0])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X_TRAIN)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    unnamed = PolyleafRegressor(n_estimators=3).fit(X_TRAIN, X_TRAIN[:, 0])
    with pytest.warns(UserWarning, match="X has feature names"):
        unnamed.predict(frame)
