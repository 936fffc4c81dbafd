"""Options as the table of combinations knows them: what pages and errors call them, and how to see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyleaf.params.constraints import has_signs
from polyleaf.params.objectives import has_link
from polyleaf.params.rules import LOSS_PARAMETERS
from polyleaf.params.situation import Situation

# Cholesky factors of larger matrices, one per candidate split, would take too long to be of use.
MOST_EXACT_OUTPUTS = 32
MOST_GPU_BINS = 255  # of values: with the missing one, a code is a byte

# Metrics by what they need: positive predictions; one prediction for each target.
_DEVIANCES = ("poisson", "gamma", "tweedie")
_ERRORS = ("rmse", "rrmse", "mse", "mae", "mape", "r2")
_ONE_PREDICTION = (*_ERRORS, "huber", *(f"{name}_per_target" for name in _ERRORS))

Given = Callable[[Situation], bool]
Words = Callable[[Situation], str]


@dataclass(frozen=True)
class Option:
    """Something that can be asked for, or that data can be.

    Attributes
    ----------
    docs : str
        What pages call it, in Markdown.
    given : callable
        Whether a situation has it.
    words : str, callable or None
        What errors call it: a text in which ``{name}`` stands for a value of the situation, or a function of
        the situation. None: as pages do.
    plural : bool
        Whether it "do not go with" others.
    remedy : str
        What to do about it, for the end of an error.
    """

    docs: str
    given: Given
    words: str | Words | None = None
    plural: bool = False
    remedy: str = ""

    def called(self, situation: Situation) -> str:
        """Return what an error calls it."""
        if self.words is None:
            return self.docs.replace("`", "")
        if callable(self.words):
            return self.words(situation)
        return self.words.format_map(situation.values())


def _is(name: str, *values: str) -> Given:
    return lambda s: s.params.get(name) in values


def _is_none(name: str) -> Given:
    return lambda s: name in s.params and s.params[name] is None


def _is_set(name: str) -> Given:
    return lambda s: s.params.get(name) is not None


def _is_below_one(name: str) -> Given:
    return lambda s: s.params.get(name, 1) != "auto" and bool(s.params.get(name, 1) < 1)


def _is_asked(name: str) -> Given:
    return lambda s: name in s.asked


def _loss_is_not(*names: str) -> Given:
    return lambda s: s.loss is not None and s.loss not in names


def _measured_by(*names: str) -> Given:
    return lambda s: any(name in names for name in s.metrics)


def _looks_at_the_best(metric: object) -> bool:
    return isinstance(metric, str) and metric.startswith(_OF_THE_BEST) and not metric.endswith("_per_target")


def _metric_among(*names: str) -> Words:
    return lambda s: f"eval_metric {next(name for name in s.metrics if name in names)!r}"


def _code(*values: str) -> str:
    return ", ".join(f'`"{value}"`' for value in values)


# --- trees -------------------------------------------------------------------------------------------------

SKETCH = Option(
    '`sketch` (other than `"auto"`)',
    lambda s: s.params.get("sketch") not in (None, "auto"),
    "sketch={sketch!r}",
)
NO_SKETCH = Option("`sketch=None`", _is_none("sketch"))
SKETCH_SIZE = Option("`sketch_size`", _is_set("sketch_size"), "sketch_size={sketch_size}")
SPARSE_LEAVES = Option("`sparse_leaves`", _is_set("sparse_leaves"), "sparse_leaves={sparse_leaves}")
DENSE_LEAVES = Option(
    "`sparse_leaves=None`",
    lambda s: _is_none("sparse_leaves")(s) and s.params.get("label_space") is None,
)
LABEL_SPACE = Option("`label_space`", _is_set("label_space"), "label_space={label_space!r}")
ONE_OUTPUT_PER_TREE = Option(
    '`multi_strategy="one_output_per_tree"`',
    _is("multi_strategy", "one_output_per_tree"),
    "multi_strategy='one_output_per_tree'",
)
BOUNDED_INFLUENCE = Option(
    "`bounded_influence=True`",
    lambda s: s.params.get("bounded_influence", "auto") not in ("auto", False),
    "bounded_influence=True",
)
OUTPUT_WEIGHT = Option("`output_weight`", _is_set("output_weight"))
OUTPUT_WEIGHT_OF_0 = Option(
    "`output_weight` with a 0",
    lambda s: (
        s.params.get("output_weight") is not None
        and not np.all(np.asarray(s.params["output_weight"], dtype=float) > 0)
    ),
)
SHARED_HESSIAN = Option('`hessian="shared"`', _is("hessian", "shared"), "hessian='shared'")
EXACT_HESSIAN = Option('`hessian="exact"`', _is("hessian", "exact"), "hessian='exact'")
FULL_HESSIAN = Option(
    '`hessian="exact"` or `"exact_leaf"`', _is("hessian", "exact", "exact_leaf"), "hessian={hessian!r}"
)
NO_REG_LAMBDA = Option(
    "`reg_lambda=0`",
    lambda s: "reg_lambda" in s.params and not s.params["reg_lambda"] > 0,
    "reg_lambda={reg_lambda}",
)
REG_ALPHA = Option(
    "`reg_alpha` other than 0", lambda s: bool(s.params.get("reg_alpha", 0) != 0), "reg_alpha={reg_alpha}"
)
MONOTONE = Option(
    "`monotone_constraints` (with a sign other than 0)",
    lambda s: has_signs(s.params.get("monotone_constraints")),
    "monotone_constraints",
    plural=True,
)
BOUND_SOFTMAX = Option(
    "signs for a multiclass group of `PolyleafMixed`",
    lambda s: s.bound_softmax is not None,
    "the softmax of the classes of {bound_softmax!r}",
)
BOUND_QUANTILES = Option(
    'signs for a group of `"quantile"` or `"absolute_error"`',
    lambda s: s.bound_quantiles is not None,
    "the quantiles of {bound_quantiles!r}",
)
INTERACTION = Option("`interaction_constraints`", lambda s: s.interaction, plural=True)
NO_MAX_DEPTH = Option("`max_depth=None`", _is_none("max_depth"))
NO_MAX_LEAVES = Option("`max_leaves=None`", _is_none("max_leaves"))
MANY_BINS = Option(
    f"`max_bins=None`, or above {MOST_GPU_BINS}",
    lambda s: (
        "max_bins" in s.params and (s.params["max_bins"] is None or s.params["max_bins"] > MOST_GPU_BINS)
    ),
    f"max_bins={{max_bins}} (at most {MOST_GPU_BINS})",
)
GRADIENT_SAMPLING = Option(
    '`sampling_method="gradient_based"`',
    _is("sampling_method", "gradient_based"),
    "sampling_method='gradient_based'",
)
COLSAMPLE_BYLEVEL = Option(
    "`colsample_bylevel` below 1", _is_below_one("colsample_bylevel"), "colsample_bylevel={colsample_bylevel}"
)
COLSAMPLE_BYNODE = Option(
    "`colsample_bynode` below 1", _is_below_one("colsample_bynode"), "colsample_bynode={colsample_bynode}"
)

# --- devices -----------------------------------------------------------------------------------------------

CPU = Option('`device="cpu"`', lambda s: s.device == "cpu", "device='cpu'")
CUDA = Option('`device="cuda"`', lambda s: s.device == "cuda", "device='cuda'", remedy="use device='cpu'")

# --- tables and targets ------------------------------------------------------------------------------------

ORDERED_CATEGORY = Option(
    "a constraint on a feature in `categorical_features`",
    lambda s: s.ordered_category is not None,
    "the categorical feature {ordered_category}",
)
CATEGORIES = Option("`categorical_features`", lambda s: s.categorical, "categorical features", plural=True)
SPARSE_TABLE = Option("a SciPy sparse `X`", lambda s: s.table == "sparse")
CUPY_TABLE = Option("a CuPy `X`", lambda s: s.table == "cupy")
STREAMED_TABLE = Option(
    "an `X` that is read from files or batches",
    lambda s: s.table == "stream",
    "an X read from files or batches",
)
BINNED_TABLE = Option("a `BinnedTable` as `X`", lambda s: s.table == "binned", "a BinnedTable")
OTHER_WEIGHTS = Option(
    "weights of rows that it was not binned with: of `class_weight`, or of a `sample_weight` or missing "
    "targets that are given to `fit`",
    lambda s: s.other_weights,
    "weights of rows that it was not binned with",
)
SHARDS = Option("rows in several shards", lambda s: s.shards, plural=True)
WIDE_WEIGHTS = Option(
    "weights of which some are more than 2^30 times others", lambda s: s.wide_weights, plural=True
)
CALLABLE_OBJECTIVE = Option(
    "a callable `objective`", lambda s: callable(s.params.get("objective")), "a callable objective"
)
SPARSE_LABELS = Option(
    "sparse labels",
    lambda s: s.sparse_labels,
    lambda s: "a sparse y" if s.params.get("label_space") is None else LABEL_SPACE.called(s),
)
CELL_WEIGHTS = Option("`sample_weight` of cells", lambda s: s.cell_weights)
UNEVEN_CELLS = Option(
    "missing targets, or `sample_weight` of cells",
    lambda s: s.cell_weights,
    "missing targets or weights of cells",
    plural=True,
)
CLASS_WEIGHT = Option("`class_weight`", _is_set("class_weight"))
CLASS_WEIGHT_LIST = Option(
    "`class_weight` as a list", lambda s: isinstance(s.params.get("class_weight"), list | tuple)
)
NO_CLASSES = Option(
    "groups of `PolyleafMixed` that are all numbers",
    lambda s: s.kind == "regression",
    "targets that are all numbers",
)
ONE_COLUMN_OF_CLASSES = Option("a column of classes", lambda s: s.kind in ("binary", "multiclass"))
FEWER_OUTPUTS = Option(
    "fewer outputs than its number",
    lambda s: s.n_outputs is not None and (s.params.get("sparse_leaves") or 0) > s.n_outputs,
)
MANY_CLASSES = Option(
    f"more than {MOST_EXACT_OUTPUTS} classes",
    lambda s: s.n_outputs is not None and s.n_outputs > MOST_EXACT_OUTPUTS,
)

# --- losses and metrics ------------------------------------------------------------------------------------

SOFTMAX = Option(
    'three classes and more, also with a callable objective; `objective="cross_entropy"`',
    lambda s: s.loss == "cross_entropy" or s.kind == "multiclass",
    "the softmax of classes",
)
NO_SOFTMAX = Option(
    'labels, two classes (unless `objective="cross_entropy"`), a callable objective',
    _loss_is_not("cross_entropy"),
)
LEAF_QUANTILES = Option(
    '`objective="quantile"`, `"absolute_error"`',
    lambda s: s.leaf_quantiles and s.loss != "grouped",
    "objective={loss!r}",
)
# The loss of several groups has no name that users know.
GROUP_OF_QUANTILES = Option(
    "a group of `PolyleafMixed` with one of these",
    lambda s: s.leaf_quantiles and s.loss == "grouped",
    "targets of 'absolute_error' or 'quantile'",
)
NOT_SQUARED = Option(
    'any objective but `"squared_error"`, and several groups of `PolyleafMixed`',
    _loss_is_not("squared_error"),
    lambda s: "several groups of targets" if s.loss == "grouped" else f"objective={s.loss!r}",
)
NOT_CLIPPED = Option(
    'any objective but `"clipped_squared_error"`', _loss_is_not("clipped_squared_error"), "objective={loss!r}"
)
BASE_SCORE = Option(
    "`base_score` other than 0",
    lambda s: s.params.get("base_score") is not None and bool(np.any(s.params["base_score"])),
    "base_score={base_score!r}",
)
OBJECTIVE = Option("`objective`", _is_set("objective"))
METRIC = Option("`eval_metric`", _is_set("eval_metric"))
NOT_FOR_OBJECTIVE = Option("a kind of target that it is not for", lambda s: s.unsuited == "objective")
NOT_FOR_METRIC = Option("a kind of target that it is not for", lambda s: s.unsuited == "eval_metric")
SEVERAL_QUANTILES = Option(
    "several `quantile_levels`",
    lambda s: s.n_levels > 1,
    "quantile_levels={quantile_levels!r}",
    plural=True,
)
METRIC_OF_ONE_PREDICTION = Option(
    f"`eval_metric` {_code(*_ONE_PREDICTION)}",
    lambda s: s.loss == "quantile" and _measured_by(*_ONE_PREDICTION)(s),
    _metric_among(*_ONE_PREDICTION),
)
METRIC_OF_QUANTILES = Option(
    f"`eval_metric` {_code('quantile')} with another objective",
    lambda s: _loss_is_not("quantile")(s) and _measured_by("quantile")(s),
    _metric_among("quantile"),
)
METRIC_OF_POSITIVE = Option(
    f"`eval_metric` {_code(*_DEVIANCES)}", _measured_by(*_DEVIANCES), _metric_among(*_DEVIANCES)
)
NOT_POSITIVE = Option(
    "other objectives than these three",
    lambda s: s.loss is not None and not has_link(s.loss, "exponential"),
    "objective {loss!r}",
)
# Beside "precision@5" and the like, which look at the best few.
_OF_THE_BEST = ("top1_accuracy", "precision@", "ndcg@", "psp@")
METRIC_OF_ALL_LABELS = Option(
    'any `eval_metric` but `"top1_accuracy"`, `"precision@k"`, `"ndcg@k"` and `"psp@k"`',
    lambda s: any(not _looks_at_the_best(one) for one in s.all_metrics),
    lambda s: f"eval_metric {next(one for one in s.all_metrics if not _looks_at_the_best(one))!r}",
)
BLIND_METRIC = Option(
    "`eval_metric`, a function without `sample_weight`",
    lambda s: s.blind_metric is not None,
    "eval_metric {blind_metric!r}",
)
WEIGHTED_ROWS = Option("weights or missing targets in an evaluation set", lambda s: s.weighted)


def _loss_parameter(name: str) -> Option:
    default = LOSS_PARAMETERS[name].default
    return Option(
        f"`{name}`",
        lambda s: name in s.params and not np.array_equal(s.params[name], default),
        f"{name}={{{name}!r}}",
    )


def _unused(name: str) -> Option:
    objective = LOSS_PARAMETERS[name].objective
    return Option(
        "an objective and metric that do not use them",
        lambda s: _loss_is_not(objective)(s) and not _measured_by(objective)(s),
    )


# Of each parameter of one loss: that it is there, and that nothing makes use of it.
OF_ONE_LOSS = {name: (_loss_parameter(name), _unused(name)) for name in LOSS_PARAMETERS}

# --- around training ---------------------------------------------------------------------------------------

EARLY_STOPPING_ROUNDS = Option(
    "`early_stopping_rounds`",
    _is_set("early_stopping_rounds"),
    "early_stopping_rounds={early_stopping_rounds!r}",
)
EARLY_STOPPING = Option("`EarlyStopping`", lambda s: s.n_early_stopping > 0)
SECOND_EARLY_STOPPING = Option("another `EarlyStopping`", lambda s: s.n_early_stopping > 1)
NO_EVAL_SET = Option("no `eval_set`", lambda s: s.n_eval_sets == 0)
HELD_OUT_ROWS = Option(
    '`early_stopping_rounds`, `EarlyStopping` or `n_estimators="auto"` without `eval_set`',
    lambda s: s.holds_out is True,
    lambda s: (
        (
            "EarlyStopping"
            if s.n_early_stopping
            else f"early_stopping_rounds={s.params['early_stopping_rounds']!r}"
            if s.params.get("early_stopping_rounds") is not None
            else 'n_estimators="auto"'
        )
        + " without eval_set"
    ),
)
BAGS = Option("`n_bags` above 1", lambda s: s.params.get("n_bags", 1) > 1, "n_bags={n_bags}")
FITTED_BAGS = Option("a model of several bags", lambda s: s.bags)
SOME_ROUNDS = Option(
    "`n_rounds`, slices of rounds, `staged_predict`", _is_asked("rounds"), "some of the rounds"
)
ONE_MODEL = Option("a model that is no average", lambda s: not s.bags)
SPREAD = Option("`predict_spread`", _is_asked("spread"), "predict_spread()")
NO_HELD_OUT_ROWS = Option("`eval_set`, or a number of rounds", lambda s: s.holds_out is False)
GROUPS = Option("`groups`", lambda s: s.groups, "groups")
GIVEN_FOLDS = Option("`cv` as pairs of rows", _is_asked("given folds"), "a cv of pairs (train, test) of rows")
EVAL_X = Option("`eval_X`, `eval_y`", lambda s: s.eval_x)
EVAL_SET = Option("`eval_set`", lambda s: s.n_eval_sets is not None and s.n_eval_sets > 0)
EVAL_WEIGHTS = Option("`eval_sample_weight`", lambda s: s.eval_weights)
GOING_ON = Option(
    "`init_model`, `resume`, `warm_start` on a fitted model",
    lambda s: len(s.going_on) > 0,
    lambda s: " and ".join(s.going_on),
)
ADDING_TREES = Option(
    "`init_model`, `warm_start` on a fitted model",
    lambda s: any(one != "resume" for one in s.going_on),
    lambda s: " and ".join(s.going_on),
)
GOING_ON_TWICE = Option("each other", lambda s: len(s.going_on) > 1)
FIRST_SCORE = Option(
    "a model to go on from (`init_model`, `warm_start`) whose base score is not 0", lambda s: s.first_score
)
CHECKPOINT = Option("`Checkpoint`", lambda s: s.checkpoint)
OPTUNA_PRUNING = Option("`OptunaPruning`", lambda s: s.pruning)
CROSS_VALIDATION = Option("`cv`", lambda s: s.cross_validation, "cv()")
TUNING = Option("`tune`", lambda s: s.tuning, "tune()")

# --- a fitted model ----------------------------------------------------------------------------------------

AS_FRAME = Option("`predict(as_frame=True)`", _is_asked("as_frame"), "as_frame=True")
NO_FRAME = Option("no data frame in `X` or in the `y` of `fit`", lambda s: not s.frame_known)
SPARSE_PREDICTIONS = Option("`predict(sparse=True)`", _is_asked("sparse"), "sparse=True")
NOT_LABELS = Option("anything but several labels", lambda s: s.kind is not None and s.kind != "multilabel")
OUT = Option("`predict(out=...)`", _is_asked("out"), "out")
STAGES = Option("`staged_predict`, `staged_predict_proba`", _is_asked("stages"), "staged_predict()")
TOP_K = Option("`top_k`", _is_asked("top_k"))
NO_TOP_K = Option("no `top_k`", lambda s: "top_k" not in s.asked)
AS_LABELS = Option("`predict(as_labels=True)`", _is_asked("as_labels"), "as_labels=True")
VERSUS = Option("`versus` of a drawn row", _is_asked("versus"), "versus")
CHOSEN_OUTPUTS = Option("`outputs`", _is_asked("outputs"))
OLDER_ONNX_TREES = Option("`export.to_onnx(ml_opset=3)`", _is_asked("older onnx trees"), "ml_opset=3")
SPLITS_BY_CATEGORY = Option(
    "splits by categories",
    _is_asked("splits by category"),
    "splits by categories, such as those of column {column}",
    plural=True,
)
PATH_METHOD = Option(
    '`partial_dependence(method="paths")`, `"recursion"`',
    lambda s: not s.asked.isdisjoint({"paths method", "recursion method"}),
    lambda s: f'method="{"paths" if "paths method" in s.asked else "recursion"}"',
)
RECURSION = Option(
    '`partial_dependence(method="recursion")`', _is_asked("recursion method"), 'method="recursion"'
)
SINGLE_ROWS = Option(
    '`kind="individual"`, `kind="both"`', _is_asked("single rows"), 'kind="individual" and kind="both"'
)
SINGLE_ROWS_ALONE = Option(
    '`partial_dependence(kind="individual")`', _is_asked("single rows alone"), 'kind="individual"'
)
LINKED_RESPONSE = Option(
    '`response="prediction"` of classes, labels, several quantiles and objectives with a link',
    _is_asked("link"),
    'response="prediction" of this model, whose objective has a link',
)
WEIGHTS_OF_MEANS = Option("`sample_weight` of the means", _is_asked("weights of means"), "sample_weight")
DRAWN_AXES = Option("`ax`", _is_asked("ax"), "ax")
SEVERAL_MAPS = Option(
    "`plot_partial_dependence` of two features and several outputs",
    _is_asked("several maps"),
    "a picture of two features and several outputs",
)
DRAWN_ROWS = Option(
    '`plot_partial_dependence(kind="individual")`, `kind="both"`',
    _is_asked("drawn rows"),
    'a picture with kind="individual" or kind="both"',
)
TWO_FEATURES = Option("two features", _is_asked("two features"))
OUTPUT_MAP = Option("`plot_output_map`", _is_asked("output map"))
TREELITE = Option(
    "`export.to_treelite`",
    _is_asked("treelite"),
    "to_treelite()",
    remedy="raw=True exports the raw scores, for a program of yours to go on with",
)
SORTED_QUANTILES = Option("several `quantile_levels`", _is_asked("sorted quantiles"), plural=True)
CUT_OFF_SHARES = Option(
    'labels with `objective="clipped_squared_error"`',
    _is_asked("cut-off shares"),
    "labels with objective='clipped_squared_error'",
)
GROUPS_OF_TARGETS = Option(
    "groups of targets, none of them named",
    _is_asked("groups of targets"),
    "several groups of targets, here {group_names}",
)
GAIN_PER_OUTPUT = Option("`get_importance(per_output=True)` for gains", _is_asked("gain per output"))
NO_GAIN_PER_OUTPUT = Option(
    '`hessian="exact"`, `n_bags` above 1, sparse labels, `label_space`, trees of more than 1,024 outputs, '
    "a model file of an older version, a slice of rounds without the best one",
    lambda s: not s.output_gains,
)
