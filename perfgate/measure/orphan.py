"""A launch ends with its parent: nobody would read its journal, and it would hold the GPU."""

import ctypes
import os
import signal
from collections.abc import Mapping

# Names the parent to its launches.
PARENT_VARIABLE = "PERFGATE_PARENT_PID"

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(environment: Mapping[str, str]) -> None:
    """Have the kernel kill this process when the parent that ``environment`` names dies, even of SIGKILL.

    Does nothing where the kernel cannot (not Linux) or where no parent is named.

    Raises:
        SystemExit: the parent is gone already.
    """
    parent = environment.get(PARENT_VARIABLE)
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if parent is None or prctl is None:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if str(os.getppid()) != parent:
        raise SystemExit(1)
