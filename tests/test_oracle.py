"""The specification itself is right: trees worked out by hand, and properties on random problems."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracle import (
    BINARY_CROSS_ENTROPY,
    SQUARED_ERROR,
    Floats,
    Ints,
    Loss,
    Problem,
    Rules,
    bin_column,
    boost,
    cross_entropy,
    exact_split_gains,
    find_split,
    find_thresholds,
    grow_tree,
    histogram,
    is_clear_cut,
    leaf_value,
    random_problem,
    score,
    soft_threshold,
    split_gains,
    sums,
)

NA = -1  # a missing value in the tables of this file


def make_problem(
    columns: Sequence[Sequence[int]],
    gradient: Sequence[Any],
    hessian: Sequence[Any] | None = None,
    weight: Sequence[float] | None = None,
    n_value_bins: int | None = None,
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
    )


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


# ---- Properties on random problems --------------------------------------------------------------------


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [random_problem(seed) for seed in range(120)]


def test_histogram_and_exact_split_finding_agree(problems: list[Problem]) -> None:
    for problem in problems:
        nodes = grow_tree(problem).rows
        for rows in (nodes[0], nodes[len(nodes) // 2], nodes[-1]):
            for k in range(problem.codes.shape[1]):
                from_histogram = split_gains(histogram(problem, rows, k), problem.rules)
                np.testing.assert_array_equal(from_histogram, exact_split_gains(problem, rows, k))


def test_gains_add_up_to_the_fall_of_the_objective(problems: list[Problem]) -> None:
    """The quadratic objective (eq. 12), summed row by row with the values the leaves predict."""
    for problem in problems:
        problem = replace(problem, rules=replace(problem.rules, gain_weight=None))
        rules, tree = problem.rules, grow_tree(problem)

        def objective(nodes: Ints, problem: Problem = problem, value: Floats = tree.value) -> float:
            w = value[nodes]
            penalty = np.array([value[node] for node in np.unique(nodes)])
            return float(
                np.sum(problem.g * w + 0.5 * problem.h * w**2)
                + np.sum(
                    0.5 * problem.rules.reg_lambda * penalty**2 + problem.rules.reg_alpha * np.abs(penalty)
                )
            )

        fall = objective(np.zeros_like(tree.leaf)) - objective(tree.leaf)
        np.testing.assert_allclose(tree.gain.sum(), fall, rtol=1e-10, atol=1e-10)
        leaves = np.flatnonzero(tree.feature < 0)
        scores = [float(score(sums(problem, tree.rows[node]), rules)) for node in (*leaves, 0)]
        np.testing.assert_allclose(2 * tree.gain.sum(), sum(scores[:-1]) - scores[-1], rtol=1e-10, atol=1e-10)


def test_every_node_obeys_the_rules(problems: list[Problem]) -> None:
    for problem in problems:
        rules, tree = problem.rules, grow_tree(problem)
        internal, leaves = np.flatnonzero(tree.feature >= 0), np.flatnonzero(tree.feature < 0)
        assert len(leaves) == len(internal) + 1
        assert rules.max_leaves is None or len(leaves) <= rules.max_leaves
        assert rules.max_depth is None or tree.depth.max() <= rules.max_depth
        assert rules.feature_mask is None or rules.feature_mask[tree.feature[internal]].all()
        assert (tree.gain[internal] > max(0, rules.min_split_gain) * problem.n_outputs).all()
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
            np.testing.assert_array_equal(tree.value[node], leaf_value(sums(problem, rows), rules))


def test_no_open_node_had_more_gain_than_the_one_split(problems: list[Problem]) -> None:
    """Best first, without a queue: of the nodes open at a step, the one with the largest gain is split."""
    for problem in problems:
        tree = grow_tree(problem)
        splits = [
            find_split(problem, rows) if depth != problem.rules.max_depth else None
            for rows, depth in zip(tree.rows, tree.depth, strict=True)
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
        whole = grow_tree(replace(problem, rules=replace(problem.rules, max_leaves=None)))
        part = grow_tree(replace(problem, rules=replace(problem.rules, max_leaves=4)))
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
        repeated = replace(
            problem,
            codes=problem.codes[rows],
            gradient=problem.gradient[rows],
            hessian=h,
            weight=None,
            rules=rules,
        )
        tree = grow_tree(repeated)
        for name in ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "value"):
            np.testing.assert_array_equal(getattr(weighted, name), getattr(tree, name), err_msg=name)


def test_permuting_outputs_permutes_values(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems[:40]):
        order = np.random.default_rng(seed).permutation(problem.n_outputs)
        gain_weight = problem.rules.gain_weight
        permuted = replace(
            problem,
            gradient=problem.gradient[:, order],
            hessian=None if problem.hessian is None else problem.hessian[:, order],
            rules=replace(problem.rules, gain_weight=None if gain_weight is None else gain_weight[order]),
        )
        before, after = grow_tree(problem), grow_tree(permuted)
        np.testing.assert_array_equal(before.feature, after.feature)
        np.testing.assert_array_equal(before.bin, after.bin)
        np.testing.assert_array_equal(before.value[:, order], after.value)


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
