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

from polyleaf.paper.first_trees import YEAST_CLASSES
from polyleaf.paper.results import Results
from polyleaf.paper.settings import GBDT_MO, GBDT_SO

YEAST_FEATURES = ("mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc")
# In units of the distance between two levels of a tree; leaves stand 1 apart.
_CELL_WIDTH, _CELL_HEIGHT = 0.92, 0.2
_MOST_LEAVES = 6


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

    figure = Figure(figsize=(5.2 * columns, 4.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for tree in trees:
        _draw(grid[tree["row"], tree["column"]], tree["title"], tree["nodes"], colours)
    figure.colorbar(colours, ax=grid, label="leaf value (score of the class)", shrink=0.6)
    figure.suptitle("Rows of a node in brackets; a leaf has a cell for each class it adds to.", fontsize=10)
    figure.savefig(path, dpi=150)
    return True


def _draw(axes: Axes, title: str, nodes: Sequence[Mapping[str, Any]], colours: ScalarMappable) -> None:
    places = _places(nodes)
    for number, node in enumerate(nodes):
        x, y = places[number]
        for child, answer in zip(node["children"], ("yes", "no"), strict=False):
            below = places[child]
            axes.plot([x, below[0]], [y, below[1]], color="#999999", linewidth=1, zorder=1)
            _write(axes, 0.5 * (x + below[0]), 0.5 * (y + below[1]), answer, colour="#666666", box="none")
        if node["children"]:
            question = f"{YEAST_FEATURES[node['feature']]} ≤ {node['threshold']:.3g}\n({node['rows']})"
            _write(axes, x, y, question, colour="black", box="#444444")
        else:
            _draw_leaf(axes, x, y, node, colours)
    axes.set_title(title, fontsize=11)
    # The same frame for all trees: cells and levels have one size in the whole figure.
    width = max(_MOST_LEAVES, 1 + max(x for x, _ in places))
    middle = 0.5 * max(x for x, _ in places)
    axes.set_xlim(middle - 0.5 * width, middle + 0.5 * width)
    axes.set_ylim(-3.2 - len(YEAST_CLASSES) * _CELL_HEIGHT, 0.3)
    axes.axis("off")


def _write(axes: Axes, x: float, y: float, text: str, *, colour: str, box: str) -> None:
    frame = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": box}
    axes.text(x, y, text, fontsize=8, color=colour, ha="center", va="center", bbox=frame, zorder=3)


def _draw_leaf(axes: Axes, x: float, y: float, node: Mapping[str, Any], colours: ScalarMappable) -> None:
    _write(axes, x, y, f"({node['rows']})", colour="black", box="none")
    for position, (output, value) in enumerate(zip(node["outputs"], node["values"], strict=True)):
        bottom = y - 0.12 - (position + 1) * _CELL_HEIGHT
        colour = colours.to_rgba(value)
        corner = (x - 0.5 * _CELL_WIDTH, bottom)
        axes.add_patch(
            Rectangle(corner, _CELL_WIDTH, _CELL_HEIGHT, facecolor=colour, edgecolor="white", zorder=3)
        )
        axes.text(
            x,
            bottom + 0.45 * _CELL_HEIGHT,
            f"{YEAST_CLASSES[output]} {value:+.2f}",
            fontsize=7,
            ha="center",
            va="center",
            color="white" if sum(colour[:3]) < 1.5 else "black",
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
        places[number] = (x, -float(depth))
        return x

    place(0, 0)
    return places
