"""The parameters of a run, checked and with every default filled in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from polyleaf.params.constraints import InteractionGroups, SignMatrix

# What `random_state=None` stands for.
_DEFAULT_RANDOM_STATE = 0


@dataclass(frozen=True)
class Settings:
    """The parameters of a run, checked and with every default filled in."""

    n_estimators: int
    learning_rate: float
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: int
    max_bins: int | None
    reg_lambda: float
    reg_alpha: float
    min_split_gain: float
    min_child_weight: float
    subsample: float
    sampling_method: str
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    multi_strategy: str
    sparse_leaves: int | None
    sparse_mode: str
    sketch: str | None
    sketch_size: int
    label_space: str | None
    hessian: str
    histogram_precision: str
    scale_targets: bool
    bounded_influence: bool
    output_weight: npt.NDArray[np.float64] | None
    base_score: npt.NDArray[np.float64] | None
    categorical: npt.NDArray[np.uint8] | None
    seed: int
    n_threads: int
    device: str = "cpu"
    monotone: SignMatrix | None = None
    interaction: InteractionGroups | None = None

    @property
    def draws_rows_alike(self) -> bool:
        """Whether a round looks at some of the rows only, each of which has the same chance."""
        return self.subsample < 1 and self.sampling_method == "uniform"


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed of a run; an instance of RandomState advances by one draw."""
    given = _DEFAULT_RANDOM_STATE if random_state is None else random_state
    return int(check_random_state(given).randint(np.iinfo(np.int32).max))
