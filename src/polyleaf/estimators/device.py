"""What the GPU cannot do, and whether there is one. CuPy is imported only where it is asked for."""

from __future__ import annotations

from polyleaf.losses import Loss
from polyleaf.params.settings import Settings

_MOST_BINS = 255  # of values: with the missing one, a code is a byte


def require_gpu() -> None:
    """Raise an error that says what to install unless there is CuPy and a GPU."""
    from polyleaf.gpu.runtime import cupy

    cupy()


def refuse_on_gpu(settings: Settings, loss: Loss, *, sparse_labels: bool) -> None:
    """Raise ValueError, naming the option, where training needs what only the CPU does."""
    shares = {name: getattr(settings, name) for name in ("colsample_bylevel", "colsample_bynode")}
    # Of a mixed model, whose loss has no name that users know.
    renewed = (
        "targets of 'absolute_error' or 'quantile'" if loss.name == "grouped" else f"objective={loss.name!r}"
    )
    refused = {
        "a sparse y": sparse_labels,
        f"sparse_leaves={settings.sparse_leaves}": settings.sparse_leaves is not None,
        f"hessian={settings.hessian!r}": settings.hessian in ("exact", "exact_leaf"),
        "categorical features": settings.categorical is not None,
        "monotone_constraints": settings.monotone is not None and bool(settings.monotone.any()),
        "interaction_constraints": settings.interaction is not None,
        f"{renewed}, whose leaf values are quantiles": loss.leaf_levels is not None,
        f"max_bins={settings.max_bins} (at most {_MOST_BINS})": settings.max_bins is None
        or settings.max_bins > _MOST_BINS,
        **{f"{name}={share}": share < 1 for name, share in shares.items()},
    }
    for what, found in refused.items():
        if found:
            raise ValueError(f"device='cuda' does not go with {what}; use device='cpu'.")
