"""The specification itself is right: trees worked out by hand, and properties on random problems."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest

from oracle import (
    BINARY_CROSS_ENTROPY,
    CLIPPED_SQUARED_ERROR,
    SQUARED_ERROR,
    Floats,
    Ints,
    Loss,
    Problem,
    Rules,
    Tree,
    best_outputs,
    bin_column,
    boost,
    candidates,
    cross_entropy,
    exact_split_gains,
    find_split,
    find_thresholds,
    grow_tree,
    histogram,
    leaf_value,
    newton_step,
    outputs_of_children,
    score,
    soft_threshold,
    softmax,
    softmax_hessian,
    split_gains,
    split_rows,
    sums,
    terms,
    top_outputs,
)
from problems import Kind, is_clear_cut, random_problem

pytestmark = [pytest.mark.cpu_only("the oracle is NumPy"), pytest.mark.python_only("the oracle is NumPy")]

NA = -1  # a missing value in the tables of this file


def make_problem(
    columns: Sequence[Sequence[int]],
    gradient: Sequence[Any],
    hessian: Sequence[Any] | None = None,
    weight: Sequence[float] | None = None,
    n_value_bins: int | None = None,
    full_hessian: Sequence[Any] | None = None,
    **rules: Any,
) -> Problem:
    """A problem from columns of codes; no regularisation unless asked for."""
    codes = np.array(columns).T
    b = codes.max() + 1 if n_value_bins is None else n_value_bins
    g = np.array(gradient, dtype=np.float64).reshape(len(codes), -1)
    return Problem(
        codes=np.where(codes == NA, b, codes),
        n_value_bins=np.full(codes.shape[1], b),
        has_missing=(codes == NA).any(axis=0),
        gradient=g,
        hessian=None if hessian is None else np.array(hessian, dtype=np.float64).reshape(g.shape),
        weight=None if weight is None else np.array(weight, dtype=np.float64),
        rules=Rules(**{"reg_lambda": 0.0, **rules}),
        full_hessian=None if full_hessian is None else np.array(full_hessian, dtype=np.float64),
    )


def with_rules(problem: Problem, **rules: Any) -> Problem:
    return replace(problem, rules=replace(problem.rules, **rules))


def root_split(problem: Problem) -> tuple[int, int, bool] | None:
    split = find_split(problem, np.arange(len(problem.codes)))
    return None if split is None else (split.feature, split.bin, split.missing_left)


# ---- Trees worked out by hand -------------------------------------------------------------------------


def test_two_outputs_share_one_split() -> None:
    problem = make_problem([[0, 0, 1, 1]], [[-2, 1], [-2, 1], [2, -1], [2, -3]], reg_lambda=1.0)
    tree = grow_tree(problem)
    assert tree.feature.tolist() == [0, -1, -1]
    assert tree.bin.tolist() == [0, -1, -1]
    assert tree.left.tolist() == [1, -1, -1]
    assert tree.right.tolist() == [2, -1, -1]
    assert tree.depth.tolist() == [0, 1, 1]
    assert tree.count.tolist() == [4, 2, 2]
    assert tree.leaf.tolist() == [1, 1, 2, 2]
    # G = (-4, 2), (4, -4), parent (0, -2): 1/2 ((16 + 4) / 3 + (16 + 16) / 3 - 4 / 5)
    np.testing.assert_allclose(tree.gain, [124 / 15, 0, 0], rtol=1e-15)
    np.testing.assert_allclose(tree.value, [[0, 2 / 5], [4 / 3, -2 / 3], [-4 / 3, 4 / 3]], rtol=1e-15)


def test_weights_multiply_gradient_and_hessian() -> None:
    problem = make_problem([[0, 1]], [3, -1], hessian=[2, 1], weight=[0.5, 4], reg_lambda=1.0)
    tree = grow_tree(problem)
    # G = 1.5, -4, together -2.5; H = 1, 4, together 5
    np.testing.assert_allclose(tree.gain[0], 0.5 * (2.25 / 2 + 16 / 5 - 6.25 / 6), rtol=1e-15)
    np.testing.assert_allclose(tree.value[:, 0], [2.5 / 6, -0.75, 0.8], rtol=1e-15)
    assert tree.cover.tolist() == [4.5, 0.5, 4]
    assert tree.count.tolist() == [2, 1, 1]


def test_alpha_shrinks_the_summed_gradient_towards_zero() -> None:
    assert soft_threshold(np.array([-3.0, -0.5, 0.0, 2.0]), 1.0).tolist() == [-2.0, 0.0, 0.0, 1.0]
    tree = grow_tree(make_problem([[0, 1]], [3, -2], reg_alpha=1.0, reg_lambda=1.0))
    # T(G) = 2, -1, parent T(1) = 0
    assert tree.gain[0] == 0.5 * (4 / 2 + 1 / 2)
    assert tree.value[:, 0].tolist() == [0, -1, 0.5]


def test_an_output_without_curvature_scores_nothing_and_predicts_zero() -> None:
    problem = make_problem([[0, 1]], [[2, 5], [-2, -5]], hessian=[[1, 0], [1, 0]])
    tree = grow_tree(problem)
    assert tree.gain[0] == 0.5 * (4 + 4)
    assert tree.value.tolist() == [[0, 0], [-2, 0], [2, 0]]


def test_gain_weights_choose_the_split_but_not_the_leaf_values() -> None:
    columns, gradient = [[0, 0, 1, 1], [0, 1, 0, 1]], [[-3, -1], [-3, 1], [3, -1], [3, 1]]
    assert root_split(make_problem(columns, gradient)) == (0, 0, True)
    problem = make_problem(columns, gradient, gain_weight=np.array([1.0, 16.0]), max_depth=1)
    tree = grow_tree(problem)
    assert tree.feature[0] == 1
    assert tree.gain[0] == 0.5 * 16 * (4 / 2 + 4 / 2)
    assert tree.value[1:].tolist() == [[0, 1], [0, -1]]


# The root is split in the middle (gain 28.125); its right child (16) is worth more than its left one (0.25).
STAIRCASE: dict[str, Any] = {"columns": [[0, 1, 2, 3]], "gradient": [1, 2, -10, -2]}


def test_growth_is_best_first_and_stops_at_max_leaves() -> None:
    tree = grow_tree(make_problem(**STAIRCASE))
    assert tree.bin.tolist() == [1, 0, 2, -1, -1, -1, -1]
    assert tree.gain.tolist() == [28.125, 0.25, 16, 0, 0, 0, 0]
    assert tree.left.tolist() == [1, 5, 3, -1, -1, -1, -1]
    assert tree.right.tolist() == [2, 6, 4, -1, -1, -1, -1]
    assert tree.leaf.tolist() == [5, 6, 3, 4]

    tree = grow_tree(make_problem(**STAIRCASE, max_leaves=3))
    assert tree.left.tolist() == [1, -1, 3, -1, -1]
    assert tree.gain.tolist() == [28.125, 0, 16, 0, 0]
    assert tree.leaf.tolist() == [1, 1, 3, 4]
    assert tree.value[:, 0].tolist() == [2.25, -1.5, 6, 10, 2]


def test_equal_gains_split_the_node_created_first() -> None:
    tree = grow_tree(make_problem([[0, 1, 2, 3]], [1, 2, -2, -1], max_leaves=3))
    assert tree.left.tolist() == [1, 3, -1, -1, -1]


def test_max_depth_counts_the_root_as_zero() -> None:
    assert grow_tree(make_problem(**STAIRCASE, max_depth=0)).feature.tolist() == [-1]
    assert grow_tree(make_problem(**STAIRCASE, max_depth=1)).leaf.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("copies", [1, 3])
def test_min_split_gain_is_strict_and_on_the_mean_over_outputs(copies: int) -> None:
    gradient = [[g] * copies for g in STAIRCASE["gradient"]]
    for least, n_nodes in [(28.125, 1), (28.124, 3), (16, 3), (15.9, 5), (0.25, 5), (0.24, 7)]:
        tree = grow_tree(make_problem(STAIRCASE["columns"], gradient, min_split_gain=least))
        assert len(tree.feature) == n_nodes


def test_a_gain_of_zero_is_no_split() -> None:
    assert grow_tree(make_problem([[0, 1]], [1, 1])).feature.tolist() == [-1]
    assert grow_tree(make_problem([[0, 1]], [0, 0])).feature.tolist() == [-1]


def test_min_samples_leaf_counts_rows_on_both_sides() -> None:
    columns, gradient = [[0, 1, 2, 3, 4]], [9, -1, -1, -1, -2]
    assert root_split(make_problem(columns, gradient)) == (0, 0, False)
    assert root_split(make_problem(columns, gradient, weight=[8, 1, 1, 1, 1], min_samples_leaf=2)) == (
        0,
        1,
        True,
    )
    assert root_split(make_problem(columns, gradient, min_samples_leaf=3)) is None


def test_min_child_weight_is_the_mean_hessian_over_outputs_on_both_sides() -> None:
    columns, gradient, hessian = [[0, 1, 2]], [[4, 4], [-2, -2], [-2, -2]], [[1, 0], [3, 2], [2, 0]]
    for least, split in [(0.5, (0, 0, False)), (0.6, (0, 1, True)), (1.0, (0, 1, True)), (1.1, None)]:
        problem = make_problem(columns, gradient, hessian, min_child_weight=least, reg_lambda=1.0)
        assert root_split(problem) == split


def test_only_features_of_the_mask_are_split() -> None:
    columns, gradient = [[0, 0, 1, 1], [0, 1, 0, 1]], [-3, -2, 2, 3]
    assert root_split(make_problem(columns, gradient)) == (0, 0, True)
    mask = np.array([False, True])
    assert grow_tree(make_problem(columns, gradient, feature_mask=mask)).feature.tolist() == [1, -1, -1]


# ---- Sparse leaves ------------------------------------------------------------------------------------

# The figure on split algorithms: 4 rows, 3 outputs, k = 2. Terms of the two halves: 8, 2, 18 and 2, 32, 8;
# of the root: 1, 25, 25.
FIGURE: dict[str, Any] = {
    "columns": [[0, 0, 1, 1]],
    "gradient": [[2, 1, 3], [2, 1, 3], [-1, 4, 2], [-1, 4, 2]],
}


@pytest.mark.parametrize(
    ("rules", "gain", "left", "right"),
    [
        ({}, 0.5 * (28 + 42 - 51), [-2, -1, -3], [1, -4, -2]),
        ({"sparse_leaves": 3}, 0.5 * (28 + 42 - 51), [-2, -1, -3], [1, -4, -2]),
        # Each side keeps its own two best.
        ({"sparse_leaves": 2, "sparse_mode": "unrestricted"}, 0.5 * (26 + 40 - 50), [-2, 0, -3], [0, -4, -2]),
        # The sums are 10, 34, 26: both sides keep the outputs 1 and 2.
        ({"sparse_leaves": 2, "sparse_mode": "restricted"}, 0.5 * (20 + 40 - 50), [0, -1, -3], [0, -4, -2]),
        ({"sparse_leaves": 1, "sparse_mode": "unrestricted"}, 0.5 * (18 + 32 - 25), [0, 0, -3], [0, -4, 0]),
        ({"sparse_leaves": 1, "sparse_mode": "restricted"}, 0.5 * (2 + 32 - 25), [0, -1, 0], [0, -4, 0]),
    ],
)
def test_split_algorithms_of_the_figure(
    rules: dict[str, Any], gain: float, left: list[float], right: list[float]
) -> None:
    tree = grow_tree(make_problem(**FIGURE, **rules))
    assert tree.gain.tolist() == [gain, 0, 0]
    assert tree.value[1:].tolist() == [left, right]
    assert tree.outputs.sum(axis=1).tolist() == [rules.get("sparse_leaves", 3)] * 3


def test_a_sparse_root_that_is_not_split_predicts_its_best_outputs() -> None:
    tree = grow_tree(make_problem(**FIGURE, max_depth=0, sparse_leaves=1))
    assert tree.value.tolist() == [[0, -2.5, 0]]  # 25 and 25: the lower output


def test_ties_between_outputs_go_to_the_lower_one() -> None:
    v = np.array([[1.0, 3.0, 2.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    chosen = [np.flatnonzero(row).tolist() for row in top_outputs(v, 3)]
    assert chosen == [[1, 2, 3], [0, 1, 2]]


def test_a_restricted_child_is_measured_by_the_outputs_it_inherits() -> None:
    problem = make_problem(
        [[0, 1, 2, 2]], [[3, 3], [-1, 3], [5, 0], [5, 0]], sparse_leaves=1, sparse_mode="restricted"
    )
    tree = grow_tree(problem)
    # Root: terms 36, 9. Cut after bin 1: (2, 18) + (50, 0) = (52, 18), so both children hold output 0. The
    # left one scores 2 by it (not 18); cut in two, (9, 9) + (1, 9) = (10, 18), so its children hold output 1.
    assert tree.bin.tolist() == [1, 0, -1, -1, -1]
    assert tree.gain.tolist() == [0.5 * (52 - 36), 0.5 * (18 - 2), 0, 0, 0]
    assert tree.outputs[:, 1].tolist() == [False, False, False, True, True]
    assert tree.value.tolist() == [[-3, 0], [-1, 0], [-5, 0], [0, -3], [0, -3]]
    # Unrestricted, the left child holds output 1 itself, and cutting it gains nothing.
    free = grow_tree(with_rules(problem, sparse_mode="unrestricted"))
    assert free.gain.tolist() == [0.5 * (18 + 50 - 36), 0, 0]
    assert free.value.tolist() == [[-3, 0], [0, -3], [-5, 0]]


def test_gain_weights_choose_the_outputs_of_sparse_leaves() -> None:
    for mode, left, right in [
        ("unrestricted", [-2, 0, 0], [0, -4, 0]),
        ("restricted", [-2, 0, 0], [1, 0, 0]),
    ]:
        weight = np.array([4.0, 1.0, 1.0])  # terms 32, 2, 18 and 8, 32, 8; sums 40, 34, 26
        problem = make_problem(**FIGURE, sparse_leaves=1, sparse_mode=mode, gain_weight=weight)
        assert grow_tree(problem).value[1:].tolist() == [left, right]


def test_alpha_shrinks_before_the_outputs_are_chosen() -> None:
    # |G| = 3 and 4, H = 1 and 2: 9 against 8, but with alpha = 2 it is 1 against 2.
    for alpha, value in [(0.0, [-3, 0]), (2.0, [0, -1])]:
        problem = make_problem(
            [[0]], [[3, 4]], hessian=[[1, 2]], sparse_leaves=1, reg_alpha=alpha, sparse_mode="unrestricted"
        )
        assert grow_tree(problem).value.tolist() == [value]


@pytest.mark.parametrize("mode", ["unrestricted", "restricted"])
def test_min_split_gain_is_on_the_mean_over_the_outputs_held(mode: str) -> None:
    problem = make_problem(**FIGURE, sparse_leaves=2, sparse_mode=mode)
    gain = {"unrestricted": 8.0, "restricted": 5.0}[mode]
    for least, n_nodes in [(gain / 2, 1), (0.99 * gain / 2, 3)]:
        changed = with_rules(problem, min_split_gain=least)
        assert len(grow_tree(changed).feature) == n_nodes


def test_min_child_weight_is_the_mean_over_all_outputs_in_sparse_trees_too() -> None:
    hessian = [[1, 1, 4]] * 4
    for least, n_nodes in [(4.0, 3), (4.1, 1)]:
        problem = make_problem(**FIGURE, hessian=hessian, sparse_leaves=1, min_child_weight=least)
        assert len(grow_tree(problem).feature) == n_nodes


@pytest.mark.parametrize("k", [0, 4])
def test_more_or_fewer_outputs_than_there_are_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match=f"sparse_leaves={k}, but there are 3 outputs"):
        make_problem(**FIGURE, sparse_leaves=k)


# ---- The exact Hessian --------------------------------------------------------------------------------

# Two rows a side; with lambda = 1: H + lambda I = [[3, -2], [-2, 3]] and [[2, 0], [0, 4]], together
# [[4, -2], [-2, 6]]; G = (5, 0), (-2, -4), together (3, -4).
COUPLED: dict[str, Any] = {
    "columns": [[0, 0, 1, 1]],
    "gradient": [[2, 1], [3, -1], [-1, -2], [-1, -2]],
    "full_hessian": [[[1, -1], [-1, 1]], [[1, -1], [-1, 1]], [[1, 0], [0, 1]], [[0, 0], [0, 2]]],
    "reg_lambda": 1.0,
}


def test_exact_gain_and_leaf_values_by_hand() -> None:
    tree = grow_tree(with_rules(make_problem(**COUPLED), hessian="exact"))
    # Inverses: [[3, 2], [2, 3]] / 5, [[1/2, 0], [0, 1/4]], [[6, 2], [2, 4]] / 20.
    np.testing.assert_allclose(tree.value, [[-0.5, 0.5], [-3.0, -2.0], [1.0, 1.0]], rtol=1e-14)
    # G^T (...)^-1 G: 5 * 3 + 0 * 2, (-2) (-1) + (-4) (-1), 3 * 0.5 - 4 * (-0.5)
    np.testing.assert_allclose(tree.gain, [0.5 * (15 + 6 - 3.5), 0, 0], rtol=1e-14)


def test_exact_leaves_keep_the_splits_of_the_diagonal_given() -> None:
    hessian = [[2, 3], [2, 3], [1, 2], [1, 2]]  # not the diagonal of the full Hessian
    diagonal = grow_tree(make_problem(**{**COUPLED, "full_hessian": None}, hessian=hessian))
    problem = make_problem(**COUPLED, hessian=hessian)
    tree = grow_tree(with_rules(problem, hessian="exact_leaf"))
    np.testing.assert_array_equal(tree.gain, diagonal.gain)
    np.testing.assert_allclose(tree.gain[0], 0.5 * (25 / 5 + 4 / 3 + 16 / 5 - 9 / 7 - 16 / 11), rtol=1e-14)
    np.testing.assert_allclose(tree.value, [[-0.5, 0.5], [-3.0, -2.0], [1.0, 1.0]], rtol=1e-14)


def test_weights_multiply_the_full_hessian() -> None:
    problem = make_problem(**{**COUPLED, "columns": [[0, 0, 0, 0]]}, weight=[0.5, 0.5, 2, 1])
    tree = grow_tree(with_rules(problem, hessian="exact"))
    # G = (-1/2, -6); H + I = [[1 + 2 + 1, -1], [-1, 1 + 2 + 2 + 1]]
    np.testing.assert_allclose(tree.value[0], np.array([6 * 0.5 + 6, 0.5 + 4 * 6]) / 23, rtol=1e-14)


def test_min_child_weight_is_the_mean_of_the_full_diagonal() -> None:
    for least, n_nodes in [(2.0, 3), (2.1, 1)]:  # left: (2 + 2) / 2, right: (1 + 3) / 2
        problem = make_problem(**COUPLED, hessian=[[9, 9]] * 4, min_child_weight=least)
        assert len(grow_tree(with_rules(problem, hessian="exact")).feature) == n_nodes


def test_gain_weights_do_not_enter_the_exact_gain() -> None:
    weighted = make_problem(**COUPLED, gain_weight=np.array([3.0, 5.0]))
    weighted = with_rules(weighted, hessian="exact")
    plain = with_rules(weighted, gain_weight=None)
    np.testing.assert_array_equal(grow_tree(weighted).gain, grow_tree(plain).gain)


def test_min_split_gain_of_the_exact_hessian_is_on_the_mean_over_all_outputs() -> None:
    for least, n_nodes in [(8.76 / 2, 1), (8.74 / 2, 3)]:
        problem = make_problem(**COUPLED, min_split_gain=least)
        assert len(grow_tree(with_rules(problem, hessian="exact")).feature) == n_nodes


@pytest.mark.parametrize("hessian", ["exact", "exact_leaf"])
def test_what_the_exact_hessian_needs(hessian: Any) -> None:
    with pytest.raises(ValueError, match="reg_lambda > 0"):
        Rules(hessian=hessian, reg_lambda=0.0)
    with pytest.raises(ValueError, match="reg_alpha = 0"):
        Rules(hessian=hessian, reg_alpha=1.0)
    with pytest.raises(ValueError, match="sparse leaves"):
        Rules(hessian=hessian, sparse_leaves=1)
    problem = make_problem([[0]], [[1]], reg_lambda=1.0)
    with pytest.raises(ValueError, match=f"hessian='{hessian}' needs full_hessian"):
        with_rules(problem, hessian=hessian)


# ---- Missing values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gradient_of_missing", "expected"),
    [
        (5, (0, 0, True)),  # like the left rows
        (-5, (0, 0, False)),  # like the right rows
        (90, (0, 1, False)),  # like none: missing against the rest
    ],
)
def test_missing_values_go_where_they_gain_most(
    gradient_of_missing: float, expected: tuple[int, int, bool]
) -> None:
    gradient = [5, 5, -5, -5, gradient_of_missing, gradient_of_missing]
    assert root_split(make_problem([[0, 0, 1, 1, NA, NA]], gradient)) == expected


def test_missing_against_the_rest_needs_no_second_value() -> None:
    tree = grow_tree(make_problem([[0, 0, NA, NA]], [1, 1, -1, -1]))
    assert (tree.bin[0], tree.missing_left[0]) == (0, False)
    assert tree.leaf.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("weight", "missing_left"), [(None, False), ([2, 1, 1], True), ([3, 1, 1], True), ([1, 1, 0.5], False)]
)
def test_unseen_missing_values_go_to_the_heavier_child(
    weight: list[float] | None, missing_left: bool
) -> None:
    problem = make_problem([[0, 1, 1]], [5, -4, -4], weight=weight, max_depth=1)
    tree = grow_tree(problem)
    assert tree.missing_left[0] == missing_left
    assert tree.apply(np.array([[2]]), problem.n_value_bins).tolist() == [1 if missing_left else 2]


def test_the_direction_is_learnt_node_by_node() -> None:
    # Feature 1 has missing values, but none of them reaches the left child, which splits on it.
    columns = [[0, 0, 0, 1, 1], [0, 1, 1, NA, NA]]
    tree = grow_tree(make_problem(columns, [10, 12, 12, -10, -10]))
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]
    assert tree.missing_left.tolist() == [True, False, False, False, False]


# ---- Ties ---------------------------------------------------------------------------------------------


def test_ties_go_to_the_lower_feature() -> None:
    column, mirror = [0, 0, 1, 1], [1, 1, 0, 0]
    assert root_split(make_problem([column, column], [1, 1, -1, -2])) == (0, 0, True)
    assert root_split(make_problem([mirror, column], [1, 1, -1, -2])) == (0, 0, True)


def test_ties_go_to_the_lower_bin() -> None:
    # Bins 1 and 2 are empty: cutting after 0, 1 or 2 is the same.
    assert root_split(make_problem([[0, 0, 3, 3]], [1, 1, -1, -2])) == (0, 0, True)
    # g = 1, 0, -1: cutting on either side of the middle row gains the same.
    assert root_split(make_problem([[0, 1, 2]], [1, 0, -1])) == (0, 0, False)


def test_ties_send_missing_values_right() -> None:
    assert root_split(make_problem([[0, 1, NA]], [1, -1, 0])) == (0, 0, False)


def test_missing_values_alone_go_right_even_if_the_lowest_bin_is_empty() -> None:
    assert root_split(make_problem([[1, 1, NA]], [1, 1, -1])) == (0, 1, False)


def test_clear_cut_trees_have_only_ties_between_equal_sums() -> None:
    same = make_problem([[0, 0, 1, 1], [1, 1, 0, 0]], [1, 1, -1, -2])
    assert is_clear_cut(same, grow_tree(same), 1e-9)
    different = make_problem([[0, 1, 2]], [1, 0, -1])
    assert not is_clear_cut(different, grow_tree(different), 1e-9)
    at_the_threshold = make_problem([[0, 1]], [1, 1])
    assert not is_clear_cut(at_the_threshold, grow_tree(at_the_threshold), 1e-9)
    # Both children of the root gain 9/4 from different sums, and max_leaves lets one of them be split.
    queue = make_problem([[0, 1, 2, 3]], [1, 4, -5, -8], max_leaves=3)
    assert grow_tree(queue).left.tolist() == [1, 3, -1, -1, -1]
    assert not is_clear_cut(queue, grow_tree(queue), 1e-9)


@pytest.mark.parametrize("mode", ["unrestricted", "restricted"])
def test_clear_cut_trees_choose_clear_outputs(mode: str) -> None:
    def is_clear(gradient: list[list[float]], hessian: list[list[float]] | None = None) -> bool:
        # The first output decides the split, so that only the outputs to hold can be in doubt.
        column = [[0, 1]] if len(gradient) == 2 else [[0]]
        problem = make_problem(column, gradient, hessian, sparse_leaves=2, sparse_mode=mode)
        return is_clear_cut(problem, grow_tree(problem), 1e-9)

    assert is_clear([[8, 2, 1]])
    assert is_clear([[8, 2, -2]])  # the same sums but for the sign
    assert is_clear([[8, 0, 0]])  # worth nothing, both
    assert not is_clear([[8, 2, 2 + 1e-12]])
    assert not is_clear([[8, 2, 1]], [[1, 4, 1]])  # 4 / 4 and 1 / 1
    # The same in the children: terms (4, 1) and (1, 4) tie only when they are added.
    assert is_clear([[8, 2, 1], [-8, 1, -2]]) == (mode == "unrestricted")


# ---- Properties on random problems --------------------------------------------------------------------


@pytest.fixture(scope="module", params=get_args(Kind))
def problems(request: pytest.FixtureRequest) -> list[Problem]:
    return [
        random_problem(seed, kind=request.param) for seed in range(120 if request.param == "dense" else 60)
    ]


def test_histogram_and_exact_split_finding_agree(problems: list[Problem]) -> None:
    for problem in problems:
        tree = grow_tree(problem)
        for node in {0, len(tree.rows) // 2, len(tree.rows) - 1}:
            rows, held = tree.rows[node], tree.outputs[node]
            for k in range(problem.codes.shape[1]):
                from_histogram = split_gains(histogram(problem, rows, k), problem.rules, held)
                one_by_one = exact_split_gains(problem, rows, k, held)
                if problem.rules.hessian == "exact":  # solves many systems at once, or one
                    np.testing.assert_allclose(from_histogram, one_by_one, rtol=1e-9, atol=1e-10)
                else:
                    np.testing.assert_array_equal(from_histogram, one_by_one)


def test_gains_add_up_to_the_fall_of_the_objective(problems: list[Problem]) -> None:
    """The quadratic objective (eq. 12), summed row by row with the values the leaves predict."""
    for problem in problems:
        problem = with_rules(problem, gain_weight=None)
        rules, tree = problem.rules, grow_tree(problem)

        def objective(nodes: Ints, problem: Problem = problem, value: Floats = tree.value) -> float:
            w = value[nodes]
            penalty = np.array([value[node] for node in np.unique(nodes)])
            curved = np.einsum("ni,nij,nj", w, problem.full, w) if problem.full.size else problem.h * w**2
            return float(
                np.sum(problem.g * w)
                + np.sum(0.5 * curved)
                + np.sum(
                    0.5 * problem.rules.reg_lambda * penalty**2 + problem.rules.reg_alpha * np.abs(penalty)
                )
            )

        fall = objective(np.zeros_like(tree.leaf)) - objective(tree.leaf)
        if rules.hessian != "exact_leaf":  # there the leaves are better than what the splits were scored by
            np.testing.assert_allclose(tree.gain.sum(), fall, rtol=1e-10, atol=1e-10)
        leaves = np.flatnonzero(tree.feature < 0)
        scores = [
            float(score(sums(problem, tree.rows[node]), rules, tree.outputs[node])) for node in (*leaves, 0)
        ]
        np.testing.assert_allclose(2 * tree.gain.sum(), sum(scores[:-1]) - scores[-1], rtol=1e-10, atol=1e-10)


def test_every_node_obeys_the_rules(problems: list[Problem]) -> None:
    for problem in problems:
        rules, tree = problem.rules, grow_tree(problem)
        internal, leaves = np.flatnonzero(tree.feature >= 0), np.flatnonzero(tree.feature < 0)
        assert len(leaves) == len(internal) + 1
        assert rules.max_leaves is None or len(leaves) <= rules.max_leaves
        assert rules.max_depth is None or tree.depth.max() <= rules.max_depth
        assert rules.feature_mask is None or rules.feature_mask[tree.feature[internal]].all()
        assert (tree.gain[internal] > max(0, rules.min_split_gain) * problem.n_involved).all()
        for child in (tree.left[internal], tree.right[internal]):
            assert (tree.count[child] >= rules.min_samples_leaf).all()
            assert (tree.depth[child] == tree.depth[internal] + 1).all()
        assert (tree.left[internal] < tree.right[internal]).all()
        assert (
            tree.count[tree.left[internal]] + tree.count[tree.right[internal]] == tree.count[internal]
        ).all()
        assert (tree.apply(problem.codes, problem.n_value_bins) == tree.leaf).all()
        for node, rows in enumerate(tree.rows):
            assert tree.cover[node] == problem.w[rows].sum()
            value = leaf_value(sums(problem, rows), rules, tree.outputs[node])
            np.testing.assert_array_equal(tree.value[node], value)
            assert tree.outputs[node].sum() == problem.n_involved
            assert not tree.value[node][~tree.outputs[node]].any()


def test_no_open_node_had_more_gain_than_the_one_split(problems: list[Problem]) -> None:
    """Best first, without a queue: of the nodes open at a step, the one with the largest gain is split."""
    for problem in problems:
        tree = grow_tree(problem)
        splits = [
            find_split(problem, rows, held) if depth != problem.rules.max_depth else None
            for rows, depth, held in zip(tree.rows, tree.depth, tree.outputs, strict=True)
        ]
        gains = np.array([0.0 if split is None else split.gain for split in splits])
        open_nodes = {0}
        for node in sorted(np.flatnonzero(tree.left >= 0).tolist(), key=lambda node: int(tree.left[node])):
            assert node == min(open_nodes, key=lambda other: (-gains[other], other))
            open_nodes = open_nodes - {node} | {int(tree.left[node]), int(tree.right[node])}
        if problem.rules.max_leaves is None or len(open_nodes) < problem.rules.max_leaves:
            assert not gains[list(open_nodes)].any()


def test_max_leaves_keeps_the_beginning_of_the_unlimited_tree(problems: list[Problem]) -> None:
    for problem in problems[:40]:
        whole = grow_tree(with_rules(problem, max_leaves=None))
        part = grow_tree(with_rules(problem, max_leaves=4))
        n_nodes = min(len(whole.feature), 7)
        assert len(part.feature) == n_nodes
        np.testing.assert_array_equal(part.value, whole.value[:n_nodes])


def test_an_integer_weight_equals_repeated_rows(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems[:40]):
        times = np.random.default_rng(seed).integers(1, 4, size=len(problem.codes))
        rules = replace(problem.rules, min_samples_leaf=1)
        weighted = grow_tree(replace(problem, weight=times.astype(np.float64), rules=rules))
        rows = np.repeat(np.arange(len(times)), times)
        h = None if problem.hessian is None else problem.hessian[rows]
        full = None if problem.full_hessian is None else problem.full_hessian[rows]
        repeated = replace(
            problem,
            codes=problem.codes[rows],
            gradient=problem.gradient[rows],
            hessian=h,
            full_hessian=full,
            weight=None,
            rules=rules,
        )
        tree = grow_tree(repeated)
        for name in ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "value"):
            np.testing.assert_array_equal(getattr(weighted, name), getattr(tree, name), err_msg=name)


def test_permuting_outputs_permutes_values(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems[:40]):
        if problem.rules.sparse_leaves is not None and (problem.gradient % 1 == 0).all():
            continue  # outputs with the same sums: the lower one is held, so their order matters
        order = np.random.default_rng(seed).permutation(problem.n_outputs)
        gain_weight, full = problem.rules.gain_weight, problem.full_hessian
        permuted = replace(
            problem,
            gradient=problem.gradient[:, order],
            hessian=None if problem.hessian is None else problem.hessian[:, order],
            full_hessian=None if full is None else full[:, order][:, :, order],
            rules=replace(problem.rules, gain_weight=None if gain_weight is None else gain_weight[order]),
        )
        before, after = grow_tree(problem), grow_tree(permuted)
        np.testing.assert_array_equal(before.feature, after.feature)
        np.testing.assert_array_equal(before.bin, after.bin)
        if full is None:
            np.testing.assert_array_equal(before.value[:, order], after.value)
        else:  # another order of elimination
            np.testing.assert_allclose(before.value[:, order], after.value, rtol=1e-8, atol=1e-10)


@pytest.fixture(scope="module")
def sparse_problems() -> list[Problem]:
    return [random_problem(seed, kind="sparse") for seed in range(300)]


def test_as_many_outputs_as_there_are_grow_the_dense_tree(sparse_problems: list[Problem]) -> None:
    for problem in sparse_problems[:60]:
        dense = grow_tree(with_rules(problem, sparse_leaves=None))
        for mode in ("unrestricted", "restricted"):
            rules = replace(problem.rules, sparse_leaves=problem.n_outputs, sparse_mode=mode)
            tree = grow_tree(replace(problem, rules=rules))
            for name in ("feature", "bin", "missing_left", "left", "gain", "value", "leaf"):
                np.testing.assert_array_equal(getattr(tree, name), getattr(dense, name), err_msg=name)


def test_no_other_outputs_score_more(sparse_problems: list[Problem]) -> None:
    """Eq. 21 and 22 are maxima over sets of k outputs: over one for each side, or over one for both."""
    for problem in sparse_problems[:100]:
        rules, rows = problem.rules, np.arange(len(problem.codes))
        split = next(candidates(problem, rows), None)
        if rules.sparse_leaves is None or split is None:
            continue
        goes_left = split_rows(problem, rows, split)
        sides = sums(problem, rows[goes_left]), sums(problem, rows[~goes_left])
        held = outputs_of_children(*sides, rules)
        sets = [list(chosen) for chosen in combinations(range(problem.n_outputs), rules.sparse_leaves)]
        left, right = (np.array([terms(side, rules)[chosen].sum() for chosen in sets]) for side in sides)
        best = left.max() + right.max() if rules.sparse_mode == "unrestricted" else (left + right).max()
        children = sum(score(side, rules, outputs) for side, outputs in zip(sides, held, strict=True))
        np.testing.assert_allclose(children, best, rtol=1e-12)
        own = max(terms(sums(problem, rows), rules)[chosen].sum() for chosen in sets)
        np.testing.assert_allclose(split.gain, 0.5 * (best - own), rtol=1e-9, atol=1e-9)


def test_children_hold_what_their_split_chose(sparse_problems: list[Problem]) -> None:
    for problem in sparse_problems[:100]:
        rules, tree = problem.rules, grow_tree(problem)
        own = [best_outputs(sums(problem, rows), rules) for rows in tree.rows]
        np.testing.assert_array_equal(tree.outputs[0], own[0])
        if rules.sparse_mode == "unrestricted":
            np.testing.assert_array_equal(tree.outputs, own)
        for node in np.flatnonzero((tree.feature >= 0) & (rules.sparse_mode == "restricted")):
            np.testing.assert_array_equal(tree.outputs[tree.left[node]], tree.outputs[tree.right[node]])


def _same_structure(tree: Tree, other: Tree) -> None:
    for name in ("feature", "bin", "missing_left", "left", "leaf"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name), err_msg=name)


def test_the_exact_newton_step_minimises_the_objective() -> None:
    for kind in ("exact", "exact_leaf"):
        for seed in range(40):
            problem = random_problem(seed, kind=kind)
            tree, rng = grow_tree(problem), np.random.default_rng(seed)

            def objective(G: Floats, H: Floats, w: Floats, problem: Problem = problem) -> float:
                return float(G @ w + 0.5 * w @ (H + problem.rules.reg_lambda * np.eye(len(w))) @ w)

            for rows, value in zip(tree.rows, tree.value, strict=True):
                node = sums(problem, rows)
                at_rest = node.G + (node.full + problem.rules.reg_lambda * np.eye(problem.n_outputs)) @ value
                np.testing.assert_allclose(at_rest, 0.0, atol=1e-10)
                for _ in range(3):
                    elsewhere = value + rng.normal(size=len(value))
                    assert objective(node.G, node.full, elsewhere) > objective(node.G, node.full, value)
                if kind == "exact":
                    best = objective(node.G, node.full, value)
                    np.testing.assert_allclose(score(node, problem.rules), -2 * best, rtol=1e-9, atol=1e-12)


def test_a_full_hessian_that_is_diagonal_changes_nothing() -> None:
    grown = 0
    for seed in range(150):
        problem = random_problem(seed)
        if problem.rules.reg_lambda == 0 or problem.rules.reg_alpha > 0:
            continue
        diagonal = with_rules(problem, gain_weight=None)
        tree = grow_tree(diagonal)
        if not is_clear_cut(diagonal, tree, 1e-9):
            continue
        hessian = np.ones_like(problem.gradient) if problem.hessian is None else problem.hessian
        full = hessian[:, :, None] * np.eye(problem.n_outputs)
        for kind in ("exact", "exact_leaf"):
            rules = replace(diagonal.rules, hessian=kind)
            exact = grow_tree(replace(diagonal, rules=rules, full_hessian=full))
            _same_structure(exact, tree)
            np.testing.assert_allclose(exact.gain, tree.gain, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(exact.value, tree.value, rtol=1e-9, atol=1e-12)
        grown += len(tree.feature) > 1
    assert grown > 30


def test_exact_leaves_keep_the_structure_of_the_diagonal() -> None:
    for seed in range(60):
        problem = random_problem(seed, kind="exact_leaf")
        tree = grow_tree(problem)
        diagonal = grow_tree(with_rules(problem, hessian="diagonal"))
        _same_structure(tree, diagonal)
        np.testing.assert_array_equal(tree.gain, diagonal.gain)
        values = [-newton_step(sums(problem, rows), problem.rules) for rows in tree.rows]
        np.testing.assert_array_equal(tree.value, values)


def test_random_problems_of_sparse_leaves_cover_what_they_promise(sparse_problems: list[Problem]) -> None:
    modes = {
        (problem.rules.sparse_mode, problem.rules.sparse_leaves == problem.n_outputs)
        for problem in sparse_problems
        if problem.n_outputs > 1
    }
    assert modes == {(mode, full) for mode in ("unrestricted", "restricted") for full in (True, False)}
    assert {problem.rules.sparse_leaves for problem in sparse_problems} == set(range(1, 13))
    assert any((problem.gradient == 0).mean() > 0.8 for problem in sparse_problems)
    assert any(problem.rules.gain_weight is not None for problem in sparse_problems)
    trees = [grow_tree(problem) for problem in sparse_problems]
    assert sum(len(tree.feature) > 1 for tree in trees) > 200
    # Sets change from node to node, and restricted nodes hold sets that are not their own best.
    assert sum(len(np.unique(tree.outputs, axis=0)) > 1 for tree in trees) > 100
    inherited = [
        any(
            (best_outputs(sums(problem, rows), problem.rules) != held).any()
            for rows, held in zip(tree.rows, tree.outputs, strict=True)
        )
        for problem, tree in zip(sparse_problems, trees, strict=True)
    ]
    assert sum(inherited) > 40


@pytest.mark.parametrize("kind", ["exact", "exact_leaf"])
def test_random_problems_of_the_exact_hessian_cover_what_they_promise(kind: Kind) -> None:
    drawn = [random_problem(seed, kind=kind) for seed in range(150)]
    for problem in drawn:
        full = problem.full_hessian
        assert full is not None
        assert problem.rules.hessian == kind
        assert problem.rules.reg_lambda > 0 == problem.rules.reg_alpha
        assert (full * 2**20 % 1 == 0).all()
        assert (problem.gradient * 2**10 % 1 == 0).all()
        np.testing.assert_array_equal(full, full.transpose(0, 2, 1))
        np.testing.assert_array_equal(full.sum(axis=2), 0.0)
        # The probabilities can be read back from gradient p - y.
        p = np.where(problem.gradient < 0, problem.gradient + 1, problem.gradient)
        np.testing.assert_array_equal(full, softmax_hessian(p))
    assert {problem.n_outputs for problem in drawn} == set(range(2, 7))
    assert {problem.weight is None for problem in drawn} == {True, False}
    trees = [grow_tree(problem) for problem in drawn]
    assert sum(len(tree.feature) > 1 for tree in trees) > 90
    assert max(tree.depth.max() for tree in trees) >= 5


def test_random_problems_cover_what_they_promise() -> None:
    drawn = [random_problem(seed) for seed in range(300)]
    repeated = random_problem(7)
    np.testing.assert_array_equal(repeated.gradient, drawn[7].gradient)
    for problem in drawn:
        n, m = problem.codes.shape
        assert 5 <= n <= 200
        assert 1 <= m <= 6
        assert 1 <= problem.n_outputs <= 12
        assert problem.n_value_bins.min() >= 1
        assert problem.n_value_bins.max() <= 64
        assert problem.codes.min() >= 0
        assert (problem.codes <= problem.n_value_bins - 1 + problem.has_missing).all()
        assert np.abs(problem.gradient).max() <= 4
        assert (problem.gradient * 2**20 % 1 == 0).all()
        assert problem.hessian is None or (problem.hessian >= 0).all()
        assert problem.hessian is None or (problem.hessian * 2**20 % 1 == 0).all()
        assert problem.weight is None or (problem.weight > 0).all()
        assert problem.weight is None or (problem.weight * 16 % 1 == 0).all()
    trees = [grow_tree(problem) for problem in drawn]
    assert {problem.n_outputs for problem in drawn} == set(range(1, 13))
    assert {problem.codes.shape[1] for problem in drawn} == set(range(1, 7))
    assert {problem.hessian is None for problem in drawn} == {True, False}
    assert any(problem.weight is not None and (problem.weight % 1 == 0).all() for problem in drawn)
    assert any(problem.weight is not None and (problem.weight % 1 != 0).any() for problem in drawn)
    assert any(problem.weight is None for problem in drawn)
    assert any((problem.gradient % 1 == 0).all() for problem in drawn)
    assert any((problem.codes == problem.n_value_bins).all(axis=0).any() for problem in drawn)
    missing_left = {
        bool(tree.missing_left[0])
        for problem, tree in zip(drawn, trees, strict=True)
        for k in tree.feature[:1]
        if k >= 0 and (problem.codes[:, k] == problem.n_value_bins[k]).any()
    }
    assert missing_left == {True, False}
    assert sum(len(tree.feature) > 1 for tree in trees) > 200
    assert max(tree.depth.max() for tree in trees) >= 6


# ---- Losses -------------------------------------------------------------------------------------------


def _binary_loss(y: Floats, raw: Floats) -> Floats:
    return np.logaddexp(0.0, raw) - y * raw


def _softmax_loss(y: Floats, raw: Floats) -> Floats:
    return np.asarray(y * (np.log(np.exp(raw).sum(axis=1, keepdims=True)) - raw))


def _squared_loss(y: Floats, raw: Floats) -> Floats:
    return np.asarray(0.5 * (raw - y) ** 2)


def _clipped_loss(y: Floats, raw: Floats) -> Floats:
    return np.where(y == 1, 0.5 * np.maximum(1 - raw, 0.0) ** 2, 0.5 * np.maximum(raw, 0.0) ** 2)


def _targets(kind: str, rng: np.random.Generator) -> Floats:
    if kind == "squared":
        return rng.normal(size=(30, 3))
    if kind == "binary":
        return (rng.random((30, 3)) < 0.4).astype(np.float64)
    return np.asarray(np.eye(3)[rng.permutation(np.arange(30) % 3)])


CASES = [
    ("squared", SQUARED_ERROR, _squared_loss),
    ("binary", BINARY_CROSS_ENTROPY, _binary_loss),
    ("softmax", cross_entropy("p(1-p)"), _softmax_loss),
]


@pytest.mark.parametrize(("kind", "loss", "value"), CASES)
def test_derivatives_match_finite_differences(
    kind: str, loss: Loss, value: Callable[[Floats, Floats], Floats]
) -> None:
    rng = np.random.default_rng(0)
    y, raw = _targets(kind, rng), rng.normal(size=(30, 3))
    g, h = loss.derivatives(y, raw)
    h = np.ones_like(g) if h is None else h
    for j in range(3):
        step = 1e-4 * np.eye(3)[j]
        up, middle, down = (value(y, raw + s * step).sum(axis=1) for s in (1, 0, -1))
        np.testing.assert_allclose(g[:, j], (up - down) / 2e-4, atol=1e-7)
        np.testing.assert_allclose(h[:, j], (up - 2 * middle + down) / 1e-8, atol=1e-6)


@pytest.mark.parametrize(("kind", "loss", "value"), CASES)
def test_base_score_is_the_best_constant(kind: str, loss: Loss, value: object) -> None:
    rng = np.random.default_rng(1)
    y, weight = _targets(kind, rng), rng.random(30) + 0.1
    g, _ = loss.derivatives(y, np.tile(loss.base_score(y, weight), (30, 1)))
    np.testing.assert_allclose(weight @ g, 0.0, atol=1e-12)


def test_softmax_curvatures() -> None:
    y, raw = np.array([[1.0, 0.0]]), np.log([[0.75, 0.25]])
    for curvature, expected in [
        ("p(1-p)", [0.1875, 0.1875]),
        ("2p(1-p)", [0.375, 0.375]),
        ("abs(p-y)", [0.25, 0.25]),
    ]:
        g, h = cross_entropy(curvature).derivatives(y, raw)
        assert h is not None
        np.testing.assert_allclose(g, [[-0.25, 0.25]])
        np.testing.assert_allclose(h, [expected])


def test_softmax_hessian_is_the_slope_of_the_gradient() -> None:
    rng = np.random.default_rng(4)
    y, raw = _targets("softmax", rng), rng.normal(size=(30, 3))
    loss = cross_entropy()
    assert loss.full_hessian is not None
    full = loss.full_hessian(raw)
    for j in range(3):
        step = 1e-5 * np.eye(3)[j]
        slope = (loss.derivatives(y, raw + step)[0] - loss.derivatives(y, raw - step)[0]) / 2e-5
        np.testing.assert_allclose(full[:, :, j], slope, atol=1e-9)
    p = softmax(raw)
    np.testing.assert_array_equal(np.diagonal(full, axis1=1, axis2=2), p * (1 - p))
    np.testing.assert_array_equal(full[:, 0, 1], -p[:, 0] * p[:, 1])


def test_clipped_squared_error_by_hand() -> None:
    y, raw = np.array([[1.0, 1, 1, 1], [0, 0, 0, 0]]), np.tile([-0.5, 0.25, 1.0, 1.5], (2, 1))
    g, h = CLIPPED_SQUARED_ERROR.derivatives(y, raw)
    assert h is None  # 1 for every row: first order
    assert g.tolist() == [[-1.5, -0.75, 0, 0], [0, 0.25, 1, 1.5]]
    assert CLIPPED_SQUARED_ERROR.base_score(y, np.ones(2)).tolist() == [0] * 4
    # At the base score only the labels a row has are wrong: the gradient is -y.
    np.testing.assert_array_equal(CLIPPED_SQUARED_ERROR.derivatives(y, np.zeros((2, 4)))[0], -y)
    up, down = (_clipped_loss(y, raw + step) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(g, (up - down) / 2e-6, atol=1e-6)


def test_log_odds_of_a_label_without_positives_or_negatives_are_finite() -> None:
    low, high = BINARY_CROSS_ENTROPY.base_score(np.array([[0.0, 1.0]] * 4), np.ones(4))
    np.testing.assert_allclose([low, high], [-np.log(1e9), np.log(1e9)], rtol=1e-6)


def test_links_survive_extreme_scores() -> None:
    raw = np.array([[-1e4, 1e4]])
    np.testing.assert_array_equal(BINARY_CROSS_ENTROPY.link(raw), [[0.0, 1.0]])
    np.testing.assert_array_equal(cross_entropy().link(raw), [[0.0, 1.0]])


# ---- Boosting and bins --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loss", "value"), CASES)
def test_training_loss_falls_every_round(
    kind: str, loss: Loss, value: Callable[[Floats, Floats], Floats]
) -> None:
    rng = np.random.default_rng(2)
    codes, n_value_bins = rng.integers(0, 6, size=(30, 2)), np.array([5, 6])  # the first has missing values
    y = _targets(kind, rng)
    for weight in (None, rng.random(30) + 0.1):
        model = boost(codes, n_value_bins, y, weight, loss, Rules(max_depth=3), 15, 0.1)
        raw = [replace(model, trees=model.trees[:t]).predict_raw(codes) for t in range(16)]
        losses = [np.average(value(y, prediction).sum(axis=1), weights=weight) for prediction in raw]
        assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("mode", ["unrestricted", "restricted"])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_gbdt_sparse_learns_labels(mode: Any, k: int) -> None:
    """The loss never rises (a Hessian of 1 bounds it), and every tree changes at most k labels of a row."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, size=(60, 2))
    y = np.zeros((60, 6))
    y[np.arange(60), codes[:, 0]] = 1
    y[codes[:, 1] > 1, 4] = 1
    rules = Rules(max_depth=3, sparse_leaves=k, sparse_mode=mode)
    for weight in (None, rng.random(60) + 0.1):
        model = boost(codes, np.array([4, 4]), y, weight, CLIPPED_SQUARED_ERROR, rules, 60, 0.5)
        raw = np.array([replace(model, trees=model.trees[:t]).predict_raw(codes) for t in range(61)])
        losses = np.average(_clipped_loss(y, raw).sum(axis=2), axis=1, weights=weight)
        assert (np.diff(losses) <= 1e-12).all()
        assert losses[-1] < 0.2 * losses[0]
        assert ((np.diff(raw, axis=0) != 0).sum(axis=2) <= k).all()
    assert y[np.arange(60), raw[-1].argmax(axis=1)].all()


def test_the_first_tree_of_gbdt_sparse_predicts_shares_of_labels() -> None:
    codes, y = np.array([[0], [0], [0], [1]]), np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
    rules = Rules(reg_lambda=0.0, sparse_leaves=1, sparse_mode="unrestricted")
    model = boost(codes, np.array([2]), y, None, CLIPPED_SQUARED_ERROR, rules, 1, 1.0)
    # Left: G = (-3, -1, 0), H = 3, the number of rows; right: G = (0, 0, -1), H = 1.
    assert model.predict_raw(np.array([[0], [1]])).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("hessian", ["exact", "exact_leaf"])
def test_boosting_with_the_full_hessian(hessian: Any) -> None:
    rng = np.random.default_rng(6)
    codes, y = rng.integers(0, 5, size=(30, 2)), _targets("softmax", rng)
    rules = Rules(max_depth=2, hessian=hessian)
    model = boost(codes, np.array([5, 5]), y, None, cross_entropy(), rules, 15, 0.1)
    raw = [replace(model, trees=model.trees[:t]).predict_raw(codes) for t in range(16)]
    assert (np.diff([_softmax_loss(y, prediction).sum() for prediction in raw]) < 0).all()
    # Gradients sum to 0 over the classes, and so does the Newton step of a Hessian whose rows do.
    np.testing.assert_allclose([tree.value.sum(axis=1).max() for tree in model.trees], 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="needs full_hessian"):
        boost(codes, np.array([5, 5]), y, None, SQUARED_ERROR, rules, 1, 0.1)


def test_one_full_tree_interpolates() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=20), rng.normal(size=(20, 4))
    thresholds = find_thresholds(x, 20)
    codes = bin_column(x, thresholds)[:, None]
    model = boost(codes, np.array([20]), y, None, SQUARED_ERROR, Rules(reg_lambda=0.0), 1, 1.0)
    np.testing.assert_allclose(model.predict_raw(codes), y, atol=1e-12)


def test_a_fixed_base_score_is_kept() -> None:
    codes, y = np.zeros((3, 1), dtype=np.int64), np.ones((3, 2))
    model = boost(codes, np.array([1]), y, None, SQUARED_ERROR, Rules(), 1, 1.0, base_score=np.zeros(2))
    assert model.base_score.tolist() == [0, 0]
    np.testing.assert_allclose(model.predict_raw(codes), 0.75)  # -G / (H + lambda) = 3 / 4


def test_thresholds_are_midpoints_that_separate() -> None:
    column = np.array([3.0, 1.0, np.nan, 1.0, 2.0])
    thresholds = find_thresholds(column, 3)
    assert thresholds.tolist() == [1.5, 2.5]
    assert bin_column(column, thresholds).tolist() == [2, 0, 3, 0, 1]
    assert bin_column(np.array([1.5, 1.6, -np.inf, np.inf]), thresholds).tolist() == [0, 1, 0, 2]
    with pytest.raises(ValueError, match="3 distinct values"):
        find_thresholds(column, 2)


def test_columns_without_two_values_have_one_value_bin() -> None:
    for column in (np.array([2.0, 2.0]), np.array([np.nan, np.nan])):
        assert len(find_thresholds(column, 2)) == 0
    assert bin_column(np.array([np.nan, 5.0]), np.array([])).tolist() == [1, 0]


def test_thresholds_separate_adjacent_huge_and_tiny_floats() -> None:
    for a, b in [(1.0, np.nextafter(1.0, 2.0)), (-1.7e308, 1.7e308), (1.6e308, 1.7e308), (-5e-324, 0.0)]:
        (threshold,) = find_thresholds(np.array([a, b]), 2)
        assert a <= threshold < b
