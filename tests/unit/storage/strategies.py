"""Hypothesis strategies of whole documents, by the type hints of core: a new field is covered at once."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from perfgate.core.baseline import Baseline
from perfgate.core.canonical import significant
from perfgate.core.codec import decode, encode
from perfgate.core.gpu import Gpu
from perfgate.core.policy import Policy
from perfgate.core.report import Estimate, Report
from perfgate.core.run import Run
from perfgate.storage.privacy import withheld

CASE_IDS = ("bandwidth.copy[bytes=4GiB]", "gemm.bf16[n=4096,k=128]", "launch.gap", "own.suite.case[x=1e-3]")
MAPS_BY_CASE = ("cases", "absent", "failures", "effective", "margins", "refreshed")

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20), st.sampled_from(["", "a\nb\tc", "µ±½ 😀"])
).filter(lambda text: withheld(text) == text)
NAMES = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
POSITIVE = st.floats(min_value=1e-12, max_value=1e18, allow_nan=False)
PROBABILITIES = st.floats(min_value=1e-6, max_value=1 - 1e-6)
COUNTS = st.integers(min_value=1, max_value=2**62)
UTC = st.datetimes().map(lambda moment: f"{moment:%H:%M:%SZ}".join((f"{moment.year:04}-{moment:%m-%d}T", "")))
HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | POSITIVE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PATTERNED: Mapping[str, st.SearchStrategy[Any]] = {
    "compute_capability": st.sampled_from(["7.5", "9.0", "12.1"]),
    "expires": st.just("2027-01-31"),
    "id": st.sampled_from(CASE_IDS),
}


def values(hint: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values of a type hint that a document may hold under this name."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.none() | values(next(one for one in arguments if one is not types.NoneType), name)
    if origin is tuple:
        return st.lists(values(arguments[0], name), min_size=1, max_size=2).map(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        keys = st.sampled_from(CASE_IDS) if name in MAPS_BY_CASE else NAMES
        return st.dictionaries(keys, values(arguments[1], name), max_size=2)
    if hint is object:
        return JSON_VALUES
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if hint is Policy:
        return st.dictionaries(NAMES, PROBABILITIES, max_size=3).map(lambda margins: Policy(margins=margins))
    if dataclasses.is_dataclass(hint):
        return dataclass_values(typing.cast("type", hint))
    return _scalars(hint, name)


def _scalars(hint: type, name: str) -> st.SearchStrategy[Any]:
    if name in PATTERNED:
        return PATTERNED[name]
    if name.endswith("_utc"):
        return UTC
    if name.endswith("_sha256"):
        return HASHES
    if hint is float and (name.startswith("p_") or name in ("confidence", "alpha")):
        return PROBABILITIES
    return {float: POSITIVE, int: COUNTS, bool: st.booleans(), str: TEXTS}[hint]


def dataclass_values(kind: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    fields = {field.name: values(hints[field.name], field.name) for field in dataclasses.fields(kind)}
    if kind is Estimate:
        return st.builds(kind, **fields).map(_ordered)
    return st.builds(kind, **fields)


def _ordered(estimate: Estimate) -> Estimate:
    if estimate.low is None or estimate.high is None:
        return estimate
    low, high = sorted((estimate.low, estimate.high))
    return dataclasses.replace(estimate, low=low, high=high)


def _sensible_run(run: Run) -> Run:
    cases = {case_id: dataclasses.replace(info, family=case_id.split(".")[0]) for case_id, info in run.cases.items()}
    launches = tuple(
        dataclasses.replace(
            launch, index=index, cases={key: value for key, value in launch.cases.items() if key in cases}
        )
        for index, launch in enumerate(run.launches)
    )
    return dataclasses.replace(run, cases=cases, launches=launches)


def _sensible_baseline(baseline: Baseline) -> Baseline:
    def aligned(case: Any) -> Any:
        return dataclasses.replace(case, launch_cycles=case.launch_cycles and case.launch_medians_s)

    sessions = tuple(
        dataclasses.replace(
            session,
            cases={key: aligned(case) for key, case in session.cases.items()},
            refreshed={key: origin for key, origin in session.refreshed.items() if key in session.cases},
        )
        for session in baseline.sessions
    )
    shared = dataclasses.replace(baseline.gpu, chip=None, power_limit_w=None)
    ordered = sorted(sessions, key=lambda session: (session.provenance.recorded_utc, session.chip or ""))
    baseline = dataclasses.replace(baseline, gpu=shared, sessions=tuple(ordered))
    return decode(Baseline, significant(encode(baseline)))


def _sensible_report(report: Report) -> Report:
    return dataclasses.replace(report, cases=tuple({case.id: case for case in report.cases}.values()))


RUNS = dataclass_values(Run).map(_sensible_run)
BASELINES = dataclass_values(Baseline).map(_sensible_baseline)
REPORTS = dataclass_values(Report).map(_sensible_report)
GPUS = dataclass_values(Gpu)
