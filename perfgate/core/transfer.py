"""Transfers and collectives: T = alpha + S / (efficiency x bandwidth), one direction of one link.

Collectives after the definitions of nccl-tests (doc/PERFORMANCE.md): S is the bytes of one rank's
buffer, for all-gather and reduce-scatter those of the whole result.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.core.caveat import Caveat
from perfgate.core.estimate import checked_sizes
from perfgate.core.prediction import Prediction, Term
from perfgate.core.report import Bound
from perfgate.core.units import rate_text, time_text
from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum

# Base latency of a collective's kernels (NCCL src/graph/tuning.cc, June 2026; LL protocol; NVLS).
_RING_BASE_S, _TREE_BASE_S, _SWITCH_BASE_S = 6.6e-6, 6.8e-6, 25e-6


class Medium(StrEnum):
    """What a link is made of."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One kind of link.

    Attributes:
        bandwidth_bytes_per_s: one direction, raw.
        latency_s: of one message or step; low and high bound the published values.
        efficiency: share of the bandwidth that large transfers deliver.
        unconfirmed: values that the sources do not hold for.
    """

    id: str
    label: str
    medium: Medium
    bandwidth_bytes_per_s: float
    latency_s: float
    latency_low_s: float
    latency_high_s: float
    efficiency: float
    sources: tuple[str, ...]
    unconfirmed: tuple[str, ...] = ()
    note: str = ""

    @property
    def delivered_bytes_per_s(self) -> float:
        """Bandwidth x efficiency."""
        return self.bandwidth_bytes_per_s * self.efficiency


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTable:
    """The links that are known, and what their source keys stand for."""

    about: str
    compiled: str
    sources: Mapping[str, str]
    links: tuple[Link, ...]


class Collective(StrEnum):
    """What all ranks do together."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"


class Algorithm(StrEnum):
    """How an all-reduce goes about it."""

    RING = "ring"
    TREE = "tree"
    SWITCH = "nvls"


def link_named(table: LinkTable, name: str) -> Link:
    """Return a link by id.

    Raises:
        ConfigurationError: there is none; the hint lists near ids, or all.
    """
    by_id = {link.id: link for link in table.links}
    wanted = name.strip().lower()
    if wanted in by_id:
        return by_id[wanted]
    near = difflib.get_close_matches(wanted, by_id, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(by_id)}"
    raise ConfigurationError(f"no link named {name!r}", hint=hint)


def transfer(
    size_bytes: int,
    link: Link,
    *,
    copies: int = 1,
    multicast: bool = False,
    items: int = 1,
    senders: int = 1,
    memory_bytes_per_s: float | None = None,
    overlaps: bool = True,
) -> Prediction:
    """Predict moving ``items`` buffers of ``size_bytes`` to ``copies`` receivers each.

    Args:
        size_bytes: of one buffer.
        link: what it goes over.
        copies: receivers; unicast sends the bytes once for each, multicast in the switch once.
        multicast: whether the switch copies.
        items: buffers that one GPU has to send, e.g. experts: their bytes add up.
        senders: GPUs that send to the same receiver at once: its incoming link carries them all.
        memory_bytes_per_s: memory roof of the ends, where reading there and writing here count.
        overlaps: reading, sending and writing go on at once (double buffers), so that the slowest decides.

    Raises:
        ConfigurationError: a size is not positive.
    """
    checked_sizes(size=size_bytes, copies=copies, items=items, senders=senders)
    volume = size_bytes * items * (1 if multicast else copies)
    carried = volume * senders
    rate = link.delivered_bytes_per_s
    terms = [
        Term(
            name="latency",
            time_s=link.latency_s,
            formula=f"one message, published {time_text(link.latency_low_s)} to {time_text(link.latency_high_s)}",
            bound=Bound.LATENCY,
            overlaps=False,
        ),
        _wire_term(carried, 1.0, link),
    ]
    if memory_bytes_per_s is not None:
        terms.append(
            Term(
                name="memory",
                time_s=2 * volume / memory_bytes_per_s,
                formula=f"read and written: 2 x {_bytes(volume)} / {rate_text(memory_bytes_per_s, 'B')}",
                bound=Bound.MEMORY,
                overlaps=overlaps,
            )
        )
    at_wire_s = carried / link.bandwidth_bytes_per_s
    caveats = [
        Caveat(
            code="wire-speed",
            message=f"at the raw {rate_text(link.bandwidth_bytes_per_s, 'B')} the bytes alone take "
            f"{time_text(at_wire_s)}; {link.efficiency:.0%} of it is delivered",
        )
    ]
    if senders > 1:
        message = f"{senders} senders share the receiver's incoming link; a non-blocking switch does not widen it"
        caveats.append(Caveat(code="receiver-bound", message=message))
    several = "" if copies == 1 else f" to {copies} receivers{' by multicast' if multicast else ''}"
    whole = _bytes(size_bytes) if items == 1 else f"{items} x {_bytes(size_bytes)}"
    return Prediction(
        kind="transfer",
        subject=f"{whole}{several}",
        machine=link.label,
        terms=tuple(terms),
        algorithm_bytes_per_s=rate,
        caveats=tuple(caveats),
    )


def collective(
    kind: Collective, size_bytes: int, ranks: int, link: Link, *, algorithm: Algorithm = Algorithm.RING
) -> Prediction:
    """Predict a collective of ``ranks`` GPUs, each with one ``link`` into the switch.

    Ring all-reduce 2 (n - 1) alpha + 2 (n - 1) / n S / B; reduce-scatter and all-gather half of it;
    all-to-all alpha + (n - 1) / n S / B; broadcast and reduce (n - 1) alpha + S / B, pipelined; tree
    all-reduce 2 log2(n) alpha + 2 S / B; in the switch (NVLS) each rank sends its part and its share of
    the result once, (n + 1) / n S / B. All plus the base latency of the kernels.

    Raises:
        ConfigurationError: a size is not positive, fewer than two ranks, or an algorithm that the
            collective has not.
    """
    checked_sizes(size=size_bytes, ranks=ranks)
    if ranks < 2:
        raise ConfigurationError("a collective needs at least 2 ranks")
    if algorithm is not Algorithm.RING and kind is not Collective.ALL_REDUCE:
        raise ConfigurationError(f"{kind} has no {algorithm} algorithm here", hint="only all-reduce has tree and nvls")
    if algorithm is Algorithm.SWITCH and link.medium is not Medium.NVLINK:
        raise ConfigurationError(f"nvls reduces in an NVLink switch; {link.label} has none")
    base_s, steps, share = _shape(kind, algorithm, ranks)
    terms = (
        Term(name="launch", time_s=base_s, formula="base latency of the kernels", bound=Bound.LATENCY, overlaps=False),
        Term(
            name="latency",
            time_s=steps * link.latency_s,
            formula=f"{steps} steps x {time_text(link.latency_s)}",
            bound=Bound.LATENCY,
            overlaps=False,
        ),
        _wire_term(size_bytes, share, link),
    )
    time_s = sum(term.time_s for term in terms)
    factor = bus_factor(kind, ranks)
    caveats = []
    if algorithm is Algorithm.SWITCH:
        message = "the switch reduces, so bus bandwidth may exceed the wire: 482 of 450 GB/s were measured on 8 H200"
        caveats.append(Caveat(code="in-switch", message=message))
    if _wire_term(size_bytes, share, link).time_s < base_s + steps * link.latency_s:
        message = "latency is the larger part: the prediction is as uncertain as the published step times"
        caveats.append(Caveat(code="latency-dominated", message=message))
    return Prediction(
        kind="collective",
        subject=f"{kind} of {_bytes(size_bytes)}, {ranks} ranks, {algorithm}",
        machine=link.label,
        terms=terms,
        algorithm_bytes_per_s=size_bytes / time_s,
        bus_bytes_per_s=size_bytes / time_s * factor,
        caveats=tuple(caveats),
    )


def bus_factor(kind: Collective, ranks: int) -> float:
    """Return what turns S / T into bus bandwidth, comparable with the link (nccl-tests doc/PERFORMANCE.md)."""
    if kind in (Collective.BROADCAST, Collective.REDUCE):
        return 1.0
    ring = (ranks - 1) / ranks
    return 2 * ring if kind is Collective.ALL_REDUCE else ring


def _shape(kind: Collective, algorithm: Algorithm, ranks: int) -> tuple[float, int, float]:
    """Base latency, steps, and the share of S that crosses each link in one direction."""
    if algorithm is Algorithm.TREE:
        return _TREE_BASE_S, 2 * math.ceil(math.log2(ranks)), 2.0
    if algorithm is Algorithm.SWITCH:
        return _SWITCH_BASE_S, 2, (ranks + 1) / ranks
    steps = {Collective.ALL_REDUCE: 2 * (ranks - 1), Collective.ALL_TO_ALL: 1}.get(kind, ranks - 1)
    return _RING_BASE_S, steps, bus_factor(kind, ranks)


def _wire_term(size_bytes: int, share: float, link: Link) -> Term:
    crossing = _bytes(size_bytes) if share == 1 else f"{share:.3g} x {_bytes(size_bytes)}"
    return Term(
        name="wire",
        time_s=size_bytes * share / link.delivered_bytes_per_s,
        formula=f"{crossing} / ({rate_text(link.bandwidth_bytes_per_s, 'B')} x {link.efficiency:.2f})",
        bound=Bound.MEMORY,
    )


def _bytes(size_bytes: int) -> str:
    return rate_text(size_bytes, "B").removesuffix("/s")
