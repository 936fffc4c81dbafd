"""The one table of parameters: name, what is allowed, default, meaning, and whose parameter it is.

Validation, the "Parameters" section of the estimators' docstrings and anything else that lists parameters
read this table; nothing about a parameter is written down twice. (scikit-learn needs the defaults in the
signature of ``__init__`` as well; a test holds the two together.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyleaf.params.objectives import ObjectiveChoice
from polyleaf.params.rules import (
    LOSS_PARAMETERS,
    Boolean,
    Callbacks,
    Choice,
    ChoiceList,
    ClassWeights,
    Columns,
    FeatureGroups,
    GroupClassWeights,
    GroupMetrics,
    GroupWeights,
    Integer,
    MonotoneSigns,
    NumberOrVector,
    OrAuto,
    Real,
    Rule,
    Seed,
    Shares,
    Threads,
    Verbosity,
)
from polyleaf.params.target_specs import TargetSpecs

EstimatorKind = Literal["regressor", "classifier", "mixed"]

DEFAULT_SKETCH_SIZE = 5
# Numbers behind "auto" (params/automatic.py); docs/defaults.md and docs/convergence.md have the measurements.
AUTO_SKETCH_OUTPUTS = 64
AUTO_SHARED_OUTPUTS = 33
# Of n_estimators="auto": the most rounds, the rounds without an improvement after which there are enough,
# below how many rows every row is held out in turn, and the rounds where no row can be held out.
AUTO_ROUNDS = 2000
AUTO_PATIENCE = 50
AUTO_FEW_ROWS = 2000
AUTO_FIXED_ROUNDS = 100
# The rows from which on learning_rate="auto" is the higher rate, and subsample="auto" all rows. Of
# colsample_bytree="auto": the features that a tree has to choose from at least.
AUTO_FEW_ROUNDS_ROWS = 20_000
AUTO_FEATURES = 6

# Of max_depth="auto".
USUAL_DEPTH = 6
# Of label_space="hashed": the groups that labels are hashed into, and the labels that a leaf holds.
LABEL_GROUPS = 16
LABELS_OF_A_LEAF = 100

METRICS: dict[EstimatorKind, tuple[str, ...]] = {
    "regressor": (
        "rmse",
        "rrmse",
        "mse",
        "mae",
        "mape",
        "r2",
        "huber",
        "quantile",
        "poisson",
        "gamma",
        "tweedie",
        "rmse_per_target",
        "rrmse_per_target",
        "mse_per_target",
        "mae_per_target",
        "mape_per_target",
        "r2_per_target",
    ),
    "classifier": (
        "cross_entropy",
        "binary_cross_entropy",
        "log_loss",
        "accuracy",
        "error",
        "auc",
        "average_precision",
        "f1_micro",
        "f1_macro",
        "top1_accuracy",
        "precision@k",
        "ndcg@k",
        "psp@k",
        "log_loss_per_target",
        "auc_per_target",
        "average_precision_per_target",
    ),
}


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    rule: Rule
    default: object
    meaning: str  # {objectives} stands for what each objective is
    estimators: tuple[EstimatorKind, ...] = ("regressor", "classifier", "mixed")

    def described(self) -> str:
        """Return the meaning in full."""
        if not isinstance(self.rule, ObjectiveChoice):
            return self.meaning
        return self.meaning.replace("{objectives}", self.rule.described())


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "targets",
        TargetSpecs(),
        None,
        'The groups of targets: names, and what they are. "regression", "binary" (two classes, one output), '
        '"multiclass" (one output per class) or the name of an objective ("huber", "poisson", ...); or a '
        'dict with "kind" or "objective" and, where needed, "columns" (of y; otherwise the one called '
        'like the group; several for "multilabel", of 0 and 1, and for regression), and "huber_delta", '
        '"quantile_levels" or "tweedie_power". Their order does not matter.',
        ("mixed",),
    ),
    Parameter(
        "n_estimators",
        OrAuto(Integer(1)),
        "auto",
        "Number of boosting rounds. A round grows one tree for all outputs, or one tree per output (see "
        '`multi_strategy`). "auto": as many as rows ask for that are not trained on, those of `eval_set` or, '
        "without it, some of the training rows (see `validation_fraction` and `refit`), at most 2,000; they "
        "are enough when 50 rounds (or `early_stopping_rounds`) have brought no improvement.",
    ),
    Parameter(
        "learning_rate",
        OrAuto(Real(0, open_low=True)),
        "auto",
        f'Factor applied to the leaf values of every tree. "auto": 0.05 below {AUTO_FEW_ROUNDS_ROWS:,} rows, '
        "0.1 from there on, where half as many rounds save more than they lose; 0.3 with `label_space`.",
    ),
    Parameter(
        "max_depth",
        Integer(1, or_none=True),
        6,
        "Most splits between the root and a leaf. None: no limit, then `max_leaves` must be set.",
        ("regressor", "mixed"),
    ),
    Parameter(
        "max_depth",
        OrAuto(Integer(1, or_none=True)),
        "auto",
        "Most splits between the root and a leaf. None: no limit, then `max_leaves` must be set. "
        f'"auto": {USUAL_DEPTH}; with `label_space`, more where `min_samples_leaf` allows it.',
        ("classifier",),
    ),
    Parameter(
        "max_leaves",
        Integer(2, or_none=True),
        None,
        "Most leaves of a tree, grown best-first. None: no limit, then `max_depth` must be set.",
    ),
    Parameter(
        "min_samples_leaf",
        OrAuto(Integer(1)),
        "auto",
        'Smallest number of training rows in a leaf. "auto": 3 for the squared error, or 20 where rows are '
        "few and those that are held out prefer it; 5 for the cross entropy of three classes and more; 20 "
        "for other losses.",
    ),
    Parameter(
        "max_bins",
        Integer(2, 65534, or_none=True),
        255,
        "Most bins per feature; the bin of missing values is not counted. Up to 255, a cell of the binned "
        "table takes one byte, otherwise two. None: a bin for each distinct value (exact split finding), for "
        "columns of at most 65,535 of them.",
    ),
    Parameter(
        "reg_lambda",
        Real(0),
        1.0,
        "L2 penalty on the leaf values. (Where these are quantiles of the residuals, for the absolute error "
        "and quantiles, it acts on the choice of splits only.)",
    ),
    Parameter("reg_alpha", Real(0), 0.0, "L1 penalty on the leaf values; see `reg_lambda`."),
    Parameter(
        "min_split_gain",
        Real(0),
        0.0,
        "A node is split only when the gain of its best split, averaged over the outputs, is greater. (Of a "
        "regressor with `scale_targets`, gains are in units of the targets' variance.)",
    ),
    Parameter(
        "min_child_weight",
        Real(0),
        0.0,
        "Smallest sum of the Hessian in a child, averaged over the outputs.",
    ),
    Parameter(
        "subsample",
        OrAuto(Real(0, 1, open_low=True)),
        "auto",
        "Share of the rows drawn, without replacement, for each round (see `sampling_method`). "
        f'"auto": all; with n_estimators="auto" and fewer than {AUTO_FEW_ROUNDS_ROWS:,} rows 0.7 for the '
        "squared error of one target and for two classes.",
    ),
    Parameter(
        "sampling_method",
        Choice(("uniform", "gradient_based")),
        "uniform",
        'How rows are drawn when `subsample` is below 1. "uniform": all alike, and equal rows together, so '
        "that the order of the rows does not matter; the rest takes no part in the round. "
        '"gradient_based": in proportion to the norm of their gradient over all outputs, weighted so that '
        "sums stay unbiased; the splits come from these rows, the leaf values from all rows.",
    ),
    Parameter(
        "colsample_bytree",
        OrAuto(Real(0, 1, open_low=True)),
        "auto",
        'Share of the features drawn, without replacement, for each round. "auto": half of them, but at '
        f"least {AUTO_FEATURES}; all where held-out rows prefer larger leaves (`min_samples_leaf`).",
    ),
    Parameter(
        "colsample_bylevel",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the round's features drawn for each level of a tree.",
    ),
    Parameter(
        "colsample_bynode",
        Real(0, 1, open_low=True),
        1.0,
        "Share of the level's features drawn for each node.",
    ),
    Parameter(
        "objective",
        ObjectiveChoice(("regression",)),
        None,
        'The loss that is minimised, for each target. None: "squared_error". {objectives} A callable '
        "`(y, raw_prediction) -> (gradient, hessian)` gets and returns float64 arrays of shape (n_rows, "
        "n_outputs).",
        ("regressor",),
    ),
    Parameter(
        "huber_delta",
        LOSS_PARAMETERS["huber_delta"].rule,
        LOSS_PARAMETERS["huber_delta"].default,
        'For "huber": the distance from the target, in its own unit, beyond which the loss is a straight '
        "line.",
        ("regressor",),
    ),
    Parameter(
        "quantile_levels",
        LOSS_PARAMETERS["quantile_levels"].rule,
        LOSS_PARAMETERS["quantile_levels"].default,
        'For "quantile": the level, or several. With m levels a model of t targets has t * m outputs: the '
        "first target's levels, then the second's, and so on; `predict` returns them in ascending order, so "
        "that they never cross.",
        ("regressor",),
    ),
    Parameter(
        "tweedie_power",
        LOSS_PARAMETERS["tweedie_power"].rule,
        LOSS_PARAMETERS["tweedie_power"].default,
        'For "tweedie": the power of the mean that the variance grows with.',
        ("regressor",),
    ),
    Parameter(
        "objective",
        ObjectiveChoice(("multiclass", "binary", "multilabel")),
        None,
        'The loss that is minimised. None: "cross_entropy" for three classes and more, otherwise '
        '"binary_cross_entropy". {objectives} A callable `(y, raw_prediction) -> (gradient, '
        "hessian)` gets raw predictions of shape (n_rows, n_outputs) and the class codes of shape (n_rows,), "
        "or with two classes or several labels zeros and ones of shape (n_rows, n_outputs).",
        ("classifier",),
    ),
    Parameter(
        "base_score",
        NumberOrVector(),
        None,
        "Raw prediction before the first tree. None: the best constant of each output (mean, log-prior or "
        "log-odds); a number or a vector fixes it.",
    ),
    Parameter(
        "multi_strategy",
        Choice(("multi_output_tree", "one_output_per_tree")),
        "multi_output_tree",
        "Whether each tree predicts all outputs, or each round grows one tree per output.",
    ),
    Parameter(
        "sparse_leaves",
        Integer(1, or_none=True),
        None,
        "Number of outputs a leaf says something about, at most `n_outputs_`; which ones is found with each "
        "split. None: all of them, but with `label_space`.",
    ),
    Parameter(
        "sparse_mode",
        Choice(("restricted", "unrestricted")),
        "restricted",
        "With `sparse_leaves`, whether the children of a split share their outputs, or each chooses its own.",
    ),
    Parameter(
        "sketch",
        Choice(("auto", "random_projection", "random_sampling", "top_outputs"), or_none=True),
        "auto",
        "Find the splits on `sketch_size` numbers a row instead of all gradients, which takes the number of "
        'outputs out of the cost of a split. "random_projection": as many random groups of outputs, '
        "summed with random signs; "
        '"random_sampling": outputs drawn in proportion to their gradients; "top_outputs": those with the '
        'largest gradients. Each round anew; leaf values always come from all outputs. "auto": a random '
        "projection for the squared error of 3 targets and more, and for 5 classes or labels and more; "
        "otherwise none. None: all outputs.",
    ),
    Parameter(
        "sketch_size",
        Integer(1, or_none=True),
        None,
        f'Outputs of the sketch. None: {DEFAULT_SKETCH_SIZE}; with `sketch="auto"`, 2 for targets and below '
        f"{AUTO_SKETCH_OUTPUTS} classes or labels; {LABEL_GROUPS} with `label_space`. As many "
        "as there are outputs is no sketch.",
    ),
    Parameter(
        "label_space",
        Choice(("hashed",), or_none=True),
        None,
        "How thousands of labels and more are learnt. None: each of them has a say in every split. "
        '"hashed": the labels are hashed into `sketch_size` groups, in each round anew, splits are found on '
        "the gradients of each group, added up with random signs, and a leaf holds values of the "
        f"`sparse_leaves` labels (None: {LABELS_OF_A_LEAF}) that gain most by it, chosen for each leaf. "
        'Neither labels nor scores are ever a dense table. The objective is "clipped_squared_error".',
        ("classifier",),
    ),
    Parameter(
        "hessian",
        Choice(("auto", "diagonal", "shared", "exact", "exact_leaf")),
        "auto",
        'What stands for the Hessian of the loss. "diagonal": one number for each output, in splits and in '
        'leaf values. "shared": splits are found with one number a row, the mean over the outputs, which '
        f'halves their cost; leaf values are those of "diagonal". "auto": shared from {AUTO_SHARED_OUTPUTS} '
        'outputs on (not for a callable). For the softmax cross entropy also "exact", the full matrix in '
        'splits and leaf values (up to 32 classes), and "exact_leaf", in leaf values only; these two need '
        "`reg_lambda > 0` and `reg_alpha = 0`.",
        ("classifier",),
    ),
    Parameter(
        "softmax_curvature",
        Choice(("p(1-p)", "2p(1-p)", "abs(p-y)")),
        "p(1-p)",
        "The diagonal that stands for the Hessian of the softmax cross entropy: its true diagonal, twice "
        "that (an upper bound of the whole Hessian), or the absolute gradient.",
        ("classifier", "mixed"),
    ),
    Parameter(
        "scale_targets",
        Boolean(),
        True,
        "Whether each target enters the choice of splits divided by the variance of its gradient (of the "
        "squared error: by its own variance), so that the units of the targets do not matter.",
        ("regressor", "mixed"),
    ),
    Parameter(
        "bounded_influence",
        OrAuto(Boolean()),
        "auto",
        "Whether a row whose residual is far beyond all others, as a wrong target makes it, moves its leaf "
        "by no more than ordinary rows could. What is cut off its residual is said to all rows alike: "
        'predictions keep their mean. "auto": for the squared error of targets that are all there.',
        ("regressor", "mixed"),
    ),
    Parameter(
        "loss_weight",
        GroupWeights(),
        None,
        "Share of each group in the split score and in the watched loss, by name, relative to the others; a "
        "group that is not named has 1. None: 1 for all, which puts the groups on a par.",
        ("mixed",),
    ),
    Parameter(
        "class_weight",
        ClassWeights(),
        None,
        'Weights of the classes, on top of `sample_weight`. "balanced": all classes have the same total '
        "weight; of several labels, the 0s and the 1s of each. A dict has the weight of each class (0 and 1 "
        "for labels; 1 where it names none); several labels may have a list with a dict for each.",
        ("classifier",),
    ),
    Parameter(
        "class_weight",
        GroupClassWeights(),
        None,
        'Weights of the classes, on top of `sample_weight`. "balanced": all classes have the same total '
        "weight, in each group of classes; of labels, the 0s and the 1s of each. A dict has this, or the "
        "weights of the classes, as a dict, for each group that it names; several labels may have a list "
        "with a dict for each.",
        ("mixed",),
    ),
    Parameter(
        "output_weight",
        Shares(),
        None,
        "Share of each target, class or label in the choice of splits, on top of `scale_targets`. An output "
        "of share 0 has leaf values like any other, but no say in the structure. None: all have the same.",
    ),
    Parameter(
        "monotone_constraints",
        MonotoneSigns(),
        None,
        "Whether the raw score of an output may only rise (1) or only fall (-1) as a feature grows; 0: no "
        "constraint. One sign per feature holds for all outputs; a matrix or the sequences of a dict have "
        "one per output, in the order of y. Features of a dict are indices or column names; those left out "
        'are free. So are outputs that a dict in it does not name: `{"age": {"price": -1}}`. Missing '
        "values are not ordered.",
    ),
    Parameter(
        "interaction_constraints",
        FeatureGroups(),
        None,
        "Groups of features: only features of one group are used together on the way from the root to a "
        "leaf. A feature in no group is on its own; one in several may meet the features of each. None: any "
        "features.",
    ),
    Parameter(
        "early_stopping_rounds",
        Integer(1, or_none=True),
        None,
        "Stop when the last metric of the last evaluation set (of groups of targets: their loss) has not "
        "improved for this many rounds; without `eval_set` in `fit`, that of rows which are held out (see "
        "`validation_fraction`). None: all rounds of `n_estimators` are done. "
        "(`polyleaf.callbacks.EarlyStopping` can watch another metric or set.)",
    ),
    Parameter(
        "validation_fraction",
        Real(0, 0.5, open_low=True),
        0.2,
        "How much of the weight of the training rows is held out where training stops early and `fit` gets "
        "no `eval_set`. Below 2,000 rows each row is held out once, in one part of several of this size, and "
        "the mean over them is watched (with `refit`). Which rows these are hangs on their values and the "
        "seed alone: up to nine equal rows are held out together, classes in the same shares, and `groups` "
        "of `fit` as a whole.",
    ),
    Parameter(
        "refit",
        Boolean(),
        True,
        "Whether all rows are trained on once held-out rows have told how many rounds to do; with `n_bags`, "
        "whether the leaf values of each model come from all rows while its splits stand. False: the model "
        "is that of the rows which were not held out.",
    ),
    Parameter(
        "n_bags",
        Integer(1),
        1,
        "Number of models that are averaged, on the scale of raw scores. Each is trained on all rows but one "
        "part of as many, and stopped by that part where training stops early, or, below 2,000 rows, all of "
        "them by the mean over the parts; each gets half as many rounds again as are best for it. In the end "
        "its leaves get their values from all rows (with `refit`). 1: a single model of all rows.",
    ),
    Parameter(
        "eval_metric",
        ChoiceList(METRICS["regressor"]),
        None,
        'What is computed on the evaluation sets after each round. None: the loss ("rmse" for the squared, '
        '"mae" for the absolute error). "huber", "quantile" (the pinball loss), "poisson", "gamma" and '
        '"tweedie" (deviances, for predictions that are positive) take the parameters of the objectives of '
        'the same name. "mape" is the mean of abs(y - prediction) / abs(y). "rmse_per_target" and the like '
        'add the metric of each target, as "<target>/rmse", before that of all. A callable '
        "`(y, prediction) -> float` is minimised unless it has an attribute `greater_is_better` that is True "
        "(`polyleaf.metrics.make_metric`) or is known to be maximised (`r2_score` and other scores of "
        "scikit-learn, and its scorers). One with an argument `sample_weight` gets the weights of the rows; "
        "where targets are missing or cells have weights of their own, those of the cells, in the shape of "
        "the prediction. Functions of scikit-learn with `multioutput` are then measured target by target and "
        "averaged; others of scikit-learn, and those without that argument, are refused.",
        ("regressor",),
    ),
    Parameter(
        "eval_metric",
        ChoiceList(METRICS["classifier"]),
        None,
        'What is computed on the evaluation sets after each round. None: the loss. "log_loss" is the cross '
        'entropy that suits the problem, "error" is 1 - accuracy; with several labels a row is right when '
        'all of its labels are. "top1_accuracy" (several labels) is the share of rows whose highest-scored '
        'label is true. "precision@k" and "ndcg@k" (several labels, three classes and more) look at the k '
        'highest scores, for any k up to the number of labels: "precision@5" is the share of true labels '
        'among 5, which with classes is at most 1/5. "psp@k" counts each of them by the inverse of its '
        'propensity (Jain et al., 2016), as a share of the best there can be. "auc" and "average_precision" '
        "are means over the labels, or over the classes, each against the rest, that some rows of the "
        'evaluation set have and some have not; NaN if there is none. "auc_per_target" and the like (several '
        'labels) add the metric of each label, as "<label>/auc", before that of all. A callable '
        "`(y, prediction) -> float` gets probabilities (classes and labels, if it is a function of "
        "scikit-learn that compares these) and is minimised unless it has an attribute `greater_is_better` "
        "that is True (`polyleaf.metrics.make_metric`) or is known to be maximised (`roc_auc_score` and "
        "other scores of scikit-learn, and its scorers). One with an argument `sample_weight` gets the "
        "weights of the rows; where labels are missing or cells have weights of their own, those of the "
        "cells. `roc_auc_score`, `average_precision_score` and `hamming_loss` are then measured label by "
        "label and averaged; other functions of scikit-learn, and those without that argument, are refused.",
        ("classifier",),
    ),
    Parameter(
        "eval_metric",
        GroupMetrics(METRICS["regressor"] + METRICS["classifier"]),
        None,
        "What is computed on the evaluation sets after each round, for the groups that it names; others, and "
        "all of them with None, have the metric of their loss. What a metric is called, and what a callable "
        "gets, is as in `PolyleafRegressor` and `PolyleafClassifier`, with the targets of the group alone; "
        'its key is "<group>/<metric>", and "<group>/<target>/rmse" for "rmse_per_target" and the like. '
        'The watched "loss" stays the same.',
        ("mixed",),
    ),
    Parameter(
        "callbacks",
        Callbacks(),
        None,
        "What is called before and after each round: objects of `polyleaf.callbacks` or of the same form, or "
        "functions that get the state of the training after each round and return True to end it.",
    ),
    Parameter(
        "warm_start",
        Boolean(),
        False,
        "Whether `fit` on a fitted estimator keeps its trees and adds rounds until there are `n_estimators`.",
    ),
    Parameter(
        "categorical_features",
        Columns(),
        None,
        "Columns whose values are categories, text or numbers whose order means nothing, at most 10,000 of "
        'them in a column: by name, by number, as a mask, or "from_dtype": the columns of a categorical '
        'dtype, or "auto": these and the columns of text. Splits tell sets of categories apart; those that '
        'training did not see go where missing values go. None: as "from_dtype".',
    ),
    Parameter(
        "importance_type",
        Choice(("gain", "cover", "split")),
        "gain",
        "What `feature_importances_` adds up for each feature: the gain of its splits, the weight of the "
        "rows they tell apart, or their number.",
    ),
    Parameter(
        "columns_by_name",
        Boolean(),
        False,
        "Whether a frame to predict or to evaluate is read by the names of its columns: they may then be in "
        "another order than in `fit`, and others beside them are left out. Without it such a frame is an "
        "error, as scikit-learn has it.",
    ),
    Parameter(
        "histogram_precision",
        Choice(("full", "packed")),
        "full",
        'Bits of the sums that splits are found on. "full": 31 and a sign. "packed": 20 and a sign, three of '
        "them in a number of 64, which makes rounds up to a quarter shorter: with 8 to 11 or 16 to 22 "
        "outputs that have Hessians of their own, with 16 to 22 or 32 and more that have not. Numbers are "
        "rounded at random by a hash of row and number, so that the order of the rows counts. Rows with "
        "weights, more than 262,144 of them, other numbers of outputs and sparse labels have full sums all "
        "the same.",
    ),
    Parameter(
        "device",
        Choice(("cpu", "cuda")),
        "cpu",
        '"cuda" trains and predicts on an NVIDIA GPU, through CuPy (``pip install "polyleaf[gpu]"``). The '
        "model is the same either way, and a loaded one predicts on the CPU until this is set.",
    ),
    Parameter(
        "n_jobs",
        Threads(),
        None,
        "Number of threads. None: as many as OpenMP would use. -1: all processors, -2: all but one, and so "
        "on. The result does not depend on it. Of a model file, at most the number of cores counts.",
    ),
    Parameter(
        "random_state",
        Seed(),
        None,
        "Seed of the samples of rows and columns, and of sketches. None is the seed 0: two fits with equal "
        "data and parameters give the same model. A RandomState gives each fit another seed.",
    ),
    Parameter(
        "verbose",
        Verbosity(),
        0,
        "0: silent. 1: a progress bar with the watched metric. n >= 2: a line every n rounds as well. The "
        'lines, and the last state of the bar, also go to the logger "polyleaf" at the level INFO.',
    ),
)


def parameters_of(kind: EstimatorKind) -> dict[str, Parameter]:
    """Return the rows of one estimator, by name, in the order of its signature."""
    return {row.name: row for row in PARAMETERS if kind in row.estimators}
