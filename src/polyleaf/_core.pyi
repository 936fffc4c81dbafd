from typing import Any

import numpy as np
import numpy.typing as npt

class BinnedMatrix:
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def cuts(self, feature: int) -> npt.NDArray[np.float64]: ...
    def has_missing(self, feature: int) -> bool: ...
    def categories(self, feature: int) -> npt.NDArray[np.uint32]: ...
    def codes(self) -> npt.NDArray[np.uint16]: ...
    def feature_combinations(self) -> npt.NDArray[np.int32]: ...
    def encode(self, table: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.uint16]: ...
    def take(self, rows: npt.NDArray[np.uint32], n_threads: int) -> BinnedMatrix: ...

def bin_table(
    table: npt.NDArray[Any],
    weight: npt.NDArray[np.float64] | None,
    max_bins: int | None,
    n_threads: int,
    first_column: int = 0,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> BinnedMatrix: ...
def table_of_cuts(
    cuts: list[npt.NDArray[np.float64]], has_missing: npt.NDArray[np.uint8]
) -> BinnedMatrix: ...
def codes_in_groups(matrix: BinnedMatrix, size: int, n_threads: int) -> npt.NDArray[np.uint8]: ...
def weight_units(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]: ...
def join_columns(parts: list[BinnedMatrix], n_threads: int) -> BinnedMatrix: ...

class GrowSettings:
    def __init__(self) -> None: ...
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: int
    min_split_gain: float
    min_child_weight: float
    reg_lambda: float
    reg_alpha: float
    sparse_leaves: int | None
    sparse_mode: str
    hessian: str
    histogram_precision: str
    n_threads: int
    histogram_bytes: int

class GrowTask:
    def __init__(self, matrix: BinnedMatrix, weight: npt.NDArray[np.float64] | None) -> None: ...
    def set_leaf_gradients(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        hessian_rule: str,
        unit: npt.NDArray[np.float64],
        label: npt.NDArray[np.int32] | None,
    ) -> None: ...
    def set_split_gradients(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        curvature: npt.NDArray[np.float32] | None,
        gain_weight: npt.NDArray[np.float64],
        unit: npt.NDArray[np.float64],
    ) -> None: ...
    def set_sample(self, rows: npt.NDArray[np.uint32], weight: npt.NDArray[np.float64] | None) -> None: ...
    def set_features(
        self, mask: npt.NDArray[np.uint8] | None, level_share: float, node_share: float, key: int
    ) -> None: ...
    def set_interactions(
        self, group_begin: npt.NDArray[np.int64], group_feature: npt.NDArray[np.int32]
    ) -> None: ...
    def set_monotone(self, sign: npt.NDArray[np.int8]) -> None: ...
    def set_renewal(
        self,
        level: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
        column: npt.NDArray[np.int32],
        cell_weight: npt.NDArray[np.float64] | None,
    ) -> None: ...
    def set_raw(self, raw: npt.NDArray[np.float64]) -> None: ...
    def set_leaf_of_row(self, leaf_of_row: npt.NDArray[np.uint32]) -> None: ...
    def set_learning_rate(self, learning_rate: float) -> None: ...
    def set_output_gains(self, wanted: bool) -> None: ...

class DenseGrower:
    def __init__(self) -> None: ...
    def grow(self, task: GrowTask, settings: GrowSettings) -> dict[str, npt.NDArray[Any]]: ...

class LabelSparseGrower:
    def __init__(self, labels: SparseLabels) -> None: ...
    def grow(self, task: GrowTask, settings: GrowSettings) -> dict[str, npt.NDArray[Any]]: ...

class SparseLabels:
    def __init__(
        self, row_begin: npt.NDArray[np.int64], label: npt.NDArray[np.int32], n_outputs: int
    ) -> None: ...
    def add(
        self,
        value_begin: npt.NDArray[np.int64],
        values: npt.NDArray[np.float32],
        value_output: npt.NDArray[np.int32],
        width: int,
        n_threads: int,
    ) -> None: ...

class ForestPredictor:
    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None: ...
    def add(
        self, table: npt.NDArray[Any], begin: int, end: int, raw: npt.NDArray[np.float64], n_threads: int
    ) -> None: ...
    def apply(
        self, table: npt.NDArray[Any], begin: int, end: int, n_threads: int
    ) -> npt.NDArray[np.int32]: ...

class Formula:
    @property
    def has_hessian(self) -> bool: ...
    def gradients(
        self,
        raw: npt.NDArray[np.float64],
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        n_threads: int,
    ) -> None: ...

class SquaredError(Formula):
    def __init__(self, y: npt.NDArray[np.float64], unit: npt.NDArray[np.float64]) -> None: ...

class ClippedSquaredError(Formula):
    def __init__(self, y: npt.NDArray[np.float64]) -> None: ...

class Softmax(Formula):
    def __init__(self, y: npt.NDArray[np.int32], n_outputs: int, curvature: str) -> None: ...

class Logistic(Formula):
    def __init__(self, y: npt.NDArray[np.float64]) -> None: ...

class Pinball(Formula):
    def __init__(
        self,
        y: npt.NDArray[np.float64],
        column: npt.NDArray[np.int32],
        above: npt.NDArray[np.float64],
        below: npt.NDArray[np.float64],
    ) -> None: ...

class Huber(Formula):
    def __init__(
        self,
        y: npt.NDArray[np.float64],
        unit: npt.NDArray[np.float64],
        factor: npt.NDArray[np.float64],
        delta: float,
        largest: float,
    ) -> None: ...

class LogLink(Formula):
    def __init__(
        self, y: npt.NDArray[np.float64], log_mean: npt.NDArray[np.float64], power: float
    ) -> None: ...

class Sketch:
    def __init__(
        self,
        columns: npt.NDArray[np.float32] | None,
        mixtures: npt.NDArray[np.float32] | None,
        share: npt.NDArray[np.float64] | None = None,
        term: str = "itself",
        sums: npt.NDArray[np.float64] | None = None,
    ) -> None: ...
    def fill(self, values: npt.NDArray[np.float32], n_threads: int) -> None: ...

class ScorePass:
    def __init__(self, scores: npt.NDArray[np.float64], n_threads: int) -> None: ...
    def add(
        self,
        leaf: npt.NDArray[np.uint32],
        values: npt.NDArray[np.float32],
        unit: npt.NDArray[np.float64],
    ) -> None: ...
    def settle(self) -> None: ...
    def sweep(
        self,
        formula: Formula,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        sketch: Sketch | None,
    ) -> None: ...

def softmax_probabilities(
    raw: npt.NDArray[np.float64], out: npt.NDArray[np.float64], n_threads: int
) -> None: ...
def logistic_probabilities(
    raw: npt.NDArray[np.float64], out: npt.NDArray[np.float64], n_threads: int
) -> None: ...
def has_infinity(table: npt.NDArray[Any], n_threads: int) -> bool: ...
def max_threads() -> int: ...
def kernels() -> str: ...
def select_kernels(name: str) -> bool: ...
def column_sums(
    values: npt.NDArray[np.float32] | npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    squares: bool,
    n_threads: int,
) -> npt.NDArray[np.float64]: ...
def group_sums(
    values: npt.NDArray[np.float64] | None, group: npt.NDArray[np.int32], n_groups: int
) -> npt.NDArray[np.float64]: ...
def sum_grid(largest: float, n_terms: float) -> tuple[float, float]: ...

TERMS: dict[str, int]
VISITED_NODE_BYTES: int

class VisitedTree:
    def __init__(
        self, matrix: BinnedMatrix, nodes: npt.NDArray[np.uint8], max_leaves: int | None
    ) -> None: ...
    def leaf_rows(self) -> npt.NDArray[np.uint32]: ...
    def routes(self) -> dict[str, npt.NDArray[Any]]: ...
    def finish(
        self,
        *,
        values: npt.NDArray[np.float32],
        cover: npt.NDArray[np.float64],
        all_rows: npt.NDArray[np.int64] | None,
        leaf_sums: npt.NDArray[np.float64] | None,
        own_hessian: bool,
        unit: npt.NDArray[np.float64],
        settings: GrowSettings,
    ) -> dict[str, npt.NDArray[Any]]: ...

def fixed_point(
    weight: npt.NDArray[np.float64] | None,
    n_rows: int,
    n_outputs: int,
    diagonal: bool,
    shared: bool,
    packed_sums: bool,
) -> tuple[float, float, float, bool]: ...
