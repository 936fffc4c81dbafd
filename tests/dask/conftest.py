"""A cluster that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """Two workers; tests that need more of them say so."""
    from cluster import Cluster

    one = Cluster(2)
    yield one
    one.close()
