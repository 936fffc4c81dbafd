"""Nobody has more than a handful of arguments: what belongs together is passed together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu_only("looks at source files")

PACKAGE = Path(__file__).parents[2] / "src" / "polyleaf"
MOST_ARGUMENTS = 8


def functions_of(path: Path) -> Iterator[tuple[str, int]]:
    """Name and number of arguments of each function of a file, without self and cls."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield node.name, sum(one.arg not in ("self", "cls") for one in arguments)


def files() -> list[Path]:
    """The stubs of the core, and the rooms that call it round by round."""
    rooms = ("growth", "gpu", "training")
    return [
        PACKAGE / "_core.pyi",
        *(path for room in rooms for path in sorted((PACKAGE / room).glob("*.py"))),
    ]


def kernels() -> dict[str, int]:
    """Number of arguments of each kernel: a launch has as many."""
    head = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(([^)]*)\)')
    sources = sorted((PACKAGE / "gpu" / "cuda").glob("*.cuh"))
    found = [one for path in sources for one in head.findall(path.read_text(encoding="utf-8"))]
    assert len(found) == sum(path.read_text(encoding="utf-8").count("__global__") for path in sources)
    return {name: len(arguments.split(",")) for name, arguments in found}


def test_kernels_take_a_handful() -> None:
    too_many = {name: n for name, n in kernels().items() if n > MOST_ARGUMENTS}
    assert not too_many, too_many


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_of_the_core_and_of_the_growers_take_a_handful(path: Path) -> None:
    too_many = {name: n for name, n in functions_of(path) if n > MOST_ARGUMENTS}
    assert not too_many, too_many
