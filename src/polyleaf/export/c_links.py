"""What is predicted from raw scores, in C: values and probabilities, without a mathematical library."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from polyleaf.export.served_model import MOST_EXPONENT, OutputGroup, ServedModel

_EXPONENTIAL = """\
/* e^x to about 1e-15, of x cut off at -700 and 700. */
static double ${prefix}_exp(double x) {
  static const double inverse_factorial[13] = {
    1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40320.0,
    1.0 / 362880.0, 1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0
  };
  int32_t n;
  int j;
  uint64_t bits;
  double rest, sum, power;
  x = x < -${most} ? -${most} : x > ${most} ? ${most} : x;
  n = (int32_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
  rest = (x - (double)n * 6.93147180369123816490e-01) - (double)n * 1.90821492927058770002e-10;
  sum = inverse_factorial[12];
  for (j = 11; j >= 0; --j) sum = sum * rest + inverse_factorial[j];
  bits = (uint64_t)(1023 + n) << 52; /* of 2^n */
  memcpy(&power, &bits, sizeof power);
  return sum * power;
}

"""

_FUNCTIONS = {
    "exponential": """\
static void ${prefix}_exponential(double *score, uint32_t n) {
  uint32_t j;
  for (j = 0u; j < n; ++j) score[j] = ${prefix}_exp(score[j]);
}

""",
    "logistic": """\
static void ${prefix}_logistic(double *score, uint32_t n) {
  uint32_t j;
  for (j = 0u; j < n; ++j) score[j] = 1.0 / (1.0 + ${prefix}_exp(-score[j]));
}

""",
    "softmax": """\
static void ${prefix}_softmax(double *score, uint32_t n) {
  uint32_t j;
  double largest = score[0], sum = 0.0;
  for (j = 1u; j < n; ++j) largest = score[j] > largest ? score[j] : largest;
  for (j = 0u; j < n; ++j) {
    score[j] = ${prefix}_exp(score[j] - largest);
    sum += score[j];
  }
  for (j = 0u; j < n; ++j) score[j] /= sum;
}

""",
    "shares": """\
/* Scores on the scale of labels, cut off there. */
static void ${prefix}_shares(double *score, uint32_t n) {
  uint32_t j;
  for (j = 0u; j < n; ++j) score[j] = score[j] < 0.0 ? 0.0 : score[j] > 1.0 ? 1.0 : score[j];
}

""",
    "quantiles": """\
/* The levels of each target in ascending order. */
static void ${prefix}_quantiles(double *score, uint32_t n, uint32_t levels) {
  uint32_t first, i, j;
  for (first = 0u; first < n; first += levels)
    for (i = first + 1u; i < first + levels; ++i) {
      const double moved = score[i];
      for (j = i; j > first && score[j - 1u] > moved; --j) score[j] = score[j - 1u];
      score[j] = moved;
    }
}

""",
}
_WITH_EXPONENTIAL = ("exponential", "logistic", "softmax")


@dataclass(frozen=True)
class PredictedColumns:
    """Where ``PREFIX_predict`` writes what it makes of the raw scores of a group.

    Attributes
    ----------
    group : OutputGroup
        The group.
    first : int
        The first of its columns.
    names : tuple of str
        What its columns are: those of ``predict_proba``, of numbers those of ``predict``.
    """

    group: OutputGroup
    first: int
    names: tuple[str, ...]

    @property
    def function(self) -> str | None:
        """The function of C that makes predictions of scores; None: they are the predictions."""
        group = self.group
        if group.link == "identity":
            return "shares" if group.kind == "multilabel" else None
        if group.link == "quantiles":
            return "quantiles" if group.n_levels > 1 else None
        return group.link


def predicted_columns(served: ServedModel) -> list[PredictedColumns]:
    """Return the columns of ``PREFIX_predict``, group after group in the order of the raw scores."""
    found, first = [], 0
    for group in served.groups:
        names = group.probability_columns or group.columns
        found.append(PredictedColumns(group, first, names))
        first += len(names)
    return found


def link_source(columns: list[PredictedColumns], prefix: str) -> str:
    """Return the C that defines ``PREFIX_predict``, and the functions that it calls."""
    used = {one.function for one in columns}
    source = _EXPONENTIAL if not used.isdisjoint(_WITH_EXPONENTIAL) else ""
    source += "".join(text for name, text in _FUNCTIONS.items() if name in used)
    # From the last group on: two classes have one score and two columns, so that no column lies before its
    # score.
    calls = "".join(_calls(one, prefix) for one in reversed(columns))
    source += "void ${prefix}_predict(const double *x, double *out) {\n  ${prefix}_raw(x, out);\n${calls}}\n"
    return Template(source).substitute(prefix=prefix, most=repr(MOST_EXPONENT), calls=calls)


def _calls(columns: PredictedColumns, prefix: str) -> str:
    group, first = columns.group, columns.first
    lines = []
    if first != group.first:
        lines.append(f"memmove(out + {first}, out + {group.first}, {group.n_outputs} * sizeof *out);")
    if columns.function is not None:
        levels = f", {group.n_levels}u" if columns.function == "quantiles" else ""
        lines.append(f"{prefix}_{columns.function}(out + {first}, {group.n_outputs}u{levels});")
    if group.kind == "binary":
        lines += [f"out[{first + 1}] = out[{first}];", f"out[{first}] = 1.0 - out[{first + 1}];"]
    return "".join(f"  {line}\n" for line in lines)
