"""Fitted models in forms that other programs run."""

from polyleaf.export.to_c import to_c
from polyleaf.export.to_treelite import to_treelite

__all__ = ["to_c", "to_treelite"]
