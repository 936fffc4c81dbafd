"""``importance``: frames with names, of what trees add up, and of what shuffled columns cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.explain import shap
from training_cases import CASES, X

polars = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def houses() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 4)), columns=["noise", "a", "b", "constant"])
    table["constant"] = 1.0
    y = pd.DataFrame({"only a": 3 * table["a"], "both": table["a"] + 2 * table["b"]})
    return PolyleafRegressor(n_estimators=40, max_depth=3).fit(table, y), table, y


@pytest.mark.parametrize("kind", ["gain", "cover", "split"])
@pytest.mark.parametrize("normalize", [False, True])
def test_sums_over_trees_are_those_of_get_importance(houses: Any, kind: str, normalize: bool) -> None:
    model = houses[0]
    frame = model.importance(kind, normalize=normalize)
    assert frame.columns.tolist() == ["feature", "importance"]
    expected = model.get_importance(kind, normalize=normalize, as_frame=True)[kind]
    assert frame["importance"].is_monotonic_decreasing
    np.testing.assert_allclose(frame["importance"], expected[frame["feature"]])
    wide = model.get_importance(kind, per_output=True, normalize=normalize, as_frame=True)
    rows = model.importance(kind, per_output=True, normalize=normalize, library="polars").rows()
    assert len(rows) == 8
    for feature, output, value in rows:
        np.testing.assert_allclose(value, wide.loc[feature, output])


def test_permutation_is_what_the_score_loses(houses: Any) -> None:
    model, table, y = houses
    frame = model.importance("permutation", X=table, y=y, random_state=0, n_repeats=20)
    assert frame.columns.tolist() == ["feature", "importance", "std"]
    by_name = frame.set_index("feature")["importance"]
    assert frame["feature"].tolist()[:2] == ["a", "b"]
    assert by_name["constant"] == 0
    # Of a column shuffled by hand, on the average.
    rng = np.random.default_rng(1)
    lost = [
        model.score(table, y) - model.score(table.assign(a=rng.permutation(table["a"])), y) for _ in range(20)
    ]
    assert abs(by_name["a"] - np.mean(lost)) < 4 * np.std(lost) / np.sqrt(20) * np.sqrt(2)


def test_the_seed_and_nothing_else_decides(houses: Any) -> None:
    model, table, y = houses

    def found(seed: Any, rows: Any = table, **params: Any) -> Any:
        changed = model[:].set_params(**params)
        return changed.importance("permutation", X=rows, y=y, random_state=seed)

    first = found(3)
    assert first.equals(found(3, n_jobs=2))
    assert first.equals(found(np.random.RandomState(3)))
    assert not first.equals(found(4))
    assert first.equals(found(3, polars.from_pandas(table)))


def test_each_output_has_its_own_loss(houses: Any) -> None:
    model, table, y = houses
    frame = model.importance("permutation", True, X=table, y=y, random_state=0)
    assert frame.columns.tolist() == ["feature", "output", "importance", "std"]
    by = frame.set_index(["feature", "output"])["importance"]
    assert abs(by["b", "only a"]) < 0.01
    assert by["b", "both"] > 0.5
    assert by["a", "only a"] > 1.5
    # The mean over the outputs is what the score, which is such a mean, loses by the same shuffles.
    whole = model.importance("permutation", X=table, y=y, random_state=0).set_index("feature")["importance"]
    np.testing.assert_allclose(by.groupby("feature").mean()[whole.index], whole, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_shap_is_the_mean_of_absolute_values(houses: Any, weighted: bool) -> None:
    model, table, _ = houses
    weight = np.random.default_rng(2).exponential(size=len(table)) if weighted else None
    mean = np.average(np.abs(model.shap_values(table)), axis=0, weights=weight)
    frame = model.importance("shap", True, X=table, sample_weight=weight)
    assert frame.columns.tolist() == ["feature", "output", "importance"]
    expected = pd.DataFrame(mean, index=table.columns, columns=["only a", "both"])
    for feature, output, value in frame.itertuples(index=False):
        np.testing.assert_allclose(value, expected.loc[feature, output], rtol=1e-12)
    whole = model.importance("shap", X=table, sample_weight=weight)
    assert whole["importance"].is_monotonic_decreasing
    np.testing.assert_allclose(whole["importance"], expected.loc[whole["feature"]].sum(axis=1), rtol=1e-12)
    shares = model.importance("shap", X=table, sample_weight=weight, normalize=True)
    np.testing.assert_allclose(shares["importance"].sum(), 1.0)
    by_name = whole.set_index("feature")["importance"]
    assert by_name["constant"] == 0
    assert by_name["a"] > 10 * by_name["noise"]


def test_shap_weights_are_how_often_rows_count(houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a weight is 0, and a few rows at a time, too."""
    model, table, _ = houses
    times = np.random.default_rng(5).integers(0, 3, size=len(table))
    expected = model.importance("shap", True, X=table.loc[np.repeat(table.index, times)])
    for cells in (shap._BLOCK_CELLS, 8 * 17):
        monkeypatch.setattr(shap, "_BLOCK_CELLS", cells)
        found = model.importance("shap", True, X=table, sample_weight=times)
        assert found["feature"].tolist() == expected["feature"].tolist()
        np.testing.assert_allclose(found["importance"], expected["importance"], rtol=1e-12)


def test_shap_of_every_kind_of_table(houses: Any, tmp_path: Any) -> None:
    model, table, _ = houses
    expected = model.importance("shap", X=table)
    table.to_parquet(tmp_path / "rows.parquet")
    for given in (polars.from_pandas(table), str(tmp_path / "rows.parquet")):
        assert model.importance("shap", X=given).equals(expected)
    plain = PolyleafRegressor(n_estimators=4).fit(table.to_numpy(), table["a"].to_numpy())
    weight = np.linspace(0, 1, len(table))
    dense = plain.importance("shap", X=table.to_numpy(), sample_weight=weight)
    sparse = plain.importance("shap", X=scipy.sparse.csr_array(table.to_numpy()), sample_weight=weight)
    assert sparse["feature"].tolist() == dense["feature"].tolist()
    np.testing.assert_allclose(sparse["importance"], dense["importance"], rtol=1e-12)


def test_scoring_is_any_scorer(houses: Any) -> None:
    model, table, y = houses
    default = model.importance("permutation", X=table, y=y, random_state=0)
    for scoring in ("r2", make_scorer(r2_score), lambda model, X, y: model.score(X, y)):
        frame = model.importance("permutation", X=table, y=y, scoring=scoring, random_state=0)
        assert frame["feature"].tolist() == default["feature"].tolist()
        np.testing.assert_allclose(frame["importance"], default["importance"], atol=1e-9)

    def of_outputs(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return -mean_absolute_error(
            y, model.predict(X), multioutput="raw_values", sample_weight=sample_weight
        )

    weight = np.linspace(0.5, 2, len(table))
    frame = model.importance(
        "permutation", True, X=table, y=y, sample_weight=weight, scoring=of_outputs, random_state=0
    )
    assert frame["importance"].max() > 1
    with pytest.raises(
        ValueError, match=r"returned 1 number\(s\) of shape \(1,\); expected 2, one for each output"
    ):
        model.importance("permutation", True, X=table, y=y, scoring="r2", random_state=0)


def test_a_sparse_table_costs_what_a_dense_one_does() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.3)
    y = dense[:, 0] * 2 + (dense[:, 1] != 0)
    model = PolyleafRegressor(n_estimators=10, min_samples_leaf=5).fit(dense, y)
    expected = model.importance("permutation", X=dense, y=y, random_state=0)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        table = form(dense)
        found = model.importance("permutation", X=table, y=y, random_state=0)
        assert found.equals(expected)
        np.testing.assert_array_equal(table.toarray(), dense)  # left as it was


@pytest.mark.parametrize(
    "name",
    ["classes", "two classes", "labels", "sparse labels", "one target", "one output a tree", "callable"],
)
def test_every_kind_of_target(name: str) -> None:
    case = CASES[name]
    model = case.make(n_estimators=5).fit(X, case.y)
    before = X.copy()
    for per_output in (False, True):
        frame = model.importance("permutation", per_output, X=X, y=case.y, random_state=0, n_repeats=2)
        assert len(frame) == 6 * (model.n_outputs_ if per_output else 1)
        assert np.isfinite(frame["importance"]).all()
        assert frame["importance"].max() > 0
    np.testing.assert_array_equal(X, before)


def test_brier_skill_of_classes_by_hand() -> None:
    case = CASES["classes"]
    model = case.make(n_estimators=5).fit(X, case.y)
    shuffled = []

    def skill(model: Any, X: Any, y: Any) -> Any:
        p = model.predict_proba(X)
        truth = (y[:, np.newaxis] == model.classes_).astype(float)
        shuffled.append(p)
        return 1 - ((truth - p) ** 2).mean(axis=0) / truth.var(axis=0)

    by_hand = model.importance("permutation", True, X=X, y=case.y, scoring=skill, random_state=0)
    built_in = model.importance("permutation", True, X=X, y=case.y, random_state=0)
    np.testing.assert_allclose(built_in["importance"], by_hand["importance"], atol=1e-12)
    assert len(shuffled) > 1


def test_mixed_targets_quantiles_and_missing_cells() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"u": rng.normal(size=300), "v": rng.choice(["k", "l", "m"], size=300)})
    y = pd.DataFrame(
        {
            "kind": np.where(table["v"] == "k", "yes", np.where(table["v"] == "l", "no", "so so")),
            "price": table["u"] + 0.1 * rng.normal(size=300),
            "late": (table["u"] > 0).astype(int),
        }
    )
    y.loc[:50, "price"] = np.nan
    model = PolyleafMixed(
        {
            "price": {"kind": "regression", "objective": "quantile", "quantile_levels": [0.2, 0.8]},
            "kind": "multiclass",
            "late": "binary",
        },
        n_estimators=30,
        categorical_features="auto",
    ).fit(table, y)
    frame = model.importance("permutation", True, X=table, y=y, random_state=0)
    by = frame.set_index(["feature", "output"])["importance"]
    assert [*dict.fromkeys(frame["output"])] == [
        "kind=no",
        "kind=so so",
        "kind=yes",
        "price_q0.2",
        "price_q0.8",
        "late",
    ]
    for output in dict.fromkeys(frame["output"]):
        cause, other = ("v", "u") if output.startswith("kind") else ("u", "v")
        assert by[cause, output] > 0.2 > abs(by[other, output])


def test_a_model_of_roots_or_of_no_trees_has_no_importance() -> None:
    x, y = np.zeros((30, 2)), np.arange(30.0)
    model = PolyleafRegressor(n_estimators=2).fit(x, y)
    for one in (model, model[:0]):
        for kind in ("gain", "cover", "split"):
            assert one.importance(kind)["importance"].tolist() == [0, 0]
        frame = one.importance("permutation", X=x, y=y, normalize=True)
        assert frame["feature"].tolist() == ["x0", "x1"]
        assert frame["importance"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kind": "weight"}, ValueError, "kind"),
        ({"per_output": 1}, TypeError, "per_output"),
        ({"kind": "gain", "X": X}, TypeError, 'X belongs to kind="permutation" or "shap"; kind is .gain'),
        ({"kind": "shap", "X": X, "y": X[:, 0]}, TypeError, 'y belongs to kind="permutation"; kind is .shap'),
        ({"kind": "shap"}, TypeError, "needs X: the rows to explain"),
        ({"kind": "shap", "X": X[:0]}, ValueError, 'kind="shap" takes the mean over the rows of X'),
        ({"kind": "shap", "X": X[:, :2]}, ValueError, "2 features"),
        ({"kind": "shap", "X": X, "sample_weight": X[:5, 0]}, ValueError, r"sample_weight has shape \(5,\)"),
        ({"kind": "shap", "X": X, "sample_weight": X[:, 0]}, ValueError, "sample_weight must be finite"),
        ({"kind": "shap", "X": "rows.parquet", "sample_weight": X[:, 0]}, TypeError, "in memory.*got str"),
        ({"kind": "permutation"}, TypeError, "needs X and y"),
        ({"kind": "permutation", "X": X}, TypeError, "needs X and y"),
        ({"kind": "permutation", "X": "rows.parquet", "y": X[:, 0]}, TypeError, "table in memory.*got str"),
        ({"kind": "permutation", "X": X[:, :2], "y": X[:, 0]}, ValueError, "2 features"),
        ({"kind": "permutation", "X": X, "y": X[:5, 0]}, ValueError, "5 row"),
        ({"kind": "permutation", "X": X, "y": X[:, 0], "n_repeats": 0}, ValueError, "n_repeats"),
        ({"kind": "permutation", "X": X, "y": X[:, 0], "random_state": -1}, ValueError, "random_state"),
        ({"kind": "permutation", "X": X, "y": X[:, 0], "scoring": "no such"}, ValueError, "scoring"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    case = CASES["one target"]
    model = case.make(n_estimators=2).fit(X, case.y)
    with pytest.raises(error, match=words):
        model.importance(**options)


def test_rows_in_bins_cannot_be_shuffled() -> None:
    case = CASES["two classes"]
    model = PolyleafClassifier(n_estimators=2).fit(X, case.y)
    with pytest.raises(TypeError, match=r"table in memory.*got BinnedTable"):
        model.importance("permutation", X=BinnedTable.make(X, case.y), y=case.y)
