"""Areas under curves, F1, the relative error and precision by propensities, beside scikit-learn's."""

import doctest
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics as reference

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.metrics import KnownTargets, callables, label_propensities, make_metrics, propensity, psp_at_k
from polyleaf.metrics.average import BLOCK_CELLS

RNG = np.random.default_rng(5)
N, D = 240, 5
WEIGHT = RNG.random(N) * 3
TIED = RNG.integers(0, 6, (N, D)) / 5.0  # some of 0.5 < p and many equal ones
LABELS = (RNG.random((N, D)) < [0.1, 0.3, 0.5, 0.7, 0.05]).astype(np.float64)
CODES = RNG.integers(0, D, N).astype(np.int32)
SHARES = np.round(RNG.dirichlet(np.ones(D), N), 1)
NEW = ["auc", "average_precision", "f1_micro", "f1_macro"]


def measured(name, kind, y, prediction, weight=None, known=None):
    metrics = make_metrics(name, default="none", kind=kind, n_labels=D, known=known)
    assert metrics[-1].greater_is_better == (not name.startswith("mape"))
    return metrics[-1].function(y, prediction, weight)


def of_labels(name, y, p, weight=None):
    if name == "auc":
        return reference.roc_auc_score(y, p, sample_weight=weight)
    if name == "average_precision":
        return reference.average_precision_score(y, p, sample_weight=weight)
    return reference.f1_score(y, p > 0.5, average=name[3:], sample_weight=weight, zero_division=0)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("scores", [TIED, RNG.random((N, D))])
def test_labels(name, weight, scores):
    expected = of_labels(name, LABELS, scores, weight)
    assert measured(name, "multilabel", LABELS, scores, weight) == pytest.approx(expected, rel=1e-12)
    for form in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
        found = measured(name, "multilabel", form(LABELS), scores, weight)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_two_classes(name, weight):
    y, p = LABELS[:, [1]], TIED[:, [1]]
    if name.startswith("f1"):
        expected = reference.f1_score(y[:, 0], p[:, 0] > 0.5, average=name[3:], sample_weight=weight)
    else:
        expected = of_labels(name, y[:, 0], p[:, 0], weight)
    assert measured(name, "binary", y, p, weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_classes(name, weight):
    if name == "auc":
        exact = np.exp(np.log(SHARES + 0.1))
        exact /= exact.sum(axis=1, keepdims=True)
        expected = reference.roc_auc_score(CODES, exact, multi_class="ovr", sample_weight=weight)
        assert measured(name, "multiclass", CODES, exact, weight) == pytest.approx(expected, rel=1e-12)
    elif name == "average_precision":
        expected = reference.average_precision_score(CODES, SHARES, sample_weight=weight)
        assert measured(name, "multiclass", CODES, SHARES, weight) == pytest.approx(expected, rel=1e-12)
    else:
        expected = reference.f1_score(CODES, SHARES.argmax(axis=1), average=name[3:], sample_weight=weight)
        assert measured(name, "multiclass", CODES, SHARES, weight) == pytest.approx(expected, rel=1e-12)


def test_classes_that_no_row_has():
    """They take no part in areas; in F1 they do if they are predicted, as in scikit-learn."""
    codes = np.where(CODES == 2, 1, CODES)
    columns = [0, 1, 3, 4]
    aucs = [reference.roc_auc_score(codes == j, SHARES[:, j]) for j in columns]
    assert measured("auc", "multiclass", codes, SHARES) == pytest.approx(np.mean(aucs))
    without = SHARES.copy()
    without[:, 2] = 0
    for p in (SHARES, without):
        expected = reference.f1_score(codes, p.argmax(axis=1), average="macro")
        assert measured("f1_macro", "multiclass", codes, p) == pytest.approx(expected)


def test_labels_that_all_rows_or_none_have():
    y = LABELS.copy()
    y[:, 0], y[:, 3] = 0, 1
    for name in ("auc", "average_precision"):
        expected = np.mean([of_labels(name, y[:, j], TIED[:, j]) for j in (1, 2, 4)])
        assert measured(name, "multilabel", y, TIED) == pytest.approx(expected)
        assert np.isnan(measured(name, "multilabel", np.ones((N, D)), TIED))
        assert np.isnan(measured(name, "multilabel", np.zeros((N, D)), TIED))
    low = TIED.copy()
    low[:, 0] = 0  # neither true nor predicted
    assert measured("f1_macro", "multilabel", y, low) == pytest.approx(of_labels("f1_macro", y, low))
    assert measured("f1_macro", "multilabel", np.zeros((N, D)), 0 * TIED) == 0


@pytest.mark.parametrize("name", NEW)
def test_cells_that_were_not_observed(name):
    weight = np.where(RNG.random((N, D)) < 0.3, 0.0, RNG.random((N, D)))
    found = measured(name, "multilabel", LABELS, TIED, weight)
    if name == "f1_micro":
        expected = reference.f1_score(LABELS.ravel(), TIED.ravel() > 0.5, sample_weight=weight.ravel())
    else:
        own = "f1_micro" if name == "f1_macro" else name
        expected = np.mean(
            [
                of_labels(own, LABELS[:, [j]], TIED[:, [j]], weight[:, j])
                if own != "f1_micro"
                else reference.f1_score(LABELS[:, j], TIED[:, j] > 0.5, sample_weight=weight[:, j])
                for j in range(D)
            ]
        )
    assert found == pytest.approx(expected)
    blanked = np.where(weight > 0, LABELS, 1 - LABELS)
    assert measured(name, "multilabel", blanked, TIED, weight) == found


@pytest.mark.parametrize("name", NEW)
def test_the_order_of_rows_changes_no_bit(name):
    order = RNG.permutation(N)
    weight = 10.0 ** RNG.uniform(-9, 9, N)
    for kind, y, p in (("multilabel", LABELS, TIED), ("multiclass", CODES, SHARES)):
        assert measured(name, kind, y[order], p[order], weight[order]) == measured(name, kind, y, p, weight)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1e300])
def test_weights_of_any_size(name, factor):
    expected = measured(name, "multilabel", LABELS, TIED, WEIGHT)
    assert measured(name, "multilabel", LABELS, TIED, WEIGHT * factor) == pytest.approx(expected)
    expected = measured(name, "multiclass", CODES, SHARES, WEIGHT)
    assert measured(name, "multiclass", CODES, SHARES, WEIGHT * factor) == pytest.approx(expected)


@pytest.mark.parametrize("name", NEW)
def test_blocks_of_columns_give_the_mean_of_all(name):
    n_rows, width = 64, 2 * BLOCK_CELLS // 64 + 3
    y = (RNG.random((n_rows, width)) < 0.4).astype(np.float64)
    p = RNG.random((n_rows, width))
    sparse = scipy.sparse.csr_array(y)
    made = make_metrics(name, default="none", kind="multilabel")[0]
    assert made.function(sparse, p, None) == pytest.approx(of_labels(name, y, p))


def test_a_score_of_nan_gives_nan():
    p = TIED.copy()
    p[3, 1] = np.nan
    for name in ("auc", "average_precision"):
        assert np.isnan(measured(name, "multilabel", LABELS, p))


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_mape(weight):
    y, p = RNG.normal(size=(2, N, D))
    y[:5, 0] = 0
    expected = reference.mean_absolute_percentage_error(y, p, sample_weight=weight)
    assert measured("mape", "regression", y, p, weight) == pytest.approx(expected)
    assert not make_metrics("mape", default="none", kind="regression")[0].greater_is_better


# --- propensities ------------------------------------------------------------------------------------------


def by_hand(y, scores, k, propensities):
    """Sums over the rows of what the k best are worth, and of what the best ranking is."""
    worth = y / propensities
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(worth, order, axis=1).sum(axis=1)
    return found, -np.sort(-worth, axis=1)[:, :k].sum(axis=1)


def test_propensities_of_jain_et_al():
    counts = LABELS.sum(axis=0)
    c = (np.log(N) - 1) * 2.5**0.55
    expected = 1 / (1 + c * np.exp(-0.55 * np.log(counts + 1.5)))
    np.testing.assert_allclose(label_propensities(LABELS), expected)
    np.testing.assert_allclose(label_propensities(scipy.sparse.csc_matrix(LABELS)), expected)
    np.testing.assert_allclose(label_propensities(LABELS.astype(bool)), expected)
    assert (label_propensities(LABELS[:2]) == 1).all()  # log 2 is below 1
    assert (label_propensities(LABELS, a=0.5, b=0.4) != expected).all()
    with pytest.raises(ValueError, match=r"y has shape \(240,\)"):
        label_propensities(CODES)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("k", [1, 3, D])
def test_precision_by_propensities(k, weight):
    training = (RNG.random((500, D)) < [0.01, 0.3, 0.5, 0.02, 0.2]).astype(np.float64)
    propensities = label_propensities(training)
    found, best = (np.average(rows, weights=weight) for rows in by_hand(LABELS, TIED, k, propensities))
    assert psp_at_k(LABELS, TIED, k, propensities, weight) == pytest.approx(found / best)
    known = KnownTargets(training=training)
    assert measured(f"psp@{k}", "multilabel", LABELS, TIED, weight, known) == pytest.approx(found / best)
    known = KnownTargets(training=scipy.sparse.csr_array(training))
    y = scipy.sparse.csr_array(LABELS)
    assert measured(f"psp@{k}", "multilabel", y, TIED, weight, known) == pytest.approx(found / best)
    codes = training.argmax(axis=1)
    of_classes = label_propensities(np.eye(D)[codes])
    found, best = (
        np.average(rows, weights=weight) for rows in by_hand(np.eye(D)[CODES], SHARES, k, of_classes)
    )
    known = KnownTargets(training=codes)
    assert measured(f"psp@{k}", "multiclass", CODES, SHARES, weight, known) == pytest.approx(found / best)
    assert psp_at_k(CODES, SHARES, k, of_classes, weight) == pytest.approx(found / best)


def test_precision_by_propensities_of_no_label():
    assert psp_at_k(np.zeros((3, D)), TIED[:3], 2, np.ones(D)) == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.ones(3), r"propensity has shape \(3,\); it must hold 5"), (np.zeros(D), "numbers above 0")],
)
def test_bad_propensities(values, message):
    with pytest.raises(ValueError, match=message):
        psp_at_k(LABELS, TIED, 2, values)
    with pytest.raises(ValueError, match="k must be from 1 to 5"):
        psp_at_k(LABELS, TIED, 6, np.ones(D))


def test_it_is_measured_while_training():
    X = RNG.normal(size=(N, 4))
    y = (X + 0.5 * RNG.normal(size=X.shape) > [0, 0.5, 1, 1.5]).astype(int)
    model = PolyleafClassifier(n_estimators=8, eval_metric=["psp@2", "auc", "f1_macro"], sketch=None)
    model.fit(X[80:], y[80:], eval_set=(X[:80], y[:80]))
    p = model.predict_proba(X[:80])
    last = {name: values[-1] for name, values in model.evals_result_["validation_0"].items()}
    assert last["psp@2"] == pytest.approx(psp_at_k(y[:80], p, 2, label_propensities(y[80:])))
    assert last["auc"] == pytest.approx(reference.roc_auc_score(y[:80], p))
    assert last["f1_macro"] == pytest.approx(
        reference.f1_score(y[:80], model.predict(X[:80]), average="macro")
    )
    assert model.best_score_ == {"validation_0": last}


# --- each target by itself ---------------------------------------------------------------------------------


def test_each_target_by_itself():
    X = RNG.normal(size=(N, 4))
    Y = X @ RNG.normal(size=(4, 3))
    model = PolyleafRegressor(n_estimators=4, eval_metric=["rmse_per_target", "mae"], early_stopping_rounds=2)
    model.fit(X[80:], Y[80:], eval_set=(X[:80], Y[:80]))
    history = model.evals_result_["validation_0"]
    assert list(history) == ["target_0/rmse", "target_1/rmse", "target_2/rmse", "rmse", "mae"]
    plain = PolyleafRegressor(n_estimators=4, eval_metric=["rmse", "mae"])
    plain.fit(X[80:], Y[80:], eval_set=(X[:80], Y[:80]))
    assert {name: history[name] for name in ("rmse", "mae")} == plain.evals_result_["validation_0"]
    errors = [np.sqrt(np.mean((p - Y[:80]) ** 2, axis=0)) for p in model.staged_predict(X[:80])]
    found = np.transpose([history[f"target_{j}/rmse"] for j in range(3)])
    np.testing.assert_allclose(found, errors)


def test_names_of_targets_and_of_labels():
    pd = pytest.importorskip("pandas")
    X = RNG.normal(size=(N, 4))
    frame = pd.DataFrame((X > 0.3).astype(int), columns=list("abcd"))
    model = PolyleafClassifier(n_estimators=3, eval_metric="auc_per_target", sketch=None)
    model.fit(X, frame, eval_set=(X, frame))
    history = model.evals_result_["validation_0"]
    assert list(history) == ["a/auc", "b/auc", "c/auc", "d/auc", "auc"]
    assert history["auc"][-1] == pytest.approx(np.mean([history[f"{name}/auc"][-1] for name in "abcd"]))


def test_the_last_metric_is_never_that_of_a_single_target():
    """Early stopping watches it."""
    known = KnownTargets(names=("a", "b"))
    for wanted, names in (
        ("r2_per_target", ["a/r2", "b/r2", "r2"]),
        (["rmse", "rmse_per_target"], ["a/rmse", "b/rmse", "rmse"]),
        (["mae", "mape_per_target"], ["a/mape", "b/mape", "mae", "mape"]),
        (["mae_per_target", "mse_per_target"], ["a/mae", "b/mae", "a/mse", "b/mse", "mae", "mse"]),
    ):
        made = make_metrics(wanted, default="rmse", kind="regression", known=known)
        assert [metric.name for metric in made] == names
        assert {metric.greater_is_better for metric in made} == {"r2" in names}


def test_a_target_without_observations_is_nan():
    known = KnownTargets(names=("a", "b"))
    y, p = RNG.normal(size=(2, N, 2))
    weight = np.ones((N, 2))
    weight[:, 1] = 0
    for name in ("rmse", "r2"):
        a, b, _ = make_metrics(f"{name}_per_target", default="rmse", kind="regression", known=known)
        assert a.function(y, p, weight) == pytest.approx(a.function(y[:, [0]], p[:, [0]], None))
        assert np.isnan(b.function(y, p, weight))


def test_examples():
    for module in (propensity, callables):
        with warnings.catch_warnings():
            done = doctest.testmod(module)
        assert done.attempted > 0
        assert done.failed == 0
