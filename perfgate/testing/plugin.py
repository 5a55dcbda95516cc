"""The pytest plugin: options, the mark, the fixture, and which part this pytest has.

Alone, a pytest measures in one launch, in its own process. Asked for several launches it becomes their
supervisor: each is a pytest of its own that runs these tests alone; then every test passes or fails by
what was measured, without running again.
"""

import argparse
from pathlib import Path

import pytest

from perfgate.testing.alone import Alone
from perfgate.testing.fixture import MARK, GpuBenchmark
from perfgate.testing.role import AGAINST_OPTION, JOURNAL_OPTION, ORDER_OPTION, Role
from perfgate.testing.supervising import Supervising, launches_asked

_ROLE = pytest.StashKey[Role]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("perfgate", "GPU benchmarks (perfgate)")
    group.addoption(
        "--perfgate-launches",
        type=int,
        default=None,
        metavar="N",
        help="measure in N fresh processes; default 1, with a baseline 6, with a base 12 or more of each side",
    )
    group.addoption("--perfgate-run", type=Path, default=None, metavar="RUN.json", help="write what was measured")
    group.addoption(
        "--perfgate-baseline", type=Path, default=None, metavar="PATH", help="fail tests that are slower than it"
    )
    group.addoption(
        AGAINST_OPTION,
        default=None,
        metavar="REF",
        help="measure REF and this working tree in turn, fail tests that are slower than REF's",
    )
    group.addoption(
        "--perfgate-control", action="store_true", help=f"with {AGAINST_OPTION}: measure what is the same on both sides"
    )
    group.addoption("--perfgate-device", default="auto", metavar="DEVICE", help="auto, cuda, cuda:N or cuda:GPU-<uuid>")
    group.addoption(ORDER_OPTION, type=Path, default=None, help=argparse.SUPPRESS)
    group.addoption(JOURNAL_OPTION, type=Path, default=None, help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Decide what this pytest is: on its own, a supervisor of launches, or a launch."""
    config.addinivalue_line("markers", f"{MARK}(gated, graph, version): settings of a test's case, see perfgate")
    role: Role
    if config.getoption(ORDER_OPTION) is not None:
        from perfgate.testing.launched import Launched

        role = Launched(config)
    elif launches_asked(config) > 1 or config.getoption(AGAINST_OPTION) is not None:
        role = Supervising(config)
    else:
        role = Alone(config)
    config.stash[_ROLE] = role
    config.pluginmanager.register(role, "perfgate-role")


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> GpuBenchmark:
    """Measure what a callable enqueues on ``gpu_benchmark.stream``."""
    return GpuBenchmark(request, request.config.stash[_ROLE])
