"""Launches that stand by: while one measures, the next two have started Python and import, and wait for their turns.

It touches no GPU before: a process that has opened one by importing alone ends at once, and its launch is started
afresh, as is every launch whose process ended or is prepared for another side.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.codec import decode, encode
from perfgate.core.device import DeviceKind
from perfgate.devices.environment import launch_environment
from perfgate.measure.child import start_child
from perfgate.measure.order import LaunchOrder
from perfgate.measure.orphan import end_with_parent
from perfgate.workflow.starting import launch_command, starter, write_order
from perfgate.workflow.suites import import_ahead

Start = Callable[[LaunchOrder, Path], "subprocess.Popen[bytes]"]
# One measures, two import, and the machine has something left for all.
_LEAST_CORES = 4
# To import PyTorch takes as long as a launch of six cases: one that is prepared while one measures would come late.
_AHEAD = 2
_DEVICES = "/dev/nvidia"
# What a launch on a GPU imports whatever its cases are.
_MODULES = ("perfgate.devices.cuda.session", "pycuda.driver", "pynvml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What a process imports before its turn.

    Attributes:
        folder: where it works; "" for here.
        suites: absolute paths of own suites.
        modules: installed packages.
    """

    folder: str
    suites: tuple[str, ...]
    modules: tuple[str, ...]


@contextlib.contextmanager
def standing_by(kind: DeviceKind, orders: Sequence[LaunchOrder], modules: Iterable[str]) -> Iterator[Start]:
    """Give a way to start these launches in their order, each prepared while the one before it measures."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if kind is not DeviceKind.CUDA or cores < _LEAST_CORES:
        yield starter(kind)
        return
    with prepared_starts(kind, orders, tuple(sorted({*_MODULES, *modules}))) as start:
        yield start


@contextlib.contextmanager
def prepared_starts(kind: DeviceKind, orders: Sequence[LaunchOrder], modules: tuple[str, ...]) -> Iterator[Start]:
    """Do so whatever the device and the machine are; see ``standing_by``."""
    waiting: dict[Preparation, list[subprocess.Popen[bytes]]] = defaultdict(list)
    by_index = {order.index: order for order in orders}
    afresh = starter(kind)

    def preparation(order: LaunchOrder) -> Preparation:
        return Preparation(folder=order.options.get("folder", ""), suites=order.own_suites, modules=modules)

    def start(order: LaunchOrder, journal: Path) -> "subprocess.Popen[bytes]":
        prepared = waiting[preparation(order)]
        process = prepared.pop(0) if prepared else None
        is_released = process is not None and _release(process, order, journal)
        if process is not None and not is_released:
            _end(process)
        process = process if process is not None and is_released else afresh(order, journal)
        following = [by_index[index] for index in range(order.index + 1, order.index + 1 + _AHEAD) if index in by_index]
        for needed, count in Counter(map(preparation, following)).items():
            with contextlib.suppress(OSError):
                while len(waiting[needed]) < count:
                    waiting[needed].append(_waiting(kind, needed))
        return process

    try:
        yield start
    finally:
        for process in itertools.chain(*waiting.values()):
            _end(process)


def awaited_turn() -> tuple[Path, Path] | None:
    """In a process that stands by: import ahead, wait, and return order and journal; None where there is no turn."""
    end_with_parent(os.environ)
    told = decode(Preparation, json.loads(sys.stdin.readline()))
    import_ahead(told.folder, told.suites, told.modules)
    if has_opened_gpu():
        return None
    line = sys.stdin.readline()
    if not line:
        return None
    order, journal = json.loads(line)
    return Path(order), Path(journal)


def has_opened_gpu() -> bool:
    """Tell whether this process holds a GPU's device file: CUDA was initialised in it."""
    places = Path("/proc/self/fd")
    if not places.is_dir():
        return True
    found = []
    for place in places.iterdir():
        with contextlib.suppress(OSError):
            found.append(str(place.readlink()))
    return any(place.startswith(_DEVICES) for place in found)


def _waiting(kind: DeviceKind, preparation: Preparation) -> "subprocess.Popen[bytes]":
    process = start_child(launch_command("--stand-by"), launch_environment(kind), has_input=True)
    _tell(process, encode(preparation))
    return process


def _release(process: "subprocess.Popen[bytes]", order: LaunchOrder, journal: Path) -> bool:
    """Tell a process that its turn has come, and whether it can have heard it."""
    if process.poll() is not None:
        return False
    place = write_order(order, journal)
    is_told = _tell(process, [str(place), str(journal)])
    assert process.stdin is not None  # noqa: S101 - it was started with a pipe
    with contextlib.suppress(OSError):
        process.stdin.close()
    return is_told


def _tell(process: "subprocess.Popen[bytes]", value: object) -> bool:
    assert process.stdin is not None  # noqa: S101 - it was started with a pipe
    try:
        process.stdin.write(json.dumps(value).encode() + b"\n")
        process.stdin.flush()
    except OSError:
        return False
    return True


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
