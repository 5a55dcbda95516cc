"""What a judged fleet is exported as is read by those whose format it is."""

import csv
import io
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as classic_families

from perfgate.core.fleet import Seat, Vacancy
from perfgate.core.fleet_report import Standing
from perfgate.report.fleet_files import COLUMNS, render_drain_list, render_fleet_csv, render_openmetrics
from tests.fleets import COPY, fleet, judged, slowed

ODD = 'r"0\\\nx'
REPORT = judged(
    [
        slowed(one, 0.05, COPY) if one.seat.name == "n00/3" else one
        for one in (
            replace(one, seat=replace(one.seat, labels={"rack": ODD, "power feed": "a"})) for one in fleet(nodes=2)
        )
    ],
    Vacancy(seat=Seat(node="n02", gpu=0), reason="its node died"),
)


@pytest.mark.parametrize("families", [text_string_to_metric_families, classic_families])
def test_render_openmetrics__is_read_by_prometheus_own_parsers(families: object) -> None:
    found = {one.name: one for one in families(render_openmetrics(REPORT))}  # type: ignore[operator]
    assert set(found) == {"perfgate_gpu_standing", "perfgate_case_time_seconds", "perfgate_case_peer_change_ratio"}
    standings = [one for one in found["perfgate_gpu_standing"].samples if one.value == 1]
    assert len(standings) == len(REPORT.members)
    slow = [one.labels for one in standings if one.labels["standing"] == "slow"]
    assert [(one["node"], one["gpu"], one["label_rack"], one["label_power_feed"]) for one in slow] == [
        ("n00", "3", ODD, "a")
    ]
    missing = [one.labels["node"] for one in standings if one.labels["standing"] == "missing"]
    assert missing == ["n02"]
    changes = {
        (one.labels["node"], one.labels["gpu"]): one.value
        for one in found["perfgate_case_peer_change_ratio"].samples
        if one.labels["case"] == COPY
    }
    assert changes["n00", "3"] == pytest.approx(0.05, abs=2e-3)


def test_render_fleet_csv__has_a_line_a_case_and_one_for_a_gpu_without_any() -> None:
    rows = list(csv.DictReader(io.StringIO(render_fleet_csv(REPORT))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 2 * 16 + 1
    (slow,) = (row for row in rows if row["slow_against"])
    assert (slow["node"], slow["gpu"], slow["case"], slow["slow_against"]) == ("n00", "3", COPY, "peers")
    (missing,) = (row for row in rows if row["standing"] == str(Standing.MISSING))
    assert (missing["node"], missing["case"], missing["median_s"]) == ("n02", "", "")


def test_render_drain_list__names_hosts_once_worst_first() -> None:
    hosts = {f"n{index:02}": f"host{index}" for index in range(3)}
    assert render_drain_list(REPORT, hosts) == "host0\nhost2\n"
    assert render_drain_list(judged(fleet(nodes=2)), hosts) == ""
