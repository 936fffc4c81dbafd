"""Rows with the cut points of another binned table: what is measured and predicted is that of the rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import streams
from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_binned

pl = pytest.importorskip("polars")

N, HELD = 300, 120
RNG = np.random.default_rng(11)
# The second column has gaps in the held-out rows alone; values there reach beyond those of training.
X = np.column_stack([RNG.normal(size=N), RNG.normal(size=N), np.round(RNG.normal(size=N), 1)])
OTHER = np.column_stack(
    [RNG.normal(size=HELD) * 3, np.where(RNG.random(HELD) < 0.3, np.nan, 1.0), RNG.normal(size=HELD)]
)
KINDS = np.array(["low", "mid", "top"])


def frame(table, kinds):
    return pd.DataFrame(table, columns=["a", "b", "c"]).assign(kind=pd.Categorical(kinds))


FRAME = frame(X, KINDS[np.arange(N) % 3])
# With a category that training has not seen, a missing one, and one fewer.
OTHER_FRAME = frame(OTHER, np.array(["new", None, "low", "top"], dtype=object)[np.arange(HELD) % 4])


def targets(table):
    noise = np.random.default_rng(len(table)).normal(size=(len(table), 2))
    return np.column_stack([table[:, 0] * 2, table[:, 2]]) + noise


Y, OTHER_Y = targets(X), targets(OTHER)
GAPS, OTHER_GAPS = (np.where(RNG.random(y.shape) < 0.3, np.nan, y) for y in (Y, OTHER_Y))
CLASSES, OTHER_CLASSES = (KINDS[np.digitize(y[:, 0], [-1.0, 1.0])] for y in (Y, OTHER_Y))
LABELS, OTHER_LABELS = ((y > 0).astype(int) for y in (Y, OTHER_Y))
WEIGHT, OTHER_WEIGHT = (RNG.integers(0, 4, n).astype(float) for n in (N, HELD))
SMALL = {"n_estimators": 12, "min_samples_leaf": 5, "max_depth": 4, "random_state": 0, "n_jobs": 2}
STOPPING = {"early_stopping_rounds": 3, "max_bins": 20}
SPARSE = {"objective": "clipped_squared_error", "sparse_leaves": 1}


def regressor(**params):
    return PolyleafRegressor(**SMALL | STOPPING | params)


def classifier(**params):
    return PolyleafClassifier(**SMALL | STOPPING | params)


# Estimator, training rows (X, y, weights) and held-out ones.
PROBLEMS = {
    "targets": (regressor(), (X, Y), (OTHER, OTHER_Y)),
    "many bins": (regressor(max_bins=None), (X, Y[:, 0]), (OTHER, OTHER_Y[:, 0])),
    "255 bins": (regressor(max_bins=255), (X, Y[:, 0]), (OTHER, OTHER_Y[:, 0])),
    "categories": (regressor(), (FRAME, Y), (OTHER_FRAME, OTHER_Y)),
    "weights": (regressor(), (FRAME, Y, WEIGHT), (OTHER_FRAME, OTHER_Y, OTHER_WEIGHT)),
    "missing targets": (regressor(), (X, GAPS), (OTHER, OTHER_GAPS)),
    "sparse X": (
        regressor(),
        (scipy.sparse.csr_array(np.round(X)), Y),
        (scipy.sparse.csc_array(np.round(np.nan_to_num(OTHER))), OTHER_Y),
    ),
    "quantiles": (
        regressor(objective="quantile", quantile_levels=[0.2, 0.8]),
        (X, Y),
        (OTHER.astype(np.float32), OTHER_Y),
    ),
    "classes": (classifier(), (FRAME, CLASSES), (OTHER_FRAME, OTHER_CLASSES)),
    "labels": (classifier(), (X, LABELS), (OTHER, OTHER_LABELS)),
    "sparse labels": (
        classifier(**SPARSE),
        (X, scipy.sparse.csr_array(LABELS)),
        (OTHER, scipy.sparse.csr_array(OTHER_LABELS)),
    ),
}


def again(model):
    return type(model)(**model.get_params())


def made(model, rows, **more):
    return BinnedTable.make(
        *rows, max_bins=model.max_bins, categorical_features=model.categorical_features, **more
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_early_stopping_on_a_binned_set(name, tmp_path):
    """The file of the rows themselves, with what was measured in it; also by tables from files."""
    model, rows, held = PROBLEMS[name]
    weight = {"eval_sample_weight": held[2]} if len(held) > 2 else {}
    expected = again(model).fit(*rows, eval_set=held[:2], **weight)
    assert expected.n_estimators_ > 1
    binned = made(model, rows)
    other = BinnedTable.make(*held, like=binned)
    other.save_binned(tmp_path / "other")
    assert other.is_like
    for sets in (other, [other], {"validation_0": other}, (load_binned(tmp_path / "other"), None)):
        found = again(model).fit(binned, eval_set=sets)
        assert found.evals_result_ == expected.evals_result_
        assert streams.file_of(found, tmp_path) == streams.file_of(expected, tmp_path)


@pytest.mark.parametrize("name", PROBLEMS)
def test_predictions_of_held_out_rows(name):
    """The codes decide the leaves, of gaps and categories that training has not seen, too."""
    model, rows, held = PROBLEMS[name]
    fitted = again(model).set_params(early_stopping_rounds=None).fit(*rows)
    other = BinnedTable.make(held[0], like=made(model, rows))
    for method in ("predict", "predict_proba", "decision_function", "apply"):
        if hasattr(fitted, method):
            found, expected = getattr(fitted, method)(other), getattr(fitted, method)(held[0])
            if scipy.sparse.issparse(found):
                found, expected = found.toarray(), expected.toarray()
            np.testing.assert_array_equal(found, expected)
    for found, expected in zip(fitted.staged_predict(other), fitted.staged_predict(held[0]), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert fitted.score(BinnedTable.make(*held, like=made(model, rows))) == fitted.score(*held)


def test_y_and_weights_may_come_with_the_set():
    """Rows without any are left out then; a mixed model has no other way."""
    binned = BinnedTable.make(X, Y, max_bins=20)
    other = BinnedTable.make(OTHER, like=binned)
    gaps = np.where(np.arange(HELD)[:, np.newaxis] % 3 == 0, np.nan, OTHER_Y)
    for y, weight in ((OTHER_Y, None), (gaps, None), (OTHER_Y, OTHER_WEIGHT)):
        expected = regressor().fit(X, Y, eval_set=(OTHER, y), eval_sample_weight=weight)
        found = regressor().fit(binned, eval_set=(other, y), eval_sample_weight=weight)
        assert found.evals_result_ == expected.evals_result_
    mixed = PolyleafMixed({"size": "regression", "kind": "multiclass"}, **SMALL | STOPPING)
    y, held = ({"size": a[:, 0], "kind": b} for a, b in ((Y, CLASSES), (OTHER_Y, OTHER_CLASSES)))
    expected = again(mixed).fit(X, y, eval_set=(OTHER, held))
    found = again(mixed).fit(BinnedTable.make(X, max_bins=20), y, eval_set=(other, held))
    assert found.evals_result_ == expected.evals_result_


def test_the_training_table_is_a_set_too():
    binned = BinnedTable.make(X, Y, max_bins=20)
    expected = regressor().fit(X, Y, eval_set=[(X, Y), (OTHER, OTHER_Y)])
    found = regressor().fit(binned, eval_set=[binned, (OTHER, OTHER_Y)])
    assert found.evals_result_ == expected.evals_result_


def test_going_on_beside_a_binned_set():
    binned = BinnedTable.make(X, Y, max_bins=20)
    other = BinnedTable.make(OTHER, OTHER_Y, like=binned)
    params = {"early_stopping_rounds": None, "n_estimators": 4}
    half = regressor(**params).fit(binned, eval_set=other)
    found = regressor(**params).fit(binned, eval_set=other, init_model=half)
    expected = regressor(**params | {"n_estimators": 8}).fit(X, Y, eval_set=(OTHER, OTHER_Y))
    assert found.evals_result_ == expected.evals_result_


@pytest.mark.usefixtures("small_panels")
@pytest.mark.parametrize("kind", ["path", "lazy frame", "tuples", "frames", "tables"])
def test_made_from_a_source(kind, tmp_path):
    """Features are found by name; the table is that of the rows in memory."""
    names = ["price", "cost"]
    table = streams.TABLE[[*streams.FEATURES, *names, "w"]]
    binned = BinnedTable.make(
        table[:200][streams.FEATURES], table[:200][names], max_bins=20, categorical_features="auto"
    )
    rows = table[200:]
    expected = BinnedTable.make(rows[streams.FEATURES], rows[names], rows["w"], like=binned)
    given = (None, names, "w")
    if kind in ("path", "lazy frame"):
        streams.write(tmp_path, streams.ARROW.slice(200).select(table.columns[::-1].tolist()))
        source = tmp_path if kind == "path" else pl.scan_parquet(tmp_path / "*.parquet")
    elif kind == "frames":
        source = [rows[:30], rows[30:]]
    elif kind == "tables":
        source = [rows[:30][streams.FEATURES], rows[30:][streams.FEATURES]]
        given = (None, rows[names], rows["w"])
    else:
        source = streams.cut([rows[streams.FEATURES], rows[names], rows["w"]], [9, 9], len(rows))
        given = (None, None, None)
    found = BinnedTable.make(source, *given[1:], like=binned)
    np.testing.assert_array_equal(found.matrix.codes(), expected.matrix.codes())
    np.testing.assert_array_equal(found.y, expected.y)
    np.testing.assert_array_equal(found.sample_weight, expected.sample_weight)
    assert found.has_bins_of(binned)
    assert found.feature_names == binned.feature_names


# --- errors ------------------------------------------------------------------------------------------------


def test_what_does_not_fit():
    binned = BinnedTable.make(FRAME, Y, max_bins=20)
    other = BinnedTable.make(OTHER_FRAME, OTHER_Y, like=binned)
    own = BinnedTable.make(OTHER_FRAME, OTHER_Y, max_bins=20)
    plain = BinnedTable.make(OTHER_FRAME, max_bins=20)
    trainer = regressor(early_stopping_rounds=None)
    for call, kind, words in [
        (lambda: BinnedTable.make(OTHER_FRAME, like=FRAME), TypeError, "like must be a BinnedTable; got Dat"),
        (
            lambda: BinnedTable.make(FRAME.assign(d=1), like=binned),
            ValueError,
            r"(?s)unseen.*- d",
        ),
        (lambda: BinnedTable.make(OTHER_FRAME[["a", "b", "c"]], like=binned), ValueError, "missing:\n- kind"),
        (lambda: BinnedTable.make(OTHER_FRAME, max_bins=30, like=binned), ValueError, "max_bins is 30, but"),
        (
            lambda: BinnedTable.make(OTHER_FRAME, categorical_features=["a"], like=binned),
            ValueError,
            r"columns \[0\]",
        ),
        (lambda: BinnedTable.make(other, like=binned), TypeError, "X is a BinnedTable already"),
        (lambda: trainer.fit(other), ValueError, "X is a BinnedTable with the cut points of another one"),
        (
            lambda: regressor().fit(binned, eval_set=own),
            ValueError,
            r"X of eval_set\[0\] .* other bins than X",
        ),
        (lambda: regressor().fit(FRAME, Y, eval_set=other), TypeError, "a BinnedTable, but X is none"),
        (
            lambda: regressor().fit(binned, eval_set=(other, OTHER_Y)),
            ValueError,
            r"y of eval_set\[0\] is given twice",
        ),
        (
            lambda: regressor().fit(binned, eval_set=BinnedTable.make(OTHER_FRAME, like=binned)),
            ValueError,
            r"y of eval_set\[0\] is missing: the BinnedTable was made without it",
        ),
        (lambda: trainer.fit(binned).predict(plain), ValueError, "X is a BinnedTable"),
    ]:
        with pytest.raises(kind, match=words):
            call()


def test_files_of_other_tables_are_as_they_were(tmp_path):
    """The mark is there only where a table has the cut points of another."""
    binned = BinnedTable.make(X, Y)
    binned.save_binned(tmp_path / "own")
    assert b"is_like" not in (tmp_path / "own").read_bytes()
    other = BinnedTable.make(OTHER, like=binned)
    other.save_binned(tmp_path / "like")
    loaded = load_binned(tmp_path / "like")
    assert loaded.is_like
    assert loaded.digest == other.digest
    assert not load_binned(tmp_path / "own").is_like
