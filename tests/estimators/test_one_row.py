"""A row of a frame with categories is predicted without detours, as in the whole frame, and checked."""

import pickle
import sys

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafRegressor

pytestmark = pytest.mark.cpu_only("the way of a row to the forest")

N = 3000
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({f"n{j}": RNG.normal(size=N) for j in range(10)}).assign(
    whole=RNG.integers(0, 100, N),
    flag=RNG.random(N) < 0.5,
    few=pd.Categorical(RNG.choice(["a", "b", "c"], N)),
    many=pd.Categorical([f"town {code}" for code in RNG.integers(0, 2000, N)]),
    numbers=pd.Categorical(RNG.integers(0, 300, N)),
    text=RNG.choice(["up", "down"], N),
    objects=pd.Series(RNG.choice(["left", "right"], N), dtype=object),
)
Y = FRAME["n0"] + (FRAME["few"] == "b") + (FRAME["text"] == "up")
MODEL = PolyleafRegressor(n_estimators=20, categorical_features="auto", n_jobs=1).fit(FRAME, Y)


def calls_of(function):
    """Return how many functions of Python a call of this one takes, however busy the machine is."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_a_row_is_predicted_as_in_the_whole_frame():
    expected = MODEL.predict(FRAME)
    for row in (0, 7, N - 1):
        np.testing.assert_array_equal(MODEL.predict(FRAME.iloc[[row]]), expected[[row]])
    plain = FRAME.astype({"few": object, "many": object, "numbers": np.int64})
    np.testing.assert_array_equal(MODEL.predict(plain.iloc[3:9]), expected[3:9])
    missing = FRAME.iloc[[0]].assign(few=None, many="a new town", text=None)
    assert np.isfinite(MODEL.predict(missing)).all()


def test_a_row_takes_few_calls():
    row = FRAME.iloc[[5]]
    MODEL.predict(row)
    assert calls_of(lambda: MODEL.predict(row)) < 3000  # 1 ms and less; each column through narwhals: 8,000


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_row_of_another_library_takes_few_calls(library):
    """And is predicted as in the whole frame, and by pandas."""
    pytest.importorskip(library)
    frame = getattr(
        nw.from_native(FRAME.astype({"numbers": int})), f"to_{'arrow' if library == 'pyarrow' else library}"
    )()
    model = PolyleafRegressor(
        n_estimators=20, categorical_features=["few", "many", "numbers", "text", "objects"]
    )
    model.set_params(n_jobs=1).fit(frame, Y)
    row = frame.slice(5, 1)
    expected = model.predict(frame)
    np.testing.assert_array_equal(expected, MODEL.predict(FRAME))
    np.testing.assert_array_equal(model.predict(row), expected[5:6])
    np.testing.assert_array_equal(model.predict(frame.slice(5, 17)), expected[5:22])
    assert calls_of(lambda: model.predict(row)) < 3000


def test_a_row_is_still_checked():
    row = FRAME.iloc[[5]]
    wrong = {
        "column 'n3'": row.assign(n3=np.inf),
        "column 'whole' holds the integer 9007199254740993": row.assign(whole=2**53 + 1),
        "column 'few' holds numbers": row.assign(few=3),
        "column 'text' mixes|column 'text' holds": row.assign(text=[4.5]),
        "same order": row[FRAME.columns[::-1]],
    }
    for words, table in wrong.items():
        with pytest.raises(ValueError, match=words):
            MODEL.predict(table)


def test_what_predict_keeps_does_not_go_into_files():
    fresh = PolyleafRegressor(n_estimators=2, categorical_features="auto").fit(FRAME, Y)
    before = len(pickle.dumps(fresh))
    fresh.predict(FRAME.iloc[[1]])
    assert len(pickle.dumps(fresh)) == before
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fresh)).predict(FRAME), fresh.predict(FRAME))
