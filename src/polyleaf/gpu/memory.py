"""How much device memory a training needs, and how histograms are cut to fit it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from polyleaf import _core
from polyleaf.gpu.structs import Record, constant, fields_of, struct_type

QUAD = constant("kQuad")  # features whose codes stand side by side
BEST_BYTES = struct_type("Best").itemsize  # the best split of a node by a feature
LEAF_CHUNK = 1024  # rows of a leaf that are summed together, as on the CPU
COLUMN_CHUNK = 256  # rows of a partial sum of an output

# Of the free memory: what CuPy's pool and the driver take on top of the arrays counted here.
_USABLE = 0.92
_UNLIMITED = 2**30
MOST_NODES = 32768  # of a slice: the grid of a launch has its limits
_DEEP = 64  # a level this deep may have as many nodes as any


@dataclass(frozen=True)
class Layout:
    """The channels of a payload: [gradients | Hessians, if diagonal | row count | weight], padded to tiles.

    Attributes
    ----------
    n_outputs : int
        That splits are found on.
    diagonal : bool
        Each output has a Hessian of its own.
    weighted : bool
        There is a channel of weights: of a Hessian that all outputs share, or of the mean of a diagonal one.
    """

    n_outputs: int
    diagonal: bool
    weighted: bool

    @property
    def hessian_channel(self) -> int:
        """First channel of the Hessians; -1: none."""
        return self.n_outputs if self.diagonal else -1

    @property
    def count_channel(self) -> int:
        """Channel of the row count."""
        return self.n_outputs * (2 if self.diagonal else 1)

    @property
    def weight_channel(self) -> int:
        """Channel of the weight; the row count where that is enough."""
        return self.count_channel + (1 if self.weighted else 0)

    @property
    def lanes(self) -> int:
        """Channels of a tile: a warp adds up 32 / lanes rows at a time."""
        return next((lanes for lanes in (8, 16) if self.weight_channel < lanes), 32)

    @property
    def n_channels(self) -> int:
        """All channels, in whole tiles."""
        return -(-(self.weight_channel + 1) // self.lanes) * self.lanes

    @cached_property
    def record(self) -> Record:
        """The channels as kernels take them."""
        return Record("Channels", **{name: getattr(self, name) for name in fields_of("Channels")})


@dataclass(frozen=True)
class Shape:
    """The size of a problem.

    Attributes
    ----------
    n_rows, n_features, n_bins : int
        Of the table; bins with the missing one.
    n_outputs : int
        That a leaf speaks of.
    layout : Layout
        Of what splits are found on.
    max_depth, max_leaves : int or None
        None: no limit.
    min_samples_leaf : int
        Bounds the number of nodes, too.
    """

    n_rows: int
    n_features: int
    n_bins: int
    n_outputs: int
    layout: Layout
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: int

    @property
    def depth(self) -> int:
        """Most levels of splits."""
        return min(_UNLIMITED if self.max_depth is None else self.max_depth, max(self.n_rows - 1, 0))

    @property
    def leaves_are_scarce(self) -> bool:
        """Whether the number of leaves, not the depth, bounds the tree."""
        return self.max_leaves is not None and _core.rules.leaves_are_scarce(self.depth, self.max_leaves)

    @property
    def most_leaves(self) -> int:
        """Leaves that a tree of all visited nodes can have."""
        by_rows = max(self.n_rows // max(self.min_samples_leaf, 1), 1)
        return min(by_rows, 1 << min(self.depth, 30))

    def nodes_at(self, level: int) -> int:
        """Return the most nodes that are searched at a level."""
        return min(1 << min(max(level, 0), 30), self.most_leaves)

    def likely_nodes_at(self, level: int) -> int:
        """Return how many that are likely; only ties make it more."""
        if self.max_leaves is None or not self.leaves_are_scarce:
            return self.nodes_at(level)
        return min(self.nodes_at(level), 2 * max(self.max_leaves - 1, 1))  # both children of the best ones

    @property
    def most_nodes(self) -> int:
        """Nodes that are visited in all."""
        return 2 * self.most_leaves - 1

    @property
    def n_quads(self) -> int:
        """Quads of features."""
        return -(-self.n_features // QUAD)

    @property
    def quad_bytes(self) -> int:
        """A node's histogram of one quad of features."""
        return QUAD * self.n_bins * self.layout.n_channels * 4

    @property
    def found_bytes(self) -> int:
        """What the search of a node leaves behind: its best split by each feature, and its sums."""
        return self.n_features * BEST_BYTES + self.layout.n_channels * 4

    @property
    def data_bytes(self) -> int:
        """The table, targets, scores and gradients."""
        n, d, k = self.n_rows, self.n_outputs, self.layout.n_outputs
        table = n * self.n_quads * QUAD
        targets_and_scores = n * d * (8 + 8)
        gradients = n * d * (8 if self.layout.diagonal else 4) + (n * k * 8 if k < d else 0)
        return table + targets_and_scores + gradients + n * 8  # weights

    @property
    def work_bytes(self) -> int:
        """What growing a tree takes on top, but for histograms."""
        n, d, k = self.n_rows, self.n_outputs, self.layout.n_outputs
        payload = n * self.layout.n_channels * 4
        rows = n * (3 * 4 + 2 * 4 + 12)  # numbers, positions; curvature
        # Twice: all that rows say, and what is within limits.
        sums = (n // LEAF_CHUNK + self.most_leaves) * (2 * (2 * d + 1) * 16 + d * 8)
        sums += n // COLUMN_CHUNK * (d + 2 * k) * 28
        leaves = self.most_leaves * (d * (4 + 8) + (2 * d + 1) * 8) + self.most_nodes * 64
        return payload + rows + sums + leaves


@dataclass(frozen=True)
class HistogramPlan:
    """How histograms are kept.

    Attributes
    ----------
    n_bytes : int
        Memory for histograms. A level that fits it together with its parents is kept whole, so that the
        larger of two children is a subtraction; others are searched by slices.
    slice_nodes : int
        Nodes of a slice.
    slice_quads : int
        Quads of features of a slice; less than all where not even one node fits.
    """

    n_bytes: int
    slice_nodes: int
    slice_quads: int


def plan_histograms(shape: Shape, free_bytes: int, *, with_data: bool) -> HistogramPlan:
    """Return how a problem is solved within the free memory of a device.

    `with_data`: table, scores and gradients are still to be put there.

    Raises
    ------
    MemoryError
        It cannot be: the sizes are named.
    """
    needed = shape.work_bytes + (shape.data_bytes if with_data else 0)
    budget = int(free_bytes * _USABLE) - needed
    if budget < shape.quad_bytes + shape.found_bytes:
        raise MemoryError(
            f"device='cuda': {shape.n_rows} rows x {shape.n_features} features -> {shape.n_outputs} outputs "
            f"need {_size(needed)} of device memory and at least {_size(shape.quad_bytes)} for histograms, "
            f"but {_size(free_bytes)} are free; use device='cpu', or fewer rows or outputs."
        )
    node_bytes = shape.quad_bytes * shape.n_quads
    last = min(shape.depth, _DEEP) - 1
    both = shape.likely_nodes_at(last) + (shape.likely_nodes_at(last - 1) if last > 0 else 0)
    share = node_bytes / (node_bytes + shape.found_bytes)  # of histograms in what a node takes
    room = max(int(budget * share), shape.quad_bytes)
    n_bytes = min(room, max(both, 1) * node_bytes)
    slice_nodes = max(1, min(n_bytes // node_bytes, shape.nodes_at(last), MOST_NODES))
    slice_quads = min(shape.n_quads, n_bytes // shape.quad_bytes)
    n_bytes = n_bytes // shape.quad_bytes * shape.quad_bytes
    return HistogramPlan(n_bytes, slice_nodes, slice_quads)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.2f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.2f} MiB"
