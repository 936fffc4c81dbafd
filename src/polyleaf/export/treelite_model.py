"""A fitted model as one of treelite, which other servers of trees load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.export.served_model import OutputGroup, ServedModel, served_model
from polyleaf.params.combinations import check
from polyleaf.params.rules import Boolean
from polyleaf.params.situation import Situation


@dataclass(frozen=True)
class _Form:
    """What treelite is told about the outputs.

    Attributes
    ----------
    task : str
        Treelite's word for what is predicted.
    postprocessor : str
        Its word for the link.
    first, n_outputs : int
        Which of the raw scores there are.
    n_classes : int
        Classes of the one target, or 1: each output is a target.
    """

    task: str
    postprocessor: str
    first: int
    n_outputs: int
    n_classes: int = 1

    @property
    def n_targets(self) -> int:
        return self.n_outputs // self.n_classes


_FORMS = {
    ("regression", "identity"): ("kRegressor", "identity"),
    ("regression", "quantiles"): ("kRegressor", "identity"),  # of one level
    ("regression", "exponential"): ("kRegressor", "exponential"),
    ("binary", "logistic"): ("kBinaryClf", "sigmoid"),
    ("multilabel", "logistic"): ("kBinaryClf", "sigmoid"),
    ("multiclass", "softmax"): ("kMultiClf", "softmax"),
}


def to_treelite(model: Any, *, group: str | None = None, raw: bool = False) -> Any:
    """Return a fitted model as a `treelite.Model`.

    Thresholds and leaf values are float64, splits ``<=``, and every leaf is a vector of all outputs, of shape
    (1, classes) for classes and (targets, 1) for targets or labels; with one output, or one output per tree,
    a number. Sparse leaves become such vectors, too. Categorical columns are tested by the codes that
    ``attributes`` of the model lists (see `treelite.Model.dump_as_json`), together with the names of features
    and outputs. Two classes have one prediction, the probability of the second.

    Parameters
    ----------
    model : fitted PolyleafRegressor, PolyleafClassifier or PolyleafMixed
        Its rounds up to the best one are exported; ``model[:k]`` has fewer.
    group : str, default=None
        Of a mixed model: the group of targets to export, as treelite has one link for all outputs. Its trees
        are the same for all groups.
    raw : bool, default=False
        Whether to export raw scores, each as a target without a link: the way for what treelite cannot say,
        such as several quantiles in order.

    Returns
    -------
    treelite.Model

    Raises
    ------
    ImportError
        When treelite is not installed.
    TypeError, NotFittedError
        For anything but a fitted estimator of polyleaf.
    ValueError
        For a link that treelite does not have, several groups of which none is named, or an unknown group.
    """
    Boolean().check("raw", raw)
    served = served_model(model)
    form = _form_of(served, group, bool(raw))
    try:
        builder_module = import_module("treelite.model_builder")
    except ImportError as error:
        raise ImportError(
            'to_treelite() needs treelite, which is not installed: pip install "polyleaf[treelite]".'
        ) from error
    return _Building(served, form).built_by(builder_module)


def _form_of(served: ServedModel, group: str | None, raw: bool) -> _Form:
    """Return what treelite is told, or raise where it cannot be told all."""
    groups = served.groups if group is None else (_group_called(group, served),)
    first, n_outputs = groups[0].first, sum(one.n_outputs for one in groups)
    if raw:
        return _Form("kRegressor", "identity", first, n_outputs)
    one = groups[0]
    at_odds = {
        "groups of targets": len(groups) > 1,
        "sorted quantiles": len(groups) == 1 and one.n_levels > 1,
        "cut-off shares": len(groups) == 1 and (one.kind, one.link) == ("multilabel", "identity"),
    }
    names = ", ".join(repr(one.name) for one in served.groups)
    asked = frozenset({"treelite", *(what for what, is_so in at_odds.items() if is_so)})
    check(Situation(asked=asked, words={"group_names": names}))
    task, postprocessor = _FORMS[one.kind, one.link]
    n_classes = n_outputs if one.kind == "multiclass" else 1
    return _Form(task, postprocessor, first, n_outputs, n_classes)


def _group_called(name: object, served: ServedModel) -> OutputGroup:
    for one in served.groups:
        if one.name == name:
            return one
    known = ", ".join(repr(one.name) for one in served.groups)
    raise ValueError(f"the model has no group {name!r:.80}; it has {known}.")


class _Building:
    """The way of a model's trees, node by node, to treelite's builder."""

    def __init__(self, served: ServedModel, form: _Form) -> None:
        self._served, self._form = served, form
        forest = served.forest
        self._outputs = slice(form.first, form.first + form.n_outputs)
        # Trees of one output say whose they are; all others have leaves of all outputs.
        self._one_output_trees = (
            forest.n_outputs > 1 and forest.trees_per_round > 1 and not served.has_sparse_leaves
        )
        trees = np.arange(forest.n_trees)
        if self._one_output_trees:
            own = (forest.tree_output >= self._outputs.start) & (forest.tree_output < self._outputs.stop)
            trees = trees[own]
        self._trees: list[int] = trees.tolist()
        self._by_category = served.splits_by_category
        # Infinity, where only missing values go right, is no number of JSON, which treelite writes.
        self._threshold = np.minimum(forest.threshold, np.finfo(np.float64).max)

    def built_by(self, module: Any) -> Any:
        """Return the model that the module `treelite.model_builder` makes of it."""
        form, forest = self._form, self._served.forest
        is_number = self._one_output_trees or form.n_outputs == 1
        target, of_class = self._whose()
        builder = module.ModelBuilder(
            threshold_type="float64",
            leaf_output_type="float64",
            metadata=module.Metadata(
                num_feature=forest.n_features,
                task_type=form.task,
                average_tree_output=False,
                num_target=form.n_targets,
                num_class=[form.n_classes] * form.n_targets,
                leaf_vector_shape=(1, 1) if is_number else (form.n_targets, form.n_classes),
            ),
            tree_annotation=module.TreeAnnotation(
                num_tree=len(self._trees), target_id=target, class_id=of_class
            ),
            postprocessor=module.PostProcessorFunc(name=form.postprocessor),
            base_scores=forest.base_score[self._outputs].tolist(),
            attributes={"polyleaf": self._attributes()},
        )
        for tree in self._trees:
            builder.start_tree()
            self._add_nodes(builder, tree)
            builder.end_tree()
        return builder.commit()

    def _whose(self) -> tuple[list[int], list[int]]:
        """Return the target and the class of each tree, -1 for all of them."""
        form, n_trees = self._form, len(self._trees)
        if not self._one_output_trees:
            target = -1 if form.n_targets > 1 else 0
            return [target] * n_trees, [-1 if form.n_classes > 1 else 0] * n_trees
        output = (self._served.forest.tree_output[self._trees] - form.first).tolist()
        none = [0] * n_trees
        return (none, output) if form.n_classes > 1 else (output, none)

    def _add_nodes(self, builder: Any, tree: int) -> None:
        forest = self._served.forest
        begin, end = forest.node_begin[tree : tree + 2].tolist()
        nodes = slice(begin, end)
        leaves = self._leaf_values(tree)
        columns = (forest.feature, self._threshold, forest.left, forest.missing_left, self._by_category)
        statistics = (forest.gain, forest.cover, forest.count)
        splits = zip(*(column[nodes].tolist() for column in columns), strict=True)
        known = zip(*(column[nodes].tolist() for column in statistics), strict=True)
        for number, (split, (gain, cover, count)) in enumerate(zip(splits, known, strict=True)):
            feature, threshold, left, missing_left, by_category = split
            builder.start_node(number)
            if left < 0:
                builder.leaf(next(leaves))
            else:
                sides = {"left_child_key": left, "right_child_key": left + 1}
                if by_category:
                    builder.categorical_test(
                        feature,
                        default_left=bool(missing_left),
                        category_list=self._served.category_set(begin + number).tolist(),
                        # The set holds those that go where missing values do not.
                        category_list_right_child=bool(missing_left),
                        **sides,
                    )
                else:
                    builder.numerical_test(
                        feature, threshold, default_left=bool(missing_left), opname="<=", **sides
                    )
                builder.gain(gain)
            builder.sum_hess(cover)
            builder.data_count(count)
            builder.end_node()

    def _leaf_values(self, tree: int) -> Iterator[float | list[float]]:
        """Yield the values of a tree's leaves, in the order of its nodes; with one output, a number."""
        forest = self._served.forest
        begin, end = forest.node_begin[tree : tree + 2].tolist()
        first = forest.value_begin[begin:end]
        first = first[first >= 0]
        output, width = int(forest.tree_output[tree]), int(forest.tree_width[tree])
        for place in first.tolist():
            own = forest.values[place : place + width].astype(np.float64)
            if self._served.has_sparse_leaves:
                dense: FloatArray = np.zeros(forest.n_outputs)
                np.add.at(dense, forest.value_output[place : place + width], own)
                wanted = (dense * forest.unit)[self._outputs]
            elif self._one_output_trees:
                wanted = own * forest.unit[output]
            else:
                wanted = (own * forest.unit)[self._outputs]
            values: list[float] = wanted.tolist()
            yield values if len(values) > 1 else values[0]

    def _attributes(self) -> dict[str, Any]:
        """Return what the model's file is to say of names, codes and classes."""
        served, form = self._served, self._form
        groups = [one for one in served.groups if form.first <= one.first < form.first + form.n_outputs]
        return {
            "version": version("polyleaf"),
            "feature_names": served.feature_names,
            "categories": {str(column): list(values) for column, values in served.categories.items()},
            "groups": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "link": one.link,
                    "first_output": one.first - form.first,
                    "n_outputs": one.n_outputs,
                    "columns": list(one.probability_columns or one.columns),
                }
                for one in groups
            ],
        }
