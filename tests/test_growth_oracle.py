"""The compiled core grows the oracle's tree, split by split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from oracle import Problem, grow_tree, score, sums
from polyleaf.data.binning import bin_table
from polyleaf.growth.tree import Tree, TreeGrower, TreeRules
from problems import is_clear_cut, random_problem


def table_of(problem: Problem) -> npt.NDArray[np.float64]:
    """The codes as numbers: distinct values are few, so each gets a bin of its own."""
    table = problem.codes.astype(np.float64)
    table[problem.codes == problem.n_value_bins] = np.nan
    return table


def grow(problem: Problem, n_threads: int = 1, **grower: int) -> Tree:
    rules = problem.rules
    matrix = bin_table(table_of(problem), problem.weight, 255, n_threads)
    tree_rules = TreeRules(
        max_depth=rules.max_depth,
        max_leaves=rules.max_leaves,
        min_samples_leaf=rules.min_samples_leaf,
        min_split_gain=rules.min_split_gain,
        min_child_weight=rules.min_child_weight,
        reg_lambda=rules.reg_lambda,
        reg_alpha=rules.reg_alpha,
    )
    d = problem.n_outputs
    gain_weight = np.ones(d) if rules.gain_weight is None else rules.gain_weight.astype(np.float64)
    mask = None if rules.feature_mask is None else rules.feature_mask.astype(np.uint8)
    return TreeGrower(matrix, tree_rules, 1.0, n_threads, **grower).grow(
        problem.gradient.astype(np.float32),
        None if problem.hessian is None else problem.hessian.astype(np.float32),
        problem.weight,
        gain_weight=gain_weight,
        unit=np.ones(d),
        feature_mask=mask,
    )


def assert_same_tree(problem: Problem, tree: Tree) -> None:
    expected = grow_tree(problem)
    assert tree.feature.tolist() == expected.feature.tolist()
    assert tree.left.tolist() == expected.left.tolist()
    assert tree.count.tolist() == expected.count.tolist()
    inner = expected.feature >= 0
    assert tree.missing_left[inner].tolist() == expected.missing_left[inner].tolist()
    for node in np.flatnonzero(inner):
        codes = problem.codes[:, expected.feature[node]]
        observed = np.unique(codes[codes < problem.n_value_bins[expected.feature[node]]])
        # The core numbers the bins that occur; the oracle's bin may be followed by bins that do not.
        assert observed[tree.bin[node]] == expected.bin[node]
        assert np.sum(observed <= tree.threshold[node]) == tree.bin[node] + 1
        children = sum(
            float(score(sums(problem, expected.rows[child]), problem.rules))
            for child in (expected.left[node], expected.right[node])
        )
        assert tree.gain[node] == pytest.approx(expected.gain[node], abs=1e-5 * children)
    np.testing.assert_allclose(tree.cover, expected.cover, rtol=1e-12)
    np.testing.assert_allclose(
        tree.values, expected.value[~inner], rtol=1e-5, atol=1e-6 * (1 + np.abs(expected.value).max())
    )


@pytest.mark.parametrize("block", range(12))
def test_core_grows_the_oracles_tree(block: int) -> None:
    for seed in range(40 * block, 40 * (block + 1)):
        problem = random_problem(seed)
        assert_same_tree(problem, grow(problem))


@pytest.mark.parametrize("histogram_bytes", [0, 1 << 14, 1 << 16])
def test_memory_for_histograms_changes_no_bit(histogram_bytes: int) -> None:
    """Direct, subtracted and partly kept histograms hold the same integers."""
    for seed in range(1000, 1040):
        problem = random_problem(seed)
        full, scarce = grow(problem), grow(problem, histogram_bytes=histogram_bytes)
        for name in ("feature", "bin", "left", "missing_left", "gain", "cover", "values"):
            np.testing.assert_array_equal(getattr(full, name), getattr(scarce, name), err_msg=name)


@pytest.mark.parametrize("max_leaves", [2, 3, 5, 9, 17, 40])
def test_few_leaves_are_the_best_first_ones(max_leaves: int) -> None:
    """Any order of visiting gives Algorithm 5's tree."""
    for seed in range(2000, 2025):
        problem = random_problem(seed)
        for max_depth in (None, 3, 8):
            rules = replace(problem.rules, max_leaves=max_leaves, max_depth=max_depth, min_samples_leaf=1)
            changed = replace(problem, rules=rules)
            if is_clear_cut(changed, grow_tree(changed), 1e-9):
                assert_same_tree(changed, grow(changed))
