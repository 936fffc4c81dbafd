"""Which columns of a source with names are used, and what for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyleaf.params.wording import some_of


@dataclass(frozen=True)
class Wanted:
    """The columns of a source with names that are to be used.

    Attributes
    ----------
    target : str, list of str, frozenset of str or None
        Those of y; a set: in the order of the source. None: y is not in the source.
    weight : str or None
        That of the weights.
    features : sequence of str or None
        Those of ``fit``, which are looked for by name; None: all others.
    target_name, weight_name : str
        What errors call the arguments that name them.
    """

    target: str | list[str] | frozenset[str] | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    target_name: str = "y"
    weight_name: str = "sample_weight"

    def targets(self, present: Sequence[str]) -> list[str]:
        """Return the columns of y, in the order that it has."""
        if self.target is None or isinstance(self.target, str):
            return [] if self.target is None else [self.target]
        if isinstance(self.target, frozenset):
            return sorted(self.target, key=lambda name: list(present).index(name) if name in present else -1)
        return self.target

    def columns(self, present: Sequence[str], set_aside: set[str], name: str) -> list[str]:
        """Return the features among the columns that are there, or raise naming a column."""
        asked = [(column, self.target_name) for column in self.targets(present)]
        asked += [] if self.weight is None else [(self.weight, self.weight_name)]
        taken: dict[str, str] = {}
        for column, who in asked:
            if column not in present:
                raise ValueError(
                    f"{who}: {name} has no column {column!r}; it has {some_of(present) or 'none'}."
                )
            if column in taken:
                raise ValueError(f"{who}: column {column!r} is asked for twice, here and in {taken[column]}.")
            taken[column] = who
        if self.features is not None and set(self.features) <= set(present):
            for column in self.features:
                if column in taken:
                    raise ValueError(f"{taken[column]}: column {column!r} is a feature of the model.")
            return list(self.features)
        features = [column for column in present if column not in taken and column not in set_aside]
        if not features:
            raise ValueError(f"{name} has no columns but {some_of(list(present))}: there is no feature.")
        return features
