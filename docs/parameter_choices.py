"""An extension of griffe, which reads the docstrings for the API reference: sets of choices are left alone.

A type such as ``{"p(1-p)", "abs(p-y)"}, callable or None`` is numpydoc's way to list choices. griffe would
take its members for Python expressions, and its first member for the default. In words it stays what it is.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension

_CHOICES = re.compile(r"^(\w+ : )\{(.+)\}", flags=re.MULTILINE)


class ParameterChoices(Extension):
    """Writes ``{"a", "b"}`` as ``one of "a", "b"`` in the docstrings of classes."""

    def on_class_instance(self, *, cls: Class, **kwargs: Any) -> None:
        """Change the docstring of a class before it is parsed."""
        if cls.docstring is not None:
            cls.docstring.value = _CHOICES.sub(r"\1one of \2", cls.docstring.value)
