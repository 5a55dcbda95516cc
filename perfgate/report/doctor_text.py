"""What ``doctor`` found, for a terminal."""

from collections.abc import Sequence

from perfgate.core.finding import Condition, Finding
from perfgate.report.layout import Page

_LABEL_WIDTH = 16
_STYLES = {Condition.WORKS: "green", Condition.LIMITED: "yellow", Condition.BROKEN: "bold red"}


def render_findings(findings: Sequence[Finding], *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """Render findings: one a row, what it costs and how to mend it below those that do not work."""
    page = Page(width=width, color=color, unicode=unicode)
    for finding in findings:
        style = _STYLES[finding.condition]
        page.labelled(finding.name, (f"{finding.condition}: {finding.result}",), label_width=_LABEL_WIDTH, style=style)
        if finding.consequence:
            page.labelled("", (finding.consequence,), label_width=_LABEL_WIDTH)
        if finding.remedy:
            page.labelled("", (f"to do: {finding.remedy}",), label_width=_LABEL_WIDTH)
    broken = sum(finding.condition is Condition.BROKEN for finding in findings)
    page.blank()
    if broken:
        page.line(f"{broken} of {len(findings)} do not work: a check cannot run here.", "bold red")
    else:
        page.line("A check can run here.", "bold green")
    return page.text
