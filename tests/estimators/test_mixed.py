"""Targets of several kinds in one model: named columns in and out, groups on a par, one engine."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gradients_of import gradients_of
from mixed_table import COLUMNS, TARGETS, N, mixed, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.callbacks import Checkpoint
from polyleaf.losses import make_loss
from polyleaf.losses.grouped import GroupedLoss, LossGroup
from polyleaf.params.documented import parameters_section
from polyleaf.params.table import parameters_of

# --- one group is the plain estimator ----------------------------------------------------------------------

SINGLE = {
    "multiclass": ({"grade": "multiclass"}, PolyleafClassifier, {}),
    "binary": ({"passed": "binary"}, PolyleafClassifier, {}),
    "multilabel": ({"tags": TARGETS["tags"]}, PolyleafClassifier, {}),
    "regression": ({"height": "regression"}, PolyleafRegressor, {}),
    "several": ({"both": {"kind": "regression", "columns": ["height", "n1"]}}, PolyleafRegressor, {}),
    "absolute": ({"height": "absolute_error"}, PolyleafRegressor, {"objective": "absolute_error"}),
    "quantile": (
        {"price": TARGETS["price"]},
        PolyleafRegressor,
        {"objective": "quantile", "quantile_levels": [0.1, 0.5, 0.9]},
    ),
    "huber": ({"noise": TARGETS["noise"]}, PolyleafRegressor, {"objective": "huber", "huber_delta": 0.5}),
    "poisson": ({"visits": "poisson"}, PolyleafRegressor, {"objective": "poisson"}),
}
OPTIONS = [
    {},
    {"subsample": 0.7, "sampling_method": "gradient_based", "colsample_bynode": 0.7},
    {"multi_strategy": "one_output_per_tree", "reg_alpha": 0.1},
    {"sparse_leaves": 1},
]


@pytest.mark.parametrize("case", SINGLE)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_single_group_is_the_plain_estimator_bit_for_bit(case, options):
    targets, plain, extra = SINGLE[case]
    X, y = table()
    weight = np.random.default_rng(3).random(N)
    model = mixed(targets, **options).fit(X, y, sample_weight=weight)
    ((name, spec),) = targets.items()
    columns = spec.get("columns", [name]) if isinstance(spec, dict) else [name]
    values = np.column_stack([y[column] for column in columns])
    settings = {"n_estimators": 20, "n_jobs": 1, "random_state": 1}
    peer = plain(**settings | extra | options).fit(
        X, values[:, 0] if len(columns) == 1 else values, sample_weight=weight
    )
    for array, other in zip(model._forest.to_arrays().items(), peer._forest.to_arrays().items(), strict=True):
        np.testing.assert_array_equal(array[1], other[1], err_msg=array[0])
    prediction = model.predict(X)
    together = np.column_stack(list(prediction.values()))
    np.testing.assert_array_equal(together, np.reshape(peer.predict(X), (N, -1)))
    if plain is PolyleafClassifier:
        np.testing.assert_array_equal(model.predict_proba(X)[name], peer.predict_proba(X))


def test_a_single_group_of_many_classes_has_the_same_sketch_and_hessian():
    """What "auto" stands for depends on the loss."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 4)), rng.permutation(np.arange(700) % 70)
    model = mixed({"c": "multiclass"}, n_estimators=3).fit(X, {"c": y})
    peer = PolyleafClassifier(n_estimators=3, n_jobs=1, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X)["c"], peer.predict_proba(X))


# --- several groups ----------------------------------------------------------------------------------------


def test_each_group_is_learnt():
    """Held-out rows are predicted better than by constants, though one target is in millions."""
    X, y = table(n=3000)
    train, test = slice(0, 2000), slice(2000, None)
    model = mixed(n_estimators=60, max_depth=5).fit(X[train], {k: v[train] for k, v in y.items()})
    found = model.predict(X[test])
    y = {k: v[test] for k, v in y.items()}
    assert list(found) == COLUMNS
    assert (found["grade"] == y["grade"]).mean() > 0.6
    assert (found["passed"] == y["passed"]).mean() > 0.7
    assert np.var(found["height"] - y["height"]) < 0.2 * np.var(y["height"])
    assert np.corrcoef(found["visits"], y["visits"])[0, 1] > 0.6
    assert (found["visits"] > 0).all()
    assert (found["t1"] == y["t1"]).mean() > 0.9
    assert (found["t2"] == y["t2"]).mean() > 0.85
    assert ((y["price"] > found["price_q0.1"]) & (y["price"] < found["price_q0.9"])).mean() == pytest.approx(
        0.8, abs=0.1
    )
    assert (found["price_q0.1"] <= found["price_q0.5"]).all()
    assert (found["price_q0.5"] <= found["price_q0.9"]).all()
    assert np.abs(found["n1"] - y["n1"]).mean() < 0.85 * np.abs(y["n1"] - np.median(y["n1"])).mean()


def test_probabilities_by_group():
    X, y = table()
    model = mixed().fit(X, y)
    found = model.predict_proba(X)
    assert {name: one.shape for name, one in found.items()} == {
        "grade": (N, 5),
        "passed": (N, 2),
        "tags": (N, 3),
    }
    np.testing.assert_allclose(found["grade"].sum(axis=1), 1)
    assert model.classes_["grade"].tolist() == list("abcde")
    assert model.classes_["passed"].tolist() == [False, True]
    predicted = model.predict(X)
    np.testing.assert_array_equal(model.classes_["grade"][found["grade"].argmax(axis=1)], predicted["grade"])
    np.testing.assert_array_equal(found["tags"][:, 1] > 0.5, predicted["t2"] == 1)


def test_units_of_a_target_change_no_split():
    X, y = table()
    plain = mixed().fit(X, y)
    scaled = mixed().fit(X, y | {"height": y["height"] * 2.0**-30, "price": y["price"] * 8})
    np.testing.assert_array_equal(plain._forest.feature, scaled._forest.feature)
    np.testing.assert_array_equal(plain.predict(X)["grade"], scaled.predict(X)["grade"])


def test_groups_are_on_a_par():
    """Without any signal, each group adds the same to the score of a random split, whatever its size."""
    rng = np.random.default_rng(2)
    n, factor = 4000, {}
    y = np.column_stack(
        [rng.integers(0, 8, size=n), rng.normal(size=n) * 1e5, rng.gamma(2.0, size=n), rng.normal(size=n)]
    )
    parts = [
        ("c", "cross_entropy", "multiclass", 8),
        ("r", "squared_error", "regression", 1),
        ("g", "gamma", "regression", 1),
        ("a", "absolute_error", "regression", 1),
    ]
    groups, output = [], 0
    for column, (name, objective, kind, d) in enumerate(parts):
        loss = make_loss(objective, n_outputs=d, kind=kind)
        groups.append(LossGroup(name, loss, slice(column, column + 1), slice(output, output + d)))
        output += d
    loss = GroupedLoss(groups)
    base = loss.base_score(y, None)
    unit, gain_weight = loss.scales(y, None, base, True)
    assert unit.shape == gain_weight.shape == (11,)
    gradient, hessian = gradients_of(loss, y, np.tile(base, (n, 1)))
    scores = []
    for _ in range(300):
        rows = rng.random(n) < 0.5
        scores.append(
            gain_weight * gradient[rows].sum(axis=0, dtype=np.float64) ** 2 / hessian[rows].sum(axis=0)
        )
    mean = np.mean(scores, axis=0)
    for group in groups:
        factor[group.name] = mean[group.outputs].sum()
    for name in "rga":
        assert factor[name] == pytest.approx(factor["c"], rel=0.35)


def test_loss_weight_shifts_the_splits():
    """The heavier group is fitted better."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 6))
    y = {"a": X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=1500), "b": (X[:, 2] * X[:, 3] > 0).astype(int)}
    targets = {"a": "regression", "b": "binary"}
    error = {}
    for heavy in ("a", "b"):
        model = mixed(targets, n_estimators=30, max_depth=3, loss_weight={heavy: 50.0}).fit(X, y)
        error[heavy] = (
            np.var(model.predict(X)["a"] - y["a"]),
            -np.log(model.predict_proba(X)["b"][np.arange(1500), y["b"]]).mean(),
        )
    assert error["a"][0] < 0.9 * error["b"][0]
    assert error["b"][1] < 0.9 * error["a"][1]


def test_early_stopping_watches_the_mean_of_the_groups_losses():
    X, y = table()
    Xe, ye = table(seed=1)
    weight = {"grade": 3.0}
    model = mixed(n_estimators=300, learning_rate=0.5, early_stopping_rounds=4, loss_weight=weight)
    model.fit(X, y, eval_set=(Xe, ye))
    history = model.evals_result_["validation_0"]
    assert list(history) == [
        "grade/cross_entropy",
        "passed/binary_cross_entropy",
        "height/rmse",
        "visits/poisson",
        "tags/binary_cross_entropy",
        "price/quantile",
        "noise/huber",
        "loss",
    ]
    assert model.n_estimators_ < 300
    assert model.best_iteration_ == np.argmin(history["loss"])
    # Of the best constant it is 1: each metric is divided by its value there.
    share = np.mean(y["grade"][:, np.newaxis] == np.array(list("abcde")), axis=0)
    at_first = {
        "grade/cross_entropy": -(share * np.log(share)).sum(),
        "height/rmse": np.std(y["height"]),
    }
    for name, value in at_first.items():
        assert history[name][0] < value
    n_groups = 7
    rest = sum(
        (3.0 if name.startswith("grade") else 1.0) / (n_groups + 2) * history[name][0] / value
        for name, value in at_first.items()
    )
    assert rest < history["loss"][0] < 1.0


def test_gradients_of_groups_stand_side_by_side():
    rng = np.random.default_rng(5)
    y = np.column_stack([rng.integers(0, 3, size=50), rng.normal(size=50)]).astype(np.float64)
    softmax = make_loss("cross_entropy", n_outputs=3, kind="multiclass")
    median = make_loss("absolute_error", n_outputs=1, kind="regression")
    loss = GroupedLoss(
        [
            LossGroup("m", median, slice(1, 2), slice(0, 1)),
            LossGroup("c", softmax, slice(0, 1), slice(1, 4)),
        ]
    )
    raw = rng.normal(size=(50, 4))
    gradient, hessian = gradients_of(loss, y, raw)
    expected = gradients_of(softmax, y[:, 0].astype(np.int32), np.ascontiguousarray(raw[:, 1:]))
    np.testing.assert_array_equal(gradient[:, 1:], expected[0])
    np.testing.assert_array_equal(hessian[:, 1:], expected[1])
    np.testing.assert_array_equal(gradient[:, 0], np.sign(raw[:, 0] - y[:, 1]))
    assert (hessian[:, 0] == 1).all()
    np.testing.assert_array_equal(loss.leaf_levels, [0.5, np.nan, np.nan, np.nan])
    assert loss.target_columns().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"sketch": "random_projection", "sketch_size": 3},
        {"sketch": "top_outputs", "sketch_size": 3},
        {"sparse_leaves": 4},
        {"multi_strategy": "one_output_per_tree"},
        {"subsample": 0.5, "sampling_method": "gradient_based"},
        {"subsample": 0.5, "colsample_bytree": 0.7},
        {"scale_targets": False},
        {"softmax_curvature": "abs(p-y)", "max_bins": 16},
        {"base_score": 0.5},
    ],
)
def test_every_option_goes_with_groups_and_threads_change_no_bit(options):
    X, y = table()
    X[::5, 0] = np.nan
    weight = np.random.default_rng(0).random(N) + 0.2
    one = mixed(**options).fit(X, y, sample_weight=weight)
    two = mixed(**options, n_jobs=2).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(one._raw(X, None), two._raw(X, None))
    assert len(np.unique(one.predict(X)["height"])) > 5


def test_integer_weights_are_repeated_rows():
    X, y = table(n=200)
    weight = np.random.default_rng(0).integers(0, 3, size=200)
    params = {"min_samples_leaf": 1, "n_estimators": 5}
    targets = {"grade": "multiclass", "price": "absolute_error"}
    weighted = mixed(targets, **params).fit(X, y, sample_weight=weight)
    repeated = mixed(targets, **params).fit(X.repeat(weight, 0), {k: v.repeat(weight) for k, v in y.items()})
    np.testing.assert_allclose(weighted._raw(X, None), repeated._raw(X, None), rtol=1e-6, atol=1e-9)


# --- tables in and out -------------------------------------------------------------------------------------


def test_predictions_are_the_kind_of_table_that_y_was(tmp_path):
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    X, y = table()
    expected = mixed().fit(X, y).predict(X)
    assert isinstance(expected, dict)
    forms = {
        pd.DataFrame: pd.DataFrame(y).astype({"grade": "category"}),
        pl.DataFrame: pl.DataFrame(y),
        pa.Table: pa.table(y),
    }
    for kind, frame in forms.items():
        model = mixed().fit(X, frame)
        found = model.predict(X)
        assert isinstance(found, kind)
        names = list(found.column_names if kind is pa.Table else found.columns)
        assert names == COLUMNS
        for name in COLUMNS:
            np.testing.assert_array_equal(np.asarray(found[name]), expected[name])
        model.save_model(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert isinstance(loaded, PolyleafMixed)
        again = loaded.predict(X)
        assert isinstance(again, kind)
        for name in COLUMNS:
            np.testing.assert_array_equal(np.asarray(again[name]), expected[name])
        for name, probability in model.predict_proba(X).items():
            np.testing.assert_array_equal(loaded.predict_proba(X)[name], probability)


def test_a_frame_of_features_gives_its_index_to_the_predictions():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("uvwxyz"), index=np.arange(N) + 7)
    model = mixed().fit(frame, pd.DataFrame(y))
    assert model.predict(frame).index.tolist() == frame.index.tolist()
    assert model.feature_names_in_.tolist() == list("uvwxyz")
    plain = mixed().fit(X, pd.DataFrame(y)).predict(X.tolist())
    assert plain.index.tolist() == list(range(N))


def test_saved_models_keep_parameters_and_can_be_fitted_again(tmp_path):
    X, y = table()
    model = mixed(loss_weight={"grade": 2.0}).fit(X, y)
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(clone(loaded).fit(X, y)._raw(X, None), model._raw(X, None))
    loaded.set_params(targets={"grade": "multiclass"})  # matters to another fit only
    assert list(loaded.predict(X)) == COLUMNS


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda target: target.update(table="excel"), "not that of a mixed model"),
        (lambda target: target.update(groups=[]), "groups of targets are none"),
        (lambda target: target["groups"].append(target["groups"][0]), "same name"),
        (lambda target: target["groups"][0].update(columns=["a", "b"]), "not 1 words"),
        (lambda target: target["groups"][0].update(loss="poisson"), "does not suit its target"),
        (lambda target: target["groups"][0].update(name=3), "its name is 3"),
        (
            lambda target: target.update(groups=target["groups"][:-1], names=None),
            "outputs, which does not suit",
        ),
        (lambda target: target["groups"].insert(0, 5), "malformed"),
        (lambda target: target["groups"][4]["target"].update(levels=[0.9, 0.1, 0.2]), "quantile levels"),
        (lambda target: target["groups"][4]["target"].update(levels=None), "do not agree"),
        (lambda target: target["groups"][1].update(columns=["grade"]), "both predict"),
        (lambda target: target.update(names=["grade"]), "target names"),
        (lambda target: target["names"].__setitem__(0, "x"), "not the columns of its groups"),
    ],
)
def test_hostile_files_are_refused(spoil, words):
    """Whatever a file says about its groups is checked before it is believed."""
    from polyleaf.model.fitted import FittedModel, SavedModel
    from polyleaf.model.page import describe, read_page

    X, y = table()
    model = mixed(n_estimators=1).fit(X, y)
    fitted = FittedModel(model._forest, model._coding, "grouped", None, {}, 0, {})
    page = describe(SavedModel("mixed", model.get_params(), fitted))
    read_page(page, model._forest.to_arrays())
    spoil(page["target"])
    with pytest.raises(ValueError, match=words):
        read_page(page, model._forest.to_arrays())


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "error", "words"),
    [
        (None, TypeError, "targets must be a dict"),
        ({}, ValueError, "at least one group"),
        ({"a": "poison"}, ValueError, r"targets\['a'\] must be one of regression.*got 'poison'"),
        ({"a": 3}, TypeError, r"targets\['a'\] must be a str or a dict"),
        ({3: "regression"}, TypeError, "name of a group"),
        ({"a": {}}, ValueError, "'kind' or an 'objective'"),
        ({"a": {"kind": "regression", "colums": ["x"]}}, ValueError, "got 'colums'"),
        ({"a": "multilabel"}, ValueError, "no column 'a'"),
        ({"a": {"kind": "binary", "columns": ["t1", "t2"]}}, ValueError, "a binary target is one column"),
        ({"a": {"kind": "regression", "columns": "t1"}}, TypeError, "list of str"),
        ({"a": {"kind": "regression", "columns": ["t1", "t1"]}}, ValueError, "distinct"),
        ({"a": {"kind": "binary", "objective": "huber"}}, ValueError, "not available for a binary"),
        (
            {"a": {"objective": "huber", "tweedie_power": 1.5}},
            ValueError,
            "belongs to the objective 'tweedie'",
        ),
        ({"a": {"objective": "huber", "huber_delta": -1}}, ValueError, "huber_delta must be"),
        ({"zzz": "regression"}, ValueError, "y has no column 'zzz'; it has 'grade'"),
        ({"grade": "binary"}, ValueError, "5 classes"),
        ({"grade": "regression"}, ValueError, "column 'grade' of y"),
        ({"price": "gamma"}, ValueError, "'price' of y is .* row .*'gamma' needs"),
        ({"p": {"kind": "binary", "columns": ["price"]}}, ValueError, "'p' of y holds .* whole numbers"),
        (
            {"price": "regression", "p": {"objective": "huber", "columns": ["price"]}},
            ValueError,
            "both predict a column 'price'",
        ),
        ({"a": {"kind": "multilabel", "columns": ["t1", "visits"]}}, ValueError, "matrix of 0 and 1"),
    ],
)
def test_targets_that_do_not_fit_are_named(targets, error, words):
    X, y = table()
    with pytest.raises(error, match=words):
        PolyleafMixed(targets).fit(X, y)


def test_other_bad_input_is_named():
    X, y = table()
    with pytest.raises(TypeError, match="y must be a table with named columns"):
        mixed().fit(X, np.zeros((N, 3)))
    with pytest.raises(ValueError, match="loss_weight has 'grad'"):
        mixed(loss_weight={"grad": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"loss_weight\['grade'\] must be"):
        mixed(loss_weight={"grade": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'height' of y has 599 row"):
        mixed().fit(X, y | {"height": y["height"][1:]})
    with pytest.raises(ValueError, match="not seen in training: 'f'"):
        mixed().fit(X, y, eval_set=(X, y | {"grade": np.full(N, "f")}))
    with pytest.raises(ValueError, match=r"no column 'price'"):
        mixed().fit(X, y, eval_set=(X, {k: v for k, v in y.items() if k != "price"}))
    twice = pd.DataFrame(y)
    twice = pd.concat([twice, twice[["price"]]], axis=1)
    with pytest.raises(ValueError, match="more than one column 'price'"):
        mixed().fit(X, twice)


# --- parameters --------------------------------------------------------------------------------------------


@pytest.mark.cpu_only("--device changes a default")
def test_signature_and_docstring_are_those_of_the_table():
    signature = inspect.signature(PolyleafMixed.__init__).parameters
    in_code = {name: parameter.default for name, parameter in signature.items() if name != "self"}
    assert in_code == {name: row.default for name, row in parameters_of("mixed").items()}
    assert list(in_code) == list(parameters_of("mixed"))
    doc = inspect.getdoc(PolyleafMixed)
    assert "{parameters}" not in doc
    assert parameters_section("mixed") in doc


# --- going on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "targets",
    [
        {"a": "poisson", "b": "binary"},
        {"c": {"kind": "regression", "columns": ["a"]}, "b": "binary"},
        {"a": "regression"},
    ],
)
def test_going_on_needs_the_same_groups(targets):
    X = np.arange(80.0)[:, None]
    y = {"a": X[:, 0] + 1, "b": (X[:, 0] > 40).astype(int)}
    model = PolyleafMixed({"a": "regression", "b": "binary"}, n_estimators=2, warm_start=True).fit(X, y)
    model.set_params(n_estimators=4)
    assert model.fit(X, y).n_estimators_ == 4
    model.set_params(n_estimators=6, targets=targets)
    with pytest.raises(ValueError, match="warm_start: targets has"):
        model.fit(X, y)


@pytest.mark.parametrize("kind", ["regression", "huber", "quantile", "binary", "multiclass"])
def test_a_single_group_goes_on_and_is_checkpointed(kind, tmp_path):
    X = np.arange(90.0)[:, None]
    y = {
        "a": X[:, 0]
        if kind in ("regression", "huber", "quantile")
        else (X[:, 0] // 45 if kind == "binary" else X[:, 0] // 30)
    }
    spec = {"a": kind if kind != "quantile" else {"objective": "quantile", "quantile_levels": [0.2, 0.8]}}
    whole = PolyleafMixed(spec, n_estimators=4, random_state=0).fit(X, y)
    begun = PolyleafMixed(
        spec, n_estimators=2, random_state=0, callbacks=[Checkpoint(tmp_path / "c", 1)]
    ).fit(X, y)
    done = PolyleafMixed(spec, n_estimators=2, random_state=0).fit(X, y, init_model=begun)
    resumed = PolyleafMixed(spec, n_estimators=4, random_state=0).fit(X, y, resume=tmp_path / "c")
    for model in (done, resumed):
        np.testing.assert_array_equal(model._forest.values, whole._forest.values)
    assert load_model(tmp_path / "c").n_estimators_ == 2


def test_a_group_that_an_evaluation_set_does_not_have_is_left_out():
    X, _ = table()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = PolyleafMixed({"a": "regression", "b": "regression"}, n_estimators=30, early_stopping_rounds=3)
    model.fit(X, frame, eval_set=(X, frame.assign(b=np.nan)))
    assert model.best_iteration_ > 5
    assert np.isfinite(model.evals_result_["validation_0"]["loss"]).all()
