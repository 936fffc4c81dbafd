"""What Dask's configuration says of trainings, below "polyleaf"."""

from __future__ import annotations

from dataclasses import dataclass, fields

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
        given = dask.config.get("polyleaf.deadlines", {})
        known = [one.name for one in fields(Deadlines)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(f"polyleaf.deadlines has {', '.join(unknown)}; there are {', '.join(known)}")
        shared = dask.config.get("polyleaf.shared-memory", True)
        if not isinstance(shared, bool):
            raise ValueError(f"polyleaf.shared-memory is true or false, not {shared!r}")
        return cls(Deadlines(**{name: parse_timedelta(value) for name, value in given.items()}), shared)
