"""A table that is binned already: the model files of the rows themselves, byte for byte, or a refusal."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import streams
from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_binned
from polyleaf.callbacks import Checkpoint
from polyleaf.params.combinations import Refused

pl = pytest.importorskip("polars")

N = 400
RNG = np.random.default_rng(3)
X = np.column_stack(
    [
        RNG.normal(size=N),
        np.where(RNG.random(N) < 0.5, 0.0, RNG.normal(size=N)),
        np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        RNG.permutation(N),
    ]
)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    kind=pd.Categorical(np.array(["low", "mid", "ä中"])[np.arange(N) % 3])
)
NUMBERS = np.column_stack([X[:, 0] * 2 + np.arange(N) % 3, X[:, 3] / 50, RNG.normal(size=N)])
GAPS = np.where(RNG.random((N, 3)) < [0.0, 0.3, 0.4], np.nan, NUMBERS)
TEXT = np.array(["fair", "good", "poor"])[np.digitize(X[:, 0], [-0.5, 0.5])]
LABELS = (NUMBERS > [1.0, 4.0, 0.0]).astype(int)
WEIGHT = RNG.gamma(1.0, size=N) * (np.arange(N) % 7 > 0)
CELLS = RNG.gamma(1.0, size=(N, 3))
MIXED = {"size": NUMBERS[:, 0], "grade": TEXT, "hit": LABELS[:, 1]}
GROUPS = {"size": "regression", "grade": "multiclass", "hit": "binary"}
SPARSE = {"objective": "clipped_squared_error", "sparse_leaves": 2}
SMALL = {"n_estimators": 4, "min_samples_leaf": 5, "max_depth": 4, "random_state": 0, "n_jobs": 2}
FEW = {"max_bins": 20}


def regressor(**params):
    return PolyleafRegressor(**SMALL | FEW | params)


def classifier(**params):
    return PolyleafClassifier(**SMALL | FEW | params)


# Estimator, X, y and weights.
PROBLEMS = {
    "one target": (regressor(), X, NUMBERS[:, 0], None),
    "targets": (regressor(), X, NUMBERS, None),
    "float32": (regressor(), X.astype(np.float32), NUMBERS, None),
    "sparse X": (regressor(), scipy.sparse.csr_array(X), NUMBERS, None),
    "a frame": (regressor(), FRAME, pd.DataFrame(NUMBERS, columns=["u", "v", "w"]), None),
    "polars": (regressor(), pl.from_pandas(FRAME), pl.Series("price", NUMBERS[:, 1]), None),
    "categories": (
        regressor(categorical_features=["kind", "d"]),
        FRAME.assign(d=X[:, 3] % 9),
        NUMBERS,
        None,
    ),
    "weights": (regressor(), X, NUMBERS, WEIGHT),
    "equal weights": (regressor(), X, NUMBERS, np.full(N, 3.7)),
    "weights of cells": (regressor(), X, NUMBERS, CELLS),
    "missing targets": (regressor(), X, GAPS, None),
    "missing rows": (regressor(), FRAME, np.where(np.arange(N) % 5 == 0, np.nan, NUMBERS[:, 0]), None),
    "missing targets and weights": (regressor(), FRAME, GAPS, WEIGHT),
    "quantiles": (regressor(objective="quantile", quantile_levels=[0.1, 0.5, 0.9]), X, GAPS, None),
    "a bin for each value": (regressor(max_bins=None), X, NUMBERS, WEIGHT),
    "one output per tree": (regressor(multi_strategy="one_output_per_tree"), X, NUMBERS, None),
    "samples": (regressor(subsample=0.5, colsample_bytree=0.5), X, NUMBERS, WEIGHT),
    "classes of text": (classifier(), X, TEXT, None),
    "classes of objects": (classifier(), FRAME, pd.Series(TEXT, name="grade", dtype=object), WEIGHT),
    "two classes": (classifier(), X, X[:, 0] > 0, WEIGHT),
    "labels": (classifier(), X, LABELS, CELLS),
    "sparse labels": (classifier(**SPARSE), X, scipy.sparse.csr_array(LABELS), WEIGHT),
}


def file_of(model, folder):
    return streams.file_of(model, folder)


def made(model, X, *args):
    return BinnedTable.make(
        X, *args, max_bins=model.max_bins, categorical_features=model.categorical_features, n_jobs=1
    )


def again(model):
    return type(model)(**model.get_params())


# --- the same files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_file_of_the_rows_themselves(name, tmp_path, monkeypatch):
    """Also after a round trip through a file; and nothing is binned again."""
    model, table, y, weight = PROBLEMS[name]
    expected = file_of(again(model).fit(table, y, weight), tmp_path)
    binned = made(model, table, y, weight)
    binned.save_binned(tmp_path / "table")

    def refuse(*args, **more):
        raise AssertionError("binned again")

    monkeypatch.setattr("polyleaf._core.bin_table", refuse)
    assert file_of(again(model).fit(binned), tmp_path) == expected
    assert file_of(again(model).fit(load_binned(tmp_path / "table")), tmp_path) == expected


@pytest.mark.parametrize("y", [NUMBERS[:, 0], NUMBERS], ids=["one", "several"])
def test_y_may_come_with_fit(y, tmp_path):
    binned = BinnedTable.make(X, max_bins=20)
    assert file_of(regressor().fit(binned, y), tmp_path) == file_of(regressor().fit(X, y), tmp_path)
    with_weight = BinnedTable.make(X, sample_weight=WEIGHT + 1, max_bins=20)
    expected = file_of(regressor().fit(X, y, WEIGHT + 1), tmp_path)
    assert file_of(regressor().fit(with_weight, y), tmp_path) == expected


@pytest.mark.parametrize("weight", [None, WEIGHT + 0.5], ids=["plain", "weighted"])
def test_a_mixed_model(weight, tmp_path):
    def model():
        return PolyleafMixed(GROUPS, **SMALL | FEW)

    expected = file_of(model().fit(FRAME, MIXED, weight), tmp_path)
    binned = BinnedTable.make(FRAME, sample_weight=weight, max_bins=20)
    fitted = model().fit(binned, MIXED)
    assert file_of(fitted, tmp_path) == expected
    found = fitted.predict(binned)
    for name, values in fitted.predict(FRAME).items():
        np.testing.assert_array_equal(found[name], values)
    assert fitted.score(binned, MIXED) == fitted.score(FRAME, MIXED, weight)
    with pytest.raises(TypeError, match="make the table without y"):
        model().fit(BinnedTable.make(FRAME, NUMBERS, max_bins=20))


def test_weights_of_classes_go_with_the_table(tmp_path):
    """The remedy that the refusal names is one: but for the parameter, the model is the same."""
    share = np.unique(TEXT, return_counts=True)[1]
    balanced = (N / (3 * share))[np.unique(TEXT, return_inverse=True)[1]]
    expected = classifier(class_weight="balanced").fit(X, TEXT).set_params(class_weight=None)
    found = classifier().fit(BinnedTable.make(X, TEXT, balanced, max_bins=20))
    assert file_of(found, tmp_path) == file_of(expected, tmp_path)


def test_what_changes_no_cut_point_is_no_refusal(tmp_path):
    """A bin for each value, or weights that are all equal or the same ones once more."""
    binned = BinnedTable.make(X, TEXT, max_bins=None)
    params = {"class_weight": "balanced", "max_bins": None}
    assert file_of(classifier(**params).fit(binned), tmp_path) == file_of(
        classifier(**params).fit(X, TEXT), tmp_path
    )
    same = np.arange(N) % 2
    binned = BinnedTable.make(X, same, WEIGHT + 1, max_bins=20)
    model = classifier(class_weight={0: 4.0, 1: 4.0})
    expected = file_of(again(model).fit(X, same, WEIGHT + 1), tmp_path)
    assert file_of(again(model).fit(binned), tmp_path) == expected


# --- from files and batches --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["path", "dataset", "lazy frame", "batches"])
def test_made_from_a_source(kind, tmp_path):
    import pyarrow.dataset

    folder = tmp_path / "parts"
    folder.mkdir()
    names, y = [*streams.FEATURES, "price", "cost", "w"], ["price", "cost"]
    streams.write(folder, streams.ARROW.select(names))
    settings = {"max_bins": 20, "categorical_features": "auto"}
    table = streams.ARROW.select(streams.FEATURES)
    plain = (table, streams.ARROW.select(y), streams.ARROW["w"])
    if kind == "lazy frame":
        plain = tuple(pl.from_arrow(one) for one in plain)
    if kind == "batches":
        plain = tuple(one.to_pandas() for one in plain)
        given = (streams.cut(plain, [50, 51, 200]),)
    else:
        source = {
            "path": lambda: str(folder),
            "dataset": lambda: pyarrow.dataset.dataset(folder),
            "lazy frame": lambda: pl.scan_parquet(folder / "*.parquet"),
        }[kind]()
        given = (source, y, "w")
    binned = BinnedTable.make(*given, **settings)
    model = PolyleafRegressor(**streams.SMALL | settings)
    expected = file_of(again(model).fit(*given), tmp_path)
    assert file_of(again(model).fit(binned), tmp_path) == expected
    assert file_of(again(model).fit(BinnedTable.make(*plain, **settings)), tmp_path) == expected


@pytest.mark.cpu_only("nothing is trained")
def test_a_source_without_y(tmp_path):
    streams.write(tmp_path, streams.ARROW.select(["a", "b"]))
    binned = BinnedTable.make(tmp_path)
    assert binned.y is None
    assert binned.feature_names == ("a", "b")
    assert binned.digest == BinnedTable.make(streams.ARROW.select(["a", "b"])).digest


# --- going on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["targets", "missing targets and weights", "sparse labels", "categories"])
def test_going_on_is_one_run(name, tmp_path):
    model, table, y, weight = PROBLEMS[name]
    binned = made(model, table, y, weight)
    whole = again(model).set_params(n_estimators=8).fit(table, y, weight)
    path = tmp_path / "checkpoint"
    half = again(model).set_params(callbacks=[Checkpoint(path, every=2)]).fit(binned)
    added = again(model).fit(binned, init_model=half)
    np.testing.assert_array_equal(added._forest.values, whole._forest.values)
    np.testing.assert_array_equal(added._forest.threshold, whole._forest.threshold)
    resumed = again(model).set_params(n_estimators=8).fit(binned, resume=path)
    assert resumed.n_estimators_ == 8
    np.testing.assert_array_equal(resumed._forest.values, whole._forest.values)
    warm = again(model).set_params(warm_start=True).fit(binned).set_params(n_estimators=8).fit(binned)
    np.testing.assert_array_equal(warm._forest.values, whole._forest.values)


def test_a_checkpoint_knows_its_table(tmp_path):
    path = tmp_path / "checkpoint"
    binned = BinnedTable.make(X, NUMBERS, max_bins=20)
    regressor(callbacks=[Checkpoint(path, every=2)]).fit(binned)
    with pytest.raises(ValueError, match="X was a BinnedTable, and is a table of numbers now"):
        regressor().fit(X, NUMBERS, resume=path)
    with pytest.raises(ValueError, match="X holds other values"):
        regressor().fit(BinnedTable.make(-X, NUMBERS, max_bins=20), resume=path)
    regressor(callbacks=[Checkpoint(path, every=2)]).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="X was a table of numbers, and is a BinnedTable now"):
        regressor().fit(binned, resume=path)


def test_models_with_other_cut_points_are_refused():
    model = regressor().fit(X, NUMBERS)
    other = BinnedTable.make(X[::2] * 1.01, NUMBERS[::2], max_bins=20)
    with pytest.raises(ValueError, match=r"init_model: X is a BinnedTable, and a threshold .* no cut point"):
        regressor().fit(other, init_model=model)
    for method in ("predict", "apply", "score"):
        with pytest.raises(ValueError, match=r"no cut point .*pass the rows themselves"):
            getattr(model, method)(other)
    by_kind = regressor().fit(FRAME, NUMBERS)
    fewer = BinnedTable.make(FRAME.assign(kind=FRAME["kind"].cat.rename_categories({"low": "deep"})), NUMBERS)
    with pytest.raises(ValueError, match="'kind' has other values"):
        by_kind.predict(fewer)
    with pytest.raises(ValueError, match=r"init_model: .*'kind' has other values"):
        regressor(max_bins=255).fit(fewer, init_model=by_kind)


# --- scores of the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_predictions_are_those_of_the_rows(name):
    model, table, y, weight = PROBLEMS[name]
    binned = made(model, table, y, weight)
    fitted = again(model).fit(binned)
    rows = np.arange(N)
    if weight is not None and weight.ndim == 1:
        rows = rows[weight > 0]
    elif name == "missing rows":
        rows = rows[~np.isnan(y)]
    if isinstance(table, pd.DataFrame | pd.Series):
        there = table.iloc[rows]
    else:
        there = table if len(rows) == N else table[rows]
    for method in ("predict", "predict_proba", "decision_function", "apply"):
        if hasattr(fitted, method):
            found, expected = getattr(fitted, method)(binned), getattr(fitted, method)(there)
            if scipy.sparse.issparse(found):
                found, expected = found.toarray(), expected.toarray()
            np.testing.assert_array_equal(found, expected)
    for found, expected in zip(fitted.staged_predict(binned), fitted.staged_predict(there), strict=True):
        np.testing.assert_array_equal(found, expected)
    targets = y.iloc[rows] if isinstance(y, pd.DataFrame | pd.Series) else y if len(rows) == N else y[rows]
    own = None if weight is None else weight[rows]
    assert fitted.score(binned) == fitted.score(there, targets, own)


def test_the_best_labels_by_codes():
    binned = BinnedTable.make(X, LABELS, max_bins=20)
    fitted = classifier().fit(binned)
    np.testing.assert_array_equal(fitted.predict(binned, top_k=2), fitted.predict(X, top_k=2))
    assert (fitted.predict(binned, sparse=True) != fitted.predict(X, sparse=True)).nnz == 0


def test_evaluation_sets_may_be_rows():
    binned = BinnedTable.make(X, NUMBERS, max_bins=20)
    plain = regressor(early_stopping_rounds=2).fit(X, NUMBERS, eval_set=(X[:99], NUMBERS[:99]))
    found = regressor(early_stopping_rounds=2).fit(binned, eval_set=(X[:99], NUMBERS[:99]))
    assert found.evals_result_ == plain.evals_result_


# --- folds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["targets", "missing targets", "classes of text", "labels", "categories"])
def test_folds_of_a_binned_table(name):
    model, table, y, weight = PROBLEMS[name]
    if name == "labels":
        weight = None
    binned = made(model, table, y, weight)
    plain = cv(model, table, y, sample_weight=weight, cv=3, return_models=True)
    found = cv(model, binned, cv=3, return_models=True)
    for metric, values in plain.folds.items():
        np.testing.assert_array_equal(found.folds[metric], values)
    for one, other in zip(found.models, plain.models, strict=True):
        np.testing.assert_array_equal(one._forest.values, other._forest.values)
    with pytest.raises(ValueError, match="given twice"):
        cv(model, binned, y)
    with pytest.raises(ValueError, match="y is missing"):
        cv(model, made(model, table))
    with pytest.raises(TypeError, match="needs y"):
        cv(model, table)


def test_folds_with_y_of_their_own():
    mixed = PolyleafMixed(GROUPS, **SMALL | FEW)
    plain = cv(mixed, X, MIXED, cv=2)
    found = cv(mixed, BinnedTable.make(X, max_bins=20), MIXED, cv=2)
    np.testing.assert_array_equal(found.folds["loss"], plain.folds["loss"])


# --- refusals ----------------------------------------------------------------------------------------------


PLAIN = BinnedTable.make(X, max_bins=20)
WITH_Y = BinnedTable.make(X, TEXT, max_bins=20)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: classifier(class_weight="balanced").fit(WITH_Y), "class_weight out"),
        (lambda: classifier(class_weight={"good": 2}).fit(WITH_Y), "not binned with"),
        (lambda: classifier().fit(WITH_Y, sample_weight=WEIGHT + 1), "not binned with"),
        (lambda: regressor().fit(PLAIN, GAPS), "BinnedTable.make"),
        (lambda: regressor().fit(PLAIN, np.where(X[:, 0] > 0, np.nan, 1.0)), "BinnedTable.make"),
        (lambda: regressor().fit(PLAIN, NUMBERS, CELLS), "not binned with"),
        (lambda: cv(classifier(class_weight="balanced"), WITH_Y), "not binned with"),
        (
            lambda: regressor(max_bins=None).fit(
                BinnedTable.make(X, max_bins=None), np.where(X[:, 0] > 0, np.nan, 1.0)
            ),
            "left out",
        ),
    ],
)
def test_other_weights_than_those_it_was_binned_with(fit, words):
    with pytest.raises(Refused, match=words) as caught:
        fit()
    assert caught.value.row == "binned X, other weights"


@pytest.mark.parametrize(
    ("fit", "error", "words"),
    [
        (lambda: regressor().fit(PLAIN), ValueError, "y is missing: the BinnedTable was made without it"),
        (lambda: classifier().fit(WITH_Y, TEXT), ValueError, "y is given twice"),
        (
            lambda: regressor().fit(BinnedTable.make(X, NUMBERS, WEIGHT), None, WEIGHT),
            ValueError,
            "sample_weight is",
        ),
        (lambda: regressor().fit(PLAIN, NUMBERS[:9]), ValueError, "9"),
        (lambda: regressor().fit(PLAIN, "price"), ValueError, "y"),
        (lambda: regressor().fit(WITH_Y), ValueError, "y"),
        (
            lambda: regressor(max_bins=255).fit(PLAIN, NUMBERS),
            ValueError,
            "max_bins is 255, but .*max_bins=20",
        ),
        (
            lambda: regressor(categorical_features=[3]).fit(PLAIN, NUMBERS),
            ValueError,
            "categorical_features are",
        ),
        (lambda: regressor(categorical_features=["no"]).fit(PLAIN, NUMBERS), ValueError, "names"),
        (lambda: regressor(monotone_constraints=[1, 1]).fit(PLAIN, NUMBERS), ValueError, "monotone"),
        (lambda: BinnedTable.make(PLAIN), TypeError, "BinnedTable already"),
        (lambda: regressor().fit(X, NUMBERS).score(X), TypeError, "needs y"),
        (lambda: regressor().fit(X, NUMBERS).score(PLAIN), ValueError, "y is missing"),
        (lambda: regressor().fit(X[:, :3], NUMBERS).predict(PLAIN), ValueError, "4 features, but .* 3"),
        (
            lambda: regressor().fit(FRAME, NUMBERS).predict(made(regressor(), FRAME[["b", "a"]])),
            ValueError,
            "X: ",
        ),
    ],
)
def test_bad_input(fit, error, words):
    with pytest.raises(error, match=words):
        fit()


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = regressor().fit(X, NUMBERS)
    before = model.predict(X)
    with pytest.raises(ValueError, match="y is missing"):
        model.fit(PLAIN)
    np.testing.assert_array_equal(model.predict(X), before)


def test_no_warning_on_the_way():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = regressor().fit(made(regressor(), FRAME, NUMBERS))
        fitted.predict(FRAME)
    assert list(fitted.feature_names_in_) == list(FRAME.columns)
