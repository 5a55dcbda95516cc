"""A fleet on a real Ray cluster of one machine: nodes that die, workers that hang or crash, and what is kept."""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfgate.cluster.task import Delivery, Order
from perfgate.core.fleet import Concurrency, Seat
from perfgate.core.fleet_report import Standing
from perfgate.core.policy import Policy
from perfgate.errors import ConfigurationError
from perfgate.storage.fleet_folder import read_manifest
from perfgate.workflow.fleet_judging import FleetInput, judged_fleet
from perfgate.workflow.fleet_measuring import FleetPlan, measured_fleet

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

ROOT = Path(__file__).resolve().parents[2]
NODES = ("n0", "n1")
# Eight peers: among four no GPU could be told from chance.
GPUS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of a few GPUs each, and a head without any."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    # Workers import the project, and this file for the tasks below, from where this process does.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False})
    for name in NODES:
        made.add_node(num_cpus=1, num_gpus=GPUS, node_name=name, labels={"rack": f"of-{name}"})
    # Joined once for all tests: that takes seconds.
    ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
    yield made
    with contextlib.suppress(Exception):
        ray.shutdown()
    made.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def deliver(cluster: Any) -> Callable[..., tuple[dict[str, Delivery], dict[str, str]]]:
    """Run a task on every GPU; return what came by seat, and why the rest did not."""
    from perfgate.cluster.dispatch import deliver as dispatch
    from perfgate.cluster.dispatch import joined

    def run(task: Callable[[Order], Delivery], **options: Any) -> tuple[dict[str, Delivery], dict[str, str]]:
        came: dict[str, Delivery] = {}

        def take(seat: Seat, delivery: Delivery) -> None:
            came[seat.name] = delivery

        timeout_s = options.pop("timeout_s", 30.0)
        with joined(cluster.address) as nodes:
            orders = {
                (seat.node, seat.gpu): Order(arguments=(seat.name,), timeout_s=timeout_s)
                for node in nodes
                for seat in node.seats
            }
            concurrency = options.pop("concurrency", Concurrency.GPU)
            lost = dispatch(nodes, orders, concurrency, take, task=task, **options)
        return came, {f"{node}/{gpu}": reason for (node, gpu), reason in lost.items()}

    return run


def delivery(text: str) -> Delivery:
    return Delivery(document=text.encode(), failure=None, exit_code=0, duration_s=0.0, perfgate_version="1")


def tells_its_gpu(order: Order) -> Delivery:
    return delivery(f"{os.environ['CUDA_VISIBLE_DEVICES']} {time.time()} {order.arguments[0]}")


def crashes_on_one(order: Order) -> Delivery:
    if order.arguments[0] == "n0/1":
        os._exit(1)
    return delivery("well")


def hangs_on_one(order: Order) -> Delivery:
    if order.arguments[0] == "n1/0":
        time.sleep(600)
    return delivery("well")


def store_is_full_on_one(order: Order) -> Delivery:
    if order.arguments[0] == "n1/1":
        raise ray.exceptions.ObjectStoreFullError("no room for the document")
    return delivery("well")


SEATS = {f"{node}/{gpu}" for node in NODES for gpu in range(GPUS)}


@pytest.mark.parametrize("concurrency", list(Concurrency))
def test_deliver__measures_every_gpu_once_and_each_is_another(
    deliver: Callable[..., Any], concurrency: Concurrency
) -> None:
    came, lost = deliver(tells_its_gpu, concurrency=concurrency)
    assert lost == {}
    assert set(came) == SEATS
    seen = {seat: (one.document or b"").decode().split()[0] for seat, one in came.items()}
    for node in NODES:
        assert {seen[f"{node}/{gpu}"] for gpu in range(GPUS)} == {str(gpu) for gpu in range(GPUS)}


def test_deliver__a_worker_that_crashes_costs_its_own_gpu(deliver: Callable[..., Any]) -> None:
    came, lost = deliver(crashes_on_one)
    assert set(came) == SEATS - {"n0/1"}
    assert "WorkerCrashed" in lost["n0/1"]


def test_deliver__a_worker_that_hangs_is_given_up_in_time(
    deliver: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.cluster.dispatch._SLACK_S", 1.0)
    came, lost = deliver(hangs_on_one, timeout_s=4.0)
    assert set(came) == SEATS - {"n1/0"}
    assert "until time was up" in lost["n1/0"]


def test_deliver__a_full_object_store_is_told_of(deliver: Callable[..., Any]) -> None:
    came, lost = deliver(store_is_full_on_one)
    assert set(came) == SEATS - {"n1/1"}
    assert "no room" in lost["n1/1"] or "ObjectStoreFull" in lost["n1/1"]


def test_deliver__gpus_that_other_work_holds_are_missing_not_waited_for_forever(
    cluster: Any, deliver: Callable[..., Any]
) -> None:
    from perfgate.cluster.dispatch import joined

    with joined(cluster.address):
        from ray.util.placement_group import placement_group, remove_placement_group

        taken = placement_group([{"GPU": GPUS}], strategy="STRICT_PACK", bundle_label_selector=[{"rack": "of-n1"}])
        assert taken.wait(30)
        came, lost = deliver(tells_its_gpu, placement_s=2.0)
        remove_placement_group(taken)
    assert set(came) == {f"n0/{gpu}" for gpu in range(GPUS)}
    assert set(lost) == SEATS - set(came)
    assert all("held by other work" in reason for reason in lost.values())


def plan(cluster: Any, **changes: Any) -> FleetPlan:
    slow = ("--inject", "bandwidth.copy*=+5%")
    seeds = {(node, gpu): ("--seed", f"{i}{gpu}") for i, node in enumerate(NODES) for gpu in range(GPUS)}
    given: dict[str, Any] = {
        "arguments": ("--device", "recorded", "--case", "bandwidth.copy*", "--launches", "2"),
        "address": cluster.address,
        "own_arguments": seeds | {("n1", 0): (*seeds["n1", 0], *slow)},
        "concurrency": Concurrency.NODE,
    }
    return FleetPlan(**(given | changes))


def silent(seat: Seat, reason: str | None, done: int, count: int) -> None:
    del seat, reason, done, count


def test_measured_fleet__a_slow_gpu_is_found_a_damaged_run_is_missing_and_resume_measures_it_again(
    cluster: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "fleet"
    manifest = measured_fleet(folder, plan(cluster), heard=silent)
    assert manifest.vacancies == ()
    assert {seat.labels["rack"] for seat in manifest.seats} == {"of-n0", "of-n1"}
    given = FleetInput(folder=folder, policy=Policy(), shows_hosts=True)
    first = judged_fleet(given).report
    assert [one.seat.name for one in first.members if one.standing is Standing.SLOW] == ["n1/0"]
    assert first.concurrency == "node"

    damaged = folder / "runs" / "n0" / "1.json.gz"
    damaged.write_bytes(damaged.read_bytes()[:100])
    (folder / "runs" / "n1" / "1.json.gz").unlink()
    broken = judged_fleet(given).report
    missing = {one.seat.name: one.reasons[0] for one in broken.members if one.standing is Standing.MISSING}
    assert "damaged" in missing["n0/1"]
    assert set(missing) == {"n0/1", "n1/1"}

    with pytest.raises(ConfigurationError, match="holds runs of a fleet"):
        measured_fleet(folder, plan(cluster), heard=silent)
    with pytest.raises(ConfigurationError, match="was measured with"):
        measured_fleet(folder, plan(cluster, concurrency=Concurrency.GPU), resume=True, heard=silent)
    kept = (folder / "runs" / "n0" / "0.json.gz").read_bytes()
    measured: list[str] = []
    measured_fleet(folder, plan(cluster), resume=True, heard=lambda seat, *_: measured.append(seat.name))
    assert sorted(measured) == ["n0/1", "n1/1"]
    assert (folder / "runs" / "n0" / "0.json.gz").read_bytes() == kept
    assert judged_fleet(given).report.count(Standing.MISSING) == 0


def test_measured_fleet__a_node_without_a_gpu_that_works_is_missing_with_its_error(
    cluster: Any, tmp_path: Path
) -> None:
    broken = plan(cluster, own_arguments={("n0", 1): ("--device", "recorded:/nowhere.json")})
    manifest = measured_fleet(tmp_path / "fleet", broken, only=[Seat(node="n0", gpu=1)], heard=silent)
    (vacancy,) = manifest.vacancies
    assert vacancy.seat.name == "n0/1"
    assert "nowhere.json" in vacancy.reason


def test_measured_fleet__a_node_that_dies_in_the_middle_is_missing_and_the_rest_is_judged(
    cluster: Any, tmp_path: Path
) -> None:
    doomed = cluster.add_node(num_cpus=1, num_gpus=1, node_name="n2")
    folder = tmp_path / "fleet"

    def kill(seat: Seat, reason: str | None, done: int, count: int) -> None:
        del seat, reason, count
        if done == 1:
            cluster.remove_node(doomed, allow_graceful=False)

    hanging = plan(cluster, own_arguments={("n2", 0): ("--inject", "bandwidth.copy*=hang")}, timeout_s=300.0)
    manifest = measured_fleet(folder, hanging, heard=kill)
    assert [one.seat.name for one in manifest.vacancies] == ["n2/0"]
    report = judged_fleet(FleetInput(folder=folder, policy=Policy(), shows_hosts=True)).report
    assert report.count(Standing.MISSING) == 1
    stored = read_manifest(folder)
    assert stored is not None
    assert len(stored.seats) == len(SEATS) + 1
