"""The environment variables of a launch."""

import os

from perfgate.core.device import DeviceKind

# CUDA_LAUNCH_BLOCKING would block inside cuLaunchKernel behind the spin kernel with the interpreter lock
# held; CUDA_FORCE_PTX_JIT would time other machine code than the one whose hash is recorded.
DROPPED_VARIABLES = ("CUDA_LAUNCH_BLOCKING", "CUDA_FORCE_PTX_JIT")


def launch_environment(kind: DeviceKind) -> dict[str, str]:
    """Return the environment of a launch: this process's, less what changes how CUDA executes."""
    dropped = DROPPED_VARIABLES if kind is DeviceKind.CUDA else ()
    return {name: value for name, value in os.environ.items() if name not in dropped}
