"""What a change of a baseline means, as GitHub Markdown: the body of the pull request that proposes it."""

from collections.abc import Sequence

from perfgate.core.baseline import BaselineSession
from perfgate.core.baseline_change import BaselineDifference, CaseChange
from perfgate.core.gpu import Gpu
from perfgate.core.units import percent_text
from perfgate.report import blocks, sentences
from perfgate.report.baseline_text import level_text, margin_text, provenance_notes
from perfgate.report.markdown import COMMENT_LIMIT_BYTES, run_link


def render_baseline_change_markdown(
    difference: BaselineDifference,
    gpu: Gpu,
    *,
    limit_bytes: int = COMMENT_LIMIT_BYTES,
    run_url: str | None = None,
) -> str:
    """Render a change of a GPU's baseline: the sessions with their reasons, every case before and after.

    Cases that do not fit into ``limit_bytes`` bytes of UTF-8 are counted instead, those that moved least first.
    """
    changes = sorted(difference.cases, key=_moved_most)
    count = len(changes)
    while True:
        text = _body(difference, gpu, changes[:count], len(changes) - count, run_url)
        if len(text.encode("utf-8")) <= limit_bytes or not count:
            return text
        count //= 2


def _moved_most(change: CaseChange) -> tuple[bool, float]:
    return change.relative is not None, -abs(change.relative or 0.0)


def _body(
    difference: BaselineDifference, gpu: Gpu, changes: Sequence[CaseChange], left_out: int, run_url: str | None
) -> str:
    sections = [
        f"### perfgate: baseline of {blocks.data(sentences.gpu_text(gpu))}",
        _sessions("added", difference.sessions_added),
        _sessions("removed", difference.sessions_removed),
        blocks.bullets([sentences.difference_text(one) for one in difference.identity]),
        _cases(changes),
        f"_{sentences.counted(left_out, 'more case', 'more cases')} changed._" if left_out else "",
        blocks.table(
            ("margin of", "before", "after"),
            (
                (blocks.name(one.id), margin_text(one.before) or "none", margin_text(one.after) or "none")
                for one in difference.margins
            ),
        ),
        "" if difference else "Nothing changes.",
        f"<sub>{run_link(run_url)}</sub>" if run_link(run_url) else "",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _sessions(word: str, sessions: Sequence[BaselineSession]) -> str:
    return blocks.table(
        (f"session {word}", "chip", "driver", "CUDA", "commit", "reason"),
        (
            (
                blocks.unbroken(blocks.data(session.provenance.recorded_utc)),
                blocks.data(session.chip or "unknown"),
                blocks.data(session.environment.driver_version or ""),
                blocks.data(session.environment.cuda_toolkit_version or ""),
                blocks.data((session.provenance.commit or "")[:12]),
                "<br>".join(blocks.data(note) for note in provenance_notes(session)),
            )
            for session in sessions
        ),
    )


def _cases(changes: Sequence[CaseChange]) -> str:
    return blocks.table(
        ("case", "before", "after", "change", "also different"),
        (
            (
                blocks.name(change.id),
                blocks.unbroken(level_text(change.before, change.unit) or "none"),
                blocks.unbroken(level_text(change.after, change.unit) or "none"),
                blocks.unbroken(percent_text(change.relative, signed=True)) if change.relative is not None else "",
                "<br>".join(blocks.data(sentences.difference_text(one)) for one in change.differences),
            )
            for change in changes
        ),
    )
