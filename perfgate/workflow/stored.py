"""What the stored baseline says of the base that a change is judged by: told beside, never decisive.

The change made it slower, and this machine is slower than it was, are two findings: the second is the base's, which
holds nothing of the change.
"""

from dataclasses import replace
from pathlib import Path

from perfgate.core.caveat import STORED_BASELINE, Caveat
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.sides import FIRST_INDEX
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import PerfgateError
from perfgate.storage.baselines import find_baseline
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import compared, selected_baseline


def stored_verdict(place: Path, base: Run, selection: Selection, policy: Policy) -> Caveat | None:
    """Judge the launches of a base that were measured in turn by the stored baseline of this GPU.

    None where nothing was measured, there is no baseline, or it knows none of the cases.
    """
    launches = tuple(launch for launch in base.launches if launch.index >= FIRST_INDEX)
    measured = {case_id: info for case_id, info in base.cases.items() if any(case_id in one.cases for one in launches)}
    if not measured:
        return None
    try:
        found = find_baseline(place, base.gpu).found
        if found is None:
            return None
        baseline = selected_baseline(found.baseline, replace(selection, cases=tuple(measured)))
        if not any(session.cases for session in baseline.sessions):
            return None
        report = compared(baseline, found.path.name, replace(base, cases=measured, launches=launches), policy)
    except PerfgateError as error:
        return Caveat(code=STORED_BASELINE, message=f"the stored baseline gives no verdict: {error.message}")
    slower = [
        f"{case.id} {percent_text(case.change.value, signed=True)}"
        for case in report.cases
        if case.verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED) and case.change is not None
    ]
    told = f": {', '.join(slower)}, by the machine or an earlier change" if slower else ""
    return Caveat(
        code=STORED_BASELINE,
        message=f"the base against this machine's stored baseline {found.path.name}: {report.verdict}{told}",
        remedy="the comparison with the base decides",
    )
