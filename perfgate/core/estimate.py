"""Predicted times: the model, and what all operators share.

T = launch + max(FLOP / (compute roof x share of it), bytes / memory roof, exponentials / their rate), where
the share is that of waves and tiles; products add their ramp.
The maximum assumes that computing and moving overlap fully; the roofs are measured ones where a run
is given, else the datasheet's, which no kernel quite reaches. Operators: ``core.gemm``
(cut by ``core.tiling``),
``core.attention``, ``core.operators``; links: ``core.transfer``; serial steps: ``core.latency``.
"""

from fractions import Fraction

from perfgate.core.case import MemoryLevel, Work
from perfgate.core.caveat import Caveat
from perfgate.core.peaks import DTYPE_BITS, pipe_text
from perfgate.core.prediction import Prediction, Term, Threshold, Waves
from perfgate.core.report import Bound
from perfgate.core.roofline import attainable_per_s
from perfgate.core.roofs import Roof, RoofKind, Roofs, ridge_flop_per_byte
from perfgate.core.units import bytes_text, rate_text, time_text
from perfgate.errors import ConfigurationError

# What one more kernel in a stream costs where no run says: published 1.08 (V100) and 1.50 µs (A100; Zhang et
# al., IPDPS 2020), 2.1 µs (H100; Hazy Research 2025); 1.28 to 1.37 µs on H200.
LAUNCH_S = 1.5e-6
_INT64_MAX = 2**63 - 1

# The pipes that multiply matrices of a type, the faster first.
_MATRIX_PIPES = {
    "fp64": ("fp64-tensor", "fp64"),
    "fp32": ("fp32",),
    "tf32": ("tf32-tensor",),
    "fp16": ("fp16-tensor",),
    "bf16": ("bf16-tensor",),
    "fp8": ("fp8-tensor",),
    "int8": ("int8-tensor",),
    "fp4": ("fp4-tensor",),
}


def prediction(
    *,
    kind: str,
    subject: str,
    work: Work,
    roofs: Roofs,
    exponentials: int = 0,
    waves: Waves | None = None,
    terms: tuple[Term, ...] = (),
    thresholds: tuple[Threshold, ...] = (),
    caveats: tuple[Caveat, ...] = (),
) -> Prediction:
    """Apply the time model to an operator's work.

    Raises:
        ConfigurationError: the memory roof of the GPU is unknown.
    """
    memory, compute = known_memory_roof(roofs, work.memory_level), roofs.compute_roof(work.pipe)
    found = [_launch_term(roofs), *terms, _memory_term(work, memory)]
    if work.work_flop and compute is not None and compute.best_per_s is not None:
        found.append(_compute_term(work, compute, compute.best_per_s, waves))
    if exponentials and roofs.exponentials_per_s is not None:
        found.append(
            Term(
                name="exponentials",
                time_s=exponentials / roofs.exponentials_per_s,
                formula=f"{_count(exponentials, 'exp')} / {rate_text(roofs.exponentials_per_s, 'exp')}",
                bound=Bound.COMPUTE,
            )
        )
    ridge = ridge_flop_per_byte(compute.best_per_s if compute else None, memory.best_per_s)
    intensity = work.intensity_flop_per_byte
    attainable = None
    if intensity is not None and compute is not None and compute.best_per_s and memory.best_per_s:
        attainable = attainable_per_s(intensity, compute.best_per_s, memory.best_per_s)
    return Prediction(
        kind=kind,
        subject=subject,
        machine=roofs.gpu_name,
        work=work,
        exponentials=exponentials,
        terms=tuple(found),
        compute_roof=compute,
        memory_roof=memory,
        ridge_flop_per_byte=ridge,
        ridge_label=f"{compute.label} over {memory.label}" if ridge is not None and compute is not None else "",
        attainable_per_s=attainable,
        waves=waves,
        thresholds=thresholds,
        caveats=(*caveats, *_caveats(work, exponentials, roofs, compute, memory)),
    )


def _launch_term(roofs: Roofs) -> Term:
    measured = roofs.launch_s is not None
    return Term(
        name="launch",
        time_s=LAUNCH_S if roofs.launch_s is None else roofs.launch_s,
        formula="measured gap between queued kernels" if measured else "one more kernel in a stream, published",
        bound=Bound.LATENCY,
        overlaps=False,
    )


def _memory_term(work: Work, memory: Roof) -> Term:
    rate = memory.best_per_s or 0.0
    return Term(
        name="memory",
        time_s=work.moved_bytes / rate,
        formula=f"{_count(work.moved_bytes, 'B')} / {rate_text(rate, 'B')}",
        bound=Bound.MEMORY,
    )


def _compute_term(work: Work, compute: Roof, rate: float, waves: Waves | None) -> Term:
    factor = 1.0 if waves is None else waves.rate_share
    divisor = rate_text(rate, compute.unit)
    return Term(
        name="compute",
        time_s=work.work_flop / (rate * factor),
        formula=f"{_count(work.work_flop, compute.unit)} / "
        + (divisor if waves is None else f"({divisor} x {factor:.2f})"),
        bound=Bound.COMPUTE,
    )


def _count(amount: int, unit: str) -> str:
    return rate_text(amount, unit).removesuffix("/s")


def known_memory_roof(roofs: Roofs, level: MemoryLevel) -> Roof:
    """Return the memory roof of a GPU.

    Raises:
        ConfigurationError: nothing is known of it.
    """
    roof = roofs.memory_roof(level)
    if roof is None or roof.best_per_s is None:
        message = f"{roofs.gpu_name}: no {level.value.upper()} bandwidth is known, neither measured nor published"
        raise ConfigurationError(message, hint="measure it: `perfgate run RUN.json`, then pass --run RUN.json")
    return roof


def known_ridge(pipe: str, roofs: Roofs) -> Fraction:
    """Return the ridge point of a pipe over DRAM [FLOP/byte], exact for the values given.

    Raises:
        ConfigurationError: one of the roofs is unknown.
    """
    compute, memory = roofs.compute_roof(pipe), known_memory_roof(roofs, MemoryLevel.DRAM)
    ridge = ridge_flop_per_byte(compute.best_per_s if compute else None, memory.best_per_s)
    if ridge is None:
        raise ConfigurationError(f"{roofs.gpu_name}: no {pipe_text(pipe)} peak is known")
    return Fraction(ridge)


def matrix_pipe(dtype: str, roofs: Roofs) -> str:
    """Return the pipe that multiplies matrices of a type on a GPU.

    Raises:
        ConfigurationError: the type is unknown, or the GPU has no such pipe; the hint lists what it has.
    """
    checked_dtype(dtype)
    pipes = _MATRIX_PIPES[dtype]
    found = next((pipe for pipe in pipes if (roof := roofs.compute_roof(pipe)) and roof.best_per_s), None)
    if found is not None:
        return found
    usable = [name for name, several in _MATRIX_PIPES.items() if any(roofs.compute_roof(pipe) for pipe in several)]
    message = f"{roofs.gpu_name}: no {' or '.join(pipe_text(pipe) for pipe in pipes)} peak is known"
    raise ConfigurationError(message, hint=f"types with a known peak: {', '.join(usable) or 'none'}")


def vector_pipe(dtype: str) -> str:
    """Return the pipe that elementwise work of a type is done on: FP64, or FP32 for everything narrower."""
    return "fp64" if checked_dtype(dtype) == "fp64" else "fp32"


def checked_dtype(dtype: str) -> str:
    """Return the type.

    Raises:
        ConfigurationError: it is unknown.
    """
    if dtype not in DTYPE_BITS:
        raise ConfigurationError(f"unknown data type {dtype!r}", hint=f"one of {', '.join(DTYPE_BITS)}")
    return dtype


def checked_sizes(**sizes: int) -> None:
    """Check that every size is a positive whole number.

    Raises:
        ConfigurationError: names the first that is not.
    """
    for name, value in sizes.items():
        checked_count(name.replace("_", "-"), value, least=1)


def checked_count(name: str, value: object, *, least: int) -> None:
    """Check one whole number.

    Raises:
        ConfigurationError: it is none, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        wanted = "a positive whole number" if least else "a whole number, 0 or more"
        raise ConfigurationError(f"{name} must be {wanted}, found {value!r}")


def _caveats(work: Work, exponentials: int, roofs: Roofs, compute: Roof | None, memory: Roof) -> tuple[Caveat, ...]:
    found = []
    if max(work.work_flop, work.moved_bytes, exponentials) > _INT64_MAX:
        found.append(
            Caveat(
                code="beyond-int64",
                message=f"{work.work_flop:.3e} FLOP and {work.moved_bytes:.3e} bytes do not fit 64-bit integers",
                remedy="perfgate counts exactly; a kernel or tool that counts in int64 overflows here",
            )
        )
    if RoofKind.MEASURED not in (memory.best_kind, compute.best_kind if compute else None):
        found.append(
            Caveat(
                code="paper-roofs",
                message="the roofs are the vendor's: well-made kernels reach 84 to 93 % of the memory roof and 71 to "
                "87 % of tensor peaks, so this is a lower bound of the time",
                remedy="pass --run RUN.json for the roofs of a machine of your own",
            )
        )
    if work.work_flop and (compute is None or compute.best_per_s is None):
        found.append(
            Caveat(code="compute-roof-unknown", message=f"no {pipe_text(work.pipe or '?')} peak is known: memory only")
        )
    if roofs.l2_bytes and work.memory_level is MemoryLevel.DRAM and work.moved_bytes <= roofs.l2_bytes:
        l2 = roofs.memory_roof(MemoryLevel.L2)
        warm = f"; from L2 it takes {time_text(work.moved_bytes / l2.best_per_s)}" if l2 and l2.best_per_s else ""
        found.append(
            Caveat(
                code="cache-resident",
                message=f"{bytes_text(work.moved_bytes)} fit the L2 of {bytes_text(roofs.l2_bytes)}: repeated "
                f"executions are served by it and beat this time{warm}",
            )
        )
    return tuple(found)
