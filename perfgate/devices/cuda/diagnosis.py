"""What of GPU, driver, NVML, compiler and permissions works here: the findings of ``doctor``.

Each look is on its own: one that fails says so and leaves the others alone.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from perfgate.core.finding import Condition, Finding
from perfgate.core.gpu import unknown_identity_fields
from perfgate.devices.cuda.compiler import found_compiler
from perfgate.devices.cuda.driver import device_uuid, driver, found_device
from perfgate.devices.cuda.identity import identified_gpu, recorded_variables
from perfgate.devices.cuda.nvml import Nvml, closing_nvml
from perfgate.devices.cuda.session import opened_session
from perfgate.devices.environment import DROPPED_VARIABLES
from perfgate.errors import PerfgateError

_PYCUDA_REMEDY = (
    "pip install 'perfgate[cuda]' compiles PyCUDA: it needs nvcc on PATH, g++ and Python's headers"
    " (Debian and Ubuntu: apt install build-essential python3-dev, and NVIDIA's cuda-toolkit;"
    " containers: start from an nvidia/cuda devel image; conda: conda install -c conda-forge pycuda)"
)


def cuda_findings(selector: str, cache_folder: Path, make_suite: Callable[..., object]) -> Iterator[Finding]:
    """Look at everything that a check on a CUDA device needs, in the order in which it needs it."""
    try:
        index = found_device(selector)
    except PerfgateError as error:
        yield Finding(
            name="GPU",
            condition=Condition.BROKEN,
            result=error.message,
            consequence="nothing can be measured here; --device recorded works",
            remedy=_PYCUDA_REMEDY if "PyCUDA" in error.message else error.hint,
        )
        yield _compiler()
        return
    uuid = device_uuid(index)
    with closing_nvml(uuid) as nvml:
        yield from _device(index, nvml)
        yield from _nvml(nvml)
        yield _clocks(nvml)
    yield _compiler()
    yield _cache(cache_folder)
    yield _variables()
    yield _launch(selector, cache_folder, make_suite)


def _device(index: int, nvml: Nvml) -> Iterator[Finding]:
    gpu = identified_gpu(index, nvml)
    place = f"device {index} of {driver().Device.count()}"
    yield Finding(
        name="GPU",
        condition=Condition.WORKS,
        result=f"{gpu.name}, compute capability {gpu.compute_capability}, {gpu.sm_count} SMs, {place}",
    )
    unknown = unknown_identity_fields(gpu)
    if unknown:
        yield Finding(
            name="identity",
            condition=Condition.LIMITED,
            result=f"unknown: {', '.join(unknown)}",
            consequence="comparable only with baselines that do not know these either, by cross-chip margins",
            remedy="make NVML readable (containers: NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
        )
    else:
        board = f"board {gpu.board_part_number}, chip {gpu.chip}"
        yield Finding(name="identity", condition=Condition.WORKS, result=board)


def _nvml(nvml: Nvml) -> Iterator[Finding]:
    if nvml.tier == 0:
        yield Finding(
            name="NVML",
            condition=Condition.LIMITED,
            result=nvml.note or "cannot be read",
            consequence="no temperature, clock events, health or foreign processes; the board is unknown",
            remedy="pip install nvidia-ml-py; containers: NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        )
        return
    yield Finding(name="NVML", condition=Condition.WORKS, result=f"driver {nvml.system('DriverVersion')}")
    telemetry = nvml.telemetry()
    health = nvml.health()
    events = sorted(telemetry.clock_events_s)
    yield _readable("clock events", bool(events), ", ".join(events), "a thermal or power slowdown is not seen")
    yield _readable("processes", nvml.process_ids() is not None, "listed", "other processes on this GPU are not seen")
    yield _readable(
        "temperature", telemetry.temperature_c is not None, f"{telemetry.temperature_c} °C", "it is not recorded"
    )
    if health.remap_pending or health.remap_failed:
        yield Finding(
            name="memory",
            condition=Condition.BROKEN,
            result="row remapping is pending" if health.remap_pending else "row remapping has failed",
            consequence="this GPU's times are not those of a sound one",
            remedy="reset the GPU (pending) or have it replaced (failed)",
        )
    if None not in (health.pcie_width, health.pcie_width_max) and health.pcie_width != health.pcie_width_max:
        yield Finding(
            name="PCIe",
            condition=Condition.LIMITED,
            result=f"width {health.pcie_width} of {health.pcie_width_max}",
            consequence="transfers between host and device are slower than they should be",
            remedy="reseat the board, or look at the slot's settings",
        )


def _readable(name: str, works: bool, result: str, consequence: str) -> Finding:
    if works:
        return Finding(name=name, condition=Condition.WORKS, result=result)
    return Finding(
        name=name,
        condition=Condition.LIMITED,
        result="not readable here (virtual machine, MIG, or no permission)",
        consequence=consequence,
    )


def _clocks(nvml: Nvml) -> Finding:
    """Say whether --lock-clocks could work; nothing is changed to find out."""
    supported = nvml.read("SupportedGraphicsClocks", nvml.read("MaxClockInfo", 2) or 0)
    if supported and os.geteuid() == 0:
        return Finding(
            name="clock lock",
            condition=Condition.WORKS,
            result=f"{min(supported)} to {max(supported)} MHz listed, running as root",
        )
    return Finding(
        name="clock lock",
        condition=Condition.LIMITED,
        result="no clocks listed" if not supported else "needs root",
        consequence="--lock-clocks cannot be used; perfgate measures the clock and needs no lock",
    )


def _compiler() -> Finding:
    try:
        return Finding(name="compiler", condition=Condition.WORKS, result=found_compiler().name)
    except PerfgateError as error:
        return Finding(
            name="compiler",
            condition=Condition.BROKEN,
            result=error.message,
            consequence="kernels cannot be compiled",
            remedy=error.hint,
        )


def _cache(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            name="compile cache",
            condition=Condition.LIMITED,
            result=f"cannot be written: {error.strerror}",
            consequence="every launch compiles every kernel again",
            remedy="make the user's cache folder writable (XDG_CACHE_HOME)",
        )
    return Finding(name="compile cache", condition=Condition.WORKS, result="writable")


def _variables() -> Finding:
    shown = recorded_variables()
    blocking = [name for name in DROPPED_VARIABLES if name in os.environ]
    if blocking:
        return Finding(
            name="variables",
            condition=Condition.LIMITED,
            result=f"set: {shown}",
            consequence=f"{', '.join(blocking)} is unset for launches",
            remedy=f"unset {' '.join(blocking)}",
        )
    return Finding(name="variables", condition=Condition.WORKS, result=f"set: {shown}" if shown else "none set")


def _launch(selector: str, cache_folder: Path, make_suite: Callable[..., object]) -> Finding:
    """Open a session as a launch does: context, stream, timing kernels, self-test."""
    try:
        with opened_session(selector, make_suite, cache_folder) as session:
            session.self_test()
    except PerfgateError as error:
        return Finding(
            name="self-test",
            condition=Condition.BROKEN,
            result=error.message,
            consequence="nothing can be measured on this GPU",
            remedy=error.hint,
        )
    return Finding(
        name="self-test",
        condition=Condition.WORKS,
        result="kernels compile, the spin kernel holds the stream, and events read a known 1 ms right",
    )
