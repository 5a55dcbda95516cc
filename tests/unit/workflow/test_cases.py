"""Which cases a selection names, and which are absent on the machine at hand."""

from dataclasses import replace

from perfgate.workflow.cases import Selection, described_cases
from tests.factories import ENVIRONMENT
from tests.unit.workflow.fakes import FakeDevice

TWIN = "gemm.cublas_bf16[n=4096]"


def test_described_cases__without_the_library_its_twins_are_absent_by_name() -> None:
    cases, absent, _ = described_cases(FakeDevice(), Selection())
    assert TWIN not in cases
    assert absent[TWIN] == "cuBLASLt is not installed here"
    assert "gemm.bf16[n=4096]" in cases


def test_described_cases__with_the_library_has_its_twins() -> None:
    device = FakeDevice(environment=replace(ENVIRONMENT, cublas_version="13.1.0"))
    cases, absent, _ = described_cases(device, Selection())
    assert TWIN in cases
    assert absent == {}
