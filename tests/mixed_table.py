"""A table with targets of every kind, and a mixed model of them."""

import numpy as np

from polyleaf import PolyleafMixed

N = 600
TARGETS = {
    "grade": "multiclass",
    "passed": "binary",
    "height": "regression",
    "visits": "poisson",
    "tags": {"kind": "multilabel", "columns": ["t1", "t2", "t3"]},
    "price": {"objective": "quantile", "quantile_levels": [0.1, 0.5, 0.9]},
    "noise": {"objective": "huber", "huber_delta": 0.5, "columns": ["n1", "n2"]},
}
COLUMNS = ["grade", "passed", "height", "visits", "t1", "t2", "t3", "price_q0.1", "price_q0.5", "price_q0.9"]
COLUMNS += ["n1", "n2"]


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    s = np.sin(2 * X[:, 0]) + X[:, 1]
    y = {
        "grade": np.array(list("abcde"))[np.digitize(s + 0.3 * rng.normal(size=n), [-1, -0.3, 0.3, 1])],
        "passed": s + rng.normal(size=n) > 0,
        "height": 1e6 * (s + 0.2 * rng.normal(size=n)),
        "visits": rng.poisson(np.exp(X[:, 2])),
        "t1": (X[:, 3] > 0).astype(int),
        "t2": (X[:, 4] + s > 0).astype(int),
        "t3": (rng.random(n) < 0.2).astype(int),
        "price": X[:, 5] + rng.normal(size=n),
        "n1": s + rng.standard_t(2, size=n),
        "n2": X[:, 0] + rng.standard_t(2, size=n),
        "unused": np.full(n, "x"),
    }
    return X, y


def mixed(targets=None, **params):
    settings = {"n_estimators": 20, "n_jobs": 1, "random_state": 1}
    return PolyleafMixed(TARGETS if targets is None else targets, **settings | params)
