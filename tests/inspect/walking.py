"""The walk over plain data that the documentation shows, as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "trees-as-data.md"


def walk_of_the_docs() -> Callable[[dict[str, Any], list[Any]], list[float]]:
    """Return the function `raw_scores` of the page."""
    (block,) = re.findall(
        r"^```python\n(def raw_scores.*?)\n\n\n",
        _PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    walk: Callable[[dict[str, Any], list[Any]], list[float]] = namespace["raw_scores"]
    return walk
