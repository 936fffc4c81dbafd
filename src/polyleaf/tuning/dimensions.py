"""Parameters to be searched, as places between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Params = dict[str, Any]


class Dimension(Protocol):
    """One direction of a search: each place in [0, 1) stands for the values of one or several parameters."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters."""

    @property
    def ordered(self) -> bool:
        """Whether places that are near each other stand for values that are."""

    def at(self, place: float) -> Params:
        """Return the values at a place."""

    def place_of(self, params: Mapping[str, Any]) -> float | None:
        """Return a place of the values that parameters have; None: there is none."""


@dataclass(frozen=True)
class Values:
    """One of some settings, in no order.

    Attributes
    ----------
    names : tuple of str
        The parameters that they set, some or all of them.
    settings : tuple of dict
        What is chosen from.
    """

    names: tuple[str, ...]
    settings: tuple[Params, ...]
    ordered = False

    def at(self, place: float) -> Params:
        """Return one of the settings; all have shares of the same size."""
        return dict(self.settings[int(place * len(self.settings))])

    def place_of(self, params: Mapping[str, Any]) -> float | None:
        """Return the middle of the share of the first setting that is the same."""
        for i, setting in enumerate(self.settings):
            if all(_is_same(params.get(name), value) for name, value in setting.items()):
                return (i + 0.5) / len(self.settings)
        return None


@dataclass(frozen=True)
class Range:
    """All numbers between two, both included.

    Attributes
    ----------
    name : str
        The parameter.
    low, high : float
        The least and the largest.
    log : bool
        Whether ratios count, and not differences.
    whole : bool
        Whether they are integers.
    """

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    ordered = True

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter."""
        return (self.name,)

    def _ends(self) -> tuple[float, float]:
        """Return the ends on the scale of places; an integer has the share from half below to half above."""
        margin = 0.5 if self.whole else 0.0
        low, high = self.low - margin, self.high + margin
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def at(self, place: float) -> Params:
        """Return the number at a place."""
        low, high = self._ends()
        value = low + place * (high - low)
        value = math.exp(value) if self.log else value
        if self.whole:
            return {self.name: min(max(round(value), int(self.low)), int(self.high))}
        # Short numbers are as good, and can be read.
        return {self.name: min(max(float(f"{value:.3g}"), self.low), self.high)}

    def place_of(self, params: Mapping[str, Any]) -> float | None:
        """Return where the number lies."""
        value = params.get(self.name)
        if isinstance(value, bool | np.bool_ | str) or value is None or not self.low <= value <= self.high:
            return None
        low, high = self._ends()
        if high == low:
            return 0.0
        place = ((math.log(value) if self.log else value) - low) / (high - low)
        return min(place, math.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Drawn:
    """Numbers of a distribution of SciPy, by their quantiles.

    Attributes
    ----------
    name : str
        The parameter.
    distribution : Any
        With its parameters set ("frozen").
    whole : bool
        Whether the parameter is an integer.
    """

    name: str
    distribution: Any
    whole: bool = False
    ordered = True

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter."""
        return (self.name,)

    def at(self, place: float) -> Params:
        """Return a quantile; never the last ones, which may be infinite."""
        value = float(self.distribution.ppf(min(max(place, 1e-6), 1 - 1e-6)))
        return {self.name: int(value) if self.whole and value.is_integer() else value}

    def place_of(self, params: Mapping[str, Any]) -> float | None:
        """Return which quantile the number is."""
        value = params.get(self.name)
        if isinstance(value, bool | np.bool_ | str) or value is None:
            return None
        place = float(self.distribution.cdf(value))
        return place if 0 < place < 1 else None


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | list | tuple) or isinstance(other, np.ndarray | list | tuple):
        return type(one) is type(other) and repr(one) == repr(other)
    return bool(one == other)
