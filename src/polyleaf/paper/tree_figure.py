"""The first trees of GBDT-SO and GBDT-MO, drawn side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from polyleaf.paper.results import Results
from polyleaf.paper.settings import GBDT_MO, GBDT_SO, TITLES

YEAST_FEATURES = ("mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc")
_CELL = 0.22
_LEVEL = 1.0


def first_trees(results: Results, path: Path) -> bool:
    """Draw them: questions in boxes, a leaf as one coloured cell per output it adds to."""
    record = results.of("first_trees", "yeast", f"{GBDT_SO} and {GBDT_MO}").get(0)
    if record is None:
        return False
    trees: list[Mapping[str, Any]] = list(record.result["trees"])
    rows = 1 + max(tree["row"] for tree in trees)
    columns = 1 + max(tree["column"] for tree in trees)
    largest = max(abs(value) for tree in trees for node in tree["nodes"] for value in node["values"]) or 1.0
    colours = ScalarMappable(TwoSlopeNorm(0.0, -largest, largest), "RdBu_r")

    figure = Figure(figsize=(4.6 * columns, 4.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for tree in trees:
        _draw(grid[tree["row"], tree["column"]], tree["title"], tree["nodes"], colours)
    figure.colorbar(colours, ax=grid, label="leaf value (log odds, learning rate applied)", shrink=0.6)
    figure.suptitle(
        f"First trees on {TITLES['yeast']}, depth 3: left where the answer is yes, rows in brackets, "
        "one cell of a leaf per output (1 at the top)"
    )
    figure.savefig(path, dpi=150)
    return True


def _draw(axes: Axes, title: str, nodes: Sequence[Mapping[str, Any]], colours: ScalarMappable) -> None:
    places = _places(nodes)
    for number, node in enumerate(nodes):
        x, y = places[number]
        for child, answer in zip(node["children"], ("yes", "no"), strict=False):
            below = places[child]
            axes.plot([x, below[0]], [y, below[1]], color="#999999", linewidth=1, zorder=1)
            middle = (0.5 * (x + below[0]), 0.5 * (y + below[1]))
            axes.text(*middle, answer, fontsize=7, color="#666666", ha="center", va="center", zorder=2)
        if node["children"]:
            question = f"{YEAST_FEATURES[node['feature']]} ≤ {node['threshold']:.3g}\n({node['rows']})"
            box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "#444444"}
            axes.text(x, y, question, fontsize=8, ha="center", va="center", bbox=box, zorder=3)
        else:
            _draw_leaf(axes, x, y, node, colours)
    axes.set_title(title, fontsize=10)
    axes.set_xlim(-0.7, max(x for x, _ in places) + 0.7)
    deepest = min(y for _, y in places)
    tallest = max((len(node["values"]) for node in nodes), default=1)
    axes.set_ylim(deepest - tallest * _CELL - 0.35, 0.4)
    axes.axis("off")


def _draw_leaf(axes: Axes, x: float, y: float, node: Mapping[str, Any], colours: ScalarMappable) -> None:
    axes.text(x, y + 0.03, f"({node['rows']})", fontsize=7, ha="center", va="bottom", zorder=4)
    for position, value in enumerate(node["values"]):
        corner = (x - 0.42, y - (position + 1) * _CELL)
        colour = colours.to_rgba(value)
        axes.add_patch(Rectangle(corner, 0.84, _CELL, facecolor=colour, edgecolor="white", zorder=3))
        dark = sum(colour[:3]) < 1.5
        axes.text(
            x,
            corner[1] + 0.5 * _CELL,
            f"{value:+.2f}",
            fontsize=6.5,
            ha="center",
            va="center",
            color="white" if dark else "black",
            zorder=4,
        )


def _places(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return x and y of the nodes: leaves side by side, a question above the middle of its children."""
    places = [(0.0, 0.0)] * len(nodes)
    next_leaf = 0

    def place(number: int, depth: int) -> float:
        nonlocal next_leaf
        children = nodes[number]["children"]
        if children:
            x = sum(place(child, depth + 1) for child in children) / len(children)
        else:
            x = float(next_leaf)
            next_leaf += 1
        places[number] = (x, -_LEVEL * depth)
        return x

    place(0, 0)
    return places
