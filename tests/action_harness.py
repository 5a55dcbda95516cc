"""Runs action.yml as GitHub's runner does: steps with bash, environment files, `if`, outputs, commands in the log.

Expressions are evaluated for what action.yml uses: inputs, steps, github.token, status functions, `||`,
`&&`, `!`, `==`, `!=` and string literals.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from perfgate.cli.main import run

ROOT = Path(__file__).resolve().parent.parent
_TOKENS = re.compile(r"\s*(\|\||&&|==|!=|!|\(|\)|'(?:[^']|'')*'|[A-Za-z_][\w.-]*)")


@dataclass(kw_only=True)
class Finished:
    """How a use of the action ended."""

    code: int
    outputs: dict[str, str]
    summary: str
    log: str
    step_codes: dict[str, int]
    annotations: list[tuple[str, str]]
    environments: dict[str, dict[str, str]]

    @property
    def verdict(self) -> str:
        return self.outputs["verdict"]


@dataclass(kw_only=True)
class Job:
    """A job on a runner: workspace, temporary folder, event, and GitHub's addresses.

    Attributes:
        workspace: with the repository checked out.
        temp: RUNNER_TEMP, fresh for each job.
        event_name, payload: what started the workflow.
        token: what ``github.token`` is.
        variables: further environment variables of the job.
        run_step: carries out a script in a folder with an environment; returns exit code and log.
    """

    workspace: Path
    temp: Path
    event_name: str
    payload: Mapping[str, Any]
    repository: str = "octo/kernels"
    sha: str = "f" * 40
    run_id: int = 10
    attempt: int = 1
    server_url: str = "https://github.com"
    api_url: str = "http://127.0.0.1:9"
    graphql_url: str = "http://127.0.0.1:9/graphql"
    token: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    run_step: Callable[[str, Path, Mapping[str, str]], tuple[int, str]]
    uses: int = 0

    def use(self, action: Path = ROOT, **inputs: str) -> Finished:
        """Carry out the action with inputs (underscores for hyphens)."""
        self.uses += 1
        files = self.temp / f"_runner_{self.uses}"
        files.mkdir(parents=True)
        (files / "event.json").write_text(json.dumps(self.payload), encoding="utf-8")
        definition = yaml.safe_load((action / "action.yml").read_text(encoding="utf-8"))
        context: dict[str, str] = {"github.token": self.token}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert set(given) <= set(definition["inputs"]), "unknown input"
        for name, one in definition["inputs"].items():
            context[f"inputs.{name}"] = given.get(name, _expanded(str(one.get("default", "")), context, failed=False))
        done = Finished(code=0, outputs={}, summary="", log="", step_codes={}, annotations=[], environments={})
        failed = False
        for position, step in enumerate(definition["runs"]["steps"]):
            assert "uses" not in step
            assert step["shell"] == "bash"
            condition = step.get("if", "success()").removeprefix("${{").removesuffix("}}")
            if not _evaluated(condition, context, failed=failed, is_condition=True):
                continue
            code = self._run(action, step, files / str(position), context, done, failed=failed)
            failed = failed or code != 0
            done.code = done.code or code
        done.outputs = {
            name: _expanded(one["value"], context, failed=failed) for name, one in definition["outputs"].items()
        }
        return done

    def _run(
        self, action: Path, step: Any, files: Path, context: dict[str, str], done: Finished, *, failed: bool
    ) -> int:
        files.mkdir()
        for name in ("output", "summary", "env", "path"):
            (files / name).touch()
        assert "${{" not in step["run"], "expressions in scripts are injections"
        own = {name: _expanded(str(value), context, failed=failed) for name, value in step.get("env", {}).items()}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.temp),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(action),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(files.parent / "event.json"),
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_REF_NAME": "main",
            "GITHUB_SHA": self.sha,
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_SERVER_URL": self.server_url,
            "GITHUB_API_URL": self.api_url,
            "GITHUB_GRAPHQL_URL": self.graphql_url,
            "GITHUB_OUTPUT": str(files / "output"),
            "GITHUB_STEP_SUMMARY": str(files / "summary"),
            "GITHUB_ENV": str(files / "env"),
            "GITHUB_PATH": str(files / "path"),
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            **self.variables,
            **own,
        }
        code, text = self.run_step(step["run"], self.workspace, environment)
        name = step["id"]
        done.log += text
        done.step_codes[name] = code
        done.annotations += commands(text)
        done.summary += (files / "summary").read_text(encoding="utf-8")
        done.environments[name] = environment
        for key, value in _file_outputs((files / "output").read_text(encoding="utf-8")).items():
            context[f"steps.{name}.outputs.{key}"] = value
        assert (files / "env").read_text() == ""
        return code


def run_with_bash(script: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a step as the runner does; return its exit code and log."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", dir=environment["RUNNER_TEMP"]) as file:
        file.write(script)
        file.flush()
        finished = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", file.name],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
    return finished.returncode, finished.stdout.decode("utf-8", errors="replace")


def run_here(script: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a step's perfgate in this process: the same but for bash and the start of an interpreter."""
    found = re.fullmatch(r'"\$PERFGATE_PYTHON" -I -m perfgate (action \w+)', script)
    if found is None:
        output = Path(environment["GITHUB_OUTPUT"])
        output.write_text(f"python={environment['PERFGATE_PYTHON']}\n", encoding="utf-8")
        return 0, ""
    log = io.StringIO()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        _chdir(folder),
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        code = run(found[1].split())
    return code, log.getvalue()


@contextlib.contextmanager
def _chdir(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def commands(log: str) -> list[tuple[str, str]]:
    """Return the workflow commands of a log as the runner finds them: name and message."""
    found, stopped = [], ""
    for line in log.splitlines():
        text = line.lstrip()
        if stopped:
            stopped = "" if text.startswith(f"::{stopped}::") else stopped
            continue
        match = re.match(r"::([A-Za-z-]+)(?: [^\n]*?)?::(.*)", text)
        if match and match[1] == "stop-commands":
            stopped = match[2]
        elif match:
            found.append((match[1], match[2]))
        elif "##[" in text:
            found.append(("##", text))
    return found


def _file_outputs(text: str) -> dict[str, str]:
    found, lines = {}, text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        heredoc = re.fullmatch(r"([^=<]+)<<(.+)", line)
        if heredoc is None:
            name, _, found_value = line.partition("=")
            found[name] = found_value
            continue
        value = []
        while lines[0] != heredoc[2]:
            value.append(lines.pop(0))
        lines.pop(0)
        found[heredoc[1]] = "\n".join(value)
    return found


def _expanded(text: str, context: Mapping[str, str], *, failed: bool) -> str:
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: _shown(_evaluated(match[1], context, failed=failed)), text)


def _shown(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def _evaluated(text: str, context: Mapping[str, str], *, failed: bool, is_condition: bool = False) -> Any:
    tokens = _TOKENS.findall(text)
    assert "".join(tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", text), f"cannot read {text!r}"
    functions = {"always": True, "success": not failed, "failure": failed, "cancelled": False}

    def primary() -> Any:
        token = tokens.pop(0)
        if token == "!":
            return not primary()
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token in functions and tokens[:1] == ["("]:
            del tokens[:2]
            return functions[token]
        assert token in context or re.match(r"(inputs|steps|github)\.", token), f"unknown name {token}"
        return context.get(token, "")

    def equality() -> Any:
        value = primary()
        while tokens[:1] in (["=="], ["!="]):
            value = (value == primary()) if tokens.pop(0) == "==" else (value != primary())
        return value

    def both() -> Any:
        value = equality()
        while tokens[:1] == ["&&"]:
            tokens.pop(0)
            other = equality()
            value = other if value else value
        return value

    def either() -> Any:
        value = both()
        while tokens[:1] == ["||"]:
            tokens.pop(0)
            other = both()
            value = value or other
        return value

    has_status = re.search(r"\b(always|success|failure|cancelled)\(", text)
    value = either()
    return value if has_status or not is_condition else value and not failed


PREPARED = str(Path(sys.prefix))
