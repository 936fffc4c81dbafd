"""What a notebook shows of a fitted estimator: a few lines of HTML without a script."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.importance import importance
from polyleaf.params.table import EstimatorKind
from polyleaf.report.settings import changed_parameters, value_text

_CLASSES: dict[EstimatorKind, str] = {
    "regressor": "PolyleafRegressor",
    "classifier": "PolyleafClassifier",
    "mixed": "PolyleafMixed",
}
_TOP = 5
_MOST_NAMES = 6
_MOST_CHARACTERS = 40
# Colours of whoever shows it, in light and in dark; bars are seen on both.
_BOX = "display:inline-block;max-width:100%;font:13px/1.45 system-ui,sans-serif;padding:8px 12px;"
_BOX += "border:1px solid #8888;border-radius:6px"
_LINE = "display:flex;gap:8px;align-items:center"
_NAME = "flex:0 0 12em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


def compact_form(
    kind: EstimatorKind,
    names: NamedTrees,
    best_score: Mapping[str, Mapping[str, float]],
    params: Mapping[str, Any],
) -> str:
    """Return a fitted estimator in a few lines: kind, outputs, rounds, best scores, first features.

    Parameters
    ----------
    kind : {"regressor", "classifier", "mixed"}
        The estimator.
    names : NamedTrees
        The fitted model.
    best_score : mapping
        Metrics of the evaluation sets after the best round.
    params : mapping
        Parameters of the estimator.
    """
    forest, rounds = names.forest, names.model.best_iteration + 1
    facts = [("outputs", _outputs(names)), ("features", f"{forest.n_features:,}")]
    best = "" if rounds == forest.n_rounds else f", the best of them {rounds:,}"
    facts.append(("rounds", f"{forest.n_rounds:,}{best}"))
    for name, metrics in best_score.items():
        said = ", ".join(f"{metric} {value:.5g}" for metric, value in metrics.items())
        facts.append((name, said))
    changed = changed_parameters(params, kind)
    if changed:
        facts.append(("set", ", ".join(f"{name}={value_text(value)}" for name, value in changed.items())))
    lines = [
        f'<div style="{_LINE}"><span style="flex:0 0 6em;opacity:.7">{_text(name)}</span>'
        f"<span>{_text(value, 200)}</span></div>"
        for name, value in facts
    ]
    shares = importance(forest, "gain", rounds)
    bars = _bars(names, shares / (shares.sum() or 1.0))
    return f'<div style="{_BOX}"><b>{_CLASSES[kind]}</b> (fitted){"".join(lines)}{bars}</div>'


def _outputs(names: NamedTrees) -> str:
    first = ", ".join(_short(name) for name in names.outputs[:_MOST_NAMES])
    more = ", …" if len(names.outputs) > _MOST_NAMES else ""
    return f"{len(names.outputs):,} ({first}{more})"


def _bars(names: NamedTrees, shares: Any) -> str:
    first = [int(j) for j in np.argsort(-shares, kind="stable")[:_TOP] if shares[j] > 0]
    if not first:
        return ""
    most = shares[first[0]]
    lines = [
        f'<div style="{_LINE}"><span style="{_NAME}">{_text(names.features[j])}</span>'
        f'<span style="flex:0 0 10em"><span style="display:block;height:9px;border-radius:2px;'
        f'background:#2f7fb5;width:{100 * shares[j] / most:.1f}%"></span></span>'
        f"<span>{100 * shares[j]:.1f}%</span></div>"
        for j in first
    ]
    return f'<div style="opacity:.7;margin-top:4px">share in the gain</div>{"".join(lines)}'


def _short(text: object, most: int = _MOST_CHARACTERS) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _text(text: object, most: int = _MOST_CHARACTERS) -> str:
    return html.escape(_short(text, most))
