"""Losses: base score, gradient and Hessian of each round, and the way from raw scores to predictions."""

from polyleaf.losses.base import Loss
from polyleaf.losses.details import LossDetails
from polyleaf.losses.registry import LOSSES, make_link, make_loss

__all__ = ["LOSSES", "Loss", "LossDetails", "make_link", "make_loss"]
