"""Measuring a fleet: which GPUs are asked for what, and their runs in a folder."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate import __version__
from perfgate.core.fleet import Concurrency, Seat, Vacancy
from perfgate.errors import ConfigurationError, DocumentError
from perfgate.storage.documents import parse_run
from perfgate.storage.fleet_folder import FleetManifest, read_manifest, run_path, write_manifest, write_seat_run

# A launch is given up after 15 minutes; a whole run of a GPU that is well takes one to three.
TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """What is measured, and how.

    Attributes:
        arguments: of every ``perfgate run``, as they were given.
        address: of the cluster; None starts one on this machine, ``"auto"`` finds one.
        own_arguments: further ones of a seat, by node and GPU: other recordings, rehearsals.
        timeout_s: longest run of one GPU.
        placement_s: how long to wait for GPUs that other work holds.
        variables: added to the environment of every run.
        baselines: files that every GPU is sampled by, by name; sent along.
    """

    arguments: tuple[str, ...] = ()
    concurrency: Concurrency = Concurrency.GPU
    address: str | None = None
    own_arguments: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    placement_s: float = 300.0
    variables: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, bytes] = field(default_factory=dict)

    def all_arguments(self, seat: Seat) -> tuple[str, ...]:
        """Return what ``perfgate run`` is told on a seat."""
        own = self.own_arguments.get((seat.node, seat.gpu), ())
        return (*self.arguments, *own, "--concurrency", str(self.concurrency))


Heard = Callable[[Seat, str | None, int, int], None]


def measured_fleet(
    folder: Path, plan: FleetPlan, *, resume: bool = False, only: Sequence[Seat] | None = None, heard: Heard
) -> FleetManifest:
    """Measure every GPU of a cluster into a folder.

    Args:
        folder: gets the runs and the manifest; must be empty but for a resumed call.
        plan: what, and how.
        resume: keep the runs that are there, and measure the rest.
        only: these seats; None for all.
        heard: told of every seat that is done: which, why it failed (None where it did not), how many are done, of
            how many.

    Raises:
        ConfigurationError: no cluster, no GPU, a folder that holds something else.
        OutputError: the folder cannot be written.
        LaunchError: the cluster was lost.
    """
    from perfgate.cluster.dispatch import deliver, joined
    from perfgate.cluster.task import Delivery, Order

    before = _begun(folder, plan, resume=resume)
    with joined(plan.address) as nodes:
        seats = [seat for node in nodes for seat in node.seats]
        if only is not None:
            asked = {(seat.node, seat.gpu) for seat in only}
            seats = [seat for seat in seats if (seat.node, seat.gpu) in asked]
        # A node that has left since is still part of the fleet that was asked for.
        known = {(seat.node, seat.gpu): seat for seat in (*(before.seats if before else ()), *seats)}
        kept = {key for key, seat in known.items() if resume and is_readable(run_path(folder, seat))}
        orders = {
            (seat.node, seat.gpu): Order(
                arguments=plan.all_arguments(seat),
                timeout_s=plan.timeout_s,
                variables=dict(plan.variables),
                baselines=dict(plan.baselines),
            )
            for seat in seats
            if (seat.node, seat.gpu) not in kept
        }
        manifest = FleetManifest(
            arguments=plan.arguments,
            concurrency=str(plan.concurrency),
            seats=tuple(known[key] for key in sorted(known)),
        )
        write_manifest(folder, manifest)
        failures: dict[tuple[str, int], str] = {}
        done = 0

        def take(seat: Seat, delivery: Delivery) -> None:
            nonlocal done
            done += 1
            reason = _stored(folder, seat, delivery)
            if reason is not None:
                failures[seat.node, seat.gpu] = reason
            heard(seat, reason, done, len(orders))

        lost = deliver(nodes, orders, plan.concurrency, take, placement_s=plan.placement_s)
    for (node, gpu), reason in lost.items():
        done += 1
        heard(known[node, gpu], reason, done, len(orders))
    failures |= lost
    gone = {key: "its node is not part of the cluster" for key in known if key not in orders and key not in kept}
    vacancies = tuple(Vacancy(seat=known[key], reason=reason) for key, reason in sorted((gone | failures).items()))
    manifest = replace(manifest, vacancies=vacancies)
    write_manifest(folder, manifest)
    return manifest


def _begun(folder: Path, plan: FleetPlan, *, resume: bool) -> FleetManifest | None:
    """Look at what the folder holds; a resumed call goes on with the same measurement or not at all."""
    before = read_manifest(folder)
    if before is None:
        if folder.is_dir() and any(folder.iterdir()):
            raise ConfigurationError(f"{folder} is not empty", hint="name a folder of its own for the runs of a fleet")
        return None
    if not resume:
        raise ConfigurationError(
            f"{folder} holds runs of a fleet", hint="--resume keeps them and measures the rest; else name a new folder"
        )
    asked = (plan.arguments, str(plan.concurrency))
    if (before.arguments, before.concurrency) != asked:
        was = " ".join((*before.arguments, "--concurrency", before.concurrency))
        raise ConfigurationError(f"{folder} was measured with {was}", hint="resume with the same options")
    return before


def is_readable(path: Path) -> bool:
    """Tell whether a file is a whole run document."""
    with contextlib.suppress(DocumentError, OSError):
        parse_run(path.read_bytes(), str(path))
        return True
    return False


def _stored(folder: Path, seat: Seat, delivery: object) -> str | None:
    """Keep what a seat sent; return why it counts as missing, None where it does not."""
    from perfgate.cluster.task import Delivery

    if not isinstance(delivery, Delivery):
        return f"it sent a {type(delivery).__name__}, not a run"
    if delivery.document is None:
        return delivery.failure
    try:
        write_seat_run(folder, seat, parse_run(delivery.document, seat.name))
    except DocumentError as error:
        other = f" (its node has perfgate {delivery.perfgate_version})"
        return f"its document is damaged: {error.message}{other if delivery.perfgate_version != __version__ else ''}"
    return None
