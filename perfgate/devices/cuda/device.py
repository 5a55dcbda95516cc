"""The CUDA device as the parent process sees it: identity, health, lock; never a context."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perfgate.core.device import DeviceKind
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.run import Health
from perfgate.devices.cuda.clocks import lockable_clock_mhz, locked_clocks
from perfgate.devices.cuda.compiler import found_compiler
from perfgate.devices.cuda.cublas import found_cublaslt
from perfgate.devices.cuda.driver import device_uuid, found_device
from perfgate.devices.cuda.identity import identified_gpu, surrounding_environment
from perfgate.devices.cuda.nvml import Nvml, opened_nvml
from perfgate.errors import DeviceBusyError, DeviceError


class CudaDevice:
    """A GPU. Keeps NVML open: without persistence mode the driver would de-initialise between launches.

    Args:
        selector: ``""`` (the first visible device), an index, or a UUID.

    Raises:
        NoDeviceError: there is none such.
    """

    kind = DeviceKind.CUDA

    def __init__(self, selector: str) -> None:
        index = found_device(selector)
        self._uuid = device_uuid(index)
        self._index = index
        self._nvml: Nvml = opened_nvml(self._uuid)
        self._nvml.watch_xids()
        self._before: frozenset[int] | None = self._nvml.process_ids()
        self._gpu = identified_gpu(index, self._nvml)
        self._environment = surrounding_environment(self._nvml, _compiler_name(), _cublas_version())

    @property
    def address(self) -> str:
        """See core.device.Device."""
        return f"cuda:{self._uuid or self._index}"

    @property
    def gpu(self) -> Gpu:
        """See core.device.Device."""
        return self._gpu

    @property
    def environment(self) -> Environment:
        """See core.device.Device."""
        return self._environment

    def health(self) -> Health:
        """See core.device.Device."""
        return self._nvml.health()

    def foreign_processes(self, own: int) -> tuple[str, ...]:
        """See core.device.Device.

        Containers show host process ids, so ours cannot be told by number: what was there before the
        first launch is foreign, and what appeared since is foreign beyond our own number.
        """
        now = self._nvml.process_ids()
        if now is None:
            return ()
        before = self._before or frozenset()
        appeared = len(now - before) - own
        names = [f"process {pid}" for pid in sorted(now & before)]
        return (*names, *(["a process that started during the session"] * max(0, appeared)))

    @contextlib.contextmanager
    def locked_clocks(self, asked_mhz: int | None) -> Iterator[float]:
        """See core.device.Device."""
        clock_mhz = lockable_clock_mhz(self._nvml, asked_mhz)
        with locked_clocks(self._nvml, clock_mhz, self._file("clocks")):
            yield clock_mhz * 1e6

    @contextlib.contextmanager
    def lock(self, *, wait: bool) -> Iterator[None]:
        """See core.device.Device."""
        from filelock import FileLock, Timeout

        path = self._file("lock")
        with contextlib.suppress(OSError):  # another user's file: may be locked, not be created
            path.touch(mode=0o666)
        lock = FileLock(path, timeout=-1 if wait else 0, mode=0o666)
        try:
            lock.acquire()
        except Timeout:
            raise DeviceBusyError(
                "another perfgate is measuring on this GPU", hint="wait for it to end, or pass --wait"
            ) from None
        except OSError as error:
            raise DeviceError(f"the GPU's lock {path.name} cannot be taken: {error}") from error
        try:
            yield
        finally:
            lock.release()

    def _file(self, kind: str) -> Path:
        """A file that all processes of this machine agree on for this chip."""
        return Path(tempfile.gettempdir()) / f"perfgate-{self._gpu.chip or self._index}.{kind}"


def _compiler_name() -> str | None:
    """The compiler is needed by launches; here its absence is only unknown, so that a verdict names it once."""
    try:
        return found_compiler().name
    except DeviceError:
        return None


def _cublas_version() -> str | None:
    library = found_cublaslt()
    return None if library is None else library.version
