"""Fitted models in forms that other programs run.

What a form needs beside polyleaf is imported when something is exported.
"""

from polyleaf.export.c_file import to_c
from polyleaf.export.onnx_file import to_onnx
from polyleaf.export.treelite_model import to_treelite

__all__ = ["to_c", "to_onnx", "to_treelite"]
