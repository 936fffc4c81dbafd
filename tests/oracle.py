"""The executable specification of polyleaf's trees, in slow and plain NumPy (float64).

It follows GBDT-MO (Zhang & Jung) under the paper's own names: g and h are the gradient and the diagonal of
the Hessian of every row, G and H their sums over a node, d the number of outputs. Read from top to bottom:

    inputs  ->  score of a node (eq. 15, 16; exact Hessian: eq. 13, 14)  ->  sparse leaves (Algorithms 3, 4)
            ->  monotone and interaction constraints  ->  histogram (Algorithm 1)
            ->  split finding (Algorithm 2; categories)  ->  growth (Algorithm 5)
            ->  losses and boosting  ->  bins

The compiled core must grow the same trees; problems.py draws problems to compare on. Nothing here imports
polyleaf.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


# ---- Inputs -------------------------------------------------------------------------------------------


# Sums in another order differ in their last bits: what differs by less than this share is equal.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Rules:
    """What a tree is allowed to be, and how its splits and leaves are scored."""

    max_depth: int | None = None  # the root has depth 0; a node at max_depth is a leaf
    max_leaves: int | None = None
    min_samples_leaf: int = 1  # rows, whatever their weight
    min_split_gain: float = 0.0  # a split needs an average gain over outputs strictly above this
    min_child_weight: float = 0.0  # least mean over outputs of H, on both sides
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    gain_weight: Floats | None = None  # (d,) factor of each output in a diagonal score; None: all 1
    feature_mask: Bools | None = None  # (m,) features that may split; None: all
    sparse_leaves: int | None = None  # k: outputs that a node holds, the others predict 0; None: all
    sparse_mode: Literal["unrestricted", "restricted"] = "restricted"  # Algorithm 3 or 4
    hessian: Literal["diagonal", "exact", "exact_leaf"] = "diagonal"  # where the full Hessian is used
    monotone: Ints | None = None  # (m, d) 1: the output may only rise with the feature, -1: fall; None: all 0
    groups: tuple[frozenset[int], ...] | None = None  # features that may meet on a path; None: all

    def __post_init__(self) -> None:
        if self.hessian == "diagonal":
            return
        if self.reg_lambda <= 0 or self.reg_alpha != 0:
            raise ValueError("the full Hessian needs reg_lambda > 0 (it may be singular) and reg_alpha = 0")
        if self.sparse_leaves is not None:
            raise ValueError("sparse leaves rest on a diagonal Hessian (eq. 17)")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that determines one tree."""

    codes: Ints  # (n, m); values of feature k are in bins 0 .. n_value_bins[k] - 1
    n_value_bins: Ints  # (m,); the code n_value_bins[k] itself means: missing
    has_missing: Bools  # (m,); whether feature k has a missing bin (no row need be in it)
    gradient: Floats  # (n, d)
    hessian: Floats | None  # (n, d); None: 1 for every row and output
    weight: Floats | None  # (n,), all above 0; None: 1 for every row
    rules: Rules
    full_hessian: Floats | None = None  # (n, d, d); for hessian="exact" and "exact_leaf"
    categorical: Bools | None = None  # (m,); features whose bins are categories, in no order; None: none

    def __post_init__(self) -> None:
        if not 1 <= self.n_involved <= self.n_outputs:
            raise ValueError(f"sparse_leaves={self.n_involved}, but there are {self.n_outputs} outputs")
        if self.rules.hessian != "diagonal" and self.full_hessian is None:
            raise ValueError(f"hessian={self.rules.hessian!r} needs full_hessian")

    @property
    def n_outputs(self) -> int:
        return int(self.gradient.shape[1])

    @property
    def n_involved(self) -> int:
        """Over how many outputs a gain is averaged (appendix B)."""
        return self.n_outputs if self.rules.sparse_leaves is None else self.rules.sparse_leaves

    def is_categorical(self, k: int) -> bool:
        return self.categorical is not None and bool(self.categorical[k])

    def n_categories(self, k: int) -> int:
        """Categories of feature k that have rows."""
        return len(np.setdiff1d(self.codes[:, k], self.n_value_bins[k]))

    @cached_property
    def w(self) -> Floats:
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @cached_property
    def g(self) -> Floats:
        return self.gradient * self.w[:, None]

    @cached_property
    def h(self) -> Floats:
        if self.rules.hessian == "exact":
            return np.diagonal(self.full, axis1=1, axis2=2)
        hessian = np.ones_like(self.gradient) if self.hessian is None else self.hessian
        return hessian * self.w[:, None]

    @cached_property
    def full(self) -> Floats:
        """(n, d, d), or (n, 0, 0) where no rule needs it."""
        if self.rules.hessian == "diagonal" or self.full_hessian is None:
            return np.zeros((len(self.codes), 0, 0))
        return self.full_hessian * self.w[:, None, None]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of one node; or of many at once (bins, candidates), with one more leading axis."""

    G: Floats  # (..., d)
    H: Floats  # (..., d)
    full: Floats  # (..., d, d) or (..., 0, 0): see Problem.full
    cnt: Ints  # (...)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.G + other.G, self.H + other.H, self.full + other.full, self.cnt + other.cnt)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.G - other.G, self.H - other.H, self.full - other.full, self.cnt - other.cnt)

    def __getitem__(self, index: int | slice | Ints) -> "Sums":
        return Sums(self.G[index], self.H[index], self.full[index], self.cnt[index])

    def cumulative(self) -> "Sums":
        return Sums(*(each.cumsum(axis=0) for each in (self.G, self.H, self.full, self.cnt)))


def sums(problem: Problem, rows: Ints) -> Sums:
    G, H, full = (each[rows].sum(axis=0) for each in (problem.g, problem.h, problem.full))
    return Sums(G, H, full, np.asarray(len(rows)))


# ---- The objective of a node: eq. 15 and 16, with the L1 penalty reg_alpha beside lambda --------------
# A node holds a set of outputs, a mask of shape (..., d): all of them unless leaves are sparse. Where no set
# is given, it is the node's best.


def soft_threshold(G: Floats, alpha: float) -> Floats:
    return np.sign(G) * np.maximum(np.abs(G) - alpha, 0.0)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, 0 where nothing holds the output down (H + lambda = 0)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def newton_step(node: Sums, rules: Rules) -> Floats:
    """(H + lambda I)^-1 G with the full Hessian."""
    regularised = node.full + rules.reg_lambda * np.eye(node.G.shape[-1])
    return np.asarray(np.linalg.solve(regularised, node.G[..., None])[..., 0])


def leaf_value(node: Sums, rules: Rules, held: Bools | None = None) -> Floats:
    if rules.hessian != "diagonal":
        return -newton_step(node, rules)  # eq. 13
    held = best_outputs(node, rules) if held is None else held
    value = -_divide(soft_threshold(node.G, rules.reg_alpha), node.H + rules.reg_lambda)  # eq. 15
    return np.where(held, value, 0.0)  # eq. 19


def terms(node: Sums, rules: Rules) -> Floats:
    """What each output adds to the score: v_j of eq. 18, times its gain weight."""
    v = _divide(soft_threshold(node.G, rules.reg_alpha) ** 2, node.H + rules.reg_lambda)
    return v if rules.gain_weight is None else v * rules.gain_weight


def score(node: Sums, rules: Rules, held: Bools | None = None) -> Floats:
    """-2 times the optimal objective of a node (eq. 16; with sparse leaves eq. 20)."""
    if rules.hessian == "exact":
        return np.asarray((node.G * newton_step(node, rules)).sum(axis=-1))  # eq. 14
    held = best_outputs(node, rules) if held is None else held
    return np.asarray(np.where(held, terms(node, rules), 0.0).sum(axis=-1))


def split_gain(
    parent: Sums,
    left: Sums,
    right: Sums,
    rules: Rules,
    held: Bools | None = None,
    limits: "Limits | None" = None,
    sign: Ints | None = None,
) -> Floats:
    """The gain of a split (eq. 9 with eq. 16), -inf where the rules forbid it; held: the parent's outputs.

    A difference within rounding of 0 is no gain. With monotone constraints, limits are those of the parent,
    and sign (..., d) is how the split orders the values of its children.
    """
    if rules.monotone is None:
        of_left, of_right = outputs_of_children(left, right, rules)
        children = score(left, rules, of_left) + score(right, rules, of_right)
        own = score(parent, rules, held)
    else:
        assert limits is not None
        assert sign is not None
        of_left, of_right = sibling_values(left, right, rules, limits, sign)
        children = score_of_values(left, rules, of_left) + score_of_values(right, rules, of_right)
        own = score_of_values(parent, rules, limits.clip(leaf_value(parent, rules)))
    gain = 0.5 * (children - own)
    gain = np.where((gain > 0) & (gain <= ROUNDING * children), 0.0, gain)
    return np.where(allowed(left, right, rules), gain, -np.inf)


def allowed(left: Sums, right: Sums, rules: Rules) -> Bools:
    """Whether both children are large and heavy enough."""
    return np.asarray(
        (np.minimum(left.cnt, right.cnt) >= max(rules.min_samples_leaf, 1))
        & (left.H.mean(axis=-1) >= rules.min_child_weight)
        & (right.H.mean(axis=-1) >= rules.min_child_weight)
    )


def is_worth_it(gain: float, n_involved: int, rules: Rules) -> bool:
    """Whether a gain is one, and enough of one on average over the outputs (appendix B)."""
    return gain > 0 and gain / n_involved > rules.min_split_gain


# ---- Sparse leaves: which outputs a node holds --------------------------------------------------------
# The root holds its own k best outputs, every other node those that the split above it chose. So a leaf
# predicts what its split was scored by, and the gains add up to the fall of the objective.


def top_outputs(v: Floats, k: int) -> Bools:
    """The k largest (the order pi of eq. 18); ties go to the lower output."""
    chosen = np.zeros(v.shape, dtype=np.bool_)
    np.put_along_axis(chosen, np.argsort(-v, axis=-1, kind="stable")[..., :k], True, axis=-1)
    return chosen


def best_outputs(node: Sums, rules: Rules) -> Bools:
    if rules.sparse_leaves is None:
        return np.ones(node.G.shape, dtype=np.bool_)
    return top_outputs(terms(node, rules), rules.sparse_leaves)


def outputs_of_children(left: Sums, right: Sums, rules: Rules) -> tuple[Bools, Bools]:
    if rules.sparse_leaves is None or rules.sparse_mode == "unrestricted":  # Algorithm 3, eq. 21
        return best_outputs(left, rules), best_outputs(right, rules)
    shared = top_outputs(terms(left, rules) + terms(right, rules), rules.sparse_leaves)  # Algorithm 4, eq. 22
    return shared, shared


# ---- Monotone and interaction constraints: what the splits above a node leave open to it --------------


@dataclass(frozen=True, eq=False)
class Limits:
    """The values of all leaves below a node lie between low and high; its path used these features."""

    low: Floats  # (d,)
    high: Floats
    used: frozenset[int] = frozenset()

    def clip(self, value: Floats) -> Floats:
        return np.clip(value, self.low, self.high)


def no_limits(problem: Problem) -> Limits:
    return Limits(np.full(problem.n_outputs, -np.inf), np.full(problem.n_outputs, np.inf))


def may_meet(k: int, used: frozenset[int], rules: Rules) -> bool:
    """Whether feature k shares a group with all features of a path; one in no group is on its own."""
    if rules.groups is None:
        return True
    grouped = frozenset().union(*rules.groups)
    groups = [*rules.groups, *([frozenset({k})] if k not in grouped else [])]
    return any(used | {k} <= group for group in groups)


def has_values_above(problem: Problem, k: int) -> Bools:
    """(n_value_bins,): whether the table has values of feature k above each bin."""
    present = problem.codes[problem.codes[:, k] < problem.n_value_bins[k], k]
    return np.arange(problem.n_value_bins[k]) < max(present, default=-1)


def signs_of_splits(problem: Problem, k: int) -> Ints:
    """(n_value_bins, d): how a split of feature k at each bin orders the outputs.

    Above the last value there are only missing ones, which are not ordered.
    """
    monotone = problem.rules.monotone
    signs = np.zeros(problem.n_outputs, dtype=np.int64) if monotone is None else monotone[k]
    return np.where(has_values_above(problem, k)[:, None], signs, 0)


def tells_missing_apart_too_low(problem: Problem, hist: Sums, k: int) -> Bools:
    """Whether each bin has all of a node's values below it, but not all of the table's.

    To tell missing values from the rest, nothing need be ordered: such a split is made at the last value.
    """
    values_above = hist.cnt[:-1].sum() - hist.cnt[:-1].cumsum()
    return (values_above == 0) & has_values_above(problem, k)


def sibling_values(
    left: Sums, right: Sums, rules: Rules, limits: Limits, sign: Ints
) -> tuple[Floats, Floats]:
    """The best values of two leaves that are in order; where their own are not, the best common one."""
    v_left, v_right = leaf_value(left, rules), leaf_value(right, rules)
    curvature = (left.H + rules.reg_lambda) + (right.H + rules.reg_lambda)
    pooled = -_divide(soft_threshold(left.G + right.G, 2 * rules.reg_alpha), curvature)
    pooled = np.clip(pooled, np.minimum(v_left, v_right), np.maximum(v_left, v_right))
    violates = sign * v_left > sign * v_right
    v_left, v_right = np.where(violates, pooled, v_left), np.where(violates, pooled, v_right)
    return limits.clip(v_left), limits.clip(v_right)


def score_of_values(node: Sums, rules: Rules, value: Floats) -> Floats:
    """-2 times the objective of a leaf that says these values, whatever its best ones are."""
    D = node.H + rules.reg_lambda
    v = np.where(D > 0, -2 * node.G * value - D * value**2 - 2 * rules.reg_alpha * np.abs(value), 0.0)
    return np.asarray((v if rules.gain_weight is None else v * rules.gain_weight).sum(axis=-1))


def limits_of_children(
    problem: Problem, limits: Limits, split: "Split", left: Sums, right: Sums
) -> tuple[Limits, Limits]:
    """Half-way between the children's values is the limit that their subtrees do not cross."""
    used = limits.used | {split.feature}
    if problem.is_categorical(split.feature):  # whose sets have no order
        return replace(limits, used=used), replace(limits, used=used)
    sign = signs_of_splits(problem, split.feature)[split.bin]
    v_left, v_right = sibling_values(left, right, problem.rules, limits, sign)
    middle = (v_left + v_right) / 2
    below, above = np.where(sign > 0, middle, limits.high), np.where(sign > 0, middle, limits.low)
    return (
        Limits(np.where(sign < 0, middle, limits.low), below, used),
        Limits(above, np.where(sign < 0, middle, limits.high), used),
    )


# ---- Algorithm 1: histogram for multiple outputs ------------------------------------------------------


def histogram(problem: Problem, rows: Ints, k: int) -> Sums:
    """Sums over each bin of feature k, (n_value_bins + 1) of them: the last one is the missing bin."""
    b, d = int(problem.n_value_bins[k]) + 1, problem.n_outputs
    full = np.zeros((b, *problem.full.shape[1:]))
    hist = Sums(np.zeros((b, d)), np.zeros((b, d)), full, np.zeros(b, dtype=np.int64))
    bins = problem.codes[rows, k]
    np.add.at(hist.G, bins, problem.g[rows])
    np.add.at(hist.H, bins, problem.h[rows])
    np.add.at(hist.full, bins, problem.full[rows])
    np.add.at(hist.cnt, bins, 1)
    return hist


# ---- Algorithm 2: split finding for multiple outputs --------------------------------------------------
# A table of gains of one feature has a row per value bin b (codes <= b go left) and two columns: missing
# values to the right, missing values to the left. So "missing against the rest" is the last b, missing right.


class Split(NamedTuple):
    gain: float
    feature: int
    bin: int
    missing_left: bool
    left: frozenset[int] | None = None  # of a split by categories: those of the node that go left, and right
    right: frozenset[int] | None = None


def split_gains(
    hist: Sums,
    rules: Rules,
    held: Bools | None = None,
    limits: Limits | None = None,
    signs: Ints | None = None,
) -> Floats:
    """The table of gains from a feature's histogram; held: the outputs of the node, limits: its limits."""
    values, missing = hist[:-1].cumulative(), hist[-1]
    parent = values[-1] + missing
    gains = np.full((len(values.cnt), 2), -np.inf)
    gains[:, 0] = split_gain(parent, values, parent - values, rules, held, limits, signs)
    if missing.cnt > 0:  # otherwise only the plain candidates: choose_missing_side decides afterwards
        with_missing = values + missing
        gains[:, 1] = split_gain(parent, with_missing, parent - with_missing, rules, held, limits, signs)
        # Missing values alone on the left are "missing against the rest", which is told from the right.
        gains[values.cnt == 0, 1] = -np.inf
    return gains


def exact_split_gains(
    problem: Problem, rows: Ints, k: int, held: Bools | None = None, limits: Limits | None = None
) -> Floats:
    """The same table straight from the rows, one candidate at a time, without a histogram."""
    codes, b_missing = problem.codes[rows, k], int(problem.n_value_bins[k])
    gains = np.full((b_missing, 2), -np.inf)
    for b in range(b_missing):
        for side in (0, 1):
            if side == 1 and b_missing not in codes:
                continue
            left = goes_left(codes, b_missing, b, bool(side))
            if side == 1 and np.all(codes[left] == b_missing):
                continue
            children = sums(problem, rows[left]), sums(problem, rows[~left])
            sign = signs_of_splits(problem, k)[b]
            gains[b, side] = split_gain(sums(problem, rows), *children, problem.rules, held, limits, sign)
    return gains


def goes_left(codes: Ints, b_missing: int, b: int, missing_left: bool) -> Bools:
    return np.where(codes == b_missing, missing_left, codes <= b)


def category_goes_left(codes: Ints, chosen: frozenset[int], missing_left: bool) -> Bools:
    """Those that are chosen go where missing values do not; all others go with missing values."""
    return np.isin(codes, list(chosen)) != missing_left


def split_rows(problem: Problem, rows: Ints, split: Split) -> Bools:
    """Which of the rows go left."""
    k = split.feature
    if split.left is not None:
        codes = problem.codes[rows, k]
        return np.where(
            codes == problem.n_value_bins[k], split.missing_left, np.isin(codes, list(split.left))
        )
    return goes_left(problem.codes[rows, k], problem.n_value_bins[k], split.bin, split.missing_left)


def candidates(
    problem: Problem, rows: Ints, held: Bools | None = None, limits: Limits | None = None
) -> Iterator[Split]:
    """Allowed splits of a node in the order that settles ties: feature, bin, missing right before left."""
    limits = no_limits(problem) if limits is None else limits
    for k in range(problem.codes.shape[1]):
        in_sample = problem.rules.feature_mask is None or problem.rules.feature_mask[k]
        if not in_sample or not may_meet(k, limits.used, problem.rules):
            continue
        if problem.is_categorical(k):
            yield from category_candidates(problem, rows, k, held, limits)
        else:
            hist, signs = histogram(problem, rows, k), signs_of_splits(problem, k)
            gains = split_gains(hist, problem.rules, held, limits, signs)
            if problem.rules.monotone is not None:
                gains[tells_missing_apart_too_low(problem, hist, k), 0] = -np.inf
            for b, side in np.argwhere(gains > -np.inf).tolist():
                yield Split(float(gains[b, side]), k, b, side == 1)


def find_split(
    problem: Problem, rows: Ints, held: Bools | None = None, limits: Limits | None = None
) -> Split | None:
    """The best candidate (the first of equals), if its gain is worth it."""
    options = list(candidates(problem, rows, held, limits))
    highest = max((split.gain for split in options), default=-np.inf)
    # Gains that differ by no more than rounding are equal.
    slack = ROUNDING * (2 * highest + float(score(sums(problem, rows), problem.rules, held)))
    best = next((split for split in options if split.gain >= highest - slack), None)
    if best is None or not is_worth_it(best.gain, problem.n_involved, problem.rules):
        return None
    return choose_missing_side(problem, rows, best)


def choose_missing_side(problem: Problem, rows: Ints, split: Split) -> Split:
    """Where the node saw no missing value, later ones go to the heavier child; to the left if equal."""
    codes = problem.codes[rows, split.feature]
    if problem.n_value_bins[split.feature] in codes:
        return split
    left = split_rows(problem, rows, split)
    heavier_left = problem.w[rows[left]].sum() >= problem.w[rows[~left]].sum()
    return split._replace(missing_left=bool(heavier_left))


# ---- Splits by sets of categories ---------------------------------------------------------------------
# The categories in a node are put in an order, and the first, the first two, ... go left. Where a feature has
# few categories, each goes left alone instead, then all of them (against missing values). Candidates are
# numbered (bin) in this order; each comes with missing values right, then left.

ONE_AGAINST_REST = 4  # the most categories of a feature that are few
SMOOTHING = 10.0  # rows of the average kind that hold a category's leaf value to that of all categories
POWER_STEPS = 12


def category_candidates(
    problem: Problem, rows: Ints, k: int, held: Bools | None, limits: Limits
) -> Iterator[Split]:
    hist = histogram(problem, rows, k)
    no_order = np.zeros(problem.n_outputs, dtype=np.int64)
    present, missing = np.flatnonzero(hist.cnt[:-1] > 0), hist[-1]
    if len(present) == 0:
        return
    by_chance = 0.0
    order = present[category_order(hist[present], problem)]
    if problem.n_categories(k) <= ONE_AGAINST_REST:
        lefts = [[c] for c in order]
        if missing.cnt > 0 and len(present) > 1:
            lefts.append(list(order))
    else:
        by_chance = category_noise(hist[present], problem)
        lefts = [list(order[: i + 1]) for i in range(len(order))]
    parent = sums(problem, rows)
    for number, categories in enumerate(lefts):
        alone = hist[np.array(categories)].cumulative()[-1]
        chosen = frozenset(int(c) for c in categories)
        others = frozenset(present.tolist()) - chosen
        for missing_left in (False, True) if missing.cnt > 0 else (False,):
            left = alone + missing if missing_left else alone
            gain = float(split_gain(parent, left, parent - left, problem.rules, held, limits, no_order))
            gain -= 0.5 * by_chance if others else 0.0
            if gain > -np.inf:
                yield Split(gain, k, number, missing_left, chosen, others)


def category_order(categories: Sums, problem: Problem) -> Ints:
    """The order of categories by their leaf values along the direction in which these differ most."""
    return np.argsort(category_projections(categories, problem), kind="stable")


def category_noise(categories: Sums, problem: Problem) -> float:
    """What the best split of an order found on noise would score on average; see how-it-works.

    Gradients have their variance over all rows then, and nothing to do with categories.
    """
    weight = problem.rules.gain_weight
    metric = np.ones(problem.n_outputs)
    if weight is not None and problem.rules.hessian != "exact":
        metric = weight
    squares = (problem.w[:, None] * problem.gradient**2).sum(axis=0)
    variance = metric * _divide(squares, np.maximum(problem.h.sum(axis=0), 0.0))
    size = np.maximum(categories.H.sum(axis=-1), 0.0)
    if not (variance.max() > 0 and size.sum() > 0):
        return 0.0
    n_categories = np.sqrt(size).sum() ** 2 / size.sum()  # fewer than there are, where their sizes differ
    digits, exponent = np.frexp(variance.max())
    largest = np.ldexp(np.rint(np.ldexp(digits, 20)), exponent - 20)  # to 20 bits
    directions = np.rint(np.ldexp(variance.sum() / variance.max(), 20)) / 2**20
    root = np.sqrt(max(n_categories - 1, 0.0)) + np.sqrt(max(directions - 1, 0.0))
    return float(2 / np.pi * largest * root**2)


def category_projections(categories: Sums, problem: Problem) -> Floats:
    """Leaf values along the first principal component, in the metric of the score.

    A category's leaf value is told from that of all categories together and shrunk towards it. The square of
    an entry of its vector is what a leaf of its own would add to the score.
    """
    weight = problem.rules.gain_weight
    metric = np.ones(problem.n_outputs)
    if weight is not None and problem.rules.hessian != "exact":
        metric = np.sqrt(weight)
    typical = np.maximum(problem.h.sum(axis=0) / problem.w.sum(), 0.0)  # Hessian of a row of weight 1
    s = problem.rules.reg_lambda + SMOOTHING * typical
    G, H = categories.G.sum(axis=0), categories.H.sum(axis=0)
    rest = metric * (categories.G - categories.H * _divide(G, H))  # of the gradient, at the common leaf value
    denominator = categories.H + s
    direction = leading_direction(_divide(rest, np.sqrt(denominator)))
    values = -np.sqrt(H + s) * _divide(rest, denominator)
    return np.asarray((values * direction).sum(axis=1))


def leading_direction(x: Floats) -> Floats:
    """The first right singular vector of x, by power iteration; its first largest entry is positive."""
    squares = (x**2).sum(axis=0)
    u = np.zeros(x.shape[1])
    u[np.argmax(squares >= (1 - 1e-9) * squares.max())] = 1.0
    for _ in range(POWER_STEPS):
        following = x.T @ (x @ u)
        if not np.abs(following).max() > 0:
            break
        u = following / np.abs(following).max()
    first = np.argmax(np.abs(u) >= (1 - 1e-6) * np.abs(u).max())
    return u if u[first] > 0 else -u


# ---- Algorithm 5: tree growth, best first -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tree:
    """One entry per node in order of creation: the root is 0, each split adds left, then right."""

    feature: Ints  # -1 in a leaf, like bin, left and right
    bin: Ints
    missing_left: Bools  # False in a leaf
    left: Ints
    right: Ints
    gain: Floats  # 0 in a leaf
    count: Ints  # training rows
    cover: Floats  # their summed weight
    value: Floats  # (n_nodes, d): what the node predicts, or would if it were a leaf
    outputs: Bools  # (n_nodes, d): those that the node holds
    depth: Ints
    limits: tuple[Limits, ...]
    rows: tuple[Ints, ...]  # training rows of each node
    leaf: Ints  # (n,): node number of the leaf of every training row
    # Of a split by categories: those that go where missing values do not. All others go with missing values.
    categories: tuple[frozenset[int] | None, ...] = ()

    def apply(self, codes: Ints, n_value_bins: Ints) -> Ints:
        """The leaf of every row of codes."""
        leaves = np.zeros(len(codes), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):  # parents come before their children
            here, k = np.flatnonzero(leaves == node), self.feature[node]
            chosen = self.categories[node]
            if chosen is not None:
                left = category_goes_left(codes[here, k], chosen, self.missing_left[node])
            else:
                left = goes_left(codes[here, k], n_value_bins[k], self.bin[node], self.missing_left[node])
            leaves[here] = np.where(left, self.left[node], self.right[node])
        return leaves


def grow_tree(problem: Problem) -> Tree:
    rules = problem.rules
    rows_of: list[Ints] = []
    depth_of: list[int] = []
    held_by: list[Bools] = []
    limits_of: list[Limits] = []
    split_of: dict[int, Split] = {}
    left_of: dict[int, int] = {}
    queue: dict[int, Split] = {}  # the largest gain first; of equal ones the node created first

    def add_node(rows: Ints, depth: int, held: Bools, limits: Limits) -> None:
        node = len(rows_of)
        rows_of.append(rows)
        depth_of.append(depth)
        held_by.append(held)
        limits_of.append(limits)
        if rules.max_depth is None or depth < rules.max_depth:
            split = find_split(problem, rows, held, limits)
            if split is not None:
                queue[node] = split

    every_row = np.arange(len(problem.codes))
    add_node(every_row, 0, best_outputs(sums(problem, every_row), rules), no_limits(problem))
    while queue and (rules.max_leaves is None or len(split_of) + 1 < rules.max_leaves):
        highest = max(split.gain for split in queue.values())
        slack = ROUNDING * max(
            float(score(sums(problem, rows_of[node]), rules, held_by[node])) for node in queue
        )
        node = min(node for node, split in queue.items() if split.gain >= highest * (1 - ROUNDING) - slack)
        split = queue.pop(node)
        split_of[node], left_of[node] = split, len(rows_of)
        rows = rows_of[node]
        left = split_rows(problem, rows, split)
        children = sums(problem, rows[left]), sums(problem, rows[~left])
        held = outputs_of_children(*children, rules)
        limits = limits_of_children(problem, limits_of[node], split, *children)
        add_node(rows[left], depth_of[node] + 1, held[0], limits[0])
        add_node(rows[~left], depth_of[node] + 1, held[1], limits[1])

    totals = [sums(problem, rows) for rows in rows_of]
    no_split = Split(gain=0.0, feature=-1, bin=-1, missing_left=False)
    splits = [split_of.get(node, no_split) for node in range(len(rows_of))]
    lefts = np.array([left_of.get(node, -1) for node in range(len(rows_of))])
    leaf = np.zeros(len(problem.codes), dtype=np.int64)
    for node, rows in enumerate(rows_of):
        leaf[rows] = node  # children come later and overwrite their parent
    return Tree(
        feature=np.array([split.feature for split in splits]),
        bin=np.array([split.bin for split in splits]),
        missing_left=np.array([split.missing_left for split in splits]),
        left=lefts,
        right=np.where(lefts >= 0, lefts + 1, -1),
        gain=np.array([split.gain for split in splits]),
        count=np.array([len(rows) for rows in rows_of]),
        cover=np.array([problem.w[rows].sum() for rows in rows_of]),
        value=np.array(
            [
                limits.clip(leaf_value(node, rules, held))
                for node, held, limits in zip(totals, held_by, limits_of, strict=True)
            ]
        ),
        outputs=np.array(held_by),
        depth=np.array(depth_of),
        limits=tuple(limits_of),
        rows=tuple(rows_of),
        leaf=leaf,
        categories=tuple(split.right if split.missing_left else split.left for split in splits),
    )


# ---- Renewed leaves: losses whose Hessian says nothing take quantiles of the residuals -------------------


def weighted_quantile(values: Floats, weight: Floats, level: float) -> float:
    """The first of the sorted values whose cumulative weight reaches level * total.

    Where it equals that, every number up to the next value minimises the pinball loss: halfway. Cells without
    weight do not count; without any the quantile is 0.
    """
    observed = np.argsort(values[weight > 0], kind="stable")
    values, cumulative = values[weight > 0][observed], np.cumsum(weight[weight > 0][observed])
    for k in range(len(values)):
        target, slack = level * cumulative[-1], ROUNDING * cumulative[-1]
        if k + 1 < len(values) and abs(cumulative[k] - target) <= slack:
            return float((values[k] + values[k + 1]) / 2)
        if cumulative[k] >= target:
            return float(values[k])
    return float(values[-1]) if len(values) else 0.0


def renew_values(tree: Tree, residual: Floats, weight: Floats, levels: Floats) -> Tree:
    """The tree with values that are quantiles of the residuals of each node's rows.

    residual and weight: (n, d), of all rows that count for leaf values; levels: (d,), NaN where an output's
    values stay as they are. Outputs that a node does not hold stay 0.
    """
    value = tree.value.copy()
    for node, rows in enumerate(tree.rows):
        for j in np.flatnonzero(~np.isnan(levels) & tree.outputs[node]):
            value[node, j] = weighted_quantile(residual[rows, j], weight[rows, j], levels[j])
    return replace(tree, value=value)


# ---- Bounded influence: a row far beyond all others moves its leaf no more than ordinary rows could ------

ORDINARY_MAGNITUDES = 6.0  # times the mean |g| of all rows: up to there, no row is bounded
ERRORS_OF_MEAN = 2.0  # times sqrt(rows of the leaf) * mean |g| of its other rows: nor up to there


def influence_limit(g: Floats, w: Floats, ordinary: float, row: float) -> float:
    """What the residual of a row may be at most in a leaf with these gradients and weights of one output.

    Weights are multiples of the least one, `row`. The other rows are all but one of that weight with the
    largest magnitude: weight 2 is the row twice.
    """
    magnitudes, weight = float((w * np.abs(g)).sum()), float(w.sum())
    rest = magnitudes - row * float(np.abs(g).max())
    others = rest / (weight - row) if weight > row and rest > 0 else 0.0
    return max(ORDINARY_MAGNITUDES * ordinary, ERRORS_OF_MEAN * np.sqrt(weight / row) * others)


def bound_influence(tree: Tree, g: Floats, w: Floats, rules: Rules) -> Tree:
    """The tree with leaf values of gradients within limits; what is cut off is said to all rows alike.

    g: (n, d) and w: (n,) of the rows of the tree, whose Hessian is their weight.
    """
    leaves = np.flatnonzero(tree.feature < 0)
    ordinary = (w[:, None] * np.abs(g)).sum(axis=0) / w.sum()
    value = tree.value.copy()
    for j in range(g.shape[1]):
        within = g[:, j].copy()
        for node in leaves:
            rows = tree.rows[node]
            limit = influence_limit(g[rows, j], w[rows], ordinary[j], w.min())
            within[rows] = np.clip(g[rows, j], -limit, limit)
        within += (w * (g[:, j] - within)).sum() / w.sum()
        for node in leaves[tree.outputs[leaves, j]]:
            rows = tree.rows[node]
            G, H = np.array((w[rows] * within[rows]).sum()), np.array(w[rows].sum() + rules.reg_lambda)
            limits = tree.limits[node]
            value[node, j] = -_divide(soft_threshold(G, rules.reg_alpha), H)
            value[node] = limits.clip(value[node])
    return replace(tree, value=value)


# ---- Losses: y and raw predictions are (n, d); classes come as one-hot rows ---------------------------

PROBABILITY_FLOOR = 1e-9  # of a base score: a label without positives (or negatives) keeps a finite log odds


class Loss(NamedTuple):
    base_score: Callable[[Floats, Floats], Floats]  # (y, weight) -> (d,)
    derivatives: Callable[[Floats, Floats], tuple[Floats, Floats | None]]  # (y, raw) -> g, h of one row each
    link: Callable[[Floats], Floats]  # raw -> prediction
    full_hessian: Callable[[Floats], Floats] | None = None  # raw -> (n, d, d), for losses that have one
    levels: Floats | None = None  # (d,): leaf values are these quantiles of the residuals


def _mean(y: Floats, weight: Floats) -> Floats:
    return np.asarray(np.average(y, axis=0, weights=weight))


def _log_prior(y: Floats, weight: Floats) -> Floats:
    return np.log(np.maximum(_mean(y, weight), PROBABILITY_FLOOR))


def _log_odds(y: Floats, weight: Floats) -> Floats:
    p = np.clip(_mean(y, weight), PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
    return np.log(p) - np.log1p(-p)


def softmax(raw: Floats) -> Floats:
    e = np.exp(raw - raw.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def sigmoid(raw: Floats) -> Floats:
    e = np.exp(-np.abs(raw))  # never overflows
    return np.where(raw >= 0, 1.0, e) / (1.0 + e)


def _binary_derivatives(y: Floats, raw: Floats) -> tuple[Floats, Floats]:
    p = sigmoid(raw)
    return p - y, p * (1 - p)


def _clipped_derivatives(y: Floats, raw: Floats) -> tuple[Floats, None]:
    return np.where(y == 1, -np.maximum(1 - raw, 0.0), np.maximum(raw, 0.0)), None


SQUARED_ERROR = Loss(_mean, lambda y, raw: (raw - y, None), lambda raw: raw)  # of (raw - y)^2 / 2
BINARY_CROSS_ENTROPY = Loss(_log_odds, _binary_derivatives, sigmoid)
# GBDT-sparse: max(1 - raw, 0)^2 / 2 where y = 1, max(raw, 0)^2 / 2 where y = 0. The gradient of a label that
# is right already is 0, and a base score of 0 makes that of almost all labels so. First order: the Hessian
# is 1 for every row, so that H is their number.
CLIPPED_SQUARED_ERROR = Loss(lambda y, weight: np.zeros(y.shape[1]), _clipped_derivatives, lambda raw: raw)


def pinball(levels: Floats) -> Loss:
    """level * (y - raw) below the target, (1 - level) * (raw - y) above."""

    def base_score(y: Floats, weight: Floats) -> Floats:
        return np.array([weighted_quantile(y[:, j], weight, level) for j, level in enumerate(levels)])

    def derivatives(y: Floats, raw: Floats) -> tuple[Floats, None]:
        return np.where(raw > y, 1 - levels, np.where(raw < y, -levels, 0.0)), None

    return Loss(base_score, derivatives, lambda raw: raw, levels=levels)


def absolute_error(d: int) -> Loss:
    """Twice the pinball loss of the median."""
    half = pinball(np.full(d, 0.5))
    return half._replace(derivatives=lambda y, raw: (2 * half.derivatives(y, raw)[0], None))


def huber(delta: float, factor: Floats) -> Loss:
    """r^2 / 2 up to |r| = delta, straight lines beyond, both times a factor (d,).

    The curvature is that of the parabola with its minimum at r = 0 that touches the loss from above, and at
    most 32.
    """

    def derivatives(y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        r = raw - y
        h = delta / np.maximum(np.abs(r), delta)
        return np.clip(r, -delta, delta) * factor, np.minimum(h * factor, 32.0)

    return Loss(lambda y, weight: np.zeros(y.shape[1]), derivatives, lambda raw: raw)


def deviance(power: float, mean: Floats) -> Loss:
    """Half the deviance of y / mean and exp(raw) / mean: power 1 is Poisson's, 2 gamma's, Tweedie's between.

    The Hessian is at least gradient / (raw - log y): no row asks for a step past its own target.
    """

    def derivatives(y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        y, raw = y / mean, raw - np.log(mean)
        g = np.exp((2 - power) * raw) - y * np.exp((1 - power) * raw)
        h = (2 - power) * np.exp((2 - power) * raw) + (power - 1) * y * np.exp((1 - power) * raw)
        missed = np.where(
            (y > 0) & (raw != np.log(np.where(y > 0, y, 1))), raw - np.log(np.where(y > 0, y, 1)), 0
        )
        return g, np.maximum(h, np.divide(g, missed, out=np.zeros_like(g), where=missed != 0))

    return Loss(lambda y, weight: np.log(_mean(y, weight)), derivatives, np.exp)


SOFTMAX_CURVATURE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "p(1-p)": lambda p, y: p * (1 - p),  # the diagonal of the Hessian, the paper's
    "2p(1-p)": lambda p, y: 2 * p * (1 - p),  # gamma = 2 of appendix A: bounds the whole Hessian
    "abs(p-y)": lambda p, y: np.abs(p - y),
}


def cross_entropy(curvature: str = "p(1-p)") -> Loss:
    def derivatives(y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        p = softmax(raw)
        return p - y, SOFTMAX_CURVATURE[curvature](p, y)

    return Loss(_log_prior, derivatives, softmax, lambda raw: softmax_hessian(softmax(raw)))


def softmax_hessian(p: Floats) -> Floats:
    """diag(p) - p p^T of every row. Rows and columns sum to 0: it is singular."""
    return np.asarray(p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :]))


# ---- Boosting -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Model:
    n_value_bins: Ints
    base_score: Floats
    learning_rate: float
    trees: list[Tree]

    def predict_raw(self, codes: Ints) -> Floats:
        raw = np.tile(self.base_score, (len(codes), 1))
        for tree in self.trees:
            raw += self.learning_rate * tree.value[tree.apply(codes, self.n_value_bins)]
        return raw


def boost(
    codes: Ints,
    n_value_bins: Ints,
    y: Floats,
    weight: Floats | None,
    loss: Loss,
    rules: Rules,
    n_rounds: int,
    learning_rate: float,
    base_score: Floats | None = None,
) -> Model:
    if base_score is None:
        base_score = loss.base_score(y, np.ones(len(y)) if weight is None else weight)
    has_missing = (codes == n_value_bins).any(axis=0)
    raw, trees = np.tile(base_score, (len(y), 1)), []
    for _ in range(n_rounds):
        g, h = loss.derivatives(y, raw)
        full = None if loss.full_hessian is None else loss.full_hessian(raw)
        tree = grow_tree(Problem(codes, n_value_bins, has_missing, g, h, weight, rules, full))
        if loss.levels is not None:
            cells = np.ones_like(raw) if weight is None else np.tile(weight[:, None], raw.shape[1])
            tree = renew_values(tree, y - raw, cells, loss.levels)
        raw = raw + learning_rate * tree.value[tree.leaf]
        trees.append(tree)
    return Model(n_value_bins, base_score, learning_rate, trees)


# ---- Bins of a column with at most max_bins distinct values -------------------------------------------


def find_thresholds(column: Floats, max_bins: int) -> Floats:
    """Midpoints between neighbouring distinct values: a <= threshold < b even where a and b are adjacent."""
    distinct = np.unique(column[~np.isnan(column)])
    if len(distinct) > max_bins:
        raise ValueError(f"{len(distinct)} distinct values: only the case of at most {max_bins} is specified")
    a, b = distinct[:-1], distinct[1:]
    middle = a / 2 + b / 2  # a + b could overflow
    return np.where((middle >= a) & (middle < b), middle, a)


def bin_column(column: Floats, thresholds: Floats) -> Ints:
    """x <= threshold b and > threshold b - 1 is bin b; NaN is the code after the last value bin."""
    return np.where(np.isnan(column), len(thresholds) + 1, np.searchsorted(thresholds, column, side="left"))
