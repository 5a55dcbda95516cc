"""What a change would do to its own gate: shown beside a verdict that it has no part in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.baseline import Baseline
from perfgate.core.baseline_change import baseline_difference
from perfgate.errors import PerfgateError
from perfgate.report.baseline_markdown import render_baseline_change_markdown
from perfgate.report.blocks import folded
from perfgate.report.policy_markdown import render_policy_change_markdown
from perfgate.storage.documents import read_baseline
from perfgate.workflow.base import Base, Layout, Places, file_id, laid_out

_MOST_BYTES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedChange:
    """The change's edits of baseline and policy.

    Attributes:
        sentences: what it edits, and that it was judged without it; plain text.
        markdown: before and after as tables.
        is_broken: what it proposes could not be read back once it was merged.
    """

    sentences: tuple[str, ...] = ()
    markdown: str = ""
    is_broken: bool = False


def proposed_change(base: Base, places: Places, head: str | None) -> ProposedChange:
    """Compare the base's baseline and policy with those of another commit; nothing differs without one.

    Raises:
        ConfigurationError, DocumentError: the base's cannot be read.
    """
    if head is None or head == base.commit:
        return ProposedChange()
    with laid_out(base, places) as before:
        try:
            with laid_out(Base(repository=base.repository, commit=head, reason="proposed"), places) as after:
                found = [*_baseline_changes(before, after), *_policy_changes(before, after)]
        except PerfgateError as error:
            found = [_broken("baseline or policy", error)]
    found += _suite_changes(base, head, places)
    tables = "\n\n".join(one.markdown for one in found if one.markdown)
    return ProposedChange(
        sentences=tuple(sentence for one in found for sentence in one.sentences),
        markdown=folded("What this change proposes for its own gate: no part of this verdict", tables),
        is_broken=any(one.is_broken for one in found),
    )


def _suite_changes(base: Base, head: str, places: Places) -> list[ProposedChange]:
    """Announce edited suites: what they measure is the change's own code, as it has to be."""
    return [
        ProposedChange(sentences=(f"This change edits the suite {path.name}: what is measured is its own.",))
        for path in places.suites
        if file_id(base, base.commit, places, path) != file_id(base, head, places, path)
    ]


def _baseline_changes(before: Layout, after: Layout) -> list[ProposedChange]:
    if not after.is_versioned:
        return []
    old, new = _contents(before.baseline), _contents(after.baseline)
    return [
        _baseline_change(name, before.baseline, after.baseline)
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _contents(place: Path) -> Mapping[str, bytes]:
    files = place.iterdir() if place.is_dir() else [place] if place.is_file() else []
    return {path.name: path.read_bytes() for path in files if path.is_file()}


def _baseline_change(name: str, old_place: Path, new_place: Path) -> ProposedChange:
    judged = "judged against the base's copy"
    new_path = new_place / name if new_place.is_dir() else new_place
    if not new_path.is_file():
        return ProposedChange(sentences=(f"This change removes the baseline {name}: {judged}.",))
    old_path = old_place / name if old_place.is_dir() else old_place
    try:
        after = read_baseline(new_path)
    except PerfgateError as error:
        return _broken(f"baseline {name}", error)
    before: Baseline | None = read_baseline(old_path) if old_path.is_file() else None
    table = render_baseline_change_markdown(baseline_difference(before, after), after.gpu, limit_bytes=_MOST_BYTES)
    verb = "edits" if before is not None else "adds"
    return ProposedChange(sentences=(f"This change {verb} the baseline {name}: {judged}.",), markdown=table.rstrip())


def _policy_changes(before: Layout, after: Layout) -> list[ProposedChange]:
    try:
        proposed = after.effective_policy()
    except PerfgateError as error:
        return [_broken("policy", error)]
    table = render_policy_change_markdown(before.effective_policy(), proposed)
    if not table:
        return []
    sentence = "This change edits the policy: judged by the base's."
    return [ProposedChange(sentences=(sentence,), markdown=f"### perfgate: policy\n\n{table}")]


def _broken(what: str, error: PerfgateError) -> ProposedChange:
    sentence = f"This change proposes a {what} that cannot be used: {error.message}"
    return ProposedChange(sentences=(sentence,), is_broken=True)
