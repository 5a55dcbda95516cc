"""Launches that stand by: real processes on a recording, each prepared while the one before it measures."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.core.device import DeviceKind
from perfgate.measure.order import LaunchOrder
from perfgate.measure.supervisor import supervise
from perfgate.workflow import standing_by
from perfgate.workflow.standing_by import prepared_starts

COPY = "bandwidth.copy[bytes=4GiB]"


@pytest.fixture
def orders(device: str) -> Callable[..., list[LaunchOrder]]:
    def made(count: int, *folders: str) -> list[LaunchOrder]:
        sides = folders or ("",)
        one = LaunchOrder(index=0, device=device, suite="default", case_ids=(COPY,), seed=1)
        return [
            replace(one, index=index, options={"folder": side} if side else {})
            for index, side in zip(range(count), sides * count, strict=False)
        ]

    return made


def started(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each process whether it stood by."""
    found: list[bool] = []
    real = standing_by.start_child

    def noted(*arguments: object, **options: object) -> object:
        found.append(bool(options.get("has_input")))
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(standing_by, "start_child", noted)
    return found


def test_prepared_starts__every_launch_but_the_first_stood_by(
    orders: Callable[..., list[LaunchOrder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stood = started(monkeypatch)
    told = orders(3)
    with prepared_starts(DeviceKind.RECORDED, told, ("json", "no_such_package")) as start:
        outcomes = supervise(told, start)
    assert stood == [True, True]
    assert all(set(outcome.launch.cases) == {COPY} for outcome in outcomes), outcomes
    assert [outcome.launch.failure for outcome in outcomes] == [None] * 3


def test_prepared_starts__a_process_is_used_for_its_own_side_alone(
    orders: Callable[..., list[LaunchOrder]], tmp_path: Path
) -> None:
    sides = [str(tmp_path / name) for name in ("one", "other")]
    for side in sides:
        Path(side).mkdir()
    told = orders(4, sides[0], sides[1], sides[1], sides[0])
    with prepared_starts(DeviceKind.RECORDED, told, ()) as start:
        outcomes = supervise(told, start)
    assert all(set(outcome.launch.cases) == {COPY} for outcome in outcomes), outcomes


def test_prepared_starts__leave_no_process_behind(
    orders: Callable[..., list[LaunchOrder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = []
    real = standing_by._waiting
    monkeypatch.setattr(standing_by, "_waiting", lambda *told: waiting.append(real(*told)) or waiting[-1])
    told = orders(2)
    with prepared_starts(DeviceKind.RECORDED, told, ()) as start:
        supervise(told[:1], start)
    assert [process.poll() is not None for process in waiting] == [True]


def test_prepared_starts__a_process_that_opened_a_gpu_by_importing_is_not_used(
    orders: Callable[..., list[LaunchOrder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing_by, "_waiting", _ending)
    told = orders(2)
    with prepared_starts(DeviceKind.RECORDED, told, ()) as start:
        outcomes = supervise(told, start)
    assert all(set(outcome.launch.cases) == {COPY} for outcome in outcomes), outcomes


def _ending(kind: DeviceKind, preparation: standing_by.Preparation) -> object:
    """A process that stands by and ends by itself, as one that has opened a GPU does."""
    from perfgate.devices.environment import launch_environment
    from perfgate.measure.child import start_child

    del preparation
    process = start_child(["/bin/sh", "-c", "exit 0"], launch_environment(kind), has_input=True)
    time.sleep(0.2)
    return process


def test_has_opened_gpu__looks_at_the_device_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not standing_by.has_opened_gpu()
    monkeypatch.setattr(standing_by, "_DEVICES", str(tmp_path))
    with (tmp_path / "device").open("w"):
        assert standing_by.has_opened_gpu()
    assert not standing_by.has_opened_gpu()
