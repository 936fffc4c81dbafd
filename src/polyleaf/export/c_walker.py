"""The forest of a model in C: its arrays, and the walk of a row from the root of each tree to a leaf."""

from __future__ import annotations

from string import Template

import numpy as np

from polyleaf.export.c_text import array_text, double_items, float_items, unsigned_items
from polyleaf.export.served_model import ServedModel

# What the numbers of nodes and values in C can count.
_MOST_NUMBERS = 2**30

_TYPES = """\
/* Of a split: values of at most `threshold` go left; of one by categories, it is the number of its set.
 * `step`: 4 times the number of nodes to the left child, which the right one follows; and 1 where missing
 * values go left, and 2 where the split is by categories. Of a leaf it is 0, and its values begin at
 * `feature`. */
typedef struct {
  double threshold;
  uint32_t feature;
  uint32_t step;
} ${prefix}_node;

/* Its first node, the first output it adds to, and the values of each of its leaves. */
typedef struct {
  uint32_t root;
  uint32_t output;
  uint32_t width;
} ${prefix}_tree;

"""

_IN_SET = """\
/* Whether a code is in the set of a split; what is no whole number, NaN among them, is in none. */
static int ${prefix}_in_set(uint32_t set, double value) {
  const uint32_t begin = ${prefix}_set_begin[set];
  const uint32_t words = ${prefix}_set_begin[set + 1u] - begin;
  uint32_t code;
  if (!(value >= 0.0 && value < 32.0 * (double)words)) return 0;
  code = (uint32_t)value;
  if ((double)code != value) return 0;
  return (int)((${prefix}_set_words[begin + code / 32u] >> (code % 32u)) & 1u);
}

"""

_BY_THRESHOLD = """\
    right = value > split->threshold || (value != value && (split->step & 1u) == 0u);
"""

_BY_EITHER = """\
    if ((split->step & 2u) != 0u) /* those that are not in the set go where missing values go */
      right = ${prefix}_in_set((uint32_t)split->threshold, value) == (int)(split->step & 1u);
    else
      right = value > split->threshold || (value != value && (split->step & 1u) == 0u);
"""

_LEAF = """\
/* Where the values of the leaf begin that a row comes to. */
static uint32_t ${prefix}_leaf(uint32_t root, const double *x) {
  const ${prefix}_node *split = ${prefix}_nodes + root;
  while (split->step != 0u) {
    const double value = x[split->feature];
    int right;
${side}    split += (split->step >> 2) + (right ? 1u : 0u);
  }
  return split->feature;
}

"""

_DENSE = """\
    double *score = out + ${prefix}_trees[tree].output;
    const float *value = ${prefix}_values + ${prefix}_leaf(${prefix}_trees[tree].root, x);
    for (j = 0u; j < ${prefix}_trees[tree].width; ++j) score[j] += (double)value[j];
"""

_SPARSE = """\
    const uint32_t begin = ${prefix}_leaf(${prefix}_trees[tree].root, x);
    const uint32_t end = begin + ${prefix}_trees[tree].width;
    for (j = begin; j < end; ++j) out[${prefix}_value_output[j]] += (double)${prefix}_values[j];
"""


def forest_source(served: ServedModel, prefix: str) -> list[str]:
    """Return the pieces of C that define the arrays of a forest and ``PREFIX_raw``.

    Raises
    ------
    ValueError
        When there are more nodes or leaf values than the numbers of the file can count.
    """
    forest = served.forest
    for count, what in ((len(forest.feature), "nodes"), (len(forest.values), "leaf values")):
        if count > _MOST_NUMBERS:
            raise ValueError(f"the model has {count:,} {what}; C source can have {_MOST_NUMBERS:,} at most.")
    pieces = [array_text(f"double {prefix}_base", double_items(served.base_in_units())), "\n"]
    has_units = bool((forest.unit != 1).any())
    if has_units:
        pieces += [array_text(f"double {prefix}_unit", double_items(forest.unit)), "\n"]
    if forest.n_trees > 0:
        pieces += [Template(_TYPES).substitute(prefix=prefix), *_arrays(served, prefix)]
        has_sets = len(forest.category_bits) > 0
        side = Template(_BY_EITHER if has_sets else _BY_THRESHOLD).substitute(prefix=prefix)
        pieces.append(Template((_IN_SET if has_sets else "") + _LEAF).substitute(prefix=prefix, side=side))
    pieces.append(_raw_source(served, prefix, has_units))
    return pieces


def _arrays(served: ServedModel, prefix: str) -> list[str]:
    forest, by_category = served.forest, served.splits_by_category
    is_leaf = forest.left < 0
    position = np.arange(len(forest.left)) - np.repeat(forest.node_begin[:-1], np.diff(forest.node_begin))
    step = 4 * (forest.left - position) + forest.missing_left.astype(bool) + 2 * by_category
    step = np.where(is_leaf, 0, step)
    feature = np.where(is_leaf, forest.value_begin, forest.feature)
    set_number = np.cumsum(by_category) - 1
    threshold = np.where(by_category, set_number, np.where(is_leaf, 0.0, forest.threshold))
    nodes = [
        f"{{{number},{column}u,{steps}u}}"
        for number, column, steps in zip(
            double_items(threshold), feature.tolist(), step.tolist(), strict=True
        )
    ]
    trees = [
        f"{{{root}u,{output}u,{width}u}}"
        for root, output, width in zip(
            forest.node_begin[:-1].tolist(),
            forest.tree_output.tolist(),
            forest.tree_width.tolist(),
            strict=True,
        )
    ]
    pieces = [
        array_text(f"{prefix}_node {prefix}_nodes", nodes),
        array_text(f"{prefix}_tree {prefix}_trees", trees),
        array_text(f"float {prefix}_values", float_items(forest.values)),
    ]
    if served.has_sparse_leaves:
        pieces.append(array_text(f"uint32_t {prefix}_value_output", unsigned_items(forest.value_output)))
    if len(forest.category_bits) > 0:
        begins = np.append(forest.category_begin[:-1][by_category], len(forest.category_bits))
        pieces += [
            array_text(f"uint32_t {prefix}_set_begin", unsigned_items(begins)),
            array_text(f"uint32_t {prefix}_set_words", unsigned_items(forest.category_bits)),
        ]
    return [*pieces, "\n"]


def _raw_source(served: ServedModel, prefix: str, has_units: bool) -> str:
    has_trees = served.forest.n_trees > 0
    lines = [f"void {prefix}_raw(const double *x, double *out) {{", f"  uint32_t {'tree, ' * has_trees}j;"]
    if not has_trees:
        lines.append("  (void)x;")
    lines.append(f"  for (j = 0u; j < {served.forest.n_outputs}u; ++j) out[j] = {prefix}_base[j];")
    if has_trees:
        body = Template(_SPARSE if served.has_sparse_leaves else _DENSE).substitute(prefix=prefix)
        lines += [f"  for (tree = 0u; tree < {served.forest.n_trees}u; ++tree) {{", body.rstrip("\n"), "  }"]
    if has_units:
        lines.append(f"  for (j = 0u; j < {served.forest.n_outputs}u; ++j) out[j] *= {prefix}_unit[j];")
    return "\n".join([*lines, "}", ""])
