"""Fitted models in forms that other programs run."""
