"""Gradients and trees, round by round."""

from __future__ import annotations

from collections.abc import Sequence

from polyleaf._core import BinnedMatrix
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_hashes import row_hashes
from polyleaf.growth.contract import LeafGradients, Renewal, SplitGradients, Task
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import Sampler
from polyleaf.growth.score_pass import PassPlan, RoundGradients
from polyleaf.growth.split_gradients import SplitPlan
from polyleaf.growth.tree import Tree
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model.forest import Forest
from polyleaf.model.scores import Scores
from polyleaf.params.settings import Settings
from polyleaf.peers.gather import any_shard
from polyleaf.training.device import Device, make_device
from polyleaf.training.forest_maker import ForestMaker
from polyleaf.training.monitor import measure_of
from polyleaf.training.run_memory import has_whole_trees


class _Naming:
    """Says of numbers that grow beyond all bounds in a round where they may come from."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OverflowError):
            raise ValueError(
                f"round {self._number}: {error}: targets or weights are too large, or learning_rate is"
            ) from error


class Trainer:
    """Gradients and trees, round by round, on the device that the settings name.

    Parameters
    ----------
    data, loss, settings
        What to train on, and how.
    base : float64 ndarray of shape (outputs,)
        Scores before the first round.

    Attributes
    ----------
    unit : float64 ndarray of shape (outputs,)
        What leaf values are multiples of.
    trees_per_round : int
        One, or one for each output.
    maker : ForestMaker
        Makes forests of the trees of this run.
    n_grown : int
        Trees that were grown here, and are in the scores.
    """

    def __init__(self, data: Dataset, loss: Loss, settings: Settings, base: FloatArray) -> None:
        self._data = data
        self._loss = loss
        self._settings = settings
        self._base = base
        self.n_grown = 0
        self._weight = data.weights.row
        self.unit, self._gain_weight = loss.scales(data.y, data.weights.whole(), base, settings.scale_targets)
        if settings.output_weight is not None:
            self._gain_weight = self._gain_weight * settings.output_weight
        renews = loss.leaf_levels is not None and data.weights.cell is not None
        self._renewal_weight = data.weights.whole() if renews else None
        joint = settings.multi_strategy == "multi_output_tree"
        self.trees_per_round = 1 if joint else loss.n_outputs
        self.maker = ForestMaker(data.X.shape[1], self.trees_per_round, base, self.unit, self._gain_weight)
        self._device: Device = make_device(data, loss, settings)
        self._plan = SplitPlan(
            settings.sketch,
            settings.sketch_size,
            settings.hessian == "shared",
            settings.seed,
            self._device.arrays,
        )

    def prepare(
        self,
        matrix: BinnedMatrix | None = None,
        initial: Forest | None = None,
        known: FloatArray | None = None,
    ) -> None:
        """Bin the table (unless it is binned already) and set up the scores.

        `known` are the scores of the first rows by the trees of `initial`.
        """
        draws_rows = self._settings.draws_rows_alike
        if draws_rows and matrix is None:
            matrix = bin_data(self._data, self._settings)  # all columns: they tell the rows apart
        self._grower = self._device.grower(matrix)
        self._sampler = self._make_sampler(matrix if draws_rows else None)
        plan = PassPlan(
            unit=self.unit,
            gain_weight=self._gain_weight,
            splits=self._plan,
            hessian_rule=self._hessian_rule(),
            cell_weight=self._data.weights.cell,
            whole_trees=has_whole_trees(self._loss, self._settings),
            row_weight=self._weight,
        )
        self._scores = self._device.score_pass(plan, self._base, initial, known)

    def _make_sampler(self, matrix: BinnedMatrix | None) -> Sampler:
        """Return what draws the rows and features of each round; rows of a table, or by their gradients."""
        settings = self._settings
        hashes = (
            None
            if matrix is None
            else row_hashes(matrix, self._data.y, self._data.weights.whole(), settings.n_threads)
        )
        return Sampler(
            n_rows=self._data.n_rows,
            n_features=self._data.X.shape[1],
            seed=settings.seed,
            subsample=settings.subsample,
            gradient_based=settings.sampling_method == "gradient_based",
            bytree=settings.colsample_bytree,
            bylevel=settings.colsample_bylevel,
            bynode=settings.colsample_bynode,
            groups=settings.interaction,
            arrays=self._device.arrays,
            row_hashes=hashes,
        )

    def _hessian_rule(self) -> str | None:
        """Return how the Hessian follows from the gradient, where no split looks at each output's own."""
        shared = self._settings.hessian == "shared" and self._data.weights.cell is None
        return self._loss.hessian_rule if shared else None

    def round(self, number: int, learning_rate: float) -> list[tuple[Tree, int]]:
        """Grow one round's trees and add them to the training scores."""
        monotone = self._settings.monotone
        gradients = self._scores.gradients(number)
        gradient = None if gradients is None else gradients.stored
        sample = self._sampler.rows(number, gradient, self._gain_weight, self._weight)
        features = self._sampler.features(number)
        width = self._loss.n_outputs // self.trees_per_round
        grown = []
        with _Naming(number):
            for first in range(0, self._loss.n_outputs, width):
                part = slice(first, first + width)
                leaves, splits = self._gradients_of_tree(number, gradients, part)
                task = Task(
                    leaves,
                    splits,
                    self._weight,
                    sample=sample,
                    features=features,
                    monotone=None if monotone is None else monotone[:, part],
                    learning_rate=learning_rate,
                    destination=self._scores.destination(part),
                    shard=self._data.shard,
                )
                grown.append((self._added(self._grower.grow(task)), first))
        return grown

    def refill(
        self, number: int, learning_rate: float, trees: Sequence[tuple[Tree, int]]
    ) -> list[tuple[Tree, int]]:
        """Return the trees of one round with leaf values of their own, added to the training scores.

        Their splits stand. All rows are here, gradients are dense, and the device is the CPU.
        """
        assert isinstance(self._grower, DenseGrower)
        gradients = self._scores.gradients(number)
        assert gradients is not None
        width = self._loss.n_outputs // self.trees_per_round
        filled = []
        with _Naming(number):
            for tree, first in trees:
                part = slice(first, first + width)
                own, unit = gradients, self.unit
                if self.trees_per_round > 1:
                    own, unit = gradients.of_outputs(part), unit[part]
                task = Task(
                    self._leaf_gradients(own, unit, part),
                    weight=self._weight,
                    learning_rate=learning_rate,
                    destination=self._scores.destination(part),
                )
                filled.append((self._added(self._grower.refill(task, tree)), first))
        return filled

    def _added(self, tree: Tree) -> Tree:
        """Take note of a tree, which is in the scores from now on."""
        self._scores.add(tree)
        self.n_grown += 1
        return tree

    def _gradients_of_tree(
        self, number: int, gradients: RoundGradients | None, part: slice
    ) -> tuple[LeafGradients | None, SplitGradients | None]:
        """Return what the leaves of a tree of some outputs are made of, and what its splits are found on."""
        if gradients is None:
            return None, None
        own, unit, gain_weight = gradients, self.unit, self._gain_weight
        if self.trees_per_round > 1:
            own, unit, gain_weight = gradients.of_outputs(part), unit[part], gain_weight[part]
        splits = self._plan.make(
            own.gradient,
            own.hessian,
            gain_weight,
            unit,
            number=number,
            weight=self._weight,
            sketch=own.sketch,
        )
        return self._leaf_gradients(own, unit, part), splits

    def _leaf_gradients(self, own: RoundGradients, unit: FloatArray, part: slice) -> LeafGradients:
        exact = self._settings.hessian in ("exact", "exact_leaf")
        label = self._data.y if exact else None
        return LeafGradients(own.gradient, own.hessian, unit, label, self._renewal(part))

    def _renewal(self, part: slice) -> Renewal | None:
        """Return which leaf values of some outputs come from the residuals."""
        if self._loss.leaf_levels is None:
            return None
        columns = self._loss.target_columns()
        renewal = Renewal(self._loss.leaf_levels, self._data.y, columns, self._renewal_weight)
        return renewal.of_outputs(part)

    def scores(self, data: Dataset, start: FloatArray) -> Scores:
        """Return the scores of other rows, which begin with `start`; rounds are added to them."""
        return self._device.scores(data, start)

    def training_scores(self) -> FloatArray | None:
        """Return the scores of the training rows by all trees so far."""
        return self._scores.scores()

    def measure(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return the first metric on the training rows, where their scores are at hand."""
        if not metrics:
            return {}
        scores = self._scores.scores()
        if any_shard(scores is None) or scores is None:
            return {}
        prediction, weight = self._loss.predict(scores, self._settings.n_threads), self._data.weights.whole()
        return {f"training {metrics[0].name}": measure_of(metrics[0], self._data, weight)(prediction)}
