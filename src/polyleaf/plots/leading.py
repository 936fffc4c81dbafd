"""Which features are worth a place in a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def leading(sizes: FloatArray, top: int) -> npt.NDArray[np.intp]:
    """Return the features of the largest sizes, the largest first; those of size 0 only where all are."""
    order = np.argsort(-sizes, kind="stable")[:top]
    some = order[sizes[order] != 0]
    return some if len(some) > 0 else order


def say_how_many(axes: Axes, n_drawn: int, n_there: int, what: str = "features") -> None:
    """Say in the title that some features, or others, are not in the picture."""
    if n_drawn < n_there:
        axes.set_title(f"{n_drawn} of {n_there} {what}", fontsize=10)
