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
