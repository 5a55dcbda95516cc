"""A judged fleet for a person at a terminal: findings first, then the GPUs that are not healthy, worst first."""

from collections import Counter

from perfgate.core.fleet_report import FindingCode, FleetCase, FleetMember, FleetReport, Standing
from perfgate.core.peers import LEAST_PEERS
from perfgate.core.units import percent_text
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import time_of

# More rows than this are a file, not a page.
MOST_ROWS = 40
_STYLES = {
    Standing.SLOW: "red",
    Standing.INVALID: "magenta",
    Standing.MISSING: "yellow",
    Standing.UNJUDGED: "dim",
    Standing.HEALTHY: "green",
}
_LABEL_WIDTH = 11


def render_fleet(report: FleetReport, *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """Render a judged fleet; takes what ``render_run`` takes."""
    page = Page(width=width, color=color, unicode=unicode)
    worst = report.members[0].standing if report.members else Standing.UNJUDGED
    add_banner(
        page,
        ((headline(report), f"bold {_STYLES[worst]}"),),
        style=_STYLES[worst],
        badges=_badges(report),
        lines=(tally(report),),
        details=(boards_text(report), conditions_text(report)),
    )
    if report.findings:
        page.blank()
        page.labelled("Findings", tuple(one.message for one in report.findings), label_width=_LABEL_WIDTH)
    asked = [one for one in report.members if one.standing is not Standing.HEALTHY]
    # A whole node is one thing to look at, not eight.
    single = [one for one in asked if not _is_of_group(one, report)]
    if asked:
        page.blank()
        page.table(_MEMBER_COLUMNS, [_member_line(one) for one in single[:MOST_ROWS]])
        if len(single) > MOST_ROWS:
            page.line(f"and {len(single) - MOST_ROWS} more: --output DIR writes them all", "dim")
        if len(asked) > len(single):
            page.line(f"  and {len(asked) - len(single)} of the groups above", "dim")
    judged = [one for one in report.cases if one.gpus > LEAST_PEERS] or report.cases
    if judged:
        page.blank()
        page.table(_CASE_COLUMNS, [_case_line(one) for one in judged])
    page.blank()
    page.line(f"Slower than its peers: {rule_text(report)}.", "dim")
    return page.text


_MEMBER_COLUMNS = (
    Column(heading="GPU"),
    Column(heading="slower", align="right"),
    Column(heading="cases", align="right"),
    Column(heading="against"),
    Column(heading="standing"),
)
_CASE_COLUMNS = (
    Column(heading="case"),
    Column(heading="GPUs", align="right"),
    Column(heading="median", align="right"),
    Column(heading="spread", align="right"),
    Column(heading="margin", align="right"),
    Column(heading="slow", align="right"),
)


def _is_of_group(member: FleetMember, report: FleetReport) -> bool:
    """Tell whether a GPU is slow in nothing but what a finding names its whole group for."""
    groups = {f"{one.attribute} {one.value}" for one in report.findings if one.code is FindingCode.SLOW_GROUP}
    return bool(member.slow) and all(one.against in groups for one in member.slow)


def headline(report: FleetReport) -> str:
    """Return the result in a few words."""
    slow, undecided = report.count(Standing.SLOW), report.count(Standing.INVALID) + report.count(Standing.MISSING)
    if slow:
        return f"{sentences.counted(slow, 'GPU is', 'GPUs are')} slow"
    if undecided:
        return f"{sentences.counted(undecided, 'GPU is', 'GPUs are')} invalid or missing"
    if report.count(Standing.UNJUDGED) or not report.members:
        return f"{sentences.counted(report.count(Standing.UNJUDGED), 'GPU', 'GPUs')} could not be judged"
    return "every GPU is healthy"


def tally(report: FleetReport) -> str:
    """Return how many GPUs have which standing."""
    counts = ", ".join(f"{report.count(one)} {one}" for one in Standing if report.count(one))
    nodes = len({member.seat.node for member in report.members})
    gpus = sentences.counted(len(report.members), "GPU", "GPUs")
    return f"{gpus} of {sentences.counted(nodes, 'node', 'nodes')}: {counts or 'none'}"


def boards_text(report: FleetReport) -> str:
    """Return which boards there are, with how many GPUs of each."""
    counts = Counter(member.identity for member in report.members if member.identity is not None)
    return " · ".join(
        f"{counts[index]} x {gpu.name}{f' {gpu.board_part_number}' if gpu.board_part_number else ''}"
        for index, gpu in enumerate(report.identities)
    )


def rule_text(report: FleetReport) -> str:
    """Return when a GPU counts as slow, in a sentence without its full stop."""
    return (
        f"beyond the margin above the median of the others, and by more than chance allows at alpha "
        f"{report.alpha:g} over {report.tests} cases x GPUs"
    )


def slow_text(member: FleetMember) -> str:
    """Return in which cases a GPU is slow, by how much."""
    named = (f"{one.id} {percent_text(one.change, signed=True, decimals=1)}" for one in member.slow[:3])
    more = f" and {len(member.slow) - 3} more" if len(member.slow) > 3 else ""
    return ", ".join(named) + more


def conditions_text(report: FleetReport) -> str:
    """Return what was measured at the same time; "" where nobody said."""
    words = {
        "gpu": "one GPU of a node at a time",
        "node": "all GPUs of a node at the same time",
        "all": "all GPUs of the fleet at the same time",
    }
    return words.get(report.concurrency or "", "")


def _badges(report: FleetReport) -> list[tuple[str, str]]:
    injected = sorted({text for member in report.members for text in member.injected})
    return [("INJECTED", f"a change was rehearsed: {', '.join(injected[:3])}")] if injected else []


def _member_line(member: FleetMember) -> Line:
    notes = [(slow_text(member), "")] if member.slow else []
    notes += [(reason, "") for reason in member.reasons[:3]]
    notes += [(f"cause: {one.message}", "yellow") for one in member.causes[:3]]
    against = Counter(one.against for one in member.slow)
    labels = ", ".join(f"{name} {value}" for name, value in member.seat.labels.items())
    return Line(
        cells=(
            f"{member.seat.name}{f' ({labels})' if labels else ''}",
            percent_text(member.worst, signed=True, decimals=1) if member.slow else "",
            str(len(member.slow)) if member.slow else "",
            ", ".join(against),
            str(member.standing),
        ),
        last_style=_STYLES[member.standing],
        notes=tuple(notes),
    )


def _case_line(case: FleetCase) -> Line:
    return Line(
        cells=(
            case.id,
            str(case.gpus),
            time_of(case.median_s),
            percent_text(case.spread),
            percent_text(case.margin, decimals=1) if case.gated else "",
            str(case.slow) if case.slow else "",
        ),
        style="" if case.gated else "dim",
        last_style="red" if case.slow else "",
    )
