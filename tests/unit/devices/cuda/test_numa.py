"""A launch stays on the CPUs near its GPU, where they are known and allowed."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.devices.cuda import numa
from perfgate.devices.cuda.numa import parsed_cpus, stay_near

BUS_ID = "0000:1B:00.0"


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """What the process was restricted to; it may use CPUs 0 to 7."""
    found: list[set[int]] = []
    device = SimpleNamespace(pci_bus_id=lambda: BUS_ID)
    monkeypatch.setattr(numa, "driver", lambda: SimpleNamespace(Device=lambda index: device, Error=ValueError))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: found.append(set(cpus)), raising=False)
    return found


def told(folder: Path, node: str, cpus: str) -> Path:
    place = folder / BUS_ID.lower()
    place.mkdir()
    (place / "numa_node").write_text(node + "\n", encoding="ascii")
    (place / "local_cpulist").write_text(cpus + "\n", encoding="ascii")
    return folder


def test_stay_near__keeps_to_the_cpus_of_the_node_that_it_may_use(bound: Any, tmp_path: Path) -> None:
    assert stay_near(0, told(tmp_path, "1", "4-11,20")) == {4, 5, 6, 7}
    assert bound == [{4, 5, 6, 7}]


@pytest.mark.parametrize(("node", "cpus"), [("-1", "0-7"), ("1", "64-127"), ("1", ""), ("?", "0-3"), ("0", "a-b")])
def test_stay_near__leaves_the_process_alone_where_nothing_is_known_or_allowed(
    node: str, cpus: str, bound: Any, tmp_path: Path
) -> None:
    assert stay_near(0, told(tmp_path, node, cpus)) == frozenset()
    assert bound == []


def test_stay_near__does_without_sysfs_and_without_permission(
    bound: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stay_near(0, tmp_path) == frozenset()

    def refuse(pid: int, cpus: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    assert stay_near(0, told(tmp_path, "0", "0-3")) == frozenset()


def test_parsed_cpus__is_linux_s_list() -> None:
    assert parsed_cpus("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert parsed_cpus("\n") == frozenset()
