"""What was found of all rows while shards read theirs: enough to read some of them again, anywhere."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from polyleaf import _core
from polyleaf.peers.answers import Answers


@dataclass(frozen=True)
class ShardFacts:
    """The same for all shards of a run.

    Attributes
    ----------
    answers : Answers
        What all shards said to each other: classes, categories, sums of weights, sizes of pieces.
    table : BinnedMatrix
        Without rows: cut points and layout.
    """

    answers: Answers
    table: _core.BinnedMatrix

    def written(self) -> bytes:
        """Return what another shard can `read`."""
        return pickle.dumps((self.answers, _core.parts_of_table(self.table)))

    @classmethod
    def read(cls, text: bytes | memoryview) -> ShardFacts:
        """Return the facts of another shard."""
        answers, parts = pickle.loads(text)
        return cls(answers, _core.table_from_parts(parts, 1))
