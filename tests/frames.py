"""One small table, and the frames of pandas, polars and pyarrow that it can be."""

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafRegressor

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(3)
N = 120
NAMES = ["age", "height", "weight", "shoe size"]
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.column_stack([np.nan_to_num(X[:, 0]), np.nan_to_num(X[:, 1] * 2)])
CLASSES = np.array(["low", "mid", "top"])[np.digitize(Y[:, 0], [-0.4, 0.4])]
LABELS = (np.column_stack([Y[:, 0], Y[:, 1], Y[:, 0] + Y[:, 1]]) > 0).astype(int)
KINDS = ["pandas", "polars", "pyarrow"]


def to_frame(kind, columns):
    """A frame from a dict of columns."""
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


def frame_of(kind, table=X, names=NAMES):
    return to_frame(kind, {name: np.ascontiguousarray(table[:, j]) for j, name in enumerate(names)})


def cells(frame):
    """The cells of any frame, as pandas reads them."""
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


def small(cls=PolyleafRegressor, **params):
    return cls(**{"n_estimators": 6, "min_samples_leaf": 3, **params})


def assert_same_forest(a, b):
    first, second = a._forest.to_arrays(), b._forest.to_arrays()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)
