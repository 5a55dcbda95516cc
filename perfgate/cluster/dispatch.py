"""One task a GPU on a Ray cluster: Ray places, starts, retries and ends them; this module says what and when.

A node's GPUs are one placement group of a bundle each: a bundle is one certain GPU for as long as the group lives, so
that every GPU is measured, and measured once, in whatever order and however often Ray has to start a task again.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfgate.cluster.task import Delivery, Order, measured_here
from perfgate.core.fleet import Concurrency, Seat
from perfgate.errors import ConfigurationError, LaunchError

# A task that lost its worker or node is started once more, by Ray.
_RETRIES = 1
# Beyond the measurement's own limit: starting a worker, sending the document.
_SLACK_S = 60.0
_LOOK_S = 1.0
_REACH_S = 5.0
_NODE_LABEL = "ray.io/node-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the cluster.

    Attributes:
        id: the cluster's own.
        name: its host name, or the name that the cluster was given for it; no two nodes share one.
        gpus: how many.
        cpus_per_gpu: what a task may ask for without asking for more than there is.
        labels: given to it when it joined.
    """

    id: str
    name: str
    gpus: int
    cpus_per_gpu: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def seats(self) -> tuple[Seat, ...]:
        """Its GPUs."""
        return tuple(Seat(node=self.name, gpu=index, labels=self.labels) for index in range(self.gpus))


@contextlib.contextmanager
def joined(address: str | None) -> Iterator[tuple[Node, ...]]:
    """Join a cluster, or start one on this machine; give its nodes that have GPUs.

    Raises:
        ConfigurationError: Ray is not installed, the cluster cannot be reached, or it has no GPU.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigurationError(f"Ray is not installed: {error}", hint="pip install 'perfgate[fleet]'") from error
    ours = not ray.is_initialized()
    if ours:
        _refuse_unreachable(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(address or "on this machine", error) from error
    try:
        nodes = _nodes()
        if not nodes:
            raise ConfigurationError("the cluster has no GPU", hint="ray status lists what it has")
        yield nodes
    finally:
        if ours:
            ray.shutdown()


def _refuse_unreachable(address: str | None) -> None:
    """Look whether anybody listens at an address: Ray itself tries for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_REACH_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(f"at {address}", error) from error


def _no_cluster(place: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"no Ray cluster {place}: {error}", hint="ray status says what runs")


def _nodes() -> tuple[Node, ...]:
    found = [node for node in _alive() if node["Resources"].get("GPU", 0) >= 1]
    names = [_name(node) for node in found]
    return tuple(
        sorted(
            (
                Node(
                    id=node["NodeID"],
                    name=name if names.count(name) == 1 else f"{name}-{node['NodeID'][:6]}",
                    gpus=int(node["Resources"]["GPU"]),
                    cpus_per_gpu=min(1.0, node["Resources"].get("CPU", 0) / int(node["Resources"]["GPU"])),
                    labels={key: value for key, value in node["Labels"].items() if not key.startswith("ray.io/")},
                )
                for name, node in zip(names, found, strict=True)
            ),
            key=lambda one: one.name,
        )
    )


def _alive() -> list[dict[str, Any]]:
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _name(node: Mapping[str, Any]) -> str:
    given = str(node.get("NodeName") or "")
    return given if given and given != node["NodeManagerAddress"] else str(node["NodeManagerHostname"])


@dataclass(slots=True)
class _Group:
    """A node's placement group and what is still to be done there."""

    node: Node
    handle: Any
    waiting: list[Seat]
    is_placed: bool = False


def deliver(
    nodes: Sequence[Node],
    orders: Mapping[tuple[str, int], Order],
    concurrency: Concurrency,
    on_delivery: Callable[[Seat, Delivery], None],
    *,
    placement_s: float = 300.0,
    task: Callable[[Order], Delivery] = measured_here,
) -> dict[tuple[str, int], str]:
    """Measure the seats that have an order, and hand over what they send as it comes.

    Args:
        nodes: of the cluster that was joined.
        orders: by node and GPU.
        concurrency: how many of a node, and of the fleet, work at the same time.
        on_delivery: called in this thread.
        placement_s: how long to wait for GPUs that other work holds.
        task: what runs on the nodes.

    Returns:
        Why a seat sent nothing, by node and GPU.

    Raises:
        LaunchError: the cluster itself was lost.
    """
    course = _Course(nodes, orders, concurrency, on_delivery, placement_s, task)
    try:
        course.run()
    finally:
        course.release()
    return course.lost


class _Course:
    """The tasks of one call."""

    def __init__(
        self,
        nodes: Sequence[Node],
        orders: Mapping[tuple[str, int], Order],
        concurrency: Concurrency,
        on_delivery: Callable[[Seat, Delivery], None],
        placement_s: float,
        task: Callable[[Order], Delivery],
    ) -> None:
        import ray

        self.lost: dict[tuple[str, int], str] = {}
        self._ray = ray
        self._orders = orders
        self._concurrency = concurrency
        self._on_delivery = on_delivery
        self._place_until_s = time.monotonic() + placement_s
        self._groups = [
            _Group(node, self._placed(node), seats)
            for node in nodes
            if (seats := [seat for seat in node.seats if (seat.node, seat.gpu) in orders])
        ]
        # By what Ray gives for a task: whose it is, and when it is late.
        self._running: dict[Any, tuple[_Group, Seat, float]] = {}
        self._task = ray.remote(max_retries=_RETRIES, num_gpus=1)(task)

    def run(self) -> None:
        """Start, wait and hand over until nothing is left."""
        try:
            while any(group.waiting for group in self._groups) or self._running:
                self._look_for_places()
                self._start()
                self._collect()
                self._end_late_ones()
                self._give_up_dead_nodes()
        except (ConnectionError, self._ray.exceptions.RaySystemError) as error:
            raise LaunchError(f"the cluster was lost: {error}") from error

    def release(self) -> None:
        """Give the GPUs back."""
        from ray.util.placement_group import remove_placement_group

        for reference in self._running:
            with contextlib.suppress(Exception):
                self._ray.cancel(reference, force=True)
        for group in self._groups:
            with contextlib.suppress(Exception):
                remove_placement_group(group.handle)

    def _placed(self, node: Node) -> Any:
        from ray.util.placement_group import placement_group

        bundle = {"GPU": 1.0} | ({"CPU": node.cpus_per_gpu} if node.cpus_per_gpu else {})
        return placement_group(
            [bundle] * node.gpus, strategy="STRICT_PACK", bundle_label_selector=[{_NODE_LABEL: node.id}] * node.gpus
        )

    def _look_for_places(self) -> None:
        waiting = [group for group in self._groups if not group.is_placed and group.waiting]
        if not waiting:
            return
        for group in waiting:
            group.is_placed = bool(group.handle.wait(0))
            if not group.is_placed and time.monotonic() > self._place_until_s:
                self._lose(group, "its GPUs were held by other work of the cluster until time was up")

    def _start(self) -> None:
        placed = [group for group in self._groups if group.is_placed]
        if self._concurrency is Concurrency.ALL and any(not one.is_placed and one.waiting for one in self._groups):
            return
        for group in placed:
            busy = sum(of is group for of, _, _ in self._running.values())
            free = 1 - busy if self._concurrency is Concurrency.GPU else len(group.waiting)
            for _ in range(min(free, len(group.waiting))):
                self._launch(group, group.waiting.pop(0))

    def _launch(self, group: _Group, seat: Seat) -> None:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        order = self._orders[seat.node, seat.gpu]
        reference = self._task.options(
            num_cpus=group.node.cpus_per_gpu,
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                placement_group=group.handle, placement_group_bundle_index=seat.gpu
            ),
            name=f"perfgate {seat.name}",
        ).remote(order)
        # Once for each try that Ray may make.
        until_s = time.monotonic() + (1 + _RETRIES) * (order.timeout_s + _SLACK_S)
        self._running[reference] = (group, seat, until_s)

    def _collect(self) -> None:
        if not self._running:
            time.sleep(_LOOK_S / 4)
            return
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_LOOK_S)
        for reference in ready:
            _, seat, _ = self._running.pop(reference)
            try:
                delivery = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self.lost[seat.node, seat.gpu] = _reason(error)
                continue
            self._on_delivery(seat, delivery)

    def _end_late_ones(self) -> None:
        now_s = time.monotonic()
        for reference, (_, seat, until_s) in list(self._running.items()):
            if now_s > until_s:
                del self._running[reference]
                self._ray.cancel(reference, force=True)
                self.lost[seat.node, seat.gpu] = "it sent nothing until time was up: its worker hangs, or its node"

    def _give_up_dead_nodes(self) -> None:
        alive = {node["NodeID"] for node in _alive()}
        for group in self._groups:
            if group.node.id in alive:
                continue
            self._lose(group, "its node left the cluster")
            for reference, (of, seat, _) in list(self._running.items()):
                if of is group:
                    del self._running[reference]
                    self.lost[seat.node, seat.gpu] = "its node left the cluster"

    def _lose(self, group: _Group, reason: str) -> None:
        for seat in group.waiting:
            self.lost[seat.node, seat.gpu] = reason
        group.waiting.clear()


def _reason(error: Exception) -> str:
    """Return the first line of what Ray says, with the class that says what kind of thing happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
