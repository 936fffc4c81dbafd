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
    @property
    def is_whole(self) -> bool: ...
    @property
    def n_in_tiles(self) -> int: ...
    @property
    def n_listing_cells(self) -> int: ...
    def codes(self) -> npt.NDArray[np.uint16]: ...
    def feature_combinations(self) -> npt.NDArray[np.int32]: ...
    def encode(self, table: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.uint16]: ...
    def sample_counts(self, table: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int64]: ...
    def bin_like(self, table: npt.NDArray[Any], n_threads: int) -> BinnedMatrix: ...
    def row_hashes(self, n_threads: int) -> npt.NDArray[np.uint64]: ...
    def take(self, rows: npt.NDArray[np.uint32], n_threads: int) -> BinnedMatrix: ...

def bin_table(
    table: npt.NDArray[Any],
    weight: npt.NDArray[np.float64] | None,
    max_bins: int | None,
    n_threads: int,
    first_column: int = 0,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> BinnedMatrix: ...

class SparseColumns:
    def __init__(
        self,
        values: npt.NDArray[Any],
        rows: npt.NDArray[np.int32],
        begin: npt.NDArray[np.int64],
        n_rows: int,
    ) -> None: ...

def bin_sparse(
    columns: SparseColumns,
    weight: npt.NDArray[np.float64] | None,
    max_bins: int | None,
    n_threads: int,
    least_rows: int = 0,
    keeps_codes: bool = True,
) -> BinnedMatrix: ...
def table_of_cuts(
    cuts: list[npt.NDArray[np.float64]],
    has_missing: npt.NDArray[np.uint8],
    categories: list[npt.NDArray[np.uint32] | None] | None = None,
    counts: npt.NDArray[np.int64] | None = None,
    n_rows: int = 0,
    n_threads: int = 1,
) -> BinnedMatrix: ...
def pack_slices(slices: npt.NDArray[np.int32], n_threads: int) -> npt.NDArray[np.uint32]: ...
def unpack_slices(
    packed: npt.NDArray[np.uint8], n_slices: int, length: int, n_threads: int
) -> npt.NDArray[np.int32]: ...
def parts_of_table(table: BinnedMatrix) -> dict[str, Any]: ...
def table_from_parts(parts: dict[str, Any], n_threads: int) -> BinnedMatrix: ...
def summarise_columns(
    table: npt.NDArray[Any], units: npt.NDArray[np.int64] | None, n_threads: int
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], bool]]: ...
def cuts_of_values(
    values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.int64],
    max_bins: int | None,
    categorical: bool = False,
    column: int = 0,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]: ...
def interleaved_codes(matrix: BinnedMatrix, size: int, n_threads: int) -> npt.NDArray[np.uint8]: ...
def weight_units(weight: npt.NDArray[np.float64], total: float | None = None) -> npt.NDArray[np.int64]: ...
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
    bounded_influence: bool
    histogram_precision: str
    n_threads: int
    histogram_bytes: int

def rules_of(settings: GrowSettings) -> bytes: ...

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
    def set_made_gradients(
        self, made: MadeGradients, hessian_rule: str, unit: npt.NDArray[np.float64]
    ) -> None: ...
    def set_split_gradients(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        curvature: npt.NDArray[np.float32] | None,
        gain_weight: npt.NDArray[np.float64],
        unit: npt.NDArray[np.float64],
    ) -> None: ...
    def set_shard(self, peers: Any, n_all_rows: int, runs: npt.NDArray[np.int64]) -> None: ...
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

class KeptTree:
    @staticmethod
    def splits_of(arrays: dict[str, npt.NDArray[Any]], n_outputs: int) -> KeptTree: ...
    @staticmethod
    def joined(trees: list[KeptTree], name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]: ...
    def add(
        self,
        table: npt.NDArray[Any],
        first_output: int,
        raw: npt.NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
    def add_binned(
        self,
        matrix: BinnedMatrix,
        first_output: int,
        raw: npt.NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

class DenseGrower:
    def __init__(self) -> None: ...
    def grow(self, task: GrowTask, settings: GrowSettings) -> KeptTree: ...
    def refill(self, task: GrowTask, settings: GrowSettings, tree: KeptTree) -> KeptTree: ...

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
    def scores(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float64]]: ...

class LabelLeafRule:
    def __init__(self, most: int, reg_lambda: float, reg_alpha: float, learning_rate: float) -> None: ...

def mix_label_gradients(
    labels: SparseLabels,
    group: npt.NDArray[np.int32],
    coefficient: npt.NDArray[np.float64],
    mixtures: npt.NDArray[np.float32],
    n_threads: int,
) -> None: ...
def fill_label_leaves(
    labels: SparseLabels,
    leaf_of_row: npt.NDArray[np.uint32],
    n_leaves: int,
    rows: npt.NDArray[np.uint32] | None,
    weight: npt.NDArray[np.float64] | None,
    rule: LabelLeafRule,
    n_threads: int,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]: ...
def start_scores(start: npt.NDArray[np.float64], raw: npt.NDArray[np.float64], n_threads: int) -> None: ...
def scale_scores(unit: npt.NDArray[np.float64], raw: npt.NDArray[np.float64], n_threads: int) -> None: ...

class ForestPredictor:
    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None: ...
    def add(
        self, table: npt.NDArray[Any], begin: int, end: int, raw: npt.NDArray[np.float64], n_threads: int
    ) -> None: ...
    def add_binned(
        self, matrix: BinnedMatrix, begin: int, end: int, raw: npt.NDArray[np.float64], n_threads: int
    ) -> None: ...
    def apply_binned(
        self, matrix: BinnedMatrix, begin: int, end: int, n_threads: int
    ) -> npt.NDArray[np.int32]: ...
    def apply(
        self, table: npt.NDArray[Any], begin: int, end: int, n_threads: int
    ) -> npt.NDArray[np.int32]: ...
    def best_outputs(
        self, leaves: npt.NDArray[np.int32], begin: int, n_outputs: int, k: int, n_threads: int
    ) -> npt.NDArray[np.int32]: ...
    def outputs_above(
        self, leaves: npt.NDArray[np.int32], begin: int, n_outputs: int, threshold: float, n_threads: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]: ...

class ForestExplainer:
    def __init__(
        self, arrays: dict[str, npt.NDArray[Any]], n_trees: int, outputs: npt.NDArray[np.int32]
    ) -> None: ...
    @property
    def expected(self) -> npt.NDArray[np.float64]: ...
    @property
    def features(self) -> npt.NDArray[np.int32]: ...
    @property
    def bytes_of_thread(self) -> int: ...
    @property
    def bytes_of_pairs(self) -> int: ...
    def layout(self) -> dict[str, Any]: ...
    def bytes_of_sums(self, n_rows: int) -> int: ...
    def write(
        self,
        table: npt.NDArray[Any],
        columns: npt.NDArray[np.int32],
        column_of_output: npt.NDArray[np.int32],
        unit: npt.NDArray[np.float64],
        out: npt.NDArray[Any],
        n_threads: int,
    ) -> None: ...
    def write_pairs(
        self,
        table: npt.NDArray[Any],
        columns: npt.NDArray[np.int32],
        column_of_output: npt.NDArray[np.int32],
        unit: npt.NDArray[np.float64],
        out: npt.NDArray[Any],
        n_threads: int,
    ) -> None: ...
    def add_abs(
        self,
        table: npt.NDArray[Any],
        columns: npt.NDArray[np.int32],
        column_of_output: npt.NDArray[np.int32],
        unit: npt.NDArray[np.float64],
        sums: npt.NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

def values_of_bins(
    matrix: BinnedMatrix, features: npt.NDArray[np.int32], begin: int, end: int, n_threads: int
) -> npt.NDArray[np.float64]: ...

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

class MadeGradients:
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def has_hessian(self) -> bool: ...

class GradientsOfScores(MadeGradients):
    def __init__(
        self,
        formula: Formula,
        scores: npt.NDArray[np.float64],
        cell_weight: npt.NDArray[np.float32] | None,
        own_hessian: bool,
    ) -> None: ...

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
    def sweep_made(
        self,
        made: GradientsOfScores,
        of_gradient: Sketch | None,
        of_hessian: Sketch | None,
        weight: npt.NDArray[np.float64] | None,
        magnitudes: bool,
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
def column_means(
    values: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    peers: Any = None,
) -> npt.NDArray[np.float64]: ...
def column_sums(
    values: npt.NDArray[np.float32] | npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    squares: bool,
    n_threads: int,
    peers: Any = None,
) -> npt.NDArray[np.float64]: ...
def group_sums(
    values: npt.NDArray[np.float64] | None,
    group: npt.NDArray[np.int32],
    n_groups: int,
    peers: Any = None,
) -> npt.NDArray[np.float64]: ...
def quantiles(
    values: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    levels: npt.NDArray[np.float64],
    peers: Any = None,
) -> npt.NDArray[np.float64]: ...
def sum_grid(largest: float, n_terms: float) -> tuple[float, float]: ...
def span_widely(weight: npt.NDArray[np.float64]) -> bool: ...

TERMS: dict[str, int]
VISITED_NODE_BYTES: int

class PruningBar:
    def __init__(self, max_leaves: int) -> None: ...
    def raised_by(self, nodes: npt.NDArray[np.uint8]) -> float: ...

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

class rules:  # a module: the functions of rules/*.hpp
    @staticmethod
    def goes_left_by_code(code: int, bin: int, missing_left: bool, missing_code: int) -> bool: ...
    @staticmethod
    def goes_left_by_value(value: float, threshold: float, missing_left: bool) -> bool: ...
    @staticmethod
    def goes_left_by_category(value: float, words: npt.NDArray[np.uint32], missing_left: bool) -> bool: ...
    @staticmethod
    def large_enough(n_left: int, n_rows: int, min_samples_leaf: int) -> bool: ...
    @staticmethod
    def heavy_enough(left_weight: float, weight: float, min_child_weight: float) -> bool: ...
    @staticmethod
    def accepted_gain(
        children_score: float, own_score: float, n_outputs: float, min_split_gain: float
    ) -> float: ...
    @staticmethod
    def may_split(
        depth: int, n_rows: int, max_depth: int, max_leaves: int, min_samples_leaf: int
    ) -> bool: ...
    @staticmethod
    def leaves_are_scarce(max_depth: int, max_leaves: int) -> bool: ...
    @staticmethod
    def path_minimum(of_parent: float, gain: float) -> float: ...
    @staticmethod
    def is_hopeless(path_minimum: float, bar: float) -> bool: ...
    @staticmethod
    def gains_are_equal(gain: float, larger: float, largest_score: float) -> bool: ...
    @staticmethod
    def on_grid(value: float, scale: float, weight: float) -> int: ...
    @staticmethod
    def lowest_exponent(x: float) -> int: ...
    @staticmethod
    def power_of_two(exponent: int) -> float: ...
    @staticmethod
    def unit_of_weights(lowest: int, total: float, n_rows: float) -> float: ...
    @staticmethod
    def grid_limit(bits: int, n_rows: float, weight: float, at_random: bool) -> float: ...
    @staticmethod
    def grid_unit(limit: float, total: float) -> float: ...
    @staticmethod
    def soft_threshold(gradient: float, alpha: float) -> float: ...
    @staticmethod
    def score_term(gradient: float, denominator: float) -> float: ...
    @staticmethod
    def leaf_value(gradient: float, denominator: float) -> float: ...
    @staticmethod
    def curvature(rule: str, p: float, y: float) -> float: ...
    @staticmethod
    def term_of(term: str, x: float) -> float: ...
