"""The markers of these tests, for runs beside a wheel, where there is no pyproject.toml."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("cpu_only(reason)", "other_threads(reason)"):
        config.addinivalue_line("markers", f"{marker}: pyproject.toml says what it means")
