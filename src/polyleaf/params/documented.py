"""The table of parameters in the docstrings and constructors of the estimators."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from polyleaf.params.table import EstimatorKind, parameters_of
from polyleaf.params.validation import unknown_parameter

_Class = TypeVar("_Class", bound=type)


def parameters_section(kind: EstimatorKind) -> str:
    """Return the numpydoc "Parameters" section of one estimator."""
    lines = ["Parameters", "----------"]
    for row in parameters_of(kind).values():
        default = f'"{row.default}"' if isinstance(row.default, str) else repr(row.default)
        lines.append(f"{row.name} : {row.rule.allowed}, default={default}")
        indent = "    "
        lines.extend(
            textwrap.wrap(
                row.described(), 105, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def documented(kind: EstimatorKind) -> Callable[[_Class], _Class]:
    """Return a class decorator that puts the table in the place of ``{parameters}`` in the docstring.

    The constructor then says of a name that is not in the table what was meant by it.
    """

    def fill(cls: _Class) -> _Class:
        _explain_unknown_names(cls, kind)
        if cls.__doc__ is not None:  # python -OO removes docstrings
            section = textwrap.indent(parameters_section(kind), "    ", lambda line: bool(line.strip()))
            cls.__doc__ = cls.__doc__.replace("    {parameters}", section)
        return cls

    return fill


def _explain_unknown_names(cls: Any, kind: EstimatorKind) -> None:
    plain = cls.__init__
    allowed = parameters_of(kind)

    @wraps(plain)  # scikit-learn and documentation read its signature
    def init(self: object, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in allowed:
                raise TypeError(f"{cls.__name__}: {unknown_parameter(name, kind, allowed)}")
        plain(self, *args, **kwargs)

    cls.__init__ = init
