"""Random problems on which another implementation must grow the oracle's tree, split by split.

A problem is handed out only if its tree is clear-cut: no choice on the way hangs on rounding.
"""

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from oracle import (
    SOFTMAX_CURVATURE,
    Floats,
    Ints,
    Problem,
    Rules,
    Split,
    Sums,
    Tree,
    candidates,
    category_projections,
    grow_tree,
    histogram,
    score,
    softmax_hessian,
    split_rows,
    sums,
    terms,
)

Kind = Literal["dense", "sparse", "exact", "exact_leaf"]


def random_problem(
    seed: int,
    margin: float = 1e-9,
    kind: Kind | Literal["constrained", "packed", "combined", "many_bins", "many_classes"] = "dense",
) -> Problem:
    """A small problem with a clear-cut tree: 5-200 rows, 1-6 features, 1-12 outputs, up to 64 bins, ties.

    Gradients and Hessians are multiples of 2**-20 and weights of 2**-4, so that every sum is exact in float64
    and in fixed point, whatever the order of summation.

    "sparse" adds sparse leaves of both modes, k from 1 to the number of outputs. "exact" and "exact_leaf"
    take the gradient p - y and the full Hessian diag(p) - p p^T of a softmax over 2-6 outputs whose
    probabilities p are multiples of 2**-10: nothing is rounded, and the Hessian is a true one. "constrained"
    adds monotone constraints, interaction constraints or both. "packed" has so many channels that the
    core packs three of them into a number where asked to (quantize/payload.hpp), and numbers that are exact
    on its coarser grid. "combined" has neighbouring features of so few bins, and so many rows, that the core
    visits the combinations of their bins (table/feature_combinations.hpp); a few of these can be packed, too.
    "many_bins" has 32 to 200 bins a feature, and features that are nearly as good as others. "many_classes"
    has the gradients of a softmax of 16 to 60 classes, few of which are in a small node.
    """
    rng = np.random.default_rng(seed)
    while True:
        draw = {
            "packed": _draw_packed,
            "combined": _draw_combined,
            "many_bins": _draw_many_bins,
            "many_classes": _draw_many_classes,
        }
        problem = draw.get(kind, _draw_dense)(rng)
        if kind in draw:
            if rng.random() < 0.2:
                problem = _with_sparse_leaves(rng, problem)
        elif kind == "sparse":
            problem = _with_sparse_leaves(rng, problem)
        elif kind == "constrained":
            problem = _with_constraints(rng, problem)
        elif kind != "dense":
            problem = _with_full_hessian(rng, problem, kind)
        if is_clear_cut(problem, grow_tree(problem), margin):
            return problem


# ---- Clear-cut trees ----------------------------------------------------------------------------------


def is_clear_cut(problem: Problem, tree: Tree, margin: float) -> bool:
    """Whether rounding errors below margin (relative to the children's score) cannot change the tree.

    Candidates whose children have the same sums tie exactly, whoever computes them, and the tie-break settles
    them. Different ones with equal or nearly equal gains may go either way with the order of summation.
    """
    return (
        _has_clear_splits(problem, tree, margin)
        and _has_clear_outputs(problem, tree, margin)
        and _has_clear_orders(problem, tree, margin)
    )


def _has_clear_splits(problem: Problem, tree: Tree, margin: float) -> bool:
    rules = problem.rules
    queued = []  # each split that was in the queue: gain, slack, children's sums, step it came, step it left
    for node, rows in enumerate(tree.rows):
        at_the_bottom = tree.depth[node] == rules.max_depth
        options = (
            [] if at_the_bottom else list(candidates(problem, rows, tree.outputs[node], tree.limits[node]))
        )
        if not options:
            continue
        best = max(options, key=lambda split: split.gain)
        slack = margin * sum(float(score(child, rules)) for child in _children(problem, rows, best))
        excess = best.gain - problem.n_involved * rules.min_split_gain
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
    return (float(node.cnt), *node.G.tolist(), *node.H.tolist(), *node.full.ravel().tolist())


def _has_clear_outputs(problem: Problem, tree: Tree, margin: float) -> bool:
    """Whether the same holds for the k outputs of every node."""
    rules = problem.rules
    if rules.sparse_leaves is None:
        return True
    totals = [sums(problem, rows) for rows in tree.rows]
    inner = np.flatnonzero(tree.feature >= 0)
    if rules.sparse_mode == "unrestricted":
        chosen_by = [[node] for node in totals]
    else:
        chosen_by = [[totals[0]], *([totals[tree.left[node]], totals[tree.right[node]]] for node in inner)]
    return all(_is_clear_choice(nodes, rules, rules.sparse_leaves, margin) for nodes in chosen_by)


def _has_clear_orders(problem: Problem, tree: Tree, margin: float) -> bool:
    """Whether the same holds for the order of categories in every node. Equal sums tie exactly."""
    for k in range(problem.codes.shape[1]):
        if not problem.is_categorical(k):
            continue
        for rows in tree.rows:
            hist = histogram(problem, rows, k)
            present = hist[np.flatnonzero(hist.cnt[:-1] > 0)]
            if len(present.cnt) < 2:
                continue
            projection = category_projections(present, problem)
            order = np.argsort(projection, kind="stable")
            slack = 1e3 * margin * np.abs(projection).max()
            for a, b in pairwise(order):
                close = projection[b] - projection[a] <= slack
                if close and _identity(present[int(a)])[1:] != _identity(present[int(b)])[1:]:
                    return False
    return True


def _is_clear_choice(nodes: list[Sums], rules: Rules, k: int, margin: float) -> bool:
    """Whether the k outputs with the largest terms, summed over some nodes, are ahead by a margin.

    If not, those that compete must have the same sums in every node, or terms of 0.
    """
    v = np.sum([terms(node, rules) for node in nodes], axis=0)
    if k == len(v):
        return True
    *_, last_in, first_out = -np.sort(-v)[: k + 1]
    slack = margin * v.sum()
    if last_in - first_out > slack:
        return True
    weight = np.ones(len(v)) if rules.gain_weight is None else rules.gain_weight
    what = {
        () if v[j] == 0 else (weight[j], *((abs(node.G[j]), node.H[j]) for node in nodes))
        for j in np.flatnonzero(np.abs(v - last_in) <= slack)
    }
    return len(what) == 1


# ---- Drawing ------------------------------------------------------------------------------------------


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


def _draw_dense(rng: np.random.Generator) -> Problem:
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


def _draw_packed(rng: np.random.Generator) -> Problem:
    """Some 8,192 rows, or fewer; 17 to 24 channels, once or twice; multiples of 1/8."""
    n = int(rng.integers(8092, 8292) if rng.random() < 0.5 else rng.integers(40, 3000))
    m = int(rng.integers(1, 5))
    diagonal = rng.random() < 0.7
    d = int(rng.integers(8, 12) if diagonal else rng.integers(16, 24))
    if rng.random() < 0.2:
        d = 2 * d
    columns = [_draw_column(rng, n, int(rng.choice([4, 16, 64]))) for _ in range(m)]
    codes = np.stack([column[0] for column in columns], axis=1)
    effect = rng.normal(size=d) * (codes[:, [0]] > np.median(codes[:, 0]))
    gradient = np.clip(np.rint(8 * (rng.normal(size=(n, d)) + effect)) / 8, -4, 4)
    hessian = rng.integers(0, 17, size=(n, d)) / 8 if diagonal else None
    return Problem(
        codes=codes,
        n_value_bins=np.array([column[1] for column in columns]),
        has_missing=np.array([column[2] for column in columns]),
        gradient=gradient,
        hessian=hessian,
        weight=None,
        rules=_draw_rules(rng, m, d),
    )


def _draw_combined(rng: np.random.Generator) -> Problem:
    """Two to nine features of up to eight bins; each is like its neighbour in most rows, or in few."""
    problem = _draw_packed(rng)
    n = len(problem.codes)
    if rng.random() < 0.8:
        n, d = int(rng.integers(1500, 4000)), int(rng.integers(1, 30))
        gradient = _on_grid(rng.normal(size=(n, d)))
        hessian = _on_grid(rng.random((n, d))) if rng.random() < 0.6 else None
        weight = rng.integers(1, 5, size=n).astype(np.float64) if rng.random() < 0.3 else None
        problem = replace(problem, gradient=gradient, hessian=hessian, weight=weight)
    m = int(rng.integers(2, 10))
    columns = [_draw_column(rng, n, int(rng.choice([2, 4, 8]))) for _ in range(m)]
    of_most = float(rng.choice([0.0, 0.7, 0.9]))  # rows whose cells are all in the first bin
    alike = rng.random(n) < of_most
    for codes, n_bins, has_missing in columns:
        codes[alike & (rng.random(n) < 0.95)] = 0
        if rng.random() < 0.2:
            codes[:] = np.minimum(columns[0][0], n_bins if has_missing else n_bins - 1)
    codes = np.stack([column[0] for column in columns], axis=1)
    effect = np.rint(rng.normal(size=problem.n_outputs)) * (codes[:, [m - 1]] > 0)
    return replace(
        problem,
        codes=codes,
        n_value_bins=np.array([column[1] for column in columns]),
        has_missing=np.array([column[2] for column in columns]),
        gradient=np.clip(problem.gradient + effect, -4, 4),
        rules=_draw_rules(rng, m, problem.n_outputs),
    )


def _draw_many_bins(rng: np.random.Generator) -> Problem:
    """What one feature says of the gradient, others say with a few more mistakes."""
    n, m, d = int(rng.integers(500, 2000)), int(rng.integers(2, 6)), int(rng.integers(1, 33))
    n_bins = rng.integers(32, 201, size=m)
    position = rng.random(n)
    wrong = rng.random((m, n)) < rng.choice([0.0, 0.01, 0.1, 1.0], size=(m, 1))
    codes = (np.where(wrong, rng.random((m, n)), position) * n_bins[:, np.newaxis]).astype(np.int64).T
    has_missing = rng.random(m) < 0.4
    codes = np.where((rng.random((n, m)) < 0.1) & has_missing, n_bins, codes)
    effect = np.rint(4 * rng.normal(size=(3, d))) / 4  # a smooth one, a step and a bump
    shape = np.stack([np.rint(16 * position) / 16, position > rng.random(), abs(position - 0.6) < 0.05])
    gradient = _on_grid(rng.normal(size=(n, d)) + shape.T @ (effect * rng.integers(0, 2, size=(3, 1))))
    hessian = _on_grid(rng.random((n, d)) * rng.choice([0.25, 2.0])) if rng.random() < 0.6 else None
    return Problem(
        codes=codes,
        n_value_bins=n_bins,
        has_missing=has_missing,
        gradient=gradient,
        hessian=hessian,
        weight=rng.integers(1, 5, size=n).astype(np.float64) if rng.random() < 0.3 else None,
        rules=_draw_rules(rng, m, d),
    )


def _draw_many_classes(rng: np.random.Generator) -> Problem:
    """Features that say something of the class, or nothing; a few rows may be surer than others."""
    n, m, d = int(rng.integers(40, 900)), int(rng.integers(2, 6)), int(rng.integers(16, 61))
    label = (d * rng.random(n) ** float(rng.choice([1.0, 3.0]))).astype(np.int64)
    n_bins = rng.choice([4, 16, 64], size=m)
    noise = rng.choice([0.05, 0.3, 10.0], size=(m, 1)) * rng.normal(size=(m, n))
    position = np.argsort(rng.random((m, d)), axis=1)[:, label] / d + noise
    codes = np.clip(position * n_bins[:, np.newaxis], 0, n_bins[:, np.newaxis] - 1).astype(np.int64).T
    has_missing = rng.random(m) < 0.4
    codes = np.where((rng.random((n, m)) < 0.1) & has_missing, n_bins, codes)
    raw = rng.choice([0.0, 0.3, 2.0]) * rng.normal(size=(n, d))
    raw[np.arange(n), label] += rng.choice([0.0, 2.0, 5.0], size=n, p=[0.5, 0.3, 0.2])
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    return Problem(
        codes=codes,
        n_value_bins=n_bins,
        has_missing=has_missing,
        gradient=_on_grid(p - (np.arange(d) == label[:, np.newaxis])),
        hessian=_on_grid(float(rng.choice([1.0, 2.0])) * p * (1 - p)),
        weight=rng.integers(1, 5, size=n).astype(np.float64) if rng.random() < 0.3 else None,
        rules=_draw_rules(rng, m, d),
    )


def has_numbers_of_packed_sums(problem: Problem) -> bool:
    """Whether rounding to the grid of packed sums changes none of the problem's numbers."""
    numbers = [problem.gradient] if problem.hessian is None else [problem.gradient, problem.hessian]
    return all((np.abs(one) * 8).sum(axis=0).max() < 2**19 and (one * 8 % 1 == 0).all() for one in numbers)


def _with_sparse_leaves(rng: np.random.Generator, problem: Problem) -> Problem:
    d = problem.n_outputs
    gradient = problem.gradient
    if rng.random() < 0.4:  # as GBDT-sparse has it
        gradient = np.where(rng.random(gradient.shape) < rng.choice([0.5, 0.9]), 0.0, gradient)
    rules = replace(
        problem.rules,
        sparse_leaves=d if rng.random() < 0.1 else int(rng.integers(1, d + 1)),
        sparse_mode="restricted" if rng.random() < 0.5 else "unrestricted",
    )
    return replace(problem, gradient=gradient, rules=rules)


def _with_constraints(rng: np.random.Generator, problem: Problem) -> Problem:
    m, d = problem.codes.shape[1], problem.n_outputs
    which = rng.choice(["monotone", "monotone", "both", "groups"])
    monotone = groups = None
    if which != "groups":
        monotone = rng.choice([-1, 0, 1], p=[0.35, 0.3, 0.35], size=(m, d))
        if rng.random() < 0.3:
            monotone[:] = monotone[:, :1]  # one sign for all outputs
    if which != "monotone":
        sizes = rng.integers(1, m + 1, size=int(rng.integers(0, 4)))
        groups = tuple(frozenset(rng.choice(m, size, replace=False).tolist()) for size in sizes)
    return replace(problem, rules=replace(problem.rules, monotone=monotone, groups=groups))


def _with_full_hessian(
    rng: np.random.Generator, problem: Problem, kind: Literal["exact", "exact_leaf"]
) -> Problem:
    n, d = len(problem.codes), int(rng.integers(2, 7))
    p = rng.multinomial(2**10, rng.dirichlet(np.full(d, rng.choice([0.5, 5.0])), size=n)) / 2**10
    if rng.random() < 0.3:
        p[:] = p[0]  # the first round
    side = problem.codes[:, 0] > np.median(problem.codes[:, 0])
    odds = rng.dirichlet(np.full(d, 0.5), size=2)[side.astype(np.int64)]
    y = np.eye(d)[[rng.choice(d, p=row) for row in odds]]
    curvature = SOFTMAX_CURVATURE[str(rng.choice(list(SOFTMAX_CURVATURE)))]
    gain_weight = rng.integers(1, 17, size=d) / 4 if kind == "exact_leaf" and rng.random() < 0.3 else None
    rules = replace(
        problem.rules,
        hessian=kind,
        min_split_gain=problem.rules.min_split_gain / 8,  # these gradients and Hessians are smaller
        min_child_weight=problem.rules.min_child_weight / 8,
        reg_lambda=float(rng.choice([2**-6, 0.25, 1.0, 10.0])),
        reg_alpha=0.0,
        gain_weight=gain_weight,
    )
    return replace(
        problem, gradient=p - y, hessian=curvature(p, y), full_hessian=softmax_hessian(p), rules=rules
    )
