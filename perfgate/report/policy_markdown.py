"""What a change of a policy means, as GitHub Markdown."""

from perfgate.core.policy import Policy
from perfgate.report import blocks, sentences


def render_policy_change_markdown(before: Policy, after: Policy) -> str:
    """Render the settings in which two policies differ; "" where they agree."""
    old, new = dict(sentences.policy_lines(before)), dict(sentences.policy_lines(after))
    return blocks.table(
        ("setting", "of the base", "proposed"),
        (
            (blocks.data(name), blocks.data(old.get(name, "")), blocks.data(value))
            for name, value in new.items()
            if old.get(name) != value
        ),
    )
