"""Results on disk: one JSON line per run, written as soon as the run is done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


class StoreError(Exception):
    """The file of results cannot be read."""


@dataclass(frozen=True)
class Run:
    """What was run, completely: two runs that are equal here need not be done twice.

    Attributes
    ----------
    scale : {"full", "quick"}
        How much work it was.
    experiment : str
        What it was for: "performance", "synthetic", "equal", "search", "curves", "time" or "first_trees".
    data, method : str
        Names.
    seed : int
        Of the split or the draw; the repeat in timings.
    details : mapping
        Everything else that matters: settings, rows, checksum of the data.
    """

    scale: str
    experiment: str
    data: str
    method: str
    seed: int
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The same text for the same run."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Record:
    """A run with its result, and when and where it was done."""

    run: Run
    result: Mapping[str, Any]
    date: str
    machine: str
    versions: Mapping[str, str]


class Store:
    """The results in a folder. Opening it reads them; a line that was being written is dropped."""

    FILE = "paper-runs.jsonl"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / self.FILE
        self._records: dict[str, Record] = {}
        if self.path.exists():
            self._read()

    @property
    def records(self) -> list[Record]:
        """All results, oldest first."""
        return list(self._records.values())

    def get(self, run: Run) -> Record | None:
        """Return the result of a run, None where it has not been done."""
        return self._records.get(run.identity)

    def add(self, record: Record) -> None:
        """Keep a result, on disk before this returns."""
        line = json.dumps(asdict(record), sort_keys=True) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._records[record.run.identity] = record

    def _read(self) -> None:
        content = self.path.read_bytes()
        complete, newline, rest = content.rpartition(b"\n")
        if rest:  # a run was stopped while its line was being written
            with self.path.open("r+b") as file:
                file.truncate(len(complete) + len(newline))
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                fields = json.loads(line)
                record = Record(**{**fields, "run": Run(**fields["run"])})
            except (ValueError, TypeError, KeyError) as error:
                raise StoreError(
                    f"{self.path}, line {number}: not a result of `polyleaf paper` ({error}); "
                    "mend or remove the line, or choose another --out."
                ) from error
            self._records[record.run.identity] = record
