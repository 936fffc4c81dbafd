"""What users import is there after ``import polyleaf``, and costs nothing before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import polyleaf

pytestmark = [pytest.mark.cpu_only("imports alone"), pytest.mark.python_only("imports alone")]

# What loads other packages, or is large.
LATE = ("dask", "export", "mlflow", "plots", "portable")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", [*LATE, "callbacks", "metrics"])
def test_a_module_is_an_attribute(name: str) -> None:
    assert run(f"import polyleaf; print(polyleaf.{name}.__name__)") == f"polyleaf.{name}"
    assert name in dir(polyleaf)


def test_modules_wait_until_they_are_asked_for() -> None:
    names = [f"polyleaf.{name}" for name in LATE]
    assert run(f"import sys, polyleaf; print([name for name in {names} if name in sys.modules])") == "[]"


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="module 'polyleaf' has no attribute 'boosting'"):
        _ = polyleaf.boosting
