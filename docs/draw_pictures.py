"""Draws the pictures of ``docs/pictures.md`` by running its examples: ``python docs/draw_pictures.py``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import matplotlib

DOCS = Path(__file__).parent


def main() -> None:
    """Run the examples of the page in the folder of its pictures."""
    matplotlib.use("Agg")
    page = (DOCS / "pictures.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    os.chdir(DOCS / "pictures")
    exec(compile(code, "pictures.md", "exec"), {})


if __name__ == "__main__":
    main()
