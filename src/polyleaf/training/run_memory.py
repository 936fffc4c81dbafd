"""What a run takes of memory, and what it can do without."""

from __future__ import annotations

import scipy.sparse

from polyleaf.data.dataset import Dataset
from polyleaf.data.mapped_array import can_map
from polyleaf.data.memory import NOTHING_SAVED, Needs, Savings, needs
from polyleaf.growth.split_gradients import SplitPlan
from polyleaf.losses import Loss
from polyleaf.params.settings import Settings


def has_whole_trees(loss: Loss, settings: Settings) -> bool:
    """Whether a round is one tree with values of all outputs in each leaf, none of which needs the scores."""
    joint = settings.multi_strategy == "multi_output_tree" or loss.n_outputs == 1
    return joint and settings.sparse_leaves is None and loss.leaf_levels is None


def possible_savings(data: Dataset, loss: Loss, settings: Settings) -> Savings:
    """Return what a run could do without in memory.

    Gradients can be made a second time where the core has the formula, splits are found on mixtures of the
    outputs, and nothing but sums over leaves is made of the gradients themselves. Scores can lie in a file
    where trees are added to them in the order of the rows.
    """
    if settings.device != "cpu" or scipy.sparse.issparse(data.y):
        return NOTHING_SAVED
    plan = SplitPlan(settings.sketch, settings.sketch_size, settings.hessian == "shared", settings.seed)
    joint = settings.multi_strategy == "multi_output_tree"
    sampled = settings.subsample < 1 and settings.sampling_method == "gradient_based"
    sums_only = joint and not sampled and settings.hessian in ("diagonal", "shared")
    makes = loss.compiled and sums_only and plan.needs_no_gradients(loss.n_outputs)
    return Savings(made_gradients=makes, mapped_scores=has_whole_trees(loss, settings) and can_map())


def needs_of(
    data: Dataset,
    loss: Loss,
    settings: Settings,
    savings: Savings,
    cell_bytes: int = 8,
    *,
    holds_out: bool = False,
) -> Needs:
    """Return what a run takes of memory; `cell_bytes` are those of a number of its table."""
    n_rows, n_features = data.X.shape
    sparse = scipy.sparse.issparse(data.y)
    cells = data.weights.cell is not None
    by_rule = settings.hessian == "shared" and loss.hessian_rule is not None and not cells
    sketched = settings.sketch is not None and settings.sketch_size < loss.n_outputs
    return needs(
        n_rows,
        n_features,
        0 if sparse else loss.n_outputs,
        n_targets=0 if sparse else data.y.size // max(n_rows, 1),
        max_bins=settings.max_bins,
        n_mixtures=settings.sketch_size if sketched and not sparse else None,
        own_hessian=not (loss.unit_hessian or by_rule),
        weighted=data.weights.row is not None,
        cell_weights=cells,
        cell_bytes=cell_bytes,
        savings=savings,
        holds_out=holds_out,
    )
