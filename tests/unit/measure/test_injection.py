import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.device import DeviceKind
from perfgate.core.run import Fault, Injection
from perfgate.errors import ConfigurationError
from perfgate.measure.injection import injected_change, injected_executions, parse_injection, parse_injections

IDS = ("bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]", "gemm.fp32[n=4096]")


@pytest.mark.parametrize(
    ("text", "pattern", "requested"),
    [
        ("bandwidth.copy=+3%", "bandwidth.copy", "+3%"),
        ("bandwidth.copy[bytes=4GiB]=+3%", "bandwidth.copy[bytes=4GiB]", "+3%"),
        ("bandwidth.copy*=-2%", "bandwidth.copy*", "-2%"),
        ("*=+0.5%", "*", "+0.5%"),
        ("*=hang", "*", "hang"),
        ("gemm*=wrong-output", "gemm*", "wrong-output"),
        (" gemm* = +10% ", "gemm*", "+10%"),
    ],
)
def test_parse_injection__reads(text: str, pattern: str, requested: str) -> None:
    assert parse_injection(text) == Injection(pattern=pattern, requested=requested)


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "*", "*=", "=+3%", "+3%", "hang", "bandwidth.copy[bytes=4GiB]"),
        *("*=3%", "*=+3", "*=0.03", "*=+0%", "*=-0%", "*=+nan%", "*=+inf%", "*=+150abc%", "*=%", "*=+1e2%", "*=+1_0%"),
        *("*=-100%", "*=-60%", "*=+1000%", "*=+0.01%", "*=explode", "*=HANG", "*=+3%%", "*=++3%", "*=+-3%"),
    ],
)
def test_parse_injection__refuses_with_a_next_step(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_injection(text)
    assert repr(text) in caught.value.message
    assert caught.value.hint


def test_parse_injections__a_glob_that_matches_nothing_names_what_is_near() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_injections(["bandwidth.copies=+3%"], IDS, DeviceKind.CUDA)
    assert "bandwidth.copies" in caught.value.message
    assert "bandwidth.copy[bytes=4GiB]" in caught.value.hint


def test_parse_injections__faults_are_for_recordings_only() -> None:
    with pytest.raises(ConfigurationError, match="recordings only"):
        parse_injections(["gemm*=hang"], IDS, DeviceKind.CUDA)
    (injection,) = parse_injections(["gemm*=hang"], IDS, DeviceKind.RECORDED)
    assert injection.fault is Fault.HANG


def test_parse_injections__one_injection_a_case() -> None:
    with pytest.raises(ConfigurationError, match=r"bandwidth\.copy.* is meant by \*=\+3% and bandwidth\*=-2%"):
        parse_injections(["*=+3%", "bandwidth*=-2%"], IDS, DeviceKind.CUDA)
    assert len(parse_injections(["gemm*=+3%", "bandwidth*=-2%"], IDS, DeviceKind.CUDA)) == 2


def test_injected_change__is_that_of_the_case() -> None:
    injections = parse_injections(["gemm*=+3%", "bandwidth.copy=-2%"], IDS, DeviceKind.CUDA)
    changes = [injected_change(case_id, injections) for case_id in IDS]
    assert changes == pytest.approx([-0.02, 0.0, 0.03])
    assert injected_change(IDS[0], parse_injections(["*=hang"], IDS, DeviceKind.RECORDED)) == 0.0


@pytest.mark.parametrize(
    ("change", "least", "multiple", "expected"),
    [
        (0.03, 4, 2, (66, 68)),
        (0.03, 100, 1, (100, 103)),
        (-0.02, 10, 3, (150, 147)),
        (0.25, 1, 1, (4, 5)),
        (1.0, 5, 1, (5, 10)),
        (-0.5, 4, 1, (4, 2)),
        (0.0, 7, 2, (8, 8)),
    ],
)
def test_injected_executions__is_the_smallest_that_fits(
    change: float, least: int, multiple: int, expected: tuple[int, int]
) -> None:
    assert injected_executions(change, least, multiple) == expected


@given(
    st.one_of(st.floats(-0.5, -0.001), st.floats(0.001, 9.0)),
    st.integers(1, 300),
    st.integers(1, 8),
)
def test_injected_executions__meets_the_change_in_whole_rotations(change: float, least: int, multiple: int) -> None:
    nominal, run = injected_executions(change, least, multiple)
    assert nominal >= least
    assert nominal % multiple == run % multiple == 0
    assert run >= multiple
    assert abs(run / nominal - 1 - change) <= 0.0201 * abs(change)
    assert math.copysign(1, run - nominal) == math.copysign(1, change)


@pytest.mark.parametrize(("change", "least", "multiple"), [(-1.0, 1, 1), (0.1, 0, 1), (0.1, 1, 0)])
def test_injected_executions__refuses_nonsense(change: float, least: int, multiple: int) -> None:
    with pytest.raises(ValueError, match="no executions"):
        injected_executions(change, least, multiple)
