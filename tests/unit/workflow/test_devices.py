from pathlib import Path

import pytest

from perfgate.core.device import DeviceKind
from perfgate.errors import ConfigurationError
from perfgate.resources import resource_folder
from perfgate.storage.documents import write_run
from perfgate.workflow.devices import (
    baseline_place,
    opened_device,
    parse_selector,
    recording,
    recordings_folder,
    recordings_place,
    session_seed,
)
from tests.factories import make_run
from tests.unit.workflow.fakes import FakeDevice


@pytest.mark.parametrize(
    ("selector", "kind", "rest"),
    [
        ("auto", DeviceKind.CUDA, ""),
        ("cuda", DeviceKind.CUDA, ""),
        ("cuda:1", DeviceKind.CUDA, "1"),
        ("cuda:GPU-1", DeviceKind.CUDA, "GPU-1"),
        ("recorded", DeviceKind.RECORDED, ""),
        ("recorded:a:b.json", DeviceKind.RECORDED, "a:b.json"),
    ],
)
def test_parse_selector__tells_kind_and_which(selector: str, kind: DeviceKind, rest: str) -> None:
    assert parse_selector(selector) == (kind, rest)


@pytest.mark.parametrize("selector", ["", "auto:1", "CUDA", "gpu", "cuda0", ":", "recorded "])
def test_parse_selector__of_anything_else_names_what_there_is(selector: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_selector(selector)
    assert "recorded:FILE" in raised.value.hint


def test_opened_device__replays_a_file_that_its_launches_find_again(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json", make_run({"launch.gap": [1e-6]}))
    device = opened_device(f"recorded:{tmp_path / 'run.json'}")
    assert (device.kind, device.address) == (DeviceKind.RECORDED, f"recorded:{tmp_path / 'run.json'}")


def test_recording__of_a_folder_joins_its_files(tmp_path: Path) -> None:
    for index, medians in enumerate(([1e-6], [2e-6, 3e-6])):
        write_run(tmp_path / f"{index}.json.gz", make_run({"launch.gap": medians}))
    (tmp_path / "README.md").write_text("not a recording")
    assert len(recording(tmp_path).launches) == 3


def test_recordings_place__is_what_is_named_else_what_ships() -> None:
    assert recordings_place("x.json") == Path("x.json")
    assert recordings_place("") == recordings_folder()


@pytest.mark.parametrize("is_here", [True, False])
def test_baseline_place__is_here_for_a_gpu_and_what_ships_for_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if is_here:
        (tmp_path / "baselines").mkdir()
    cuda, recorded = FakeDevice(), FakeDevice(kind=DeviceKind.RECORDED)
    assert baseline_place(Path("asked"), cuda) == baseline_place(Path("asked"), recorded) == Path("asked")
    assert baseline_place(None, cuda) == (Path("baselines") if is_here else resource_folder("baselines"))
    assert baseline_place(None, recorded) == resource_folder("baselines")


def test_session_seed__repeats_for_a_recording_and_is_fresh_on_a_gpu() -> None:
    cuda, recorded = FakeDevice(), FakeDevice(kind=DeviceKind.RECORDED)
    assert session_seed(None, recorded) == 0
    assert session_seed(5, recorded) == session_seed(5, cuda) == 5
    assert len({session_seed(None, cuda) for _ in range(5)}) > 1
