"""Names decide: the orders of `targets`, of y, of weights and of evaluation sets change no bit."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from same_forest import assert_same_bits

N = 240
TARGETS = {
    "size": "regression",
    "kind": "multiclass",
    "tags": {"kind": "multilabel", "columns": ["t2", "t1"]},
}
NAMES = ["t1", "kind", "size", "t2"]
SETTINGS = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1, "random_state": 0}


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y = pd.DataFrame(
        {
            "t1": (X[:, 0] > 0).astype(int),
            "kind": np.array(list("abc"))[np.digitize(X[:, 1] + 0.3 * rng.normal(size=N), [-0.5, 0.5])],
            "size": X[:, 2] + 0.1 * rng.normal(size=N),
            "t2": (X[:, 3] + X[:, 0] > 0).astype(int),
        }
    )
    weight = pd.DataFrame(rng.uniform(0.1, 3, size=(N, 4)), columns=NAMES)
    return X, y, weight.mask(rng.random((N, 4)) < 0.1, 0.0)


def fit(y, weight, targets=TARGETS, evaluation=None, **params):
    X = problem()[0]
    model = PolyleafMixed(targets, **SETTINGS | params)
    if evaluation is None:
        return model.fit(X, y, sample_weight=weight)
    return model.fit(X, y, sample_weight=weight, eval_set=evaluation[0], eval_sample_weight=evaluation[1])


ORDERS = [list(order) for order in permutations(NAMES)]


@pytest.fixture(scope="module")
def expected():
    X, y, weight = problem()
    Xe, ye, weight_e = problem(1)
    return X, y, weight, fit(y, weight, evaluation=((Xe, ye), weight_e))


@pytest.mark.parametrize("order", ORDERS)
def test_orders_of_columns_change_no_bit(expected, order):
    """y, its weights, an evaluation set and its weights, each in an order of its own."""
    X, y, weight, model = expected
    Xe, ye, weight_e = problem(1)
    at = ORDERS.index(order)
    other, third, fourth = (ORDERS[(at + step) % len(ORDERS)] for step in (5, 11, 17))
    found = fit(y[order], weight[other], evaluation=((Xe, ye[third]), weight_e[fourth]))
    assert_same_bits(found, model)
    assert found.evals_result_ == model.evals_result_
    assert list(found.predict(X).columns) == order == found.target_names_.tolist()
    pd.testing.assert_frame_equal(found.predict(X)[NAMES], model.predict(X))
    assert found.score(X, y[third], weight[other]) == model.score(X, y, weight)


@pytest.mark.parametrize("order", list(permutations(TARGETS)))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sketch": "random_projection", "sketch_size": 2},
        {"multi_strategy": "one_output_per_tree"},
        {"subsample": 0.5, "sampling_method": "gradient_based"},
        {"loss_weight": {"kind": 3.0}, "sparse_leaves": 2},
    ],
)
def test_the_order_of_targets_changes_no_bit(order, options):
    X, y, weight = problem()
    Xe, ye, weight_e = problem(1)
    evaluation = ((Xe, ye), weight_e)
    model = fit(y, weight, evaluation=evaluation, **options)
    found = fit(y, weight, {name: TARGETS[name] for name in order}, evaluation, **options)
    assert_same_bits(found, model)
    assert found.evals_result_ == model.evals_result_
    pd.testing.assert_frame_equal(found.predict(X), model.predict(X))


@pytest.mark.parametrize("order", ORDERS[::5])
def test_weights_without_names_are_in_the_order_of_y(expected, order):
    _, y, weight, model = expected
    found = fit(y[order], weight[order].to_numpy())
    assert_same_bits(found, model)
    # Also beside a column that is of no use, with a weight or without.
    wide, wide_weight = y[order].copy(), weight[order].copy()
    wide.insert(1, "unused", "x")
    assert_same_bits(fit(wide, weight[order].to_numpy()), model)
    wide_weight.insert(1, "unused", 5.0)
    assert_same_bits(fit(wide, wide_weight.to_numpy().tolist()), model)
    assert_same_bits(fit(wide, wide_weight[wide_weight.columns[::-1]]), model)


def test_weights_of_a_class_are_those_of_its_own_column(expected):
    """What was wrong once: cells of another target were left out."""
    _, y, _, _ = expected
    weight = pd.DataFrame(1.0, index=y.index, columns=NAMES)
    weight.loc[y["kind"] == "a", "kind"] = 0.0
    model = fit(y, weight.to_numpy())
    assert model.classes_["kind"].tolist() == ["b", "c"]
    seen = y["kind"] != "a"
    share = np.log(np.array([(y["kind"][seen] == one).mean() for one in "bc"]))
    places = [model._coding.columns_of_outputs().index(f"kind={one}") for one in "bc"]
    np.testing.assert_allclose(model._coding.in_order_of_y(model._forest.base_score)[places], share)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dict"])
@pytest.mark.parametrize("as_eval", ["tuple", "list", "dict"])
def test_frames_of_weights_of_every_library(expected, library, as_eval):
    _, y, weight, model = expected
    Xe, ye, weight_e = problem(1)

    def framed(frame):
        if library == "pandas":
            return frame
        columns = {name: frame[name].to_numpy() for name in frame}
        if library == "dict":
            return columns
        module = pytest.importorskip(library)
        return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)

    pair, cells = (Xe, framed(ye[NAMES[::-1]])), framed(weight_e[NAMES[1:] + NAMES[:1]])
    forms = {"tuple": (pair, cells), "list": ([pair], [cells]), "dict": ({"v": pair}, {"v": cells})}
    found = fit(framed(y), framed(weight[NAMES[::-1]]), evaluation=forms[as_eval])
    assert_same_bits(found, model)
    assert list(found.evals_result_.values()) == list(model.evals_result_.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w.rename(columns={"t1": "t9"}), r"must have a column.*'t9', which y does not.*lacks 't1'"),
        (lambda w: w.drop(columns="kind"), "lacks 'kind'"),
        (lambda w: w.assign(extra=1.0), "'extra', which y does not have"),
        (lambda w: w[["t1"]], "lacks"),
        (lambda w: w.assign(t1="x"), "column 't1' holds no numbers but text"),
        (lambda w: w.to_numpy()[:, :3], r"shape \(240, 3\)"),
        (lambda w: {}, "empty dict"),
        (lambda w: {"t1": w["t1"], "kind": w["kind"][1:]}, r"\['kind'\] has shape"),
    ],
)
def test_weights_with_other_names_are_refused(change, words):
    X, y, weight = problem()
    with pytest.raises(ValueError, match="sample_weight.*" + words):
        fit(y, change(weight))
    with pytest.raises(ValueError, match="eval_sample_weight.*" + words):
        fit(y, weight, evaluation=((X, y), change(weight)))


def test_vectors_of_outputs_are_in_the_order_of_y(tmp_path):
    """A number for each output has no names: y's order counts, with all classes of a column in its place."""
    X, y, _ = problem()
    model = fit(y, None)
    assert model._coding.columns_of_outputs() == ("t1", "kind=a", "kind=b", "kind=c", "size", "t2")
    share, base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    model = fit(y, None, output_weight=share, base_score=base)
    turned = [4, 0, 5, 1, 2, 3]
    other = fit(
        y[["size", "t1", "t2", "kind"]],
        None,
        output_weight=np.array(share)[turned],
        base_score=np.array(base)[turned],
    )
    np.testing.assert_allclose(other._raw(X, None), model._raw(X, None))
    np.testing.assert_array_equal(model._coding.in_order_of_y(model._forest.base_score), base)
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.target_names_.tolist() == NAMES
    pd.testing.assert_frame_equal(loaded.predict(X), model.predict(X))


def test_going_on_with_targets_and_columns_in_another_order():
    X, y, weight = problem()
    whole = fit(y, weight, n_estimators=6)
    begun = fit(y, weight, n_estimators=3)
    again = PolyleafMixed(dict(reversed(TARGETS.items())), **SETTINGS | {"n_estimators": 3})
    again.fit(X, y[NAMES[::-1]], sample_weight=weight, init_model=begun)
    np.testing.assert_array_equal(again._raw(X, None), whole._raw(X, None))
    assert list(again.predict(X).columns) == NAMES


# --- the other estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("estimator", [PolyleafRegressor, PolyleafClassifier])
def test_frames_of_weights_are_matched_by_name_in_every_estimator(estimator, library):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    Y = (X + 0.3 * rng.normal(size=(N, 3)) > 0).astype(float)
    weight = rng.uniform(0.1, 2, size=(N, 3))

    def framed(values, names, order=(0, 1, 2)):
        columns = {names[j]: np.ascontiguousarray(values[:, j]) for j in order}
        return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)

    def made():
        return estimator(**SETTINGS)

    expected = made().fit(X, Y, weight, eval_set=(X, Y), eval_sample_weight=weight)
    y = framed(Y, "abc")
    for order in permutations(range(3)):
        turned = framed(weight, "abc", order)
        model = made().fit(X, y, turned, eval_set=(X, y), eval_sample_weight=turned)
        assert_same_bits(model, expected)
        assert model.evals_result_ == expected.evals_result_
        assert model.score(X, y, turned) == model.score(X, Y, turned) == expected.score(X, Y, weight)
        # Evaluation sets without names have those of fit.
        plain = made().fit(X, y, turned, eval_set=(X, Y), eval_sample_weight=turned)
        assert plain.evals_result_ == expected.evals_result_
    with pytest.raises(ValueError, match=r"sample_weight must have a column.*'x'.*lacks 'c'"):
        made().fit(X, y, framed(weight, "abx"))
    with pytest.raises(ValueError, match=r"eval_sample_weight must have a column.*'x'.*lacks 'c'"):
        made().fit(X, y, eval_set=(X, y), eval_sample_weight=framed(weight, "abx"))
    with pytest.raises(ValueError, match="y has the columns 'c', 'b', 'a', but y had"):
        model.score(X, framed(Y, "abc", (2, 1, 0)))
    # Without names in y there is nothing to match them with, and their order may be another.
    with pytest.raises(
        ValueError, match="sample_weight has the columns 'x', 'y', 'z', but those of y have no"
    ):
        made().fit(X, Y, framed(weight, "xyz"))


def test_a_frame_of_one_column_weighs_rows_whatever_its_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y, weight = pd.Series(X[:, 0], name="a"), pd.DataFrame({"w": rng.uniform(0.5, 2, size=N)})
    expected = PolyleafRegressor(**SETTINGS).fit(X, y, weight["w"])
    for target in (y, y.to_frame()):
        found = PolyleafRegressor(**SETTINGS).fit(X, target, weight)
        assert_same_bits(found, expected)
