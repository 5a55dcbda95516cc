"""Causes: what was seen beside a change, in a sentence, with who acts."""

from dataclasses import replace
from typing import Any

import pytest

from perfgate.core.cause import (
    Evidence,
    canary_cause,
    case_causes,
    differs,
    family_cause,
    family_shift,
    health_causes,
    relevant_differences,
    throttle_cause,
)
from perfgate.core.run import Health
from tests.factories import ENVIRONMENT

SEEN = Evidence(change=0.03, margin=0.01, is_same_chip=True, source=False, code=False)


def codes(seen: Evidence, **arguments: Any) -> list[str]:
    return [cause.code for cause in case_causes(seen, **arguments)]


def changed(**fields: Any) -> Any:
    return relevant_differences(ENVIRONMENT, replace(ENVIRONMENT, **fields))


def test_case_causes__a_changed_source_is_the_authors() -> None:
    causes = case_causes(replace(SEEN, source=True, code=True))
    assert [(cause.code, cause.who) for cause in causes] == [("source-changed", "author")]


def test_case_causes__other_machine_code_of_the_same_source_names_the_toolchain() -> None:
    (cause,) = case_causes(replace(SEEN, code=True, environment=changed(cuda_toolkit_version="13.1")))
    assert (cause.code, cause.who) == ("code-changed", "maintainer")
    assert cause.message == "same source, other machine code (cuda toolkit 13.0 to 13.1)"
    (bare,) = case_causes(replace(SEEN, code=True))
    assert bare.message == "same source, other machine code"


def test_case_causes__a_librarys_version_is_its_machine_code() -> None:
    one, two = (replace(ENVIRONMENT, cublas_version=version) for version in ("13.1.0", "13.2.0"))
    upgraded = replace(SEEN, environment=relevant_differences(one, two))
    (cause,) = case_causes(replace(upgraded, code=True))
    assert cause.code == "code-changed"
    assert cause.message == "same source, other machine code (cublas 13.1.0 to 13.2.0)"
    assert codes(upgraded) == ["hardware-finding"]


def test_case_causes__another_toolkit_with_the_same_machine_code_explains_nothing() -> None:
    assert codes(replace(SEEN, environment=changed(compiler="nvcc 13.1"))) == ["hardware-finding"]
    assert codes(replace(SEEN, code=None, environment=changed(compiler="nvcc 13.1"))) == ["toolkit-changed"]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("driver_version", "590.1", "driver-changed"),
        ("vbios_version", "x", "vbios-changed"),
        ("cpu_model", "x", "cpu-changed"),
        ("clock_policy", "locked", "clock-policy-changed"),
    ],
)
def test_case_causes__name_what_changed_around_the_gpu(field: str, value: str, code: str) -> None:
    (cause,) = case_causes(replace(SEEN, environment=changed(**{field: value})))
    assert (cause.code, cause.who) == (code, "runner-owner")
    assert value in cause.message


def test_case_causes__another_number_of_gpus_in_the_machine() -> None:
    one, two = replace(ENVIRONMENT, visible_gpus=1), replace(ENVIRONMENT, visible_gpus=2)
    assert codes(replace(SEEN, environment=relevant_differences(one, two))) == ["machine-changed"]


def test_case_causes__the_clock_counts_from_half_a_margin_on() -> None:
    assert codes(replace(SEEN, clock_hz=(1.98e9, 1.95e9))) == ["clock-lower"]
    assert codes(replace(SEEN, clock_hz=(1.95e9, 1.98e9))) == ["clock-higher"]
    assert codes(replace(SEEN, clock_hz=(1.98e9, 1.975e9))) == ["hardware-finding"]


def test_case_causes__an_unchanged_kernel_that_slowed_on_this_chip_is_a_hardware_finding() -> None:
    assert codes(SEEN) == ["hardware-finding"]
    assert codes(replace(SEEN, code=None)) == ["hardware-finding"]


@pytest.mark.parametrize("other", [{"is_same_chip": False}, {"source": None}, {"change": -0.03}])
def test_case_causes__no_hardware_finding_without_proof(other: dict[str, Any]) -> None:
    assert codes(replace(SEEN, **other)) == []


def test_case_causes__no_hardware_finding_where_the_gpu_reports_something_itself() -> None:
    busy = health_causes(None, Health(foreign_processes=("python 123",)))
    assert codes(SEEN, health=busy) == []


def test_differs__is_unknown_where_a_hash_is() -> None:
    assert differs("a", "b") is True
    assert differs("a", "a") is False
    assert differs(None, "a") is None
    assert differs("a", None) is None


def test_family_shift__needs_every_case_to_move_alike() -> None:
    margins = dict.fromkeys("abcd", 0.005)
    families = {"a": "bandwidth", "b": "bandwidth", "c": "gemm", "d": "launch"}
    assert family_shift({"a": 0.030, "b": 0.032, "c": 0.03, "d": 0.0}, margins, families) == {"bandwidth"}
    assert family_shift({"a": 0.030, "b": 0.050, "c": 0.03, "d": 0.0}, margins, families) == set()
    assert family_shift({"a": 0.030, "b": 0.001, "c": 0.03, "d": 0.0}, margins, families) == set()
    assert family_shift({"a": 0.006, "b": -0.006, "c": 0.03, "d": 0.0}, margins, families) == set()


def test_family_cause__and_canaries_name_what_moved() -> None:
    assert "every case of the family bandwidth moved by about +3.0 %" in family_cause("bandwidth", 0.03).message
    assert canary_cause(["a", "b"]).message.endswith("slower too: a, b")
    assert canary_cause(["a", "b", "c", "d"]).message.endswith("slower too: a, b, c and others")


def test_health_causes__of_nothing_known_are_none() -> None:
    assert health_causes(None, None) == ()
    assert health_causes(Health(), Health()) == ()


@pytest.mark.parametrize(
    ("before", "after", "code", "text"),
    [
        (Health(foreign_processes=("b",)), Health(foreign_processes=("a",)), "foreign-process", "a, b"),
        (Health(ecc_corrected=1), Health(ecc_corrected=2), "errors-grew", "corrected ECC errors"),
        (Health(), Health(nvlink_errors=2), "errors-grew", "NVLink errors"),
        (Health(), Health(remap_pending=True), "row-remapping", "pending"),
        (Health(), Health(remap_failed=True), "row-remapping", "failed"),
        (Health(), Health(pcie_width=8, pcie_width_max=16), "pcie-narrower", "8 lanes wide of 16"),
        (Health(nvlink_links_active=18), Health(nvlink_links_active=17), "nvlink-lost", "lost"),
        (Health(), Health(mps_active=True), "mps-active", "shares the GPU"),
        (Health(xids=()), Health(xids=(79,)), "xid", "Xid 79 (the GPU has fallen off the bus) during the session"),
    ],
)
def test_health_causes__name_what_the_gpu_reports(before: Health, after: Health, code: str, text: str) -> None:
    (cause,) = health_causes(before, after)
    assert (cause.code, cause.who) == (code, "runner-owner")
    assert text in cause.message


def test_health_causes__an_xid_of_a_kernels_own_fault_is_its_authors() -> None:
    (cause,) = health_causes(Health(xids=()), Health(xids=(31, 43, 31)))
    assert (cause.code, cause.who) == ("xid", "author")
    assert cause.message.count("Xid 31") == 1
    (cause,) = health_causes(Health(xids=()), Health(xids=(31, 95)))
    assert cause.who == "runner-owner"
    assert health_causes(Health(xids=()), Health(xids=())) == ()


def test_health_causes__errors_that_were_there_before_did_not_grow() -> None:
    assert health_causes(Health(ecc_corrected=2, nvlink_links_active=18), Health(ecc_corrected=2)) == ()
    assert health_causes(None, Health(ecc_corrected=2, pcie_width=16, pcie_width_max=16)) == ()


def test_throttle_cause__names_the_reasons_and_how_long() -> None:
    cause = throttle_cause({"hw_thermal": 1.5, "sw_power_cap": 0.0})
    assert cause is not None
    assert cause.message == "the GPU lowered its clocks during the case: hw thermal 1.5 s"
    assert throttle_cause({"sw_power_cap": 0.0}) is None


def test_relevant_differences__leave_out_what_cannot_move_a_gpu() -> None:
    assert changed(python_version="3.13", os="another", commit="abc") == ()
