"""Whatever is passed to fit and predict: a clear error or finite predictions, and never a crash."""

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")
hnp = pytest.importorskip("hypothesis.extra.numpy")
assume, event, given = hypothesis.assume, hypothesis.event, hypothesis.given

thorough = hypothesis.settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)

DTYPES = [
    *(
        "f2",
        "f4",
        "f8",
        ">f4",
        ">f8",
        "longdouble",
        "i1",
        "i2",
        "i4",
        "i8",
        ">i4",
        "u1",
        "u2",
        "u4",
        "u8",
        "?",
    ),
    *("O", "U2", "S2", "c16", "M8[s]", "m8[s]"),
]
REAL_DTYPES = DTYPES[:16]
# Where float32, float64, their squares and their sums end.
EXTREMES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    5e-324,
    1e-308,
    1e-45,
    1e-38,
    1e38,
    3.4e38,
    1e154,
    1e155,
    1e300,
    1.7e308,
    -1.7e308,
]
RULES = {
    "n_estimators": st.integers(1, 4),
    "learning_rate": st.sampled_from([0.1, 1.0, 1e-8]),
    "max_depth": st.sampled_from([1, 3, 8]),
    "max_leaves": st.sampled_from([None, 2, 5]),
    "min_samples_leaf": st.sampled_from([1, 2, 20]),
    "max_bins": st.sampled_from([2, 3, 255, 256, 65534]),
    "reg_lambda": st.sampled_from([0.0, 1.0]),
    "reg_alpha": st.sampled_from([0.0, 0.1]),
    "subsample": st.sampled_from([0.3, 1.0]),
    "colsample_bytree": st.sampled_from([0.3, 1.0]),
    "multi_strategy": st.sampled_from(["multi_output_tree", "one_output_per_tree"]),
    "histogram_precision": st.sampled_from(["full", "packed"]),
    "n_jobs": st.sampled_from([1, 2]),
    "random_state": st.just(0),
}


def cells(dtype):
    """Values that the dtype holds, the extreme ones often among them."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        width = min(8 * np.dtype(dtype).itemsize, 64)
        special = [*EXTREMES, np.nan, np.inf, -np.inf]
        with np.errstate(over="ignore"):
            special = np.array(special).astype(dtype).tolist()
        return st.one_of(st.floats(-10, 10, width=16), st.sampled_from(special), st.floats(width=width))
    if kind == "O":
        return st.one_of(
            st.integers(-3, 3), st.floats(), st.none(), st.booleans(), st.text(max_size=1), st.just({})
        )
    if np.dtype(dtype).itemsize == 8 and kind in "iu":  # those that float64 rounds are refused
        return st.integers(-(2**53) if kind == "i" else 0, 2**53)
    return hnp.from_dtype(np.dtype(dtype))


@st.composite
def tables(draw, dtypes=DTYPES, shapes=None):
    """A table in some memory layout: read-only, transposed, strided, reversed, broadcast or plain."""
    if shapes is None:
        shapes = st.one_of(
            st.tuples(st.integers(1, 40), st.integers(1, 5)),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
        )
    dtype = draw(st.sampled_from(dtypes))
    array = draw(hnp.arrays(np.dtype(dtype), shapes, elements=cells(dtype)))
    return lay_out(draw, array)


def lay_out(draw, array):
    layout = draw(
        st.sampled_from(["plain", "read-only", "fortran", "strided", "reversed", "broadcast", "frame"])
    )
    if layout == "read-only":
        array.flags.writeable = False
    elif layout == "fortran":
        array = np.asfortranarray(array)
    elif layout == "strided" and array.ndim == 2:
        array = np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "reversed" and array.ndim == 2:
        array = array[::-1, ::-1]
    elif layout == "broadcast" and array.ndim == 2 and len(array):
        array = np.broadcast_to(array[:1], array.shape)
    elif layout == "frame" and array.ndim == 2 and array.dtype.kind in "biufO" and array.dtype.isnative:
        return pd.DataFrame(array) if array.dtype != np.longdouble else array
    return array


def finite_tables():
    """Tables that fit accepts."""
    reals = tables(REAL_DTYPES, st.tuples(st.integers(2, 40), st.integers(1, 5)))
    return reals.filter(lambda table: not np.isinf(np.asarray(table, dtype=float)).any())


def targets(n_rows):
    """Regression targets and labels, good and bad."""
    shape = st.one_of(st.just(n_rows), st.tuples(st.just(n_rows), st.integers(1, 3)))
    return st.one_of(
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: hnp.arrays(np.dtype(dtype), shape, elements=cells(dtype))
        ),
        hnp.arrays(np.int64, n_rows, elements=st.integers(0, 2)),
        hnp.arrays(np.int64, st.tuples(st.just(n_rows), st.integers(2, 4)), elements=st.integers(0, 1)),
        hnp.arrays(np.float64, shape, elements=st.floats(-1e6, 1e6)),
        hnp.arrays(np.float64, shape, elements=st.sampled_from(EXTREMES)),
        st.lists(st.sampled_from(["a", "b", "c"]), min_size=n_rows, max_size=n_rows),
        st.none(),
    )


def attempt(function):
    """Return a result, or None where a clear error was raised."""
    try:
        return function()
    except (ValueError, TypeError) as error:
        event("refused")
        if not str(error).strip():
            raise AssertionError("an error without a word") from error
        return None


def check_predictions(model, X):
    prediction = model.predict(X)
    n_rows = len(X)
    assert len(prediction) == n_rows
    if isinstance(model, PolyleafRegressor):
        assert prediction.dtype == np.float64
        assert np.isfinite(prediction).all()
        return
    p = model.predict_proba(X)
    assert p.shape == (n_rows, len(model.classes_))
    assert ((p >= 0) & (p <= 1)).all()
    assert np.isfinite(model.decision_function(X)).all()
    if prediction.ndim == 1:
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.isin(prediction, model.classes_).all()
    else:
        assert prediction.shape == p.shape
        assert np.isin(prediction, [0, 1]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("cls", [PolyleafRegressor, PolyleafClassifier])
@thorough
@given(data=st.data())
def test_anything_may_be_passed_to_fit(cls, data):
    X = data.draw(tables())
    y = data.draw(targets(len(X) if np.ndim(X) else 3))
    if np.ndim(X) and data.draw(st.booleans()):
        weight = data.draw(st.one_of(st.none(), tables(shapes=st.just((len(X),)))))
    else:
        weight = None
    model = cls(**data.draw(st.fixed_dictionaries(RULES)))
    if attempt(lambda: model.fit(X, y, sample_weight=weight)):
        check_predictions(model, X)


@thorough
@given(data=st.data())
def test_regression_of_any_real_numbers(data):
    """Finite targets of any size, features of any size: the predictions are finite."""
    X = data.draw(finite_tables())
    shape = st.one_of(st.just(len(X)), st.tuples(st.just(len(X)), st.integers(1, 4)))
    elements = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e300, 1e300)).map(
        lambda v: np.clip(v, -1e300, 1e300)
    )
    y = data.draw(hnp.arrays(np.float64, shape, elements=elements))
    positive = st.one_of(st.floats(0.1, 10), st.sampled_from([0.0, 1e-100, 1.0, 1e6, 1e100]))
    weight = data.draw(st.one_of(st.none(), hnp.arrays(np.float64, len(X), elements=positive)))
    assume(weight is None or (weight.any() and np.isfinite(weight.sum())))
    model = PolyleafRegressor(
        **data.draw(st.fixed_dictionaries(RULES)), scale_targets=data.draw(st.booleans())
    )
    model.fit(X, y, sample_weight=weight)
    assert model.predict(X).shape == y.shape
    check_predictions(model, X)
    for stage in model.staged_predict(X):
        assert np.isfinite(stage).all()


@thorough
@given(data=st.data())
def test_classification_of_any_real_numbers(data):
    X = data.draw(finite_tables())
    kinds = ["classes", "labels", "words"]
    if data.draw(st.sampled_from(kinds)) == "labels":
        y = data.draw(
            hnp.arrays(np.int8, st.tuples(st.just(len(X)), st.integers(2, 5)), elements=st.integers(0, 1))
        )
    else:
        y = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(-2, 4)))
        assume(len(np.unique(y)) > 1)
    positive = st.one_of(st.floats(0.1, 10), st.sampled_from([1e-100, 1.0, 1e6, 1e100]))
    weight = data.draw(st.one_of(st.none(), hnp.arrays(np.float64, len(X), elements=positive)))
    model = PolyleafClassifier(
        **data.draw(st.fixed_dictionaries(RULES)),
        softmax_curvature=data.draw(st.sampled_from(["p(1-p)", "2p(1-p)", "abs(p-y)"])),
    )
    model.fit(X, y, sample_weight=weight)
    check_predictions(model, X)


FITTED = {
    cls: cls(n_estimators=5, min_samples_leaf=1, n_jobs=2).fit(
        np.arange(60.0).reshape(20, 3) % 7, np.arange(20) % 3
    )
    for cls in (PolyleafRegressor, PolyleafClassifier)
}


@pytest.mark.parametrize("cls", FITTED)
@thorough
@given(X=st.one_of(tables(), tables(shapes=st.tuples(st.integers(0, 9), st.just(3)))))
def test_anything_may_be_passed_to_predict(cls, X):
    model = FITTED[cls]
    if attempt(lambda: model.predict(X)) is not None:
        check_predictions(model, X)
        assert model.apply(X).shape == (len(X), 5)


@thorough
@given(data=st.data())
def test_layout_does_not_matter(data):
    """The same numbers in another memory layout give the same bits."""
    X = data.draw(finite_tables())
    y = np.linspace(0, 1, len(X)) ** 2
    model = PolyleafRegressor(n_estimators=3, min_samples_leaf=1, n_jobs=1)
    plain = np.ascontiguousarray(np.asarray(X))
    np.testing.assert_array_equal(model.fit(X, y).predict(X), model.fit(plain, y).predict(plain))
