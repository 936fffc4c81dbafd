"""What holds for any data: symmetries of the problem, and bits that do not depend on the machine's mood."""

import functools
import gc

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error

import oracle
from gradients_of import gradients_of
from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.estimators.problem import read_problem, training_rows
from polyleaf.losses import make_loss
from polyleaf.losses.formula import NumpyFormula
from polyleaf.losses.squared_error import SquaredError
from polyleaf.training.loop import train

KINDS = ("one target", "regression", "multiclass", "binary", "multilabel")
STRATEGIES = ("multi_output_tree", "one_output_per_tree")
STRUCTURE = ("feature", "threshold", "missing_left", "left", "count", "node_begin")


def table(n, rng):
    """Columns of different nature: continuous, few values, mostly 0, mostly missing, and a duplicate."""
    X = rng.normal(size=(n, 6))
    X[:, 1] = rng.integers(0, 5, size=n)
    X[:, 2] *= rng.random(n) < 0.2
    X[rng.random(n) < 0.6, 3] = np.nan
    X[:, 5] = X[:, 0]
    return X


def problem(kind, n=300, seed=0):
    """A table and targets of this kind that depend on it."""
    rng = np.random.default_rng([seed, n])
    X = table(n, rng)
    score = np.column_stack(
        [
            np.sin(2 * X[:, 0]) + 0.3 * X[:, 1],
            X[:, 0] * X[:, 4] + np.where(np.isnan(X[:, 3]), 1.0, 0.0),
            X[:, 2] - X[:, 4] + 0.2 * X[:, 1],
        ]
    ) + 0.3 * rng.normal(size=(n, 3))
    y = {
        "one target": score[:, 0],
        "regression": score * [1.0, 10.0, 0.01],
        "multiclass": score.argmax(axis=1),
        "binary": (score[:, 1] > 0.3).astype(int),
        "multilabel": (score > 0.3).astype(int),
    }[kind]
    return X, y


def estimator(kind, **params):
    make = PolyleafRegressor if kind in ("one target", "regression") else PolyleafClassifier
    plain = {"learning_rate": 0.1, "colsample_bytree": 1.0, "sketch": None, "n_jobs": 1}
    return make(**plain | {"n_estimators": 10, "min_samples_leaf": 3, "max_depth": 5} | params)


def raw_scores(model, X):
    return model._forest.predict_raw(X)


def assert_same_bits(one, other, X):
    """Every array of the two models, and what they predict."""
    theirs = other._forest.to_arrays()
    for name, array in one._forest.to_arrays().items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    np.testing.assert_array_equal(raw_scores(one, X), raw_scores(other, X))


def assert_same_structure(one, other):
    for name in STRUCTURE:
        np.testing.assert_array_equal(getattr(one._forest, name), getattr(other._forest, name), err_msg=name)


# --- outputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["regression", "multiclass", "multilabel"])
def test_permuting_outputs_permutes_predictions(kind, weighted, strategy):
    """No output is special.

    Targets and labels do not meet each other's rounding (1e-12); a softmax sums over the classes in another
    order, which may move a float32 gradient by its last bit (1e-5).
    """
    for seed in range(3):
        X, y = problem(kind, seed=seed)
        weight = np.random.default_rng(seed).random(len(X)) + 0.5 if weighted else None
        order = np.array([2, 0, 1])
        permuted = np.argsort(order)[y] if kind == "multiclass" else y[:, order]
        model = functools.partial(estimator, kind, multi_strategy=strategy)
        expected = raw_scores(model().fit(X, y, weight), X)[:, order]
        tolerance = 1e-5 if kind == "multiclass" else 1e-12
        actual = raw_scores(model().fit(X, permuted, weight), X)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("copies", [2, 3, 8, 16, 31, 33, 271, 541, 1055])
@pytest.mark.parametrize("kind", ["one target", "weighted target", "binary"])
def test_duplicating_an_output_changes_no_split(kind, copies):
    """An average over equal outputs is each of them, however many there are and however they are laid out."""
    X, y = problem(kind.replace("weighted", "one"), n=120)
    weight = np.random.default_rng(0).random(120) + 0.5 if kind == "weighted target" else None
    kind = "binary" if kind == "binary" else "regression"
    settings = {"n_estimators": 4, "max_leaves": 6, "min_split_gain": 1e-3}
    single = estimator(kind, **settings).fit(X, y, weight)
    repeated = estimator(kind, **settings).fit(X, np.repeat(y[:, np.newaxis], copies, axis=1), weight)
    assert_same_structure(single, repeated)
    np.testing.assert_allclose(repeated._forest.gain, copies * single._forest.gain, rtol=1e-6)
    expected = np.repeat(raw_scores(single, X), copies, axis=1)
    # A Hessian that is shared in splits is not stored: leaf values take it from the gradient in float32.
    tolerance = 1e-6 if kind == "binary" and copies > 32 else 1e-12
    np.testing.assert_allclose(raw_scores(repeated, X), expected, rtol=tolerance)


def test_duplicating_all_outputs_changes_no_split():
    X, y = problem("regression")
    single, twice = (estimator("regression").fit(X, targets) for targets in (y, np.hstack([y, y])))
    assert_same_structure(single, twice)
    np.testing.assert_allclose(twice.predict(X), np.tile(single.predict(X), 2), rtol=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_output_is_the_scalar_case(strategy):
    """A single target as a vector, as a column, or as one tree per output is the same model, to the bit."""
    X, y = problem("one target")
    vector = estimator("one target").fit(X, y)
    column = estimator("one target", multi_strategy=strategy).fit(X, y[:, np.newaxis])
    assert_same_bits(vector, column, X)


def test_two_classes_are_one_label():
    """The two-class case is binary cross entropy of one label: two equal labels have its splits."""
    X, y = problem("binary")
    two = estimator("binary").fit(X, y)
    labels = estimator("multilabel").fit(X, np.column_stack([y, y]))
    assert_same_structure(two, labels)
    np.testing.assert_allclose(labels.predict_proba(X)[:, 0], two.predict_proba(X)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("scale_targets", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_tree_per_target_is_one_model_per_target(scale_targets, weighted):
    """Squared errors of different targets do not meet, whether they are scaled or not."""
    X, y = problem("regression")
    weight = np.random.default_rng(0).random(len(X)) + 0.5 if weighted else None
    settings = {"scale_targets": scale_targets, "base_score": 0.25}
    together = estimator("regression", multi_strategy="one_output_per_tree", **settings).fit(X, y, weight)
    for j in range(3):
        alone = estimator("regression", **settings).fit(X, y[:, j], weight)
        np.testing.assert_array_equal(together.predict(X)[:, j], alone.predict(X))
        ours = together._forest.node_begin[j :: together._forest.trees_per_round]
        sizes = [together._forest.node_begin[j + 3 * t + 1] - begin for t, begin in enumerate(ours[:10])]
        np.testing.assert_array_equal(sizes, np.diff(alone._forest.node_begin))


def test_one_tree_per_label_is_one_model_per_label():
    """Binary cross entropies of different labels do not meet."""
    X, y = problem("multilabel")
    together = estimator("multilabel", multi_strategy="one_output_per_tree").fit(X, y)
    for j in range(3):
        alone = estimator("binary").fit(X, y[:, j])
        np.testing.assert_allclose(
            together.predict_proba(X)[:, j], alone.predict_proba(X)[:, 1], rtol=1e-12, atol=1e-15
        )


def test_one_tree_per_class_shares_the_softmax():
    """All trees of a round start from the same probabilities: the order of the classes does not matter."""
    X, y = problem("multiclass")
    first = estimator("multiclass", multi_strategy="one_output_per_tree", n_estimators=1).fit(X, y)
    scores, base = raw_scores(first, X), np.log(np.bincount(y) / len(y))
    share = np.bincount(y) / len(y)

    def one_class(target, raw):  # the first round's gradients of one class, at the base score
        return share[j] - target, np.full_like(raw, share[j] * (1 - share[j]))

    for j in range(3):
        alone = estimator("one target", n_estimators=1, objective=one_class, base_score=base[j])
        alone.fit(X, (y == j).astype(float))
        np.testing.assert_allclose(scores[:, j], alone.predict(X), rtol=1e-7)


# --- rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_twice_is_weight_two(kind, strategy):
    """With min_samples_leaf=1, an integer weight is that many rows."""
    for seed in range(3):
        X, y = problem(kind, n=120, seed=seed)
        times = np.random.default_rng(seed).integers(1, 4, size=len(X))
        make = functools.partial(estimator, kind, min_samples_leaf=1, max_bins=32, multi_strategy=strategy)
        weighted = make().fit(X, y, times)
        repeated = make().fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
        for name in ("feature", "threshold", "missing_left", "left"):
            np.testing.assert_array_equal(
                getattr(weighted._forest, name), getattr(repeated._forest, name), err_msg=name
            )
        np.testing.assert_allclose(weighted._forest.cover, repeated._forest.count, rtol=1e-12)
        np.testing.assert_allclose(raw_scores(weighted, X), raw_scores(repeated, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exponent", [-60, -20, 20, 60])
def test_only_the_ratios_of_weights_and_penalty_matter(kind, exponent):
    """Weights times 2^k and lambda times 2^k give the same model."""
    X, y = problem(kind)
    weight = np.random.default_rng(0).random(len(X)) + 0.5
    expected = estimator(kind).fit(X, y, weight)
    scaled = estimator(kind, reg_lambda=2.0**exponent).fit(X, y, np.ldexp(weight, exponent))
    np.testing.assert_array_equal(scaled._forest.feature, expected._forest.feature)
    np.testing.assert_allclose(raw_scores(scaled, X), raw_scores(expected, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter(kind):
    """Histograms are sums of integers; only leaf values and base scores are rounded sums."""
    X, y = problem(kind)
    order = np.random.default_rng(1).permutation(len(X))
    expected = estimator(kind).fit(X, y)
    shuffled = estimator(kind).fit(X[order], y[order])
    assert_same_structure(expected, shuffled)
    np.testing.assert_allclose(raw_scores(shuffled, X), raw_scores(expected, X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_increasing_maps_of_features_change_no_partition(kind):
    """Trees see the order of a feature's values, not their size."""
    X, y = problem(kind)
    mapped = X.copy()
    mapped[:, [0, 4, 5]] = np.exp(3 * X[:, [0, 4, 5]])
    mapped[:, 1] = 1000 * X[:, 1] - 7
    expected, other = estimator(kind).fit(X, y), estimator(kind).fit(mapped, y)
    for name in ("feature", "left", "count"):
        np.testing.assert_array_equal(getattr(other._forest, name), getattr(expected._forest, name))
    np.testing.assert_array_equal(raw_scores(other, mapped), raw_scores(expected, X))


# --- the same bits -----------------------------------------------------------------------------------------


@functools.cache
def large_problem(kind):
    """Enough rows, tiles and bins for every loop to be shared out among threads."""
    rng = np.random.default_rng(7)
    n = 20_000
    X, y = problem(kind, n=n)
    more = rng.normal(size=(n, 14))
    more[:, 7:] *= rng.random((n, 7)) < 0.2
    return np.hstack([X, more]), y


SAMPLED = {"subsample": 0.6, "colsample_bytree": 0.7, "random_state": 3}


@functools.cache
def single_threaded(kind, weighted, sampled):
    X, y = large_problem(kind)
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    settings = {"n_estimators": 2, "max_bins": 300, **(SAMPLED if sampled else {})}
    return estimator(kind, **settings).fit(X, y, weight), weight, settings


@pytest.mark.parametrize("n_threads", [2, 3, 4])
@pytest.mark.parametrize(("weighted", "sampled"), [(False, False), (True, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_give_the_same_bits(kind, weighted, sampled, n_threads):
    """Training and prediction, with and without weights and samples."""
    X, y = large_problem(kind)
    expected, weight, settings = single_threaded(kind, weighted, sampled)
    model = estimator(kind, **settings, n_jobs=n_threads).fit(X, y, weight)
    assert_same_bits(expected, model, X)
    np.testing.assert_array_equal(model._forest.predict_raw(X, n_threads=n_threads), raw_scores(expected, X))
    np.testing.assert_array_equal(model.apply(X), expected.apply(X))


@pytest.mark.parametrize("n_threads", [2, 3, 4, 7])
@pytest.mark.parametrize("max_depth", [4, 30])
def test_nodes_taken_by_any_thread_make_the_same_tree(n_threads, max_depth):
    """Few leaves for many nodes, most of which have an equal somewhere: the order of visits must not show."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(700, 6)), (8, 1))
    copy = np.repeat(np.arange(8.0), 700)[:, None]  # each part of the table is the same problem
    y = np.tile(rng.normal(size=(700, 3)), (8, 1))
    settings = {"n_estimators": 12, "max_leaves": 37, "max_depth": max_depth, "min_samples_leaf": 2}
    table = np.hstack([X, copy])
    expected = estimator("regression", **settings).fit(table, y)
    for _ in range(3):
        assert_same_bits(expected, estimator("regression", **settings, n_jobs=n_threads).fit(table, y), table)


@pytest.mark.parametrize("kind", KINDS)
def test_two_fits_give_the_same_bits(kind):
    """The same estimator again, and another one."""
    X, y = problem(kind)
    model = estimator(kind, **SAMPLED, n_jobs=2).fit(X, y)
    again = estimator(kind, **SAMPLED, n_jobs=2).fit(X, y)
    assert_same_bits(model, again, X)
    assert_same_bits(again.fit(X, y), model, X)


@pytest.fixture
def kernels():
    """Restores the instruction set that was in use."""
    before = _core.kernels()
    yield
    assert _core.select_kernels(before)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("instructions", ["avx2", "avx512"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_instruction_sets_give_the_same_bits(kind, weighted, instructions):
    """A model does not depend on the processor that trained it."""
    X, y = problem(kind, n=1000)
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    settings = {"reg_alpha": 0.01, "min_child_weight": 0.1, "n_estimators": 20}
    assert _core.select_kernels("baseline")
    assert _core.kernels() == "baseline"
    expected = estimator(kind, **settings).fit(X, y, weight)
    if not _core.select_kernels(instructions):
        pytest.skip(f"this processor has no {instructions}")
    assert _core.kernels() == instructions
    assert_same_bits(expected, estimator(kind, **settings).fit(X, y, weight), X)


@pytest.fixture(scope="module", params=["40 bins", "8 bins", "40 bins, packed", "8 bins, packed"])
def ten_classes(request):
    """So many classes that three channels share a number if asked to (core/quantize/payload.hpp).

    Of 8 bins, combinations are visited (core/table/feature_combinations.hpp).
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 6)).astype(np.float32)
    X[:, 0] = np.where(rng.random(9000) < 0.8, 0.0, X[:, 0])
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(3 * X[:, 0] + X[:, 1] * X[:, 2]).astype(int) % 10
    settings = {
        "n_estimators": 10,
        "max_depth": 7,
        "max_leaves": 50,
        "max_bins": int(request.param.split()[0]),
    }
    settings["histogram_precision"] = "packed" if "packed" in request.param else "full"
    return X, y, settings, estimator("multiclass", **settings).fit(X, y)


@pytest.mark.parametrize("n_threads", [2, 3, 4, 7])
def test_sums_are_the_same_on_any_number_of_threads(ten_classes, n_threads):
    X, y, settings, expected = ten_classes
    assert_same_bits(expected, estimator("multiclass", **settings, n_jobs=n_threads).fit(X, y), X)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_sums_are_the_same_in_any_instruction_set(ten_classes, instructions):
    X, y, settings, expected = ten_classes
    if not _core.select_kernels(instructions):
        pytest.skip(f"this processor has no {instructions}")
    assert_same_bits(expected, estimator("multiclass", **settings).fit(X, y), X)


def test_unknown_instruction_sets_are_refused():
    before = _core.kernels()
    assert not _core.select_kernels("mmx")
    assert _core.kernels() == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_how_the_table_is_stored_does_not_matter(kind, dtype):
    """Numbers that both types hold give the same bits, in training and in prediction."""
    X, y = problem(kind)
    X = np.nan_to_num(np.round(10 * X)).astype(dtype)
    expected = estimator(kind).fit(X.astype(np.float64), y)
    model = estimator(kind).fit(np.asfortranarray(X)[:, ::-1][:, ::-1], y)
    assert_same_bits(expected, model, X.astype(np.float64))
    np.testing.assert_array_equal(raw_scores(expected, X), raw_scores(model, X.astype(np.float64)))


# --- training ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_boosting_is_the_oracles(kind, weighted):
    """Round after round the scores are those of the paper's algorithm in float64, but for rounding."""
    n = 150
    X, y = problem(kind, n=n)
    X = np.round(3 * X)  # few values: bins are the oracle's
    weight = np.random.default_rng(0).integers(1, 5, size=n).astype(float) if weighted else None
    thresholds = [oracle.find_thresholds(column, 255) for column in X.T]
    pairs = zip(X.T, thresholds, strict=True)
    codes = np.column_stack([oracle.bin_column(column, cuts) for column, cuts in pairs])
    n_value_bins = np.array([len(cuts) + 1 for cuts in thresholds])
    targets = np.eye(3)[y] if kind == "multiclass" else y.reshape(n, -1).astype(float)
    loss = {"multiclass": oracle.cross_entropy(), "binary": oracle.BINARY_CROSS_ENTROPY}.get(
        kind, oracle.BINARY_CROSS_ENTROPY if kind == "multilabel" else oracle.SQUARED_ERROR
    )
    variance = np.average(
        (targets - np.average(targets, axis=0, weights=weight)) ** 2, axis=0, weights=weight
    )
    rules = oracle.Rules(
        max_depth=4,
        max_leaves=9,
        min_samples_leaf=5,
        min_split_gain=1e-4,
        reg_alpha=0.01,
        gain_weight=1 / variance if kind in ("one target", "regression") else None,
    )
    expected = oracle.boost(codes, n_value_bins, targets, weight, loss, rules, 6, 0.3)
    settings = {
        "max_depth": 4,
        "max_leaves": 9,
        "min_samples_leaf": 5,
        "min_split_gain": 1e-4,
        "reg_alpha": 0.01,
    }
    model = estimator(kind, n_estimators=6, learning_rate=0.3, **settings).fit(X, y, weight)
    np.testing.assert_allclose(
        raw_scores(model, X), expected.predict_raw(codes), rtol=1e-5, atol=1e-5 * targets.std(axis=0).min()
    )


def losses_per_output(kind, y, raw):
    """The training loss; per output where outputs do not meet."""
    if kind in ("one target", "regression"):
        return ((raw - y.reshape(len(raw), -1)) ** 2).mean(axis=0)
    if kind == "multiclass":
        return np.mean(np.logaddexp.reduce(raw, axis=1) - raw[np.arange(len(y)), y])
    return (np.logaddexp(0, raw) - y.reshape(len(raw), -1) * raw).mean(axis=0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("one target", {}),
        ("regression", {}),
        ("regression", {"scale_targets": False, "reg_alpha": 0.5}),
        ("binary", {}),
        ("multilabel", {"reg_lambda": 0.0}),
        ("multiclass", {}),
        ("multiclass", {"softmax_curvature": "2p(1-p)"}),
        ("multiclass", {"softmax_curvature": "abs(p-y)"}),
        ("binary", {"objective": "cross_entropy"}),
    ],
)
def test_training_loss_never_rises(kind, params, strategy):
    """With a small learning rate each round lowers the loss, of every output where they do not meet."""
    X, y = problem(kind)
    model = estimator(kind, learning_rate=0.05, n_estimators=60, multi_strategy=strategy, **params).fit(X, y)
    if "objective" in params:
        kind = "multiclass"
    stages = [np.tile(model._forest.base_score, (len(X), 1)), *model._forest.staged_raw(X)]
    losses = np.array([losses_per_output(kind, y, raw) for raw in stages])
    assert (np.diff(losses, axis=0) <= 1e-7 * losses[:-1]).all()
    assert losses[-1].sum() < 0.8 * losses[0].sum()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_kept_in_training_are_the_predictions(kind, sampled, strategy):
    """The scores a round starts from are, to the bit, those the rounds before predict, for rows in the sample
    of a tree and for rows outside of it."""
    X, y = problem(kind)
    model = estimator(kind, multi_strategy=strategy, **(SAMPLED if sampled else {}))
    seen = []
    n_outputs = {"one target": 1, "binary": 1}.get(kind, 3)
    target_kind = "regression" if kind == "one target" else kind
    built_in = make_loss(
        {"regression": "squared_error", "multiclass": "cross_entropy"}.get(
            target_kind, "binary_cross_entropy"
        ),
        n_outputs=n_outputs,
        kind=target_kind,
    )

    def objective(target, raw):
        seen.append(raw.copy())
        gradient, hessian = gradients_of(built_in, target, raw)
        return gradient, np.ones_like(gradient) if hessian is None else hessian

    model.set_params(objective=objective).fit(X, y)
    assert len(seen) == 10
    for before, after in zip(seen[1:], model._forest.staged_raw(X), strict=False):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("exponents", [(0, 0), (300, 300), (-300, 600), (0, -900)])
def test_scores_of_targets_of_any_size_are_the_predictions(exponents):
    """Also where targets are so large or small that they are kept in units of their own."""
    X, y = problem("regression")
    y = np.ldexp(y[:, :2], exponents)
    seen = []

    class Spy(SquaredError):
        def formula(self, y):
            compiled = super().formula(y)

            def gradients(raw):
                seen.append(raw.copy())
                gradient = np.empty(raw.shape, dtype=np.float32)
                compiled.gradients(raw, gradient, None, 1)
                return gradient, np.ones_like(gradient)

            return NumpyFormula(gradients)

    model = estimator("regression", n_estimators=5)
    read = read_problem(model, model.get_params(), training_rows(X, y, None))
    result = train(read.data, [], Spy(2), [], read.settings)
    for before, after in zip(seen[1:], result.forest.staged_raw(X), strict=False):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("kind", KINDS)
def test_history_is_the_metric_of_the_stages(kind):
    """What is measured while training is what the stages of the model give afterwards."""
    X, y = problem(kind)
    model = estimator(kind, **SAMPLED).fit(X, y, eval_set=(X, y))
    ((name, history),) = model.evals_result_["validation_0"].items()
    losses = [np.mean(losses_per_output(kind, y, raw)) for raw in model._forest.staged_raw(X)]
    expected = np.sqrt(losses) if name == "rmse" else losses
    np.testing.assert_allclose(history, expected, rtol=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_leaves_add_up_to_the_prediction(kind, strategy):
    """Base score plus the values of the leaves that `apply` names is the raw score, to the bit; and each leaf
    holds as many training rows as it says."""
    X, y = problem(kind)
    model = estimator(kind, multi_strategy=strategy).fit(X, y)
    forest, leaves = model._forest, model.apply(X)
    raw = np.tile(forest.base_score, (len(X), 1))
    for tree in range(forest.n_trees):
        node = forest.node_begin[tree] + leaves[:, tree]
        assert (forest.left[node] == -1).all()
        first, width = forest.tree_output[tree], forest.tree_width[tree]
        at = forest.value_begin[node][:, np.newaxis] + np.arange(width)
        raw[:, first : first + width] += forest.values[at]
        reached, rows = np.unique(leaves[:, tree], return_counts=True)
        np.testing.assert_array_equal(rows, forest.count[forest.node_begin[tree] + reached])
    np.testing.assert_array_equal(raw, forest.predict_raw(X))
    *_, last = forest.staged_raw(X)
    np.testing.assert_array_equal(last, raw)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_trees_obey_the_limits(strategy):
    """max_depth, max_leaves, min_samples_leaf and min_child_weight hold in every tree."""
    X, y = problem("multilabel", n=600)
    limits = {"max_depth": 4, "max_leaves": 9, "min_samples_leaf": 17, "min_child_weight": 4.0}
    settings = {**limits, "learning_rate": 0.3, "multi_strategy": strategy}
    forest = estimator("multilabel", **settings).fit(X, y)._forest
    depths, n_leaves = [], []
    for begin, end in zip(forest.node_begin[:-1], forest.node_begin[1:], strict=True):
        left, depth = forest.left[begin:end], np.zeros(end - begin, dtype=int)
        for node in np.flatnonzero(left >= 0):
            depth[left[node] : left[node] + 2] = depth[node] + 1
        depths.append(depth.max())
        n_leaves.append((left < 0).sum())
        assert forest.count[begin:end].min() >= 17
        assert forest.count[begin:end].min() >= 4 * 4.0  # a row's Hessian is at most 1/4
    assert max(depths) == 4
    assert max(n_leaves) == 9


# --- samples -----------------------------------------------------------------------------------------------


def features_of_trees(forest):
    pairs = zip(forest.node_begin[:-1], forest.node_begin[1:], strict=True)
    return [set(forest.feature[begin:end].tolist()) - {-1} for begin, end in pairs]


@pytest.mark.parametrize("sample", [{"subsample": 0.5}, {"colsample_bytree": 0.5}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_fixes_the_samples(kind, sample):
    """One seed, one model; another seed, another model; no sampling, no randomness."""
    X, y = problem(kind)
    first, same, other = (estimator(kind, **sample, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert_same_bits(first, same, X)
    assert not np.array_equal(raw_scores(first, X), raw_scores(other, X))
    assert_same_bits(*(estimator(kind, random_state=seed).fit(X, y) for seed in (1, 2)), X)


@pytest.mark.parametrize(("share", "most"), [(0.01, 1), (0.2, 2), (0.5, 5), (0.99, 10)])
def test_a_tree_uses_its_sample_of_features_only(share, most):
    """Rounded to a whole number of features, at least one; the samples differ from round to round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    y = X @ np.ones(10) + rng.normal(size=500)
    model = PolyleafRegressor(n_estimators=40, colsample_bytree=share, max_depth=8, min_samples_leaf=2)
    used = features_of_trees(model.set_params(random_state=0).fit(X, y)._forest)
    assert max(len(one) for one in used) == most
    assert set.union(*used) == set(range(10))
    assert len({frozenset(one) for one in used}) > 1 or most == 10


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_a_tree_grows_from_its_sample_of_rows_only(share):
    """Counts are those of the sample, one row at least, and all rows get their prediction nevertheless."""
    X, y = problem("regression")
    model = estimator("regression", subsample=share, random_state=0, min_samples_leaf=1).fit(X, y)
    roots = model._forest.node_begin[:-1]
    counts = model._forest.count[roots]
    assert (counts >= 1).all()
    assert np.abs(counts - share * len(X)).max() < 5 * np.sqrt(share * (1 - share) * len(X)) + 1
    assert np.isfinite(model.predict(X)).all()


def test_rows_are_sampled_evenly():
    """Over many rounds every row is drawn about as often as the others."""
    n, rounds = 200, 400
    X = np.arange(float(n))[:, np.newaxis]
    drawn = np.zeros(n)
    model = PolyleafRegressor(
        n_estimators=rounds, subsample=0.3, min_samples_leaf=1, max_depth=12, random_state=0, reg_lambda=0.0
    )
    forest = model.set_params(base_score=0.0, learning_rate=1e-30).fit(X, X[:, 0] + 1)._forest
    for begin, end in zip(forest.node_begin[:-1], forest.node_begin[1:], strict=True):
        # Each row of the sample is alone in its leaf, whose value is its target.
        at = forest.value_begin[begin:end][forest.left[begin:end] < 0]
        drawn[np.rint(forest.values[at].astype(np.float64) * 1e30).astype(int) - 1] += 1
    assert abs(drawn.sum() - rounds * 60) < 5 * np.sqrt(rounds * n * 0.3 * 0.7)
    spread = np.sqrt(rounds * 0.3 * 0.7)
    assert np.abs(drawn - rounds * 0.3).max() < 5 * spread


# --- peers -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(30_000, noise=1.0, random_state=0)
    return X[:20_000], y[:20_000], X[20_000:], y[20_000:]


@pytest.fixture(scope="module")
def our_error(friedman):
    X, y, X_test, y_test = friedman
    model = PolyleafRegressor(
        n_estimators=100, learning_rate=0.1, max_leaves=31, min_samples_leaf=20, colsample_bytree=1.0
    )
    return root_mean_squared_error(y_test, model.fit(X, y).predict(X_test))


@pytest.mark.other_threads("LightGBM has threads of its own")
def test_error_is_lightgbms(friedman, our_error):
    """With one output and the same parameters: within 2 %."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y, X_test, y_test = friedman
    peer = lightgbm.LGBMRegressor(
        n_estimators=100, max_depth=6, num_leaves=31, max_bin=255, reg_lambda=1.0, n_jobs=2, verbose=-1
    )
    peer.set_params(min_child_samples=20, min_child_weight=0.0, learning_rate=0.1)
    their_error = root_mean_squared_error(y_test, peer.fit(X, y).predict(X_test))
    assert our_error == pytest.approx(their_error, rel=0.02)


def test_error_is_scikit_learns(friedman, our_error):
    """With one output and the same parameters: within 2 %."""
    X, y, X_test, y_test = friedman
    peer = HistGradientBoostingRegressor(
        max_iter=100,
        max_depth=6,
        max_leaf_nodes=31,
        max_bins=255,
        l2_regularization=1.0,
        early_stopping=False,
    )
    their_error = root_mean_squared_error(y_test, peer.fit(X, y).predict(X_test))
    assert our_error == pytest.approx(their_error, rel=0.02)


# --- shapes of data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_more_outputs_than_rows(strategy):
    """10,000 targets of 200 rows share their splits; one tree for each works too, on fewer of them."""
    rng = np.random.default_rng(0)
    d = 10_000 if strategy == "multi_output_tree" else 500
    X = rng.normal(size=(200, 5))
    y = np.sign(X[:, [2]]) * rng.normal(size=d) + 0.1 * rng.normal(size=(200, d))
    model = PolyleafRegressor(n_estimators=2, learning_rate=0.5, max_depth=2, multi_strategy=strategy).fit(
        X, y
    )
    assert model.predict(X).shape == (200, d)
    assert model.feature_importances_.argmax() == 2
    assert ((model.predict(X) - y) ** 2).mean() < 0.5 * y.var()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 5, 30])
def test_fewer_rows_than_bins(kind, n):
    """A handful of rows is learnt by heart."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    codes = np.arange(n)
    y = {
        "one target": codes.astype(float),
        "regression": np.column_stack([codes, -codes]).astype(float),
        "multiclass": codes if n > 2 else None,
        "binary": codes % 2,
        "multilabel": np.column_stack([codes % 2, codes == 0]),
    }[kind]
    if y is None:
        pytest.skip("two rows have no three classes")
    settings = {"reg_lambda": 0.0, "learning_rate": 0.5, "n_estimators": 60, "min_samples_leaf": 1}
    model = estimator(kind, **settings, max_depth=30).fit(X, y)
    prediction = model.predict(X)
    if kind in ("one target", "regression"):
        np.testing.assert_allclose(prediction, y, atol=1e-6 * n)
    else:
        np.testing.assert_array_equal(prediction, y)


@pytest.mark.parametrize("kind", ["one target", "regression"])
def test_one_row(kind):
    """There is nothing to split: the row's targets are the prediction."""
    y = np.array([3.0]) if kind == "one target" else np.array([[3.0, -1.0]])
    model = estimator(kind, min_samples_leaf=1).fit(np.array([[1.0, np.nan]]), y)
    np.testing.assert_allclose(model.predict(np.zeros((1, 2))), y)
    assert model._forest.n_rounds == 10


@pytest.mark.parametrize("kind", KINDS)
def test_one_feature(kind):
    """A single column is a table, too."""
    X, y = problem(kind)
    model = estimator(kind).fit(X[:, :1], y)
    assert (model._forest.left >= 0).any()
    np.testing.assert_array_equal(model.feature_importances_, [1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_without_information_are_not_used(kind):
    """Constant and all-missing columns have no split; alone they leave the base score."""
    X, y = problem(kind)
    empty = np.column_stack([np.full(len(X), 4.0), np.full(len(X), np.nan)])
    both = estimator(kind).fit(np.hstack([empty, X]), y)
    np.testing.assert_array_equal(both.feature_importances_[:2], 0)
    np.testing.assert_array_equal(
        raw_scores(both, np.hstack([empty, X])), raw_scores(estimator(kind).fit(X, y), X)
    )
    alone = estimator(kind).fit(empty, y)
    np.testing.assert_allclose(
        raw_scores(alone, empty), np.tile(alone._forest.base_score, (len(X), 1)), atol=1e-6
    )


def test_one_row_per_class():
    """As many classes as rows."""
    n = 40
    X = np.arange(float(n))[:, np.newaxis]
    model = PolyleafClassifier(n_estimators=30, min_samples_leaf=1, learning_rate=0.5, reg_lambda=0.01)
    model.fit(X, [f"class {i:02}" for i in range(n)])
    assert model.n_outputs_ == n
    assert (model.predict(X) == [f"class {i:02}" for i in range(n)]).mean() > 0.9


def test_many_features():
    """More features than rows, most of them noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2000))
    y = np.sign(X[:, 1234]) + 0.1 * rng.normal(size=80)
    model = PolyleafRegressor(n_estimators=5, min_samples_leaf=10, max_depth=1).fit(X, y)
    assert model.feature_importances_.argmax() == 1234


def test_very_deep_trees():
    """Depth is bounded by the rows only, where a limit on the leaves replaces it."""
    n = 100
    X, y = np.eye(n), np.random.default_rng(0).normal(size=n)  # a feature tells one row from the rest
    settings = {"max_depth": None, "max_leaves": n, "min_samples_leaf": 1, "reg_lambda": 0.0}
    model = PolyleafRegressor(n_estimators=1, learning_rate=1.0, colsample_bytree=1.0, **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-5)
    left = model._forest.left
    depth = np.zeros(len(left), dtype=int)
    for node in np.flatnonzero(left >= 0):
        depth[left[node] : left[node] + 2] = depth[node] + 1
    assert depth.max() == n - 1


def test_ties_do_not_depend_on_the_order_of_the_classes():
    """Of candidates of equal gain but different sums the lowest wins, whatever the order of outputs."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n_classes = int(rng.integers(3, 8))
        y = np.repeat(np.arange(n_classes), 8)
        X = rng.integers(0, 3, size=(len(y), 4)).astype(float)
        order = rng.permutation(n_classes)
        settings = {"n_estimators": 1, "min_samples_leaf": 1, "max_depth": 3, "sketch": None, "n_jobs": 1}
        forest = PolyleafClassifier(**settings).fit(X, y)._forest
        permuted = PolyleafClassifier(**settings).fit(X, order[y])._forest
        np.testing.assert_array_equal(forest.feature, permuted.feature)
        np.testing.assert_array_equal(forest.threshold, permuted.threshold)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_leaves_nothing_to_the_garbage_collector(kind):
    """The binned table and the scores go as soon as the training ends."""
    X, y = problem(kind)
    model = estimator(kind, n_estimators=2)
    model.fit(X, y, eval_set=[(X, y)])
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        model.fit(X, y, eval_set=[(X, y)])
        gc.collect()
        left = [type(thing) for thing in gc.garbage if type(thing).__module__.startswith("polyleaf")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert left == []
