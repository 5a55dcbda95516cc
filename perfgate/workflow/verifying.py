"""``roofline --verify``: each case's declared work beside the GPU's own counters."""

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.case import MemoryLevel, Timing
from perfgate.core.codec import encode
from perfgate.core.counters import CountedCase, counted_case, summed
from perfgate.core.device import Device, DeviceKind
from perfgate.core.roofs import Roofs
from perfgate.core.run import CaseInfo
from perfgate.devices.environment import launch_environment
from perfgate.errors import ConfigurationError, DeviceError
from perfgate.measure.order import LaunchOrder
from perfgate.workflow.cases import Selection, described_cases

# A kernel is repeated for every group of counters, its memory saved and restored: seconds a case.
_CASE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the counters say of a selection.

    Attributes:
        cases: in the order of the suite.
        failures: cases that could not be executed, and why.
        left_out: cases that declare no work, or measure themselves.
    """

    cases: tuple[CountedCase, ...]
    failures: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """Declarations that are off."""
        return tuple(fault for case in self.cases for fault in case.faults)


def counted(device: Device, selection: Selection, roofs: Roofs, *, wait: bool = False) -> Counted:
    """Execute the selected cases once under Nsight Compute and compare what they declare.

    Raises:
        ConfigurationError: no CUDA device, no case with declared work, ncu is missing or forbidden.
        DeviceError: ncu or the executions failed.
        DeviceBusyError: another perfgate holds the GPU.
    """
    from perfgate.devices.cuda.ncu import counted_kernels, found_ncu, grouped

    if device.kind is not DeviceKind.CUDA:
        raise ConfigurationError("--verify reads a GPU's counters: a recording has none", hint="pass --device cuda")
    found_ncu()
    infos, _, _ = described_cases(device, selection)
    chosen = {case_id: info for case_id, info in infos.items() if _has_work(info)}
    if not chosen:
        raise ConfigurationError("no selected case declares work that counters could confirm")
    order = LaunchOrder(
        index=0,
        device=device.address,
        suite=selection.suite,
        own_suites=selection.own_suites,
        case_ids=tuple(chosen),
        seed=0,
    )
    with device.lock(wait=wait), tempfile.TemporaryDirectory(prefix="perfgate-verify-") as folder:
        place, told = Path(folder) / "order.json", Path(folder) / "told.json"
        place.write_text(json.dumps(encode(order)), encoding="utf-8")
        kernels = counted_kernels(
            [sys.executable, "-m", "perfgate", "profile", str(place), str(told)],
            pipes=[info.work.pipe for info in chosen.values()],
            environment=launch_environment(device.kind),
            timeout_s=_CASE_S * (1 + len(chosen)),
        )
        if not told.is_file():
            raise DeviceError("the executions under ncu did not come to their end", hint="run `perfgate run` for why")
        outcome = json.loads(told.read_text(encoding="utf-8"))
    groups = grouped(kernels)
    if len(groups) != len(outcome["executed"]) or not all(groups):
        raise DeviceError(
            f"ncu counted {len(groups)} of {len(outcome['executed'])} executions, {sum(map(bool, groups))} with kernels"
        )
    cases = []
    for case_id, group in zip(outcome["executed"], groups, strict=True):
        info = infos[case_id]
        counters = summed([kernel.counters(info.work.pipe) for kernel in group])
        cases.append(counted_case(case_id, info, counters, roofs))
    return Counted(
        cases=tuple(cases),
        failures=outcome["failures"],
        left_out=tuple(case_id for case_id in infos if case_id not in chosen),
    )


def _has_work(info: CaseInfo) -> bool:
    """Tell whether counters could confirm a case's work: copies to and from the host run no kernel."""
    work = info.work
    if work.memory_level is MemoryLevel.PCIE:
        return False
    return info.timing.is_of_work and info.timing is not Timing.PROGRAM and bool(work.work_flop or work.moved_bytes)
