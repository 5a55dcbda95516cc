"""The CUDA driver through PyCUDA: initialise, find a device, hold its primary context.

Never pycuda.autoinit or make_context: the primary context is the one that frameworks share. It is
popped on every way out, since a context left pushed at exit aborts the process.
"""

import contextlib
import ctypes
import functools
import uuid
from collections.abc import Iterator
from typing import Any

from perfgate.errors import ConfigurationError, DeviceError, NoDeviceError

RECORDED_HINT = "without a GPU, try: perfgate check --device recorded"


@functools.cache
def driver() -> Any:
    """Import PyCUDA's driver module and initialise CUDA.

    Raises:
        NoDeviceError: PyCUDA is not installed, no driver is loaded or it sees no device.
    """
    try:
        import pycuda.driver as module
    except ImportError as error:
        if "libcuda" in str(error):
            raise NoDeviceError(f"no NVIDIA driver: {error}", hint=RECORDED_HINT) from error
        raise NoDeviceError(
            f"PyCUDA cannot be imported: {error}",
            hint=f"install it with: pip install 'perfgate[cuda]' (needs the CUDA toolkit); {RECORDED_HINT}",
        ) from error
    try:
        module.init()
    except module.Error as error:
        raise NoDeviceError(f"CUDA cannot be initialised: {error}", hint=RECORDED_HINT) from error
    if module.Device.count() == 0:
        raise NoDeviceError("CUDA sees no device (check CUDA_VISIBLE_DEVICES)", hint=RECORDED_HINT)
    return module


@functools.cache
def libcuda() -> ctypes.CDLL:
    """Return the driver library for the calls that PyCUDA lacks: UUIDs and graphs."""
    return ctypes.CDLL("libcuda.so.1")


def device_uuid(index: int) -> str | None:
    """Return the UUID of a visible device as NVML writes it, ``"GPU-..."`` or ``"MIG-..."``; None where there is none.

    Since CUDA 11.4 ``cuDeviceGetUuid_v2`` gives that of the MIG instance and ``cuDeviceGetUuid`` that of
    the GPU that it is part of: an instance is told by the two being different.
    """
    own, whole = _uuid(index, "cuDeviceGetUuid_v2"), _uuid(index, "cuDeviceGetUuid")
    if own is not None and whole is not None and own != whole:
        return f"MIG-{own}"
    found = own or whole
    return None if found is None else f"GPU-{found}"


def whole_gpu_uuid(index: int) -> str | None:
    """Return the UUID of the GPU that a visible device is, or is an instance of; None where there is none."""
    found = _uuid(index, "cuDeviceGetUuid") or _uuid(index, "cuDeviceGetUuid_v2")
    return None if found is None else f"GPU-{found}"


def _uuid(index: int, function_name: str) -> str | None:
    raw = (ctypes.c_ubyte * 16)()
    device = ctypes.c_int()
    library = libcuda()
    function = getattr(library, function_name, None)
    if function is None or library.cuDeviceGet(ctypes.byref(device), index) != 0 or function(raw, device) != 0:
        return None
    return str(uuid.UUID(bytes=bytes(raw)))


def found_device(selector: str) -> int:
    """Return the index among the visible devices of ``""`` (the first), ``"1"`` or ``"GPU-..."``.

    Raises:
        NoDeviceError: no visible device fits; lists those that are.
        ConfigurationError: the selector is neither an index nor a UUID.
    """
    count = driver().Device.count()
    if not selector:
        return 0
    if selector.isdecimal():
        if int(selector) < count:
            return int(selector)
        raise NoDeviceError(f"no CUDA device {selector}: {count} visible, numbered from 0", hint=_visible_text(count))
    if not selector.upper().startswith(("GPU-", "MIG-")):
        raise ConfigurationError(
            f"cuda:{selector} is neither an index nor a UUID", hint="write cuda:0 or cuda:GPU-<uuid>"
        )
    wanted = selector.split("-", 1)[1].lower()
    for index in range(count):
        found = device_uuid(index)
        if found is not None and found.split("-", 1)[1].lower() == wanted:
            return index
    raise NoDeviceError("no visible CUDA device has this UUID", hint=_visible_text(count))


def _visible_text(count: int) -> str:
    names = ", ".join(f"cuda:{index} {driver().Device(index).name()}" for index in range(count))
    return f"visible devices: {names}"


@contextlib.contextmanager
def primary_context(index: int) -> Iterator[Any]:
    """Hold the primary context of a device, current on this thread.

    Raises:
        DeviceError: it cannot be created, e.g. in exclusive compute mode or out of memory.
    """
    module = driver()
    try:
        context = module.Device(index).retain_primary_context()
        context.push()
    except module.Error as error:
        raise DeviceError(
            f"no context on CUDA device {index}: {error}", hint="is another process holding the GPU exclusively?"
        ) from error
    try:
        yield context
    finally:
        with contextlib.suppress(module.Error):
            context.pop()
        with contextlib.suppress(module.Error):
            context.detach()
