"""Several models in one: a forest whose trees are those of all members, and what each of them is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds


@dataclass(frozen=True)
class Bag:
    """A member of a bagged model.

    Attributes
    ----------
    n_rounds : int
        How many of the rounds of the forest are its own; they follow those of the members before.
    base_score : tuple of float
        Its raw scores before the first tree.
    """

    n_rounds: int
    base_score: tuple[float, ...]

    def describe(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"rounds": self.n_rounds, "base_score": [value.hex() for value in self.base_score]}


def joined(forests: Sequence[Forest]) -> tuple[Forest, tuple[Bag, ...]]:
    """Return the forest whose raw scores are the mean of those of the members, and what they are.

    Leaf values are those of the members, divided by their number, in the largest of their units.
    """
    bags = tuple(Bag(one.n_rounds, tuple(one.base_score.tolist())) for one in forests)
    unit = np.max([one.unit for one in forests], axis=0)
    base = np.mean([one.base_score for one in forests], axis=0)
    whole: Forest | None = None
    for one in forests:
        ratio = one.unit / unit / len(forests)
        part = replace(one, values=_scaled(one, ratio), unit=unit, base_score=base)
        part.gain_feature = part.output_gain = None
        whole = part if whole is None else whole.followed_by(part)
    assert whole is not None
    return whole, bags


def _scaled(forest: Forest, factor: FloatArray) -> Any:
    """Return the leaf values, each times the factor of its output."""
    if len(forest.value_output) > 0:
        return (forest.values * factor[forest.value_output]).astype(np.float32)
    n_nodes = np.diff(forest.node_begin)
    is_leaf = forest.value_begin >= 0
    first = np.repeat(forest.tree_output, n_nodes)[is_leaf]
    width = np.repeat(forest.tree_width, n_nodes)[is_leaf]
    outputs = np.empty(len(forest.values), dtype=np.intp)
    begins = forest.value_begin[is_leaf]
    for size in np.unique(width).tolist():
        of_size = width == size
        places = begins[of_size][:, np.newaxis] + np.arange(size)
        outputs[places] = first[of_size][:, np.newaxis] + np.arange(size)
    return (forest.values * factor[outputs]).astype(np.float32)


def members(forest: Forest, bags: Sequence[Bag]) -> Iterator[tuple[Forest, FloatArray]]:
    """Yield for each member its trees as they are in the forest, and its base score.

    Its raw scores are its base score, and what the trees add to that of the forest, times the members there
    are.
    """
    begin = 0
    for bag in bags:
        end = begin + bag.n_rounds
        yield trees_of_rounds(forest, begin, end), np.array(bag.base_score)
        begin = end


def read_bags(entry: object, forest: Forest) -> tuple[Bag, ...]:
    """Return the members from what a file says.

    Raises
    ------
    ValueError
        When they are not those of the forest.
    """
    if not isinstance(entry, list) or len(entry) < 2:
        raise ValueError("its bags are malformed.")
    bags = []
    for one in entry:
        if not isinstance(one, dict) or set(one) != {"rounds", "base_score"}:
            raise ValueError("its bags are malformed.")
        rounds, base = one["rounds"], one["base_score"]
        if type(rounds) is not int or rounds < 0:
            raise ValueError(f"a bag has {rounds!r:.80} rounds.")
        if not isinstance(base, list) or len(base) != forest.n_outputs:
            raise ValueError("a bag has not one base score for each output.")
        try:
            values = tuple(float.fromhex(value) for value in base)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("the base score of a bag is no number.") from None
        if not np.isfinite(values).all():
            raise ValueError("the base score of a bag is not finite.")
        bags.append(Bag(rounds, values))
    if sum(bag.n_rounds for bag in bags) != forest.n_rounds:
        raise ValueError(f"its bags do not have its {forest.n_rounds} rounds.")
    return tuple(bags)
