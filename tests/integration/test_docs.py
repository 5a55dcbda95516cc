"""The documentation: links lead somewhere, commands are ones that there are, the tutorial's follower is strict."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from perfgate.cli.main import root
from scripts.follow_tutorial import PAGE, Step, follow, parse_steps, refusal
from scripts.site_pages import documents_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
_CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", _CODE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page__links_lead_somewhere(page: Path) -> None:
    for found in _LINK.finditer(_CODE.sub("", page.read_text(encoding="utf-8"))):
        target, _, anchor = (found[1] or found[2]).partition("#")
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{name_of(page)} links to {target}"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{name_of(page)} links to {target}#{anchor}"


def commands(page: Path) -> list[str]:
    """The perfgate commands of a page's console and shell blocks, one a line."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(?:console|bash|sh)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip().removeprefix("$ ") for line in lines if re.match(r"\s*(\$ )?perfgate [a-z]", line)]


COMMANDS = [(name_of(page), line) for page in PAGES for line in commands(page)]


def test_commands__are_found_in_the_pages() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_command__and_its_options_are_ones_that_there_are(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = words[: min((words.index(one) for one in ("|", ">", "&&", "||", ";") if one in words), default=None)]
    command: click.Command = root
    context: click.Context | None = None
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context, info_name=command.name)
        found = command.get_command(context, words[0])
        assert found is not None, f"{page}: {line}"
        command, words = found, words[1:]
    if "--help" in words:
        return
    parser = command.make_parser(click.Context(command, parent=context))
    parser.parse_args(list(words))


def test_site__navigation_has_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        children = entry.values() if isinstance(entry, dict) else entry
        return [page for child in children for page in pages(child)]

    listed = pages(yaml.safe_load(text)["nav"])
    assert len(listed) == len(set(listed))
    docs = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    covered = {page for page in docs if page in listed or any(page.startswith(one) for one in listed if one[-1] == "/")}
    assert docs - covered == set()
    assert {one for one in listed if one[-1] != "/"} - docs == {"reference/documents.md"}


def test_site__page_of_documents_has_every_field_with_its_meaning() -> None:
    page = documents_page()
    for kind in ("Run", "Baseline", "Report", "Policy"):
        assert f"\n## {kind}\n" in page
    assert "| `alpha` | string, optional | Probability that a check of unchanged code fails by chance. |" in page
    assert page.count("\n| `") > 100


def test_tutorial__says_how_every_command_ends_and_what_it_prints() -> None:
    steps = parse_steps(PAGE.read_text(encoding="utf-8"))
    assert {step.exit_code for step in steps} == {0, 1, 4, 6, 8}
    assert sum(bool(step.prints) for step in steps) >= 12
    assert not [step for step in steps if "# exit" in step.command]


def test_follower__finds_what_the_page_says_wrong(tmp_path: Path) -> None:
    well = Step(command="printf 'one  two\\nthree\\n'", exit_code=0, prints=("one two", "three"))
    assert refusal(well, 0, "one  two\nthree\n") == ""
    assert "exits 1, the page says 0" in refusal(well, 1, "one two three")
    assert "does not print 'three'" in refusal(well, 0, "three\none two\n")
    assert follow((well, Step(command="false", exit_code=1, prints=())), tmp_path) == ""
    assert "the page says 0" in follow((well, Step(command="false", exit_code=0, prints=())), tmp_path)
    assert "ended early" in follow((Step(command="exit 0", exit_code=0, prints=()), well), tmp_path)


def test_follower__keeps_the_folder_and_the_variables_of_the_commands_before(tmp_path: Path) -> None:
    steps = parse_steps("```console\n$ mkdir a\n$ cd a\n$ NAME=x\n$ touch $NAME\n$ ls   # exit 0\nx\n```\n")
    assert follow(steps, tmp_path) == ""
