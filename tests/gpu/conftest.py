"""Tests that need a GPU have the marker `gpu`; without CuPy or without a GPU they are skipped, and say so."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def cupy():
    """The module, where it has a GPU to work on."""
    module = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        n_devices = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"CuPy finds no GPU: {error}")
    if n_devices == 0:
        pytest.skip("there is no GPU")
    return module


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use the fixture: none can be forgotten."""
    for item in items:
        if "cupy" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
