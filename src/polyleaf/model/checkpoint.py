"""What a checkpoint holds beside the model: enough to tell whether a run can go on from it."""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.dataset import FeatureTable
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import Array
from polyleaf.data.row_digest import add_rows
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.params.table import EstimatorKind, parameters_of
from polyleaf.peers.gather import gather_notes
from polyleaf.peers.shard import Shard

# These change no tree that both runs have. (The seed of a run is in the checkpoint.)
_FREE_PARAMETERS = frozenset(
    (
        "n_estimators",
        "callbacks",
        "warm_start",
        "importance_type",
        "columns_by_name",
        "device",
        "n_jobs",
        "verbose",
    )
)
_BLOCK_CELLS = 1 << 20
_DIGEST_BYTES = 16
_LARGEST_SEED = np.iinfo(np.int32).max
_DATA_NAMES = ("X", "y", "sample_weight")
_BINNED = "binned"
# Digests of rows that may lie anywhere begin so; earlier ones are of all rows in one stream.
_OF_ROWS = "rows "


@dataclass(frozen=True)
class CheckpointNote:
    """The page of a checkpoint.

    Attributes
    ----------
    seed : int
        Of the run, also where `random_state` was an instance that has advanced since.
    init_rounds : int
        Rounds that came from an `init_model`, which `n_estimators` does not count.
    params : dict
        Every parameter that counts, as JSON holds it.
    data : dict
        Of X, y and sample_weight: shape, dtype and a digest of the values, or None.
    holds_out : bool
        Whether rows of the run are held out.
    stopped_at : int or None
        How many rounds these ask for; the trees are then of all rows. None: that is not known yet.
    groups : dict or None
        Of the groups that are held out together, as `data`; None: there are none. Empty: that is not known,
        as an earlier build wrote it.
    """

    seed: int
    init_rounds: int
    params: dict[str, Any]
    data: dict[str, dict[str, Any] | None]
    holds_out: bool = False
    stopped_at: int | None = None
    groups: dict[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the page as JSON holds it."""
        page = {
            "seed": self.seed,
            "init_rounds": self.init_rounds,
            "params": self.params,
            "data": self.data,
        }
        if not self.holds_out:
            return page
        return page | {"stopped_at": self.stopped_at, "groups": self.groups}

    def check_params(self, params: Mapping[str, Any], kind: EstimatorKind) -> None:
        """Raise ValueError naming the first parameter that is not as it was."""
        defaults = {name: row.default for name, row in parameters_of(kind).items()}
        # A parameter that is new since the checkpoint was written had its default.
        before = describe_params(defaults) | self.params
        for name, now in describe_params(params).items():
            if before[name] != now:
                raise ValueError(
                    f"resume: the checkpoint is of a run with other parameters: {name} was "
                    f"{before[name]!r:.200}, and is {now!r:.200} now."
                )

    def check_holds_out(self, holds_out: bool) -> None:
        """Raise ValueError unless a run holds out rows as the one of the checkpoint did."""
        if holds_out != self.holds_out:
            before = "that held out rows to stop by" if self.holds_out else "that held out no rows"
            now = "does" if holds_out else "does not"
            raise ValueError(
                f"resume: the checkpoint is of a run {before}, and this one {now}; "
                "what says when to stop must be as it was."
            )

    def check_data(self, data: Mapping[str, FeatureTable | None], shard: Shard | None = None) -> None:
        """Raise ValueError naming the first array that is not as it was, and in what.

        `shard`: which of the rows are here; None: all.
        """
        for name, values in data.items():
            self._check(name, self.data[name], values, shard)

    def check_groups(self, groups: Array | None) -> None:
        """Raise ValueError unless the rows are in the same groups, by the number of each row's."""
        if self.groups != {}:
            self._check("groups", self.groups, groups, None)

    @staticmethod
    def _check(
        name: str, before: dict[str, Any] | None, values: FeatureTable | None, shard: Shard | None
    ) -> None:
        """Raise ValueError unless an array is the one that was described."""
        earlier = before is not None and not str(before.get("digest")).startswith(_OF_ROWS)
        now = _description(values, shard, in_one_stream=earlier)
        if before == now:
            return
        opening = f"resume: the checkpoint is of a run on other data: {name}"
        if before is None or now is None:
            raise ValueError(
                f"{opening} was {'not given' if before is None else 'given'}, and "
                f"{'is not' if now is None else 'is'} now."
            )
        if _BINNED in (before.get("dtype"), now["dtype"]) and before.get("dtype") != now["dtype"]:
            kinds = ("a table of numbers", "a BinnedTable")
            was, is_now = kinds if now["dtype"] == _BINNED else kinds[::-1]
            raise ValueError(f"{opening} was {was}, and is {is_now} now; pass what it was.")
        for what in ("shape", "dtype"):
            if before.get(what) != now[what]:
                raise ValueError(f"{opening} had {what} {before.get(what)}, and has {now[what]} now.")
        if earlier and shard is not None:
            raise ValueError(
                f"{opening} cannot be compared: an earlier build wrote the file. Resume it where all "
                "rows are in one place."
            )
        raise ValueError(f"{opening} holds other values.")


def read_note(entry: object, n_rounds: int) -> CheckpointNote:
    """Return the page of a checkpoint from what its file says.

    Raises
    ------
    ValueError
        When it is no such page.
    """
    if not isinstance(entry, dict) or set(entry) - {"stopped_at", "groups"} != {
        "seed",
        "init_rounds",
        "params",
        "data",
    }:
        raise ValueError("its checkpoint is malformed.")
    stopped_at = entry.get("stopped_at")
    if stopped_at is not None and (type(stopped_at) is not int or not max(1, n_rounds) <= stopped_at):
        raise ValueError(f"its checkpoint has {n_rounds} of {stopped_at!r:.80} rounds.")
    seed, init_rounds = entry["seed"], entry["init_rounds"]
    if type(seed) is not int or not 0 <= seed <= _LARGEST_SEED:
        raise ValueError(f"its checkpoint has the seed {seed!r:.80}, which is none.")
    if type(init_rounds) is not int or not 0 <= init_rounds <= n_rounds:
        raise ValueError(f"its checkpoint begins after {init_rounds!r:.80} of {n_rounds} rounds.")
    params, data = entry["params"], entry["data"]
    if not isinstance(params, dict) or not isinstance(data, dict) or set(data) != set(_DATA_NAMES):
        raise ValueError("its checkpoint does not say what it was trained with.")
    if not all(one is None or isinstance(one, dict) for one in data.values()):
        raise ValueError("its checkpoint does not say what it was trained on.")
    groups = entry.get("groups", {})
    if groups is not None and not isinstance(groups, dict):
        raise ValueError("its checkpoint does not say which groups its rows were in.")
    return CheckpointNote(seed, init_rounds, params, data, "stopped_at" in entry, stopped_at, groups)


def describe_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that count as JSON holds them; of what it cannot hold, a name."""
    return {name: _described(value) for name, value in params.items() if name not in _FREE_PARAMETERS}


def describe_data(
    data: Mapping[str, FeatureTable | None], shard: Shard | None = None
) -> dict[str, dict[str, Any] | None]:
    """Return shape, dtype and a digest of each array.

    Parameters
    ----------
    data : mapping
        X, y and sample_weight.
    shard : Shard or None
        Which of the rows are here; the description is that of all. None: all are.
    """
    return {name: _description(data[name], shard) for name in _DATA_NAMES}


def describe_groups(groups: Array | None) -> dict[str, Any] | None:
    """Return what a checkpoint says of the number of each row's group; None: rows are of no group."""
    return _description(groups, None)


def _description(
    values: FeatureTable | None, shard: Shard | None, *, in_one_stream: bool = False
) -> dict[str, Any] | None:
    if values is None:
        return None
    table: Any = on_host(values)
    if isinstance(table, BinnedRows):
        return {"shape": list(table.shape), "dtype": _BINNED, "digest": table.digest()}
    if scipy.sparse.issparse(table) or (in_one_stream and shard is None):
        return _fingerprint(table)
    dtype, total = str(table.dtype), 0
    n_rows = table.shape[0] if shard is None else shard.n_rows
    if shard is not None:  # a gap makes floats of integers, also where there is none
        dtype = str(np.result_type(*gather_notes(dtype)))
    if isinstance(table, StreamedTable):
        for rows, block in table.rows_of(range(table.shape[1])):
            total = add_rows(total, block.astype(dtype, copy=False), first=rows.start)
    else:
        numbers = None if shard is None else shard.numbers(table.shape[0])
        total = add_rows(0, table.astype(dtype, copy=False), numbers)
    if shard is not None:
        total = sum(gather_notes(total)) % 2**64
    return {"shape": [n_rows, *table.shape[1:]], "dtype": dtype, "digest": f"{_OF_ROWS}{total:016x}"}


def _described(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.random.RandomState):
        return None  # the seed of the run says it all
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        # 1 and 1.0 are the same parameter.
        return int(number) if number.is_integer() else number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return {str(key): _described(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return _described(value.tolist())
    if isinstance(value, list | tuple):
        return [_described(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_described(one) for one in value), key=repr)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"<{named.__module__}.{named.__qualname__}>"


def _fingerprint(values: Any) -> dict[str, Any]:
    """Return shape, dtype and a digest of all rows in one stream."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    dtype = str(values.dtype)
    if scipy.sparse.issparse(values):
        rows: Any = values
        dtype = f"sparse {dtype}"
        for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            _add(digest, part)
    elif isinstance(values, StreamedTable):
        for _, block in values.rows_of(range(values.shape[1])):
            _add(digest, block.astype(values.dtype, copy=False))
    else:
        _add(digest, values)
    return {"shape": list(values.shape), "dtype": dtype, "digest": digest.hexdigest()}


def _add(digest: Any, values: Array) -> None:
    """Add the values row by row, whatever their layout in memory."""
    step = max(1, _BLOCK_CELLS // max(1, math.prod(values.shape[1:])))
    for begin in range(0, len(values), step):
        digest.update(np.ascontiguousarray(values[begin : begin + step]).view(np.uint8).data)
