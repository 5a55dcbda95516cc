"""A new baseline proposed as a pull request: what another job measured, added to the branch's own baseline."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfgate.core.baseline_change import baseline_difference
from perfgate.core.run import Run
from perfgate.errors import ConfigurationError
from perfgate.github.api import Api
from perfgate.github.proposal import Proposal, post_proposal
from perfgate.report.baseline_markdown import render_baseline_change_markdown
from perfgate.storage.documents import render_baseline_json
from perfgate.workflow.accepting import Terms, accepted
from perfgate.workflow.base import Places, base_of_ref, laid_out

_CHECKS_NOTE = (
    "GitHub starts no workflow for a pull request that a workflow's own token opens:"
    " close and reopen it to run the checks, or pass a token of a GitHub App."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBaseline:
    """A proposed baseline: the file, its new content, and the change in words."""

    path: PurePosixPath
    text: str
    title: str
    body: str


def new_baseline(run: Run, places: Places, *, reason: str, run_url: str) -> NewBaseline:
    """Add a run to the baseline that the checked-out commit holds of its GPU, or begin one.

    Raises:
        BaselineError: the run is no fit baseline.
        ConfigurationError: no reason, or the baselines lie outside the repository.
        DocumentError: the baseline there is malformed.
    """
    base = base_of_ref(places.working, "HEAD")
    with laid_out(base, places) as layout:
        if not layout.is_versioned:
            raise ConfigurationError(
                f"{places.baselines} lies outside the repository: no pull request can change it",
                hint="name a folder of the repository, or use `perfgate baseline update` on the runner",
            )
        terms = Terms(reason=reason, is_reviewed=True, policy=layout.effective_policy())
        result = accepted(run, layout.baseline, terms)
        name = result.path.name
        text = render_baseline_json(result.baseline)
    difference = baseline_difference(result.before, result.baseline)
    table = render_baseline_change_markdown(difference, result.baseline.gpu, run_url=run_url)
    folder = _folder(base.repository.top, places)
    path = folder if folder.name == name else folder / name
    return NewBaseline(
        path=path, text=text, title=f"Update the baseline of {run.gpu.name}", body=f"{table}\n{_CHECKS_NOTE}\n"
    )


def propose(api: Api, new: NewBaseline, places: Places, base_ref: str) -> str:
    """Open or update the pull request for a new baseline; return its address.

    Raises:
        ConfigurationError: the checkout has no commit.
        PublishError: it could not be delivered.
    """
    base = base_of_ref(places.working, "HEAD")
    tree = base.repository.tree_id(base.commit)
    if tree is None:
        raise ConfigurationError(f"git cannot read the tree of {base.commit[:12]}")
    proposal = Proposal(
        branch=f"perfgate/baseline-{new.path.name.removesuffix('.gz').removesuffix('.json')}",
        base_ref=base_ref,
        parent_sha=base.commit,
        tree_sha=tree,
        files={str(new.path): new.text},
        title=new.title,
        body=new.body,
    )
    return post_proposal(api, proposal)


def _folder(top: Path, places: Places) -> PurePosixPath:
    absolute = (places.working.resolve() / places.baselines).resolve()
    return PurePosixPath(absolute.relative_to(top.resolve()).as_posix())
