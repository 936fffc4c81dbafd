"""Errors for what users of a trial did wrong name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, tune

pytestmark = pytest.mark.cpu_only("inputs are checked on the host")

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3))
Y = X[:, :2] + RNG.normal(size=(N, 2))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
GROUPS = np.arange(N) % 6
PAIRS = [(np.arange(40), np.arange(40, N))]


def regressor(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**{"n_estimators": 2} | params)


CULPRITS = {
    "lists of one length": (
        lambda: regressor().fit(FRAME.assign(k=[[1, 2]] * N), Y),
        TypeError,
        r"column 'k' holds no numbers: its first cell is \[1, 2\] of type list",
    ),
    "lists of different lengths": (
        lambda: regressor().fit(FRAME.assign(k=[[1] * (1 + i % 2) for i in range(N)]), Y),
        (TypeError, ValueError),
        "column 'k' holds no numbers",
    ),
    "metrics of cv": (lambda: cv(regressor(), X, Y, metrics="xx"), ValueError, r"^metrics must be .*'xx'"),
    "metric of tune": (
        lambda: tune(regressor(), X, Y, n_trials=1, metric="maee"),
        ValueError,
        r"^metric must be .*'maee'",
    ),
    "lists of eval sets": (
        lambda: regressor().fit(X, Y, eval_X=[X], eval_y=[Y]),
        TypeError,
        "eval_X is a list of tables; several evaluation sets must be in a tuple",
    ),
    "groups of other rows": (
        lambda: cv(regressor(), X, Y, cv=2, groups=GROUPS[:3]),
        ValueError,
        rf"groups has shape \(3,\); it must be \({N},\)",
    ),
    "masked groups": (
        lambda: cv(regressor(), X, Y, cv=2, groups=np.ma.masked_equal(GROUPS, 0)),
        ValueError,
        "groups is a masked array with masked",
    ),
    "groups by the name of a column": (
        lambda: regressor(n_bags=2).fit(X, Y, groups="shop"),
        ValueError,
        "groups is 'shop'; it must hold the group of each row, not the name of a column",
    ),
    "masked groups of fit": (
        lambda: regressor(early_stopping_rounds=1).fit(X, Y, groups=np.ma.masked_equal(GROUPS, 0)),
        ValueError,
        "groups is a masked array with masked",
    ),
    "one name as categories": (
        lambda: regressor(categorical_features="a").fit(FRAME, Y),
        ValueError,
        r"got 'a'\. A column of that name is \['a'\], a list\.$",
    ),
    "a parameter as an argument": (
        lambda: regressor().fit(X, Y, early_stopping_rounds=3),
        TypeError,
        r"^fit\(\) got an unexpected argument 'early_stopping_rounds'; early_stopping_rounds is a parameter",
    ),
    "a parameter of another library": (
        lambda: PolyleafClassifier().fit(X, Y[:, 0] > 0, categorical_feature=[0]),
        TypeError,
        "'categorical_feature'; categorical_features is a parameter of the estimator",
    ),
    "a metric as an argument": (
        lambda: PolyleafMixed({"a": "regression"}).fit(X, {"a": Y[:, 0]}, eval_metric="mae"),
        TypeError,
        "eval_metric is a parameter of the estimator",
    ),
    "an argument that is none": (
        lambda: regressor().fit(X, Y, xyz=3),
        TypeError,
        r"^fit\(\) got an unexpected argument 'xyz'\.$",
    ),
}


@pytest.mark.parametrize("what", CULPRITS)
def test_what_is_wrong_is_named(what: str) -> None:
    call, error, words = CULPRITS[what]
    with pytest.raises(error, match=words):
        call()


def test_missing_groups_of_pandas_are_named() -> None:
    pd = pytest.importorskip("pandas")
    groups = pd.Series(["a", None, *["b"] * (N - 2)], dtype="string")  # whose NA is neither equal nor unequal
    with pytest.raises(ValueError, match="groups has a missing value in row 1"):
        regressor(n_bags=2).fit(X, Y, groups=groups)


def test_a_warning_is_one_sentence() -> None:
    y = np.column_stack([np.zeros(20), np.full(20, np.nan)])
    y[3, 1] = 1.0
    with pytest.warns(UserWarning, match="no rows can be held out") as told:
        PolyleafRegressor(max_depth=1).fit(X[:20], y)
    assert ".;" not in str(told[0].message)


def test_a_file_of_predictions_is_not_called_a_table_of_text(tmp_path: Path) -> None:
    model = regressor().fit(X, Y)
    for name in ("o.csv", "o.csv.gz", "o.npz"):
        with pytest.raises(ValueError, match=rf"{name}.*is a Parquet file; end its name in \.parquet"):
            model.predict(X, out=tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    model.predict(X, out=tmp_path / "without suffix")
