"""What Dask's configuration says of trainings, below "polyleaf"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dask.utils import parse_timedelta

import dask
from polyleaf.dask.messages import Deadlines


@dataclass(frozen=True)
class Config:
    """How a training is done; its result does not hang on it.

    Attributes
    ----------
    deadlines : Deadlines
        "polyleaf.deadlines": seconds, or "20 s" and the like.
    shared_memory : bool
        "polyleaf.shared-memory": whether workers on one machine read each other's histograms where they lie.
    """

    deadlines: Deadlines
    shared_memory: bool

    @classmethod
    def read(cls) -> Config:
        """Return what is configured now, or raise ValueError naming what is wrong."""
        given = _known("polyleaf", dask.config.get("polyleaf", {}), ["deadlines", "shared-memory"])
        names = [one.name for one in fields(Deadlines)]
        deadlines = _known("polyleaf.deadlines", given.get("deadlines", {}), names)
        shared = given.get("shared-memory", True)
        if not isinstance(shared, bool):
            raise ValueError(f"polyleaf.shared-memory is true or false, not {shared!r}")
        return cls(Deadlines(**{name: _seconds(name, value) for name, value in deadlines.items()}), shared)


def _known(what: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a part of the configuration, with names as we write them; Dask takes "_" for "-" as well."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{what} is a mapping with {', '.join(names)}, not {given!r}")
    found = {str(name).replace("_", "-"): value for name, value in given.items()}
    unknown = sorted(set(found) - set(names))
    if unknown:
        raise ValueError(f"{what} has {', '.join(unknown)}; there are {', '.join(names)}")
    return found


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = math.nan if isinstance(value, bool) else float(parse_timedelta(value))
    except (KeyError, ValueError, TypeError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(
            f'polyleaf.deadlines.{name} is {value!r}; it must be seconds above 0, or text such as "20 s".'
        )
    return seconds
