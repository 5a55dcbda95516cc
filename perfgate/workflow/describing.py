"""What own suites hold, asked of a process of its own: their code never runs where a verdict is made."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.gpu import Gpu
from perfgate.core.run import CaseInfo
from perfgate.errors import ConfigurationError, LaunchError, OutputError
from perfgate.measure.child import start_child
from perfgate.measure.orphan import end_with_parent
from perfgate.suite.sources import source_files, source_sha256, suite_sha256
from perfgate.workflow.suites import (
    enter_folder,
    joined_suite,
    loaded_suite,
    local_modules,
    refuse_foreign_modules,
    refuse_pointer,
)

# Importing a framework takes seconds on a cold disk; nobody waits longer than this for a list of cases.
_TIMEOUT_S = 180.0
_TAIL_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        suites: absolute paths of own suites.
        gpu: the GPU that they are for.
        folder: where they are loaded; "" for the current one.
        forbidden: folder that no module may come from; "" for none.
    """

    suites: tuple[str, ...]
    gpu: Gpu
    folder: str = ""
    forbidden: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What own suites hold.

    Attributes:
        cases: by id.
        absent: cases that this GPU cannot run, and why.
        margins: of the cases that have one of their own.
        programs: the cases that measure themselves.
        origins: the suite of each case.
        broken: suites that cannot be loaded: message and hint.
        suite_sha256: hash of what they measure.
        definition_sha256: hash of the suites' own files and of the modules beside them: launch geometry and
            arguments stand there, not in the kernels' sources.
    """

    cases: Mapping[str, CaseInfo] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    suite_sha256: str | None = None
    definition_sha256: str = ""


def description(question: Question) -> Description:
    """Return what own suites hold; those that cannot be loaded are named, with the reason.

    Raises:
        ConfigurationError: two have a case of one id, or a side of a comparison is not its own.
        LaunchError: its process died.
    """
    if not question.suites:
        return Description()
    try:
        folder = tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"no temporary folder: {error}", hint="free space, or set TMPDIR") from error
    with folder as name:
        place, answer = Path(name) / "question.json", Path(name) / "answer.json"
        place.write_text(json.dumps(encode(question)), encoding="utf-8")
        isolated = ["-I"] if sys.flags.isolated else []
        output = _finished([sys.executable, *isolated, "-m", "perfgate", "describe", str(place), str(answer)])
        return _parsed(answer, output)


def describe(place: Path, answer: Path) -> None:
    """Answer a question, in the process that was started for it."""
    end_with_parent(os.environ)
    question = decode(Question, json.loads(place.read_text(encoding="utf-8")))
    try:
        document: dict[str, Any] = {"description": encode(_answer(question))}
    except ConfigurationError as error:
        document = {"message": error.message, "hint": error.hint}
    answer.write_text(json.dumps(document), encoding="utf-8")


def _answer(question: Question) -> Description:
    enter_folder(question.folder)
    origins: dict[str, str] = {}
    broken: dict[str, tuple[str, str]] = {}
    for name in question.suites:
        try:
            loaded = loaded_suite(Path(name), question.gpu)
            for path in (path for case in loaded.cases for path in source_files(case)):
                refuse_pointer(path)
        except ConfigurationError as error:  # noqa: PERF203 - each suite by itself
            broken[name] = (error.message, error.hint)
        else:
            origins |= {case.id: name for case in loaded.cases}
    refuse_foreign_modules(question.forbidden)
    suite = joined_suite("", [name for name in question.suites if name not in broken], question.gpu)
    for case in suite.cases:
        for path in source_files(case):
            _refuse_foreign_source(case.id, path, question.forbidden)
    return Description(
        origins=origins,
        broken=broken,
        cases={
            case.id: CaseInfo(
                family=case.family,
                work=case.work,
                version=case.version,
                timing=case.timing,
                gated=case.gated,
                unit=case.unit,
                source_sha256=source_sha256(case),
            )
            for case in suite.cases
        },
        absent={one.id: one.reason for one in suite.absent},
        margins={case.id: case.margin for case in suite.cases if case.margin is not None},
        programs=tuple(case.id for case in suite.cases if case.program is not None),
        suite_sha256=suite_sha256(suite),
        definition_sha256=_definition_sha256(),
    )


def _refuse_foreign_source(case_id: str, path: Path, forbidden: str) -> None:
    if forbidden and path.is_relative_to(Path(forbidden).resolve()):
        raise ConfigurationError(
            f"{case_id}: the base's suite names a source of the working tree, {path.name}: both sides would measure the"
            " same code",
            hint="name sources relative to the suite",
        )


def _definition_sha256() -> str:
    """Hash the files that define the cases: suites and the modules that they import from beside them."""
    digest = hashlib.sha256()
    for content in sorted(path.read_bytes() for path in local_modules(Path(Path.cwd().anchor)) if path.suffix == ".py"):
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _finished(command: list[str]) -> str:
    """Run a process to its end and return what it printed."""
    process = start_child(command, os.environ)
    try:
        output, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise ConfigurationError(
            f"loading the suites took longer than {_TIMEOUT_S:.0f} s", hint="do slow work in set-up, not at import"
        ) from None
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return str(output.decode("utf-8", "replace"))[-_TAIL_CHARACTERS:]


def _parsed(answer: Path, output: str) -> Description:
    try:
        document = json.loads(answer.read_text(encoding="utf-8"))
        if "message" in document:
            raise ConfigurationError(document["message"], hint=document["hint"])
        return decode(Description, document["description"])
    except (OSError, ValueError, KeyError, CodecError):
        raise LaunchError(
            f"the process that loads the suites died: {output.strip() or 'it said nothing'}",
            hint="does a suite end the process, or crash while it is imported?",
        ) from None
