"""The executable specification of polyleaf's trees, in slow and plain NumPy (float64).

It follows GBDT-MO (Zhang & Jung) under the paper's own names: g and h are the gradient and the diagonal of
the Hessian of every row, G and H their sums over a node, d the number of outputs. Read from top to bottom:

    inputs  ->  score of a node (eq. 15, 16)  ->  histogram (Algorithm 1)  ->  split finding (Algorithm 2)
            ->  growth (Algorithm 5)  ->  losses and boosting  ->  bins  ->  random problems to compare on

The compiled core must grow the same trees. Nothing here imports polyleaf.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


# ---- Inputs -------------------------------------------------------------------------------------------


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
    gain_weight: Floats | None = None  # (d,) factor of each output in the score; None: all 1
    feature_mask: Bools | None = None  # (m,) features that may split; None: all


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

    @property
    def n_outputs(self) -> int:
        return int(self.gradient.shape[1])

    @cached_property
    def w(self) -> Floats:
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @cached_property
    def g(self) -> Floats:
        return self.gradient * self.w[:, None]

    @cached_property
    def h(self) -> Floats:
        hessian = np.ones_like(self.gradient) if self.hessian is None else self.hessian
        return hessian * self.w[:, None]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of one node; or of many at once (bins, candidates), with one more leading axis."""

    G: Floats  # (..., d)
    H: Floats  # (..., d)
    cnt: Ints  # (...)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.G + other.G, self.H + other.H, self.cnt + other.cnt)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.G - other.G, self.H - other.H, self.cnt - other.cnt)

    def __getitem__(self, index: int | slice) -> "Sums":
        return Sums(self.G[index], self.H[index], self.cnt[index])

    def cumulative(self) -> "Sums":
        return Sums(self.G.cumsum(axis=0), self.H.cumsum(axis=0), self.cnt.cumsum(axis=0))


def sums(problem: Problem, rows: Ints) -> Sums:
    return Sums(problem.g[rows].sum(axis=0), problem.h[rows].sum(axis=0), np.asarray(len(rows)))


# ---- The objective of a node: eq. 15 and 16, with the L1 penalty reg_alpha beside lambda --------------


def soft_threshold(G: Floats, alpha: float) -> Floats:
    return np.sign(G) * np.maximum(np.abs(G) - alpha, 0.0)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, 0 where nothing holds the output down (H + lambda = 0)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def leaf_value(node: Sums, rules: Rules) -> Floats:
    return -_divide(soft_threshold(node.G, rules.reg_alpha), node.H + rules.reg_lambda)  # eq. 15


def score(node: Sums, rules: Rules) -> Floats:
    """-2 times the optimal objective of a node (eq. 16)."""
    terms = _divide(soft_threshold(node.G, rules.reg_alpha) ** 2, node.H + rules.reg_lambda)
    if rules.gain_weight is not None:
        terms = terms * rules.gain_weight
    return np.asarray(terms.sum(axis=-1))


def split_gain(parent: Sums, left: Sums, right: Sums, rules: Rules) -> Floats:
    """The gain of a split (eq. 9 with eq. 16), -inf where the rules forbid it.

    A difference within rounding of 0 (1e-12 of the children's score) is no gain.
    """
    children = score(left, rules) + score(right, rules)
    gain = 0.5 * (children - score(parent, rules))
    gain = np.where((gain > 0) & (gain <= 1e-12 * children), 0.0, gain)
    allowed = (
        (np.minimum(left.cnt, right.cnt) >= max(rules.min_samples_leaf, 1))
        & (left.H.mean(axis=-1) >= rules.min_child_weight)
        & (right.H.mean(axis=-1) >= rules.min_child_weight)
    )
    return np.where(allowed, gain, -np.inf)


# ---- Algorithm 1: histogram for multiple outputs ------------------------------------------------------


def histogram(problem: Problem, rows: Ints, k: int) -> Sums:
    """Sums over each bin of feature k, (n_value_bins + 1) of them: the last one is the missing bin."""
    b, d = int(problem.n_value_bins[k]) + 1, problem.n_outputs
    hist = Sums(np.zeros((b, d)), np.zeros((b, d)), np.zeros(b, dtype=np.int64))
    bins = problem.codes[rows, k]
    np.add.at(hist.G, bins, problem.g[rows])
    np.add.at(hist.H, bins, problem.h[rows])
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


def split_gains(hist: Sums, rules: Rules) -> Floats:
    """The table of gains from a feature's histogram."""
    values, missing = hist[:-1].cumulative(), hist[-1]
    parent = values[-1] + missing
    gains = np.full((len(values.cnt), 2), -np.inf)
    gains[:, 0] = split_gain(parent, values, parent - values, rules)
    if missing.cnt > 0:  # otherwise only the plain candidates: choose_missing_side decides afterwards
        gains[:, 1] = split_gain(parent, values + missing, parent - (values + missing), rules)
        # Missing values alone on the left are "missing against the rest", which is told from the right.
        gains[values.cnt == 0, 1] = -np.inf
    return gains


def exact_split_gains(problem: Problem, rows: Ints, k: int) -> Floats:
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
            gains[b, side] = split_gain(sums(problem, rows), *children, problem.rules)
    return gains


def goes_left(codes: Ints, b_missing: int, b: int, missing_left: bool) -> Bools:
    return np.where(codes == b_missing, missing_left, codes <= b)


def split_rows(problem: Problem, rows: Ints, split: Split) -> Bools:
    """Which of the rows go left."""
    k = split.feature
    return goes_left(problem.codes[rows, k], problem.n_value_bins[k], split.bin, split.missing_left)


def candidates(problem: Problem, rows: Ints) -> Iterator[Split]:
    """Allowed splits of a node in the order that settles ties: feature, bin, missing right before left."""
    for k in range(problem.codes.shape[1]):
        if problem.rules.feature_mask is None or problem.rules.feature_mask[k]:
            gains = split_gains(histogram(problem, rows, k), problem.rules)
            for b, side in np.argwhere(gains > -np.inf).tolist():
                yield Split(float(gains[b, side]), k, b, side == 1)


def find_split(problem: Problem, rows: Ints) -> Split | None:
    """The best candidate (the first of equals), if its mean gain over outputs (appendix B) is worth it."""
    best = max(candidates(problem, rows), key=lambda split: split.gain, default=None)
    if best is None or best.gain <= 0 or best.gain / problem.n_outputs <= problem.rules.min_split_gain:
        return None
    return choose_missing_side(problem, rows, best)


def choose_missing_side(problem: Problem, rows: Ints, split: Split) -> Split:
    """Where the node saw no missing value, later ones go to the heavier child; to the left if equal."""
    codes = problem.codes[rows, split.feature]
    if problem.n_value_bins[split.feature] in codes:
        return split
    left = codes <= split.bin
    heavier_left = problem.w[rows[left]].sum() >= problem.w[rows[~left]].sum()
    return split._replace(missing_left=bool(heavier_left))


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
    depth: Ints
    rows: tuple[Ints, ...]  # training rows of each node
    leaf: Ints  # (n,): node number of the leaf of every training row

    def apply(self, codes: Ints, n_value_bins: Ints) -> Ints:
        """The leaf of every row of codes."""
        leaves = np.zeros(len(codes), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):  # parents come before their children
            here, k = np.flatnonzero(leaves == node), self.feature[node]
            left = goes_left(codes[here, k], n_value_bins[k], self.bin[node], self.missing_left[node])
            leaves[here] = np.where(left, self.left[node], self.right[node])
        return leaves


def grow_tree(problem: Problem) -> Tree:
    rules = problem.rules
    rows_of: list[Ints] = []
    depth_of: list[int] = []
    split_of: dict[int, Split] = {}
    left_of: dict[int, int] = {}
    queue: list[tuple[float, int, Split]] = []  # the largest gain first, then the node created first

    def add_node(rows: Ints, depth: int) -> None:
        node = len(rows_of)
        rows_of.append(rows)
        depth_of.append(depth)
        if rules.max_depth is None or depth < rules.max_depth:
            split = find_split(problem, rows)
            if split is not None:
                heapq.heappush(queue, (-split.gain, node, split))

    add_node(np.arange(len(problem.codes)), 0)
    while queue and (rules.max_leaves is None or len(split_of) + 1 < rules.max_leaves):
        _, node, split = heapq.heappop(queue)
        split_of[node], left_of[node] = split, len(rows_of)
        rows = rows_of[node]
        left = split_rows(problem, rows, split)
        add_node(rows[left], depth_of[node] + 1)
        add_node(rows[~left], depth_of[node] + 1)

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
        value=np.array([leaf_value(sums(problem, rows), rules) for rows in rows_of]),
        depth=np.array(depth_of),
        rows=tuple(rows_of),
        leaf=leaf,
    )


# ---- Losses: y and raw predictions are (n, d); classes come as one-hot rows ---------------------------

PROBABILITY_FLOOR = 1e-9  # of a base score: a label without positives (or negatives) keeps a finite log odds


class Loss(NamedTuple):
    base_score: Callable[[Floats, Floats], Floats]  # (y, weight) -> (d,)
    derivatives: Callable[[Floats, Floats], tuple[Floats, Floats | None]]  # (y, raw) -> g, h of one row each
    link: Callable[[Floats], Floats]  # raw -> prediction


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


SQUARED_ERROR = Loss(_mean, lambda y, raw: (raw - y, None), lambda raw: raw)  # of (raw - y)^2 / 2
BINARY_CROSS_ENTROPY = Loss(_log_odds, _binary_derivatives, sigmoid)

SOFTMAX_CURVATURE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "p(1-p)": lambda p, y: p * (1 - p),  # the diagonal of the Hessian, the paper's
    "2p(1-p)": lambda p, y: 2 * p * (1 - p),  # gamma = 2 of appendix A: bounds the whole Hessian
    "abs(p-y)": lambda p, y: np.abs(p - y),
}


def cross_entropy(curvature: str = "p(1-p)") -> Loss:
    def derivatives(y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        p = softmax(raw)
        return p - y, SOFTMAX_CURVATURE[curvature](p, y)

    return Loss(_log_prior, derivatives, softmax)


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
        tree = grow_tree(Problem(codes, n_value_bins, has_missing, g, h, weight, rules))
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


# ---- Random problems on which another implementation must grow the same tree --------------------------


def is_clear_cut(problem: Problem, tree: Tree, margin: float) -> bool:
    """Whether rounding errors below margin (relative to the children's score) cannot change the tree.

    Candidates whose children have the same sums tie exactly, whoever computes them, and the tie-break settles
    them. Different ones with equal or nearly equal gains may go either way with the order of summation.
    """
    rules = problem.rules
    queued = []  # each split that was in the queue: gain, slack, children's sums, step it came, step it left
    for node, rows in enumerate(tree.rows):
        options = [] if tree.depth[node] == rules.max_depth else list(candidates(problem, rows))
        if not options:
            continue
        best = max(options, key=lambda split: split.gain)
        slack = margin * sum(float(score(child, rules)) for child in _children(problem, rows, best))
        excess = best.gain - problem.n_outputs * rules.min_split_gain
        if slack > 0 and abs(excess) <= slack:
            return False
        if excess > 0 and best.gain > 0:
            rivals = [split for split in options if split.gain >= best.gain - slack]
            what = {frozenset(map(_identity, _children(problem, rows, rival))) for rival in rivals}
            if len(what) > 1:
                return False
            came = (node + 1) // 2  # the t-th split creates the nodes 2t - 1 and 2t
            left = (tree.left[node] + 1) // 2 if tree.left[node] >= 0 else len(tree.rows)
            queued.append((best.gain, slack, what, came, left))
    return not any(
        abs(p[0] - q[0]) <= max(p[1], q[1]) and p[2] != q[2] and p[3] < q[4] and q[3] < p[4]
        for p, q in combinations(queued, 2)
    )


def _children(problem: Problem, rows: Ints, split: Split) -> tuple[Sums, Sums]:
    left = split_rows(problem, rows, split)
    return sums(problem, rows[left]), sums(problem, rows[~left])


def _identity(node: Sums) -> tuple[float, ...]:
    return (float(node.cnt), *node.G.tolist(), *node.H.tolist())


def random_problem(seed: int, margin: float = 1e-9) -> Problem:
    """A small problem with a clear-cut tree: 5-200 rows, 1-6 features, 1-12 outputs, up to 64 bins, ties.

    Gradients and Hessians are multiples of 2**-20 and weights of 2**-4, so that every sum is exact in float64
    and in fixed point, whatever the order of summation.
    """
    rng = np.random.default_rng(seed)
    while True:
        problem = _draw_problem(rng)
        if is_clear_cut(problem, grow_tree(problem), margin):
            return problem


def _on_grid(x: Floats) -> Floats:
    return np.rint(np.clip(x, -4.0, 4.0) * 2**20) / 2**20


def _draw_column(rng: np.random.Generator, n: int, most_bins: int) -> tuple[Ints, int, bool]:
    """Codes, number of value bins, whether there is a missing bin."""
    b = int(rng.integers(2, most_bins + 1))
    power = float(rng.choice([1.0, 4.0, np.inf], p=[0.6, 0.25, 0.15]))  # even, skewed, constant
    if np.isinf(power) and rng.random() < 0.5:
        b = 1
    codes = (b * rng.random(n) ** power).astype(np.int64)
    has_missing = bool(rng.random() < 0.5)
    if has_missing:  # sometimes in no row, sometimes in all
        codes[rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.1, 0.5, 0.35, 0.05])] = b
    return codes, b, has_missing


def _draw_rules(rng: np.random.Generator, m: int, d: int) -> Rules:
    max_depth = None if rng.random() < 0.2 else int(rng.integers(1, 9))
    return Rules(
        max_depth=max_depth,
        max_leaves=int(rng.integers(2, 32)) if max_depth is None or rng.random() < 0.4 else None,
        min_samples_leaf=int(rng.choice([1, 1, 1, 2, 5, 20])),
        min_split_gain=float(rng.choice([0.0, 0.0, 0.0, 2**-8, 2**-4, 0.25])),
        min_child_weight=float(rng.choice([0.0, 0.0, 0.0, 0.25, 3.0])),
        reg_lambda=float(rng.choice([0.0, 2**-6, 1.0, 1.0, 10.0])),
        reg_alpha=float(rng.choice([0.0, 0.0, 0.0, 0.5, 3.0])),
        gain_weight=rng.integers(1, 17, size=d) / 4 if rng.random() < 0.3 else None,
        feature_mask=rng.random(m) < 0.7 if rng.random() < 0.2 else None,
    )


def _draw_problem(rng: np.random.Generator) -> Problem:
    n = int(rng.integers(5, rng.choice([20, 100, 201])))
    m, d = int(rng.integers(1, 7)), int(rng.integers(1, rng.choice([4, 13])))
    most_bins = int(rng.choice([2, 4, 16, 64]))
    columns = [_draw_column(rng, n, most_bins) for _ in range(m)]
    for k in range(1, m):
        if rng.random() < 0.3:  # a duplicate, or a mirror image: every split of it ties
            column, b, has_missing = columns[int(rng.integers(k))]
            mirrored = np.where(column == b, b, b - 1 - column)
            columns[k] = (mirrored if rng.random() < 0.5 else column), b, has_missing
    codes = np.stack([column[0] for column in columns], axis=1)

    effect = rng.normal(size=d) * rng.integers(0, 3)
    gradient = _on_grid(rng.normal(size=(n, d)) + effect * (codes[:, [0]] > np.median(codes[:, 0])))
    if rng.random() < 0.3:
        gradient = np.rint(gradient)
    hessian = None
    if rng.random() < 0.6:
        hessian = _on_grid(rng.random((n, d)) * rng.choice([0.25, 2.0]))
        hessian[rng.random((n, d)) < rng.choice([0.0, 0.3])] = 0.0
        hessian[:, rng.random(d) < 0.1] = 0.0  # H + lambda = 0, if lambda is
    if rng.random() < 0.3:
        repeated = rng.integers(0, n, size=n)
        codes, gradient = codes[repeated], gradient[repeated]
        hessian = None if hessian is None else hessian[repeated]
    weights = (None, rng.integers(1, 5, size=n).astype(np.float64), rng.integers(1, 65, size=n) / 16)
    return Problem(
        codes=codes,
        n_value_bins=np.array([column[1] for column in columns]),
        has_missing=np.array([column[2] for column in columns]),
        gradient=gradient,
        hessian=hessian,
        weight=weights[int(rng.integers(3))],
        rules=_draw_rules(rng, m, d),
    )
