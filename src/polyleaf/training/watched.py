"""What a callback watches: a metric of an evaluation set, by their names."""

from __future__ import annotations

from collections.abc import Iterable


def known_name(callback: str, what: str, name: str | None, known: Iterable[str]) -> str:
    """Return a name that a callback was given, None: the last one there is.

    Raises
    ------
    ValueError
        When there is none of that name.
    """
    names = list(known)
    if name is None:
        return names[-1]
    if name not in names:
        raise ValueError(f"{callback}: {what}={name!r} is not among {', '.join(map(repr, names))}.")
    return name
