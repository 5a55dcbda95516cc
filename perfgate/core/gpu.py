"""A GPU as far as times depend on it: its identity, its chip and its environment."""

from dataclasses import dataclass, fields

# Memory of one model reads slightly different by driver reservation and ECC (documents.md, Identity).
MEMORY_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What was read of one GPU; a field that could not be read is None, never guessed.

    Attributes:
        name: the driver's exact name, e.g. ``"NVIDIA H200"``.
        compute_capability: ``"9.0"``.
        sm_count: streaming multiprocessors visible to this process.
        memory_bytes: total device memory.
        memory_bus_bits: width of the memory bus; drivers have changed it, so it is not part of the identity.
        memory_clock_hz: CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE; its double is the data rate per pin.
        sm_clock_max_hz: CU_DEVICE_ATTRIBUTE_CLOCK_RATE.
        l2_bytes: size of the L2 cache.
        ecc_enabled: error correction of the device memory.
        integrated: shares memory with the CPU; its memory clock attribute means nothing then.
        mig_profile: e.g. ``"1g.18gb"``; None when not partitioned or unknown.
        power_limit_w: the enforced limit; does not survive a reboot.
        pci_device_id: vendor and device, e.g. ``"0x233510de"``.
        pci_subsystem_id: e.g. ``"0x18be10de"``.
        board_part_number: e.g. ``"692-2G520-0282-000"``.
        chip: hash that tells chips apart without revealing the UUID.
        peer_link: what joins it and another visible GPU whose memory it reaches, e.g. ``"nvlink-18x26.6"`` (links
            and GB/s each) or ``"pcie"``; None without such a GPU. Part of the ids of peer cases, not of the identity.
    """

    name: str
    compute_capability: str | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None
    memory_bus_bits: int | None = None
    memory_clock_hz: float | None = None
    sm_clock_max_hz: float | None = None
    l2_bytes: int | None = None
    ecc_enabled: bool | None = None
    integrated: bool | None = None
    mig_profile: str | None = None
    power_limit_w: float | None = None
    pci_device_id: str | None = None
    pci_subsystem_id: str | None = None
    board_part_number: str | None = None
    chip: str | None = None
    peer_link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What surrounds the GPU: recorded, reported when different, not part of the identity.

    Attributes:
        concurrency: which other GPUs were measured at the same time: ``"gpu"`` none of its node, ``"node"`` those of
            its node, ``"all"`` those of the fleet; None where nobody said.
    """

    driver_version: str | None = None
    cuda_driver_version: str | None = None
    cuda_toolkit_version: str | None = None
    compiler: str | None = None
    cublas_version: str | None = None
    pycuda_version: str | None = None
    python_version: str | None = None
    os: str | None = None
    cpu_model: str | None = None
    clock_policy: str | None = None
    nvml_tier: int | None = None
    vbios_version: str | None = None
    visible_gpus: int | None = None
    variables: str | None = None
    concurrency: str | None = None
    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two documents differ."""

    field: str
    baseline: str
    candidate: str


# The fields that must match for times to be comparable: they survive a reboot and times depend on them.
IDENTITY_FIELDS = (
    "name",
    "compute_capability",
    "sm_count",
    "memory_bytes",
    "l2_bytes",
    "ecc_enabled",
    "mig_profile",
    "pci_device_id",
    "pci_subsystem_id",
    "board_part_number",
)


def _is_same(field: str, one: object, other: object) -> bool:
    if field == "memory_bytes" and isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= MEMORY_TOLERANCE * max(one, other)
    return one == other


def identity_differences(baseline: Gpu, candidate: Gpu) -> tuple[Difference, ...]:
    """Return the identity fields in which two GPUs differ; empty when they are comparable.

    A field that one side knows and the other does not is a difference (a null taken as a wildcard
    made boards comparable that differ by 10 %); unknown on both sides is none.
    """
    return tuple(
        Difference(field=name, baseline=_shown(getattr(baseline, name)), candidate=_shown(getattr(candidate, name)))
        for name in IDENTITY_FIELDS
        if not _is_same(name, getattr(baseline, name), getattr(candidate, name))
    )


def unknown_identity_fields(gpu: Gpu) -> tuple[str, ...]:
    """Return the identity fields that could not be read; ``mig_profile`` is legitimately None."""
    return tuple(name for name in IDENTITY_FIELDS if name != "mig_profile" and getattr(gpu, name) is None)


def is_same_chip(one: Gpu, other: Gpu) -> bool:
    """Tell whether two readings are of one physical chip; an unknown chip equals no chip."""
    return one.chip is not None and one.chip == other.chip


def environment_differences(
    baseline: Environment, candidate: Environment, ignored: tuple[str, ...] = ("commit", "dirty")
) -> tuple[Difference, ...]:
    """Return the environment fields that both sides know and that differ."""
    found = []
    for field in fields(Environment):
        one, other = getattr(baseline, field.name), getattr(candidate, field.name)
        if field.name not in ignored and one is not None and other is not None and one != other:
            found.append(Difference(field=field.name, baseline=_shown(one), candidate=_shown(other)))
    return tuple(found)


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)
