"""Fitted models in forms that other programs run."""

from polyleaf.export.c_file import to_c
from polyleaf.export.treelite_model import to_treelite

__all__ = ["to_c", "to_treelite"]
