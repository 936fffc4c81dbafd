"""What a run goes on from: a fitted model (`init_model`, `warm_start`) or a checkpoint (`resume`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from polyleaf.data.dataset import Dataset
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.model.forest import Forest
from polyleaf.params.combinations import refused
from polyleaf.params.settings import Settings
from polyleaf.params.situation import Situation
from polyleaf.params.table import EstimatorKind
from polyleaf.params.wording import shown, some_of


@dataclass(frozen=True)
class Start:
    """The model that new trees are added to.

    Attributes
    ----------
    source : {"init_model", "warm_start", "resume"}
        What asked for it, for errors; and what `n_estimators` counts.
    model : SavedModel
        All its rounds are kept, also those after the best one.
    seed : int or None
        Of the run that is continued; None: another one may be drawn.
    """

    source: Literal["init_model", "warm_start", "resume"]
    model: SavedModel
    seed: int | None = None

    @property
    def fitted(self) -> FittedModel:
        """What it predicts with."""
        return self.model.fitted

    @property
    def forest(self) -> Forest:
        """The trees so far."""
        return self.model.fitted.forest

    @property
    def note(self) -> CheckpointNote:
        """The page of the checkpoint."""
        assert self.model.checkpoint is not None
        return self.model.checkpoint

    @property
    def init_rounds(self) -> int:
        """Rounds that `n_estimators` does not count."""
        if self.source == "init_model":
            return self.forest.n_rounds
        return self.note.init_rounds if self.source == "resume" else 0

    def check_estimator(self, kind: EstimatorKind) -> None:
        """Raise unless the model is of this kind, and a checkpoint where one is needed."""
        if self.source == "resume" and self.model.checkpoint is None:
            raise ValueError(
                "resume: the file is a model, not a checkpoint; to add rounds to it pass it as init_model."
            )
        if self.model.estimator != kind:
            raise ValueError(f"{self.source}: the model is a {self.model.estimator}, this is a {kind}.")

    def check_run(
        self,
        data: Dataset,
        loss: str,
        params: Mapping[str, Any],
        settings: Settings,
        feature_names: Sequence[str] | None,
    ) -> None:
        """Raise ValueError, naming what differs, unless trees of this run fit those of the model."""
        forest, source = self.forest, self.source
        if data.X.shape[1] != forest.n_features:
            raise ValueError(
                f"{source}: X has {data.X.shape[1]} features, but the model has {forest.n_features}."
            )
        self._check_names(feature_names)
        if loss != self.fitted.loss:
            raise ValueError(
                f"{source}: the objective is {loss!r}, but that of the model is {self.fitted.loss!r}."
            )
        joint = settings.multi_strategy == "multi_output_tree"
        if forest.trees_per_round != (1 if joint else forest.n_outputs):
            raise ValueError(
                f"{source}: multi_strategy={settings.multi_strategy!r}, but a round of the model has "
                f"{forest.trees_per_round} tree(s)."
            )
        k, is_sparse = settings.sparse_leaves, scipy.sparse.issparse(data.y)
        pairs = k is not None and (is_sparse or k < forest.n_outputs)
        if forest.n_trees > 0 and pairs != (len(forest.value_output) > 0):
            raise ValueError(
                f"{source}: sparse_leaves={k}, but the leaves of the model hold "
                f"{'all outputs' if pairs else 'some of the outputs'}."
            )
        if settings.base_score is not None and not np.array_equal(settings.base_score, forest.base_score):
            raise ValueError(
                f"{source}: base_score={shown(params['base_score'])}, but the base score of the model is "
                f"[{some_of(forest.base_score.tolist())}]."
            )
        if is_sparse and np.any(forest.base_score != 0):
            raise refused(Situation(sparse_labels=True, first_score=True, words={"source": source}))
        if source == "resume":
            self.note.check_params(params, self.model.estimator)
            self.note.check_data(data.arrays(), data.shard)

    def check_categorical(self, columns: Sequence[int]) -> None:
        """Raise ValueError unless the model has the same categorical columns."""
        if sorted(self.fitted.categories) != list(columns):
            raise ValueError(
                f"{self.source}: the categorical features are the columns {list(columns)}, but those of the "
                f"model are {sorted(self.fitted.categories)}."
            )

    def _check_names(self, names: Sequence[str] | None) -> None:
        before = self.fitted.feature_names
        if before is None or names is None:
            return
        for i, (old, new) in enumerate(zip(before, names, strict=True)):
            if old != new:
                raise ValueError(f"{self.source}: column {i} of X is {new!r}, but was {old!r} in the model.")

    def continued(self, settings: Settings) -> Settings:
        """Return the settings with the number of rounds the forest will have, and the seed of the run.

        Raises
        ------
        ValueError
            When the model has more rounds than that already.
        """
        total = self.init_rounds + settings.n_estimators
        if total < self.forest.n_rounds:
            raise ValueError(
                f"{self.source}: n_estimators={settings.n_estimators} is less than the "
                f"{self.forest.n_rounds - self.init_rounds} rounds done already; it counts these, too."
            )
        return replace(settings, n_estimators=total, seed=settings.seed if self.seed is None else self.seed)
