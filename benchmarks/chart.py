"""Draw the README's picture: seconds per round of every system on every work, relative to polyleaf.

    python benchmarks/chart.py
    python benchmarks/chart.py --results benchmarks/results.md --out docs/headline.png

The figures come from the table "Seconds per round" of a report that speed.py wrote; any systems will do.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

HERE = Path(__file__).resolve().parent
OURS = "polyleaf"
HEADING = "## Seconds per round"
TITLE = "Seconds per boosting round, relative to polyleaf (lower is faster)"

# "0.0845", "0.271 (3.21x)", "0.271 (-)"; the last column's "2.64x" is none.
CELL = re.compile(r"(?P<seconds>\d[\d.]*(?:e[+-]?\d+)?)(?: \((?:(?P<ratio>[\d.]+)x|-)\))?")
SHAPE = re.compile(r"(?P<rows>[\d,]+) x (?P<features>\d+) -> (?P<outputs>\d+)")

# Told apart by those who do not tell red from green; the markers help in grey. Blue is polyleaf's alone.
OUR_STYLES = [("#0072b2", "o"), ("#56b4e9", "o"), ("#004166", "o")]
PEER_STYLES = [("#e69f00", "s"), ("#d55e00", "D"), ("#009e73", "^"), ("#cc79a7", "v"), ("#7f7f7f", "P")]

WIDTH = 6.0  # inches: 900 pixels
LANE = 0.13  # inches for one system on one work
DPI = 150


@dataclass(frozen=True)
class WorkTimes:
    """Seconds per round on one work, relative to polyleaf's; a system without figures is left out."""

    name: str
    shape: str  # rows x features -> outputs; empty where the report does not say
    relative: dict[str, float]
    our_seconds: float


def main() -> None:
    options = parse_arguments()
    try:
        works = read(options.results.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"chart.py: cannot draw {options.results}: {error}") from error
    options.out.parent.mkdir(parents=True, exist_ok=True)
    draw(works, options.out)


def read(text: str) -> list[WorkTimes]:
    """Read the table of seconds per round.

    Parameters
    ----------
    text : str
        The Markdown that speed.py wrote.

    Returns
    -------
    list of WorkTimes
        In the order of the table, without works that polyleaf has no figures for.

    Raises
    ------
    ValueError
        If the table, its column of polyleaf or figures in that column are missing.
    """
    rows = [
        [cell.strip(" *") for cell in line.strip().strip("|").split("|")]
        for line in section(text, HEADING)
        if line.lstrip().startswith("|")
    ]
    if len(rows) < 3:
        raise ValueError(f'it has no table under the heading "{HEADING}".')
    header, _rule, *body = rows
    if OURS not in header:
        raise ValueError(f'the table under "{HEADING}" has no column "{OURS}".')
    works = []
    for name, *cells in body:
        if len(cells) != len(header) - 1:
            raise ValueError(
                f'the line "{name}" of the table under "{HEADING}" and its head differ in length.'
            )
        found = {
            system: match
            for system, cell in zip(header[1:], cells, strict=True)
            if (match := CELL.fullmatch(cell)) is not None
        }
        if OURS in found:
            works.append(WorkTimes(name, shape(text, name), relative(found), float(found[OURS]["seconds"])))
    if not works:
        raise ValueError(f'the column "{OURS}" of the table under "{HEADING}" has no figures.')
    return works


def section(text: str, heading: str) -> list[str]:
    """Return the lines between a heading and the next one; none where it is not there."""
    lines = text.splitlines()
    if heading not in lines:
        return []
    start = lines.index(heading) + 1
    end = next((i for i in range(start, len(lines)) if lines[i].startswith("#")), len(lines))
    return lines[start:end]


def shape(text: str, work: str) -> str:
    """Return what the work's own section says of its size."""
    match = SHAPE.search("\n".join(section(text, f"## {work}")))
    return f"{match['rows']} × {match['features']} → {match['outputs']}" if match else ""


def relative(found: dict[str, re.Match[str]]) -> dict[str, float]:
    """Take the ratios in brackets: they come from figures before rounding. Divide where there is none."""
    ours = float(found[OURS]["seconds"])
    return {
        system: float(match["ratio"]) if match["ratio"] else float(match["seconds"]) / ours
        for system, match in found.items()
    }


def draw(works: list[WorkTimes], path: Path) -> None:
    """Draw a band for each work with a lane for each system: a mark at its time, a line from polyleaf's."""
    systems = list(dict.fromkeys(system for work in works for system in work.relative))
    styles = styles_of(systems)
    lanes = [len(work.relative) + 1 for work in works]  # one between the works stays empty
    tops = [sum(lanes[:number]) for number in range(len(works))]
    figure = Figure(figsize=(WIDTH, 1.3 + LANE * sum(lanes)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.axvline(1, color=styles[OURS][0], linewidth=1.6, zorder=2)
    for number, (work, top) in enumerate(zip(works, tops, strict=True)):
        if number % 2 == 0:
            axes.axhspan(top - 1, top + lanes[number] - 1, color="#f3f4f6", linewidth=0, zorder=0)
        for lane, (system, value) in enumerate(work.relative.items()):
            label = f"{value:.3g}×" + (f" = {work.our_seconds:g} s" if system == OURS else "")
            mark(axes, value, label, top + lane, styles[system], system.startswith(OURS))
    axes.set_ylim(sum(lanes) - 1, -1)
    axes.set_xlim(*limits([value for work in works for value in work.relative.values()]))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.tick_params(axis="x", labelsize=8, length=3)
    centres = [top + len(work.relative) / 2 - 0.5 for work, top in zip(works, tops, strict=True)]
    axes.set_yticks(centres, [f"{work.name}\n{work.shape}".strip() for work in works], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.35, zorder=1)
    axes.spines[["top", "right", "left"]].set_visible(False)
    legend = figure.legend(
        *legend_entries(axes, systems, styles),
        loc="outside lower center",
        ncols=min(3, len(systems)),
        fontsize=8,
        frameon=False,
    )
    for entry in legend.get_texts():
        if entry.get_text() == OURS:
            entry.set_fontweight("bold")
    figure.suptitle(TITLE, fontsize=9.5, fontweight="bold")
    figure.savefig(path, dpi=DPI)


def styles_of(systems: list[str]) -> dict[str, tuple[str, str]]:
    """Give each system a colour and a marker, polyleaf's variants from colours of their own."""
    ours, peers = cycle(OUR_STYLES), cycle(PEER_STYLES)
    # polyleaf itself has the first colour wherever its column stands.
    return {OURS: next(ours)} | {
        system: next(ours if system.startswith(OURS) else peers) for system in systems if system != OURS
    }


def limits(values: list[float]) -> tuple[float, float]:
    """Return the ends of the axis, with room for the numbers beside the outermost marks."""
    low, high = min(values), max(*values, 2.0)
    share = high / low
    return low / share ** (0.14 if low < 1 else 0.04), high * share**0.14


def mark(
    axes: Axes, value: float, label: str, height: float, style: tuple[str, str], emphasised: bool
) -> None:
    """Draw one system on one work, with its number on the side away from polyleaf's line."""
    colour, marker = style
    axes.plot([1, value], [height, height], color=colour, linewidth=1.4, alpha=0.7, zorder=3)
    axes.plot(value, height, marker, color=colour, markersize=6.5 if emphasised else 4.5, zorder=4)
    axes.annotate(
        label,
        (value, height),
        xytext=(6 if value >= 1 else -6, 0),
        textcoords="offset points",
        ha="left" if value >= 1 else "right",
        va="center_baseline",
        fontsize=7.5,
        fontweight="bold" if emphasised else "normal",
        color=OUR_STYLES[0][0] if emphasised else "#333333",
    )


def legend_entries(
    axes: Axes, systems: list[str], styles: dict[str, tuple[str, str]]
) -> tuple[Any, list[str]]:
    """Return the legend's marks and names."""
    handles = [axes.plot([], [], styles[s][1], color=styles[s][0], markersize=6)[0] for s in systems]
    return handles, systems


def parse_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add(
        "--results", type=Path, default=HERE / "results.md", help="the report (default benchmarks/results.md)"
    )
    add("--out", type=Path, default=HERE.parent / "docs" / "headline.png", help="default docs/headline.png")
    return parser.parse_args()


if __name__ == "__main__":
    main()
