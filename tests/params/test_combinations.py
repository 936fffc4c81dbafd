"""The table of combinations refuses what it says, pages say the same, and nothing else refuses anything."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, tune
from polyleaf.callbacks import Checkpoint, EarlyStopping, OptunaPruning
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import table_numbers
from polyleaf.data.tables import Table
from polyleaf.estimators.shard_training import fit_shard
from polyleaf.export import to_onnx, to_treelite
from polyleaf.gpu import runtime
from polyleaf.params import options
from polyleaf.params.combinations import COMBINATIONS, Refused, check
from polyleaf.params.options import Option
from polyleaf.params.situation import Situation
from polyleaf.params.table import PARAMETERS, parameters_of
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.local import run_local
from polyleaf.peers.pieces import Pieces
from polyleaf.plots import plot_output_map, plot_partial_dependence, plot_row

pytestmark = pytest.mark.cpu_only("what is said on any device")

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
X[:, 0] = RNG.integers(0, 4, 60)
TARGETS = X[:, 1:] + 1.0
CLASSES = TARGETS.argmax(axis=1)
LABELS = (TARGETS > 1).astype(int)
MANY = np.arange(99) // 3
SPARSE = scipy.sparse.csr_array(LABELS)
SMALL = {"n_estimators": 2, "min_samples_leaf": 2, "n_jobs": 1}
CLIPPED = {"objective": "clipped_squared_error", "sparse_leaves": 2}


def gradients(y: Any, raw: Any) -> tuple[Any, Any]:
    return raw, np.ones_like(raw)


def blind(y: Any, prediction: Any) -> float:
    return 0.0


def pruning() -> OptunaPruning:
    """Without a trial: Optuna need not be installed."""
    return OptunaPruning.__new__(OptunaPruning)


def regressor(**params: Any) -> Any:
    return lambda: PolyleafRegressor(**SMALL | params).fit(X, TARGETS)


def classifier(y: Any, **params: Any) -> Any:
    return lambda: PolyleafClassifier(**SMALL | params).fit(X, y)


def sparse_labels(**params: Any) -> Any:
    return classifier(SPARSE, **CLIPPED | params)


def in_shards(estimator: Any, y: Any = TARGETS, table: Any = X, weight: Any = None) -> Any:
    def fit(exchange: Any) -> Any:
        pieces = Pieces(Collectives(exchange), (0,), (60,))
        given = EvalInput("training", table, y, weight, "X", "y", "sample_weight", pieces)
        return fit_shard(estimator.set_params(**SMALL), given, [], 1)

    return lambda: run_local(1, fit)


class OnDevice:
    """Whatever looks like an array of CuPy."""

    def get(self) -> Any:
        return X


OnDevice.__module__ = "cupy"


def new_axes() -> Any:
    figure = pytest.importorskip("matplotlib.figure", reason="pictures are drawn by matplotlib").Figure
    return figure().add_subplot()


@cache
def fitted(kind: str) -> Any:
    """Models that were trained without complaint."""
    if kind == "targets":
        return regressor()()
    if kind == "quantiles":
        return regressor(objective="quantile", quantile_levels=[0.1, 0.9])()
    if kind == "dense labels":
        return classifier(LABELS, **CLIPPED, base_score=0.5)()
    return {"classes": classifier(CLASSES), "sparse labels": sparse_labels()}[kind]()


# Of each row, something that it refuses.
REFUSED: dict[str, Callable[[], object]] = {
    "sketch, sparse leaves": regressor(sketch="top_outputs", sparse_leaves=2),
    "sketch, one output per tree": regressor(sketch="top_outputs", multi_strategy="one_output_per_tree"),
    "sketch, exact Hessian": classifier(CLASSES, sketch="top_outputs", hessian="exact"),
    "sketch_size, no sketch": regressor(sketch_size=2, sketch=None),
    "sparse leaves, one output per tree": regressor(sparse_leaves=2, multi_strategy="one_output_per_tree"),
    "sparse leaves, fewer outputs": regressor(sparse_leaves=4),
    "bounded influence, other objectives": regressor(bounded_influence=True, objective="huber"),
    "bounded influence, cell weights": lambda: PolyleafRegressor(**SMALL, bounded_influence=True).fit(
        X, np.where(np.arange(3) == np.arange(60)[:, None] % 5, np.nan, TARGETS)
    ),
    "output_weight, one output per tree": regressor(
        output_weight=[1, 1, 1], multi_strategy="one_output_per_tree"
    ),
    "output_weight of 0, sparse leaves": regressor(output_weight=[1, 0, 1], sparse_leaves=2),
    "shared Hessian, one output per tree": classifier(
        LABELS, hessian="shared", multi_strategy="one_output_per_tree"
    ),
    "full Hessian, no softmax": classifier(LABELS, hessian="exact"),
    "full Hessian, sparse leaves": classifier(CLASSES, hessian="exact_leaf", sparse_leaves=2),
    "full Hessian, one output per tree": classifier(
        CLASSES, hessian="exact", multi_strategy="one_output_per_tree"
    ),
    "full Hessian, no reg_lambda": classifier(CLASSES, hessian="exact_leaf", reg_lambda=0),
    "full Hessian, reg_alpha": classifier(CLASSES, hessian="exact", reg_alpha=0.5),
    "exact Hessian, many classes": lambda: PolyleafClassifier(hessian="exact").fit(MANY[:, None], MANY),
    "exact Hessian, output_weight": classifier(CLASSES, hessian="exact", output_weight=[1, 2, 3]),
    "monotone, softmax": classifier(CLASSES, objective=gradients, monotone_constraints={1: 1}),
    "monotone, categories": regressor(monotone_constraints={0: 1}, categorical_features=[0]),
    "monotone, leaf quantiles": regressor(monotone_constraints={1: 1}, objective="absolute_error"),
    "monotone, sparse leaves": regressor(monotone_constraints={1: 1}, sparse_leaves=2),
    "monotone, sketch": regressor(monotone_constraints={1: 1}, sketch="top_outputs"),
    "monotone, full Hessian": classifier(LABELS, monotone_constraints={1: 1}, hessian="exact_leaf"),
    "categories, sparse X": lambda: PolyleafRegressor(categorical_features=[0]).fit(
        scipy.sparse.csr_array(X), TARGETS
    ),
    "label_space, no labels": classifier(CLASSES, label_space="hashed"),
    "label_space, sketch": sparse_labels(label_space="hashed", sketch="top_outputs", sparse_leaves=None),
    "label_space, no sketch": sparse_labels(label_space="hashed", sketch=None),
    "label_space, cell weights": lambda: PolyleafClassifier(label_space="hashed").fit(
        X, LABELS, np.ones((60, 3))
    ),
    "label_space, metric": sparse_labels(label_space="hashed", eval_metric="auc"),
    "sparse labels, objective": sparse_labels(objective=None),
    "sparse labels, base score": sparse_labels(base_score=0.5),
    "sparse labels, first score": lambda: PolyleafClassifier(**SMALL, **CLIPPED).fit(
        X, SPARSE, init_model=fitted("dense labels")
    ),
    "sparse labels, one output per tree": sparse_labels(
        sparse_leaves=None, multi_strategy="one_output_per_tree"
    ),
    "sparse labels, sketch": sparse_labels(sparse_leaves=None, sketch="top_outputs"),
    "sparse labels, monotone": sparse_labels(sparse_leaves=None, monotone_constraints={1: 1}),
    "sparse labels, shared Hessian": sparse_labels(hessian="shared"),
    "sparse labels, full Hessian": sparse_labels(sparse_leaves=None, hessian="exact"),
    "sparse labels, class_weight": sparse_labels(class_weight="balanced"),
    "sparse labels, output_weight": sparse_labels(output_weight=[1, 1, 1]),
    "sparse labels, cell weights": lambda: PolyleafClassifier(**CLIPPED).fit(X, SPARSE, np.ones((60, 3))),
    "sparse labels, gradient sampling": sparse_labels(sampling_method="gradient_based"),
    "sparse labels, dense leaves": sparse_labels(sparse_leaves=None),
    "objective, kind of target": classifier(CLASSES, objective="clipped_squared_error"),
    "eval_metric, kind of target": classifier(CLASSES, eval_metric="binary_cross_entropy"),
    "classes, class_weight as a list": classifier(CLASSES, class_weight=[{0: 1.0}]),
    "huber_delta, unused": regressor(huber_delta=2.0),
    "quantile_levels, unused": regressor(quantile_levels=[0.1, 0.9]),
    "tweedie_power, unused": regressor(objective="poisson", tweedie_power=1.2),
    "quantile levels, metric of one prediction": regressor(
        objective="quantile", quantile_levels=[0.1, 0.9], eval_metric=["quantile", "mae"]
    ),
    "quantile levels, metric of quantiles": regressor(quantile_levels=[0.1, 0.9], eval_metric="quantile"),
    "metric of positive predictions, objective": regressor(eval_metric="gamma"),
    "metric without weights, weights": lambda: PolyleafRegressor(eval_metric=blind).fit(
        X, TARGETS, eval_set=(X, np.where(TARGETS > 2, np.nan, TARGETS))
    ),
    "held-out rows, going on": lambda: PolyleafRegressor(n_estimators="auto").fit(
        X, TARGETS, init_model=fitted("targets")
    ),
    "groups, nothing held out": lambda: PolyleafRegressor(n_estimators=3).fit(X, TARGETS, groups=range(60)),
    "n_bags, eval_set": lambda: PolyleafRegressor(n_bags=2).fit(X, TARGETS, eval_set=(X, TARGETS)),
    "n_bags, shards": in_shards(PolyleafRegressor(n_bags=2)),
    "n_bags, going on": lambda: PolyleafRegressor(n_bags=2).fit(X, TARGETS, init_model=fitted("targets")),
    "n_bags, cv": lambda: cv(PolyleafRegressor(n_bags=2), X, TARGETS),
    "n_bags, Checkpoint": lambda: PolyleafRegressor(n_bags=2, callbacks=[Checkpoint("file")]).fit(X, TARGETS),
    "n_bags, OptunaPruning": lambda: PolyleafRegressor(n_bags=2, callbacks=[pruning()]).fit(X, TARGETS),
    "bags, some rounds": lambda: PolyleafRegressor(n_bags=2, n_estimators=2).fit(X, TARGETS)[:1],
    "predict_spread, one model": lambda: fitted("targets").predict_spread(X),
    "groups, given folds": lambda: tune(
        PolyleafRegressor(), X, TARGETS, n_trials=1, cv=[(range(50), range(50, 90))], groups=np.arange(len(X))
    ),
    "eval_X, eval_set": lambda: PolyleafRegressor().fit(
        X, TARGETS, eval_set=(X, TARGETS), eval_X=X, eval_y=TARGETS
    ),
    "early_stopping_rounds, EarlyStopping": lambda: cv(
        PolyleafRegressor(early_stopping_rounds=3, callbacks=[EarlyStopping(3)]), X, TARGETS
    ),
    "EarlyStopping, EarlyStopping": regressor(callbacks=[EarlyStopping(3), EarlyStopping(4)]),
    "eval_sample_weight, no eval_set": lambda: PolyleafRegressor().fit(
        X, TARGETS, eval_sample_weight=np.ones(60)
    ),
    "going on, going on": lambda: PolyleafRegressor().fit(
        X, TARGETS, init_model=fitted("targets"), resume="file"
    ),
    "streamed X, cv": lambda: cv(PolyleafRegressor(), "folder", "price"),
    "binned X, other weights": lambda: PolyleafClassifier(class_weight="balanced").fit(
        BinnedTable.make(X, X[:, 1] > 0.3)
    ),
    "Checkpoint, cv": lambda: cv(PolyleafRegressor(callbacks=[Checkpoint("file")]), X, TARGETS),
    "Checkpoint, tune": lambda: tune(
        PolyleafRegressor(callbacks=[Checkpoint("file")]), X, TARGETS, n_trials=1
    ),
    "OptunaPruning, tune": lambda: tune(PolyleafRegressor(callbacks=[pruning()]), X, TARGETS, n_trials=1),
    "no max_depth, no max_leaves": regressor(max_depth=None),
    "cuda, sparse leaves": regressor(device="cuda", sparse_leaves=2),
    "cuda, sparse labels": sparse_labels(device="cuda"),
    "cuda, full Hessian": classifier(CLASSES, device="cuda", hessian="exact_leaf"),
    "cuda, categories": regressor(device="cuda", categorical_features=[0]),
    "cuda, monotone": regressor(device="cuda", monotone_constraints={1: 1}),
    "cuda, interaction": regressor(device="cuda", interaction_constraints=[[0, 1], [2, 3]]),
    "cuda, leaf quantiles": regressor(device="cuda", objective="quantile"),
    "cuda, group of quantiles": lambda: PolyleafMixed(
        {"a": "absolute_error", "b": "regression"}, device="cuda"
    ).fit(X, {"a": X[:, 1], "b": X[:, 2]}),
    "class_weight, no classes": lambda: PolyleafMixed({"a": "regression"}, class_weight="balanced").fit(
        X, {"a": X[:, 1]}
    ),
    "monotone, group of softmax": lambda: PolyleafMixed(
        {"a": "regression", "b": "multiclass"}, monotone_constraints=[0, 1, 0, 0]
    ).fit(X, {"a": X[:, 1], "b": CLASSES}),
    "monotone, group of quantiles": lambda: PolyleafMixed(
        {"a": "absolute_error", "b": "regression"}, monotone_constraints={1: {"a": 1}}
    ).fit(X, {"a": X[:, 1], "b": X[:, 2]}),
    "cuda, colsample_bylevel": regressor(device="cuda", colsample_bylevel=0.5),
    "cuda, colsample_bynode": regressor(device="cuda", colsample_bynode=0.5),
    "cuda, streamed X": lambda: PolyleafRegressor(device="cuda").fit("folder", "price"),
    "cuda, shards": in_shards(PolyleafRegressor(device="cuda")),
    "shards, sparse labels": in_shards(
        PolyleafClassifier(objective="clipped_squared_error", sparse_leaves=2),
        scipy.sparse.csr_array(LABELS),
    ),
    "shards, full Hessian": in_shards(PolyleafClassifier(hessian="exact"), CLASSES),
    "shards, gradient-based sampling": in_shards(
        PolyleafRegressor(subsample=0.5, sampling_method="gradient_based")
    ),
    "shards, sparse X": in_shards(PolyleafRegressor(), TARGETS, scipy.sparse.csr_array(X)),
    "shards, wide weights": in_shards(PolyleafRegressor(), weight=np.geomspace(1, 1e12, 60)),
    "shards, callable objective": in_shards(PolyleafRegressor(objective=lambda y, raw: (raw - y, 1.0))),
    "cuda, many bins": regressor(device="cuda", max_bins=256),
    "CuPy X, cpu": lambda: fitted("targets").predict(OnDevice()),
    "CuPy X, categories": lambda: table_numbers(
        Table("X", "cupy", X, range(4), None, np.zeros(4, dtype=bool)), {0: X[:, 0]}
    ),
    "as_frame, no frame": lambda: fitted("targets").predict(X, as_frame=True),
    "as_frame, sparse": lambda: fitted("sparse labels").predict(
        pytest.importorskip("pandas").DataFrame(X), sparse=True, as_frame=True
    ),
    "sparse predictions, not labels": lambda: fitted("classes").predict(X, sparse=True),
    "out, as_frame": lambda: fitted("targets").predict(X, out="file", as_frame=True),
    "out, sparse predictions": lambda: fitted("sparse labels").predict(X, out="file", sparse=True),
    "stages, streamed X": lambda: fitted("targets").staged_predict([X, X]),
    "as_labels, no top_k": lambda: fitted("classes").predict(X, as_labels=True),
    "sparse predictions, top_k": lambda: fitted("sparse labels").predict(X, sparse=True, top_k=2),
    "versus, outputs": lambda: plot_row(fitted("targets"), X[:1], outputs=[0], versus=(0, 1)),
    "paths, single rows": lambda: fitted("targets").partial_dependence(X, 0, method="paths", kind="both"),
    "older trees of ONNX, categories": lambda: to_onnx(
        regressor(categorical_features=[0])(), BytesIO(), ml_opset=3
    ),
    "paths, link": lambda: fitted("classes").partial_dependence(X, 0, method="recursion"),
    "recursion, weights of means": lambda: fitted("targets").partial_dependence(
        X, 0, method="recursion", sample_weight=np.ones(60)
    ),
    "single rows alone, weights of means": lambda: fitted("targets").partial_dependence(
        X, 0, kind="individual", sample_weight=np.ones(60)
    ),
    "several maps, ax": lambda: plot_partial_dependence(fitted("targets"), X, [0, 1], ax=new_axes()),
    "drawn rows, two features": lambda: plot_partial_dependence(fitted("targets"), X, [0, 1], kind="both"),
    "output map, one output per tree": lambda: plot_output_map(
        regressor(multi_strategy="one_output_per_tree")(), X, TARGETS
    ),
    "treelite, several quantiles": lambda: to_treelite(fitted("quantiles")),
    "treelite, cut-off shares": lambda: to_treelite(fitted("dense labels")),
    "treelite, groups of targets": lambda: to_treelite(
        PolyleafMixed({"a": "regression", "b": "multiclass"}, **SMALL).fit(X, {"a": X[:, 1], "b": CLASSES})
    ),
    "gain per output, unknown": lambda: fitted("sparse labels").get_importance(per_output=True),
}


def test_rows_have_names_of_their_own_and_none_comes_twice() -> None:
    assert len({row.name for row in COMBINATIONS}) == len(COMBINATIONS)
    assert len({frozenset((row.option, row.other)) for row in COMBINATIONS}) == len(COMBINATIONS)
    assert set(REFUSED) == {row.name for row in COMBINATIONS}


@pytest.mark.parametrize("row", COMBINATIONS, ids=lambda row: row.name)
def test_each_row_refuses_something(row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words that leave no gap, and are the same in another process."""
    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    with pytest.raises(Refused) as caught:
        REFUSED[row.name]()
    assert caught.value.row == row.name
    words = str(caught.value)
    assert not set("{}`") & set(words)
    there = pickle.loads(pickle.dumps(caught.value))
    assert (type(there), str(there), there.row) == (Refused, words, row.name)


def test_every_option_is_in_a_row() -> None:
    known = {one for one in vars(options).values() if isinstance(one, Option)}
    known.update(one for pair in options.OF_ONE_LOSS.values() for one in pair)
    assert known == {side for row in COMBINATIONS for side in (row.option, row.other)}


def test_nothing_is_asked_for_where_nothing_is_known() -> None:
    check(Situation())
    for make in (PolyleafRegressor, PolyleafClassifier, PolyleafMixed):
        check(Situation(make().get_params()))


def test_devices() -> None:
    """What both devices refuse is refused first: it says more."""
    of_gpu = [row.option is options.CUDA for row in COMBINATIONS]
    assert [row.devices == ("cuda",) for row in COMBINATIONS] == of_gpu
    last_of_training = next(i for i, row in enumerate(COMBINATIONS) if options.CUPY_TABLE is row.option)
    assert of_gpu[:last_of_training] == sorted(of_gpu[:last_of_training])
    assert not any(of_gpu[last_of_training:])
    (cpu_only,) = (row for row in COMBINATIONS if row.devices == ("cpu",))
    assert cpu_only.name == "CuPy X, cpu"


# --- nobody else refuses -----------------------------------------------------------------------------------

SAID = re.compile(r"not go (with|together)|of no use|exclude each other|only one of|cannot be combined")
# Names that are no ordinary words.
NAMES = {row.name for row in PARAMETERS if "_" in row.name} | {"eval_set", "init_model", "top_k", "as_frame"}


def refusals_of(source: str) -> list[int]:
    """Return the lines that raise an error about two options, and do not ask the table for it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        error = node.exc
        if isinstance(error, ast.Call) and isinstance(error.func, ast.Name) and error.func.id == "refused":
            continue
        words = " ".join(
            part.value
            for part in ast.walk(error)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        if SAID.search(words) or len(NAMES & set(re.findall(r"\w+", words))) > 1:
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src" / "polyleaf").rglob("*.py")), ids=lambda path: "/".join(path.parts[-2:])
)
def test_sources_refuse_by_the_table_alone(path: Path) -> None:
    """A new refusal is a new row."""
    assert refusals_of(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('raise ValueError(f"sketch={k} does not go with {what}.")', [1]),
        ('if a:\n    raise ValueError("sketch_size needs " f"sparse_leaves={k}.")', [2]),
        ('raise ValueError(f"a and b exclude each other: {why}")', [1]),
        ('raise refused(Situation(asked=frozenset({"top_k", "as_frame"})))', []),
        ('raise ValueError(f"max_bins must be at least 2; got {n}.")', []),
        ("raise error", []),
    ],
)
def test_a_refusal_of_ones_own_is_found(source: str, lines: list[int]) -> None:
    assert refusals_of(source) == lines


# --- pages -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """The script that writes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("combination_pages")


@pytest.mark.parametrize("name", ["what-does-not-go-together.md", "gpu.md"])
def test_pages_say_what_the_table_says(pages: ModuleType, name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == pages.written(page, pages.PAGES[name]()), "python docs/combination_pages.py writes it"


def test_pages_leave_no_row_out(pages: ModuleType) -> None:
    table, of_gpu = pages.table(), pages.refused_on_gpu()
    for row in COMBINATIONS:
        for side in (row.option, row.other):
            assert side.docs in table
        if row.option is options.CUDA:
            assert row.other.docs in of_gpu


def test_rows_are_joined_by_reason(pages: ModuleType) -> None:
    rows = [row for row in COMBINATIONS if row.option is options.FULL_HESSIAN]
    joined = [line for line in pages.lines(rows) if len(line.others) > 1]
    assert [line.others for line in joined] == [
        [options.SPARSE_LEAVES.docs, options.ONE_OUTPUT_PER_TREE.docs],
    ]
    (of_losses,) = (line for line in pages.lines(COMBINATIONS) if "`huber_delta`" in line.options)
    assert of_losses.options == ["`huber_delta`", "`quantile_levels`", "`tweedie_power`"]


def test_mixed_models_do_not_have_what_the_page_says() -> None:
    page = (ROOT / "docs" / "what-does-not-go-together.md").read_text(encoding="utf-8")
    section = page.split("## What `PolyleafMixed` does not have")[1].split("##")[0]
    named = set(re.findall(r"`(\w+)`", section))
    known = parameters_of("mixed")
    assert named - set(known) == {"hessian"}
