"""The house has rooms: every file is in one, CONTRIBUTING's map lists them all, and imports go one way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cpu_only("looks at source files"), pytest.mark.python_only("looks at source files")]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "polyleaf"
CORE = ROOT / "core"

# A room imports from those before it (and from itself), never from those behind it.
PYTHON_ROOMS = (
    "portable",  # stands alone
    "_core",  # compiled, from core/
    "files",
    "params",
    "peers",
    "data",
    "losses",
    "metrics",
    "growth",
    "model",
    "inspect",
    "explain",
    "report",
    "gpu",
    "training",
    "callbacks",
    "estimators",
    "importing",
    "mlflow",
    "tuning",
    "dask",
    "plots",
    "export",
    "paper",
    "cli",
)
CORE_ROOMS = (
    "rules",  # src/polyleaf/rules, which every device compiles
    "base",
    "kernels",
    "table",
    "gradients",
    "quantize",
    "growth",
    "search",
    "leaves",
    "dense",
    "label_sparse",
    "label_hashed",
    "predict",
    "explain",
    "bindings",
)
TEST_ROOMS = {*PYTHON_ROOMS, "rules", "kernels", "table", "house", "fuzz", "smoke"}
# What tests of several rooms share.
SHARED_BY_TESTS = {
    "conftest.py",
    "oracle.py",
    "problems.py",
    "growing.py",
    "pairs.py",
    "skip_report.py",
    "frames.py",
    "streams.py",
    "same_forest.py",
    "gradients_of.py",
    "training_cases.py",
    "mixed_table.py",
    "parts.py",
    "least_memory.py",
    "nvrtc.py",
    "forgery.py",
}
# CuPy and what needs it are imported where they are asked for: the one import of a room that comes later.
MODULES_OF_THE_HOUSE = {"__init__.py", "__main__.py", "_load_core.py"}


def room_of_module(name: str) -> str:
    """The room of ``polyleaf.<room>[.<module>]``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports_of(path: Path) -> Iterator[str]:
    """Names of the modules of polyleaf that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "polyleaf")
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module == "polyleaf":
                yield from (f"polyleaf.{one.name}" for one in node.names)
            elif node.module.startswith("polyleaf."):
                yield node.module


def python_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name not in MODULES_OF_THE_HOUSE)


def core_files() -> list[Path]:
    return sorted([*CORE.rglob("*.?pp"), *(PACKAGE / "rules").rglob("*.hpp")])


def room_of_file(path: Path, top: Path) -> str:
    parts = path.relative_to(top).parts
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_python_imports_from_the_rooms_before(path: Path) -> None:
    room = room_of_file(path, PACKAGE)
    assert room in PYTHON_ROOMS, "this file is in no room"
    for name in imports_of(path):
        other = room_of_module(name)
        assert other in PYTHON_ROOMS, f"{name} is in no room"
        assert PYTHON_ROOMS.index(other) <= PYTHON_ROOMS.index(room), f"{room} imports {name}"


@pytest.mark.parametrize("path", core_files(), ids=lambda path: "/".join(path.parts[-2:]))
def test_headers_are_included_by_room_from_the_rooms_before(path: Path) -> None:
    room = path.parent.name
    assert path.parent.parent in (CORE, PACKAGE), "rooms have no rooms"
    assert room in CORE_ROOMS, "this file is in no room"
    for name in re.findall(r'^#include "(.+)"$', path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        other, _, header = name.partition("/")
        assert header, f'"{name}" is to be included by its room'
        folder = PACKAGE / other if other == "rules" else CORE / other
        assert (folder / header).is_file(), name
        assert CORE_ROOMS.index(other) <= CORE_ROOMS.index(room), f"{room} includes {name}"


def test_tests_are_in_the_same_rooms() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        parts = path.relative_to(ROOT / "tests").parts
        if len(parts) == 1:
            assert parts[0] in SHARED_BY_TESTS, f"{parts[0]} is in no room"
        else:
            assert parts[0] in TEST_ROOMS, f"{path} is in no room"


def test_no_two_files_of_tests_have_one_name() -> None:
    """They are modules without a package: of two, pytest would load one."""
    names = [path.name for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    assert sorted(set(names)) == sorted(names)


def test_every_source_of_the_core_is_compiled() -> None:
    listed = set(re.findall(r"core/\w+/\w+\.cpp", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")))
    assert listed == {path.relative_to(ROOT).as_posix() for path in CORE.rglob("*.cpp")}


def test_the_map_lists_every_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w/.]+?)/?` \|", text, flags=re.MULTILINE))
    rooms = {
        f"src/polyleaf/{path.name}" for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"
    }
    rooms |= {f"src/polyleaf/{path.name}" for path in PACKAGE.glob("*.py") if path.name[0] != "_"}
    rooms |= {f"core/{path.name}" for path in CORE.iterdir()}
    rooms |= {f"tests/{name}" for name in ("oracle.py", "problems.py", "pairs.py", "house", "fuzz", "smoke")}
    assert listed >= rooms, f"not on the map: {sorted(rooms - listed)}"
    for place in listed:
        assert (ROOT / place).exists(), f"{place} is on the map, but not there"
