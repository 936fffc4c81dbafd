"""From the parameters of an estimator to the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.features import Features
from polyleaf.growth.threads import effective_threads
from polyleaf.params.constraints import InteractionGroups, monotone_signs
from polyleaf.params.resolution import (
    base_score_vector,
    output_weight_vector,
    resolve_hessian,
    resolve_sketch,
)
from polyleaf.params.settings import Settings, seed_of
from polyleaf.params.table import DEFAULT_SKETCH_SIZE


def make_settings(
    params: Mapping[str, Any],
    coding: TargetCoding,
    loss_name: str,
    features: Features,
    interaction: InteractionGroups | None,
) -> Settings:
    """Return checked parameters as plain Python numbers, with seed, threads and "auto" resolved."""

    def count(name: str) -> int | None:
        return None if params[name] is None else int(params[name])

    signs = monotone_signs(
        params.get("monotone_constraints"), features.count, coding.n_outputs, features.names
    )
    return Settings(
        n_estimators=int(params["n_estimators"]),
        learning_rate=float(params["learning_rate"]),
        max_depth=count("max_depth"),
        max_leaves=count("max_leaves"),
        min_samples_leaf=int(params["min_samples_leaf"]),
        max_bins=count("max_bins"),
        reg_lambda=float(params["reg_lambda"]),
        reg_alpha=float(params["reg_alpha"]),
        min_split_gain=float(params["min_split_gain"]),
        min_child_weight=float(params["min_child_weight"]),
        subsample=float(params["subsample"]),
        sampling_method=params["sampling_method"],
        colsample_bytree=float(params["colsample_bytree"]),
        colsample_bylevel=float(params["colsample_bylevel"]),
        colsample_bynode=float(params["colsample_bynode"]),
        multi_strategy=params["multi_strategy"],
        sparse_leaves=count("sparse_leaves"),
        sparse_mode=params["sparse_mode"],
        sketch=resolve_sketch(params, loss_name, coding.n_outputs),
        sketch_size=count("sketch_size") or DEFAULT_SKETCH_SIZE,
        hessian=resolve_hessian(params, loss_name, coding.n_outputs),
        histogram_precision=params["histogram_precision"],
        scale_targets=bool(params.get("scale_targets", False)),
        output_weight=output_weight_vector(params["output_weight"], coding.n_outputs),
        base_score=base_score_vector(params["base_score"], coding.n_outputs),
        categorical=features.categorical(),
        seed=seed_of(params["random_state"]),
        n_threads=effective_threads(count("n_jobs")),
        device=params["device"],
        monotone=signs,
        interaction=interaction,
    )
