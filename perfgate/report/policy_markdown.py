"""What a change of a policy means, as GitHub Markdown."""

from perfgate.core.policy import Policy
from perfgate.report import blocks, sentences


def render_policy_change_markdown(before: Policy, after: Policy) -> str:
    """Render the settings in which two policies differ; "" where they agree."""
    old, new = dict(sentences.policy_lines(before)), dict(sentences.policy_lines(after))
    return blocks.table(
        ("setting", "of the base", "proposed"),
        (
            (blocks.data(name), blocks.data(old.get(name, "none")), blocks.data(new.get(name, "none")))
            for name in dict.fromkeys((*old, *new))
            if old.get(name) != new.get(name)
        ),
    )
