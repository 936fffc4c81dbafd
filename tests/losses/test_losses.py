"""Losses: gradients are derivatives, base scores best constants; no size of target or score breaks them."""

import numpy as np
import pytest

import oracle
from gradients_of import gradients_of
from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.losses import make_loss

N = 60
SOFTMAX_CURVATURES = tuple(oracle.SOFTMAX_CURVATURE)
FLOAT32 = 1.5 * 2.0**-23  # of a number that was rounded to float32 after some steps in it


def targets(kind, d, rng, n=N):
    """Coded targets as a loss reads them."""
    if kind == "regression":
        return rng.normal(size=(n, d))
    if kind == "multiclass":
        return rng.permutation(np.arange(n) % d).astype(np.int32)
    return (rng.random((n, d)) < 0.4).astype(np.float64)


def as_matrix(kind, y, d):
    """Coded targets as the oracle reads them."""
    return np.eye(d)[y] if kind == "multiclass" else y


OBJECTIVES = {
    "regression": "squared_error",
    "multiclass": "cross_entropy",
    "binary": "binary_cross_entropy",
    "multilabel": "binary_cross_entropy",
}
ORACLES = {
    "regression": oracle.SQUARED_ERROR,
    "multiclass": oracle.cross_entropy(),
    "binary": oracle.BINARY_CROSS_ENTROPY,
    "multilabel": oracle.BINARY_CROSS_ENTROPY,
}
CASES = [
    ("regression", 1),
    ("regression", 5),
    ("multiclass", 3),
    ("multiclass", 300),
    ("binary", 1),
    ("multilabel", 4),
]


def loss_values(kind, y, raw):
    """The loss of each row."""
    if kind == "regression":
        return 0.5 * ((raw - y) ** 2).sum(axis=1)
    if kind == "multiclass":
        return np.logaddexp.reduce(raw, axis=1) - raw[np.arange(len(y)), y]
    return (np.logaddexp(0, raw) - y * raw).sum(axis=1)


def derivatives(kind, y, raw, **parameters):
    """The core's gradient and Hessian as float64."""
    loss = make_loss(OBJECTIVES[kind], n_outputs=raw.shape[1], kind=kind, parameters=parameters)
    gradient, hessian = gradients_of(loss, y, np.ascontiguousarray(raw))
    assert gradient.dtype == np.float32
    return gradient.astype(np.float64), None if hessian is None else hessian.astype(np.float64)


# --- gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), CASES)
def test_gradients_are_the_derivatives_of_the_loss(kind, d):
    """Central differences of the loss and of the gradient give back gradient and Hessian."""
    rng = np.random.default_rng(d)
    y, raw = targets(kind, d, rng), 2 * rng.normal(size=(N, d))
    gradient, hessian = derivatives(kind, y, raw)
    for j in range(0, d, max(1, d // 7)):
        step = 1e-4
        up, down = raw.copy(), raw.copy()
        up[:, j] += step
        down[:, j] -= step
        slope = (loss_values(kind, y, up) - loss_values(kind, y, down)) / (2 * step)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=2e-6, atol=2e-8)
        # Differences of the oracle's gradient: second differences of the loss would drown in rounding.
        bend = (
            ORACLES[kind].derivatives(as_matrix(kind, y, d), up)[0][:, j]
            - ORACLES[kind].derivatives(as_matrix(kind, y, d), down)[0][:, j]
        ) / (2 * step)
        second = np.ones(N) if hessian is None else hessian[:, j]
        np.testing.assert_allclose(second, bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("kind", "d"), CASES)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
def test_gradients_equal_the_oracles(kind, d, scale):
    """To the precision of float32, whatever the size of the scores."""
    rng = np.random.default_rng(d)
    y, raw = targets(kind, d, rng), scale * rng.normal(size=(N, d))
    gradient, hessian = derivatives(kind, y, raw)
    g, h = ORACLES[kind].derivatives(as_matrix(kind, y, d), raw)
    np.testing.assert_allclose(gradient, g, rtol=FLOAT32, atol=1e-15)
    if h is None:
        assert hessian is None
    else:
        np.testing.assert_allclose(hessian, h, rtol=FLOAT32, atol=1e-15)


@pytest.mark.parametrize("curvature", SOFTMAX_CURVATURES)
@pytest.mark.parametrize("d", [2, 10, 257])
def test_softmax_curvatures_equal_the_oracles(curvature, d):
    """Each name stands for its formula; the gradient is the same for all of them."""
    rng = np.random.default_rng(d)
    y, raw = targets("multiclass", d, rng, n=300), 3 * rng.normal(size=(300, d))
    gradient, hessian = derivatives("multiclass", y, raw, softmax_curvature=curvature)
    g, h = oracle.cross_entropy(curvature).derivatives(np.eye(d)[y], raw)
    np.testing.assert_allclose(gradient, g, rtol=FLOAT32, atol=1e-15)
    np.testing.assert_allclose(hessian, h, rtol=FLOAT32, atol=1e-15)


def test_softmax_curvatures_differ():
    """The three choices train three models."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    first = [
        PolyleafClassifier(n_estimators=2, softmax_curvature=name).fit(X, y).predict_proba(X).tobytes()
        for name in SOFTMAX_CURVATURES
    ]
    assert len(set(first)) == 3


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
@pytest.mark.parametrize("curvature", SOFTMAX_CURVATURES)
def test_extreme_scores_stay_finite(kind, curvature):
    """Scores up to 800, whose exponentials leave float64, give the limits of gradient and Hessian."""
    extremes = [-800.0, -710.0, -100.0, -30.0, 0.0, 1e-300, 30.0, 100.0, 710.0, 800.0]
    raw = np.array(np.meshgrid(extremes, extremes, extremes)).reshape(3, -1).T
    rng = np.random.default_rng(0)
    y = targets(kind, 3, rng, n=len(raw))
    keywords = {"softmax_curvature": curvature} if kind == "multiclass" else {}
    gradient, hessian = derivatives(kind, y, raw, **keywords)
    truth = oracle.cross_entropy(curvature) if kind == "multiclass" else oracle.BINARY_CROSS_ENTROPY
    g, h = truth.derivatives(as_matrix(kind, y, 3), raw)
    np.testing.assert_allclose(gradient, g, rtol=FLOAT32, atol=1e-15)
    np.testing.assert_allclose(hessian, h, rtol=FLOAT32, atol=1e-15)
    assert (hessian >= 0).all()


@pytest.mark.parametrize(("kind", "d"), [*CASES, ("multilabel", 1000), ("regression", 1000)])
def test_threads_change_no_gradient(kind, d):
    rng = np.random.default_rng(0)
    n = 20_000 if d < 100 else 500
    y, raw = targets(kind, d, rng, n), rng.normal(size=(n, d))
    loss = make_loss(OBJECTIVES[kind], n_outputs=d, kind=kind)
    one = gradients_of(loss, y, raw, 1)
    four = gradients_of(loss, y, raw, 4)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("kind", "d"), CASES)
def test_predictions_are_the_oracles_link(kind, d):
    """Values stay as they are; probabilities are exact limits for extreme scores."""
    loss = make_loss(OBJECTIVES[kind], n_outputs=d, kind=kind)
    raw = (
        np.random.default_rng(0).normal(size=(50, d))
        * np.array([0, 1, 30, 800, 1e4])[np.arange(50) % 5, None]
    )
    np.testing.assert_allclose(loss.predict(raw), ORACLES[kind].link(raw), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(("kind", "d"), [("multiclass", 2), ("multiclass", 3000), ("multilabel", 1000)])
def test_threads_and_order_of_memory_change_no_probability(kind, d):
    loss = make_loss(OBJECTIVES[kind], n_outputs=d, kind=kind)
    raw = 30 * np.random.default_rng(0).normal(size=(40_000 // d + 3, d))
    kept = raw.copy()
    one = loss.predict(raw)
    np.testing.assert_array_equal(loss.predict(raw, 4), one)
    np.testing.assert_array_equal(loss.predict(np.asfortranarray(raw), 2), one)
    np.testing.assert_array_equal(raw, kept)
    assert loss.predict(raw[:0]).shape == (0, d)


# --- base scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_base_score_is_the_best_constant(kind, d, weighted):
    """It equals the oracle's, and the weighted gradients at it sum to 0."""
    rng = np.random.default_rng(d)
    y = targets(kind, d, rng, n=600)
    weight = rng.random(600) + 0.1 if weighted else None
    loss = make_loss(OBJECTIVES[kind], n_outputs=d, kind=kind)
    base = loss.base_score(y, weight)
    assert base.shape == (d,)
    assert base.dtype == np.float64
    matrix = as_matrix(kind, y, d)
    w = np.ones(600) if weight is None else weight
    np.testing.assert_allclose(base, ORACLES[kind].base_score(matrix, w), rtol=1e-12, atol=1e-14)
    gradient, _ = ORACLES[kind].derivatives(matrix, np.tile(base, (600, 1)))
    np.testing.assert_allclose(w @ gradient, 0, atol=1e-10)


def test_base_scores_by_hand():
    """Weighted mean, log prior and log odds."""
    weight = np.array([1.0, 1.0, 2.0])
    mean = make_loss("squared_error", n_outputs=2, kind="regression")
    y = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 8.0]])
    np.testing.assert_allclose(mean.base_score(y, None), [3, 8 / 3])
    np.testing.assert_allclose(mean.base_score(y, weight), [3.5, 4])
    prior = make_loss("cross_entropy", n_outputs=2, kind="multiclass")
    np.testing.assert_allclose(prior.base_score(np.array([0, 0, 1], np.int32), None), np.log([2 / 3, 1 / 3]))
    np.testing.assert_allclose(prior.base_score(np.array([0, 0, 1], np.int32), weight), np.log([0.5, 0.5]))
    odds = make_loss("binary_cross_entropy", n_outputs=1, kind="binary")
    np.testing.assert_allclose(odds.base_score(np.array([[0.0], [0], [1]]), None), [np.log(1 / 2)])
    np.testing.assert_allclose(odds.base_score(np.array([[0.0], [1], [1]]), weight), [np.log(3)])


def test_mean_of_huge_targets_does_not_overflow():
    """The sum of the targets may leave float64; their mean does not."""
    mean = make_loss("squared_error", n_outputs=2, kind="regression")
    y = np.array([[1.7e308, -1.7e308], [1.7e308, -1.7e308], [1.7e308, 1.7e308]])
    for weight in (None, np.array([1.0, 1.0, 1.0]), np.array([1e-3, 1e-3, 1e-3])):
        np.testing.assert_allclose(mean.base_score(y, weight), [1.7e308, -1.7e308 / 3], rtol=1e-12)


# --- callables ---------------------------------------------------------------------------------------------


def custom(function, kind="regression", d=2):
    return make_loss(function, n_outputs=d, kind=kind)


Y2 = np.zeros((4, 2))
RAW2 = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (RAW2, "pair"),
        (None, "pair"),
        ((RAW2,), "pair"),
        ((RAW2, RAW2, RAW2), "pair"),
        ((RAW2[:-1], RAW2), r"the gradient has shape \(3, 2\), expected \(4, 2\)"),
        ((RAW2, RAW2.T), r"the hessian has shape \(2, 4\), expected \(4, 2\)"),
        ((RAW2, RAW2[:, 0]), r"the hessian has shape \(4,\), expected \(4, 2\)"),
        ((RAW2, 1.0), r"the hessian has shape \(\), expected \(4, 2\)"),
        ((np.where(RAW2 == 5, np.nan, RAW2), RAW2), "the gradient of row 2, output 1 is nan;"),
        ((RAW2, np.where(RAW2 == 2, np.inf, RAW2)), "the hessian of row 1, output 0 is inf;"),
        ((RAW2 * 1e200, RAW2), "the gradient of row 0, output 1 is .*1e\\+200"),
        ((RAW2.astype(str), RAW2), None),
        ((np.full((4, 2), "a"), RAW2), "the gradient does not hold numbers"),
        ((np.full((4, 2), None), RAW2), "the gradient"),
    ],
)
def test_what_a_callable_may_not_return(returned, words):
    """The error says what is wrong, and where. Text that reads as numbers is numbers to NumPy."""
    loss = custom(lambda y, raw: returned)
    if words is None:
        np.testing.assert_array_equal(gradients_of(loss, Y2, RAW2)[0], RAW2)
        return
    with pytest.raises(ValueError, match=f"objective: .*{words}"):
        gradients_of(loss, Y2, RAW2)


@pytest.mark.parametrize("error", [RuntimeError, KeyError])
def test_an_error_inside_a_callable_reaches_the_caller(error):
    def fails(y, raw):
        raise error("mine")

    with pytest.raises(error, match="mine"):
        PolyleafRegressor(objective=fails).fit(np.zeros((3, 1)), np.arange(3.0))


def test_a_callable_may_return_other_types():
    """Lists, float32, Fortran order, and vectors where there is one output."""
    expected = RAW2.astype(np.float32)
    for form in (lambda a: a.tolist(), np.asfortranarray, np.float32, lambda a: a[:, ::-1][:, ::-1]):
        loss = custom(lambda y, raw, form=form: [form(RAW2), form(RAW2 + 1)])
        gradient, hessian = gradients_of(loss, Y2, RAW2)
        np.testing.assert_array_equal(gradient, expected)
        np.testing.assert_array_equal(hessian, expected + 1)
        assert gradient.flags.c_contiguous
    loss = custom(lambda y, raw: (raw[:, 0], raw[:, 0]), d=1)
    gradient, _ = gradients_of(loss, Y2[:, :1], RAW2[:, :1])
    np.testing.assert_array_equal(gradient, RAW2[:, :1])


def test_a_callable_gets_coded_targets_and_raw_scores_of_its_own():
    """It may scribble on the scores it is given: training does not see it."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(90, 2)), np.array(["a", "b", "c"])[np.arange(90) % 3]
    seen = []

    def scribbles(y, raw):
        seen.append((y.dtype, y.shape, raw.dtype, raw.shape, raw[0].copy()))
        gradient, hessian = oracle.cross_entropy().derivatives(np.eye(3)[y], raw)
        raw[:] = np.nan
        return gradient, hessian

    model = PolyleafClassifier(n_estimators=3, objective=scribbles).fit(X, labels)
    assert [one[:4] for one in seen] == [(np.int32, (90,), np.float64, (90, 3))] * 3
    np.testing.assert_allclose(seen[0][4], np.log([1 / 3] * 3))
    stages = list(model._forest.staged_raw(X))
    np.testing.assert_array_equal(seen[2][4], stages[1][0])


BUILT_IN = [
    (PolyleafRegressor, "regression", 1, oracle.SQUARED_ERROR),
    (PolyleafRegressor, "regression", 3, oracle.SQUARED_ERROR),
    (PolyleafClassifier, "multiclass", 4, oracle.cross_entropy()),
    (PolyleafClassifier, "binary", 1, oracle.BINARY_CROSS_ENTROPY),
    (PolyleafClassifier, "multilabel", 3, oracle.BINARY_CROSS_ENTROPY),
]


@pytest.mark.parametrize(("make", "kind", "d", "formula"), BUILT_IN)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_callable_equal_to_a_built_in_loss_grows_its_trees(make, kind, d, formula, weighted):
    """Same splits and, but for the last bits of an exponential, the same leaves."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    score = X[:, :1] @ np.ones((1, d)) + np.sin(2 * X[:, 1:2]) * np.arange(1, d + 1)
    y = score if kind == "regression" else (score > 0.3).astype(float)
    if kind == "multiclass":
        y = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    weight = rng.random(400) + 0.5 if weighted else None

    def objective(y, raw):
        gradient, hessian = formula.derivatives(as_matrix(kind, y, d), raw)
        return gradient, np.ones_like(gradient) if hessian is None else hessian

    y = y[:, 0] if d == 1 else y
    settings = {"n_estimators": 10, "min_samples_leaf": 5, "sketch": None, "n_jobs": 1}
    built_in = make(**settings).fit(X, y, weight)._forest
    own = make(**settings, objective=objective).fit(X, y, weight)._forest
    for name in ("feature", "threshold", "left", "count", "missing_left", "node_begin"):
        np.testing.assert_array_equal(getattr(own, name), getattr(built_in, name), err_msg=name)
    np.testing.assert_allclose(own.values, built_in.values, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(own.gain, built_in.gain, rtol=1e-5, atol=1e-9)


# --- targets of any size -----------------------------------------------------------------------------------


def regression_problem(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(300, 4))
    return X, np.column_stack([np.sin(2 * X[:, j % 4]) + X[:, (j + 1) % 4] for j in range(d)])


@pytest.mark.parametrize("scale_targets", [True, False])
@pytest.mark.parametrize("exponent", [-990, -665, -300, -41, -10, 10, 41, 300, 520, 665, 990])
def test_the_size_of_the_targets_does_not_matter(exponent, scale_targets):
    """Targets times 2^k, as small as 1e-298 or as large as 1e298, give predictions times 2^k, to the bit."""
    X, y = regression_problem(2)
    make = {"n_estimators": 8, "min_samples_leaf": 5, "scale_targets": scale_targets, "n_jobs": 1}
    expected = PolyleafRegressor(**make).fit(X, y).predict(X)
    scaled = PolyleafRegressor(**make).fit(X, np.ldexp(y, exponent)).predict(X)
    np.testing.assert_array_equal(np.ldexp(scaled, -exponent), expected)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e299, 1e-307])
def test_targets_of_extreme_size_are_learnt(scale):
    """Single precision of gradients and leaves sets no bounds to the targets."""
    X, y = regression_problem(1)
    model = PolyleafRegressor(n_estimators=50, learning_rate=0.1, min_samples_leaf=2).fit(X, y[:, 0] * scale)
    error = model.predict(X) / scale - y[:, 0]
    assert np.sqrt(np.mean(error**2)) < 0.1 * y.std()


def test_targets_of_mixed_sizes_are_learnt_together():
    """Each target is learnt as if its neighbours had its own size."""
    X, y = regression_problem(6)
    scale = np.ldexp(1.0, [0, 664, -664, 30, -30, 990])
    settings = {"n_estimators": 10, "min_samples_leaf": 5, "n_jobs": 1}
    expected = PolyleafRegressor(**settings).fit(X, y).predict(X)
    mixed = PolyleafRegressor(**settings).fit(X, y * scale).predict(X)
    np.testing.assert_array_equal(mixed / scale, expected)


def test_a_large_offset_leaves_the_shape():
    """Targets far from 0 are learnt around their mean."""
    X, y = regression_problem(2)
    settings = {"n_estimators": 20, "min_samples_leaf": 5}
    expected = PolyleafRegressor(**settings).fit(X, y).predict(X)
    shifted = PolyleafRegressor(**settings).fit(X, y + 2.0**20).predict(X) - 2.0**20
    np.testing.assert_allclose(shifted, expected, atol=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e200, -1e-200])
def test_constant_targets_are_predicted_as_they_are(value):
    """A constant has no variance to divide by, alone or beside a target that varies."""
    X, y = regression_problem(1)
    for target in (np.full(300, value), np.column_stack([np.full(300, value), y])):
        model = PolyleafRegressor(n_estimators=5, min_samples_leaf=5).fit(X, target)
        prediction = model.predict(X).reshape(300, -1)
        np.testing.assert_allclose(prediction[:, 0], value, rtol=1e-12)
    assert np.corrcoef(prediction[:, 1], y[:, 0])[0, 1] > 0.5


def test_targets_at_both_ends_of_the_range():
    """Whose squares and sums leave float64: the model is finite and tells them apart."""
    X = np.arange(100.0)[:, np.newaxis]
    y = np.where(X[:, 0] < 50, -1e300, 1e300)
    prediction = (
        PolyleafRegressor(n_estimators=30, min_samples_leaf=1, learning_rate=0.3).fit(X, y).predict(X)
    )
    np.testing.assert_allclose(prediction, y, rtol=0.2)


@pytest.mark.parametrize("kind", ["regression", "multilabel", "multiclass"])
def test_ten_thousand_outputs(kind):
    """A very wide problem trains and predicts."""
    rng = np.random.default_rng(0)
    d = 10_000
    X = rng.normal(size=(60, 3))
    side = X[:, 0] > 0
    if kind == "multiclass":
        # The estimator's classes are those that occur: 60 rows cannot have more, so the loss alone is asked.
        y, raw = rng.integers(0, d, size=60).astype(np.int32), rng.normal(size=(60, d))
        gradient, hessian = derivatives("multiclass", y, raw)
        g, h = oracle.cross_entropy().derivatives(np.eye(d)[y], raw)
        np.testing.assert_allclose(gradient, g, rtol=2 * FLOAT32)
        np.testing.assert_allclose(hessian, h, rtol=2 * FLOAT32)
        return
    level = rng.normal(size=d)
    y = np.where(side[:, None], level, -level)
    make, settings = PolyleafRegressor, {"n_estimators": 3, "min_samples_leaf": 5, "learning_rate": 1.0}
    if kind == "multilabel":
        y, make = (y > 0).astype(int), PolyleafClassifier
    model = make(**settings).fit(X, y)
    assert model.n_outputs_ == d
    assert model.predict(X).shape == (60, d)
    first = model._forest
    assert first.feature[0] == 0
    error = np.abs(model.predict(X) - y).max()
    assert error < (0.1 if kind == "regression" else 1)
