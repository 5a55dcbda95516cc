import os
import signal

import click
import pytest

from perfgate import __main__, __version__
from perfgate.cli import main
from perfgate.errors import ConfigurationError, ExitCode, PerfgateError


def ending_of(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of a command that ends with an error."""

    def failing(**_: object) -> None:
        raise error

    monkeypatch.setattr(main.root, "get_command", lambda *_: click.Command("check", callback=failing))
    return main.run(["check"])


@pytest.mark.parametrize("kind", [kind for kind in PerfgateError.__subclasses__() if kind.__name__ != "DocumentError"])
def test_run__an_error_exits_with_its_code_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: type[PerfgateError]
) -> None:
    if kind.__init__ is not PerfgateError.__init__:
        pytest.skip("made of something else")
    assert ending_of(monkeypatch, kind("it broke", hint="mend it")) == kind.exit_code
    assert capsys.readouterr().err == "perfgate: error: it broke\nperfgate: hint: mend it\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (click.Abort(), ExitCode.INTERRUPTED),
        (BrokenPipeError(32, "Broken pipe"), ExitCode.INTERRUPTED),
        (SystemExit(1), ExitCode.INTERRUPTED),
        (click.UsageError("no"), ExitCode.USAGE),
        (ZeroDivisionError("oh"), ExitCode.BUG),
        (MemoryError(), ExitCode.BUG),
        (RecursionError(), ExitCode.BUG),
    ],
)
def test_run__nothing_but_a_regression_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: ExitCode
) -> None:
    assert ending_of(monkeypatch, error) == code
    assert ("this is a bug in perfgate" in capsys.readouterr().err) is (code is ExitCode.BUG)


def test_run__under_actions_an_error_is_annotated_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ending_of(monkeypatch, ConfigurationError("100% wrong\n::set-output name=a::b", hint="mend it"))
    lines = capsys.readouterr().err.splitlines()
    assert "::error title=perfgate::100%25 wrong%0A::set-output name=a::b mend it" in lines


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"]])
def test_run__help_and_version_pass(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main.run(arguments) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out == f"perfgate {__version__}\n" or all(name in shown.out for name in main.COMMANDS)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_run__every_command_has_help_and_is_listed_with_its_own_words(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: perfgate {name} ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: perfgate"),
        (["chckk"], "No such command 'chckk'. Did you mean 'check'?"),
        (["frobnicate"], "No such command 'frobnicate'. Commands: check"),
        (["check", "--devise", "auto"], "--devise"),
        (["check", "--launches", "six"], "'six' is not a valid integer"),
        (["check", "stray"], "unexpected extra argument (stray)"),
        (["compare", "only-one.json"], "Missing argument 'CAND'"),
        (["baseline", "frob"], "No such command 'frob'"),
        (["baseline", "update"], "Missing option '--reason'"),
        (["run"], "Missing argument 'RUN.json'"),
    ],
)
def test_run__wrong_usage_is_told_on_stderr(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main.run(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_hidden_launch__is_no_command_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["--help"])
    assert "launch " not in capsys.readouterr().out.split("Commands:")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_main__a_request_to_end_is_an_interruption(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(
        main.root, "get_command", lambda *_: click.Command("check", callback=lambda: os.kill(os.getpid(), number))
    )
    monkeypatch.setattr("sys.argv", ["perfgate", "check"])
    try:
        assert __main__.main() == ExitCode.INTERRUPTED
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def test_main__an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    term = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("sys.argv", ["perfgate", "--version"])
    try:
        assert __main__.main() == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGTERM, term)
