"""``perfgate comment``: post or update the pull-request comment from any CI system."""

import os
from pathlib import Path

import click

from perfgate.errors import ConfigurationError


@click.command()
@click.argument("reports", metavar="REPORT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--pull", type=click.IntRange(min=1), required=True, metavar="N", help="Number of the pull request.")
@click.option("--repository", metavar="OWNER/NAME", help="Default: GITHUB_REPOSITORY.")
@click.option("--name", default="perfgate", show_default=True, help="Which comment; matrix legs differ in it.")
@click.option("--run-url", metavar="URL", help="Page of the run that measured, for the footer.")
@click.option("--dry-run", is_flag=True, help="Print the comment instead of posting it.")
def command(
    *, reports: tuple[Path, ...], pull: int, repository: str | None, name: str, run_url: str | None, dry_run: bool
) -> int:
    """Post REPORT (report.json) on a pull request, or update the comment that stands there.

    Reads the token from GITHUB_TOKEN, and GITHUB_API_URL for an Enterprise server. Several reports share
    one comment. Exits 7 when GitHub cannot be reached or refuses.
    """
    from perfgate.cli.view import show
    from perfgate.github.api import Api
    from perfgate.github.comments import RunId, post_comment
    from perfgate.report.comment import render_comment
    from perfgate.storage.documents import read_report
    from perfgate.workflow.publishing import RUNGS_BYTES

    documents = [read_report(path) for path in reports]
    bodies = [render_comment(documents, limit_bytes=limit, run_url=run_url) for limit in RUNGS_BYTES]
    if dry_run:
        show(bodies[0])
        return 0
    wanted = repository or os.environ.get("GITHUB_REPOSITORY", "")
    if wanted.count("/") != 1:
        raise ConfigurationError("the repository is not known", hint="pass --repository OWNER/NAME")
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        raise ConfigurationError("GITHUB_TOKEN is not set", hint="set it to a token that may comment")
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    graphql_url = os.environ.get("GITHUB_GRAPHQL_URL") or f"{url}/graphql"
    api = Api(repository=wanted, token=token, url=url, graphql_url=graphql_url)
    # Outside GitHub Actions runs have no numbers that grow: the time of the newest report stands in.
    newest = max("".join(sign for sign in report.created_utc if sign.isdigit()) for report in documents)
    run = RunId(id=int(os.environ.get("GITHUB_RUN_ID", "") or newest), attempt=1)
    show(f"comment {post_comment(api, pull, name=name, run=run, bodies=bodies)}")
    return 0
