"""docs/cli.md and the command line say the same: commands, options, exit codes."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from perfgate.cli.main import COMMANDS, root
from perfgate.errors import ExitCode, PerfgateError

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
# Each kind of estimate has its own options: its --help lists them.
OWN_HELP = {"estimate"}


def section(title: str) -> str:
    """The text under a heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title}"
    return found[1]


def documented_options(title: str) -> set[str]:
    """The options of a section and of the sections of options that it links to."""
    text = section(title)
    for name in ("measuring", "output"):
        if f"(#{name}-options)" in text:
            text += section(f"{name.capitalize()} options")
    return set(re.findall(r"`(--[a-z-]+)[` ]", text))


def real_options(command: click.Command) -> Iterator[str]:
    """The options of a command and of its subcommands."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (name for name in parameter.opts if name.startswith("--") and name != "--help")
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from real_options(inner)


def command_named(name: str) -> click.Command:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - OWN_HELP))
def test_page__has_the_options_of_every_command_and_no_others(name: str) -> None:
    assert documented_options(f"perfgate {name}") == set(real_options(command_named(name)))


def test_page__has_every_command() -> None:
    listed = re.findall(r"^\| \[`([a-z]+)`\]\(#perfgate-([a-z]+)\)", PAGE, re.MULTILINE)
    assert [one for one, _ in listed] == list(COMMANDS)
    assert all(one == anchor for one, anchor in listed)
    assert re.findall(r"^## perfgate ([a-z]+)$", PAGE, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if isinstance(command_named(name), click.Group)])
def test_page__names_every_subcommand(name: str) -> None:
    group = command_named(name)
    assert isinstance(group, click.Group)
    text = section(f"perfgate {name}")
    for inner in group.list_commands(click.Context(group)):
        assert f"`{inner}" in text or f"`perfgate {name} {inner}" in text, inner


def exit_codes(text: str) -> list[int]:
    return [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]


def test_page__explains_every_exit_code_and_no_other() -> None:
    rows = re.findall(r"^\| (\d+) \| ([a-z ]+) \| .+ \| .+ \|$", section("Exit codes"), re.MULTILINE)
    assert {int(code): name.replace(" ", "_").upper() for code, name in rows} == {
        int(code): code.name for code in ExitCode
    }


@pytest.mark.parametrize("place", ["README.md", "--help"])
def test_exit_codes__are_the_same_wherever_they_are_listed(place: str) -> None:
    if place == "README.md":
        assert exit_codes((ROOT / "README.md").read_text(encoding="utf-8")) == [int(code) for code in ExitCode]
        return
    text = root.help or ""
    listed = {int(code) for code in re.findall(r"(\d+) [a-zA-Z]", text.partition("Exit codes: ")[2])}
    assert listed == {int(code) for code in ExitCode} - {ExitCode.BUG}


def kinds(kind: type[PerfgateError]) -> Iterator[type[PerfgateError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from kinds(inner)


def test_errors__every_one_has_an_exit_code_of_its_own_and_none_that_of_a_verdict() -> None:
    for kind in kinds(PerfgateError):
        assert isinstance(kind.exit_code, ExitCode)
        assert kind.exit_code not in (ExitCode.PASSED, ExitCode.REGRESSED), kind


def test_page__links_lead_somewhere() -> None:
    titles = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        file, _, anchor = target.partition("#")
        assert not file or (ROOT / "docs" / file).is_file(), target
        assert not anchor or file or anchor in anchors, target


def test_page__inject_names_every_fault() -> None:
    from perfgate.core.run import Fault

    assert all(f"`{fault}`" in section("Measuring options") for fault in Fault)
