"""Small copies and waits, as the host sees them."""

import pytest

from perfgate.core.case import Timing
from perfgate.suite.host_latency import host_latency_cases
from tests.factories import H200
from tests.unit.suite.fake_toolbox import FakeToolbox

CASES = host_latency_cases(H200)


def test_cases__are_host_timed_and_reported_only() -> None:
    assert all(case.timing.is_host_timed and not case.gated for case in CASES)


@pytest.mark.parametrize("case", [one for one in CASES if "bytes" in one.id], ids=lambda case: case.id)
def test_copies__are_verified_word_by_word(case) -> None:
    toolbox = FakeToolbox(gpu=H200)
    workload = case.prepare(toolbox)
    workload.poison()
    assert not workload.verify().passed
    workload.executions[0]()
    assert workload.verify().passed


@pytest.mark.parametrize(("name", "waited"), [("stream_synchronize", "stream"), ("device_synchronize", "device")])
def test_waits__are_for_the_stream_and_for_the_device(name: str, waited: str) -> None:
    toolbox = FakeToolbox(gpu=H200)
    waits: list[str] = []
    toolbox.synchronize = lambda: waits.append("stream")  # type: ignore[method-assign]
    toolbox.synchronize_device = lambda: waits.append("device")  # type: ignore[method-assign]
    case = next(one for one in CASES if one.id == f"latency.{name}")
    workload = case.prepare(toolbox)
    workload.executions[0]()
    assert waits == [waited]
    assert case.timing is Timing.SUBMIT
    assert workload.verify().passed
