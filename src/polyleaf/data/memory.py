"""What training takes of memory, what it can do without, and what there is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

# Columns of targets of which copies are made at once, before the first round.
COLUMNS_TOGETHER = 16
# What a panel of columns and the search for its cut points may take at least.
LEAST_PANEL_BYTES = 1 << 28
# Of the search for cut points, for each row: columns that a thread copies at once (core/table/cuts.cpp), and
# a weight as a whole number.
_COPIED_BYTES, _UNIT_BYTES = 24, 8


@dataclass(frozen=True)
class Savings:
    """What a run does without in memory. None of it changes a bit of the model.

    Attributes
    ----------
    made_gradients : bool
        Gradients are not stored, but made a second time for the leaves: takes time.
    mapped_scores : bool
        Scores lie in a temporary file, which is read and written in the order of the rows: takes more time
        where memory does not hold it.
    """

    made_gradients: bool = False
    mapped_scores: bool = False


NOTHING_SAVED = Savings()


def least_savings(possible: Savings, bytes_with: Callable[[Savings], int], free: int | None) -> Savings:
    """Return what must be saved for a run to fit into memory; all that can be, where nothing is enough.

    Parameters
    ----------
    possible : Savings
        What this run could do without.
    bytes_with : callable
        Returns what the run takes with some savings.
    free : int or None
        What there is; None: nobody knows, and nothing is saved.
    """
    # What costs the least time first. Scores in a file are better read once a round than twice.
    tried = [
        Savings(made, mapped)
        for mapped in (False, True)
        for made in (False, True)
        if made <= possible.made_gradients and mapped <= possible.mapped_scores
    ]
    fitting = (savings for savings in tried if free is None or bytes_with(savings) <= free)
    return next(fitting, tried[-1])


@dataclass(frozen=True)
class Needs:
    """Bytes that training takes at its peak, beside what the process has already.

    Attributes
    ----------
    throughout : mapping of str to int
        What is there from beginning to end, by what it is.
    rounds : mapping of str to int
        What comes with the first round.
    panel : int
        What is gone by then: columns and work space while cut points are found, or copies of some targets,
        which are made before there are codes.
    """

    throughout: Mapping[str, int]
    rounds: Mapping[str, int]
    panel: int

    @property
    def peak(self) -> int:
        """All bytes that are needed at a time."""
        return sum(self.throughout.values()) + max(self.panel, sum(self.rounds.values()))

    def listed(self) -> str:
        """Return the sizes in words."""
        parts = {**self.throughout, **self.rounds}
        return ", ".join(f"{name} {in_words(size)}" for name, size in parts.items() if size > 0)


def needs(
    n_rows: int,
    n_features: int,
    n_outputs: int,
    *,
    n_targets: int | None = None,
    max_bins: int | None = 255,
    n_mixtures: int | None = None,
    own_hessian: bool = False,
    weighted: bool = False,
    cell_weights: bool = False,
    cell_bytes: int = 8,
    savings: Savings = NOTHING_SAVED,
    holds_out: bool = False,
) -> Needs:
    """Return what training takes, from sizes and settings.

    Parameters
    ----------
    n_rows, n_features, n_outputs : int
        Of the table, and of the scores of a row.
    n_targets : int, default=None
        Columns of the coded y, of 8 bytes each. None: one for each output.
    max_bins : int or None, default=255
        The parameter: the code of a cell takes a byte up to 255, and two beyond.
    n_mixtures : int, default=None
        What splits are found on, where that is a sketch. None: all outputs.
    own_hessian : bool, default=False
        Whether each output of each row has a Hessian of its own.
    weighted, cell_weights : bool, default=False
        Whether the rows have weights, and whether their cells do.
    cell_bytes : int, default=8
        Of a number of the table.
    savings : Savings, default=NOTHING_SAVED
        What the run does without.
    holds_out : bool, default=False
        Whether some of the rows are held out, so that each row is there twice for a while.
    """
    code = 1 if max_bins is not None and max_bins <= 255 else 2
    channels = 2 if own_hessian or cell_weights else 1
    stored = n_rows * n_outputs * channels * 4
    if cell_weights:  # before and after they are multiplied
        stored += n_rows * n_outputs * (2 if own_hessian else 1) * 4
    sketched = 0 if n_mixtures is None else n_rows * n_mixtures * channels * 4
    throughout = {
        "codes of the features": n_rows * n_features * code,
        "targets": n_rows * (n_outputs if n_targets is None else n_targets) * 8,
        "weights": n_rows * ((8 if weighted else 0) + (n_outputs * 4 if cell_weights else 0)),
    }
    rounds = {
        "scores": 0 if savings.mapped_scores else n_rows * n_outputs * 8,
        "gradients": 0 if savings.made_gradients else stored,
        "sketch": sketched,
        "rounded gradients": n_rows * (n_outputs if n_mixtures is None else n_mixtures) * channels * 4,
        "order of the rows": n_rows * 8,
        "rows held out and others": sum(throughout.values()) if holds_out else 0,
    }
    least = search_bytes(1, cell_bytes, weighted=weighted) + (_UNIT_BYTES if weighted else 0)
    copies = 16 * min(COLUMNS_TOGETHER, n_outputs if n_targets is None else n_targets) - n_features * code
    return Needs(throughout, rounds, n_rows * max(least, copies))


def panel_width(
    n_rows: int, cell_bytes: int, panel_bytes: int, n_threads: int, *, weighted: bool
) -> tuple[int, int]:
    """Return how many columns are read together, and how many threads search for their cut points.

    One column and one thread are the least there can be; the threads come first, and have as many columns
    each.
    """
    room = max(panel_bytes, LEAST_PANEL_BYTES) // n_rows - (_UNIT_BYTES if weighted else 0)
    threads = max(1, min(n_threads, room // search_bytes(1, cell_bytes, weighted=weighted)))
    columns = max(1, room // threads // cell_bytes)
    while columns > 1 and threads * search_bytes(columns, cell_bytes, weighted=weighted) > room:
        columns -= 1
    return threads * columns, threads


def search_bytes(n_columns: int, cell_bytes: int, *, weighted: bool) -> int:
    """Return what a thread takes for each row: its columns of a panel, and the search for their cut points.

    That copies some columns at once, and sorts one.
    """
    copies = min(_COPIED_BYTES, n_columns * cell_bytes)
    keys = 2 * max(cell_bytes, 4) + (2 * _UNIT_BYTES if weighted else 0)
    return n_columns * cell_bytes + copies + keys


def refuse_too_large(wanted: Needs, name: str, present: int = 0) -> None:
    """Raise MemoryError, listing the sizes, where the machine does not have what is needed.

    So many bytes of it are `present` already.
    """
    free = available()
    if free is not None and wanted.peak > free + present:
        raise MemoryError(
            f"{name} is too large for this machine: training takes {in_words(wanted.peak)} at least, and "
            f"{in_words(free + present)} are available ({wanted.listed()}). Fewer rows, features or outputs "
            "take less."
        )


@dataclass(frozen=True)
class MemoryShare:
    """What one of several processes that train together may take.

    Attributes
    ----------
    n_neighbours : int
        How many of them are on this machine, this one included: each may take as much of what is free.
    limit : int or None
        Bytes that this process may have in all, with those it has already; None: nobody limits it.
    """

    n_neighbours: int = 1
    limit: int | None = None


_SHARE: ContextVar[MemoryShare] = ContextVar("share", default=MemoryShare())  # noqa: B039


@contextmanager
def within(share: MemoryShare) -> Iterator[None]:
    """Have no more than a share of the memory `available` in this thread."""
    token = _SHARE.set(share)
    try:
        yield
    finally:
        _SHARE.reset(token)


def available() -> int | None:
    """Return how many bytes can be had: of the machine, or of the group of processes that this one is in.

    Where they are shared with others, what this process may take of them. None where the system does not say.
    """
    share = _SHARE.get()
    found = [size // share.n_neighbours for size in (_of_machine(), _of_group()) if size is not None]
    if share.limit is not None:
        found.append(max(0, share.limit - _used()))
    return min(found) if found else None


def _used() -> int:
    """Return the bytes that this process has in memory; 0 where the system does not say."""
    fields = _read("/proc/self/statm").split()
    return int(fields[1]) * int(os.sysconf("SC_PAGE_SIZE")) if len(fields) > 1 else 0


def _of_machine() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:  # without swap and caches: all there is
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return None


def _of_group(root: str = "/sys/fs/cgroup", groups: str = "/proc/self/cgroup") -> int | None:
    """Return what is left of the limits of control groups (version 2, or 1), None where there is none."""
    found = []
    for line in _read(groups).splitlines():
        number, controllers, own = line.split(":", 2)
        if number != "0" and "memory" not in controllers.split(","):
            continue
        folder = Path(root) if number == "0" else Path(root) / "memory"
        path = folder / own.lstrip("/")
        for place in (path, *path.parents):
            left = _left(place)
            if left is not None:
                found.append(left)
            if place == folder:
                break
    return min(found) if found else None


def _left(group: Path) -> int | None:
    """Return what a group may still take; the cache of files it has read is given back when needed."""
    names = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
    for limit_name, used_name in names:
        limit, used = _read(group / limit_name).strip(), _read(group / used_name).strip()
        if not limit.isdigit() or not used.isdigit():
            continue
        stat = dict(
            line.split() for line in _read(group / "memory.stat").splitlines() if line.count(" ") == 1
        )
        cache = sum(int(stat.get(name, 0)) for name in ("inactive_file", "active_file"))
        return max(0, int(limit) - int(used) + cache)
    return None


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def in_words(n_bytes: int) -> str:
    for size, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if n_bytes >= size / 2:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 2**10:.1f} KiB"
