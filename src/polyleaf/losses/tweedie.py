"""Tweedie deviance: amounts that are often exactly 0."""

from polyleaf.losses.log_link import LogLink


class Tweedie(LogLink):
    """l(f, y) = exp((2 - p) f) / (2 - p) - y exp((1 - p) f) / (1 - p), 1 < p < 2; see `LogLink`."""

    name = "tweedie"
    default_metric = "tweedie"

    def __init__(self, n_outputs: int, power: float) -> None:
        super().__init__(n_outputs)
        self.power = power
