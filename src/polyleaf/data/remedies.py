"""What errors advise where cells are no numbers, or none that float64 can hold."""

from __future__ import annotations

from dataclasses import dataclass

_DATES = (
    "turn dates and times into numbers first: days since a date, or the year, the month and the day of the "
    "week as columns of their own."
)


@dataclass(frozen=True)
class Remedies:
    """What to do about cells that cannot be used, in words that end an error.

    Attributes
    ----------
    text : str
        Where they are text.
    dates : str
        Where they are dates, times or spans of time.
    integers : str
        Where they are integers that float64 cannot hold.
    """

    text: str
    dates: str
    integers: str


IN_X = Remedies(
    'if these are categories, name the column in categorical_features, or set it to "auto", which takes all '
    "columns of text.",
    _DATES,
    "subtract an offset, or, if these are categories, name the column in categorical_features.",
)
IN_Y = Remedies(
    'classes are for PolyleafClassifier, or for PolyleafMixed (as a "multiclass" target) where other targets '
    "are numbers.",
    "turn dates and times into numbers first, such as days since a date.",
    "subtract an offset, or choose a larger unit.",
)
