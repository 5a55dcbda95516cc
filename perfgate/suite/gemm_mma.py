"""Products by mma.sync, the tensor-core instruction of every architecture: which types, in which tiles."""

from perfgate.core.gpu import Gpu
from perfgate.suite.multistage import Tiling, multistage_kernel
from perfgate.suite.product import Format, ProductKernel
from perfgate.suite.sizes import DoesNotFitError

_SOURCE = "gemm_mma.cu"
# By compute capability, what shared memory a block may have (CUDA C++ Programming Guide, technical specifications):
# 64 KiB on 7.5, 99 on 8.6, 8.9 and 12.x, 163 on 8.0 and 8.7, 227 on 9.0 and 10.x.
_SMALL = Tiling(tile=(128, 128), warps=(2, 4), stages=2)
_MEDIUM = Tiling(tile=(128, 128), warps=(2, 4), stages=3)
_LARGE = Tiling(tile=(128, 256), warps=(2, 4), stages=3)
_TILINGS = {"7.5": _SMALL, "8.0": _LARGE, "8.7": _LARGE, "9.0": _LARGE, "10.0": _LARGE, "10.3": _LARGE}
_OLDEST = (7, 5)
_FP8_UNITS = ("8.9", "12.0", "12.1")
_TURING_FORMATS = ("fp16", "int8")
# The fast path of these is another instruction (tcgen05): what mma.sync reaches is no peak of theirs.
_LEGACY = ("10.0", "10.3", "11.0")


def mma_kernel(gpu: Gpu, form: Format) -> ProductKernel:
    """Return the kernel for a format.

    Raises:
        DoesNotFitError: the architecture has no such instruction, or one that measures something else.
    """
    capability = gpu.compute_capability
    if capability is None:
        message = "the GPU does not tell its compute capability"
        raise DoesNotFitError(message)
    if tuple(int(part) for part in capability.split(".")) < _OLDEST:
        message = f"compute capability {capability} is older than 7.5"
        raise DoesNotFitError(message)
    if capability == "7.5" and form.name not in _TURING_FORMATS:
        message = f"tensor cores of compute capability 7.5 have no {form.name.upper()}"
        raise DoesNotFitError(message)
    if form.name == "fp8" and capability not in _FP8_UNITS:
        message = f"mma.sync has no FP8 unit on compute capability {capability}" + (
            ": it widens FP8 to FP16 and measures that" if capability >= "9" or capability.startswith("1") else ""
        )
        raise DoesNotFitError(message)
    return multistage_kernel(_SOURCE, _TILINGS.get(capability, _MEDIUM))


def is_legacy(gpu: Gpu) -> bool:
    """Tell whether mma.sync is the slower of two ways to the GPU's tensor cores."""
    return gpu.compute_capability in _LEGACY
