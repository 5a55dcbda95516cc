"""How long judging takes, by number of cases."""

import time
from collections.abc import Mapping

import numpy as np

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.case import Work
from perfgate.core.gate import judge
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan
from perfgate.core.policy import Policy
from perfgate.core.run import Block, CaseInfo, CaseLaunch, Launch, Run

NOW = "2026-11-30T00:00:00Z"
_LAUNCHES = 12


def throughput(sizes: tuple[int, ...] = (20, 1_000, 2_000, 5_000, 10_000)) -> Mapping[str, float]:
    """Return the seconds that judging takes by number of cases: 12 + 12 launches of 5 blocks of 10 samples."""
    seconds = {}
    for cases in sizes:
        baseline, candidate = _sides(cases)
        started = time.perf_counter()
        judge(baseline=baseline, candidate=candidate, policy=Policy(), created_utc=NOW)
        seconds[str(cases)] = time.perf_counter() - started
    return seconds


def _sides(cases: int) -> tuple[Baseline, Run]:
    generator = np.random.default_rng(40)
    ids = [f"own.case[n={index}]" for index in range(cases)]
    plan = CasePlan(executions_per_sample=1, samples_per_block=10, blocks=5)
    info = CaseInfo(family="own", work=Work(), version=1, source_sha256="a" * 64, plan=plan)
    provenance = Provenance(recorded_utc=NOW, reason="large", device_kind="recorded", perfgate_version="0")
    one, other = (
        Run(
            created_utc=NOW,
            perfgate_version="0",
            device_kind="recorded",
            method=1,
            suite_name="large",
            suite_sha256=None,
            gpu=Gpu(name="NVIDIA H200", chip="68b93fe4"),
            environment=Environment(driver_version="580.159.04"),
            cases=dict.fromkeys(ids, info),
            launches=tuple(_launch(index, ids, generator) for index in range(_LAUNCHES)),
        )
        for _ in range(2)
    )
    return baseline_of(one, provenance), other


def _launch(index: int, ids: list[str], generator: np.random.Generator) -> Launch:
    levels_s = 1e-3 * np.exp(5e-4 * generator.standard_normal(len(ids)))
    cases = {case_id: _case_launch(level_s) for case_id, level_s in zip(ids, levels_s.tolist(), strict=True)}
    return Launch(index=index, started_utc=NOW, cases=cases)


def _case_launch(level_s: float) -> CaseLaunch:
    """One block, five times: what a block holds costs memory, not how often it is looked at."""
    times_s = tuple(level_s * (1 + 1e-5 * step) for step in (3, 7, 1, 9, 5, 2, 8, 4, 6, 0))
    block = Block(sequence=0, started_s=0.0, times_s=times_s, executions_per_sample=1)
    return CaseLaunch(blocks=(block,) * 5)
