"""The public names: what a suite of one's own is written with. ``import perfgate.api as pg``.

A suite is a Python file with a function ``suite`` from the GPU at hand to cases; docs/own-kernels.md shows it.
"""

from perfgate.api.arrays import InOut, Input, Output
from perfgate.api.axes import axes, case_id
from perfgate.api.callable_case import Execution, callable_case
from perfgate.api.command_case import command_case
from perfgate.api.cuda_case import cuda_case
from perfgate.api.stream import Stream
from perfgate.core.case import AbsentCase, Case, MemoryLevel, Suite, Timing, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Kernel, Toolbox, Verification, Workload

__all__ = [
    "AbsentCase",
    "Buffer",
    "Case",
    "Execution",
    "Gpu",
    "InOut",
    "Input",
    "Kernel",
    "MemoryLevel",
    "Output",
    "Stream",
    "Suite",
    "Timing",
    "Toolbox",
    "Unit",
    "Verification",
    "Work",
    "Workload",
    "axes",
    "callable_case",
    "case_id",
    "command_case",
    "cuda_case",
]
