"""The text of a LightGBM model, taken apart: the head, the trees, parameters and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyleaf.importing.fields import Fields
from polyleaf.importing.json_text import read_json

_CATEGORIES = "pandas_categorical:"
# Fields of numbers; of all others of a tree nothing is needed.
_WHOLE = (
    "split_feature",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_count",
    "internal_count",
    "cat_boundaries",
    "cat_threshold",
)
_FLOATS = ("split_gain", "threshold", "leaf_value")


@dataclass(frozen=True)
class LightgbmText:
    """The parts of a model's text.

    Attributes
    ----------
    head : Fields
        What is said of the whole, as text.
    averages : bool
        Whether predictions are means over the rounds, and not sums.
    trees : list of Fields
        Of each tree, lists of numbers, and some as text.
    parameters : dict of str to str
        What it was trained with.
    pandas_categories : list of list
        The values of each categorical column of the data frame of training, in the order of the columns.
    """

    head: Fields
    averages: bool
    trees: list[Fields]
    parameters: dict[str, str]
    pandas_categories: list[list[Any]]


def read_text(text: str) -> LightgbmText:
    """Return the parts of a text.

    Raises
    ------
    ValueError
        When it is cut, or not the text of a model.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "tree":
        raise ValueError("it does not begin with the line 'tree'.")
    if "end of trees" not in lines:
        raise ValueError("it is cut: the line 'end of trees' is missing.")
    end = lines.index("end of trees")
    starts = [number for number in range(1, end) if lines[number].startswith("Tree=")]
    head_end = starts[0] if starts else end
    head, averages = _head(lines[1:head_end])
    trees = []
    for number, (begin, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True)):
        if lines[begin].strip() != f"Tree={number}":
            raise ValueError(f"it has {lines[begin]!r:.40} where 'Tree={number}' belongs.")
        trees.append(_tree(lines[begin + 1 : stop], number))
    return LightgbmText(head, averages, trees, _parameters(lines[end:]), _pandas_categories(lines[end:]))


def _pairs(lines: list[str], where: str) -> dict[str, str]:
    """Return the fields of lines ``name=value``."""
    found: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or name in found:
            problem = "twice" if equals else "without a value"
            raise ValueError(f"its {where} has {name!r:.40} {problem}.")
        found[name] = value
    return found


def _head(lines: list[str]) -> tuple[Fields, bool]:
    averages = [line for line in lines if line.strip() == "average_output"]
    rest = [line for line in lines if line.strip() != "average_output"]
    return Fields(_pairs(rest, "head")), bool(averages)


def _tree(lines: list[str], number: int) -> Fields:
    where = f"tree {number}"
    entries: dict[str, Any] = dict(_pairs(lines, where))
    for names, kind in ((_WHOLE, int), (_FLOATS, float)):
        for name in names:
            if name in entries:
                entries[name] = _numbers(entries[name], kind, f"{name} of {where}")
    return Fields(entries, where)


def _numbers(text: str, kind: type[int] | type[float], what: str) -> list[Any]:
    try:
        found = [kind(word) for word in text.split()]
    except ValueError:
        raise ValueError(f"its {what} holds something else than numbers.") from None
    return found


def _parameters(lines: list[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            name, colon, value = line[1:-1].partition(": ")
            if colon:
                found[name] = value
    return found


def _pandas_categories(lines: list[str]) -> list[list[Any]]:
    given = [line.removeprefix(_CATEGORIES) for line in lines if line.startswith(_CATEGORIES)]
    if not given:
        return []
    found = read_json(given[-1], "pandas_categorical")
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, list) for one in found):
        raise ValueError("its pandas_categorical is no list of lists.")
    return found
