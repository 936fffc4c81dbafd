"""What training on a streamed table takes of memory, and what there is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What a panel of columns and the search for its cut points may take at least.
LEAST_PANEL_BYTES = 1 << 28
# Of the search for cut points, for each row: columns that a thread copies at once (core/table/cuts.cpp), and
# a weight as a whole number.
_COPIED_BYTES, _UNIT_BYTES = 24, 8


@dataclass(frozen=True)
class Needs:
    """Bytes that training on a streamed table takes at its peak, beside what the process has already.

    Attributes
    ----------
    throughout : mapping of str to int
        What is there from beginning to end, by what it is.
    rounds : mapping of str to int
        What comes with the first round.
    panel : int
        Columns and work space while cut points are found, which are gone by then.
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
        return ", ".join(f"{name} {_in_words(size)}" for name, size in parts.items() if size > 0)


def needs(
    n_rows: int,
    n_features: int,
    n_outputs: int,
    *,
    n_targets: int | None = None,
    max_bins: int | None = 255,
    own_hessian: bool = False,
    weighted: bool = False,
    cell_bytes: int = 8,
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
    own_hessian : bool, default=False
        Whether each output of each row has a Hessian of its own.
    weighted : bool, default=False
        Whether the rows have weights.
    cell_bytes : int, default=8
        Of a number of the table.
    """
    code = 1 if max_bins is not None and max_bins <= 255 else 2
    channels = n_outputs * (2 if own_hessian else 1)
    throughout = {
        "codes of the features": n_rows * n_features * code,
        "targets": n_rows * (n_outputs if n_targets is None else n_targets) * 8,
        "weights": n_rows * 8 if weighted else 0,
    }
    rounds = {
        "scores": n_rows * n_outputs * 8,
        "gradients": n_rows * channels * 4,
        "rounded gradients": n_rows * channels * 4,
        "order of the rows": n_rows * 8,
    }
    least = search_bytes(1, cell_bytes, weighted=weighted) + (_UNIT_BYTES if weighted else 0)
    return Needs(throughout, rounds, n_rows * least)


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


def refuse_too_large(wanted: Needs, name: str) -> None:
    """Raise MemoryError, listing the sizes, where the machine does not have what is needed."""
    free = available()
    if free is not None and wanted.peak > free:
        raise MemoryError(
            f"{name} is too large for this machine: training takes {_in_words(wanted.peak)} at least, and "
            f"{_in_words(free)} are available ({wanted.listed()}). Fewer rows, features or outputs take less."
        )


def available() -> int | None:
    """Return how many bytes can be had: of the machine, or of the group of processes that this one is in.

    None where the system does not say.
    """
    found = [size for size in (_of_machine(), _of_group()) if size is not None]
    return min(found) if found else None


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


def _in_words(n_bytes: int) -> str:
    for size, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if n_bytes >= size / 2:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 2**10:.1f} KiB"
