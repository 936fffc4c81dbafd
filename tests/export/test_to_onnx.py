"""onnxruntime says what polyleaf says of every kind of model: the same leaves, scores and predictions."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mixed_table import TARGETS, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnx.reference")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx_runs import assert_same, exported, fed, outputs_of, results, session  # noqa: E402

pytestmark = [
    pytest.mark.other_threads("onnxruntime has threads of its own"),
    pytest.mark.cpu_only("an export does not depend on the device"),
]

HELD_OUT = 10_000
COMMON: dict[str, Any] = {"n_estimators": 30, "n_jobs": 1, "random_state": 0, "learning_rate": 0.3}


def numbers(n: int, seed: int) -> np.ndarray:
    """A table with gaps, ties and columns of all sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1, 1e-3, 1e6, 1, 1, 1]
    X[:, 3] = np.round(X[:, 3], 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


X = numbers(800, 0)
SCORE = np.nan_to_num(X[:, 0] + X[:, 2] / 1e6 - np.abs(X[:, 3]))
Y = np.stack([SCORE, SCORE**2, np.nan_to_num(X[:, 4])], axis=1)
LABELS = (Y.mean(axis=0) < Y).astype(int)
WORDS = np.array(["low", "mittel, größer", "high"])[np.digitize(SCORE, [-0.8, 0.2])]
WIDE = np.random.default_rng(1).normal(size=(3, 100))


def regressor(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**COMMON | params)


def classifier(**params: Any) -> PolyleafClassifier:
    return PolyleafClassifier(**COMMON | params)


def own_objective(y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = 1 / (1 + np.exp(-raw))
    return p - y, p * (1 - p)


MODELS: dict[str, Callable[[], Any]] = {
    "one number": lambda: regressor().fit(X, SCORE),
    "three numbers": lambda: regressor().fit(X, Y),
    "a hundred numbers": lambda: regressor().fit(X, Y @ WIDE),
    "a tree for each output": lambda: regressor(multi_strategy="one_output_per_tree").fit(X, Y),
    "sparse leaves": lambda: regressor(sparse_leaves=4).fit(X, Y @ WIDE),
    "a value in a leaf": lambda: regressor(sparse_leaves=1).fit(X, Y),
    "huge and tiny": lambda: regressor().fit(X, Y * [1e200, 1, 1e-200]),
    "far from zero": lambda: regressor().fit(X, Y + 1e9),
    "quantiles": lambda: regressor(objective="quantile", quantile_levels=[0.1, 0.5, 0.9]).fit(X, Y),
    "one quantile": lambda: regressor(objective="quantile", quantile_levels=[0.3]).fit(X, SCORE),
    "median": lambda: regressor(objective="absolute_error").fit(X, Y),
    "counts": lambda: regressor(objective="poisson").fit(X, np.round(np.abs(Y))),
    "amounts": lambda: regressor(objective="tweedie").fit(X, np.abs(Y)),
    "bags": lambda: regressor(n_bags=3).fit(X, Y),
    "two classes": lambda: classifier().fit(X, SCORE > 0),
    "two classes by a softmax": lambda: classifier(objective="cross_entropy").fit(X, SCORE > 0),
    "classes": lambda: classifier().fit(X, WORDS),
    "bags of classes": lambda: classifier(n_bags=2).fit(X, WORDS),
    "labels": lambda: classifier().fit(X, LABELS),
    "labels on their own scale": lambda: classifier(objective="clipped_squared_error", sparse_leaves=2).fit(
        X, LABELS
    ),
    "an objective of one's own": lambda: classifier(objective=own_objective).fit(X, SCORE > 0),
    "early stopping": lambda: classifier(early_stopping_rounds=2, n_estimators=200, refit=False).fit(
        X, WORDS
    ),
    "the first rounds": lambda: regressor().fit(X, Y)[:7],
    "later rounds": lambda: regressor().fit(X, Y)[5:9],
}


@pytest.mark.parametrize("kind", MODELS)
def test_float64(kind: str) -> None:
    assert_same(MODELS[kind](), numbers(HELD_OUT, 7), raw_error=1e-12, error=1e-10)


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "huge and tiny"])
def test_float32(kind: str) -> None:
    """Rows of float32 fall into the leaves that polyleaf finds for them; what goes out is rounded."""
    rows = numbers(HELD_OUT, 7).astype(np.float32)
    assert_same(MODELS[kind](), rows, input_type="float32", raw_error=1e-6, error=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_the_older_operator(kind: str) -> None:
    """It returns float32, and no score loses more than that."""
    assert_same(MODELS[kind](), numbers(HELD_OUT, 7), ml_opset=3, raw_error=1e-6, error=1e-5)


def test_a_base_score_does_not_swallow_the_trees() -> None:
    """Beside 1e9, float32 would have no digit left of them."""
    model = regressor().fit(X, Y + 1e9)
    rows = numbers(1000, 3)
    found = results(model, rows, ml_opset=3)["targets"]
    np.testing.assert_allclose(found - 1e9, model.predict(rows) - 1e9, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"input_type": "float32"}, {"ml_opset": 3}], ids=str)
def test_mixed_targets(options: dict[str, Any]) -> None:
    """Every column of predict is an output; so are the probabilities of each group that has some."""
    X, y = table()
    model = PolyleafMixed(TARGETS, **COMMON).fit(X, y)
    rows = table(seed=4, n=HELD_OUT)[0].astype(options.get("input_type", "float64"))
    exact = not options
    assert_same(model, rows, raw_error=1e-12 if exact else 1e-6, error=1e-10 if exact else 1e-5, **options)
    named = [one.name for one in session(exported(model)).get_outputs()]
    expected = [name.replace(".", "_") for name in model.predict(rows[:1])]
    assert named == [*expected, "grade_probabilities", "passed_probabilities", "tags_probabilities"]


# --- categories --------------------------------------------------------------------------------------------


def with_categories(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    towns = np.array([f"town {i}" for i in range(90)] + ["", "größer"])
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "town": rng.choice(towns, n),
            "year": rng.choice([1999, 2004, -3, 0], n).astype(float),
            "rate": rng.choice([0.1, 0.2, 1e300, 5e-324], n),
            "flag": rng.choice([True, False], n),
            "many": rng.integers(0, 500, n).astype(float),
        }
    )
    frame.loc[rng.random(n) < 0.1, ["year", "many"]] = np.nan
    return frame


BY_CATEGORY = ["town", "year", "rate", "flag", "many"]


def score_of(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(
        frame["x"]
        + frame["town"].map(hash_of)
        + frame["year"].map({1999: 1, 2004: -1, -3: 2}).fillna(0)
        + frame["rate"].map({0.1: 3}).fillna(0)
        + frame["flag"]
        + (frame["many"].fillna(3) * 7 % 11) / 4
    )


def hash_of(text: str) -> float:
    return sum(text.encode()) * 31 % 17 / 5


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("without_text", [False, True])
@pytest.mark.parametrize("input_type", ["float64", "float32"])
def test_categories(outputs: int, without_text: bool, input_type: str) -> None:
    """Text and numbers, few and many, those that fit has not seen, and missing ones."""
    frame, rows = with_categories(3000, 0), with_categories(HELD_OUT, 1)
    score = score_of(frame)
    names = BY_CATEGORY[without_text:]
    if without_text:
        frame, rows = frame.drop(columns="town").astype(float), rows.drop(columns="town").astype(float)
    rows.loc[:99, "year"] = 1234
    rows.loc[100:199, "many"] = 0.5
    if not without_text:
        rows.loc[200:299, "town"] = "nowhere"
    if input_type == "float32":
        numeric = rows.select_dtypes(["float", "bool"]).columns
        rows[numeric] = rows[numeric].clip(upper=1e30).astype(np.float32)
    y = score if outputs == 1 else score[:, np.newaxis] * [1, -1, 2]
    model = regressor(categorical_features=names, n_estimators=60).fit(frame, y)
    assert set(model._forest.categorical_features()) == {frame.columns.get_loc(name) for name in names}
    exact = input_type == "float64"
    assert_same(
        model,
        rows,
        raw_error=1e-12 if exact else 1e-6,
        error=1e-10 if exact else 1e-5,
        input_type=input_type,
    )


def test_sets_come_in_the_order_of_the_nodes() -> None:
    """ONNX's own evaluator reads them as it walks down the trees, onnxruntime as nodes are listed."""
    frame, rows = with_categories(2000, 0), with_categories(40, 1)
    model = regressor(categorical_features=BY_CATEGORY, n_estimators=10).fit(frame, score_of(frame))
    evaluator = onnx.reference.ReferenceEvaluator(
        onnx.load_model_from_string(exported(model, leaves=True)), verbose=0
    )
    feed = {name: rows[[name]].astype(float).to_numpy() for name in frame if name != "town"}
    feed["town"] = rows[["town"]].to_numpy(dtype=object).astype(str)
    np.testing.assert_array_equal(evaluator.run(["leaves"], feed)[0], model.apply(rows))


def test_text_comes_by_columns() -> None:
    frame = with_categories(2000, 0)
    model = classifier(categorical_features=BY_CATEGORY).fit(frame, score_of(frame) > 2)
    inputs = session(exported(model)).get_inputs()
    assert [one.name for one in inputs] == list(frame.columns)
    assert [one.type for one in inputs] == ["tensor(double)", "tensor(string)"] + ["tensor(double)"] * 4
    assert all(one.shape == ["rows", 1] for one in inputs)


def test_text_that_no_split_asks_for() -> None:
    """It is an input all the same, and trees of one leaf have nothing to look at."""
    frame = with_categories(200, 0)[["town", "x"]]
    for y in (np.ones(200), frame["x"].to_numpy()):
        model = regressor(categorical_features=["town"], n_estimators=3).fit(frame, y)
        assert_same(model, frame[:50], raw_error=1e-12, error=1e-10)
    only_text = regressor(categorical_features=["town"]).fit(frame[["town"]], np.ones(200))
    assert_same(only_text, frame[["town"]][:50], raw_error=0, error=0)


# --- what comes in -----------------------------------------------------------------------------------------


def test_values_at_thresholds() -> None:
    """The largest value that goes left and the smallest that goes right do so, whatever their size."""
    rng = np.random.default_rng(0)
    sizes = [1.0, 1e-310, 5e-324, 1e300, 1e-30, 3e38]
    X = np.stack([np.round(rng.normal(size=600), 1) * size for size in sizes], axis=1)
    y = np.stack([X[:, 0] > 0.1, X[:, 1] > 0, X[:, 3] > 2e299, X[:, 5] > 1e38, X[:, 2] > 5e-324], axis=1)
    model = regressor(min_samples_leaf=1).fit(X, y.astype(float))
    forest = model._forest
    splits = forest.left >= 0
    rows = []
    for feature, threshold in zip(forest.feature[splits], forest.threshold[splits], strict=True):
        for value in (
            threshold,
            np.nextafter(threshold, np.inf),
            np.nextafter(threshold, -np.inf),
            -0.0,
            np.nan,
        ):
            row = X[0].copy()
            row[feature] = value
            rows.append(row)
    assert len(rows) > 500
    for ml_opset in (5, 3):
        assert_same(model, np.array(rows), raw_error=1e-6, error=1e-6, ml_opset=ml_opset)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(rows).astype(np.float32)
    narrow = narrow[np.isfinite(narrow[:, [0, 1, 2, 4]]).all(axis=1)]
    narrow[np.isinf(narrow)] = np.finfo(np.float32).max
    assert_same(model, narrow, raw_error=1e-6, error=1e-5, input_type="float32")


def test_infinities_go_where_the_largest_numbers_go() -> None:
    """predict refuses them; ONNX has nothing to refuse with."""
    model = regressor().fit(X, Y)
    rows = numbers(500, 2)
    rows[:, 0] = np.where(np.arange(500) % 2, np.inf, -np.inf)
    largest = np.nan_to_num(rows, nan=np.nan, posinf=1e308, neginf=-1e308)
    for ml_opset in (5, 3):
        found = results(model, rows, leaves=True, ml_opset=ml_opset)
        np.testing.assert_array_equal(found["leaves"], model.apply(largest))


@pytest.mark.parametrize("ml_opset", [5, 3])
@pytest.mark.parametrize(
    "kind", ["three numbers", "one number", "sparse leaves", "quantiles", "classes", "labels"]
)
def test_no_row_and_one_row(kind: str, ml_opset: int) -> None:
    model = MODELS[kind]()
    for n in (0, 1):
        run = session(exported(model, ml_opset=ml_opset))
        for value, ours in zip(run.run(None, {"X": X[:n]}), [model.predict(X[:1])], strict=False):
            assert value.shape == (n, *ours.shape[1:])


@pytest.mark.parametrize("ml_opset", [5, 3])
def test_threads_of_onnxruntime_change_nothing_but_rounding(ml_opset: int) -> None:
    model = regressor(n_estimators=120).fit(X, SCORE)
    content = exported(model, ml_opset=ml_opset)
    for rows in (X[:1], X):
        expected = model.predict(rows)
        for n_threads in (1, 2):
            (found,) = session(content, n_threads).run(None, {"X": rows})
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("ml_opset", [5, 3])
def test_trees_of_one_leaf_and_no_tree(ml_opset: int) -> None:
    for y in (np.full(800, 3.5), np.tile([1.0, -2.0], (800, 1))):
        model = regressor().fit(X, y)
        assert (model._forest.left < 0).all()
        assert_same(model, X, raw_error=1e-6, error=1e-6, ml_opset=ml_opset)
        assert_same(model[:0], X, raw_error=0, error=0, ml_opset=ml_opset)
    # Trees with and without splits, side by side.
    model = regressor(multi_strategy="one_output_per_tree").fit(X, np.stack([SCORE, np.ones(800)], axis=1))
    assert_same(model, X, raw_error=1e-6, error=1e-6, ml_opset=ml_opset)


@pytest.mark.parametrize("ml_opset", [5, 3])
def test_one_feature(ml_opset: int) -> None:
    assert_same(regressor().fit(X[:, :1], SCORE), X[:, :1], raw_error=1e-6, error=1e-6, ml_opset=ml_opset)


def test_a_loaded_model(tmp_path: Path) -> None:
    model = classifier().fit(X, WORDS)
    model.save_model(tmp_path / "model")
    assert exported(load_model(tmp_path / "model")) == exported(model)


# --- what comes out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([False, True], "tensor(bool)"),
        ([-5, 2**62], "tensor(int64)"),
        ([1, 2, 7], "tensor(int64)"),
        ([1.0, 2.0, 1e15], "tensor(double)"),
        (["a", "ß", ""], "tensor(string)"),
    ],
)
def test_classes_of_every_type(classes: list[Any], kind: str) -> None:
    y = np.array(classes)[np.digitize(SCORE, [-0.8, 0.2]) % len(classes)]
    model = classifier().fit(X, y)
    run = session(exported(model))
    assert run.get_outputs()[0].type == kind
    found = outputs_of(run, fed(run, X))
    assert found["label"].tolist() == model.predict(X).tolist()
    assert {type(one) for one in found["label"].tolist()} == {type(classes[0])}


def test_targets_with_names_are_outputs_of_these_names() -> None:
    frame = pd.DataFrame(Y, columns=["net price", "net_price", "2nd"])
    model = regressor().fit(X, frame)
    found = results(model, X)
    assert list(found) == ["net_price", "net_price_2", "_2nd"]
    for j, value in enumerate(found.values()):
        np.testing.assert_allclose(value, model.predict(X)[:, j], rtol=1e-12, atol=1e-12)
    assert list(results(model, X, as_matrix=True)) == ["targets"]
    for old in ("net price", "2nd", "_2nd"):  # as in polyleaf, or as in the file
        names = list(results(model, X, names={old: "größe"}))
        assert names == (
            ["größe", "net_price", "_2nd"] if old == "net price" else ["net_price", "net_price_2", "größe"]
        )


def test_names_of_inputs_and_outputs() -> None:
    """Those asked for are taken as they are; others give way."""
    model = classifier().fit(X, WORDS)
    run = session(exported(model, names={"X": "label", "probabilities": "p (in %)"}))
    assert [one.name for one in run.get_inputs()] == ["label"]
    assert [one.name for one in run.get_outputs()] == ["label_2", "p (in %)"]
    np.testing.assert_array_equal(run.run(None, {"label": X})[0], model.predict(X))


def test_an_output_that_is_called_like_the_input() -> None:
    model = regressor().fit(X, pd.Series(SCORE, name="X"))
    assert list(results(model, X)) == ["X_2"]
    run = session(exported(model, names={"X": "in", "X_2": "out"}))
    assert [run.get_inputs()[0].name, run.get_outputs()[0].name] == ["in", "out"]


def test_a_name_that_an_input_and_an_output_have() -> None:
    """Each can be called otherwise, by the name that it would have had."""
    frame = with_categories(500, 0)[["x", "town"]]
    model = regressor(categorical_features=["town"]).fit(frame, pd.Series(frame["x"], name="town"))

    def names(asked: dict[str, str] | None) -> list[str]:
        run = session(exported(model, names=asked))
        return [one.name for one in (*run.get_inputs(), *run.get_outputs())]

    assert names(None) == ["x", "town", "town_2"]
    assert names({"town": "place"}) == ["x", "place", "town"]
    assert names({"town_2": "price"}) == ["x", "town", "price"]
    assert names({"town": "place", "town_2": "price"}) == ["x", "place", "price"]


def test_columns_are_known_by_both_their_names() -> None:
    model = regressor().fit(X, pd.DataFrame(Y[:, :1], columns=["net price"]))
    assert list(results(model, X, names={"net price": "a"})) == ["a"]
    assert list(results(model, X, names={"net_price": "a"})) == ["a"]
    with pytest.raises(ValueError, match="names has two names for 'net_price': 'a' and 'b'"):
        exported(model, names={"net price": "a", "net_price": "b"})


def test_switches_may_be_of_numpy() -> None:
    model = regressor().fit(X, Y)
    found = results(model, X, raw_scores=np.True_, leaves=np.False_)
    assert list(found) == ["targets", "raw_scores"]


def test_names_that_the_graph_has_inside() -> None:
    """A column may be called like a node."""
    frame = with_categories(500, 0)[["x", "town"]].rename(columns={"x": "concat", "town": "treeensemble"})
    model = regressor(categorical_features=["treeensemble"]).fit(
        frame, pd.Series(frame["concat"], name="base_score")
    )
    assert list(results(model, frame)) == ["base_score"]
    assert_same(model, frame, raw_error=1e-12, error=1e-10)


def test_the_file_has_the_names_as_they_were() -> None:
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(6)])
    model = classifier().fit(frame, WORDS)
    notes = {one.key: one.value for one in onnx.load(io.BytesIO(exported(model))).metadata_props}
    assert notes == {
        "polyleaf": '{"estimator": "classifier", "inputs": {"X": ["column 0", "column 1", "column 2", '
        '"column 3", "column 4", "column 5"]}, "outputs": {"label": ["class"], "probabilities": '
        '["high", "low", "mittel, gr\\u00f6\\u00dfer"]}}'
    }


# --- the file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["three numbers", "sparse leaves", "quantiles", "classes", "labels", "counts"]
)
@pytest.mark.parametrize("ml_opset", [5, 3])
def test_versions_of_operators(kind: str, ml_opset: int) -> None:
    """From the oldest to the newest one that onnxruntime takes; types and shapes hold at every node."""
    model = MODELS[kind]()
    expected = model.predict(X)
    for opset in (16, 18, 21):
        content = exported(model, opset=opset, ml_opset=ml_opset)
        onnx.checker.check_model(onnx.load_model_from_string(content), full_check=True)
        found = session(content).run(None, {"X": X})[0]
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["a hundred numbers", "three numbers"])
def test_memory_of_gathered_leaves_is_bounded(kind: str) -> None:
    """No more than 1024 values of a row, or those of four trees, are taken at a time."""
    model = MODELS[kind]()
    graph = onnx.load_model_from_string(exported(model)).graph
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    gathers = [node for node in graph.node if node.op_type == "Gather"]
    sizes = [constants[node.input[1]] for node in graph.node if node.op_type == "Split"]
    trees = sizes[0].tolist() if sizes else [model.n_estimators_]
    assert sum(trees) == model.n_estimators_
    assert len(gathers) == len(trees)
    assert max(trees) * model.n_outputs_ <= max(1024, 4 * model.n_outputs_)


RUN_AND_MEASURE = """
import resource, sys
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
rows = numpy.random.default_rng(0).normal(size=(2000, 6))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
session.run(None, {"X": rows})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in other units elsewhere")
def test_memory_does_not_grow_with_the_trees(tmp_path: Path) -> None:
    """onnxruntime adds what it took of some trees before it takes the next; all at once would be 400 MB."""
    model = regressor(n_estimators=25, max_leaves=8).fit(X, Y @ np.tile(WIDE, 5))
    for _ in range(3):
        model._forest = model._forest.followed_by(model._forest)
    model.best_iteration_ = 199
    (tmp_path / "model.onnx").write_bytes(exported(model))
    command = [sys.executable, "-c", RUN_AND_MEASURE, str(tmp_path / "model.onnx")]
    kilobytes = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert kilobytes < 150_000


@pytest.mark.parametrize("kind", ["one number", "sparse leaves", "quantiles", "classes", "labels"])
def test_another_evaluator(kind: str) -> None:
    """ONNX's own: the file holds what the standard says, and not what one program makes of it."""
    model = MODELS[kind]()
    content = exported(model, leaves=True, raw_scores=True)
    evaluator = onnx.reference.ReferenceEvaluator(onnx.load_model_from_string(content))
    raw, leaves = evaluator.run(["raw_scores", "leaves"], {"X": X[:40]})
    np.testing.assert_array_equal(leaves, model.apply(X[:40]))
    np.testing.assert_allclose(raw, model._raw(X[:40], None), rtol=1e-12, atol=1e-12)


def test_the_same_bytes_again() -> None:
    model = MODELS["classes"]()
    assert exported(model) == exported(model)
