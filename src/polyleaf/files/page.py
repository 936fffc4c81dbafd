"""Entries of a page of JSON that may come from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def entry_of(page: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a page, which is of this type, or raise ValueError."""
    value = page.get(name)
    if type(value) is not kind:  # bool is no int here
        raise ValueError(f"its {name} is {value!r:.80}; a {kind.__name__} belongs there.")
    return value


def distinct_words(names: Any, count: int, what: str) -> tuple[str, ...] | None:
    """Return so many names, no two of them equal; None: there are none."""
    if names is None:
        return None
    if (
        type(names) is not list
        or len(names) != count
        or any(type(name) is not str for name in names)
        or len(set(names)) < count
    ):
        raise ValueError(f"its {what} are not {count} distinct words.")
    return tuple(names)
