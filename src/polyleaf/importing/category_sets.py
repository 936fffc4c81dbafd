"""Splits by categories: from the codes of another library to polyleaf's categories and sets."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import MOST_CATEGORIES, CategoryValues
from polyleaf.importing.fields import IntArray
from polyleaf.importing.foreign_tree import ForeignTree, Words


@dataclass(frozen=True)
class CategorySplit:
    """A split by categories as other libraries have it.

    Attributes
    ----------
    tree, node, feature : int
        Where it is, and what it asks for.
    codes : int64
        The codes of its set.
    set_goes_left : bool
        Whether these go left; all other codes go the other way.
    missing_left : bool
        Where missing values go.
    """

    tree: int
    node: int
    feature: int
    codes: IntArray
    set_goes_left: bool
    missing_left: bool


@dataclass(frozen=True)
class _CodedFeature:
    """The categories of a feature; its foreign codes, ascending, and polyleaf's code of each."""

    values: CategoryValues
    foreign: IntArray
    own: npt.NDArray[np.int64]


def with_sets(
    trees: list[ForeignTree], splits: list[CategorySplit], named: Mapping[int, list[object]]
) -> tuple[list[ForeignTree], dict[int, CategoryValues]]:
    """Return the trees with the sets of their splits by categories, and the categories of the features.

    A set of polyleaf holds what goes where missing values do not; all other categories, unseen ones among
    them, go with missing values. A foreign set that goes the way of missing values is turned around: then all
    other categories of the feature are the set.

    Parameters
    ----------
    trees : list of ForeignTree
        Without sets.
    splits : list of CategorySplit
        All of the model.
    named : mapping of int to list
        By feature: the values that the codes 0, 1, 2, ... stand for, where the file tells. Of other features
        the codes are the values.

    Raises
    ------
    ValueError
        For a code that stands for nothing, more categories than a model may have, or a split that compares
        the codes of a categorical feature as numbers.
    """
    features = {feature: _named_feature(feature, values) for feature, values in named.items()}
    by_feature: dict[int, list[CategorySplit]] = {}
    for split in splits:
        by_feature.setdefault(split.feature, []).append(split)
    for feature, of_feature in by_feature.items():
        if feature not in features:
            features[feature] = _numbered_feature(feature, of_feature)
    sets: dict[int, dict[int, Words]] = {}
    for split in splits:
        sets.setdefault(split.tree, {})[split.node] = _set_of(split, features[split.feature])
    found = [replace(tree, category_sets=sets.get(number, {})) for number, tree in enumerate(trees)]
    for tree in found if features else []:
        _refuse_numbers(tree, features)
    return found, {feature: coded.values for feature, coded in sorted(features.items())}


def _refuse_numbers(tree: ForeignTree, categorical: Container[int]) -> None:
    for node in np.flatnonzero(tree.left >= 0).tolist():
        feature = int(tree.feature[node])
        if feature in categorical and node not in tree.category_sets:
            raise ValueError(
                f"its {tree.where} compares feature {feature} with a number, but it is a categorical one."
            )


def _named_feature(feature: int, values: list[object]) -> _CodedFeature:
    places = range(len(values))
    try:
        order = sorted(places, key=lambda place: values[place])  # type: ignore[arg-type,return-value]
        coded = CategoryValues.from_list([values[place] for place in order])
    except TypeError:
        raise ValueError(f"its categories of feature {feature} are not all text, or all numbers.") from None
    except ValueError as error:
        raise ValueError(f"its categories of feature {feature} cannot be used: {error}") from None
    own = np.empty(len(values), np.int64)
    own[order] = np.arange(len(values))
    return _CodedFeature(coded, np.arange(len(values)), own)


def _numbered_feature(feature: int, splits: list[CategorySplit]) -> _CodedFeature:
    """Return the categories of a feature whose codes are its values.

    Where a set is to be turned around, codes that no set has must be told from missing values: then all that
    a model may have are categories.
    """
    used = np.unique(np.concatenate([split.codes for split in splits]))
    if any(split.set_goes_left == split.missing_left for split in splits):
        if len(used) > 0 and used[-1] >= MOST_CATEGORIES:
            raise ValueError(
                f"its feature {feature} has the category {used[-1]:,}, and a split that sends all others "
                f"elsewhere than missing values; then categories must be below {MOST_CATEGORIES:,}."
            )
        used = np.arange(MOST_CATEGORIES)
    if len(used) > MOST_CATEGORIES:
        raise ValueError(
            f"its feature {feature} has {len(used):,} categories; at most {MOST_CATEGORIES:,} are allowed."
        )
    return _CodedFeature(CategoryValues.from_list(used.tolist()), used, np.arange(len(used)))


def _set_of(split: CategorySplit, feature: _CodedFeature) -> Words:
    place = np.searchsorted(feature.foreign, split.codes)
    known = place < len(feature.foreign)
    known[known] = feature.foreign[place[known]] == split.codes[known]
    if not known.all():
        code = int(split.codes[~known][0])
        raise ValueError(
            f"its tree {split.tree} has a category {code} of feature {split.feature}, which is unknown."
        )
    chosen = np.zeros(-(-max(len(feature.own), 1) // 32) * 32, dtype=bool)
    chosen[feature.own[place]] = True
    if split.set_goes_left == split.missing_left:
        chosen[: len(feature.own)] ^= True
    n_words = max(1, -(-(int(np.flatnonzero(chosen)[-1]) + 1) // 32)) if chosen.any() else 1
    words: Words = np.packbits(chosen, bitorder="little").view("<u4").astype(np.uint32)[:n_words]
    return words
