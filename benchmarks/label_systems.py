"""Systems that rank hundreds of labels, and the settings of each that are tried on held-out rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]
Predict = Callable[[Any, int], Array]  # (rows, k) -> the k best columns of each, best first
Setting = dict[str, Any]


@dataclass(frozen=True)
class System:
    """One line of the comparison.

    Attributes
    ----------
    title, package : str
        As the report calls it, and what must be installed.
    train : callable
        (setting, X, y, threads) -> what predicts. X and y are compressed rows.
    settings : tuple of dict
        One, or those to choose from.
    """

    title: str
    package: str
    train: Callable[[Setting, Any, Any, int], Predict]
    settings: tuple[Setting, ...] = ({},)


def polyleaf(setting: Setting, X: Any, y: Any, threads: int) -> Predict:
    """polyleaf by the cross entropy of each label, which wants them as a dense table.

    With "seeds" the scores are the mean of so many models, the rounds of all are those of the first.
    """
    from sklearn.preprocessing import normalize

    from polyleaf import PolyleafClassifier

    params = {name: value for name, value in setting.items() if name not in ("unit_rows", "seeds")}
    rows = normalize if setting.get("unit_rows") else _as_they_are
    known = rows(X), y.toarray().astype(np.int8)
    models = [PolyleafClassifier(random_state=0, n_jobs=threads, **params).fit(*known)]
    params["n_estimators"] = models[0].n_estimators_
    for seed in range(1, setting.get("seeds", 1)):
        models.append(PolyleafClassifier(random_state=seed, n_jobs=threads, **params).fit(*known))

    def predict(new: Any, k: int) -> Array:
        if len(models) == 1:
            return np.asarray(models[0].predict(rows(new), top_k=k))
        score = sum(model.decision_function(rows(new)) for model in models)
        return np.argsort(-score, axis=1, kind="stable")[:, :k]

    return predict


def _as_they_are(X: Any) -> Any:
    return X


def label_tree(setting: Setting, X: Any, y: Any, threads: int) -> Predict:
    """A probabilistic label tree of napkinXC, which divides rows by their norm itself."""
    from napkinxc.models import PLT

    return _of_napkinxc(PLT, setting, X, y, threads)


def one_per_label(setting: Setting, X: Any, y: Any, threads: int) -> Predict:
    """The binary relevance of napkinXC: a linear model for each label."""
    from napkinxc.models import BR

    return _of_napkinxc(BR, setting, X, y, threads)


def _of_napkinxc(make: Any, setting: Setting, X: Any, y: Any, threads: int) -> Predict:
    folder = tempfile.TemporaryDirectory()
    model = make(folder.name, threads=threads, seed=0, **setting)
    model.fit(scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(y))

    def predict(new: Any, k: int) -> Array:
        with folder:  # which holds the model until here
            return _filled(model.predict(scipy.sparse.csr_matrix(new), top_k=k), k, y.shape[1])

    return predict


def _filled(ranked: list[list[int]], k: int, n_labels: int) -> Array:
    """Return lists of at most k columns as an array; where columns are missing, others follow."""
    return np.array([[*one, *np.setdiff1d(np.arange(min(2 * k, n_labels)), one)][:k] for one in ranked])


def logistic(setting: Setting, X: Any, y: Any, threads: int) -> Predict:
    """A logistic regression of scikit-learn for each label, on rows of length 1."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import normalize

    seen = np.flatnonzero(np.asarray(y.sum(axis=0)).ravel())  # a label that no row has is not learned
    one = LogisticRegression(solver="liblinear", **setting)
    model = OneVsRestClassifier(one, n_jobs=threads).fit(normalize(X), y[:, seen])

    def predict(new: Any, k: int) -> Array:
        score = model.decision_function(normalize(new))
        return seen[np.argsort(-score, axis=1, kind="stable")[:, :k]]

    return predict


# Of a dozen settings that were compared on held-out rows of delicious, those that were within chance of the
# best; with rows of length 1 a split can tell a word of a short text from one of a long text.
_LARGER: Setting = {
    "unit_rows": True,
    "learning_rate": 0.1,
    "sketch": "random_projection",
    "sketch_size": 20,
    "max_depth": 9,
    "max_leaves": 64,
    "min_samples_leaf": 5,
}
_COSTS = (1.0, 3.0, 10.0)

SYSTEMS: dict[str, System] = {
    "polyleaf": System("polyleaf, defaults", "polyleaf", polyleaf),
    "polyleaf_chosen": System(
        "polyleaf, chosen",
        "polyleaf",
        polyleaf,
        (
            {"unit_rows": True},
            {**_LARGER},
            {**_LARGER, "max_depth": 14, "max_leaves": 128, "min_samples_leaf": 10, "n_bags": 5},
            {**_LARGER, "seeds": 3},
        ),
    ),
    "napkinxc": System("napkinXC, label tree, defaults", "napkinxc", label_tree),
    "napkinxc_chosen": System(
        "napkinXC, label tree, chosen",
        "napkinxc",
        label_tree,
        (
            *({"liblinear_c": cost} for cost in _COSTS),
            {"liblinear_c": 1.0, "weights_threshold": 0.0, "ensemble": 5},
        ),
    ),
    "napkinxc_br": System(
        "napkinXC, one model per label, chosen",
        "napkinxc",
        one_per_label,
        tuple({"liblinear_c": cost} for cost in _COSTS),
    ),
    "logistic": System(
        "logistic regression of scikit-learn, chosen",
        "scikit-learn",
        logistic,
        tuple({"C": cost} for cost in _COSTS),
    ),
}
