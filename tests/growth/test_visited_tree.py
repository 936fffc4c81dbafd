"""Nodes that a device has visited, in whatever order, become the tree that the CPU grows, array by array."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from growing import settings, task, varied
from polyleaf import _core
from polyleaf.data.binning import bin_table
from polyleaf.gpu.memory import LEAF_CHUNK
from polyleaf.gpu.structs import struct_type
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import RowSample
from polyleaf.growth.tree import Tree

pytestmark = pytest.mark.cpu_only("the core alone")

NODE = struct_type("VisitedNode")
MISSING_LEFT, MISSING_SEEN = 1, 2
UNLIMITED = 2**30
RATE = 0.25

Rows = npt.NDArray[np.uint32]


# --- growing on the CPU ------------------------------------------------------------------------------------


@dataclass
class Growth:
    """Gradients on a table, and how trees are grown from them."""

    matrix: _core.BinnedMatrix
    gradient: npt.NDArray[np.float32]
    hessian: npt.NDArray[np.float32] | None
    weight: npt.NDArray[np.float64] | None
    rules: _core.GrowSettings
    rows: Rows | None = None
    sample_weight: npt.NDArray[np.float64] | None = None

    @property
    def n_outputs(self) -> int:
        return self.gradient.shape[1]

    @property
    def unit(self) -> npt.NDArray[np.float64]:
        return 2.0 ** (np.arange(self.n_outputs) % 3 - 1)

    def grow(self, rules: _core.GrowSettings | None = None) -> Tree:
        wanted = task(
            self.gradient,
            self.hessian,
            self.weight,
            unit=self.unit,
            sample=RowSample(self.rows, self.sample_weight),
            learning_rate=RATE,
        )
        return DenseGrower(self.matrix, rules or self.rules).grow(wanted)


def growth(
    loss: str,
    *,
    gaps: bool = False,
    weighted: bool = False,
    sampling: str | None = None,
    n_rows: int = 700,
    seed: int = 0,
    **rules: Any,
) -> Growth:
    """The first round of a loss: targets that follow from the features, scores of 0."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n_rows, 5))
    signal = np.tanh(table) @ rng.normal(size=(5, 3)) + table[:, [0]] * table[:, 1:4]
    signal += 0.3 * rng.normal(size=signal.shape)
    if gaps:
        table[rng.random(table.shape) < 0.15] = np.nan
        table[:, 4] = signal[:, 0].round(1)  # one without
    hessian = None
    if loss == "squared error":
        gradient = -signal
    elif loss == "one output":
        gradient = -signal[:, :1]
    elif loss == "logistic":
        probability = 1 / (1 + np.exp(-rng.normal(size=signal.shape)))
        gradient = probability - (signal > 0)
        hessian = (probability * (1 - probability)).astype(np.float32)
    else:
        probability = rng.dirichlet(np.ones(3), size=n_rows)
        gradient = probability - np.eye(3)[signal.argmax(axis=1)]
        hessian = np.abs(gradient).astype(np.float32)
    weight = rng.integers(1, 9, n_rows) / 4.0 if weighted else None
    rows = sample_weight = None
    if sampling is not None:
        rows = np.flatnonzero(rng.random(n_rows) < 0.5).astype(np.uint32)
    if sampling == "gradient-based":
        sample_weight = rng.uniform(0.5, 3, n_rows) * (1.0 if weight is None else weight)
    matrix = bin_table(table, weight, 40, 1)
    tree_rules = settings(**({"min_samples_leaf": 5, "reg_lambda": 0.5} | rules))
    return Growth(matrix, gradient.astype(np.float32), hessian, weight, tree_rules, rows, sample_weight)


# --- as a device would visit it ----------------------------------------------------------------------------


@dataclass
class Visit:
    """Nodes in some order, and the row numbers, those of a node side by side."""

    nodes: npt.NDArray[np.void]
    places: Rows

    def tree(self, matrix: _core.BinnedMatrix, max_leaves: int | None) -> _core.VisitedTree:
        return _core.VisitedTree(matrix, self.nodes.view(np.uint8), max_leaves)


def by_levels(tree: Tree) -> list[int]:
    """Nodes level by level, as a GPU goes."""
    order, level = [0], [0]
    while level:
        level = [child for node in level if tree.left[node] >= 0 for child in pair(tree, node)]
        order += level
    return order


def depth_first(tree: Tree) -> list[int]:
    """Nodes depth first, the right child's side first."""
    order, stack = [0], [0]
    while stack:
        node = stack.pop()
        if tree.left[node] >= 0:
            order += pair(tree, node)
            stack += pair(tree, node)
    return order


def as_created(tree: Tree) -> list[int]:
    return list(range(len(tree.left)))


def pair(tree: Tree, node: int) -> list[int]:
    return [int(tree.left[node]), int(tree.left[node]) + 1]


ORDERS = (by_levels, depth_first, as_created)


def visit(tree: Tree, of: Growth, order: Callable[[Tree], list[int]] = by_levels) -> Visit:
    """What a device would write that has visited all nodes of this tree."""
    codes = of.matrix.codes()
    n_values = np.array([len(of.matrix.cuts(feature)) + 1 for feature in range(of.matrix.n_features)])
    all_rows = np.arange(of.matrix.n_rows, dtype=np.uint32) if of.rows is None else of.rows
    numbers = order(tree)
    place_of = {node: place for place, node in enumerate(numbers)}
    rng = np.random.default_rng(len(numbers))
    nodes = np.zeros(len(numbers), NODE)
    nodes["left"] = nodes["feature"] = nodes["bin"] = -1
    places = np.zeros(len(all_rows), dtype=np.uint32)
    rows_of = {0: (0, all_rows, np.inf)}
    for node in sorted(numbers):  # parents first
        begin, rows, minimum = rows_of[node]
        record = nodes[place_of[node]]
        places[begin : begin + len(rows)] = rows
        record["begin"], record["end"] = begin, begin + len(rows)
        record["path_minimum"] = minimum
        if tree.left[node] < 0:
            continue
        feature = int(tree.feature[node])
        code = codes[rows, feature]
        missing = code == n_values[feature]
        left = np.where(missing, tree.missing_left[node] != 0, code <= tree.bin[node])
        record["gain"] = record["score"] = tree.gain[node]
        record["left"] = place_of[int(tree.left[node])]
        record["feature"], record["bin"] = feature, tree.bin[node]
        if missing.any():
            record["flags"] = MISSING_SEEN | (MISSING_LEFT if tree.missing_left[node] else 0)
        else:  # no one may rely on this
            record["flags"] = rng.integers(2) * MISSING_LEFT
        minimum = min(minimum, float(tree.gain[node]))
        children = zip(pair(tree, node), (rows[left], rows[~left]), strict=True)
        for child, part in children:
            rows_of[child] = (begin, part, minimum)
            begin += len(part)
    return Visit(nodes, places)


def sum_of_pieces(terms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Row after row, in pieces."""
    total = np.zeros(terms.shape[1:])
    for first in range(0, len(terms), LEAF_CHUNK):
        total = total + np.cumsum(terms[first : first + LEAF_CHUNK], axis=0)[-1]
    return total


def finished(visited: _core.VisitedTree, places: Rows, of: Growth) -> Tree:
    """The tree, with leaf values from the rows of its leaves by their formula (eq. 15)."""
    rules = of.rules
    if of.sample_weight is None:
        rows_of_leaves = [places[begin:end] for begin, end in visited.leaf_rows()]
    else:
        leaf = leaves_of_all_rows(visited.routes(), of.matrix)
        rows_of_leaves = [np.flatnonzero(leaf == number) for number in range(len(visited.leaf_rows()))]
    d = of.n_outputs
    sums = np.zeros((len(rows_of_leaves), 2 * d + 1))
    for number, rows in enumerate(rows_of_leaves):
        weight = np.ones(len(rows)) if of.weight is None else of.weight[rows]
        sums[number, :d] = sum_of_pieces(weight[:, None] * of.gradient[rows].astype(np.float64))
        if of.hessian is not None:
            sums[number, d : 2 * d] = sum_of_pieces(weight[:, None] * of.hessian[rows].astype(np.float64))
        sums[number, -1] = sum_of_pieces(weight[:, None])[0]
    shrunk = sums[:, :d]
    if rules.reg_alpha:
        shrunk = np.sign(shrunk) * np.maximum(np.abs(shrunk) - rules.reg_alpha / of.unit, 0.0)
    denominator = (sums[:, -1:] if of.hessian is None else sums[:, d : 2 * d]) + rules.reg_lambda
    arrays = visited.finish(
        values=(RATE * (-shrunk / denominator)).astype(np.float32),
        cover=sums[:, -1].copy(),
        all_rows=None if of.sample_weight is None else np.array([len(rows) for rows in rows_of_leaves]),
        leaf_sums=sums,
        own_hessian=of.hessian is not None,
        unit=of.unit,
        settings=rules,
    )
    return Tree(**arrays)


def leaves_of_all_rows(arrays: dict[str, npt.NDArray[Any]], matrix: _core.BinnedMatrix) -> Any:
    """The leaf of each row of the table, by its codes."""
    codes = matrix.codes()
    n_values = np.array([len(matrix.cuts(feature)) + 1 for feature in range(matrix.n_features)])
    node = np.zeros(matrix.n_rows, dtype=np.intp)
    everyone = np.arange(matrix.n_rows)
    while (arrays["left"][node] >= 0).any():
        feature = np.maximum(arrays["feature"][node], 0)
        code = codes[everyone, feature]
        left = np.where(
            code == n_values[feature], arrays["missing_left"][node] != 0, code <= arrays["bin"][node]
        )
        down = arrays["left"][node] + np.where(left, 0, 1)
        node = np.where(arrays["left"][node] >= 0, down, node)
    return arrays["leaf"][node]


def assert_same_tree(one: Tree, other: Tree) -> None:
    for name in Tree.__dataclass_fields__:
        mine, yours = getattr(one, name), getattr(other, name)
        assert mine.dtype == yours.dtype, name
        np.testing.assert_array_equal(mine, yours, err_msg=name)
        assert mine.tobytes() == yours.tobytes(), name


CASES: dict[str, dict[str, Any]] = {
    "squared error": {"loss": "squared error"},
    "one output": {"loss": "one output"},
    "logistic": {"loss": "logistic"},
    "softmax": {"loss": "softmax"},
    "missing values": {"loss": "squared error", "gaps": True},
    "missing values and Hessians": {"loss": "logistic", "gaps": True, "weighted": True},
    "weights": {"loss": "squared error", "weighted": True},
    "L1": {"loss": "logistic", "reg_alpha": 2.0},
    "L1 and weights": {"loss": "squared error", "weighted": True, "reg_alpha": 2.0},
    "deep": {"loss": "softmax", "max_depth": 14, "min_samples_leaf": 1},
    "stump": {"loss": "logistic", "max_depth": 1},
    "no split": {"loss": "logistic", "min_split_gain": 1e9},
    "sampled": {"loss": "squared error", "sampling": "uniform"},
    "sampled with gaps": {"loss": "softmax", "sampling": "uniform", "gaps": True, "weighted": True},
    "gradient-based": {"loss": "logistic", "sampling": "gradient-based"},
    "gradient-based with gaps": {"loss": "logistic", "sampling": "gradient-based", "gaps": True},
    "gradient-based with weights": {"loss": "squared error", "sampling": "gradient-based", "weighted": True},
    "leaves of several pieces": {"loss": "logistic", "n_rows": 5000, "max_depth": 2},
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES)
def test_all_nodes_of_a_tree_give_it_back(case: str, order: Callable[[Tree], list[int]]) -> None:
    of = growth(**CASES[case])
    tree = of.grow()
    assert (len(tree.left) > 1) == (case != "no split")
    seen = visit(tree, of, order)
    assert_same_tree(finished(seen.tree(of.matrix, None), seen.places, of), tree)


@pytest.mark.parametrize("max_leaves", [2, 3, 7, 12, 31])
@pytest.mark.parametrize("case", CASES)
def test_only_what_best_first_growth_keeps_is_kept(case: str, max_leaves: int) -> None:
    """The nodes are those of the whole tree; the CPU stops at so many leaves."""
    of = growth(**CASES[case])
    whole = of.grow()
    tree = of.grow(varied(of.rules, max_leaves=max_leaves))
    assert len(tree.values) == min(max_leaves, len(whole.values))
    for order in ORDERS:
        seen = visit(whole, of, order)
        assert_same_tree(finished(seen.tree(of.matrix, max_leaves), seen.places, of), tree)


@pytest.mark.parametrize("seed", range(6))
def test_leaf_wise_growth(seed: int) -> None:
    """Without a limit of the depth, on other data each time."""
    of = growth("logistic", gaps=seed % 2 == 0, weighted=seed % 3 == 0, seed=seed, max_depth=10)
    whole = of.grow()
    tree = of.grow(varied(of.rules, max_depth=None, max_leaves=9))
    seen = visit(whole, of)
    assert_same_tree(finished(seen.tree(of.matrix, 9), seen.places, of), tree)


def test_rows_of_leaves() -> None:
    """First and last place of each, in the order of the leaves; together they are all rows."""
    of = growth("softmax", gaps=True)
    tree = of.grow()
    seen = visit(tree, of)
    places = seen.tree(of.matrix, None).leaf_rows()
    assert places.dtype == np.uint32
    assert places.shape == (len(tree.values), 2)
    assert sorted(place for begin, end in places for place in range(begin, end)) == list(range(700))
    np.testing.assert_array_equal(places[:, 1] - places[:, 0], tree.count[tree.left < 0])
    leaf = leaves_of_all_rows({one.name: getattr(tree, one.name) for one in fields(Tree)}, of.matrix)
    for number, (begin, end) in enumerate(places):
        assert set(leaf[seen.places[begin:end]]) == {number}


@pytest.mark.parametrize("max_leaves", [None, 5])
def test_routes_send_unseen_missing_values_with_most_rows(max_leaves: int | None) -> None:
    """By the number of the rows that splits were found on; all else is that of the finished tree."""
    of = growth("logistic", gaps=True, sampling="uniform")
    tree = of.grow(varied(of.rules, max_leaves=max_leaves))
    seen = visit(of.grow(), of)
    routes = seen.tree(of.matrix, max_leaves).routes()
    for name in ("feature", "bin", "threshold", "left", "gain", "count", "leaf"):
        np.testing.assert_array_equal(routes[name], getattr(tree, name), err_msg=name)
    np.testing.assert_array_equal(routes["cover"], tree.count)
    assert routes["values"].size == 0
    codes = of.matrix.codes()
    leaf = leaves_of_all_rows(routes, of.matrix)[of.rows]
    n_unseen = 0
    for node in np.flatnonzero(tree.left >= 0):
        under = {int(tree.leaf[child]) for child in leaves_under(tree, node)}
        rows = of.rows[np.isin(leaf, list(under))]
        feature = tree.feature[node]
        seen_missing = (codes[rows, feature] > len(of.matrix.cuts(feature))).any()
        if seen_missing:
            assert routes["missing_left"][node] == tree.missing_left[node]
        else:
            n_unseen += 1
            left, right = tree.count[pair(tree, node)]
            assert routes["missing_left"][node] == (left >= right)
    assert n_unseen > 0


def leaves_under(tree: Tree, node: int) -> list[int]:
    if tree.left[node] < 0:
        return [node]
    return [leaf for child in pair(tree, node) for leaf in leaves_under(tree, child)]


# --- the order of best-first growth ------------------------------------------------------------------------


def small_tree(left_gain: float, right_gain: float, score: float) -> npt.NDArray[np.void]:
    """A root with two children that are both split; 8 rows."""
    nodes = np.zeros(7, NODE)
    nodes["left"] = nodes["feature"] = nodes["bin"] = -1
    for index, (begin, end) in enumerate([(0, 8), (0, 4), (4, 8), (0, 2), (2, 4), (4, 6), (6, 8)]):
        nodes[index]["begin"], nodes[index]["end"] = begin, end
    for index, gain, child in ((0, 10.0, 1), (1, left_gain, 3), (2, right_gain, 5)):
        nodes[index]["gain"], nodes[index]["score"], nodes[index]["left"] = gain, score, child
        nodes[index]["feature"], nodes[index]["bin"] = 0, index
    return nodes


@pytest.fixture(scope="module")
def matrix() -> _core.BinnedMatrix:
    return bin_table(np.arange(16.0).reshape(8, 2), None, 255, 1)


@pytest.mark.parametrize(
    ("left_gain", "right_gain", "split"),
    [
        (1.0, 2.0, 2),
        (2.0, 1.0, 1),
        (1.0, 1.0, 1),  # a tie goes to the node that was made first
        (1.0 - 1e-11, 1.0, 1),  # equal but for the rounding of a score of 100
        (1.0 - 1e-9, 1.0, 2),
    ],
)
def test_the_larger_gain_is_split_first(
    matrix: _core.BinnedMatrix, left_gain: float, right_gain: float, split: int
) -> None:
    nodes = small_tree(left_gain, right_gain, score=100.0)
    routes = _core.VisitedTree(matrix, nodes.view(np.uint8), 3).routes()
    assert routes["left"].tolist() == [1, *((3, -1) if split == 1 else (-1, 3)), -1, -1]
    assert routes["bin"][split] == split
    whole = _core.VisitedTree(matrix, nodes.view(np.uint8), 4).routes()
    # Children stand in the order in which their parents are split.
    assert whole["left"].tolist() == [1, *((3, 5) if split == 1 else (5, 3)), -1, -1, -1, -1]


def test_only_nodes_of_the_tree_say_what_is_equal(matrix: _core.BinnedMatrix) -> None:
    """Which nodes are visited besides depends on the order of visiting, the tree does not."""
    nodes = small_tree(1.0 - 1e-9, 1.0, score=100.0)
    nodes[3]["gain"], nodes[3]["score"] = 0.5, 1e6
    routes = _core.VisitedTree(matrix, nodes.view(np.uint8), 3).routes()
    assert routes["left"].tolist() == [1, -1, 3, -1, -1]


def test_one_leaf(matrix: _core.BinnedMatrix) -> None:
    visited = _core.VisitedTree(matrix, small_tree(1.0, 1.0, 1.0).view(np.uint8), 1)
    assert visited.leaf_rows().tolist() == [[0, 8]]
    assert visited.routes()["left"].tolist() == [-1]


def test_a_tree_outlives_the_names_of_its_table() -> None:
    nodes = small_tree(2.0, 1.0, 3.0).view(np.uint8)
    visited = _core.VisitedTree(bin_table(np.arange(16.0).reshape(8, 2), None, 255, 1), nodes, 4)
    assert visited.routes()["threshold"].tolist() == [1.0, 3.0, 5.0, 0.0, 0.0, 0.0, 0.0]


# --- what does not fit is refused --------------------------------------------------------------------------


def changed(index: int, **fields: int) -> npt.NDArray[np.void]:
    nodes = small_tree(1.0, 2.0, 10.0)
    for name, value in fields.items():
        nodes[index][name] = value
    return nodes


LARGEST = np.iinfo(np.int32).max


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (np.zeros(0, NODE), "the size of the nodes"),
        (np.zeros(NODE.itemsize + 1, np.uint8), "the size of the nodes"),
        (np.zeros(NODE.itemsize - 1, np.uint8), "the size of the nodes"),
        (changed(0, left=0), "a child is out of place"),
        (changed(2, left=1), "a child is out of place"),
        (changed(2, left=2), "a child is out of place"),
        (changed(2, left=6), "a child is out of place"),  # of which the right one would be behind the end
        (changed(2, left=7), "a child is out of place"),
        (changed(0, left=LARGEST), "a child is out of place"),
        (changed(2, left=3), "a child is out of place"),  # another node's
        (changed(2, left=4), "a child is out of place"),
        (changed(1, feature=-1), "a feature or bin is out of range"),
        (changed(1, feature=2), "a feature or bin is out of range"),
        (changed(1, feature=LARGEST), "a feature or bin is out of range"),
        (changed(1, bin=-1), "a feature or bin is out of range"),
        (changed(5, begin=7), "the rows of a node"),
    ],
)
def test_nodes_out_of_place_are_refused(
    matrix: _core.BinnedMatrix, nodes: npt.NDArray[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _core.VisitedTree(matrix, nodes.view(np.uint8), UNLIMITED)


def test_a_bin_behind_the_last_cut_tells_missing_values_apart(matrix: _core.BinnedMatrix) -> None:
    """All values go left: a threshold of infinity, whatever the number of the bin."""
    for bin_number in (7, 8, LARGEST):
        nodes = changed(0, bin=bin_number)
        routes = _core.VisitedTree(matrix, nodes.view(np.uint8), 2).routes()
        assert routes["threshold"][0] == np.inf


@pytest.mark.parametrize("wrong", ["not a number", "infinite", "negative"])
def test_odd_gains_do_no_harm(matrix: _core.BinnedMatrix, wrong: str) -> None:
    value = {"not a number": np.nan, "infinite": np.inf, "negative": -1.0}[wrong]
    nodes = small_tree(value, 1.0, value)
    for max_leaves in (-1, 0, 1, 2, 3, 4, UNLIMITED):
        routes = _core.VisitedTree(matrix, nodes.view(np.uint8), max_leaves).routes()
        assert len(routes["left"]) == 2 * min(max(max_leaves, 1), 4) - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.zeros((3, 2), np.float32)}, "values: leaves x outputs"),
        ({"values": np.zeros((4, 3), np.float32)}, "values: leaves x outputs"),
        ({"values": np.zeros((4, 0), np.float32), "unit": np.ones(0)}, "values: leaves x outputs"),
        ({"unit": np.ones(3)}, "values: leaves x outputs"),
        ({"cover": np.ones(5)}, "cover: one value per leaf"),
        ({"all_rows": np.ones(3, np.int64)}, "all_rows: one value per leaf"),
        ({"leaf_sums": np.ones((4, 4))}, "leaf_sums"),
        ({"leaf_sums": np.ones((3, 5))}, "leaf_sums"),
    ],
)
def test_values_of_another_shape_are_refused(
    matrix: _core.BinnedMatrix, change: dict[str, Any], message: str
) -> None:
    visited = _core.VisitedTree(matrix, small_tree(1.0, 2.0, 10.0).view(np.uint8), 4)
    fitting: dict[str, Any] = {
        "values": np.zeros((4, 2), np.float32),
        "cover": np.ones(4),
        "all_rows": None,
        "leaf_sums": np.ones((4, 5)),
        "own_hessian": True,
        "unit": np.ones(2),
        "settings": settings(),
    }
    assert visited.finish(**fitting)["values"].shape == (4, 2)
    with pytest.raises(ValueError, match=message):
        visited.finish(**(fitting | change))


def test_gains_are_shared_out_only_where_sums_are_given(matrix: _core.BinnedMatrix) -> None:
    visited = _core.VisitedTree(matrix, small_tree(1.0, 2.0, 10.0).view(np.uint8), 4)
    options: dict[str, Any] = {
        "values": np.zeros((4, 1), np.float32),
        "cover": np.arange(1.0, 5.0),
        "all_rows": np.arange(4),
        "own_hessian": False,
        "unit": np.ones(1),
        "settings": settings(),
    }
    arrays = visited.finish(leaf_sums=None, **options)
    assert "output_gain" not in arrays
    # The node with the larger gain is split first, so that its leaves come last but one.
    assert arrays["cover"].tolist() == [10.0, 7.0, 3.0, 1.0, 2.0, 3.0, 4.0]
    assert arrays["count"].tolist() == [6, 5, 1, 0, 1, 2, 3]
    assert visited.finish(leaf_sums=np.ones((4, 3)), **options)["output_gain"].shape == (1, 1)


# --- the grid of gradients ---------------------------------------------------------------------------------


def lowest_bit(value: float) -> float:
    """The largest power of two that a number is a multiple of."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator & -numerator) / denominator


def expected_grid(weight: npt.NDArray[np.float64] | None, n_rows: int) -> tuple[float, float, float]:
    """As rules/grid.hpp says: integers whose sum over all rows fits 31 bits."""
    total, unit = 0.0, 1.0
    if weight is not None:
        total = float(np.cumsum(weight)[-1])
        unit = min(lowest_bit(float(w)) for w in weight if w > 0)
        if total / unit > max(2.0**16, 4.0 * n_rows):
            unit = 2.0 ** (math.frexp(total / n_rows)[1] - 1 + 16)
    limit = 2.0**31 - 1 - (n_rows / 2 + total / unit / 2 + 1)
    of_weights = 1.0 if total == 0 else 2.0 ** -(math.frexp(limit / total)[1] - 1)
    return limit, unit, of_weights


RNG = np.random.default_rng(0)
WEIGHTS = {
    "none": None,
    "ones": np.ones(100),
    "whole": RNG.integers(1, 9, 1000).astype(np.float64),
    "zeros among them": RNG.integers(0, 3, 1000).astype(np.float64),
    "quarters": RNG.integers(1, 9, 1000) / 4,
    "of the first branch, just": np.array([2.0**16 - 1, 1.0]),
    "of the second, just": np.array([2.0**16, 1.0]),
    "any": RNG.random(1000),
    "very different": np.exp(20 * RNG.normal(size=1000)),
    "huge": np.full(10, 1e130),
    "tiny": np.full(10, 1e-130) * RNG.random(10),
    "one row": np.array([0.1]),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_grid_follows_from_the_weights(name: str) -> None:
    weight = WEIGHTS[name]
    n_rows = 1_000_000 if weight is None else len(weight)
    assert _core.fixed_point(weight, n_rows, 3, True, False, False) == (*expected_grid(weight, n_rows), False)


def test_the_grid_keeps_sums_within_31_bits() -> None:
    for weight in WEIGHTS.values():
        n_rows = 77 if weight is None else len(weight)
        limit, weight_unit, unit, _ = _core.fixed_point(weight, n_rows, 3, False, weight is not None, True)
        assert 0 < limit < 2**31
        assert math.log2(weight_unit).is_integer()
        if weight is not None:
            integers = np.rint(weight / weight_unit * np.rint(weight_unit / unit))
            assert np.abs(integers).sum() <= 2**31 - 1


def widths_that_are_packed(diagonal: bool, shared: bool) -> set[int]:
    """Numbers of outputs up to 100 of which docs/how-it-works.md says that "packed" packs their sums."""
    if diagonal:
        ranges = [(8, 11), (16, 22), (31, 33), (50, 55), (61, 66), (76, 77), (92, 99)]
    elif shared:
        ranges = [(15, 22), (31, 100)]
    else:
        ranges = [(16, 23), (32, 100)]
    return {number for first, last in ranges for number in range(first, last + 1)}


@pytest.mark.parametrize("n_rows", [1, 8191, 8192, 262144, 262145])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("diagonal", "shared"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("asked", [False, True])
def test_sums_that_are_packed_have_20_bits_and_are_rounded_at_random(
    asked: bool, diagonal: bool, shared: bool, weighted: bool, n_rows: int
) -> None:
    """Only if asked for, without weights, of up to 262,144 rows, and where their width suits it."""
    weight = np.ones(n_rows) if weighted else None
    for n_outputs in range(1, 101):
        grid = _core.fixed_point(weight, n_rows, n_outputs, diagonal, shared, asked)
        suits = n_outputs in widths_that_are_packed(diagonal, shared)
        packed = asked and not weighted and n_rows <= 262144 and suits
        assert grid[3] == packed, n_outputs
        slack = n_rows / 2 * (2 if weighted or packed else 1) + 1
        assert grid[0] == 2.0 ** (20 if packed else 31) - 1 - slack


@pytest.mark.parametrize("n_rows", [99, 101])
def test_weights_of_another_number_of_rows_are_refused(n_rows: int) -> None:
    with pytest.raises(ValueError, match="weight: one value per row"):
        _core.fixed_point(np.ones(100), n_rows, 3, False, True, True)
