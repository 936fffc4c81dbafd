"""The growth contract: what fits together is grown, by any grower; what does not is refused by its name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse

import polyleaf.gpu.grower
from gradients_of import gradients_of
from growing import NAMES, settings, task
from polyleaf import _core
from polyleaf.data.binning import bin_table
from polyleaf.growth.contract import (
    Destination,
    Grower,
    LeafGradients,
    Renewal,
    SplitGradients,
    Task,
    settings_of,
)
from polyleaf.growth.core_task import core_task
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.label_sparse import LabelScorePass, LabelSparseGrower, SparseLabels
from polyleaf.growth.sampling import FeatureSample, RowSample
from polyleaf.growth.tree import Tree
from polyleaf.losses.clipped_squared_error import ClippedSquaredError
from polyleaf.params.constraints import InteractionGroups
from polyleaf.params.settings import Settings

pytestmark = pytest.mark.cpu_only("the growers of the CPU")

N, M, D = 300, 5, 4
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(N, M))
GRADIENT = (-TABLE[:, :D] - 0.3 * RNG.normal(size=(N, D))).astype(np.float32)
MATRIX = bin_table(TABLE, None, 64, 1)


# --- one contract, three growers ---------------------------------------------------------------------------


def test_growers_take_a_task_and_nothing_else() -> None:
    """The type checker holds them to the protocol; so does the signature."""
    for grower in (DenseGrower, LabelSparseGrower, polyleaf.gpu.grower.GpuGrower):
        assert grower.grow.__annotations__ == Grower.grow.__annotations__


LABELS = (TABLE[:, :D] + 0.5 * RNG.normal(size=(N, D)) > 0.8).astype(np.float64)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
def test_sparse_labels_grow_the_trees_of_dense_gradients(
    weighted: bool, sampled: bool, sparse_mode: str
) -> None:
    """Two growers, the same rounds: a split search and a leaf filler each, under one way of a tree."""
    weight = RNG.integers(1, 4, N).astype(np.float64) if weighted else None
    sample = RowSample(np.arange(0, N, 3, dtype=np.uint32) if sampled else None)
    features = FeatureSample(node_share=0.7, key=11)
    of_growers = settings(sparse_leaves=2, sparse_mode=sparse_mode, min_samples_leaf=5, reg_alpha=0.1)
    csr = scipy.sparse.csr_array(LABELS)
    labels = SparseLabels(csr.indptr, csr.indices, D)
    sparse, dense = LabelSparseGrower(MATRIX, labels, of_growers), DenseGrower(MATRIX, of_growers)
    raw, scores = np.zeros((N, D)), LabelScorePass(labels, N, 1)
    same: dict[str, Any] = {
        "weight": weight,
        "sample": sample,
        "features": features,
        "learning_rate": 0.5,
    }
    for _ in range(5):
        gradient, _ = gradients_of(ClippedSquaredError(D), LABELS, raw)
        expected = dense.grow(task(gradient, raw=raw, **same))
        tree = sparse.grow(Task(destination=scores.destination(slice(None)), **same))
        scores.add(tree)
        for one in fields(Tree):
            if one.name not in ("gain_feature", "output_gain"):
                own, other = getattr(tree, one.name), getattr(expected, one.name)
                np.testing.assert_array_equal(own, other, err_msg=one.name)
    assert len(expected.feature) > 3


def test_the_leaf_of_each_row_is_that_of_the_scores() -> None:
    """Values are added, and leaves written, of rows outside of a sample, too."""
    for sample in (RowSample(), RowSample(np.arange(0, N, 2, dtype=np.uint32))):
        raw, leaf_of_row = np.zeros((N, D)), np.empty(N, dtype=np.uint32)
        tree = DenseGrower(MATRIX, settings()).grow(
            task(GRADIENT, raw=raw, leaf_of_row=leaf_of_row, sample=sample)
        )
        np.testing.assert_array_equal(raw, tree.values[leaf_of_row].astype(np.float64))


# --- settings ----------------------------------------------------------------------------------------------


def test_settings_of_a_run_reach_the_growers_by_their_names() -> None:
    given = {
        "max_depth": 3,
        "max_leaves": None,
        "min_samples_leaf": 7,
        "min_split_gain": 0.5,
        "min_child_weight": 0.25,
        "reg_lambda": 2.0,
        "reg_alpha": 0.75,
        "sparse_leaves": 2,
        "sparse_mode": "unrestricted",
        "hessian": "exact_leaf",
        "histogram_precision": "packed",
        "bounded_influence": True,
        "n_threads": 3,
    }
    rest = {one.name: None for one in fields(Settings) if one.name not in given}
    of_grower = settings_of(Settings(**given | rest))
    assert {name: getattr(of_grower, name) for name in given} == given
    # What a run does not set itself.
    assert set(NAMES) - {one.name for one in fields(Settings)} == {"histogram_bytes"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_depth", -1),
        ("max_leaves", 0),
        ("min_samples_leaf", -1),
        ("sparse_leaves", 0),
        ("sparse_mode", "loose"),
        ("hessian", "full"),
        ("histogram_precision", "half"),
        ("n_threads", 0),
    ],
)
def test_a_bad_setting_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        setattr(_core.GrowSettings(), name, value)


# --- tasks -------------------------------------------------------------------------------------------------

LEVELS = np.full(D, 0.5)
COLUMNS = np.arange(D, dtype=np.int32)
Y = RNG.normal(size=(N, D))
RAW = np.zeros((N, D))


def leaves(**changes: Any) -> LeafGradients:
    return replace(LeafGradients(GRADIENT, None, np.ones(D)), **changes)


def splits(**changes: Any) -> SplitGradients:
    return replace(SplitGradients(GRADIENT, None, None, np.ones(D), np.ones(D)), **changes)


def gradients(n_rows: int, n_outputs: int) -> npt.NDArray[np.float32]:
    return np.zeros((n_rows, n_outputs), np.float32)


BAD_TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "rows of the gradient": ({"leaf_gradients": leaves(gradient=gradients(N - 1, D))}, "gradient: rows"),
    "no outputs": ({"leaf_gradients": leaves(gradient=gradients(N, 0))}, "gradient: no outputs"),
    "columns apart": ({"leaf_gradients": leaves(gradient=np.asfortranarray(GRADIENT))}, "gradient: rows"),
    "Hessian": ({"leaf_gradients": leaves(hessian=gradients(N, D + 1))}, "hessian: rows"),
    "Hessian of splits": ({"split_gradients": splits(hessian=gradients(N, 1))}, "hessian: rows"),
    "rule": ({"leaf_gradients": leaves(hessian="p")}, "unknown term"),
    "unit": ({"leaf_gradients": leaves(unit=np.ones(D - 1))}, "unit: one value per output"),
    "unit of splits": ({"split_gradients": splits(unit=np.ones(D + 1))}, "unit: one value per output"),
    "gain weight": ({"split_gradients": splits(gain_weight=np.ones(1))}, "gain_weight: one value per output"),
    "curvature": ({"split_gradients": splits(curvature=np.ones(N - 1, np.float32))}, "curvature: one value"),
    "labels": ({"leaf_gradients": leaves(label=np.zeros(N - 1, np.int32))}, "label: one value per row"),
    "a label": ({"leaf_gradients": leaves(label=np.full(N, D, np.int32))}, "label: a class is out of range"),
    "weight": ({"weight": np.ones(N + 1)}, "weight: one value per row"),
    "a row": ({"sample": RowSample(np.array([N], np.uint32))}, "a row is out of range"),
    "no rows": ({"sample": RowSample(np.empty(0, np.uint32))}, "no rows"),
    "order of rows": ({"sample": RowSample(np.array([2, 1], np.uint32))}, "rows of a sample must ascend"),
    "a row twice": ({"sample": RowSample(np.array([1, 1], np.uint32))}, "rows of a sample must ascend"),
    "sample weight": (
        {"sample": RowSample(np.arange(9, dtype=np.uint32), np.ones(9))},
        "sample weight: one value per row",
    ),
    "mask": ({"features": FeatureSample(np.ones(M + 1, np.uint8))}, "feature mask: one value per feature"),
    "groups": (
        {"features": FeatureSample(groups=InteractionGroups(np.array([0, 3]), np.array([0], np.int32)))},
        "group_begin",
    ),
    "feature of a group": (
        {"features": FeatureSample(groups=InteractionGroups(np.array([0, 1]), np.array([M], np.int32)))},
        "group_feature: a feature is out of range",
    ),
    "signs": ({"monotone": np.ones((M, D + 1), np.int8)}, "monotone: one sign per feature and output"),
    "signs of features": ({"monotone": np.ones((M + 1, D), np.int8)}, "monotone: one sign per feature"),
    "scores": ({"destination": Destination(np.zeros((N, D + 1)))}, "raw: one score per row and output"),
    "rows of scores": ({"destination": Destination(np.zeros((N - 1, D)))}, "raw: rows"),
    "leaf of row": (
        {"destination": Destination(leaf_of_row=np.empty(N - 1, np.uint32))},
        "leaf_of_row: one number per row",
    ),
    "residuals without scores": (
        {"leaf_gradients": leaves(renewal=Renewal(LEVELS, Y, COLUMNS))},
        "renewal: a level per output, and raw",
    ),
    "levels": (
        {
            "leaf_gradients": leaves(renewal=Renewal(LEVELS[1:], Y, COLUMNS[1:])),
            "destination": Destination(RAW),
        },
        "renewal: a level per output",
    ),
    "column": (
        {
            "leaf_gradients": leaves(renewal=Renewal(LEVELS, Y[:, :2].copy(), COLUMNS)),
            "destination": Destination(RAW),
        },
        "renewal: a column is out of range",
    ),
    "targets": (
        {"leaf_gradients": leaves(renewal=Renewal(LEVELS, Y[1:], COLUMNS)), "destination": Destination(RAW)},
        "renewal: targets of all rows",
    ),
    "weights of residuals": (
        {
            "leaf_gradients": leaves(renewal=Renewal(LEVELS, Y, COLUMNS, Y[:, 1:])),
            "destination": Destination(RAW),
        },
        "cell_weight: rows",
    ),
    "no gradients": ({"leaf_gradients": None}, "gradients: those of leaves are needed"),
    "none for splits": ({"split_gradients": None}, "gradients: those of splits are needed"),
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_task_that_does_not_fit_is_refused_by_the_name_of_what_is_wrong(name: str) -> None:
    changes, message = BAD_TASKS[name]
    grower = DenseGrower(MATRIX, settings())
    assert len(grower.grow(task(GRADIENT)).feature) > 1
    with pytest.raises(ValueError, match=message):
        grower.grow(replace(task(GRADIENT), **changes))


def made(n_rows: int, n_outputs: int, *, own_hessian: bool, swept: bool) -> _core.MadeGradients:
    """Gradients that are made of scores."""
    raw = np.zeros((n_rows, n_outputs))
    formula = _core.Logistic(np.zeros((n_rows, n_outputs)))
    out = _core.GradientsOfScores(formula, raw, None, own_hessian)
    if swept:
        _core.ScorePass(raw, 1).sweep_made(out, None, None, None, True)
    return out


@pytest.mark.parametrize(
    ("gradient", "rule", "message"),
    [
        (made(N - 1, D, own_hessian=False, swept=True), "itself", "gradient: made of other rows"),
        (made(N, D + 1, own_hessian=False, swept=True), "itself", "unit: one value per output"),
        (made(N, D, own_hessian=False, swept=False), "itself", "gradient: no sweep has seen how large"),
        (made(N, D, own_hessian=True, swept=True), "p(1-p)", "hessian: by a rule, or made"),
        (made(N, D, own_hessian=False, swept=True), "p", "unknown term"),
    ],
)
def test_made_gradients_that_do_not_fit_are_refused(
    gradient: _core.MadeGradients, rule: str, message: str
) -> None:
    of_core = _core.GrowTask(MATRIX, None)
    with pytest.raises(ValueError, match=message):
        of_core.set_made_gradients(gradient, rule, np.ones(D))


def test_a_task_has_one_kind_of_gradients() -> None:
    gradient = made(N, D, own_hessian=False, swept=True)
    of_core = core_task(MATRIX, task(GRADIENT))
    with pytest.raises(ValueError, match="gradient: set already"):
        of_core.set_made_gradients(gradient, "itself", np.ones(D))
    labels = SparseLabels(np.zeros(N + 1), np.empty(0), D)
    grower = LabelSparseGrower(MATRIX, labels, settings(sparse_leaves=2))
    with pytest.raises(ValueError, match="gradients: those of sparse labels"):
        grower.grow(Task(leaves(gradient=gradient)))


SKETCH = SplitGradients(GRADIENT[:, :2], None, None, np.ones(2), np.ones(2))
CLASSES = np.zeros(N, np.int32)


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ({"sparse_leaves": D + 1}, {}, "sparse_leaves: at most"),
        ({"sparse_leaves": 2}, {"split_gradients": SKETCH}, "sparse_leaves: splits"),
        ({}, {"split_gradients": SKETCH, "monotone": np.ones((M, D), np.int8)}, "monotone: one sign"),
        ({"sparse_leaves": 2}, {"monotone": np.ones((M, D), np.int8)}, "monotone: only"),
        ({"hessian": "exact"}, {}, "hessian: an exact one needs the labels"),
        ({"hessian": "exact_leaf", "sparse_leaves": 2}, {"leaf_gradients": leaves(label=CLASSES)}, "hessian"),
        (
            {"hessian": "exact"},
            {"leaf_gradients": leaves(label=CLASSES), "split_gradients": SKETCH},
            "hessian: an exact one in splits",
        ),
    ],
)
def test_a_task_that_does_not_fit_the_settings_is_refused(
    options: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DenseGrower(MATRIX, settings(**options)).grow(replace(task(GRADIENT), **changes))


def test_an_exact_hessian_has_no_gains_of_outputs() -> None:
    of_grower = settings(hessian="exact")
    of_core = core_task(MATRIX, task(GRADIENT, label=CLASSES))
    of_core.set_output_gains(True)
    with pytest.raises(ValueError, match="output_gains"):
        _core.DenseGrower().grow(of_core, of_grower)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leaf_gradients": leaves(), "split_gradients": splits()}, "gradients: those of sparse labels"),
        ({"destination": Destination(RAW)}, "raw: the scores of sparse labels"),
        ({"monotone": np.ones((M, D), np.int8)}, "monotone: not with sparse labels"),
        ({"sample": RowSample(np.arange(9, dtype=np.uint32), np.ones(N))}, "sample weight: not with"),
    ],
)
def test_what_sparse_labels_do_not_know_is_refused(changes: dict[str, Any], message: str) -> None:
    labels = SparseLabels(np.zeros(N + 1), np.empty(0), D)
    grower = LabelSparseGrower(MATRIX, labels, settings(sparse_leaves=2))
    assert len(grower.grow(Task()).feature) == 1
    with pytest.raises(ValueError, match=message):
        grower.grow(Task(**changes))


def test_sparse_labels_and_their_leaves_fit_each_other() -> None:
    labels = SparseLabels(np.zeros(N), np.empty(0), D)
    with pytest.raises(ValueError, match="matrix: not as many rows"):
        LabelSparseGrower(MATRIX, labels, settings(sparse_leaves=2)).grow(Task())
    labels = SparseLabels(np.zeros(N + 1), np.empty(0), D)
    for k in (None, D + 1):
        with pytest.raises(ValueError, match="sparse_leaves"):
            LabelSparseGrower(MATRIX, labels, settings(sparse_leaves=k)).grow(Task())


def test_a_task_keeps_its_arrays() -> None:
    """The core reads the arrays when the tree grows, long after they were named."""
    of_core = core_task(
        bin_table(TABLE.copy(), None, 64, 1),
        task(GRADIENT.copy(), GRADIENT**2, np.ones(N), sample=RowSample(np.arange(N, dtype=np.uint32))),
    )
    junk = [np.full(GRADIENT.shape, 7, np.float32) for _ in range(50)]
    grown = _core.DenseGrower().grow(of_core, settings())
    expected = DenseGrower(MATRIX, settings()).grow(task(GRADIENT, GRADIENT**2))
    np.testing.assert_array_equal(grown.values, expected.values)
    assert len(junk) == 50


def test_gradients_are_set_once() -> None:
    of_core = core_task(MATRIX, task(GRADIENT))
    with pytest.raises(ValueError, match="gradient: set already"):
        of_core.set_split_gradients(GRADIENT, None, None, np.ones(D), np.ones(D))


def test_weights_far_apart_are_summed_in_the_order_of_the_rows() -> None:
    """Not in that of a leaf's rows, which hangs on what else was tried: on memory, and on threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    gradient = (np.sin(X @ rng.normal(size=(4, 3))) + 0.3 * rng.normal(size=(3000, 3))).astype(np.float32)
    weight = 10.0 ** rng.integers(-12, 3, len(X))
    matrix = bin_table(X, None, 64, 1)
    found = set()
    for histogram_bytes in (0, 1 << 28):  # depth first, best first
        of_grower = settings(max_depth=None, max_leaves=30, min_samples_leaf=1)
        of_grower.histogram_bytes = histogram_bytes
        tree = DenseGrower(matrix, of_grower).grow(task(gradient, weight=weight))
        found.add((tree.feature.tobytes(), tree.cover.tobytes()))
    assert len(found) == 1
