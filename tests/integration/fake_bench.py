"""A GPU for tests of the pytest plugin: cases run in numpy, times come from a file that the test writes."""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.core.case import Case
from perfgate.core.device import DeviceKind, SampleBatch, Telemetry
from perfgate.core.run import Health
from perfgate.core.toolbox import Verification, Workload
from perfgate.workflow import benching, devices
from tests.factories import ENVIRONMENT, H200
from tests.unit.suite.fake_toolbox import FakeToolbox

TIME = Path("time.json")


class FakeDevice:
    kind = DeviceKind.CUDA
    address = "cuda:fake"
    gpu = H200
    environment = ENVIRONMENT

    def health(self) -> Health:
        return Health()

    def lock(self, *, wait: bool) -> Any:
        return contextlib.nullcontext()


class FakeCase:
    sets = 1

    def __init__(self, workload: Workload, time_s: float) -> None:
        self._workload = workload
        self._time_s = time_s
        self._random = random.Random()

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        self._workload.executions[0]()
        drawn = (self._time_s * executions * (1 + 1e-4 * self._random.random()) for _ in range(samples))
        return SampleBatch(intervals_s=tuple(drawn))

    def poison(self) -> None:
        self._workload.poison()

    def verify(self) -> Verification:
        return self._workload.verify()


class FakeSession:
    def __init__(self) -> None:
        self.toolbox = FakeToolbox(gpu=H200, stream=0xF00)
        self._cases: dict[str, Case] = {}
        self._slowness = 1 + 1e-4 * random.random()

    def add_case(self, case: Case) -> None:
        self._cases[case.id] = case

    @contextlib.contextmanager
    def open_case(self, case_id: str) -> Iterator[FakeCase]:
        workload = self._cases[case_id].prepare(self.toolbox)
        times = json.loads(TIME.read_text()) if TIME.exists() else {}
        yield FakeCase(workload, times.get(case_id.rsplit(".", 1)[-1], 2e-3) * self._slowness)
        workload.close()

    def self_test(self) -> None:
        pass

    def telemetry(self) -> Telemetry:
        return Telemetry(at_s=0.0)

    def energy_j(self) -> None:
        return None

    def code_sha256(self, case_id: str) -> None:
        return None


@contextlib.contextmanager
def opened_bench(address: str) -> Iterator[FakeSession]:
    assert address == FakeDevice.address
    yield FakeSession()


def install() -> None:
    """Put the fakes where the plugin looks for a GPU; a pytest that is a launch does it again for itself."""
    benching.opened_bench = opened_bench  # type: ignore[assignment]
    devices.opened_device = lambda selector: FakeDevice()  # type: ignore[assignment, return-value]


class Tensor:
    """An output, wherever it is: nothing looks at it but the reference."""

    def __init__(self) -> None:
        self.values = np.zeros(4, dtype=np.float32)
