"""Which parameters go together, what "auto" stands for, and vectors with a value per output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.params.constraints import has_signs
from polyleaf.params.rules import LOSS_PARAMETERS, Shares, as_vector
from polyleaf.params.table import AUTO_SHARED_OUTPUTS, AUTO_SKETCH_OUTPUTS, parameters_of

# Cholesky factors of larger matrices, one per candidate split, would take too long to be of use.
_MOST_EXACT_OUTPUTS = 32


def check_combination(params: Mapping[str, Any], loss: str, n_outputs: int, sparse_labels: bool) -> None:
    """Check parameters that exclude each other, or do not fit the loss or the number of outputs.

    Raises
    ------
    ValueError
        Naming the parameters at odds.
    """
    _check_loss_parameters(params, loss)
    k = params["sparse_leaves"]
    if sparse_labels:
        if loss != "clipped_squared_error":
            raise ValueError(
                f"a sparse y needs objective='clipped_squared_error'; the objective here is {loss!r}."
            )
        if k is None:
            raise ValueError(
                "a sparse y needs sparse_leaves, the number of labels a leaf speaks of; it is None."
            )
        if np.any(params["base_score"] if params["base_score"] is not None else 0):
            raise ValueError(f"a sparse y needs base_score=0 or None; got {params['base_score']!r}.")
    joint = params["multi_strategy"] == "multi_output_tree"
    if k is not None:
        if k > n_outputs:
            raise ValueError(f"sparse_leaves={k} is more than the number of outputs, {n_outputs}.")
        if not joint:
            raise ValueError(
                f"sparse_leaves={k} needs trees of all outputs, not multi_strategy='one_output_per_tree'."
            )
    hessian = params.get("hessian", "diagonal")
    if params["sketch"] not in (None, "auto"):
        refused = {
            f"sparse_leaves={k}": k is not None,
            "multi_strategy='one_output_per_tree'": not joint,
            "hessian='exact'": hessian == "exact",
            "a sparse y": sparse_labels,
        }
        for what, found in refused.items():
            if found:
                raise ValueError(
                    f"sketch={params['sketch']!r} does not go with {what}: splits need all outputs."
                )
    if params["sketch_size"] is not None and params["sketch"] is None:
        raise ValueError(f"sketch_size={params['sketch_size']} needs a sketch; sketch is None.")
    if has_signs(params.get("monotone_constraints")):
        reasons = {
            "the softmax: a probability depends on all scores": loss == "cross_entropy",
            f"sparse_leaves={k}: an output that is left out takes no part in the order": k is not None,
            f"hessian={hessian!r}: values are ordered output by output": hessian in ("exact", "exact_leaf"),
            f"sketch={params['sketch']!r}: splits need all outputs": params["sketch"] not in (None, "auto"),
            "a sparse y": sparse_labels,
        }
        for reason, found in reasons.items():
            if found:
                raise ValueError(f"monotone_constraints do not go with {reason}.")
    if params["sampling_method"] == "gradient_based" and sparse_labels:
        raise ValueError("sampling_method='gradient_based' does not go with a sparse y.")
    if params["output_weight"] is not None:
        if k is not None and not np.all(np.asarray(params["output_weight"], dtype=float) > 0):
            raise ValueError(
                "output_weight holds 0, but with sparse_leaves outputs are chosen by their share: such an "
                "output would be in no leaf."
            )
        if sparse_labels:
            raise ValueError("output_weight does not go with a sparse y.")
        if hessian == "exact":
            raise ValueError("output_weight does not go with hessian='exact', whose score has no shares.")
        if not joint:
            raise ValueError(
                "output_weight needs trees of all outputs, not multi_strategy='one_output_per_tree': a tree "
                "of one output has no shares."
            )
    if hessian == "shared" and sparse_labels:
        raise ValueError("hessian='shared' does not go with a sparse y, whose Hessian is 1 everywhere.")
    if hessian == "shared" and not joint:
        raise ValueError(
            "hessian='shared' needs trees of all outputs, not multi_strategy='one_output_per_tree'."
        )
    if hessian in ("auto", "diagonal", "shared"):
        return
    if loss != "cross_entropy":
        raise ValueError(
            f"hessian={hessian!r} needs the softmax cross entropy; the Hessian of the loss here ({loss}) is "
            "diagonal or not known."
        )
    problems = {
        "sparse_leaves must be None": k is not None,
        "multi_strategy must be 'multi_output_tree'": not joint,
        "reg_lambda must be greater than 0 (the softmax's Hessian is singular)": not params["reg_lambda"] > 0,
        "reg_alpha must be 0": params["reg_alpha"] != 0,
        f"at most {_MOST_EXACT_OUTPUTS} outputs are possible, here are {n_outputs}": hessian == "exact"
        and n_outputs > _MOST_EXACT_OUTPUTS,
    }
    for problem, found in problems.items():
        if found:
            raise ValueError(f"hessian={hessian!r}: {problem}.")


# Parameters of losses and metrics, and the name that makes use of them.
_LOG_LINK = ("poisson", "gamma", "tweedie")
_ONE_PER_TARGET = ("rmse", "mse", "mae", "r2", "huber")


def _check_loss_parameters(params: Mapping[str, Any], loss: str) -> None:
    """Check what belongs to certain losses only, and metrics that do not suit the loss."""
    wanted = params.get("eval_metric")
    names = [
        one for one in (wanted if isinstance(wanted, list | tuple) else [wanted]) if isinstance(one, str)
    ]
    table = parameters_of("regressor")
    for parameter, (name, _) in LOSS_PARAMETERS.items():
        default: Any = table[parameter].default
        value = params.get(parameter, default)
        if name not in (loss, *names) and not np.array_equal(value, default):
            raise ValueError(
                f"{parameter}={value!r} is of no use: it belongs to objective={name!r} (or the metric), and "
                f"the objective here is {loss!r}."
            )
    for name in names:
        if name in _LOG_LINK and loss not in _LOG_LINK:
            raise ValueError(
                f"eval_metric {name!r} needs positive predictions, which those of objective {loss!r} need "
                f"not be; the objectives for it are {', '.join(_LOG_LINK)}."
            )
    n_levels = np.size(params.get("quantile_levels", 0.5))
    for name in names:
        if (
            n_levels > 1
            and (name == "quantile") != (loss == "quantile")
            and name in ("quantile", *_ONE_PER_TARGET)
        ):
            raise ValueError(
                f"eval_metric {name!r} does not go with quantile_levels={params['quantile_levels']!r} and "
                f"objective {loss!r}: a target has {n_levels if loss == 'quantile' else 1} prediction(s)."
            )


def resolve_sketch(params: Mapping[str, Any], loss: str, n_outputs: int) -> str | None:
    """Return the sketch that is used; None: none."""
    sketch: str | None = params["sketch"]
    if sketch != "auto":
        return sketch
    possible = (
        loss == "cross_entropy"
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
        loss in ("cross_entropy", "binary_cross_entropy")  # a callable's Hessian may be negative
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
