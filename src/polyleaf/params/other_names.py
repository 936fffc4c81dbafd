"""What other libraries call the parameters, and misspelt names: what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Names of LightGBM, XGBoost, CatBoost and scikit-learn, by ours.
_OTHERS = {
    "n_estimators": "n_rounds num_rounds num_round num_boost_round num_boost_rounds nrounds num_iterations "
    "num_iteration iterations n_iter max_iter num_trees n_trees max_trees",
    "learning_rate": "eta shrinkage shrinkage_rate lr",
    "max_depth": "depth max_tree_depth",
    "max_leaves": "num_leaves num_leaf max_leaf max_leaf_nodes n_leaves",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_data min_data_per_leaf min_samples_split",
    "max_bins": "max_bin n_bins num_bins border_count",
    "reg_lambda": "lambda lambda_ lambda_l2 l2 l2_leaf_reg l2_regularization reg_l2",
    "reg_alpha": "alpha lambda_l1 l1 l1_regularization reg_l1",
    "min_split_gain": "gamma min_gain_to_split min_split_loss min_impurity_decrease",
    "min_child_weight": "min_sum_hessian_in_leaf min_sum_hessian min_hessian min_weight_fraction_leaf",
    "subsample": "bagging_fraction bagging sub_row row_sample max_samples",
    "sampling_method": "data_sample_strategy bootstrap_type",
    "colsample_bytree": "feature_fraction colsample sub_feature rsm",
    "colsample_bynode": "feature_fraction_bynode max_features",
    "objective": "loss loss_function application criterion",
    "huber_delta": "huber_slope delta",
    "quantile_levels": "quantile quantile_alpha quantiles",
    "tweedie_power": "tweedie_variance_power variance_power",
    "base_score": "init_score",
    "early_stopping_rounds": "early_stopping_round early_stopping n_iter_no_change od_wait",
    "eval_metric": "metric metrics custom_metric scoring",
    "categorical_features": "categorical_feature cat_features cat_feature categorical_columns",
    "class_weight": "class_weights auto_class_weights is_unbalance unbalance scale_pos_weight",
    "monotone_constraints": "monotonic_cst monotonic_constraints monotone_constraint",
    "interaction_constraints": "interaction_cst interaction_constraint",
    "device": "device_type task_type gpu use_gpu",
    "n_jobs": "num_threads num_thread n_threads nthread nthreads thread_count",
    "random_state": "seed random_seed",
    "verbose": "verbosity silent logging_level",
}
_OURS = {other: name for name, others in _OTHERS.items() for other in others.split()}


def meant_by(name: str, allowed: Iterable[str]) -> str | None:
    """Return which of the allowed parameters an unknown name stands for, None where that cannot be told.

    A name of another library, or one that is spelt nearly the same.
    """
    known = list(allowed)
    ours = _OURS.get(name.lower())
    if ours in known:
        return ours
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    if near:
        return near[0]
    others = {other: ours for other, ours in _OURS.items() if ours in known}
    misspelt = difflib.get_close_matches(name.lower(), others, n=1, cutoff=0.85)
    return others[misspelt[0]] if misspelt else None
