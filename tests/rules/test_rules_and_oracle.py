"""The rules that every device compiles say what the oracle says, one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import oracle
from polyleaf._core import PruningBar, rules
from polyleaf.gpu.structs import struct_type

pytestmark = pytest.mark.cpu_only("the rules themselves, as the core compiles them")

RNG = np.random.default_rng(17)
NUMBERS = np.array([0.0, -0.0, 1e-300, -2.5, 3.0, 7.25, 1e150, -1e150])


# --- routing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize("n_value_bins", [1, 2, 5])
def test_codes_take_the_sides_of_the_oracle(n_value_bins: int, missing_left: bool) -> None:
    codes = np.arange(n_value_bins + 1)
    for b in range(n_value_bins):
        expected = oracle.goes_left(codes, n_value_bins, b, missing_left)
        got = [rules.goes_left_by_code(code, b, missing_left, n_value_bins) for code in codes.tolist()]
        assert got == expected.tolist()


@pytest.mark.parametrize("missing_left", [False, True])
def test_values_take_the_sides_of_their_bins(missing_left: bool) -> None:
    column = np.array([-1e300, -2.0, -0.0, 0.0, 5e-324, 0.5, 0.5000000000000001, 3.0, 1e300, np.nan])
    thresholds = oracle.find_thresholds(column, 255)
    codes = oracle.bin_column(column, thresholds)
    for b, threshold in enumerate([*thresholds, np.inf]):  # after the last one only missing values go right
        expected = oracle.goes_left(codes, len(thresholds) + 1, b, missing_left)
        got = [rules.goes_left_by_value(value, threshold, missing_left) for value in column]
        assert got == expected.tolist()


@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize("chosen", [{0}, {3, 31}, {32, 40, 95}, set()])
def test_categories_take_the_sides_of_the_oracle(chosen: set[int], missing_left: bool) -> None:
    words = np.zeros(max(chosen, default=-1) // 32 + 1, np.uint32)
    for category in chosen:
        words[category // 32] |= np.uint32(1) << np.uint32(category % 32)
    categories = np.arange(130)
    expected = oracle.category_goes_left(categories, frozenset(chosen), missing_left)
    got = [rules.goes_left_by_category(float(category), words, missing_left) for category in categories]
    assert got == expected.tolist()
    for stranger in (np.nan, -1.0, 0.5, 3.25, 1e30, -np.inf, np.inf):  # no category: with missing values
        assert rules.goes_left_by_category(stranger, words, missing_left) == missing_left


# --- scores and acceptance ---------------------------------------------------------------------------------


def sums(G: float, H: float, cnt: int = 1) -> oracle.Sums:
    return oracle.Sums(np.array([G]), np.array([H]), np.zeros((0, 0)), np.asarray(cnt))


@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize("reg_lambda", [0.0, 2.0])
def test_scores_and_values_are_those_of_the_oracle(reg_lambda: float, alpha: float) -> None:
    of_oracle = oracle.Rules(reg_lambda=reg_lambda, reg_alpha=alpha)
    for G, H in itertools.product(NUMBERS, [0.0, 0.25, 3.0]):
        node, shrunk = sums(G, H), rules.soft_threshold(G, alpha)
        assert shrunk == oracle.soft_threshold(np.float64(G), alpha)
        assert rules.score_term(shrunk, H + reg_lambda) == pytest.approx(
            float(oracle.score(node, of_oracle)), rel=1e-15
        )
        assert rules.leaf_value(shrunk, H + reg_lambda) == oracle.leaf_value(node, of_oracle)[0]


@pytest.mark.parametrize("min_samples_leaf", [0, 1, 3])
@pytest.mark.parametrize("min_child_weight", [-1.0, 0.0, 2.0])
def test_children_are_large_and_heavy_enough_where_the_oracle_says_so(
    min_samples_leaf: int, min_child_weight: float
) -> None:
    of_oracle = oracle.Rules(min_samples_leaf=min_samples_leaf, min_child_weight=min_child_weight)
    for n_left, n_right in itertools.product(range(1, 5), repeat=2):
        for left, right in itertools.product([0.0, 1.75, 2.0, 5.5], repeat=2):
            expected = oracle.allowed(sums(0, left, n_left), sums(0, right, n_right), of_oracle)
            large = rules.large_enough(n_left, n_left + n_right, min_samples_leaf)
            assert (large and rules.heavy_enough(left, left + right, min_child_weight)) == expected


@pytest.mark.parametrize("min_split_gain", [0.0, 0.5, -1.0])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_gain_is_accepted_where_the_oracle_finds_it_worth_it(n_outputs: int, min_split_gain: float) -> None:
    of_oracle = oracle.Rules(min_split_gain=min_split_gain, reg_lambda=0.0)
    for child, parent in itertools.product([0.0, 1.0, 1.0 + 2.0**-45, 1.25, 1.5, 2.0, 1e150], repeat=2):
        children = sums(child, 1.0), sums(child, 1.0)  # of the score G^2 / H
        gain = float(oracle.split_gain(sums(parent, 0.5), *children, of_oracle))
        expected = gain if oracle.is_worth_it(gain, n_outputs, of_oracle) else 0.0
        assert rules.accepted_gain(2 * child**2, 2 * parent**2, n_outputs, min_split_gain) == expected


def test_an_accepted_gain_is_finite() -> None:
    """Also where the score of a constrained parent is far below 0."""
    assert rules.accepted_gain(1.7e308, -1.7e308, 2, 0.0) == np.finfo(np.float64).max
    assert rules.accepted_gain(np.inf, 1.0, 2, 0.0) == 0.0
    assert rules.accepted_gain(np.nan, 1.0, 2, 0.0) == 0.0


def test_a_node_may_be_split_if_depth_rows_and_leaves_allow_it() -> None:
    assert rules.may_split(2, 10, 3, 2, 5)
    assert not rules.may_split(3, 10, 3, 2, 5)
    assert not rules.may_split(2, 9, 3, 2, 5)
    assert not rules.may_split(2, 10, 3, 1, 5)


@pytest.mark.parametrize("rule", oracle.SOFTMAX_CURVATURE)
def test_curvatures_are_those_of_the_oracle(rule: str) -> None:
    for p, y in itertools.product([0.0, 1e-3, 0.25, 0.5, 0.9], [0.0, 1.0]):
        expected = oracle.SOFTMAX_CURVATURE[rule](np.float64(p), np.float64(y))
        assert rules.curvature(rule, p, y) == pytest.approx(expected, rel=1e-15)
        # From the gradient alone; near a distance of 1 by a floor that keeps the output learning.
        assert rules.term_of(rule, p - y) == pytest.approx(expected, rel=1e-12, abs=2.0**-24)
    assert rules.term_of("itself", -1.5) == -1.5
    assert rules.term_of("square", -1.5) == 2.25


# --- pruning -----------------------------------------------------------------------------------------------


def nodes_of(gain: np.ndarray, path_minimum: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Visited nodes as bytes."""
    nodes = np.zeros(len(gain), struct_type("VisitedNode"))
    nodes["gain"], nodes["score"], nodes["path_minimum"] = gain, score, path_minimum
    return nodes.view(np.uint8)


@pytest.mark.parametrize("max_leaves", [2, 3, 8, 30])
@pytest.mark.parametrize("seed", range(8))
def test_best_first_growth_never_splits_a_hopeless_node(max_leaves: int, seed: int) -> None:
    """A full binary tree of random gains, equal ones among them, split best first as by the oracle."""
    rng = np.random.default_rng(seed)
    n_inner = 127
    gain = rng.integers(1, 30, n_inner) / 8
    minimum = gain.copy()
    for node in range(1, n_inner):
        minimum[node] = rules.path_minimum(minimum[(node - 1) // 2], gain[node])
    score = gain + rng.random(n_inner)
    split, queue = set(), [0]
    for _ in range(max_leaves - 1):
        node = min(queue, key=lambda node: (-gain[node], node))
        queue.remove(node)
        split.add(node)
        queue += [child for child in (2 * node + 1, 2 * node + 2) if child < n_inner]
    bar = PruningBar(max_leaves)
    height = -np.inf
    for level in range(7):  # as the device visits them
        here = np.arange(2**level - 1, 2 ** (level + 1) - 1)
        raised = bar.raised_by(nodes_of(gain[here], minimum[here], score[here]))
        assert raised >= height - 1e-6
        height = raised
        hopeless = {node for node in range(n_inner) if rules.is_hopeless(minimum[node], height)}
        assert not hopeless & split
    if max_leaves < 30:
        assert len(hopeless) > n_inner // 2  # the bar is worth its while


def test_nodes_that_are_not_split_do_not_raise_the_bar() -> None:
    bar = PruningBar(2)
    assert bar.raised_by(nodes_of(np.zeros(3), np.full(3, np.inf), np.ones(3))) == -np.inf
    one = bar.raised_by(nodes_of(np.array([2.0]), np.array([2.0]), np.array([3.0])))
    assert one == 2.0 - 1e-9 * 3.0
    with pytest.raises(ValueError, match="the size of the nodes"):
        bar.raised_by(np.zeros(struct_type("VisitedNode").itemsize + 1, np.uint8))


def test_leaves_are_scarce_where_the_depth_would_allow_more() -> None:
    assert rules.leaves_are_scarce(3, 7)
    assert not rules.leaves_are_scarce(3, 8)
    assert rules.leaves_are_scarce(31, 2**30 - 1)
    assert not rules.leaves_are_scarce(31, 2**30)  # no limit: nodes are visited depth first
    assert not rules.leaves_are_scarce(2**30, 2**30)
    assert not rules.leaves_are_scarce(0, 1)


def test_gains_within_rounding_of_the_largest_score_are_equal() -> None:
    assert rules.gains_are_equal(1.0, 1.0 + 0.9e-12, 1.0)
    assert not rules.gains_are_equal(1.0, 1.0 + 1.1e-12, 1.0)
    assert rules.gains_are_equal(1.0, 1.0 + 1.1e-12, 2.0)


# --- the fixed-point grid ----------------------------------------------------------------------------------


def test_a_power_of_two_is_that_of_the_standard_library() -> None:
    for exponent in (-1200, -1075, -1074, -1023, -1022, -1, 0, 31, 1023):
        assert rules.power_of_two(exponent) == math.ldexp(1.0, exponent)
    assert rules.power_of_two(1024) == math.inf


def test_the_lowest_exponent_is_that_of_the_largest_power_of_two_that_divides() -> None:
    for x in (1.0, 3.0, 0.75, 0.1, 6e-320, 5e-324, 1e300, 2.0**-1022, 2.0**1023, *RNG.random(20)):
        numerator, denominator = float(x).as_integer_ratio()
        lowest = (numerator & -numerator).bit_length() - denominator.bit_length()
        assert rules.lowest_exponent(x) == lowest


def test_a_row_is_rounded_before_and_after_its_weight() -> None:
    for value in [*RNG.normal(0, 1e4, 50), 0.5, 1.5, 2.5, -0.5, -1.5, -0.25]:
        for scale, weight in itertools.product([1.0, 0.5, 3.0], [1.0, 2.0, 0.3]):
            assert rules.on_grid(value, scale, weight) == np.rint(weight * np.rint(value * scale))
        assert rules.on_grid(value, 1.0, 2.0) == 2 * rules.on_grid(value, 1.0, 1.0)


def test_a_unit_is_the_smallest_power_of_two_that_sums_fit_in() -> None:
    for bits, n_rows in itertools.product([20, 31], [1, 1000, 200_000]):
        limit = rules.grid_limit(bits, n_rows, 0.0, bits == 20)
        assert limit == 2.0**bits - 2 - n_rows * (1.0 if bits == 20 else 0.5)
        for total in [*np.exp(RNG.normal(0, 20, 20)), 1.0, limit, 2 * limit, 1e-290, 1e300]:
            unit = rules.grid_unit(limit, total)
            assert math.frexp(unit)[0] == 0.5
            assert total / unit <= limit < 2 * total / unit
    assert rules.grid_unit(limit, 0.0) == 1.0
    assert rules.grid_unit(limit, 5e-324) == 2.0**-1000


def test_weights_are_multiples_of_their_unit_where_they_make_small_integers() -> None:
    for weight in (np.array([0.25, 3.0, 1.5]), np.arange(1.0, 100.0), np.full(5, 5e-324)):
        lowest = min(rules.lowest_exponent(w) for w in weight)
        unit = rules.unit_of_weights(lowest, weight.sum(), len(weight))
        assert unit == 2.0**lowest
        assert (weight / unit == np.rint(weight / unit)).all()
    weight = RNG.random(1000)  # no small integers
    lowest = min(rules.lowest_exponent(w) for w in weight)
    unit = rules.unit_of_weights(lowest, weight.sum(), len(weight))
    assert 2**15 < unit / weight.mean() <= 2**16
