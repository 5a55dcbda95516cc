"""Which GPU this is and what surrounds it: attributes from CUDA, the rest from NVML where it answers."""

import hashlib
import os
import platform
import re
from pathlib import Path
from typing import Any

from perfgate.core.gpu import Environment, Gpu
from perfgate.devices.cuda.driver import driver, whole_gpu_uuid
from perfgate.devices.cuda.nvml import Nvml
from perfgate.devices.cuda.peer import peer_link

# A fixed public prefix: the hash tells chips apart, and cannot be taken for a hash of anything else.
_CHIP_PREFIX = b"perfgate-chip-1\0"
_MIG = re.compile(r" MIG ((?:\d+c\.)?\d+g\.\d+gb(?:\+[\w.]+)?)$", re.IGNORECASE)

# Variables that change what CUDA does; recorded so that a difference can be named.
RECORDED_VARIABLES = (
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PIPE_DIRECTORY",
    "NVIDIA_TF32_OVERRIDE",
)
# Variables whose value is a path: recorded as set, never by value.
_PATH_VARIABLES = frozenset({"CUDA_MPS_PIPE_DIRECTORY"})


def chip_hash(uuid: str | None, mig_profile: str | None) -> str | None:
    """Return the hash that tells chips apart; None without a UUID, which equals no chip.

    Args:
        uuid: of the whole GPU: an instance's own changes when it is made anew.
        mig_profile: of the instance; None when the GPU is not partitioned.
    """
    if uuid is None:
        return None
    text = uuid.lower() if mig_profile is None else f"{uuid.lower()}/{mig_profile}"
    return hashlib.sha256(_CHIP_PREFIX + text.encode()).hexdigest()[:12]


def identified_gpu(index: int, nvml: Nvml) -> Gpu:
    """Read the identity of a visible CUDA device."""
    module = driver()
    device = module.Device(index)

    def attribute(name: str) -> Any:
        try:
            return device.get_attribute(getattr(module.device_attribute, name))
        except (AttributeError, module.Error):
            return None

    name = device.name()
    profile = _MIG.search(name)
    mig_profile = profile[1].lower() if profile else None
    ecc = attribute("ECC_ENABLED")
    integrated = attribute("INTEGRATED")
    major, minor = device.compute_capability()
    pci = nvml.read("PciInfo")
    power = nvml.read("EnforcedPowerLimit")
    return Gpu(
        name=name,
        compute_capability=f"{major}.{minor}",
        sm_count=attribute("MULTIPROCESSOR_COUNT"),
        memory_bytes=int(device.total_memory()),
        memory_bus_bits=attribute("GLOBAL_MEMORY_BUS_WIDTH"),
        memory_clock_hz=_hertz(attribute("MEMORY_CLOCK_RATE")),
        sm_clock_max_hz=_hertz(attribute("CLOCK_RATE")),
        l2_bytes=attribute("L2_CACHE_SIZE"),
        ecc_enabled=None if ecc is None else bool(ecc),
        integrated=None if integrated is None else bool(integrated),
        mig_profile=mig_profile,
        power_limit_w=None if power is None else power / 1000,
        pci_device_id=None if pci is None else f"0x{pci.pciDeviceId:08x}",
        pci_subsystem_id=None if pci is None else f"0x{pci.pciSubSystemId:08x}",
        board_part_number=_board_part_number(nvml),
        chip=chip_hash(whole_gpu_uuid(index), mig_profile),
        peer_link=peer_link(module, index, nvml),
    )


def surrounding_environment(nvml: Nvml, compiler: str | None, cublas_version: str | None) -> Environment:
    """Read what surrounds the GPU. Neither host name nor paths nor user are read."""
    module = driver()
    number = module.get_driver_version()
    return Environment(
        driver_version=nvml.system("DriverVersion"),
        cuda_driver_version=f"{number // 1000}.{number % 1000 // 10}",
        cuda_toolkit_version=".".join(str(part) for part in module.get_version()[:2]),
        compiler=compiler,
        cublas_version=cublas_version,
        pycuda_version=_pycuda_version(),
        python_version=platform.python_version(),
        os=f"{platform.system()} {platform.machine()}",
        cpu_model=cpu_model(),
        clock_policy="default",
        nvml_tier=nvml.tier,
        vbios_version=nvml.read("VbiosVersion"),
        visible_gpus=module.Device.count(),
        variables=recorded_variables(),
    )


def recorded_variables() -> str | None:
    """Return the CUDA variables that are set, sorted, as one text; None when none is."""
    shown = [
        f"{name}={'set' if name in _PATH_VARIABLES else os.environ[name][:40]}"
        for name in RECORDED_VARIABLES
        if name in os.environ
    ]
    return " ".join(shown) or None


def cpu_model() -> str | None:
    """Return the CPU's model name as Linux gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or None


def _board_part_number(nvml: Nvml) -> str | None:
    value = nvml.read("BoardPartNumber")
    return value.strip() or None if isinstance(value, str) else None


def _hertz(kilohertz: int | None) -> float | None:
    return kilohertz * 1e3 if kilohertz else None


def _pycuda_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pycuda")
    except PackageNotFoundError:
        return None
