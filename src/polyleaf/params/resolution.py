"""What "auto" stands for, and vectors with a value per output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.params.constraints import has_signs
from polyleaf.params.objectives import has_hessian_rule, has_link
from polyleaf.params.rules import Shares, as_vector
from polyleaf.params.table import AUTO_SHARED_OUTPUTS, AUTO_SKETCH_OUTPUTS


def resolve_sketch(params: Mapping[str, Any], loss: str, n_outputs: int) -> str | None:
    """Return the sketch that is used; None: none."""
    sketch: str | None = params["sketch"]
    if sketch != "auto":
        return sketch
    possible = (
        has_link(loss, "softmax")
        and params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
        and params.get("hessian") != "exact"
        and not has_signs(params.get("monotone_constraints"))
    )
    return "random_projection" if possible and n_outputs >= AUTO_SKETCH_OUTPUTS else None


def resolve_hessian(params: Mapping[str, Any], loss: str, n_outputs: int) -> str:
    """Return the Hessian that is used."""
    hessian = str(params.get("hessian", "auto"))
    if hessian != "auto":
        return hessian
    possible = (
        has_hessian_rule(loss)  # a callable's Hessian may be negative
        and params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
    )
    return "shared" if possible and n_outputs >= AUTO_SHARED_OUTPUTS else "diagonal"


def output_weight_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Return `output_weight` with a mean of 1; None stays None."""
    if value is None:
        return None
    vector = as_vector("output_weight", value, Shares.allowed)
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"output_weight has {vector.size} values, but the model has {n_outputs} output(s); it must have "
            "one for each."
        )
    relative = vector / vector.max()
    return np.asarray(relative / relative.mean(), dtype=np.float64)


def base_score_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Spread `base_score` over the outputs; None stays None."""
    if value is None:
        return None
    vector = as_vector("base_score", value, f"float, {n_outputs} floats (one per output) or None")
    if vector.ndim == 0:
        return np.full(n_outputs, float(vector))
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"base_score has {vector.size} values, but the model has {n_outputs} output(s); "
            "it must be a number or hold one value per output."
        )
    return vector
