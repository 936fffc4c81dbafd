"""From the parameters of an estimator to the settings of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from polyleaf.data.inputs import Array
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.features import Features
from polyleaf.params.automatic import resolved
from polyleaf.params.constraints import InteractionGroups, SignMatrix, monotone_signs
from polyleaf.params.resolution import base_score_vector, output_weight_vector
from polyleaf.params.settings import Settings, seed_of
from polyleaf.params.threads import effective_threads

# What a parameter is turned into where a setting of its name has such a type.
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "int | None": lambda value: None if value is None else int(value),
}


def make_settings(
    params: Mapping[str, Any],
    coding: TargetCoding,
    loss_name: str,
    features: Features,
    interaction: InteractionGroups | None,
    n_rows: int,
    seed: int | None = None,
) -> Settings:
    """Return checked parameters as plain Python numbers, with seed, threads and "auto" resolved.

    A setting with the name of a parameter is that parameter, unless it is made here. `seed` is that of the
    run where it was drawn already, `n_rows` the number of rows of all shards.
    """
    n_outputs = coding.n_outputs

    def arranged(of_outputs: Array | None) -> Array | None:
        return None if of_outputs is None else coding.arranged(of_outputs)

    made = {
        **resolved(params, loss_name, n_outputs, n_rows, features.count),
        "label_space": params.get("label_space"),
        "scale_targets": params.get("scale_targets", False),
        "output_weight": arranged(output_weight_vector(params["output_weight"], n_outputs)),
        "base_score": arranged(base_score_vector(params["base_score"], n_outputs)),
        "categorical": features.categorical(),
        "seed": seed_of(params["random_state"]) if seed is None else seed,
        "n_threads": effective_threads(_PLAIN["int | None"](params["n_jobs"])),
        "monotone": arranged(_signs(params["monotone_constraints"], coding, features)),
        "interaction": interaction,
    }
    taken: dict[str, Any] = {}
    for setting in fields(Settings):
        value = made[setting.name] if setting.name in made else params[setting.name]
        taken[setting.name] = _PLAIN[str(setting.type)](value) if str(setting.type) in _PLAIN else value
    return Settings(**taken)


def _signs(constraints: Any, coding: TargetCoding, features: Features) -> SignMatrix | None:
    """Return monotone constraints as signs, features x outputs in the order of y."""
    if constraints is None:
        return None
    return monotone_signs(constraints, features.count, coding.columns_of_outputs(), features.names)
