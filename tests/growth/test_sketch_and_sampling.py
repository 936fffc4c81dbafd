"""Sketches of the outputs, samples of rows and features, and a Hessian shared by all outputs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_classification
from test_growth_oracle import assert_same_tree, table_of

from gradients_of import gradients_of
from growing import settings, task
from oracle import grow_tree
from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.binning import bin_table
from polyleaf.growth import round_draws
from polyleaf.growth.contract import SplitGradients
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample, Sampler, inclusion_probabilities
from polyleaf.growth.split_gradients import SplitPlan
from polyleaf.losses.cross_entropy import CrossEntropy
from problems import is_clear_cut, random_problem

SKETCHES = ["random_projection", "random_sampling", "top_outputs"]
ARRAYS = ("feature", "threshold", "left", "missing_left", "gain", "cover", "count", "values")


def classes(n=1_500, d=8, n_features=12, seed=0):
    X, y = make_classification(
        n, n_features, n_informative=8, n_redundant=2, n_classes=d, n_clusters_per_class=1, random_state=seed
    )
    return X.astype(np.float32), y


def assert_same_forest(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one._forest, name), getattr(other._forest, name), err_msg=name)


# --- sketches ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("size", [8, 50])
@pytest.mark.parametrize("hessian", ["diagonal", "shared"])
def test_an_identity_sketch_is_no_sketch(sketch, size, hessian):
    X, y = classes()
    settings = {"n_estimators": 6, "hessian": hessian, "random_state": 0}
    full = PolyleafClassifier(sketch=None, **settings).fit(X, y)
    sketched = PolyleafClassifier(sketch=sketch, sketch_size=size, **settings).fit(X, y)
    assert_same_forest(full, sketched)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_leaf_values_come_from_all_outputs(sketch):
    """Eq. 15 for each leaf and output, whatever the splits were found on."""
    X, y = classes()
    model = PolyleafClassifier(
        n_estimators=1, learning_rate=0.5, sketch=sketch, sketch_size=2, base_score=0.0, random_state=3
    ).fit(X, y)
    p = np.full((len(y), 8), 1 / 8)
    gradient, hessian = p - np.eye(8)[y], p * (1 - p)
    tree = model._forest
    leaves = model.apply(X)[:, 0]
    assert len(np.unique(leaves)) > 4
    raw = model.decision_function(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        expected = -0.5 * gradient[rows].sum(axis=0) / (hessian[rows].sum(axis=0) + 1.0)
        np.testing.assert_allclose(raw[rows], np.tile(expected, (rows.sum(), 1)), rtol=1e-5, atol=1e-7)
    assert tree.n_outputs == 8


@pytest.mark.parametrize("shared", [False, True])
def test_projection_mixes_all_outputs_and_their_hessian(shared):
    rng = np.random.default_rng(0)
    d, k = 7, 3
    gain_weight = rng.uniform(0.5, 2.0, size=d)
    plan = SplitPlan("random_projection", k, shared, seed=5)
    hessian = rng.random((d, d)).astype(np.float32)
    # Rows of the identity as gradients show the matrix itself.
    made = plan.make(np.eye(d, dtype=np.float32), hessian, gain_weight, np.ones(d), 4)
    matrix = made.gradient.astype(np.float64)
    assert made.gradient.shape == (d, k)
    np.testing.assert_array_equal((matrix != 0).sum(axis=1), 1)  # each output in one group
    assert (matrix != 0).sum(axis=0).tolist() in ([3, 2, 2], [2, 3, 2], [2, 2, 3])
    np.testing.assert_allclose((matrix**2).sum(axis=0), 1.0, rtol=1e-6)
    # The score's expectation, over the signs, is that of all outputs: squares come back with their weights.
    np.testing.assert_allclose(matrix**2 @ made.gain_weight / k, gain_weight / d, rtol=1e-6)
    if shared:
        assert made.hessian is None
        np.testing.assert_allclose(made.curvature, hessian @ gain_weight / gain_weight.sum(), rtol=1e-5)
    else:
        assert made.curvature is None
        np.testing.assert_allclose(made.hessian, hessian @ matrix**2, rtol=1e-5)
    other = plan.make(np.eye(d, dtype=np.float32), hessian, gain_weight, np.ones(d), 5)
    assert not np.array_equal(made.gradient, other.gradient)  # each round anew


def test_selections_take_gradient_and_hessian_of_the_same_outputs():
    rng = np.random.default_rng(1)
    gradient = rng.normal(size=(50, 6)).astype(np.float32) * np.array([1, 9, 1, 4, 0, 2], np.float32)
    hessian = rng.random((50, 6)).astype(np.float32)
    weight, unit = np.ones(6), 2.0 ** np.arange(6)
    top = SplitPlan("top_outputs", 2, False, 0).make(gradient, hessian, weight, unit, 0)
    np.testing.assert_array_equal(top.gradient, gradient[:, [1, 3]])
    np.testing.assert_array_equal(top.hessian, hessian[:, [1, 3]])
    np.testing.assert_array_equal(top.unit, unit[[1, 3]])
    drawn = set()
    for number in range(40):
        made = SplitPlan("random_sampling", 3, False, 0).make(gradient, hessian, weight, unit, number)
        columns = [np.flatnonzero((column == gradient.T).all(axis=1))[0] for column in made.gradient.T]
        assert columns == sorted(set(columns))
        np.testing.assert_array_equal(made.hessian, hessian[:, columns])
        drawn |= set(columns)
    assert drawn == {0, 1, 2, 3, 5}  # the output without a gradient is not needed


@pytest.mark.parametrize("sketch", SKETCHES)
def test_a_sketch_learns_what_all_outputs_learn(sketch):
    X, y = classes(3_000, d=30, n_features=30, seed=1)
    settings = {"n_estimators": 30, "learning_rate": 0.3, "random_state": 0}
    test = slice(2_000, None)

    def loss(**more):
        model = PolyleafClassifier(**settings, **more).fit(X[:2_000], y[:2_000])
        return -np.log(model.predict_proba(X[test])[np.arange(1_000), y[test]]).mean()

    assert loss(sketch=sketch, sketch_size=8) < 1.1 * loss()


def test_regression_is_sketched_in_units_of_the_targets():
    """A target's unit does not matter to a projection either."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(800, 6))
    y = np.c_[X[:, 0], X[:, 1] ** 2, X[:, 0] * X[:, 2], X[:, 3]] + 0.01 * rng.normal(size=(800, 4))
    settings = {"n_estimators": 10, "sketch": "random_projection", "sketch_size": 2, "random_state": 0}
    plain = PolyleafRegressor(**settings).fit(X, y)
    scaled = PolyleafRegressor(**settings).fit(X, y * [1e6, 1, 1e-6, 1])
    np.testing.assert_allclose(scaled.predict(X) / [1e6, 1, 1e-6, 1], plain.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("rule", ["p(1-p)", "2p(1-p)", "abs(p-y)"])
@pytest.mark.parametrize("sketch", [None, "random_projection", "top_outputs"])
def test_a_hessian_by_its_rule_is_the_stored_one(rule, sketch):
    """Trees from the gradient and a rule are those from gradient and Hessian."""
    X, y = classes(700, d=12, seed=3)
    rng = np.random.default_rng(0)
    raw, weight = rng.normal(size=(700, 12)), rng.uniform(0.5, 2, size=700)
    loss = CrossEntropy(12, rule)
    plan = SplitPlan(sketch, 4, True, seed=1)
    matrix = bin_table(X, None, 64, 1)
    gradient, hessian = gradients_of(loss, y.astype(np.int32), raw)
    trees = []
    for one in (hessian, rule):
        splits = plan.make(gradient, one, np.ones(12), np.ones(12), 0)
        grower = DenseGrower(matrix, settings(min_samples_leaf=5))
        trees.append(grower.grow(task(gradient, one, weight, split_gradients=splits, learning_rate=0.1)))
    np.testing.assert_array_equal(trees[0].feature, trees[1].feature)
    np.testing.assert_array_equal(trees[0].bin, trees[1].bin)
    np.testing.assert_allclose(trees[0].values, trees[1].values, rtol=1e-5)


def test_a_hessian_by_its_rule_stays_above_zero():
    """A gradient that float32 rounds to -1 still has a Hessian: the class can be learnt."""
    raw = np.zeros((40, 3))
    raw[:, 0] = 60.0  # p of the other classes: 9e-27
    y = np.ones(40, dtype=np.int32)
    loss = CrossEntropy(3)
    gradient, _ = gradients_of(loss, y, raw)
    assert (gradient[:, 1] == -1).all()
    matrix = bin_table(np.arange(40.0)[:, None], None, 64, 1)
    splits = SplitPlan(None, 5, True, 0).make(gradient, "p(1-p)", np.ones(3), np.ones(3), 0)
    grower = DenseGrower(matrix, settings(reg_lambda=0.0, max_leaves=1))
    tree = grower.grow(task(gradient, "p(1-p)", split_gradients=splits))
    assert tree.values[0, 1] > 0


# --- one Hessian for all outputs ---------------------------------------------------------------------------


def test_shared_curvature_finds_the_oracles_splits():
    """The same as a diagonal Hessian whose entries are all equal."""
    compared = 0
    for seed in range(4_000, 4_120):
        problem = random_problem(seed)
        rng = np.random.default_rng(seed)
        curvature = rng.integers(1, 2**12, size=len(problem.codes)) / 2**12
        hessian = np.repeat(curvature[:, None], problem.n_outputs, axis=1)
        changed = replace(problem, hessian=hessian, rules=replace(problem.rules, sparse_leaves=None))
        if not is_clear_cut(changed, grow_tree(changed), 1e-6):
            continue
        rules = changed.rules
        d = changed.n_outputs
        gain_weight = np.ones(d) if rules.gain_weight is None else rules.gain_weight.astype(np.float64)
        gradient = changed.gradient.astype(np.float32)
        mask = None if rules.feature_mask is None else rules.feature_mask.astype(np.uint8)
        matrix = bin_table(table_of(changed), changed.weight, 255, 1)
        of_grower = settings(
            max_depth=rules.max_depth,
            max_leaves=rules.max_leaves,
            min_samples_leaf=rules.min_samples_leaf,
            min_split_gain=rules.min_split_gain,
            min_child_weight=rules.min_child_weight,
            reg_lambda=rules.reg_lambda,
            reg_alpha=rules.reg_alpha,
        )
        splits = SplitGradients(gradient, None, curvature.astype(np.float32), gain_weight, np.ones(d))
        wanted = task(
            gradient,
            hessian.astype(np.float32),
            changed.weight,
            split_gradients=splits,
            features=FeatureSample(mask),
        )
        tree = DenseGrower(matrix, of_grower).grow(wanted)
        assert_same_tree(changed, tree)
        compared += 1
    assert compared > 60


def test_a_negative_or_infinite_curvature_is_refused():
    X = np.arange(40.0)[:, None]
    matrix = bin_table(X, None, 255, 1)
    gradient = np.ones((40, 2), np.float32)
    for bad, error in ((-1.0, ValueError), (np.inf, OverflowError), (np.nan, OverflowError)):
        curvature = np.ones(40, np.float32)
        curvature[7] = bad
        splits = SplitGradients(gradient, None, curvature, np.ones(2), np.ones(2))
        with pytest.raises(error, match="Hessian"):
            DenseGrower(matrix, settings()).grow(task(gradient, gradient, split_gradients=splits))


# --- rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.97, 1.0])
def test_inclusion_probabilities_add_up(share):
    rng = np.random.default_rng(0)
    norms = rng.exponential(size=1_000) ** 3
    p = inclusion_probabilities(norms, share * 1_000)
    assert p.sum() == pytest.approx(share * 1_000, rel=1e-9)
    assert (p > 0).all()
    assert (p <= 1).all()
    free = p < 1
    if free.any():
        ratio = p[free] / norms[free]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        assert norms[~free].min(initial=np.inf) >= norms[free].max()


def test_no_gradient_at_all_draws_every_row():
    assert inclusion_probabilities(np.zeros(5), 2).tolist() == [1.0] * 5


def test_sampled_sums_are_right_on_average():
    rng = np.random.default_rng(3)
    gradient = (rng.exponential(size=(400, 3)) * rng.choice([-1, 1], size=(400, 3))).astype(np.float32)
    totals = []
    for number in range(600):
        sampler = Sampler(400, 5, seed=1, subsample=0.3, gradient_based=True, bytree=1, bylevel=1, bynode=1)
        sample = sampler.rows(number, gradient, np.ones(3), None)
        assert sample.rows is not None
        assert np.flatnonzero(sample.weight).tolist() == sample.rows.tolist()
        totals.append(sample.weight @ gradient)
    error = np.std(totals, axis=0) / np.sqrt(600)
    assert (np.abs(np.mean(totals, axis=0) - gradient.sum(axis=0)) < 4 * error).all()


def drawn(hashes, share, number=0, seed=1):
    sampler = Sampler(
        len(hashes), 5, seed, share, gradient_based=False, bytree=1, bylevel=1, bynode=1, row_hashes=hashes
    )
    return sampler.rows(number, None, np.ones(3), None).rows


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_uniform_samples_have_their_share_of_the_rows(share):
    hashes = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    counts = np.zeros(20_000)
    for number in range(50):
        counts[drawn(hashes, share, number)] += 1
    deviation = np.sqrt(share * (1 - share))
    assert abs(counts.mean() / 50 - share) < 4 * deviation / 1_000
    # No row is drawn more often than others.
    assert counts.var() == pytest.approx(50 * deviation**2, rel=0.05)
    assert drawn(hashes, share).tolist() != drawn(hashes, share, seed=2).tolist()


def test_equal_rows_are_drawn_together():
    few = np.random.default_rng(0).integers(0, 2**64, 40, dtype=np.uint64)
    which = np.random.default_rng(1).integers(0, 40, 1_000)
    rows = drawn(few[which], 0.5)
    assert set(which[rows]) & set(which[np.setdiff1d(np.arange(1_000), rows)]) == set()
    # Where all are equal they are drawn in every round: each looks at some rows.
    assert [drawn(np.zeros(3, dtype=np.uint64), 0.1, number).tolist() for number in range(5)] == [
        [0, 1, 2]
    ] * 5


@pytest.mark.parametrize("Estimator", [PolyleafRegressor, PolyleafClassifier])
def test_the_order_of_the_rows_does_not_matter_where_they_are_drawn_uniformly(Estimator):
    X, y = classes()
    order = np.random.default_rng(0).permutation(len(y))
    fitted = {"n_estimators": 6, "subsample": 0.4, "random_state": 0}
    model = Estimator(**fitted).fit(X, y)
    assert_same_forest(model, Estimator(**fitted).fit(X[order], y[order]))
    assert 0.3 * len(y) < model._forest.count[0] < 0.5 * len(y)
    other = Estimator(**fitted | {"random_state": 1}).fit(X, y)
    assert model._forest.count[0] != other._forest.count[0]


def test_a_weight_of_two_is_the_row_twice_where_rows_are_drawn_uniformly():
    X, y = classes(n=300)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    fitted = {"n_estimators": 6, "subsample": 0.5, "min_samples_leaf": 1, "random_state": 0}
    weighted = PolyleafRegressor(**fitted).fit(X, y, sample_weight=weight)
    twice = PolyleafRegressor(**fitted).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted._forest.values, twice._forest.values)


@pytest.mark.parametrize("least", [3, 30])
def test_samples_of_a_sparse_table_are_those_of_a_dense_one(least):
    """Also where its columns are left out, as leaves of so many rows cannot be split by them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 60)) * (rng.random((500, 60)) < np.linspace(0.005, 0.3, 60))
    y = X @ rng.normal(size=(60, 2)) + rng.normal(size=(500, 2))
    fitted = {"n_estimators": 5, "subsample": 0.6, "min_samples_leaf": least, "random_state": 0}
    dense = PolyleafRegressor(**fitted).fit(X, y)
    assert_same_forest(dense, PolyleafRegressor(**fitted).fit(scipy.sparse.csr_array(X), y))


def test_gradient_based_leaves_hold_all_rows():
    X, y = classes()
    model = PolyleafClassifier(
        n_estimators=1,
        learning_rate=1.0,
        base_score=0.0,
        subsample=0.2,
        sampling_method="gradient_based",
        random_state=0,
    ).fit(X, y)
    leaves = model.apply(X)[:, 0]
    counts = model._forest.count
    assert counts[0] == len(y)
    gradient = 1 / 8 - np.eye(8)[y]
    raw = model.decision_function(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        assert counts[leaf] == rows.sum()
        expected = -gradient[rows].sum(axis=0) / (7 / 64 * rows.sum() + 1.0)
        np.testing.assert_allclose(raw[rows][0], expected, rtol=1e-5, atol=1e-7)


def test_gradient_based_sampling_with_weights_and_missing_values():
    X, y = classes()
    rng = np.random.default_rng(0)
    X = X.copy()
    X[rng.random(X.shape) < 0.3] = np.nan
    weight = rng.uniform(0.1, 3.0, size=len(y))
    settings = {"n_estimators": 20, "min_samples_leaf": 5, "random_state": 0}
    full = PolyleafClassifier(**settings).fit(X, y, sample_weight=weight)
    model = PolyleafClassifier(**settings, subsample=0.4, sampling_method="gradient_based")
    model.fit(X, y, sample_weight=weight)
    assert model.score(X, y) > full.score(X, y) - 0.1
    assert model._forest.cover[0] == pytest.approx(weight.sum())


def test_sampling_everything_is_no_sampling():
    X, y = classes()
    full = PolyleafClassifier(n_estimators=5, random_state=0).fit(X, y)
    same = PolyleafClassifier(n_estimators=5, random_state=0, sampling_method="gradient_based").fit(X, y)
    assert_same_forest(full, same)


# --- features ----------------------------------------------------------------------------------------------


def levels_of(forest, tree):
    """Return (depth, feature) of the inner nodes of a tree."""
    begin, end = forest.node_begin[tree], forest.node_begin[tree + 1]
    found, todo = [], [(0, 0)]
    while todo:
        node, depth = todo.pop()
        left = forest.left[begin:end][node]
        if left >= 0:
            found.append((depth, int(forest.feature[begin:end][node])))
            todo += [(left, depth + 1), (left + 1, depth + 1)]
    return found


def test_a_level_uses_the_features_drawn_for_it():
    X, y = classes(n_features=12)
    model = PolyleafClassifier(n_estimators=12, colsample_bylevel=0.1, random_state=0).fit(X, y)
    used = [levels_of(model._forest, tree) for tree in range(12)]
    for nodes in used:
        for depth in {depth for depth, _ in nodes}:
            assert len({feature for at, feature in nodes if at == depth}) == 1
    assert len({feature for nodes in used for _, feature in nodes}) > 6


def test_a_node_uses_the_features_drawn_for_it():
    X, y = classes(n_features=12)
    model = PolyleafClassifier(n_estimators=4, colsample_bynode=0.1, random_state=0).fit(X, y)
    nodes = [node for tree in range(4) for node in levels_of(model._forest, tree)]
    # One feature of 12 for each node: nodes of one level differ, and no feature dominates.
    assert len({feature for depth, feature in nodes if depth == 2}) > 3
    counts = np.bincount([feature for _, feature in nodes], minlength=12)
    assert (counts > 0).sum() > 8


@pytest.mark.parametrize("n_bags", [1, 3])
def test_folds_and_members_and_the_refit_draw_a_round_once(monkeypatch, n_bags):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 12)), rng.normal(size=(90, 4))
    drawn, generator = [], round_draws.generator_of_round

    def counted(seed, number, purpose):
        drawn.append((seed, number, purpose))
        return generator(seed, number, purpose)

    monkeypatch.setattr(round_draws, "generator_of_round", counted)
    PolyleafRegressor(n_bags=n_bags, random_state=4321 + n_bags).fit(X, y)
    assert len(drawn) == len(set(drawn)) >= 2 * 50  # features and groups of outputs, 50 rounds of patience


@pytest.mark.parametrize("n_features", [8, 5000])
def test_what_is_remembered_is_what_is_drawn(n_features):
    first = [round_draws.drawn_features(3, number, n_features, 0.5) for number in (7, 7, 8)]
    assert first[0] is first[1]
    for mask, number in zip(first, (7, 7, 8), strict=True):
        chosen = np.random.default_rng([3, number, 1]).choice(n_features, n_features // 2, replace=False)
        np.testing.assert_array_equal(np.flatnonzero(mask), np.sort(chosen))


def test_shares_multiply():
    X, y = classes(n_features=12)
    model = PolyleafClassifier(
        n_estimators=5, colsample_bytree=0.5, colsample_bylevel=0.5, colsample_bynode=0.5, random_state=1
    ).fit(X, y)
    for tree in range(5):
        nodes = levels_of(model._forest, tree)
        assert len({feature for _, feature in nodes}) <= 6
        for depth in {depth for depth, _ in nodes}:
            assert len({feature for at, feature in nodes if at == depth}) <= 3


@pytest.mark.parametrize("share", [0.05, 0.25, 0.6])
def test_columns_of_a_tree_are_all_it_sees(share):
    """Trees on a mask equal trees on those columns alone, dense and sparse ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 100)).astype(np.float32)
    X[:, 50:][rng.random((600, 50)) < 0.8] = 0.0
    gradient = (X[:, :3] + X[:, 60:63] + 0.1 * rng.normal(size=(600, 3))).astype(np.float32)
    mask = np.zeros(100, np.uint8)
    chosen = np.sort(rng.choice(100, int(share * 100), replace=False))
    mask[chosen] = 1
    grow = lambda table, features: DenseGrower(  # noqa: E731
        bin_table(table, None, 64, 1), settings(min_samples_leaf=5)
    ).grow(task(gradient, features=features))
    masked = grow(X, FeatureSample(mask))
    alone = grow(np.ascontiguousarray(X[:, chosen]), FeatureSample())
    inner = alone.feature >= 0
    np.testing.assert_array_equal(masked.feature[inner], chosen[alone.feature[inner]])
    for name in ("threshold", "left", "gain", "values"):
        np.testing.assert_array_equal(getattr(masked, name), getattr(alone, name), err_msg=name)


# --- the same bits -----------------------------------------------------------------------------------------

VARIANTS = {
    "projection": {"sketch": "random_projection", "sketch_size": 3},
    "sampling": {"sketch": "random_sampling", "sketch_size": 3, "hessian": "shared"},
    "shared": {"hessian": "shared"},
    "rows by gradient": {"subsample": 0.3, "sampling_method": "gradient_based"},
    "features": {"colsample_bytree": 0.7, "colsample_bylevel": 0.7, "colsample_bynode": 0.7},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_threads_and_instruction_sets_change_no_bit(variant):
    X, y = classes(20_000, n_features=30)
    settings = {"n_estimators": 4, "random_state": 0, "max_leaves": 25, **VARIANTS[variant]}
    reference = PolyleafClassifier(n_jobs=1, **settings).fit(X, y)
    for n_jobs in (2, 4):
        assert_same_forest(reference, PolyleafClassifier(n_jobs=n_jobs, **settings).fit(X, y))
    before = _core.kernels()
    try:
        for name in ("baseline", "avx2", "avx512"):
            if _core.select_kernels(name):
                assert_same_forest(reference, PolyleafClassifier(n_jobs=2, **settings).fit(X, y))
    finally:
        _core.select_kernels(before)
    other = PolyleafClassifier(n_jobs=1, **settings | {"random_state": 1}).fit(X, y)
    if variant != "shared":
        assert not np.array_equal(reference._forest.values, other._forest.values)


# --- automatic ---------------------------------------------------------------------------------------------


def test_auto_is_a_projection_and_a_shared_hessian_for_many_classes():
    X, y = classes(4_000, d=70, n_features=30)
    settings = {"n_estimators": 2, "random_state": 0}
    automatic = PolyleafClassifier(**settings).fit(X, y)
    named = PolyleafClassifier(sketch="random_projection", hessian="shared", **settings).fit(X, y)
    assert_same_forest(automatic, named)
    full = PolyleafClassifier(sketch=None, **settings).fit(X, y)
    assert_same_forest(full, PolyleafClassifier(sketch=None, hessian="shared", **settings).fit(X, y))
    assert not np.array_equal(automatic._forest.feature, full._forest.feature)
    # Where all outputs are needed, auto is no obstacle.
    PolyleafClassifier(sparse_leaves=3, n_estimators=1).fit(X, y)
    PolyleafClassifier(multi_strategy="one_output_per_tree", n_estimators=1).fit(X, y)


def test_auto_leaves_the_hessian_of_a_callable_alone():
    """It may be negative: fine on the diagonal, refused by name where one number stands for all outputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = (X[:, :1] + rng.normal(size=(300, 40)) > 0).astype(int)

    def objective(y, raw):
        return raw - y, np.full(raw.shape, -0.1)

    PolyleafClassifier(n_estimators=2, objective=objective, reg_lambda=50.0).fit(X, Y)
    PolyleafClassifier(n_estimators=2, objective=objective, reg_lambda=50.0, sketch="random_projection").fit(
        X, Y
    )
    for sketch in (None, "random_projection"):
        settings = {"objective": objective, "reg_lambda": 50.0, "hessian": "shared", "sketch": sketch}
        with pytest.raises(ValueError, match="mean Hessian of a row is negative"):
            PolyleafClassifier(n_estimators=2, **settings).fit(X, Y)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_targets_without_variance_can_be_sketched(sketch):
    X = np.arange(60.0)[:, None]
    model = PolyleafRegressor(n_estimators=2, sketch=sketch, sketch_size=2).fit(X, np.full((60, 4), 3.0))
    np.testing.assert_array_equal(model.predict(X), 3.0)


def test_targets_of_very_different_size_find_the_large_ones_splits():
    """Scores that float32 could not hold are not estimated."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 5))
    y = np.c_[1e18 * X[:, 0], 1e-18 * X[:, 1]]
    both = PolyleafRegressor(n_estimators=3, scale_targets=False).fit(X, y)
    alone = PolyleafRegressor(n_estimators=3, scale_targets=False).fit(X, y[:, 0])
    np.testing.assert_array_equal(both._forest.feature, alone._forest.feature)


def test_auto_is_the_papers_objective_for_few_classes():
    X, y = classes()
    y = y % 4
    automatic = PolyleafClassifier(n_estimators=3).fit(X, y)
    assert_same_forest(
        automatic, PolyleafClassifier(n_estimators=3, sketch=None, hessian="diagonal").fit(X, y)
    )


# --- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sketch": "svd"}, "sketch"),
        ({"sketch": "top_outputs", "sketch_size": 0}, "sketch_size"),
        ({"sketch": None, "sketch_size": 3}, "sketch_size=3 needs a sketch"),
        ({"sketch": "top_outputs", "sparse_leaves": 2}, "sparse_leaves=2"),
        ({"sketch": "top_outputs", "multi_strategy": "one_output_per_tree"}, "one_output_per_tree"),
        ({"sketch": "top_outputs", "hessian": "exact"}, "hessian='exact'"),
        ({"sampling_method": "goss"}, "sampling_method"),
        ({"colsample_bylevel": 0.0}, "colsample_bylevel"),
        ({"colsample_bynode": 1.5}, "colsample_bynode"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    X, y = classes(200)
    with pytest.raises(ValueError, match=message):
        PolyleafClassifier(**settings).fit(X, y)


def test_runs_that_advance_together_draw_as_each_would_alone():
    """What is drawn is remembered for other runs: it hangs on the seed, the round and the sizes alone."""
    few = {"n_estimators": 40, "colsample_bytree": 0.5, "colsample_bynode": 0.7, "n_jobs": 1}
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 6)), rng.normal(size=(80, 4))

    def trained(seed, n_features):
        model = PolyleafRegressor(**few, sketch="random_projection", sketch_size=2, random_state=seed)
        return model.fit(X[:, :n_features], Y).predict(X[:, :n_features]).tobytes()

    wanted = {(seed, n): trained(seed, n) for seed in (0, 1) for n in (4, 6)}
    assert len(set(wanted.values())) == 4
    for (seed, n), expected in reversed(wanted.items()):
        assert trained(seed, n) == expected
