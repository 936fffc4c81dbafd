"""Set up before polyleaf is imported."""

from __future__ import annotations

import os

# Test processes run side by side: threads that wait should not take the core another one could use, and one
# thread each is enough where a test does not ask for more.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
