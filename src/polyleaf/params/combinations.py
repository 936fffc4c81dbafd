"""The one table of combinations: what does not go with what, on which device, and why.

`check` reads it wherever options meet. So do the page docs/what-does-not-go-together.md and the list of what
a GPU refuses in docs/gpu.md (``python docs/combination_pages.py`` writes both), the test of all pairs of
options, and ``pytest --device cuda``. No other place refuses a combination: a new refusal is a new row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyleaf.params import options
from polyleaf.params.options import Option
from polyleaf.params.rules import LOSS_PARAMETERS
from polyleaf.params.situation import Situation


@dataclass(frozen=True)
class Exclusion:
    """A row of the table: two options that do not go together.

    Attributes
    ----------
    name : str
        Of the row.
    option, other : Option
        What is refused where a situation has both.
    why : str
        The reason, for pages (in Markdown) and errors.
    error : str
        The error, where it is not "<option> does not go with <other>: <why>." ``{option}``, ``{other}``,
        ``{why}`` can be named, and the values of a situation.
    """

    name: str
    option: Option
    other: Option
    why: str
    error: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Where the two do not go together."""
        sides = (self.option, self.other)
        return ("cuda",) if options.CUDA in sides else ("cpu",) if options.CPU in sides else ("cpu", "cuda")

    def applies(self, situation: Situation) -> bool:
        """Whether a situation has both options."""
        return self.option.given(situation) and self.other.given(situation)

    def message(self, situation: Situation) -> str:
        """Return the error for a situation."""
        option, other = self.option.called(situation), self.other.called(situation)
        why = self.why.replace("`", "")
        if self.error:
            named = {"option": option, "other": other, "why": why}
            return self.error.format_map({**situation.values(), **named})
        verb = "do" if self.option.plural else "does"
        remedy = f"; {self.option.remedy}" if self.option.remedy else ""
        return f"{option} {verb} not go with {other}: {why}{remedy}."


class Refused(ValueError):
    """Two options do not go together.

    Attributes
    ----------
    row : str
        Name of the row of the table that says so.
    """

    row: str = ""


COMBINATIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "sketch, sparse leaves",
        options.SKETCH,
        options.SPARSE_LEAVES,
        "the outputs of a leaf are chosen from all of them",
    ),
    Exclusion(
        "sketch, one output per tree",
        options.SKETCH,
        options.ONE_OUTPUT_PER_TREE,
        "a tree of one output has nothing to sketch",
    ),
    Exclusion(
        "sketch, exact Hessian",
        options.SKETCH,
        options.EXACT_HESSIAN,
        'the score needs the whole matrix (`"exact_leaf"` does not)',
    ),
    Exclusion(
        "sketch_size, no sketch",
        options.SKETCH_SIZE,
        options.NO_SKETCH,
        "it would be of no use",
        "{option} needs a sketch; sketch is None.",
    ),
    Exclusion(
        "sparse leaves, one output per tree",
        options.SPARSE_LEAVES,
        options.ONE_OUTPUT_PER_TREE,
        "a tree of one output has nothing to leave out",
    ),
    Exclusion(
        "sparse leaves, fewer outputs",
        options.SPARSE_LEAVES,
        options.FEWER_OUTPUTS,
        "a leaf cannot hold more outputs than there are",
        "{option} is more than the number of outputs, {n_outputs}.",
    ),
    Exclusion(
        "bounded influence, other objectives",
        options.BOUNDED_INFLUENCE,
        options.NOT_SQUARED,
        "they bound what a row says by themselves, or have Hessians that its limit does not know",
    ),
    Exclusion(
        "bounded influence, cell weights",
        options.BOUNDED_INFLUENCE,
        options.UNEVEN_CELLS,
        "its limit is that of rows, which count the same for all targets",
    ),
    Exclusion(
        "output_weight, one output per tree",
        options.OUTPUT_WEIGHT,
        options.ONE_OUTPUT_PER_TREE,
        "in a tree of one output there are no shares",
    ),
    Exclusion(
        "output_weight of 0, sparse leaves",
        options.OUTPUT_WEIGHT_OF_0,
        options.SPARSE_LEAVES,
        "leaves hold the outputs with the largest shares of the score; such an output would be in none",
    ),
    Exclusion(
        "label_space, no labels",
        options.LABEL_SPACE,
        options.NOT_LABELS,
        "there are no labels to hash, but classes or a single column",
        "{option} is for several labels, y a matrix of 0 and 1; here it is a {kind} target.",
    ),
    Exclusion(
        "label_space, sketch",
        options.LABEL_SPACE,
        options.SKETCH,
        "the hash of the labels is a sketch already; `sketch_size` says into how many groups",
    ),
    Exclusion(
        "label_space, no sketch",
        options.LABEL_SPACE,
        options.NO_SKETCH,
        "the hash of the labels is what splits are found on",
    ),
    Exclusion(
        "label_space, cell weights",
        options.LABEL_SPACE,
        options.UNEVEN_CELLS,
        "cells without a label are not stored: they have no weights, and cannot be missing",
    ),
    Exclusion(
        "label_space, metric",
        options.LABEL_SPACE,
        options.METRIC_OF_ALL_LABELS,
        "it needs the scores of all labels, which are never made",
        "{option} does not go with {other}: {why}; precision@k, ndcg@k, psp@k and top1_accuracy do with the "
        "best few.",
    ),
    Exclusion(
        "sparse labels, objective",
        options.SPARSE_LABELS,
        options.NOT_CLIPPED,
        "with others, cells without a label have gradients too",
        "{option} needs objective='clipped_squared_error'; the objective here is {loss!r}.",
    ),
    Exclusion(
        "sparse labels, base score",
        options.SPARSE_LABELS,
        options.BASE_SCORE,
        "scores would be dense",
        "{option} needs base_score=0 or None; got {base_score!r}.",
    ),
    Exclusion(
        "sparse labels, first score",
        options.SPARSE_LABELS,
        options.FIRST_SCORE,
        "scores would be dense",
        "{source}: {option} needs a model whose base score is 0.",
    ),
    Exclusion(
        "sparse labels, one output per tree",
        options.SPARSE_LABELS,
        options.ONE_OUTPUT_PER_TREE,
        "leaves must be sparse, and `sparse_leaves` does not go with it either",
    ),
    Exclusion(
        "sparse labels, sketch",
        options.SPARSE_LABELS,
        options.SKETCH,
        "leaves must be sparse, and `sparse_leaves` does not go with it either",
    ),
    Exclusion(
        "sparse labels, monotone",
        options.SPARSE_LABELS,
        options.MONOTONE,
        "leaves must be sparse, and `sparse_leaves` does not go with it either",
    ),
    Exclusion(
        "sparse labels, shared Hessian",
        options.SPARSE_LABELS,
        options.SHARED_HESSIAN,
        "the Hessian is 1 everywhere",
    ),
    Exclusion(
        "sparse labels, full Hessian",
        options.SPARSE_LABELS,
        options.FULL_HESSIAN,
        "the Hessian is 1 everywhere",
    ),
    Exclusion(
        "sparse labels, class_weight",
        options.SPARSE_LABELS,
        options.CLASS_WEIGHT,
        "it speaks of cells that are not stored",
    ),
    Exclusion(
        "sparse labels, output_weight",
        options.SPARSE_LABELS,
        options.OUTPUT_WEIGHT,
        "it speaks of cells that are not stored",
    ),
    Exclusion(
        "sparse labels, cell weights",
        options.SPARSE_LABELS,
        options.CELL_WEIGHTS,
        "it speaks of cells that are not stored",
        "{sample_weight} has shape {shape}; with a sparse y it must hold one weight per row.",
    ),
    Exclusion(
        "sparse labels, gradient sampling",
        options.SPARSE_LABELS,
        options.GRADIENT_SAMPLING,
        "the norms of rows are not kept",
    ),
    Exclusion(
        "sparse labels, dense leaves",
        options.SPARSE_LABELS,
        options.DENSE_LEAVES,
        "leaves of all labels would be dense",
        "{option} needs sparse_leaves, the number of labels a leaf speaks of; it is None.",
    ),
    Exclusion(
        "shared Hessian, one output per tree",
        options.SHARED_HESSIAN,
        options.ONE_OUTPUT_PER_TREE,
        "a tree of one output has one Hessian anyway",
    ),
    Exclusion(
        "full Hessian, no softmax",
        options.FULL_HESSIAN,
        options.NO_SOFTMAX,
        "only the softmax has a full Hessian that is known",
        "{option} needs the softmax cross entropy; the Hessian of the loss here ({loss}) is diagonal or not "
        "known.",
    ),
    Exclusion(
        "full Hessian, sparse leaves",
        options.FULL_HESSIAN,
        options.SPARSE_LEAVES,
        "the matrix couples all outputs of a leaf",
    ),
    Exclusion(
        "full Hessian, one output per tree",
        options.FULL_HESSIAN,
        options.ONE_OUTPUT_PER_TREE,
        "the matrix couples all outputs of a leaf",
    ),
    Exclusion(
        "full Hessian, no reg_lambda",
        options.FULL_HESSIAN,
        options.NO_REG_LAMBDA,
        "the softmax's Hessian is singular",
    ),
    Exclusion(
        "full Hessian, reg_alpha",
        options.FULL_HESSIAN,
        options.REG_ALPHA,
        "the leaf values would have no closed form",
    ),
    Exclusion(
        "exact Hessian, many classes",
        options.EXACT_HESSIAN,
        options.MANY_CLASSES,
        "one factorisation for each candidate takes too long",
        f"{{option}}: at most {options.MOST_EXACT_OUTPUTS} outputs are possible, here are {{n_outputs}}.",
    ),
    Exclusion(
        "exact Hessian, output_weight",
        options.EXACT_HESSIAN,
        options.OUTPUT_WEIGHT,
        "its score is no sum over outputs, and has no shares",
    ),
    Exclusion("monotone, softmax", options.MONOTONE, options.SOFTMAX, "a probability depends on all scores"),
    Exclusion(
        "monotone, group of softmax",
        options.MONOTONE,
        options.BOUND_SOFTMAX,
        "a probability depends on all scores (other groups can have signs, by name)",
        "{option} do not go with {other}: a probability depends on all scores; name the outputs that they "
        "are for, in a dict of signs for each feature.",
    ),
    Exclusion(
        "monotone, group of quantiles",
        options.MONOTONE,
        options.BOUND_QUANTILES,
        "leaf values are quantiles of residuals, and know no bounds (other groups can have signs, by name)",
        "{option} do not go with {other}: leaf values are quantiles of residuals, and know no bounds; name "
        "the outputs that they are for, in a dict of signs for each feature.",
    ),
    Exclusion(
        "monotone, categories", options.MONOTONE, options.ORDERED_CATEGORY, "a set of categories has no order"
    ),
    Exclusion(
        "monotone, leaf quantiles",
        options.MONOTONE,
        options.LEAF_QUANTILES,
        "leaf values are quantiles of residuals, and know no bounds",
    ),
    Exclusion(
        "monotone, sparse leaves",
        options.MONOTONE,
        options.SPARSE_LEAVES,
        "an output that is left out takes no part in the order",
    ),
    Exclusion(
        "monotone, sketch",
        options.MONOTONE,
        options.SKETCH,
        "the order is kept output by output, and needs all of them",
    ),
    Exclusion(
        "monotone, full Hessian", options.MONOTONE, options.FULL_HESSIAN, "the order is kept output by output"
    ),
    Exclusion(
        "categories, sparse X",
        options.CATEGORIES,
        options.SPARSE_TABLE,
        "its columns are not recoded",
        "{X} is sparse; its columns cannot be categories (categorical_features).",
    ),
    Exclusion(
        "objective, kind of target",
        options.OBJECTIVE,
        options.NOT_FOR_OBJECTIVE,
        '`"cross_entropy"` is for classes, which exclude each other, `"binary_cross_entropy"` for two '
        'classes or for labels, `"clipped_squared_error"` for several labels',
        "objective={objective!r} is not available for a {kind} target; allowed: {allowed}, or a callable",
    ),
    Exclusion(
        "eval_metric, kind of target",
        options.METRIC,
        options.NOT_FOR_METRIC,
        "targets, classes and labels have their own",
        "eval_metric {eval_metric!r} is not defined for a {kind} target; allowed are {allowed}.",
    ),
    Exclusion(
        "classes, class_weight as a list",
        options.ONE_COLUMN_OF_CLASSES,
        options.CLASS_WEIGHT_LIST,
        "a list is for several labels",
        "class_weight must be a dict or 'balanced' for {option}: {why}.",
    ),
    Exclusion(
        "class_weight, no classes",
        options.CLASS_WEIGHT,
        options.NO_CLASSES,
        "there are neither classes nor labels to weigh",
    ),
    *(
        Exclusion(
            f"{name}, unused",
            *options.OF_ONE_LOSS[name],
            "they would be of no use",
            f"{{option}} is of no use: it belongs to objective={parameter.objective!r} (or the metric), and "
            "the objective here is {loss!r}.",
        )
        for name, parameter in LOSS_PARAMETERS.items()
    ),
    Exclusion(
        "quantile levels, metric of one prediction",
        options.SEVERAL_QUANTILES,
        options.METRIC_OF_ONE_PREDICTION,
        "a target has several predictions",
        "{other} does not go with {option} and objective {loss!r}: a target has {n_levels} prediction(s).",
    ),
    Exclusion(
        "quantile levels, metric of quantiles",
        options.SEVERAL_QUANTILES,
        options.METRIC_OF_QUANTILES,
        "a target has one prediction",
        "{other} does not go with {option} and objective {loss!r}: a target has 1 prediction(s).",
    ),
    Exclusion(
        "metric of positive predictions, objective",
        options.METRIC_OF_POSITIVE,
        options.NOT_POSITIVE,
        "predictions may be negative",
        "{option} needs positive predictions, which those of {other} need not be; the objectives for it are "
        "poisson, gamma, tweedie.",
    ),
    Exclusion(
        "metric without weights, weights",
        options.BLIND_METRIC,
        options.WEIGHTED_ROWS,
        "it could not take them into account",
        "{y} has weights or missing targets, but {option} takes no sample_weight.",
    ),
    Exclusion(
        "n_bags, eval_set",
        options.BAGS,
        options.EVAL_SET,
        "each model is stopped by the rows that it has not seen",
    ),
    Exclusion(
        "n_bags, shards",
        options.BAGS,
        options.SHARDS,
        "rows are shared out of one table",
    ),
    Exclusion(
        "n_bags, going on",
        options.BAGS,
        options.GOING_ON,
        "rounds would be added to an average",
    ),
    Exclusion(
        "n_bags, cv",
        options.BAGS,
        options.CROSS_VALIDATION,
        "its folds advance together, and its models are single ones",
    ),
    Exclusion(
        "n_bags, Checkpoint",
        options.BAGS,
        options.CHECKPOINT,
        "a run of several models does not go on from one",
    ),
    Exclusion(
        "n_bags, OptunaPruning",
        options.BAGS,
        options.OPTUNA_PRUNING,
        "models that stop by themselves would report the same steps again (leave `n_bags` to the fit after "
        "the study)",
    ),
    Exclusion(
        "bags, some rounds",
        options.FITTED_BAGS,
        options.SOME_ROUNDS,
        "its rounds are those of one model after the other",
    ),
    Exclusion(
        "predict_spread, one model",
        options.SPREAD,
        options.ONE_MODEL,
        "there is nothing to compare it with",
        "{option} compares the models of n_bags above 1; this is a single one.",
    ),
    Exclusion(
        "held-out rows, going on",
        options.HELD_OUT_ROWS,
        options.ADDING_TREES,
        "the trees to go on from have seen all rows",
        "{option} needs rows that are not trained on, but the trees of {other} have seen all: pass eval_set "
        "to fit, or set n_estimators to a number and early_stopping_rounds=None.",
    ),
    Exclusion(
        "groups, nothing held out",
        options.GROUPS,
        options.NO_HELD_OUT_ROWS,
        "no rows are held out",
        "{option} says which rows are held out together, but none are held out: set "
        'n_estimators="auto" or early_stopping_rounds, without eval_set, or n_bags above 1.',
    ),
    Exclusion(
        "groups, given folds",
        options.GROUPS,
        options.GIVEN_FOLDS,
        "these say themselves which rows are together",
        "{option} does not go with {other}: {why}.",
    ),
    Exclusion(
        "eval_X, eval_set",
        options.EVAL_X,
        options.EVAL_SET,
        "both are evaluation sets",
        "eval_X and eval_y are one way to say what eval_set says; only one of them can be given.",
    ),
    Exclusion(
        "early_stopping_rounds, EarlyStopping",
        options.EARLY_STOPPING_ROUNDS,
        options.EARLY_STOPPING,
        "only one can say which round is the best",
        "{option} and an EarlyStopping in callbacks were both given; only one of them can decide which round "
        "is the best.",
    ),
    Exclusion(
        "EarlyStopping, EarlyStopping",
        options.EARLY_STOPPING,
        options.SECOND_EARLY_STOPPING,
        "only one can say which round is the best",
        "callbacks has more than one EarlyStopping; only one of them can decide which round is the best.",
    ),
    Exclusion(
        "eval_sample_weight, no eval_set",
        options.EVAL_WEIGHTS,
        options.NO_EVAL_SET,
        "there are no rows to weigh",
        "{option} was given without eval_set.",
    ),
    Exclusion(
        "going on, going on",
        options.GOING_ON,
        options.GOING_ON_TWICE,
        "only one can say what training goes on from",
        "{option}: only one of them can say what training goes on from.",
    ),
    Exclusion(
        "streamed X, cv",
        options.STREAMED_TABLE,
        options.CROSS_VALIDATION,
        "the rows of a fold would have to be read in any order",
    ),
    Exclusion(
        "binned X, other weights",
        options.BINNED_TABLE,
        options.OTHER_WEIGHTS,
        "`fit` on the rows themselves would choose other cut points (unless `max_bins` is None and no row is "
        "left out)",
        "{option} does not go with {other}: {why}. Give y and sample_weight to BinnedTable.make, with those "
        "of the classes multiplied in, and leave class_weight out.",
    ),
    Exclusion(
        "Checkpoint, cv", options.CHECKPOINT, options.CROSS_VALIDATION, "there is no single model to save"
    ),
    Exclusion("Checkpoint, tune", options.CHECKPOINT, options.TUNING, "there is no single model to save"),
    Exclusion(
        "OptunaPruning, tune",
        options.OPTUNA_PRUNING,
        options.TUNING,
        "each of its own trials would report the same steps again",
    ),
    Exclusion(
        "no max_depth, no max_leaves",
        options.NO_MAX_DEPTH,
        options.NO_MAX_LEAVES,
        "one of them must bound the trees",
        "max_depth and max_leaves are both None; one of them must bound the trees.",
    ),
    Exclusion(
        "shards, sparse labels",
        options.SHARDS,
        options.SPARSE_LABELS,
        "their gradients are summed node by node, in one place",
    ),
    Exclusion(
        "shards, full Hessian",
        options.SHARDS,
        options.FULL_HESSIAN,
        "the matrices of a leaf are summed in one place",
    ),
    Exclusion(
        "shards, gradient-based sampling",
        options.SHARDS,
        options.GRADIENT_SAMPLING,
        "the norms of all rows are sorted in one place",
    ),
    Exclusion(
        "shards, sparse X",
        options.SHARDS,
        options.SPARSE_TABLE,
        "the distinct values of columns are exchanged from dense tables",
    ),
    Exclusion(
        "shards, wide weights",
        options.SHARDS,
        options.WIDE_WEIGHTS,
        "the sums of their leaves hang on the order of the rows",
    ),
    Exclusion(
        "shards, callable objective",
        options.SHARDS,
        options.CALLABLE_OBJECTIVE,
        "a function that looks at several rows would see those of one shard only",
    ),
    Exclusion(
        "cuda, sparse labels",
        options.CUDA,
        options.SPARSE_LABELS,
        "the outputs of a leaf are chosen by the CPU's grower alone",
    ),
    Exclusion(
        "cuda, sparse leaves",
        options.CUDA,
        options.SPARSE_LEAVES,
        "the outputs of a leaf are chosen by the CPU's grower alone",
    ),
    Exclusion(
        "cuda, full Hessian", options.CUDA, options.FULL_HESSIAN, "factorisations are done by the CPU alone"
    ),
    Exclusion(
        "cuda, categories",
        options.CUDA,
        options.CATEGORIES,
        "their order is found by the CPU alone (as numbers they are fine)",
    ),
    Exclusion(
        "cuda, monotone",
        options.CUDA,
        options.MONOTONE,
        "nodes are searched without looking at their ancestors",
    ),
    Exclusion(
        "cuda, interaction",
        options.CUDA,
        options.INTERACTION,
        "nodes are searched without looking at their ancestors",
    ),
    Exclusion(
        "cuda, leaf quantiles",
        options.CUDA,
        options.LEAF_QUANTILES,
        "leaf values are quantiles of residuals, found by the CPU alone",
    ),
    Exclusion(
        "cuda, group of quantiles",
        options.CUDA,
        options.GROUP_OF_QUANTILES,
        "leaf values are quantiles of residuals, found by the CPU alone",
    ),
    Exclusion(
        "cuda, colsample_bylevel",
        options.CUDA,
        options.COLSAMPLE_BYLEVEL,
        "all nodes of a tree are searched with the same features (`colsample_bytree` is fine)",
    ),
    Exclusion(
        "cuda, colsample_bynode",
        options.CUDA,
        options.COLSAMPLE_BYNODE,
        "all nodes of a tree are searched with the same features (`colsample_bytree` is fine)",
    ),
    Exclusion(
        "cuda, streamed X",
        options.CUDA,
        options.STREAMED_TABLE,
        "its codes are made by the CPU, some columns at a time",
    ),
    Exclusion("cuda, shards", options.CUDA, options.SHARDS, "the CPU alone sums histograms over shards"),
    Exclusion("cuda, many bins", options.CUDA, options.MANY_BINS, "the code of a cell is a byte"),
    Exclusion(
        "CuPy X, cpu",
        options.CUPY_TABLE,
        options.CPU,
        "it would have to be copied; pass `X.get()`",
        "{X} is a CuPy array: set device='cuda', or pass {X}.get() to use the CPU.",
    ),
    Exclusion(
        "CuPy X, categories",
        options.CUPY_TABLE,
        options.CATEGORIES,
        "an array of numbers has no categories",
        "{X} is a CuPy array; its columns cannot be categories.",
    ),
    Exclusion(
        "as_frame, no frame",
        options.AS_FRAME,
        options.NO_FRAME,
        "it is not known which library is meant",
        "{option} needs a frame to go by: neither this X nor the y of fit is a pandas, polars or pyarrow "
        "one.",
    ),
    Exclusion(
        "as_frame, sparse",
        options.AS_FRAME,
        options.SPARSE_PREDICTIONS,
        "a frame is dense",
        "{other} and {option} exclude each other: a frame is dense.",
    ),
    Exclusion(
        "sparse predictions, not labels",
        options.SPARSE_PREDICTIONS,
        options.NOT_LABELS,
        "there are no labels to leave out",
        "{option} needs a problem of several labels per row.",
    ),
    Exclusion(
        "sparse predictions, top_k",
        options.SPARSE_PREDICTIONS,
        options.TOP_K,
        "it returns numbers of columns",
    ),
    Exclusion(
        "out, as_frame",
        options.OUT,
        options.AS_FRAME,
        "predictions are written, and not returned",
    ),
    Exclusion(
        "out, sparse predictions",
        options.OUT,
        options.SPARSE_PREDICTIONS,
        "the columns of a Parquet file are dense",
    ),
    Exclusion(
        "stages, streamed X",
        options.STAGES,
        options.STREAMED_TABLE,
        "every stage would read all rows once more (`predict(X, n_rounds=...)` gives some of them; a "
        "`BinnedTable` of the rows, made with `like` where it is not that of `fit`, all)",
    ),
    Exclusion(
        "as_labels, no top_k",
        options.AS_LABELS,
        options.NO_TOP_K,
        "classes are predicted as labels already, and several labels as a matrix of 0 and 1",
        "{option} needs top_k: {why}.",
    ),
    Exclusion(
        "versus, outputs",
        options.VERSUS,
        options.CHOSEN_OUTPUTS,
        "it names the two outputs to compare",
    ),
    Exclusion(
        "older trees of ONNX, categories",
        options.OLDER_ONNX_TREES,
        options.SPLITS_BY_CATEGORY,
        "its operator has thresholds and no sets (the default, `ml_opset=5`, has both)",
    ),
    Exclusion(
        "paths, single rows",
        options.PATH_METHOD,
        options.SINGLE_ROWS,
        "all rows go down a tree together, which gives their mean alone",
    ),
    Exclusion(
        "paths, link",
        options.PATH_METHOD,
        options.LINKED_RESPONSE,
        'the mean of predictions does not follow from that of leaf values (`response="raw"` is fine)',
    ),
    Exclusion(
        "recursion, weights of means",
        options.RECURSION,
        options.WEIGHTS_OF_MEANS,
        "it goes by the training rows that the trees know of, and by no others",
    ),
    Exclusion(
        "single rows alone, weights of means",
        options.SINGLE_ROWS_ALONE,
        options.WEIGHTS_OF_MEANS,
        "there is no mean to weigh",
    ),
    Exclusion(
        "several maps, ax",
        options.SEVERAL_MAPS,
        options.DRAWN_AXES,
        "every output has a map of its own (name one output, or leave `ax` out)",
    ),
    Exclusion(
        "drawn rows, two features",
        options.DRAWN_ROWS,
        options.TWO_FEATURES,
        "every row would be a map of its own",
    ),
    Exclusion(
        "output map, one output per tree",
        options.OUTPUT_MAP,
        options.ONE_OUTPUT_PER_TREE,
        "the values of its leaves have nothing to correlate with",
    ),
    Exclusion(
        "treelite, several quantiles",
        options.TREELITE,
        options.SORTED_QUANTILES,
        "treelite cannot put the predictions of a row in order",
    ),
    Exclusion(
        "treelite, cut-off shares",
        options.TREELITE,
        options.CUT_OFF_SHARES,
        "treelite cannot cut off predictions at 0 and 1",
    ),
    Exclusion(
        "treelite, groups of targets",
        options.TREELITE,
        options.GROUPS_OF_TARGETS,
        "treelite has one link for all outputs (`group` names one of them)",
    ),
    Exclusion(
        "gain per output, unknown",
        options.GAIN_PER_OUTPUT,
        options.NO_GAIN_PER_OUTPUT,
        "the score has no shares of outputs, or they were not computed",
        "the gain per output is not known: the model is from an older file, has trees of more than 1,024 "
        "outputs, sparse labels, a label_space, hessian='exact' or n_bags above 1, or is a slice without the "
        "best round.",
    ),
)


def check(situation: Situation) -> None:
    """Raise the error of the first row of the table that applies, if one does.

    Raises
    ------
    Refused
        Naming the options at odds.
    """
    for row in rows_that_apply(situation):
        raise error_of(row, situation)


def refused(situation: Situation) -> Refused:
    """Return the error of the first row of the table that applies, for those who know that one does."""
    return error_of(next(rows_that_apply(situation)), situation)


def rows_that_apply(situation: Situation) -> Iterator[Exclusion]:
    """Return the rows of which a situation has both options, in the order of the table."""
    return (row for row in COMBINATIONS if row.applies(situation))


def error_of(row: Exclusion, situation: Situation) -> Refused:
    """Return the error of a row."""
    error = Refused(row.message(situation))
    error.row = row.name  # not an argument: errors travel between processes with their text alone
    return error
