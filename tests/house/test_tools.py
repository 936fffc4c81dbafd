"""The tools that look at the sources are the same for everybody."""

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cpu_only("looks at source files"), pytest.mark.python_only("looks at source files")]

ROOT = Path(__file__).parents[2]


def test_one_version_of_clang_format():
    """That of `make lint` and that of pre-commit: from version to version it formats differently."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = [one for one in project["project"]["optional-dependencies"]["test"] if "clang-format" in one]
    hook = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.fullmatch(r"clang-format==[\d.]+", pinned[0])
    assert re.findall(r"additional_dependencies: \[(clang-format.*)\]", hook) == pinned


def test_tools_of_pre_commit_are_those_of_the_tests():
    """Pinned, and to the same versions."""
    known = dict(
        line.split("==") for line in (ROOT / "tests/constraints.txt").read_text().splitlines() if "==" in line
    )
    hook = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    tools = re.findall(r"additional_dependencies: \[(.*)\]", hook)
    assert tools
    assert all(one == f"{one.split('==')[0]}=={known[one.split('==')[0]]}" for one in tools), tools


def test_the_tested_version_of_dask_is_written_down():
    """And the oldest one: more of it is used than its documentation promises."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["optional-dependencies"]["dask"]
    known = (ROOT / "tests/constraints.txt").read_text().splitlines()
    comms = (ROOT / "src/polyleaf/dask/comms.py").read_text(encoding="utf-8")
    ((tested, oldest),) = re.findall(r"Tested with dask and distributed ([\d.]+), and with ([\d.]+):", comms)
    assert {f"dask=={tested}", f"distributed=={tested}"} <= set(known)
    assert [one.split(">=")[1] for one in needed] == [oldest, oldest]


def test_dependencies_have_upper_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    assert [one for one in needed if not re.search(r"<\d", one)] == []
