"""What the README says: its commands work, its example is what is printed, its exit codes are the code's."""

import re
from pathlib import Path

import pytest

from perfgate.cli.main import COMMANDS, run
from perfgate.errors import ExitCode

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_readme__its_example_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    example = re.search(
        r"\$ perfgate (check --device recorded --inject 'gemm.fp32=\+2%')\n(.*?)\n```", README, re.DOTALL
    )
    assert example
    arguments = example[1].replace("'", "").split()
    assert run([*arguments, "--quiet"]) == ExitCode.REGRESSED

    def without_durations(text: str) -> str:
        return re.sub(r"· \d+ s ·", "· N s ·", text).strip()

    assert without_durations(capsys.readouterr().out) == without_durations(example[2])


@pytest.mark.parametrize(
    ("injection", "code"),
    [("bandwidth.copy=-2%", ExitCode.PASSED), ("bandwidth.copy=wrong-output", ExitCode.WRONG_OUTPUT)],
)
def test_readme__its_other_rehearsals_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, injection: str, code: ExitCode
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--device", "recorded", "--inject", injection, "--quiet"]) == code


def test_readme__its_exit_codes_are_those_of_the_code() -> None:
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert table <= {int(code) for code in ExitCode}
    assert {int(code) for code in ExitCode} - table <= {141}


def test_readme__names_only_commands_and_pages_that_there_are() -> None:
    for command in re.findall(r"^\$ perfgate (\w+)", README, re.MULTILINE):
        assert command in COMMANDS
    for page in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (Path(__file__).resolve().parents[2] / page).exists(), page
