"""A report says what the estimator says, of every kind of model and table, in the same bytes each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from reported import FEATURES, KINDS, TARGETS, data_of, fitted, report_of, rows, unfitted

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model

pl = pytest.importorskip("polars")

pytestmark = pytest.mark.cpu_only("pages are written on the host")

TEST = rows(1)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {kind: fitted(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_report(kind: str, models: dict[str, Any]) -> None:
    model = models[kind]
    data = report_of(model, kind)
    assert [one["name"] for one in data["outputs"]] == list(model._coding.columns_of_outputs())
    assert data["features"] == FEATURES
    assert data["data"] == {
        "rows": len(TEST),
        "features": 6,
        "categorical": ["site"],
        "missing": int(TEST[FEATURES].isna().sum().sum()),
        "sparse": False,
        "weighted": False,
    }
    for output in data["outputs"]:
        group = data["groups"][output["group"]]
        assert len(output["scores"]) == len(group["columns"])
        for value, low, high in filter(None, output["scores"]):
            assert low is None or low <= value <= high
        parts = {"class": "reliability", "label": "reliability"}
        assert parts.get(output["kind"], "residuals") in output
        assert output["swarm"][0] == [feature for feature, _ in output["features"][:8]]
    changed = {one["name"] for one in data["params"] if one["changed"]}
    assert changed >= {"n_estimators", "max_depth"}
    assert {one["name"] for one in data["params"]} == set(model.get_params())
    said = {line["what"]: line for line in data["left_out"]}
    assert "same" in said["features that no split asks for"]["names"]
    assert said["features with one value in all these rows"]["names"] == ["same"]


@pytest.mark.parametrize("kind", KINDS)
def test_explanations_are_those_of_shap_values(kind: str, models: dict[str, Any]) -> None:
    model = models[kind]
    data = report_of(model, kind)
    mean = model.shap_values(TEST[FEATURES], reduce="mean_abs").reshape(len(FEATURES), -1)
    single = model.shap_values(TEST[FEATURES]).reshape(len(TEST), len(FEATURES), -1)
    for k, output in enumerate(data["outputs"]):
        for feature, value in output["features"]:
            assert value == pytest.approx(mean[feature, k], rel=1e-4)
        assert output["base"] == pytest.approx(model.expected_value_[k], rel=1e-4, abs=1e-12)
        for row in output["worst"]:
            for feature, value, added in row["reasons"]:
                assert added == pytest.approx(single[row["row"], feature, k], rel=1e-4)
                cell = TEST[FEATURES].iloc[row["row"], feature]
                if pd.isna(cell):
                    assert value is None
                else:
                    assert value == (cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-4))
    found = np.array(data["heat_map"]["values"])
    there = np.ix_(data["heat_map"]["features"], data["heat_map"]["outputs"])
    np.testing.assert_allclose(found, mean[there], rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_those_of_partial_dependence(kind: str, models: dict[str, Any]) -> None:
    """For the features that move an output most, of numbers, categories and gaps."""
    model = models[kind]
    data = report_of(model, kind)
    assert data["dependence"]["rows"] == len(TEST)
    features = data["dependence"]["features"]
    assert {one["feature"] for one in features} <= {0, 1, 2, 3, 4}  # no split asks for a constant
    lines = [
        model.partial_dependence(TEST[FEATURES], one["feature"], grid_resolution=20, method="brute")
        for one in features
    ]
    for one, line in zip(features, lines, strict=True):
        assert one["categorical"] == (FEATURES[one["feature"]] == "site")
        if one["categorical"]:
            assert one["values"] == ["east", "north", "south"] == list(line.grid_values[0])
        else:
            found = np.array(one["values"], dtype=np.float64)  # None is NaN
            np.testing.assert_allclose(found, line.grid_values[0], rtol=1e-4)
        assert (one["values"][-1] is None) == (FEATURES[one["feature"]] == "load")
    for k, output in enumerate(data["outputs"]):
        shown = [features[number]["feature"] for number, _ in output["dependence"]]
        assert shown == [feature for feature, _ in output["features"]]
        for number, means in output["dependence"]:
            np.testing.assert_allclose(means, lines[number].average[k], rtol=1e-4, atol=1e-9)


def test_lines_are_of_features_that_there_is_room_for() -> None:
    """Of each output at most six, of all together at most sixteen, of categories the most frequent twelve."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 30)), columns=[f"f{j}" for j in range(30)])
    codes = np.minimum(rng.geometric(0.12, size=400), 30)
    table["town"] = [f"town {code:02d}" for code in codes]
    targets = table.iloc[:, :30].to_numpy() * 3 + codes[:, np.newaxis]
    model = PolyleafRegressor(n_estimators=40, max_depth=4, categorical_features=["town"])
    model.fit(table, targets)
    data = data_of(model.report(table, targets))
    (town,) = [one for one in data["dependence"]["features"] if one["categorical"]]
    assert len(data["dependence"]["features"]) == 16
    assert data["dependence"]["rows"] == 200
    rows_of = table["town"][::2].value_counts().sort_index().sort_values(ascending=False, kind="stable")
    assert len(rows_of) > 12
    assert town["values"] == sorted(rows_of.index[:12])
    assert {len(one["dependence"]) for one in data["outputs"]} <= set(range(1, 7))


def test_worst_rows_are_the_worst_and_say_what_they_were_taken_for(models: dict[str, Any]) -> None:
    model = models["classes"]
    data = report_of(model, "classes")
    p = model.predict_proba(TEST[FEATURES])
    truth = TEST["grade"].to_numpy()[:, None] == model.classes_
    brier = ((p - truth) ** 2).sum(axis=1)
    assert [row["row"] for row in data["worst"]] == np.argsort(-brier, kind="stable")[:20].tolist()
    single = model.shap_values(TEST[FEATURES])
    taken = [row for row in data["worst"] if "true" in row]
    assert taken
    for row in taken:
        assert model.classes_[row["true"]] == TEST["grade"].iloc[row["row"]]
        assert model.classes_[row["said"]] == model.predict(TEST[FEATURES])[row["row"]]
        difference = single[row["row"], :, row["said"]] - single[row["row"], :, row["true"]]
        for feature, _, added in row["reasons"]:
            assert added == pytest.approx(difference[feature], rel=1e-3)


def test_confusion_counts_rows(models: dict[str, Any]) -> None:
    model = models["classes"]
    (group,) = report_of(model, "classes")["groups"]
    table = np.array(group["confusion"]["table"])
    predicted = model.predict(TEST[FEATURES])
    expected = pd.crosstab(TEST["grade"], predicted).reindex(index=model.classes_, columns=model.classes_)
    np.testing.assert_array_equal(table, expected.fillna(0))
    for true, said, weight, share in group["confusion"]["pairs"]:
        assert weight == table[true, said]
        assert share == pytest.approx(weight / table[true].sum(), rel=1e-4)


def test_many_classes_are_pairs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.array([f"c{number:02d}" for number in range(30)])[(np.abs(X[:, 0]) * 12).astype(int) % 30]
    model = PolyleafClassifier(n_estimators=2, max_depth=3).fit(X, y)
    (group,) = data_of(model.report(X, y))["groups"]
    assert "table" not in group["confusion"]
    assert len(group["confusion"]["pairs"]) == 25
    predicted = model.predict(X)
    for true, said, weight, _ in group["confusion"]["pairs"]:
        names = group["confusion"]["classes"]
        assert weight == np.sum((y == names[true]) & (predicted == names[said]))


def test_coverage_is_counted(models: dict[str, Any]) -> None:
    model = models["quantiles"]
    (group,) = report_of(model, "quantiles")["groups"]
    predicted = model.predict(TEST[FEATURES], as_frame=True)
    for target in group["coverage"]:
        name = target["target"]
        for level, share, low, high in target["levels"]:
            below = TEST[name].to_numpy() <= predicted[f"{name}_q{level}"].to_numpy()
            assert share == pytest.approx(below.mean(), rel=1e-4)
            assert low <= share <= high
        assert target["between"][0] == pytest.approx(0.8)


@pytest.mark.parametrize("kind", ["numbers", "classes", "mixed"])
def test_the_same_bytes(kind: str, models: dict[str, Any], tmp_path: Any) -> None:
    """From the model, from its file, with another number of threads, to a file and as text."""
    model = models[kind]
    page = model.report(TEST[FEATURES], TEST[TARGETS[kind]])
    assert model.report(TEST[FEATURES], TEST[TARGETS[kind]], tmp_path / "report.html") is None
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.report(TEST[FEATURES], TEST[TARGETS[kind]]) == page
    data = data_of(loaded.set_params(n_jobs=2).report(TEST[FEATURES], TEST[TARGETS[kind]]))
    same = data_of(page)
    assert {**data, "params": 0} == {**same, "params": 0}


def test_tables_of_all_kinds_give_the_same_report() -> None:
    columns = ["speed", "load", "heat"]
    table = rows(1)
    X, y = table[columns], table[["power", "cost"]]
    model = PolyleafRegressor(n_estimators=5).fit(X.to_numpy(), y.to_numpy())
    page = model.report(X.to_numpy(), y.to_numpy())
    assert data_of(model.report(X.to_numpy().tolist(), y.to_numpy().tolist())) == data_of(page)
    sparse = data_of(model.report(scipy.sparse.csr_matrix(X.to_numpy()), y.to_numpy()))
    assert sparse["data"].pop("sparse") is True
    dense = data_of(page)
    dense["data"].pop("sparse")
    assert sparse == dense
    named = PolyleafRegressor(n_estimators=5).fit(X, y)
    of_polars = named.report(pl.from_pandas(X), pl.from_pandas(y))
    assert of_polars == named.report(X, y)


def test_sparse_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    labels = scipy.sparse.csr_matrix((X[:, [0, 1, 2]] > 0.3).astype(int))
    model = PolyleafClassifier(n_estimators=5, objective="clipped_squared_error", sparse_leaves=2)
    model.fit(X, labels)
    data = data_of(model.report(X, labels))
    assert data == data_of(model.report(X, labels.toarray()))
    for output in data["outputs"]:
        assert max(output["reliability"]["p"]) <= 1


def test_missing_targets_and_weights_of_0_do_not_count() -> None:
    table = rows(1)
    model = fitted("numbers")
    y = table[["power", "cost"]].copy()
    y.loc[:99, "cost"] = np.nan
    data = data_of(model.report(table[FEATURES], y))
    assert [one["rows"] for one in data["outputs"]] == [260, 160]
    whole = data_of(model.report(table[FEATURES][100:], y[100:]))
    assert data["outputs"][1]["scores"][0][0] == whole["outputs"][1]["scores"][0][0]
    said = [line for line in data["left_out"] if "missing, or of weight 0" in line["what"]]
    assert said[0]["names"] == ["cost: 100"]
    weight = np.r_[np.zeros(100), np.ones(160)]
    weighted = data_of(model.report(table[FEATURES], table[["power", "cost"]], sample_weight=weight))
    assert weighted["data"]["weighted"]
    for one, other in zip(weighted["outputs"], whole["outputs"], strict=True):
        assert one["scores"][0][0] == other["scores"][0][0]


def test_a_target_of_which_nothing_is_known() -> None:
    table = rows(1)
    y = table[["power", "cost"]].assign(cost=np.nan)
    data = data_of(fitted("numbers").report(table[FEATURES], y))
    assert data["outputs"][1]["rows"] == 0
    assert data["outputs"][1]["scores"] == [None] * 3
    assert data["outputs"][1]["features"]
    assert all(row["output"] == 0 for row in data["worst"])


def test_outputs_are_chosen_and_left_out() -> None:
    model, table = fitted("labels"), rows(1)
    names = [one["name"] for one in report_of(model, "labels", outputs=["warm", "fast"])["outputs"]]
    assert names == ["warm", "fast"]
    data = report_of(model, "labels", max_outputs=2)
    often = table[["fast", "late", "warm"]].sum().sort_values()
    assert {one["name"] for one in data["outputs"]} == set(often.index[1:])
    said = [line for line in data["left_out"] if "not in this report" in line["what"]]
    assert said[0]["names"] == [often.index[0]]


def test_rows_that_are_explained_are_drawn() -> None:
    model = fitted("numbers")
    data = report_of(model, "numbers", max_rows=50)
    assert data["explained"] == {"rows": 50, "swarm": 50, "seed": 0}
    other = report_of(model, "numbers", max_rows=50, random_state=1)
    assert other["heat_map"]["values"] != data["heat_map"]["values"]
    assert [one["scores"][0][0] for one in other["outputs"]] == [
        one["scores"][0][0] for one in data["outputs"]
    ]
    assert any("not explained" in line["what"] and line["count"] == 210 for line in data["left_out"])


def test_training_curves_have_the_best_round() -> None:
    table, other = rows(), rows(2)
    model = unfitted(
        "numbers", n_estimators=400, learning_rate=0.3, eval_metric=["rmse", "mae"], early_stopping_rounds=390
    )
    sets = {
        "train": (table[FEATURES], table[["power", "cost"]]),
        "held": (other[FEATURES], other[["power", "cost"]]),
    }
    model.fit(table[FEATURES], table[["power", "cost"]], eval_set=sets)
    data = report_of(model, "numbers")
    best = model.best_iteration_ + 1
    assert data["best_rounds"] == [best, best]
    assert best < model.n_estimators_
    assert [one["metric"] for one in data["curves"]] == ["rmse", "mae"]
    for curve in data["curves"]:
        for of_set in curve["sets"]:
            assert len(of_set["rounds"]) <= 301
            values = model.evals_result_[of_set["name"]][curve["metric"]]
            assert {1, best, len(values)} <= set(of_set["rounds"])
            there = [values[number - 1] for number in of_set["rounds"]]
            np.testing.assert_allclose(of_set["values"], there, rtol=1e-4)
    assert any("rounds after the best one" in line["what"] for line in data["left_out"])


def test_members_of_a_bagged_model_have_their_own_best_rounds() -> None:
    table = rows()
    model = unfitted("numbers", n_estimators=40, learning_rate=0.3, early_stopping_rounds=5, n_bags=3)
    model.fit(table[FEATURES], table[["power", "cost"]])
    data = report_of(model, "numbers")
    assert data["best_rounds"] == [bag.n_rounds for bag in model._bags]
    for curve, best in zip(data["curves"][0]["sets"], data["best_rounds"], strict=True):
        assert best in curve["rounds"]


def test_a_constant_model_and_one_row() -> None:
    X = np.zeros((30, 2))
    model = PolyleafRegressor(n_estimators=3).fit(X, np.ones(30))
    data = data_of(model.report(X[:1], np.ones(1)))
    assert data["outputs"][0]["features"] == []
    assert data["outputs"][0]["scores"][0][0] == 1
    assert data["worst"] == []
