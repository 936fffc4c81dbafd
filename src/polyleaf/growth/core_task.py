"""A task as the core takes it."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.growth.contract import Task


def core_task(matrix: _core.BinnedMatrix, task: Task) -> _core.GrowTask:
    """Return the task of a tree on this table; the core checks it, and names what does not fit."""
    out = _core.GrowTask(matrix, task.weight)
    if task.shard is not None:
        out.set_shard(task.shard.peers, task.shard.n_rows, task.shard.runs)
    leaves, splits, features = task.leaf_gradients, task.split_gradients, task.features
    if leaves is not None:
        if isinstance(leaves.gradient, _core.MadeGradients):
            out.set_made_gradients(leaves.gradient, leaves.hessian_rule, leaves.unit)
        else:
            out.set_leaf_gradients(
                leaves.gradient, leaves.hessian_array, leaves.hessian_rule, leaves.unit, leaves.label
            )
        if leaves.renewal is not None:
            renewal = leaves.renewal
            out.set_renewal(renewal.level, renewal.y, renewal.column, renewal.cell_weight)
    if splits is not None:
        out.set_split_gradients(
            splits.gradient, splits.hessian, splits.curvature, splits.gain_weight, splits.unit
        )
    if task.sample.rows is not None:
        out.set_sample(task.sample.rows, task.sample.weight)
    out.set_features(features.mask, features.level_share, features.node_share, features.key)
    if features.groups is not None:
        out.set_interactions(features.groups.begin, features.groups.feature)
    if task.monotone is not None and task.monotone.any():
        out.set_monotone(np.ascontiguousarray(task.monotone))
    if task.destination.raw is not None:
        out.set_raw(task.destination.raw)
    if task.destination.leaf_of_row is not None:
        out.set_leaf_of_row(task.destination.leaf_of_row)
    out.set_learning_rate(task.learning_rate)
    return out
