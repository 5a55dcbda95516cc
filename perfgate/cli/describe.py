"""Hidden: what lists the cases of own suites. Reads a question from a file, writes the answer to another."""

from pathlib import Path

import click


@click.command(hidden=True)
@click.argument("question", type=click.Path(path_type=Path))
@click.argument("answer", type=click.Path(path_type=Path))
def command(question: Path, answer: Path) -> int:
    """Load the suites that QUESTION names and write what they hold to ANSWER."""
    from perfgate.workflow.describing import describe

    describe(question, answer)
    return 0
