"""Keeps a launch on the CPUs near its GPU: host memory is then allocated there, and copies cross no other link."""

import contextlib
import os
from pathlib import Path

from perfgate.devices.cuda.driver import driver

_DEVICES = Path("/sys/bus/pci/devices")


def stay_near(index: int, devices: Path = _DEVICES) -> frozenset[int]:
    """Restrict this process to the CPUs of the GPU's NUMA node; return them, none where that is not known.

    What the process may use already is never widened. Virtual machines often tell no node.
    """
    near = _near_cpus(_bus_id(index), devices)
    with contextlib.suppress(AttributeError, OSError):  # not Linux; a sandbox that forbids it
        usable = near & os.sched_getaffinity(0)
        if usable:
            os.sched_setaffinity(0, usable)
            return frozenset(usable)
    return frozenset()


def _bus_id(index: int) -> str:
    module = driver()
    try:
        return str(module.Device(index).pci_bus_id()).lower()
    except (AttributeError, module.Error):
        return ""


def _near_cpus(bus_id: str, devices: Path) -> frozenset[int]:
    try:
        is_known = int((devices / bus_id / "numa_node").read_text(encoding="ascii")) >= 0
        return (
            parsed_cpus((devices / bus_id / "local_cpulist").read_text(encoding="ascii")) if is_known else frozenset()
        )
    except (OSError, ValueError):
        return frozenset()


def parsed_cpus(text: str) -> frozenset[int]:
    """Parse Linux's list of CPUs: ``"0-3,8"``.

    Raises:
        ValueError: it is not such a list.
    """
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)
