"""Tweedie deviance: amounts that are often exactly 0."""

from polyleaf.losses.log_link import LogLink


class Tweedie(LogLink):
    """l(f, y) = exp((2 - p) f) / (2 - p) - y exp((1 - p) f) / (1 - p), 1 < p < 2; see `LogLink`."""

    name = "tweedie"
    meaning = "amounts that are often 0, y >= 0; predictions are positive, too (`tweedie_power`)"
    parameters = ("tweedie_power",)
    default_metric = "tweedie"

    def __init__(self, n_outputs: int, tweedie_power: float = 1.5) -> None:
        super().__init__(n_outputs)
        self.power = float(tweedie_power)
