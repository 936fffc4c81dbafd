"""JSON that may come from a stranger: no key twice, no nesting that ends the interpreter."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes, what: str) -> Any:
    """Return what a text of JSON holds; `what` is what errors call it.

    Raises
    ------
    ValueError
        When it is none, is too deep, or has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise ValueError(f"{what} is too deep.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{what} is cut, or no JSON: {error}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"it has {key!r:.80} twice.")
        found[key] = value
    return found
