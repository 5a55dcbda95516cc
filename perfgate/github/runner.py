"""What the runner of a workflow tells its steps, through environment variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.errors import ConfigurationError
from perfgate.github.comments import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """The surroundings of a step.

    Attributes:
        repository: "owner/name".
        server_url, api_url, graphql_url: of GitHub, or of the GitHub Enterprise server that this runs for.
        run: this workflow run.
        sha: commit that started it.
        workspace: where the repository is checked out.
        temp: emptied for each job.
        output_file, summary_file: where the step's outputs and summary go; None outside a workflow.
    """

    repository: str
    server_url: str
    api_url: str
    graphql_url: str
    run: RunId
    sha: str
    workspace: Path
    temp: Path
    output_file: Path | None
    summary_file: Path | None

    @property
    def address(self) -> str:
        """Where git fetches this repository from."""
        return f"{self.server_url}/{self.repository}"

    @property
    def run_url(self) -> str:
        """The page of this workflow run."""
        return self.url_of_run(self.run)

    def url_of_run(self, run: RunId) -> str:
        """Return the page of a workflow run of this repository."""
        return f"{self.server_url}/{self.repository}/actions/runs/{run.id}/attempts/{run.attempt}"


def runner_of(environment: Mapping[str, str]) -> Runner:
    """Read the surroundings of this step.

    Raises:
        ConfigurationError: this is no step of a GitHub workflow.
    """
    missing = [name for name in ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "RUNNER_TEMP") if not environment.get(name)]
    if missing:
        raise ConfigurationError(
            f"this is no step of a GitHub workflow: {', '.join(missing)} not set",
            hint="elsewhere, use `perfgate check`",
        )
    server_url = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    api_url = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    return Runner(
        repository=environment["GITHUB_REPOSITORY"],
        server_url=server_url,
        api_url=api_url,
        graphql_url=environment.get("GITHUB_GRAPHQL_URL") or f"{api_url}/graphql",
        run=RunId(id=_number(environment, "GITHUB_RUN_ID"), attempt=_number(environment, "GITHUB_RUN_ATTEMPT")),
        sha=environment.get("GITHUB_SHA", ""),
        workspace=Path(environment.get("GITHUB_WORKSPACE") or "."),
        temp=Path(environment["RUNNER_TEMP"]),
        output_file=_path(environment.get("GITHUB_OUTPUT")),
        summary_file=_path(environment.get("GITHUB_STEP_SUMMARY")),
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "1")
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is {text!r}, not a number")
    return int(text)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
