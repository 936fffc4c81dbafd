"""Set up before polyleaf is imported; and `--device`: one suite, two devices.

With ``--device cuda`` every estimator that is made without `device` trains and predicts on the GPU. A test
that comes to what a row of the table of combinations refuses of a GPU alone is skipped, with the words of the
refusal, and so are tests marked `cpu_only`; any other error is a failure. The run ends with a count of what
was skipped.
"""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

# Test processes run side by side: threads that wait should not take the core another one could use, and one
# thread each is enough where a test does not ask for more.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="where estimators train and predict that are made without `device`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let tests press Ctrl-C, and say at once that there is no GPU where one is asked for."""
    # A shell has what it starts in the background ignore it, and the tests that press it would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--device") == "cuda":
        from polyleaf.gpu.runtime import require_gpu

        try:
            require_gpu()
        except (ImportError, RuntimeError) as error:
            raise pytest.UsageError(f"--device cuda: {error}") from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--device") == "cpu":
        return
    from skip_report import cpu_only_reason

    for item in items:
        marker = item.get_closest_marker("cpu_only")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=cpu_only_reason(marker.args[0])))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was not tried on the GPU."""
    if config.getoption("--device") == "cpu":
        return
    from skip_report import skip_report

    terminalreporter.section("skipped with --device cuda")
    for line in skip_report(terminalreporter.getreports("skipped")):
        terminalreporter.line(line)


@pytest.fixture
def small_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A streamed table is coded one column at a time, or two."""
    from polyleaf.data import memory

    monkeypatch.setattr(memory, "LEAST_PANEL_BYTES", 1)


@pytest.fixture(scope="session", autouse=True)
def _default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the GPU the default, and skip what it refuses."""
    if request.config.getoption("--device") == "cpu":
        yield
        return
    from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
    from polyleaf.params import combinations
    from skip_report import refused_reason

    error_of = combinations.error_of

    def error_or_skip(row: Any, situation: Any) -> Any:
        error = error_of(row, situation)
        if row.devices == ("cuda",):
            pytest.skip(refused_reason(row, str(error)))
        return error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combinations, "error_of", error_or_skip)
        for estimator in (PolyleafRegressor, PolyleafClassifier, PolyleafMixed):
            initialize: Any = inspect.unwrap(estimator.__init__)  # that says what unknown names mean
            parameters = inspect.signature(initialize).parameters.values()
            defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
            patch.setattr(initialize, "__defaults__", tuple((defaults | {"device": "cuda"}).values()))
        yield
