"""What is posted on a pull request and written into a job summary: one report or several, or why there is none."""

from collections.abc import Sequence

from perfgate.core.report import Report
from perfgate.core.verdict import CheckVerdict
from perfgate.report import blocks, sentences
from perfgate.report.markdown import COMMENT_LIMIT_BYTES, render_markdown, run_link

# Worst first: the verdict of several checks is the worst one's.
_WORST = (
    CheckVerdict.REGRESSED,
    CheckVerdict.INVALID,
    CheckVerdict.SUSPECTED,
    CheckVerdict.NOT_COMPARABLE,
    CheckVerdict.NO_BASELINE,
    CheckVerdict.INCONCLUSIVE,
    CheckVerdict.PASSED,
)
# What a report is worth at least when several share a comment.
_LEAST_BYTES = 1000


def worst(reports: Sequence[Report]) -> CheckVerdict:
    """Return the verdict of several checks."""
    return min((report.verdict for report in reports), key=_WORST.index)


def render_comment(
    reports: Sequence[Report],
    *,
    limit_bytes: int = COMMENT_LIMIT_BYTES,
    notices: Sequence[str] = (),
    details: str = "",
    run_url: str | None = None,
) -> str:
    """Render one or more reports as Markdown of at most ``limit_bytes`` bytes of UTF-8.

    Args:
        reports: at least one; several share the space.
        limit_bytes: upper bound of the size, at least 200 and 300 more a report.
        notices: sentences right below the verdict, plain text.
        details: Markdown below the reports; left out where it would take more than half of the space.
        run_url: address of the workflow run.
    """
    if details and _size_bytes(details) * 2 > limit_bytes:
        details = "_The proposed changes are too long to show here: they are in the job summary._\n"
        details = details if _size_bytes(details) * 2 <= limit_bytes else ""
    room = limit_bytes - (_size_bytes(details) + 1 if details else 0)
    if len(reports) == 1:
        text = render_markdown(reports[0], limit_bytes=room, notices=notices, run_url=run_url)
    else:
        text = _several(reports, room, notices, run_url)
    return f"{text}\n{details}" if details else text


def render_failure(message: str, hint: str, *, run_url: str | None = None) -> str:
    """Render why there is no verdict."""
    parts = ["### perfgate: no verdict", f"**{blocks.data(message)}**"]
    if hint:
        parts.append(f"**Next:** {blocks.data(hint)}")
    if link := run_link(run_url):
        parts.append(f"<sub>{link}</sub>")
    return "\n\n".join(parts) + "\n"


def render_headline(reports: Sequence[Report]) -> str:
    """Return the verdict in one line of plain text."""
    if len(reports) == 1:
        return sentences.headline(reports[0])
    verdict = worst(reports)
    count = sum(report.verdict is verdict for report in reports)
    if count == len(reports):
        return f"{verdict} in all {count} checks"
    return f"{verdict} in {count} of {len(reports)} checks"


def _several(reports: Sequence[Report], limit_bytes: int, notices: Sequence[str], run_url: str | None) -> str:
    ordered = sorted(reports, key=lambda report: _WORST.index(report.verdict))
    head = "\n\n".join(
        (
            f"### perfgate: {render_headline(reports)}",
            *(f"**{blocks.data(one)}**" for one in notices),
            blocks.table(
                ("GPU", "verdict", "what"),
                (
                    (
                        blocks.data(sentences.gpu_text(report.gpu), most=120),
                        str(report.verdict),
                        blocks.data(report.summary, most=200),
                    )
                    for report in ordered
                ),
            ),
        )
    )
    foot = f"<sub>{run_link(run_url)}</sub>\n" if run_link(run_url) else ""
    each = (limit_bytes - _size_bytes(head) - _size_bytes(foot) - 4) // len(reports) - 200
    if each < _LEAST_BYTES:
        text = f"{head}\n\n{foot}"
        return text if _size_bytes(text) <= limit_bytes else f"### perfgate: {render_headline(reports)}\n"
    folded = (
        blocks.folded(
            f"{blocks.data(sentences.headline(report), most=60)}",
            render_markdown(report, limit_bytes=each),
        )
        for report in ordered
    )
    return "\n\n".join((head, *folded, foot))


def _size_bytes(text: str) -> int:
    return len(text.encode("utf-8"))
