"""The CUDA sources, which are shipped as text."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def source(file: str) -> str:
    """Return the CUDA source of one of the files in ``cuda/`` with all that it includes, each once."""
    done: set[str] = set()
    folders = [files("polyleaf.gpu") / "cuda", files("polyleaf")]  # the latter for "rules/..."

    def text_of(name: str) -> str:
        if name in done:
            return ""
        done.add(name)
        found = next(folder / name for folder in folders if (folder / name).is_file())
        text = found.read_text(encoding="utf-8").replace("#pragma once\n", "")
        return re.sub(r'^#include "(.+)"\n', lambda match: text_of(match[1]), text, flags=re.MULTILINE)

    return text_of(file)
