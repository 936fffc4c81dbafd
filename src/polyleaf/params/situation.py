"""What is asked for, and what it meets: all that decides whether options go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from polyleaf.params.objectives import TargetKind

# What errors call the input, unless told otherwise.
_USUAL_NAMES = {"X": "X", "y": "y", "sample_weight": "sample_weight"}


@dataclass(frozen=True)
class Situation:
    """What is asked for and what it meets, as far as that is known where a check is made.

    What is left out is not known, or not there, and no option that needs it is found.

    Attributes
    ----------
    params : mapping
        Parameters by name, checked one by one already.
    device : {"cpu", "cuda"} or None
        Where the work is about to begin.
    kind, loss, n_outputs
        Of the targets: what they are, the name of their loss, how many outputs there are.
    leaf_quantiles : bool
        Whether leaf values are quantiles of residuals.
    sparse_labels, cell_weights : bool
        Whether y is a sparse matrix; whether each of its cells has a weight.
    table : {"sparse", "cupy", "stream", "binned"} or None
        What X is, if neither a dense array of the host nor a data frame.
    other_weights : bool
        Whether the rows have other weights than those they were binned with.
    bound_softmax, bound_quantiles : str or None
        Name of a group of targets, of classes or with quantiles of residuals in its leaves, on which there
        are monotone constraints.
    ordered_category : str or None
        A categorical feature on which there is a monotone constraint.
    categorical, interaction : bool
        Whether there are categorical features; whether some features must not meet in a tree.
    unsuited : {"objective", "eval_metric"} or None
        What is not for this kind of target.
    n_eval_sets : int or None
        Number of evaluation sets.
    eval_weights : bool
        Whether there are weights of evaluation sets.
    holds_out : bool or None
        Whether some of the training rows are not trained on; None: that is not known.
    groups, eval_x : bool
        Whether `fit` got groups of rows; whether it got evaluation sets as `eval_X`.
    bags : bool
        Whether a fitted model is the average of several.
    n_early_stopping : int
        Number of EarlyStopping among the callbacks.
    blind_metric : str or None
        Name of a metric that takes no weights.
    weighted : bool
        Whether rows to be measured have weights or missing targets.
    shards, wide_weights : bool
        Whether the rows are in several shards; whether some weights are more than 2^30 times others.
    going_on : tuple of str
        All that asks for trees to go on from.
    first_score : bool
        Whether the model to go on from has a base score other than 0.
    checkpoint, pruning, cross_validation, tuning : bool
        Whether a checkpoint is to be written; whether rounds are reported to a trial of Optuna; whether there
        is a model for each fold; whether parameters are searched.
    asked : frozenset of str
        Of a fitted model: "as_frame", "as_labels", "sparse", "top_k", "out", "stages", "rounds", "spread",
        "versus", "outputs", "gain per output"; of a cross-validation "given folds"; of partial
        dependence "paths method", "recursion method", "single rows", "single rows alone", "link",
        "weights of means"; of pictures "ax", "several maps", "drawn rows", "two features", "output map"; of
        exports "older onnx trees", "splits by category", "treelite", "sorted quantiles", "cut-off shares",
        "groups of targets".
    frame_known, output_gains : bool
        Whether it is known of which library frames are; whether the gains of outputs are.
    words : mapping
        More values for the text of errors, and what X, y and sample_weight are called there.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    kind: TargetKind | None = None
    loss: str | None = None
    n_outputs: int | None = None
    leaf_quantiles: bool = False
    sparse_labels: bool = False
    cell_weights: bool = False
    table: Literal["sparse", "cupy", "stream", "binned"] | None = None
    other_weights: bool = False
    bound_softmax: str | None = None
    bound_quantiles: str | None = None
    ordered_category: str | None = None
    categorical: bool = False
    interaction: bool = False
    unsuited: Literal["objective", "eval_metric"] | None = None
    n_eval_sets: int | None = None
    eval_weights: bool = False
    n_early_stopping: int = 0
    holds_out: bool | None = None
    groups: bool = False
    eval_x: bool = False
    bags: bool = False
    blind_metric: str | None = None
    weighted: bool = False
    shards: bool = False
    wide_weights: bool = False
    going_on: tuple[str, ...] = ()
    first_score: bool = False
    checkpoint: bool = False
    pruning: bool = False
    cross_validation: bool = False
    tuning: bool = False
    asked: frozenset[str] = frozenset()
    frame_known: bool = True
    output_gains: bool = True
    words: Mapping[str, object] = field(default_factory=dict)

    @property
    def all_metrics(self) -> list[object]:
        """The metrics asked for, names and functions."""
        wanted = self.params.get("eval_metric")
        return [] if wanted is None else list(wanted) if isinstance(wanted, list | tuple) else [wanted]

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics asked for; functions have none that matters here."""
        return [one for one in self.all_metrics if isinstance(one, str)]

    @property
    def n_levels(self) -> int:
        """Number of quantile levels."""
        return int(np.size(self.params.get("quantile_levels", 0.5)))

    def values(self) -> dict[str, object]:
        """Return what the text of an error may name: parameters, attributes, words."""
        known = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in self.params}
        return {**_USUAL_NAMES, "n_levels": self.n_levels, **known, **self.params, **self.words}
