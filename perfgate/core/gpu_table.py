"""The table of GPUs: datasheet values and rates by name, and how a name is found in it.

Types and look-up only; ``storage.gpu_table`` reads the table that ships with perfgate.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError

# A driver reports up to 7 % more bytes than the decimal size on the box (H200: 150.1e9 for "141 GB").
_MEMORY_TOLERANCE = 0.15
_VENDOR_WORDS = ("nvidia ", "geforce ", "tesla ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeRates:
    """Operations per clock and SM of one compute capability, by pipe; two per multiply-add, dense.

    Attributes:
        half_rate: what parts that halve FP32-accumulate tensor rates do instead.
    """

    compute_capability: str
    flop_per_clock_per_sm: Mapping[str, int]
    half_rate: Mapping[str, int]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSheet:
    """What is published about one GPU; None = unknown, 0 = none.

    Attributes:
        id: short name of the row.
        names: exact driver strings.
        sm_clock_hz: boost clock.
        tensor_clock_hz: clock that the published tensor peaks are quoted at, where it is another one.
        memory_gb: size as sold.
        memory_clock_hz: as the driver's attribute gives it; its double is the data rate per pin.
        bandwidth_bytes_per_s: the datasheet's.
        integrated: shares memory with the CPU; the memory clock attribute means nothing then.
        peak_per_s: the datasheet's, by pipe: dense, FP32 accumulate unless the pipe ends in ``-acc16``.
        half_rate_accumulate: halves tensor rates with FP32 accumulate, as GeForce parts do.
        nvlink_bytes_per_s: in one direction.
        sources: keys of ``GpuTable.sources``, for every value but those in ``unconfirmed``.
        circular: values solved back from the datasheet: their agreement with it proves nothing.
        disagreements: why a derived value differs from the datasheet by more than 1 %.
    """

    id: str
    names: tuple[str, ...]
    compute_capability: str
    sm_count: int | None = None
    sm_clock_hz: float | None = None
    tensor_clock_hz: float | None = None
    memory_type: str | None = None
    memory_gb: float | None = None
    memory_clock_hz: float | None = None
    memory_bus_bits: int | None = None
    bandwidth_bytes_per_s: float | None = None
    integrated: bool = False
    l2_bytes: int | None = None
    peak_per_s: Mapping[str, float]
    half_rate_accumulate: bool = False
    nvlink_bytes_per_s: float | None = None
    pcie_generation: int | None = None
    power_limit_w: float | None = None
    sources: tuple[str, ...]
    unconfirmed: tuple[str, ...] = ()
    circular: tuple[str, ...] = ()
    disagreements: Mapping[str, str]
    note: str = ""

    @property
    def name(self) -> str:
        """The driver's name, or the row's id where no driver knows the part."""
        return self.names[0] if self.names else self.id

    def gpu(self) -> Gpu:
        """Return the attributes that a driver would report of this part, as far as they are known."""
        return Gpu(
            name=self.name,
            compute_capability=self.compute_capability,
            sm_count=self.sm_count,
            memory_bus_bits=self.memory_bus_bits,
            memory_clock_hz=self.memory_clock_hz,
            sm_clock_max_hz=self.sm_clock_hz,
            l2_bytes=self.l2_bytes,
            integrated=self.integrated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTable:
    """All rows, the rates by compute capability, and what each source key stands for."""

    about: str
    compiled: str
    sources: Mapping[str, str]
    rates: tuple[PipeRates, ...]
    gpus: tuple[GpuSheet, ...]

    def rates_of(self, compute_capability: str | None) -> PipeRates | None:
        """Return the rates of a compute capability; None where the table has none."""
        return next((one for one in self.rates if one.compute_capability == compute_capability), None)


def base_name(name: str) -> str:
    """Return a driver's name without the suffix that a MIG partition appends: ``"NVIDIA H200 MIG 1g.18gb"``."""
    return name.split(" MIG ", 1)[0]


def gpu_sheet(table: GpuTable, name: str) -> GpuSheet:
    """Return the row that a person means by ``name``: exact driver string first, then id, then without vendor words.

    A prefix never matches: ``L4`` is one of ``L40``, ``A10`` of ``A100``, and they are other parts.

    Raises:
        ConfigurationError: no row or several; the hint lists near names.
    """
    wanted = base_name(name.strip())
    for sheet in table.gpus:
        if wanted in sheet.names:
            return sheet
    folded = _folded(wanted)
    for sheet in table.gpus:
        if folded == sheet.id or folded in {_folded(one) for one in sheet.names}:
            return sheet
    near = near_names(table, wanted)
    hint = f"did you mean {', '.join(near)}?" if near else "the names are those that nvidia-smi prints"
    message = f"no GPU named {name!r} in the table of {len(table.gpus)} GPUs"
    raise ConfigurationError(message, hint=hint)


def sheet_of(table: GpuTable, gpu: Gpu) -> GpuSheet | None:
    """Return the row of a GPU that was read; None where the name is unknown or the part is another of that name.

    Several parts share a name (every Orin says ``Orin``, two boards say ``GeForce RTX 3060``): SM count
    and memory must fit too, but for a MIG partition, which sees its share only.
    """
    named = base_name(gpu.name)
    sheet = next((one for one in table.gpus if named in (*one.names, one.name)), None)
    if sheet is None or gpu.mig_profile is not None or named != gpu.name:
        return sheet
    if None not in (gpu.sm_count, sheet.sm_count) and gpu.sm_count != sheet.sm_count:
        return None
    if gpu.memory_bytes is not None and sheet.memory_gb is not None:
        sold_bytes = sheet.memory_gb * 1e9
        if abs(gpu.memory_bytes - sold_bytes) > _MEMORY_TOLERANCE * sold_bytes:
            return None
    return sheet


def near_names(table: GpuTable, name: str, limit: int = 5) -> tuple[str, ...]:
    """Return the names of the table that are closest to one that is not in it, best first."""
    by_fold: dict[str, str] = {}
    for sheet in table.gpus:
        for one in sheet.names or (sheet.id,):
            by_fold.setdefault(_folded(one), one)
    folded = _folded(name)
    contained = sorted((one for one in by_fold if folded and folded in one), key=len)
    alike = difflib.get_close_matches(folded, by_fold, n=limit, cutoff=0.5)
    return tuple(by_fold[one] for one in dict.fromkeys(contained + alike))[:limit]


def _folded(name: str) -> str:
    folded = " ".join(name.lower().split())
    for word in _VENDOR_WORDS:
        folded = folded.removeprefix(word)
    return folded
