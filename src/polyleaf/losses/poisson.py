"""Poisson deviance: counts, and rates with the exposure as weight."""

from polyleaf.losses.log_link import LogLink


class Poisson(LogLink):
    """l(f, y) = exp(f) - y f: gradient exp(f) - y, Hessian exp(f); see `LogLink`."""

    name = "poisson"
    meaning = "counts, y >= 0; predictions are exponentials of raw scores, always positive"
    default_metric = "poisson"
    power = 1.0
