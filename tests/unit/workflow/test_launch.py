"""A launch in this process, on a recording: what its journal says, whatever becomes of its cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.codec import encode
from perfgate.core.run import Injection
from perfgate.errors import (
    CompileError,
    ConfigurationError,
    DeviceError,
    DeviceMemoryError,
    LaunchError,
    WrongOutputError,
)
from perfgate.measure.journal import (
    CaseFailed,
    CaseMeasured,
    FailureKind,
    JournalReader,
    LaunchFailed,
    LaunchFinished,
    Message,
    PhaseEntered,
    Started,
)
from perfgate.measure.order import LaunchOrder
from perfgate.storage.documents import write_run
from perfgate.workflow.launch import failure_kind, loop_settings, run_launch
from tests.factories import make_run, normal_medians

COPY, GAP = "bandwidth.copy[bytes=4GiB]", "launch.gap"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_run(tmp_path / "run.json", make_run({COPY: normal_medians(1, 8), GAP: normal_medians(2, 8, median_s=1e-6)}))
    return tmp_path / "run.json"


def launched(source: Path, **changes: Any) -> tuple[bool, tuple[Message, ...]]:
    fields: dict[str, Any] = {
        "index": 0,
        "device": f"recorded:{source}",
        "suite": "default",
        "case_ids": (GAP, COPY),
        "seed": 1,
    }
    journal = source.with_name("journal.jsonl")
    ended = run_launch(LaunchOrder(**(fields | changes)), journal)
    reader = JournalReader(journal)
    messages = reader.last_messages()
    assert reader.damages == ()
    return ended, messages


def of_kind(messages: tuple[Message, ...], kind: type[Any]) -> list[Any]:
    return [one for one in messages if isinstance(one, kind)]


def test_run_launch__tells_of_every_case_in_the_order_given(source: Path) -> None:
    ended, messages = launched(source)
    assert ended
    assert isinstance(messages[0], Started)
    assert isinstance(messages[-1], LaunchFinished)
    assert [one.case_id for one in of_kind(messages, CaseMeasured)] == [GAP, COPY]
    phases = [str(one.phase) for one in of_kind(messages, PhaseEntered) if one.case_id == COPY]
    assert phases == ["compile", "warm-up", *["block"] * 5, "verify"]


def test_run_launch__a_case_that_fails_leaves_the_others(source: Path) -> None:
    ended, messages = launched(source, injections=(Injection(pattern=GAP, requested="oom"),))
    (failed,) = of_kind(messages, CaseFailed)
    assert ended
    assert (failed.case_id, failed.kind) == (GAP, FailureKind.OUT_OF_MEMORY)
    assert [one.case_id for one in of_kind(messages, CaseMeasured)] == [COPY]
    assert isinstance(messages[-1], LaunchFinished)


def test_run_launch__tells_what_was_rehearsed(source: Path) -> None:
    _, messages = launched(source, injections=(Injection(pattern=COPY, requested="+5%"),))
    effective = {one.case_id: one.effective_change for one in of_kind(messages, CaseMeasured)}
    assert effective == {GAP: 0.0, COPY: pytest.approx(0.05, rel=0.02)}


def test_run_launch__that_cannot_open_its_device_says_why(source: Path) -> None:
    ended, messages = launched(source, device="recorded:/nothing.json")
    assert not ended
    assert isinstance(messages[-1], LaunchFailed)
    assert "/nothing.json: does not exist" in messages[-1].message


def test_run_launch__repeats_with_the_same_seed_and_index_and_no_other(source: Path) -> None:
    def blocks(**changes: Any) -> str:
        source.with_name("journal.jsonl").unlink(missing_ok=True)
        _, messages = launched(source, **changes)
        return json.dumps({one.case_id: encode(one.result.blocks) for one in of_kind(messages, CaseMeasured)})

    assert blocks() == blocks()
    assert len({blocks(seed=seed) for seed in range(6)}) > 2
    assert len({blocks(index=index) for index in range(6)}) > 2


def test_loop_settings__are_the_defaults_but_for_those_of_the_order() -> None:
    order = LaunchOrder(index=0, device="", suite="", case_ids=(), seed=0, settings={"blocks": 3.0, "sample_s": 0.01})
    settings = loop_settings(order)
    assert (settings.blocks, type(settings.blocks), settings.sample_s, settings.samples_per_block) == (3, int, 0.01, 10)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CompileError("x"), FailureKind.COMPILE),
        (DeviceMemoryError("x"), FailureKind.OUT_OF_MEMORY),
        (DeviceError("x"), FailureKind.DEVICE),
        (LaunchError("x"), FailureKind.DEVICE),
        (WrongOutputError("x"), FailureKind.WRONG_OUTPUT),
        (ConfigurationError("x"), FailureKind.ERROR),
    ],
)
def test_failure_kind__names_every_error(error: Any, kind: FailureKind) -> None:
    assert failure_kind(error) is kind
