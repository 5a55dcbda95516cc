"""One execution of each case under a profiler: the process that ncu looks at."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import PerfgateError
from perfgate.measure.order import LaunchOrder
from perfgate.resources import cache_folder

if TYPE_CHECKING:
    from perfgate.devices.cuda.session import CudaSession


def profile_cases(order: LaunchOrder, told: Path) -> None:
    """Execute each case of an order once while the profiler is on; tell which, in order, and why others failed.

    Raises:
        DeviceError: the device cannot be opened, or an execution failed and left it unusable.
    """
    from perfgate.devices.cuda.session import opened_session
    from perfgate.workflow.suites import joined_suite

    executed: list[str] = []
    failures: dict[str, str] = {}
    _, _, selector = order.device.partition(":")
    with opened_session(
        selector, lambda gpu: joined_suite(order.suite, order.own_suites, gpu), cache_folder()
    ) as session:
        for case_id in order.case_ids:
            failure = _failure(session, case_id, executed)
            if failure is not None:
                failures[case_id] = failure
    told.write_text(json.dumps({"executed": executed, "failures": failures}), encoding="utf-8")


def _failure(session: "CudaSession", case_id: str, executed: list[str]) -> str | None:
    """Execute a case once; return why it could not be prepared, None when it could."""
    try:
        with session.open_case(case_id) as case:
            case.execute()  # loads what is loaded lazily
            executed.append(case_id)
            with session.profiled():
                case.execute()
    except PerfgateError as error:
        if case_id in executed:
            raise
        return error.message
    return None
