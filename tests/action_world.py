"""A repository on a server, a GitHub, recordings to measure, and jobs that use the action on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Provenance
from perfgate.core.device import Device
from perfgate.core.gate import needs_confirmation
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.storage.baselines import find_baseline
from perfgate.storage.documents import read_run, render_baseline_json, render_run_json
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import Check, CheckResult, compared
from perfgate.workflow.listener import Listener
from tests.action_harness import PREPARED, Finished, Job, run_here
from tests.factories import make_run, normal_medians
from tests.fake_github import TOKEN, FakeGitHub
from tests.git_repository import ServedRepository

COPY = "bandwidth.copy[bytes=4GiB]"
ZEROS = "0" * 40


def recorded(seed: int, factor: float = 1.0) -> Run:
    times_s = [factor * time_s for time_s in normal_medians(seed, 12, median_s=2.03e-3)]
    return make_run({COPY: times_s}, device_kind="recorded")


def baseline_text(seed: int = 3, factor: float = 1.0) -> str:
    provenance = Provenance(
        recorded_utc="2026-11-29T12:00:00Z", reason="first", device_kind="recorded", perfgate_version="0.1.0"
    )
    return render_baseline_json(baseline_of(recorded(seed, factor), provenance))


# The same text for every test: bases are compared by content.
BASELINE = baseline_text()
_SAME, _SLOW = render_run_json(recorded(1)), render_run_json(recorded(5, 1.05))


class World:
    """A repository on a server, GitHub, and recordings to measure."""

    def __init__(self, folder: Path, github: FakeGitHub, run_step: Callable[..., tuple[int, str]] = run_here) -> None:
        self.folder, self.github, self.run_step = folder, github, run_step
        self.served = ServedRepository(folder / "server")
        self.same, self.slow = folder / "same.json", folder / "slow.json"
        self.same.write_text(_SAME, encoding="utf-8")
        self.slow.write_text(_SLOW, encoding="utf-8")
        self._jobs = 0

    def job(self, commit: str, event_name: str, payload: Mapping[str, Any], **changes: Any) -> Job:
        self._jobs += 1
        place = self.folder / f"job{self._jobs}"
        (place / "temp").mkdir(parents=True)
        fields: dict[str, Any] = {
            "workspace": self.served.checked_out(place / "work", commit, depth=changes.pop("depth", 2)),
            "temp": place / "temp",
            "event_name": event_name,
            "payload": payload,
            "server_url": f"file://{self.served.server}",
            "api_url": self.github.url,
            "graphql_url": self.github.graphql_url,
            "token": TOKEN,
            "run_step": self.run_step,
        }
        return Job(**(fields | changes))

    def pull_job(
        self,
        changed: Mapping[str, str | None],
        *,
        base: Mapping[str, str | None] | None = None,
        repo: str | None = "octo/kernels",
        checks_out_head: bool = False,
        **changes: Any,
    ) -> Job:
        start = self.served.commit({"baselines/h200.json": BASELINE} if base is None else base)
        head = self.served.commit({"kernel.cu": "// changed", **changed}, branch="topic", start=start)
        merge = self.served.merge(7, head)
        self.github.add_pull(7, sha=head, repo=repo, head=f"{(repo or 'gone/x').split('/')[0]}:topic")
        pull = {
            "number": 7,
            "head": {"sha": head, "repo": None if repo is None else {"full_name": repo}},
            "base": {"ref": "main", "sha": ZEROS},
        }
        return self.job(head if checks_out_head else merge, "pull_request", {"pull_request": pull}, **changes)

    def check(self, job: Job, run: Path | None = None, **inputs: str) -> Finished:
        given = {"device": f"recorded:{run or self.same}", "baseline": "baselines", "python": PREPARED, **inputs}
        return job.use(**given)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Stands in for ``checking.Check``: judges what is recorded instead of measuring it launch by launch."""

    device: Device
    selection: Selection
    policy: Policy
    listener: Listener
    wait: bool = False
    trusts_suites: bool = True

    def against(self, place: Path) -> CheckResult:
        search = find_baseline(place, self.device.gpu)
        if search.found is None:
            check = Check(
                device=self.device, selection=self.selection, policy=self.policy, listener=self.listener, wait=self.wait
            )
            return check.against(place)
        run = rehearsed(self.device, self.selection)
        source = search.found.path.name
        report = compared(search.found.baseline, source, run, self.policy)
        confirmation = run if needs_confirmation(report) else None
        if confirmation is not None:
            report = compared(search.found.baseline, source, run, self.policy, confirmation)
        return CheckResult(report=report, run=run, confirmation=confirmation)


def rehearsed(device: Device, selection: Selection, *_: object, **__: object) -> Run:
    """Stands in for ``measuring.measured``."""
    del selection
    return read_run(Path(device.address.removeprefix("recorded:")))
