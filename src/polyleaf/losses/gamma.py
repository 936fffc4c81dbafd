"""Gamma deviance: positive amounts whose deviation grows with them."""

from polyleaf.losses.log_link import LogLink


class Gamma(LogLink):
    """l(f, y) = f + y exp(-f): gradient 1 - y exp(-f), Hessian y exp(-f); see `LogLink`."""

    name = "gamma"
    meaning = "amounts, y > 0; predictions are exponentials of raw scores, always positive"
    default_metric = "gamma"
    power = 2.0
