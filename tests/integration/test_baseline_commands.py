"""``perfgate baseline``: what it accepts, what it refuses, what it leaves alone."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.baseline import Baseline
from perfgate.core.run import Health, Run
from perfgate.storage.documents import read_baseline, write_baseline, write_run
from perfgate.storage.files import LOCK_NAME
from tests.factories import ENVIRONMENT, H200, make_baseline, make_case_info, make_run, make_session, normal_medians

COPY, GEMM = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]"
NAME = "nvidia-h200_692-2g520-0282-000.json"
Command = Callable[..., Any]


def run_of(day: int, *, slower: float = 0.0, launches: int = 12, **changes: Any) -> Run:
    copy = [one * (1 + slower) for one in normal_medians(day, launches, median_s=2.5e-3)]
    infos = {COPY: make_case_info(), GEMM: make_case_info("gemm")}
    medians = {COPY: copy, GEMM: normal_medians(100 + day, launches, median_s=3e-3)}
    return make_run(medians, infos=infos, created_utc=f"2026-11-{day:02}T12:00:00Z", **changes)


@pytest.fixture
def update(perfgate: Command) -> Command:
    """Writes a run and accepts it into the folder ``baselines``."""

    def call(run: Run, *options: str, reason: str = "because") -> Any:
        write_run(Path("run.json"), run)
        return perfgate("baseline", "update", "--from", "run.json", "--reason", reason, *options)

    return call


def stored(name: str = NAME) -> Baseline:
    return read_baseline(Path("baselines") / name)


def days(baseline: Baseline) -> list[int]:
    return [int(session.provenance.recorded_utc[8:10]) for session in baseline.sessions]


def test_update__appends_and_keeps_where_it_came_from(update: Command) -> None:
    commit = "c0ffee" * 6 + "c0ff"
    assert update(run_of(1)).code == 0
    run = run_of(2, environment=replace(ENVIRONMENT, commit=commit))
    assert update(run, "--runner", "gpu-h200", "--actor", "maria", reason=" nightly ").code == 0
    assert days(stored()) == [1, 2]
    session = stored().sessions[1]
    made = session.provenance
    assert (made.reason, made.commit, made.runner, made.actor) == ("nightly", commit, "gpu-h200", "maria")
    assert (made.recorded_utc, made.forced, made.device_kind) == ("2026-11-02T12:00:00Z", None, "cuda")
    assert session.environment.driver_version == ENVIRONMENT.driver_version
    assert session.environment.cuda_toolkit_version == ENVIRONMENT.cuda_toolkit_version
    assert session.environment.clock_policy == "default"
    assert session.cases[COPY].sm_clock_hz == 1.98e9
    assert len(session.cases[COPY].launch_medians_s) == 12


def test_update__twice_with_one_run_changes_nothing(update: Command) -> None:
    update(run_of(1))
    update(run_of(2))
    before = (Path("baselines") / NAME).read_bytes()
    assert update(run_of(2)).code == 0
    assert (Path("baselines") / NAME).read_bytes() == before


def test_update__replaces_the_sessions_of_this_chip_only(update: Command) -> None:
    other = replace(H200, chip="0" * 8)
    for run in (run_of(1), run_of(2, gpu=other), run_of(3)):
        update(run)
    assert update(run_of(4), "--replace").code == 0
    assert days(stored()) == [2, 4]


def test_update__refreshes_the_rows_that_were_asked_for_in_the_newest_session(update: Command) -> None:
    update(run_of(1))
    update(run_of(2))
    before = stored()
    ending = update(run_of(5), "--case", "gemm.*", "--actor", "maria", reason="new tile")
    assert ending.code == 0, ending.err
    after = stored()
    assert days(after) == [1, 2]
    assert after.sessions[0] == before.sessions[0]
    assert after.sessions[1].cases[COPY] == before.sessions[1].cases[COPY]
    assert after.sessions[1].cases[GEMM] != before.sessions[1].cases[GEMM]
    assert after.sessions[1].provenance == before.sessions[1].provenance
    assert list(after.sessions[1].refreshed) == [GEMM]
    origin = after.sessions[1].refreshed[GEMM]
    assert (origin.reason, origin.actor, origin.recorded_utc) == ("new tile", "maria", "2026-11-05T12:00:00Z")
    assert f"refreshed {GEMM}: new tile (2026-11-05T12:00:00Z)" in ending.out


def test_update__mixes_no_rows_of_other_conditions_into_a_session(update: Command) -> None:
    update(run_of(1))
    ending = update(run_of(2, environment=replace(ENVIRONMENT, driver_version="590.1")), "--case", "gemm.*")
    assert ending.code == 4
    assert "other conditions: driver_version differs" in ending.err
    assert days(stored()) == [1]


def test_update__of_some_cases_of_a_new_chip_makes_a_session_of_them(update: Command) -> None:
    update(run_of(1))
    assert update(run_of(2, gpu=replace(H200, chip="0" * 8)), "--case", "gemm.*").code == 0
    assert list(stored().sessions[1].cases) == [GEMM]


def test_update__prunes_to_the_newest_and_the_anchor(update: Command) -> None:
    for day in range(1, 6):
        update(run_of(day))
    update(run_of(6, gpu=replace(H200, chip="0" * 8)))
    assert update(run_of(7), "--prune", "2").code == 0
    assert days(stored()) == [1, 5, 6, 7]


BUSY = Health(foreign_processes=("python",))


def throttled(day: int) -> Run:
    run = run_of(day)
    launch = run.launches[0]
    slow = replace(launch.cases[COPY], clock_events_s={"sw_power_cap": 3.0, "hw_thermal": 0.3})
    return replace(run, launches=(replace(launch, cases={**launch.cases, COPY: slow}), *run.launches[1:]))


def unsettled(day: int) -> Run:
    run = run_of(day)
    launches = (
        replace(launch, cases={key: replace(case, settled=False) for key, case in launch.cases.items()})
        for launch in run.launches
    )
    return replace(run, launches=tuple(launches))


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (run_of(2, health_before=BUSY, health_after=BUSY), "another process used the GPU: python"),
        (throttled(2), f"lowered its clocks (hw thermal) during {COPY}"),
        (unsettled(2), "before the GPU had settled"),
        (run_of(2, launches=6), "6 launches, a baseline session needs 12"),
        (run_of(2, slower=0.03), f"this run is slower than the baseline: {COPY} by +2.9"),
    ],
    ids=["busy", "throttled", "unsettled", "too short", "slower"],
)
def test_update__refuses_what_is_no_fit_baseline_unless_forced(update: Command, run: Run, told: str) -> None:
    update(run_of(1))
    before = (Path("baselines") / NAME).read_bytes()
    ending = update(run)
    assert ending.code == 4
    assert told in ending.err
    assert "--force" in ending.err
    assert (Path("baselines") / NAME).read_bytes() == before
    assert update(run, "--force", " ").code == 2
    forced = update(run, "--force", "decided in docs/decisions/7.md")
    assert forced.code == 0
    kept = stored().sessions[1].provenance.forced
    assert kept is not None
    assert kept.startswith("decided in docs/decisions/7.md: ")
    assert told.removeprefix("this run is slower than the baseline: ") in kept
    assert "forced: decided in" in forced.out


def test_update__takes_a_slowdown_that_the_policy_accepts(update: Command) -> None:
    update(run_of(1))
    Path("perfgate.toml").write_text('[[accept]]\ncase = "bandwidth.copy"\nlimit = "4%"\nreason = "checked now"\n')
    assert update(run_of(2, slower=0.1)).code == 4, "beyond the limit"
    assert update(run_of(3, slower=0.03)).code == 0
    assert stored().sessions[1].provenance.forced is None


def test_update__refuses_rehearsals_whatever_the_force(update: Command, perfgate: Command, device: str) -> None:
    path = Path("injected.json")
    assert perfgate("run", path, "--device", device, "--launches", "1", "--inject", f"{COPY}=+3%").code == 0
    arguments = ("baseline", "update", "--reason", "x", "--force", "y")
    assert perfgate(*arguments, "--from", path).code == 2
    assert perfgate(*arguments, "--device", device, "--inject", f"{COPY}=+3%").code == 2
    update(run_of(1))
    ending = update(run_of(2, device_kind="recorded"), "--force", "y")
    assert ending.code == 4
    assert "a recorded session cannot join one measured on a GPU" in ending.err
    assert days(stored()) == [1]


@pytest.mark.parametrize(
    "options",
    [
        ("--reason", ""),
        ("--reason", " "),
        (),
        ("--reason", "x", "--prune", "0"),
        ("--reason", "x", "--replace", "--case", "gemm.*"),
        ("--reason", "x", "--case", "gemn.fp32"),
    ],
)
def test_update__refuses_terms_that_make_no_sense(perfgate: Command, workplace: Path, options: tuple[str, ...]) -> None:
    write_run(workplace / "run.json", run_of(1))
    assert perfgate("baseline", "update", "--from", "run.json", *options).code == 2
    assert not Path("baselines").exists()


def test_update__names_no_host(update: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "build-17.example.org")
    ending = update(run_of(1), "--runner", "Build-17.example.org")
    assert ending.code == 2
    assert "no document holds" in ending.err


CHANGED = {
    "board": ({"board_part_number": "692-2G520-0282-001"}, "another board: 692-2G520-0282-001", "board"),
    "GPU": ({"name": "NVIDIA L4", "sm_count": 58}, "first session of NVIDIA L4", "name NVIDIA L4"),
    "ECC": ({"ecc_enabled": False}, "another ECC state: False", "ECC False"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_check__after_a_change_of_hardware_names_it_and_the_command_that_works(
    update: Command, perfgate: Command, name: str
) -> None:
    fields, reason, told = CHANGED[name]
    update(run_of(1))
    before = (Path("baselines") / NAME).read_bytes()
    changed = run_of(2, gpu=replace(H200, chip="11112222", **fields))
    write_run(Path("new.json"), changed)
    device = ("--device", "recorded:new.json", "--baseline", "baselines")
    ending = perfgate("check", *device, "--quiet")
    assert ending.code == 4
    assert told in ending.out
    said = " ".join(ending.out.split())
    assert f"perfgate baseline update --device recorded:new.json --baseline baselines --reason '{reason}'" in said
    made = update(changed, reason=reason)
    assert made.code == 0
    assert f"{Path('baselines') / NAME} stays as it is: it is of another GPU" in made.out
    assert (Path("baselines") / NAME).read_bytes() == before
    assert len([path for path in Path("baselines").iterdir() if path.suffix == ".json"]) == 2
    assert perfgate("check", *device, "--quiet").code == 0


def test_check__after_a_change_of_driver_or_power_says_so_and_one_session_mends_it(
    update: Command, perfgate: Command
) -> None:
    update(run_of(1))
    driver = run_of(2, environment=replace(ENVIRONMENT, driver_version="590.10"))
    write_run(Path("new.json"), driver)
    device = ("--device", "recorded:new.json", "--baseline", "baselines", "--quiet")
    ending = perfgate("check", *device)
    assert ending.code == 0
    assert "driver 590.10 (baseline 580.159.04)" in ending.out
    assert 'perfgate baseline update --reason "driver 590.10" adds one' in " ".join(ending.out.split())
    made = update(driver, reason="driver 590.10")
    assert "since the session before: driver 590.10 (baseline 580.159.04)" in made.out
    assert days(stored()) == [1, 2]
    assert "no baseline session is of this driver" not in perfgate("check", *device).out
    capped = run_of(3, gpu=replace(H200, power_limit_w=500.0))
    assert "power limit 500 W (baseline 700 W)" in update(capped, reason="power limit").out


def test_update__leaves_the_folder_by_no_link(update: Command, perfgate: Command, workplace: Path) -> None:
    outside = workplace / "outside.json"
    write_baseline(outside, make_baseline(make_session({COPY: 2.5e-3, GEMM: 3e-3})))
    before = outside.read_bytes()
    Path("baselines").mkdir()
    (Path("baselines") / NAME).symlink_to(outside)
    ending = update(run_of(1))
    assert ending.code == 3
    assert "symbolic link that leads out of its folder" in ending.err
    write_run(Path("run.json"), run_of(1))
    named = perfgate(
        "baseline", "update", "--from", "run.json", "--reason", "x", "--baseline", Path("baselines") / NAME
    )
    assert named.code == 2
    assert "symbolic link" in named.err
    assert outside.read_bytes() == before
    assert sorted(path.name for path in workplace.iterdir()) == [LOCK_NAME, "baselines", "outside.json", "run.json"]


def test_merge__joins_both_sides_and_lets_go_what_one_removed(
    update: Command, perfgate: Command, workplace: Path
) -> None:
    for day in (1, 2):
        update(run_of(day))
    path = Path("baselines") / NAME
    shutil.copy(path, "base.json")
    update(run_of(3), "--prune", "1")
    shutil.move(path, "ours.json")
    shutil.copy("base.json", path)
    update(run_of(4))
    shutil.move(path, "theirs.json")
    texts = []
    for order in (("ours.json", "theirs.json"), ("theirs.json", "ours.json")):
        ending = perfgate("baseline", "merge", *order, "-o", "out.json", "--base", "base.json")
        assert ending.code == 0, ending.err
        texts.append(Path("out.json").read_bytes())
    assert texts[0] == texts[1]
    assert days(read_baseline(Path("out.json"))) == [1, 3, 4]
    assert perfgate("baseline", "merge", "ours.json", "theirs.json", "-o", "out.json").code == 0
    assert days(read_baseline(Path("out.json"))) == [1, 2, 3, 4]
    assert not (workplace / LOCK_NAME).exists()


def test_merge__that_fails_leaves_the_output_alone(perfgate: Command, workplace: Path) -> None:
    write_baseline(workplace / "a.json", make_baseline())
    write_baseline(workplace / "b.json", make_baseline(gpu=replace(H200, board_part_number="x")))
    Path("broken.json").write_text("{")
    before = Path("a.json").read_bytes()
    assert perfgate("baseline", "merge", "a.json", "b.json", "-o", "a.json").code == 4
    assert perfgate("baseline", "merge", "a.json", "broken.json", "-o", "a.json").code == 3
    assert perfgate("baseline", "merge", "a.json", "missing.json", "-o", "a.json").code == 3
    assert perfgate("baseline", "merge", "a.json", "a.json").code == 2
    assert Path("a.json").read_bytes() == before


def test_migrate__writes_canonically_and_only_what_changes(perfgate: Command, update: Command) -> None:
    update(run_of(1))
    path = Path("baselines") / NAME
    before = path.read_bytes()
    assert "already in the newest format" in perfgate("baseline", "migrate").out
    path.write_text(json.dumps(json.loads(before), indent=4, sort_keys=True))
    assert "written in the newest format" in perfgate("baseline", "migrate", path).out
    assert path.read_bytes() == before
    assert perfgate("baseline", "migrate", "nowhere.json").code == 3


def test_validate__checks_schema_sense_and_physics(perfgate: Command, update: Command) -> None:
    update(run_of(1))
    path = Path("baselines") / NAME
    assert perfgate("baseline", "validate").code == 0
    document = json.loads(path.read_text())
    case = document["sessions"][0]["cases"][COPY]
    for change, told in (
        ({"launch_medians_s": [1e-9] * 12}, "of the theoretical bandwidth"),
        ({"launch_cycles": [1.0] * 3}, "has 3 values where launch_medians_s has 12"),
        ({"version": "one"}, "expected integer"),
    ):
        document["sessions"][0]["cases"][COPY] = case | change
        path.write_text(json.dumps(document))
        ending = perfgate("baseline", "validate")
        assert ending.code == 3
        assert told in ending.err


def test_show_list_and_diff__tell_what_is_there(perfgate: Command, update: Command) -> None:
    update(run_of(1))
    shutil.copy(Path("baselines") / NAME, "old.json")
    update(run_of(2))
    path = Path("baselines") / NAME
    assert "2 sessions" in perfgate("baseline", "show", path).out
    assert NAME in perfgate("baseline", "list").out
    assert "1 session added" in perfgate("baseline", "diff", "old.json", path).out
    assert "no difference" in perfgate("baseline", "diff", path, path).out
