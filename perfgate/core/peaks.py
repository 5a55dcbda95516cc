"""What a GPU can do at most: memory bandwidth and compute peaks, from its attributes and from its datasheet.

The two are kept apart. An attribute peak is arithmetic over clocks that the driver reports; a
datasheet peak is what the vendor prints, for tensor pipes of Hopper and Blackwell at a lower clock
than the attribute (H200: 1830, not 1980 MHz).
"""

import re
from fractions import Fraction

from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import GpuSheet, GpuTable, base_name, sheet_of

# Both edges of the memory clock carry data; the driver reports a clock whose double is the data rate
# per pin on HBM2 to HBM3e, GDDR6, GDDR6X and GDDR7 alike (CUDA C++ Best Practices Guide, 9.2.1).
_DATA_RATE = 2
# A full A100, H100, H200 has eight memory slices (MIG User Guide, "Partitioning").
_MIG_MEMORY_SLICES = 8
# Shared memory and L1 serve 32 banks of 4 bytes a clock and SM (CUDA C++ Programming Guide, compute capabilities).
_SHARED_BYTES_PER_CLOCK_PER_SM = 128
# Transcendental operations of the multi-function unit per clock and SM (arithmetic throughput table, 7.0 to 12.0).
_MUFU_PER_CLOCK_PER_SM = 16

# Exponentials are bounded by the multi-function units, which a roof in FLOP/s does not draw.
EXPONENTIAL_PIPE = "exponential"
_LEGACY = "-legacy"

DTYPE_BITS = {"fp64": 64, "fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "fp4": 4}


def attribute_bandwidth_bytes_per_s(gpu: Gpu, table: GpuTable) -> float | None:
    """Return memory clock x bus width / 8 x 2; None where the attributes do not say.

    None on integrated GPUs (their attribute is the GPU's clock on some Jetsons) and on a MIG partition
    whose share is not known: there the whole card's bandwidth is divided by the memory slices of the
    profile, since whether a partition scales the bus attribute is not documented.
    """
    sheet = sheet_of(table, gpu)
    if gpu.integrated or (sheet is not None and sheet.integrated):
        return None
    if is_mig(gpu):
        share = mig_memory_share(gpu, sheet)
        whole = sheet and _pin_bandwidth(sheet.memory_clock_hz, sheet.memory_bus_bits)
        return float(share * Fraction(whole)) if share is not None and whole else None
    return own_bandwidth_bytes_per_s(gpu)


def own_bandwidth_bytes_per_s(gpu: Gpu) -> float | None:
    """Return memory clock x bus width / 8 x 2 by the GPU's own attributes, without a table.

    None on integrated GPUs and MIG partitions, and where the attributes do not say.
    """
    if gpu.integrated or is_mig(gpu):
        return None
    return _pin_bandwidth(gpu.memory_clock_hz, gpu.memory_bus_bits)


def _pin_bandwidth(memory_clock_hz: float | None, memory_bus_bits: int | None) -> float | None:
    if not memory_clock_hz or not memory_bus_bits:
        return None
    return memory_clock_hz * memory_bus_bits / 8 * _DATA_RATE


def datasheet_bandwidth_bytes_per_s(gpu: Gpu, table: GpuTable) -> float | None:
    """Return the vendor's bandwidth, a MIG partition's share of it; None where the GPU is not in the table."""
    sheet = sheet_of(table, gpu)
    if sheet is None or sheet.bandwidth_bytes_per_s is None:
        return None
    if not is_mig(gpu):
        return sheet.bandwidth_bytes_per_s
    share = mig_memory_share(gpu, sheet)
    return None if share is None else float(share * Fraction(sheet.bandwidth_bytes_per_s))


def is_mig(gpu: Gpu) -> bool:
    """Tell whether a GPU is a MIG partition."""
    return gpu.mig_profile is not None or base_name(gpu.name) != gpu.name


def mig_memory_share(gpu: Gpu, sheet: GpuSheet | None) -> Fraction | None:
    """Return a partition's share of the memory slices, from a profile such as ``"1g.18gb"``; None if unknown.

    The profile's size over the whole card's gives the slices: 1g.18gb of 141 GB is one of eight,
    1g.35gb two, 3g.71gb four.
    """
    profile = gpu.mig_profile or gpu.name.partition(" MIG ")[2]
    size = re.match(r"\d+g\.(\d+)gb", profile)
    if size is None or sheet is None or sheet.memory_gb is None:
        return None
    slices = round(int(size.group(1)) / sheet.memory_gb * _MIG_MEMORY_SLICES)
    return Fraction(slices, _MIG_MEMORY_SLICES) if 1 <= slices <= _MIG_MEMORY_SLICES else None


def pipe_rate(gpu: Gpu, table: GpuTable, pipe: str) -> int | None:
    """Return operations per clock and SM of a pipe; None where the part has none or it is not known.

    The compute capability alone is ambiguous by two: GeForce parts (and the L40, by its datasheet)
    halve tensor rates with FP32 accumulate, other parts of the same capability do not.
    """
    rates = table.rates_of(gpu.compute_capability)
    if rates is None:
        return None
    sheet = sheet_of(table, gpu)
    halves = "geforce" in gpu.name.lower() or (sheet is not None and sheet.half_rate_accumulate)
    full = rates.flop_per_clock_per_sm.get(pipe)
    return rates.half_rate.get(pipe, full) if halves else full


def attribute_peak_per_s(gpu: Gpu, table: GpuTable, pipe: str, clock_hz: float | None = None) -> float | None:
    """Return SMs x rate x clock of a pipe; None where one of them is unknown.

    Args:
        gpu: the GPU, a MIG partition with the SMs that it sees.
        table: for the rates.
        pipe: ``"fp32"``, ``"bf16-tensor"``.
        clock_hz: SM clock, e.g. as measured; by default the attribute's.
    """
    rate, clock_hz = pipe_rate(gpu, table, pipe), clock_hz or gpu.sm_clock_max_hz
    return gpu.sm_count * rate * clock_hz if gpu.sm_count and rate and clock_hz else None


def datasheet_peak_per_s(gpu: Gpu, table: GpuTable, pipe: str) -> float | None:
    """Return the vendor's peak of a pipe, a MIG partition's share by SMs; None where it is not printed."""
    sheet = sheet_of(table, gpu)
    peak = sheet.peak_per_s.get(pipe) if sheet is not None else None
    if sheet is None or peak is None or not is_mig(gpu):
        return peak
    return peak * gpu.sm_count / sheet.sm_count if gpu.sm_count and sheet.sm_count else None


def known_pipes(gpu: Gpu, table: GpuTable) -> tuple[str, ...]:
    """Return the pipes that a GPU has, from the rates of its compute capability and its datasheet."""
    rates, sheet = table.rates_of(gpu.compute_capability), sheet_of(table, gpu)
    pipes = dict.fromkeys(rates.flop_per_clock_per_sm if rates else ())
    return tuple(pipes | dict.fromkeys(sheet.peak_per_s if sheet else ()))


def shared_bandwidth_bytes_per_s(gpu: Gpu) -> float | None:
    """Return what shared memory and L1 serve: 128 bytes x SMs x clock; None where one is unknown."""
    if not gpu.sm_count or not gpu.sm_clock_max_hz:
        return None
    return _SHARED_BYTES_PER_CLOCK_PER_SM * gpu.sm_count * gpu.sm_clock_max_hz


def exponentials_per_s(gpu: Gpu) -> float | None:
    """Return what the multi-function units do: 16 x SMs x clock; None where one is unknown.

    H200 at 1.83 GHz: 3.9e12 a second; attention with head size 128 at 989 TFLOP/s needs half of it.
    """
    if not gpu.sm_count or not gpu.sm_clock_max_hz:
        return None
    return _MUFU_PER_CLOCK_PER_SM * gpu.sm_count * gpu.sm_clock_max_hz


def element_bytes(count: int, dtype: str) -> int:
    """Return the bytes of ``count`` elements, whole bytes for types smaller than one.

    Raises:
        KeyError: the type is not in ``DTYPE_BITS``.
    """
    return -(-count * DTYPE_BITS[dtype] // 8)


def pipe_unit(pipe: str) -> str:
    """Return what a pipe's rate counts: ``"FLOP"``, or ``"OP"`` for integers and exponentials."""
    return "OP" if pipe.startswith("int") or pipe == EXPONENTIAL_PIPE else "FLOP"


def legacy_pipe(pipe: str) -> str:
    """Return the name of a pipe's slower way in, e.g. mma.sync where tensor cores are fast by another instruction."""
    return f"{pipe}{_LEGACY}"


def is_legacy_pipe(pipe: str | None) -> bool:
    """Tell whether a case took a pipe's slower way in: what it reaches is no roof."""
    return pipe is not None and pipe.endswith(_LEGACY)


def pipe_text(pipe: str) -> str:
    """Render a pipe as people write it: ``"BF16 tensor"``, ``"FP32"``, ``"FP16 tensor acc16"``."""
    dtype, _, rest = pipe.partition("-")
    words = {"": "", "tensor": " tensor", "tensor-acc16": " tensor acc16", "tensor-legacy": " tensor by mma.sync"}
    return dtype.upper() + words.get(rest, f" {rest}")
