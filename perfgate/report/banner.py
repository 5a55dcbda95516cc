"""The block at the top of every page for a terminal: what it is, whether it is real, about which GPU."""

from collections.abc import Sequence

from perfgate.report.layout import Page


def add_banner(
    page: Page,
    title: Sequence[tuple[str, str]],
    *,
    style: str,
    badges: Sequence[tuple[str, str]] = (),
    lines: Sequence[str] = (),
    details: Sequence[str] = (),
) -> None:
    """Add lines behind a bar of one colour.

    Args:
        page: where to.
        title: styled parts of the first line.
        style: of the bar.
        badges: ``sentences.rehearsal``: badge and sentence, said in the first line and again below it.
        lines: what matters.
        details: what surrounds it, dimmed.
    """
    bar = (page.safe("▌ "), style)
    page.spans((*title, *((f"  {badge}", "bold yellow") for badge, _ in badges)), prefix=bar)
    for badge, sentence in badges:
        page.spans(((f"{badge}: {sentence}", "bold yellow"),), prefix=bar)
    for text in filter(None, lines):
        page.spans(((text, ""),), prefix=bar)
    for text in filter(None, details):
        page.spans(((text, "dim"),), prefix=bar)
