"""The built-in cases, one module a family: which kernel, sizes, work, reference.

Each is written as a case of a user's own suite would be.
"""

from collections.abc import Callable

from perfgate.core.case import AbsentCase, Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError
from perfgate.suite.access import access_cases, gather_cases
from perfgate.suite.attention_decode import attention_decode_cases
from perfgate.suite.attention_prefill import attention_prefill_cases
from perfgate.suite.bandwidth import bandwidth_cases, sweep_cases
from perfgate.suite.elementwise import elementwise_cases
from perfgate.suite.gemm import full_gemm_cases, gemm_cases
from perfgate.suite.gemm_fp64 import default_fp64_cases, full_fp64_cases
from perfgate.suite.gemm_library import default_library_cases, full_library_cases
from perfgate.suite.gemm_skinny import skinny_cases
from perfgate.suite.latency import latency_cases
from perfgate.suite.launch import launch_cases
from perfgate.suite.normalization import normalization_cases
from perfgate.suite.onchip import l2_cases, shared_cases
from perfgate.suite.peak import peak_cases
from perfgate.suite.peer import peer_cases
from perfgate.suite.reduction import reduction_cases
from perfgate.suite.tensor_gemm import default_tensor_cases, full_tensor_cases
from perfgate.suite.transfer import transfer_cases

SUITE_NAMES = ("default", "full")

_Family = Callable[[Gpu], tuple[Case | AbsentCase, ...]]
# What `default` holds, and what only `full` adds to it; a line of their own each, in the order of docs/suite.md.
_DEFAULT: tuple[_Family, ...] = (
    bandwidth_cases,
    gather_cases,
    l2_cases,
    transfer_cases,
    gemm_cases,
    default_fp64_cases,
    default_tensor_cases,
    skinny_cases,
    default_library_cases,
    launch_cases,
)
_FULL_ONLY: tuple[_Family, ...] = (
    access_cases,
    shared_cases,
    sweep_cases,
    peer_cases,
    full_gemm_cases,
    full_fp64_cases,
    full_tensor_cases,
    full_library_cases,
    peak_cases,
    latency_cases,
    elementwise_cases,
    reduction_cases,
    normalization_cases,
    attention_decode_cases,
    attention_prefill_cases,
)


def built_in_suite(name: str, gpu: Gpu) -> Suite:
    """Return the cases of a built-in suite on a GPU; what it cannot run is listed as absent, with the reason.

    Args:
        name: ``"default"`` or ``"full"``.
        gpu: sizes are a pure function of its identity, never of what is free at the moment.

    Raises:
        ConfigurationError: there is no suite of that name.
    """
    if name not in SUITE_NAMES:
        raise ConfigurationError(
            f"there is no built-in suite {name!r}", hint=f"choose one of {', '.join(SUITE_NAMES)}, or name a file"
        )
    families = (*_DEFAULT, *_FULL_ONLY) if name == "full" else _DEFAULT
    entries = [entry for family in families for entry in family(gpu)]
    return Suite(
        name=name,
        cases=tuple(entry for entry in entries if isinstance(entry, Case)),
        absent=tuple(entry for entry in entries if isinstance(entry, AbsentCase)),
    )
