"""The compiled core grows the oracle's tree, split by split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from growing import settings, task
from oracle import Problem, grow_tree, score, sums
from polyleaf import _core
from polyleaf._core import BinnedMatrix
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample
from polyleaf.growth.tree import Tree
from polyleaf.params.constraints import interaction_groups
from problems import has_numbers_of_packed_sums, is_clear_cut, random_problem

pytestmark = pytest.mark.cpu_only("it is the core that the oracle is compared with")


def table_of(problem: Problem) -> npt.NDArray[np.float64]:
    """The codes as numbers: distinct values are few, so each gets a bin of its own."""
    table = problem.codes.astype(np.float64)
    table[problem.codes == problem.n_value_bins] = np.nan
    return table


def bins_of(problem: Problem, n_threads: int = 1) -> BinnedMatrix:
    categorical = None if problem.categorical is None else problem.categorical.astype(np.uint8)
    return bin_table(table_of(problem), problem.weight, 255, n_threads, categorical)


def grow(
    problem: Problem,
    n_threads: int = 1,
    matrix: BinnedMatrix | None = None,
    precision: str = "full",
    **grower: int,
) -> Tree:
    rules = problem.rules
    matrix = bins_of(problem, n_threads) if matrix is None else matrix
    of_grower = settings(
        max_depth=rules.max_depth,
        max_leaves=rules.max_leaves,
        min_samples_leaf=rules.min_samples_leaf,
        min_split_gain=rules.min_split_gain,
        min_child_weight=rules.min_child_weight,
        reg_lambda=rules.reg_lambda,
        reg_alpha=rules.reg_alpha,
        sparse_leaves=rules.sparse_leaves,
        sparse_mode=rules.sparse_mode,
        hessian=rules.hessian,
        histogram_precision=precision,
        n_threads=n_threads,
        **grower,
    )
    d = problem.n_outputs
    gain_weight = np.ones(d) if rules.gain_weight is None else rules.gain_weight.astype(np.float64)
    mask = None if rules.feature_mask is None else rules.feature_mask.astype(np.uint8)
    wanted = task(
        problem.gradient.astype(np.float32),
        None if problem.hessian is None else problem.hessian.astype(np.float32),
        problem.weight,
        gain_weight=gain_weight,
        # Of a softmax, the gradient is negative for the true class alone.
        label=None if problem.full_hessian is None else problem.gradient.argmin(axis=1).astype(np.int32),
        features=FeatureSample(mask, groups=interaction_groups(rules.groups, problem.codes.shape[1], None)),
        monotone=None if rules.monotone is None else rules.monotone.astype(np.int8),
    )
    return DenseGrower(matrix, of_grower).grow(wanted)


def categories_of(tree: Tree, node: int) -> frozenset[int]:
    """The set of a split by categories; empty where there is none."""
    words = tree.category_bits[tree.category_begin[node] : tree.category_begin[node + 1]]
    return frozenset(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def assert_same_tree(problem: Problem, tree: Tree) -> None:
    expected = grow_tree(problem)
    assert tree.feature.tolist() == expected.feature.tolist()
    assert tree.left.tolist() == expected.left.tolist()
    assert tree.count.tolist() == expected.count.tolist()
    inner = expected.feature >= 0
    assert tree.missing_left[inner].tolist() == expected.missing_left[inner].tolist()
    for node in np.flatnonzero(inner):
        if expected.categories[node] is not None:
            assert categories_of(tree, node) == expected.categories[node]
            assert tree.bin[node] == expected.bin[node]
            continue
        assert not categories_of(tree, node)
        codes = problem.codes[:, expected.feature[node]]
        observed = np.unique(codes[codes < problem.n_value_bins[expected.feature[node]]])
        # The core numbers the bins that occur; the oracle's bin may be followed by bins that do not.
        assert observed[tree.bin[node]] == expected.bin[node]
        assert np.sum(observed <= tree.threshold[node]) == tree.bin[node] + 1
        children = [expected.left[node], expected.right[node]]
        scores = [
            float(score(sums(problem, expected.rows[child]), problem.rules, expected.outputs[child]))
            for child in children
        ]
        assert tree.gain[node] == pytest.approx(expected.gain[node], abs=1e-5 * sum(scores))
    np.testing.assert_allclose(tree.cover, expected.cover, rtol=1e-12)
    values = np.zeros((len(tree.values), problem.n_outputs))
    if len(tree.outputs) > 0:
        assert [np.flatnonzero(held).tolist() for held in expected.outputs[~inner]] == tree.outputs.tolist()
        np.put_along_axis(values, tree.outputs, tree.values, axis=1)
    else:
        values[:] = tree.values
    scale = 1 + np.abs(expected.value).max()
    np.testing.assert_allclose(values, expected.value[~inner], rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("block", range(12))
def test_core_grows_the_oracles_tree(block: int) -> None:
    for seed in range(40 * block, 40 * (block + 1)):
        problem = random_problem(seed)
        assert_same_tree(problem, grow(problem))


@pytest.mark.parametrize("block", range(6))
def test_packed_sums_grow_the_oracles_tree(block: int) -> None:
    for seed in range(10 * block, 10 * (block + 1)):
        problem = random_problem(seed, kind="packed")
        assert has_numbers_of_packed_sums(problem)
        kind = (problem.hessian is not None, problem.weight is not None)
        assert _core.fixed_point(None, len(problem.codes), problem.n_outputs, *kind, True)[3]
        for precision in ("full", "packed"):
            assert_same_tree(problem, grow(problem, n_threads=1 + block % 3, precision=precision))


@pytest.mark.parametrize("block", range(6))
def test_trees_of_many_classes_are_the_oracles(block: int) -> None:
    """Where most outputs are one-sided in a small node, and where they are not."""
    for seed in range(12 * block, 12 * (block + 1)):
        problem = random_problem(seed, kind="many_classes")
        assert_same_tree(problem, grow(problem, n_threads=1 + block % 3))


@pytest.mark.parametrize("block", range(8))
def test_combinations_of_features_grow_the_oracles_tree(block: int) -> None:
    """Also on a part of the rows of a larger table."""
    n_combined = 0
    for seed in range(10 * block, 10 * (block + 1)):
        problem = random_problem(seed, kind="combined")
        n_threads = 1 + block % 3
        matrix = bins_of(problem, n_threads)
        combinations = matrix.feature_combinations()
        n_combined += len(np.unique(combinations)) < len(combinations) and combinations[0] >= 0
        assert_same_tree(problem, grow(problem, n_threads, matrix))
        if has_numbers_of_packed_sums(problem):
            assert_same_tree(problem, grow(problem, n_threads, matrix, "packed"))
        n = len(problem.codes)
        twice = replace(
            problem,
            codes=np.tile(problem.codes, (2, 1)),
            weight=None if problem.weight is None else np.tile(problem.weight, 2),
        )
        last = bins_of(twice, n_threads).take(np.arange(n, 2 * n, dtype=np.uint32), n_threads)
        assert_same_tree(problem, grow(problem, n_threads, last))
    assert n_combined >= 3


@pytest.mark.parametrize("block", range(8))
def test_many_bins_grow_the_oracles_tree(block: int) -> None:
    """Bins are passed over where a bound says that others are better."""
    for seed in range(25 * block, 25 * (block + 1)):
        problem = random_problem(seed, kind="many_bins")
        assert_same_tree(problem, grow(problem, n_threads=1 + block % 3))


@pytest.mark.parametrize("block", range(8))
def test_sparse_leaves_are_the_oracles(block: int) -> None:
    """Algorithms 3 and 4: the splits, and the outputs that each leaf holds."""
    for seed in range(30 * block, 30 * (block + 1)):
        problem = random_problem(seed, kind="sparse")
        assert_same_tree(problem, grow(problem))


@pytest.mark.parametrize("kind", ["exact", "exact_leaf"])
@pytest.mark.parametrize("block", range(4))
def test_trees_of_the_full_hessian_are_the_oracles(kind: str, block: int) -> None:
    """Eq. 13 and 14: in splits and leaves, or in leaves alone."""
    for seed in range(20 * block, 20 * (block + 1)):
        problem = random_problem(seed, kind=kind, margin=1e-6)
        assert_same_tree(problem, grow(problem))


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
def test_leaves_of_all_outputs_equal_dense_ones(sparse_mode: str) -> None:
    for seed in range(60):
        problem = random_problem(seed)
        rules = replace(problem.rules, sparse_leaves=problem.n_outputs, sparse_mode=sparse_mode)
        dense, sparse = grow(problem), grow(replace(problem, rules=rules))
        for name in ("feature", "bin", "left", "gain", "values"):
            np.testing.assert_array_equal(getattr(dense, name), getattr(sparse, name), err_msg=name)


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


@pytest.mark.parametrize("kind", ["float32", "large integers", "many bits"])
def test_any_weights_leave_the_gradients_their_precision(kind: str) -> None:
    """Weights that are no small integers do not take bits from the gradients they are multiplied with."""
    compared = 0
    for seed in range(3000, 3060):
        problem = random_problem(seed)
        rng = np.random.default_rng(seed)
        n = len(problem.codes)
        weight = {
            "float32": rng.random(n, dtype=np.float32).astype(np.float64) + 1e-3,
            "large integers": rng.integers(1, 9_000_000, size=n).astype(np.float64),
            "many bits": rng.integers(1, 2**20, size=n) / 2**20,
        }[kind]
        changed = replace(
            problem, weight=weight, rules=replace(problem.rules, reg_lambda=0.5 * weight.mean())
        )
        if is_clear_cut(changed, grow_tree(changed), 1e-6):
            assert_same_tree(changed, grow(changed))
            compared += 1
    assert compared > 30
