"""Functions of scikit-learn measure the cells that were observed, column by column, or are refused."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as reference
from sklearn.metrics import get_scorer, make_scorer

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv
from polyleaf.metrics import make_metric

RNG = np.random.default_rng(5)
N = 160
X = RNG.normal(size=(N, 4))
NUMBERS = np.exp(0.3 * X[:, :3] + 0.1 * RNG.normal(size=(N, 3)))
LABELS = (X[:, :3] + 0.5 * RNG.normal(size=(N, 3)) > 0).astype(float)
WEIGHT = RNG.uniform(0.2, 2, size=(N, 3))
MACRO_F1 = functools.partial(reference.f1_score, average="macro")
VARIANCE_WEIGHTED = functools.partial(reference.r2_score, multioutput="variance_weighted")


def with_gaps(y):
    y = y.copy()
    y[:40, 1] = np.nan
    y[30:50, 2] = np.nan
    return y


def regressor(metric):
    return PolyleafRegressor(n_estimators=4, eval_metric=metric)


def classifier(metric):
    return PolyleafClassifier(n_estimators=4, eval_metric=metric)


def last(model):
    (values,) = model.evals_result_["validation_0"].values()
    return values[-1]


def by_hand(function, y, prediction, weight):
    """Return the mean over the columns, each of the rows that have it."""
    of_columns = []
    for column in range(y.shape[1]):
        seen = ~np.isnan(y[:, column])
        values = y[seen, column], prediction[seen, column]
        of_columns.append(function(*values, sample_weight=weight[seen, column]))
    return np.mean(of_columns)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("metric", "function", "sign"),
    [
        (reference.mean_squared_error, reference.mean_squared_error, 1),
        (reference.root_mean_squared_error, reference.root_mean_squared_error, 1),
        (reference.median_absolute_error, reference.median_absolute_error, 1),
        (reference.r2_score, reference.r2_score, 1),
        (make_metric(reference.mean_absolute_error, name="mine"), reference.mean_absolute_error, 1),
        (
            functools.partial(reference.mean_squared_error, multioutput="uniform_average"),
            reference.mean_squared_error,
            1,
        ),
        (
            functools.partial(reference.mean_pinball_loss, alpha=0.2),
            functools.partial(reference.mean_pinball_loss, alpha=0.2),
            1,
        ),
        (get_scorer("neg_mean_squared_error"), reference.mean_squared_error, -1),
    ],
)
def test_numbers_column_by_column(metric, function, sign, weighted):
    y, weight = with_gaps(NUMBERS), WEIGHT if weighted else np.ones_like(WEIGHT)
    given = {"eval_sample_weight": weight} if weighted else {}
    model = regressor(metric).fit(X, y, eval_set=(X, y), **given)
    assert last(model) == pytest.approx(sign * by_hand(function, y, model.predict(X), weight), rel=1e-5)


def test_complete_targets_with_weights_of_cells():
    model = regressor(reference.mean_squared_error)
    model.fit(X, NUMBERS, eval_set=(X, NUMBERS), eval_sample_weight=WEIGHT)
    expected = by_hand(reference.mean_squared_error, NUMBERS, model.predict(X), WEIGHT)
    assert last(model) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("metric", [reference.roc_auc_score, reference.average_precision_score])
def test_labels_column_by_column(metric):
    y = with_gaps(LABELS)
    model = classifier(metric).fit(X, y, eval_set=(X, y))
    chance = model.predict_proba(X)
    assert last(model) == pytest.approx(by_hand(metric, y, chance, np.ones_like(y)))


def test_decisions_column_by_column():
    y = with_gaps(LABELS)
    model = classifier(reference.hamming_loss).fit(X, y, eval_set=(X, y))
    assert last(model) == pytest.approx(by_hand(reference.hamming_loss, y, model.predict(X), np.ones_like(y)))


def test_a_target_without_observations_in_a_set_is_left_out():
    y = NUMBERS.copy()
    y[:, 1] = np.nan
    model = regressor(reference.mean_squared_error).fit(X, NUMBERS, eval_set=(X, y))
    expected = reference.mean_squared_error(NUMBERS[:, [0, 2]], model.predict(X)[:, [0, 2]])
    assert last(model) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "y", "metric", "name"),
    [
        (regressor, NUMBERS, VARIANCE_WEIGHTED, "partial"),
        (regressor, NUMBERS, make_scorer(reference.r2_score, multioutput=[0.5, 0.2, 0.3]), "r2_score"),
        (classifier, LABELS, reference.accuracy_score, "accuracy_score"),
        (classifier, LABELS, make_metric(MACRO_F1, name="f1"), "f1"),
        (classifier, LABELS, make_scorer(reference.f1_score, average="micro"), "f1_score"),
        (classifier, LABELS, functools.partial(reference.roc_auc_score, average="micro"), "partial"),
    ],
)
def test_what_is_no_mean_over_columns_is_refused_by_name(make, y, metric, name):
    gaps = with_gaps(y)
    words = rf"eval_metric '{name}' of scikit-learn.* one weight a row, but .*late.* has missing values"
    with pytest.raises(ValueError, match=words):
        make(metric).fit(X, gaps, eval_set={"early": (X, y), "late": (X, gaps)})
    with pytest.raises(ValueError, match="one weight a row, but y has missing values"):
        cv(make(metric), X, gaps, cv=2)
    # What is measured counts, not what is trained on; and weights of rows are no obstacle.
    assert np.isfinite(last(make(metric).fit(X, gaps, eval_set=(X, y), eval_sample_weight=WEIGHT[:, 0])))
    make(metric).fit(X, gaps)


def test_groups_of_a_mixed_model():
    """A gap elsewhere concerns no other group, and rows without a class bring none along."""
    size, kind = NUMBERS[:, 0].copy(), np.digitize(X[:, 1], [-1.5, 0]).astype(object)
    size[:20] = np.nan
    tags = LABELS.astype(int)
    kind[(kind == 0) | (np.arange(N) < 30)] = None
    kind[:30:3] = 0
    table = pd.DataFrame({"size": size, "kind": kind, "t0": tags[:, 0], "t1": tags[:, 1]})
    targets = {
        "size": "regression",
        "kind": "multiclass",
        "tags": {"kind": "multilabel", "columns": ["t0", "t1"]},
    }
    wanted = {"size": reference.mean_squared_error, "kind": MACRO_F1, "tags": reference.accuracy_score}
    model = PolyleafMixed(targets, n_estimators=4, min_samples_leaf=3, eval_metric=wanted)
    some = table[30:]
    history = model.fit(X, table, eval_set=(X[30:], some)).evals_result_["validation_0"]
    found, seen = model.predict(X[30:]), some["kind"].notna()
    expected = [
        reference.mean_squared_error(some["size"], found["size"]),
        MACRO_F1(some["kind"][seen].astype(int), found["kind"][seen.to_numpy()].astype(int)),
        reference.accuracy_score(some[["t0", "t1"]], found[["t0", "t1"]]),
    ]
    values = [history[key][-1] for key in list(history)[:3]]
    np.testing.assert_allclose(values, expected)
    table.loc[50, "t1"] = np.nan
    with pytest.raises(ValueError, match=r"'accuracy_score' of scikit.* but 'tags' of .* has missing"):
        model.fit(X, table, eval_set=(X, table))
