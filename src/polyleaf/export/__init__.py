"""Fitted models in forms that other programs run.

What a form needs beside polyleaf is imported when something is exported.
"""

from polyleaf.export.onnx_file import to_onnx

__all__ = ["to_onnx"]
